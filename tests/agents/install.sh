#!/usr/bin/env bash
# Installs the agents of packages.txt with npm, each into its own folder of target/agents, and keeps what is
# there already in the wanted version. No package's install script runs. Says what it did, one line an agent; the
# exit status is 0 when all of them are there.
#
#   tests/agents/install.sh [NAME...]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
into=${LYCHGATE_AGENTS_DIR:-${CARGO_TARGET_DIR:-$here/../../target}/agents}

for tool in node npm flock; do
    command -v "$tool" >/dev/null || { echo "agents: $tool is missing, so no agent can be installed"; exit 1; }
done
mkdir -p "$into" || exit 1
# Two test runs at once install once.
exec 9>"$into/.lock"
flock 9
platform=$(node -p 'process.platform + "-" + process.arch')

failed=0
while read -r name package version; do
    case $name in '' | '#'*) continue ;; esac
    if [ "$#" -gt 0 ] && [[ " $* node " != *" $name "* ]]; then continue; fi
    wanted="${package//'{platform}'/$platform}@$version"
    if [ "$(cat "$into/$name/.installed" 2>/dev/null)" = "$wanted" ]; then
        echo "agents: $name is there ($wanted)"
        continue
    fi
    rm -rf "${into:?}/$name"
    mkdir -p "$into/$name"
    echo '{"private": true}' >"$into/$name/package.json"
    if told=$(cd "$into/$name" && npm install --ignore-scripts --no-audit --no-fund --no-update-notifier \
        --save-exact --fetch-retries=1 --fetch-timeout=60000 --loglevel=error "$wanted" 2>&1 </dev/null); then
        # Written last: a folder without it is not installed.
        echo "$wanted" >"$into/$name/.installed"
        echo "agents: $name installed ($wanted)"
    else
        echo "agents: $name could not be installed ($wanted): $(tail -n 3 <<<"$told" | tr '\n' ' ')"
        failed=1
    fi
done <"$here/packages.txt"
exit "$failed"
