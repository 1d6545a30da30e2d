#!/usr/bin/env bash
# A step's child is stopped and leaves its receipt; then somebody deletes the receipt, and everything is restarted.
# Without it nothing proves the child over, so it is not replaced: the answer names what is missing, however often it
# is asked, and nothing changes.
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
trap 'rm -rf "$work"' EXIT
export LYCHGATE LYCHGATE_ROOT="$work/root"
unset LYCHGATE_TASK LYCHGATE_ATTEMPT LYCHGATE_TOKEN

checks=0
fail() { printf '  FAILED: %s\n' "$*" >&2; exit 1; }
# is WANTED GOT WHAT: the check.
is() {
    [ "$1" = "$2" ] || fail "$3: wanted '$1', got '$2'"
    checks=$((checks + 1))
    printf '  ok  %s: %s\n' "$3" "$2"
}
plan() { "$LYCHGATE" reserve --run night --step plan --input-hash sha256:1 --parent main "$@"; }
bytes() { (cd "$LYCHGATE_ROOT" && find . -type f -exec cksum {} + | sort); }

echo "1. The child of a step is stopped in the middle of its turn, ends it, and leaves a receipt; then all is killed"
{ (
    plan --owner-pid "$BASHPID" --token-file "$work/token" >/dev/null
    "$LYCHGATE" rotate night.plan.1 --as launch --token-file "$work/token" --print attemptId >"$work/attempt"
    turn=$("$LYCHGATE" admit night.plan.1 --attempt "$(cat "$work/attempt")" --start --token-file "$work/token" --print turnId)
    "$LYCHGATE" stop night.plan.1 --reason "a person pressed Stop" >/dev/null
    "$LYCHGATE" settle night.plan.1 --turn "$turn" --token-file "$work/token" >/dev/null
    # The last commit of a row holds its receipt as well, and whoever comes next puts it back from there. So another
    # commit comes first.
    "$LYCHGATE" stop night.plan.1 >/dev/null
    kill -KILL "$BASHPID"
); } 2>/dev/null || true
attempt=$(cat "$work/attempt")
receipt=$LYCHGATE_ROOT/sessions/main/subagent-attempt-settlements/night.plan.1/$attempt.json
printf '  %s\n' "$(cat "$receipt")"
is terminal-no-report "$("$LYCHGATE" inspect night.plan.1 --print outcome)" "with its receipt, the child is"
is replace "$("$LYCHGATE" inspect --run night --print steps.0.decision)" "a resuming shell would"

echo "2. The receipt is deleted, and a fresh shell resumes the run"
rm "$receipt"
"$LYCHGATE" recover --print message
before=$(bytes)
for time in first second third; do
    rc=0
    reason=$(plan --owner-pid $$ --print code,reasonCode 2>"$work/refusal") || rc=$?
    is "11 unresolved unowned-no-receipt" "$rc ${reason//$'\n'/ }" "asked for the $time time"
    is "there is no settlement receipt for $attempt" "$(head -n 1 "$work/refusal" | sed 's/.*: //')" "it names what is missing"
    [ "$before" = "$(bytes)" ] || fail "asking changed something"
done
is 1 "$("$LYCHGATE" inspect --json | grep -o '"identity"' | wc -l | tr -d ' ')" "tasks in the root, of which no byte has changed"

echo "3. What a person is told"
"$LYCHGATE" inspect night.plan.1 --explain | tee "$work/explained"
is 1 "$(grep -c "^  receipt    there is none$" "$work/explained")" "lines that say that there is none"
is 1 "$(grep -cF "$receipt" "$work/explained")" "lines that say where it was looked for"
is interrupted "$("$LYCHGATE" inspect night.plan.1 --print taskStatus)" "the task stays"
printf '\n%d checks passed\n' "$checks"
