#!/bin/sh
# A hook that remembers what it was told and answers what the test wants. probe.sh DIR EVENT [ANSWERS]
#
# DIR/seen gets one line a call: event, tab, payload. ANSWERS is a folder of shell scripts: each call takes the
# first one out and runs it; with none left, it answers nothing.
dir=$1 event=$2 answers=$3
payload=$(cat)
printf '%s\t%s\n' "$event" "$payload" >>"$dir/seen"
[ -n "$answers" ] || exit 0
for answer in "$answers"/*; do
    # Whoever moves it has it.
    if mv "$answer" "$dir/taken.$$" 2>/dev/null; then
        . "$dir/taken.$$"
        exit
    fi
done
exit 0
