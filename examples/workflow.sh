#!/usr/bin/env bash
# A workflow of three steps that is killed in the middle, and a shell loop that resumes it: finished steps are
# reused, live children are waited for, queued ones are launched, dead ones are replaced once. The loop is `resume`.
#
# Runs $LYCHGATE if it is set, else the release binary, which is built if it is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
LYCHGATE=${LYCHGATE:-$here/target/release/lychgate}
if [ ! -x "$LYCHGATE" ]; then
    echo "building $LYCHGATE ..."
    (cd "$here" && cargo build --release --quiet)
fi
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
export LYCHGATE LYCHGATE_ROOT="$work/root" work
unset LYCHGATE_TASK LYCHGATE_ATTEMPT LYCHGATE_TOKEN

checks=0
is() {
    [ "$1" = "$2" ] || { printf '  FAILED: %s: wanted %q, got %q\n' "$3" "$1" "$2" >&2; exit 1; }
    checks=$((checks + 1))
    printf '  ok  %s: %s\n' "$3" "$2"
}

# A sub-agent that works for a step: launches its task, asks the gate, works, reports, ends its turn. Whoever launches
# a queued task takes it over under a fresh id and token, so nothing is lost with the shell that reserved it.
agent() (
    launched=$("$LYCHGATE" rotate "$1" --as launch --owner-pid "$BASHPID" --format sh) || exit 0 # somebody else was first
    eval "$launched"
    export LYCHGATE_TASK LYCHGATE_ATTEMPT LYCHGATE_TOKEN
    turn=$("$LYCHGATE" admit --start --print turnId) || exit 0
    echo "$1 did its work" | "$LYCHGATE" report >/dev/null
    "$LYCHGATE" settle --turn "$turn" --close >/dev/null
)

# --- The loop: ten lines that resume a workflow, however often it was killed --------------------------------
resume() {
    local step out
    for step in scan plan fix; do
        while :; do
            out=$("$LYCHGATE" reserve --run night --step "$step" --input-hash sha256:1 --parent main --format sh) || true
            eval "$out"
            case $LYCHGATE_CODE/${LYCHGATE_TASK_STATUS-} in
                reserved/* | reattach/queued)   agent "$LYCHGATE_ANSWER_TASK" || true ;;
                reattach/* | cleanup-pending/*) "$LYCHGATE" wait "$LYCHGATE_ANSWER_TASK" --timeout 5s >/dev/null || true ;;
                adopt/*)     "$LYCHGATE" step complete --run night --step "$step" --input-hash sha256:1 --parent main >/dev/null ;;
                completed/*) break ;;
                *)           echo "$step: $LYCHGATE_CODE: $LYCHGATE_MESSAGE" >&2; return 1 ;;
            esac
        done
    done
}
# -------------------------------------------------------------------------------------------------------------

echo "1. A run begins: scan is done, plan's child was stopped in the middle of its work, and the shell that reserved"
echo "   fix's child died before it could launch it"
ask() { "$LYCHGATE" reserve --run night --step "$1" --input-hash sha256:1 --parent main "${@:2}"; }
ask scan >/dev/null
agent night.scan.1
"$LYCHGATE" step complete --run night --step scan --input-hash sha256:1 --parent main >/dev/null
{ (
    ask plan --owner-pid "$BASHPID" --token-file "$work/night.plan.1.token" >/dev/null
    "$LYCHGATE" rotate night.plan.1 --as launch --token-file "$work/night.plan.1.token" --print attemptId >"$work/plan.attempt"
    turn=$("$LYCHGATE" admit night.plan.1 --attempt "$(cat "$work/plan.attempt")" --start \
        --token-file "$work/night.plan.1.token" --print turnId)
    "$LYCHGATE" stop night.plan.1 --reason "a person pressed Stop" >/dev/null
    "$LYCHGATE" settle night.plan.1 --turn "$turn" --token-file "$work/night.plan.1.token" >/dev/null
    ask fix --owner-pid "$BASHPID" >/dev/null
    kill -KILL "$BASHPID"
); } 2>/dev/null || true
"$LYCHGATE" inspect --run night

echo "2. A fresh shell resumes it"
resume
"$LYCHGATE" inspect --run night
is 3 "$("$LYCHGATE" inspect --run night --json | grep -o '"status":"completed"' | wc -l | tr -d ' ')" "steps completed"
is night.scan.1 "$("$LYCHGATE" inspect --run night --print steps.0.taskId)" "scan was reused"
is night.plan.2 "$("$LYCHGATE" inspect --run night --print steps.1.taskId)" "plan was replaced"
is night.plan.2 "$("$LYCHGATE" inspect night.plan.1 --print retiredBy.replacementTaskId)" "the old child is retired for it"
is night.fix.1 "$("$LYCHGATE" inspect --run night --print steps.2.taskId)" "fix's queued child was launched by whoever asked"

echo "3. Resuming again changes nothing"
resume
is 4 "$("$LYCHGATE" inspect --json | grep -o '"identity"' | wc -l | tr -d ' ')" "tasks in the root"

echo "4. The retired child refuses a message, and says why"
rc=0
"$LYCHGATE" admit night.plan.1 --attempt "$(cat "$work/plan.attempt")" --start --token-file "$work/night.plan.1.token" \
    2>"$work/refusal" || rc=$?
is 10 "$rc" "exit status"
is "lychgate admit: refused (retired): This sub-agent's attempt was retired by workflow run night (step plan); start a new task instead." \
    "$(head -n 1 "$work/refusal")" "the refusal"
printf '\n%d checks passed\n' "$checks"
