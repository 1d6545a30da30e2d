#!/usr/bin/env bash
# Everything is killed while a step's child is in the middle of its turn. Nothing proves that turn over, so the run is
# not resumed by guessing: the child is re-driven unproven, and only the holders of its tokens can bring it to an end.
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
export LYCHGATE LYCHGATE_ROOT="$work/root"
unset LYCHGATE_TASK LYCHGATE_ATTEMPT LYCHGATE_TOKEN

# --- Telling it -------------------------------------------------------------------------------------------
checks=0
fail() { printf '  FAILED: %s\n' "$*" >&2; exit 1; }
# is WANTED GOT WHAT: the check.
is() {
    [ "$1" = "$2" ] || fail "$3: wanted '$1', got '$2'"
    checks=$((checks + 1))
    printf '  ok  %s: %s\n' "$3" "$2"
}
# answers EXIT CODE WHAT COMMAND...: the command must end so.
answers() {
    local exit=$1 wanted=$2 what=$3 rc=0 code
    shift 3
    code=$("$@" --print code 2>"$work/refusal") || rc=$?
    [ "$rc" -eq "$exit" ] || fail "$what: exit $rc, wanted $exit: $(cat "$work/refusal")"
    is "$wanted" "$code" "$what"
}
# explained TASK TEXT: `inspect --explain` must say so.
explained() {
    "$LYCHGATE" inspect "$1" --explain >"$work/explained"
    grep -qF -- "$2" "$work/explained" || fail "$1 is not explained by '$2': $(cat "$work/explained")"
    checks=$((checks + 1))
    printf '  ok  inspect --explain says: %s\n' "$2"
}
bytes() { (cd "$LYCHGATE_ROOT" && find . -type f -exec cksum {} + | sort); }
receipts() { find "$LYCHGATE_ROOT/sessions" -path '*subagent-attempt-settlements*' -type f | wc -l | tr -d ' '; }

plan() { "$LYCHGATE" reserve --run "$run" --step plan --input-hash sha256:1 --parent main "$@"; }
attempt() { "$LYCHGATE" inspect "$1" --print identity.attemptId; }
# unresolved REASON: whoever asks for the child of the step is told that nobody can tell, and why; twice, and nothing
# changes.
unresolved() {
    local before rc
    before=$(bytes)
    for _ in 1 2; do
        rc=0
        out=$(plan --print code,reasonCode 2>"$work/refusal") || rc=$?
        [ "$rc" -eq 11 ] || fail "resuming: exit $rc, wanted 11: $(cat "$work/refusal")"
        [ "$out" = "unresolved"$'\n'"$1" ] || fail "resuming: wanted unresolved, $1; got $out"
    done
    is "$before" "$(bytes)" "resuming twice: unresolved, $1; the bytes of the root are as before" >/dev/null
    printf '  ok  resuming twice is unresolved, %s, and changes nothing\n' "$1"
    printf '      %s\n' "$(head -n 1 "$work/refusal")"
}

# --- The owner: reserves the child of the step, works on it, and is killed in the middle of its turn -----------
killed_midturn() {
    run=$1 child=$1.plan.1
    echo "$run: the step's child works, and everything is killed in the middle of its turn"
    mkfifo "$work/$run.working"
    (
        plan --owner parent --owner-pid "$BASHPID" --token-file "$work/$run.first" >/dev/null
        "$LYCHGATE" rotate "$child" --as launch --token-file "$work/$run.first" >/dev/null
        "$LYCHGATE" admit "$child" --attempt "$(attempt "$child")" --start --token-file "$work/$run.first" \
            --print turnId >"$work/$run.turn"
        echo >"$work/$run.working"
        exec sleep 600
    ) &
    read -r _ <"$work/$run.working"
    { kill -KILL $! && wait $!; } 2>/dev/null || true
}

echo "1. A restart in the middle of a turn"
killed_midturn night
"$LYCHGATE" recover
is indeterminate "$("$LYCHGATE" inspect $child --print outcome)" "the pass after the restart left it alone"
unresolved owner-dead-unsettled

echo "2. Re-driven: a fresh attempt that nobody owns, and that stays unproven for good"
"$LYCHGATE" rotate $child --as startup --print message
unresolved owner-unknown
explained $child "unproven, for good"
explained $child "nobody can tell whether its owner is gone"
answers 10 attempt-live "its one send, while the first turn may still run" \
    "$LYCHGATE" admit $child --attempt "$(attempt $child)" --start

echo "3. Only the first token ends the first turn"
answers 10 not-owner "a stranger says that the turn is over" "$LYCHGATE" settle $child --turn "$(cat "$work/night.turn")"
answers 0 turn-settled "the holder of the first token says so" \
    "$LYCHGATE" settle $child --turn "$(cat "$work/night.turn")" --token-file "$work/night.first"
unresolved unowned-no-receipt
answers 0 stopped "a person stops what is left of it" "$LYCHGATE" stop $child
unresolved lineage-unproven

echo "4. The owner's own way: reawaken, stop, claim, retry"
answers 0 rotated "reawakened by somebody who owns it" \
    "$LYCHGATE" rotate $child --as reawaken --owner rescue --owner-pid $$ --token-file "$work/night.second"
answers 0 stopped "stopped" "$LYCHGATE" stop $child
retire=("$LYCHGATE" claim-retire "$child" --attempt "$(attempt $child)" --run night --step plan --input-hash sha256:1 --parent main)
answers 11 lineage-unproven "a claim without the token" "${retire[@]}"
answers 11 lineage-unproven "a claim with the first token, which is another attempt's" \
    "${retire[@]}" --token-file "$work/night.first"
is token "$("${retire[@]}" --token-file "$work/night.second" --print authority)" "the claim of its owner rests on"
is night.plan.2 "$(plan --owner-pid $$ --print taskId)" "the retry replaces it once"
answers 10 reattach "another retry" plan
explained $child "for run night step plan, on the word of the owner's token alone, spent by \`night.plan.2\`"
is 0 "$(receipts)" "receipts in the whole root"

echo "5. The same again, and another restart before the claim: the second token is gone with its owner"
killed_midturn noon
"$LYCHGATE" rotate $child --as startup >/dev/null
"$LYCHGATE" settle $child --turn "$(cat "$work/noon.turn")" --token-file "$work/noon.first" >/dev/null
"$LYCHGATE" stop $child >/dev/null
{ (
    "$LYCHGATE" rotate $child --as reawaken --owner rescue --owner-pid "$BASHPID" --json >/dev/null
    "$LYCHGATE" stop $child >/dev/null
    kill -KILL "$BASHPID"
); } 2>/dev/null || true
"$LYCHGATE" recover --print message
unresolved lineage-unproven
explained $child "an earlier attempt of this task was never proven over"
explained $child "settled without a receipt: the attempt was not eligible for one"
explained $child "there is none"
is 0 "$(receipts)" "receipts in the whole root"
printf '\n%d checks passed\n' "$checks"
