#!/usr/bin/env bash
# agent.sh TASK: launches its task, RUN.STEP.N, passes the gate, works, and ends. How, says the first letter of the
# step, for the first child that comes so far: d(ies) before the gate, is s(topped) in its turn, goes away i(dle) after
# it, all three without a report; or leaves its attempt o(pen) after its report. Every other child reports and closes.
set -euo pipefail
task=$1 step=${1%.*}
say() { printf '%s\n' "$*" >>"$LOG"; }
say "agent $$ $task"
launched=$("$LYCHGATE" rotate "$task" --as launch --owner-pid $$ --lock-wait 30s --format sh) || {
    say "lost $$ $task"
    exit 0
}
eval "$launched"
export LYCHGATE_TASK LYCHGATE_ATTEMPT LYCHGATE_TOKEN
# The shell that waits for this may be gone.
trap '' PIPE
echo launched 2>/dev/null || true
exec >/dev/null
if [[ ${step#*.} = d* ]] && mkdir "$WORK/died.$step" 2>/dev/null; then
    say "over $$ $task"
    exit 0
fi
turn=$("$LYCHGATE" admit --start --lock-wait 30s --print turnId)
ending=close
if mkdir "$WORK/passed.$step" 2>/dev/null; then
    case ${step#*.} in s*) ending=stop ;; i*) ending=idle ;; o*) ending=report ;; esac
fi
say "begin $step $task $LYCHGATE_ATTEMPT $ending"
sleep "${WORK_TIME-0}"
case $ending in
    close | report) echo "$task did its work" | "$LYCHGATE" report --lock-wait 30s >/dev/null ;;
    stop) "$LYCHGATE" stop "$task" --lock-wait 30s >/dev/null ;;
esac
# From here on it works no more; what it has begun ends only now.
say "end $step $task $LYCHGATE_ATTEMPT $ending"
if [ $ending = close ]; then set -- --close; else set --; fi
"$LYCHGATE" settle --turn "$turn" "$@" --lock-wait 30s >/dev/null
say "over $$ $task"
