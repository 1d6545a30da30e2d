#!/usr/bin/env bash
# A parent and its two sub-agents, a Stop, a SIGKILL, and a fresh shell that recovers: adopted, replaced once,
# and never twice. Everything is real: real processes, real signals, a real root on disk.
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
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'; else bold='' dim='' off=''; fi
act() { printf '\n%s%s%s\n' "$bold" "$*" "$off"; }
say() { printf '  %s\n' "$*"; }
checks=0
ok() { checks=$((checks + 1)); printf '  %sok%s  %s\n' "$dim" "$off" "$*"; }
fail() { printf '  FAILED: %s\n' "$*" >&2; exit 1; }
# is WANTED GOT WHAT: the check.
is() { [ "$1" = "$2" ] || fail "$3: wanted '$1', got '$2'"; ok "$3: $2"; }
# refused CODE WHAT COMMAND...: the command must be refused with this code.
refused() {
    local wanted=$1 what=$2 code rc=0
    shift 2
    code=$("$@" --print code 2>"$work/refusal") || rc=$?
    [ "$rc" -eq 10 ] || fail "$what: exit $rc, wanted 10"
    is "$wanted" "$code" "$what"
    say "    ${dim}$(head -n 1 "$work/refusal")${off}"
}
outcome() { "$LYCHGATE" inspect "$1" --print outcome; }
wait_for() { for _ in $(seq 500); do [ -e "$1" ] && return; sleep 0.01; done; fail "$1 did not appear"; }

# --- The sub-agent: a process of its own, guarded by lychgate ----------------------------------------------
cat >"$work/agent" <<'AGENT'
#!/usr/bin/env bash
# agent NAME: asks the gate, works until it is told how to end, and then says so.
set -euo pipefail
name=$1 work=$2
attempt=$(cat "$work/$name.attempt")
admitted=$("$LYCHGATE" admit "$name" --attempt "$attempt" --start --token-file "$work/$name.token" --print turnId)
echo "$admitted" >"$work/$name.turn"
: >"$work/$name.working"
until [ -e "$work/$name.end" ]; do sleep 0.01; done
if [ "$(cat "$work/$name.end")" = report ]; then
    echo "The flaky test waits for a port that is never closed." |
        "$LYCHGATE" report "$name" --attempt "$attempt" --token-file "$work/$name.token" >/dev/null
fi
"$LYCHGATE" settle "$name" --turn "$admitted" --token-file "$work/$name.token" >/dev/null
: >"$work/$name.ended"
AGENT
chmod +x "$work/agent"

# --- The parent: reserves two children, launches them, and is killed in the middle of its own work ----------
cat >"$work/parent" <<'PARENT'
#!/usr/bin/env bash
set -euo pipefail
work=$1
for child in scan fix; do
    # The parent owns its children: with its pid on record, its death can be proven later.
    "$LYCHGATE" reserve "$child" --parent main --owner parent --owner-pid $$ \
        --run night --step "$child" --input-hash sha256:1111 --token-file "$work/$child.token" >/dev/null
    "$LYCHGATE" rotate "$child" --as launch --token-file "$work/$child.token" --print attemptId >"$work/$child.attempt"
    setsid "$work/agent" "$child" "$work" &
done
: >"$work/parent.up"
wait
# The same process goes on, so that killing it leaves nothing behind.
exec sleep 600
PARENT
chmod +x "$work/parent"

act "1. A parent reserves two sub-agents and starts them as real processes"
"$work/parent" "$work" &
parent=$!
wait_for "$work/scan.working"
wait_for "$work/fix.working"
"$LYCHGATE" inspect
is live "$(outcome scan)" "scan"
is live "$(outcome fix)" "fix"

act "2. scan reports and ends its turn"
echo report >"$work/scan.end"
wait_for "$work/scan.ended"
is reported "$(outcome scan)" "scan"

act "3. A person stops fix in the middle of its turn"
"$LYCHGATE" stop fix --reason "wrong branch" --print code,message
is cleanup-pending "$(outcome fix)" "fix, while its turn still runs"
refused attempt-closing "a send to the stopped fix" \
    "$LYCHGATE" admit fix --attempt "$(cat "$work/fix.attempt")" --start --token-file "$work/fix.token"
echo stop >"$work/fix.end"
wait_for "$work/fix.ended"
receipt=$(find "$LYCHGATE_ROOT/sessions" -path '*subagent-attempt-settlements/fix*' -name '*.json')
[ -n "$receipt" ] || fail "fix left no receipt"
ok "its turn ended, and it left a receipt:"
say "    $(cat "$receipt")"

act "4. The parent is killed with SIGKILL. Everything it knew is gone"
kill -KILL "$parent"
wait "$parent" 2>/dev/null || true
unset parent

act "5. A fresh shell looks at the root, and at nothing else"
"$LYCHGATE" recover
"$LYCHGATE" inspect
is reported "$(outcome scan)" "scan, to be adopted"
say "    $("$LYCHGATE" report scan --show)"
is terminal-no-report "$(outcome fix)" "fix, proven over by its receipt"

# What a resuming program does for a step whose child is gone: retire it by a permanent claim, spend the claim.
recover_step() {
    local old=$1 attempt nonce
    attempt=$("$LYCHGATE" inspect "$old" --print identity.attemptId)
    nonce=$("$LYCHGATE" claim-retire "$old" --attempt "$attempt" --run night --step fix \
        --input-hash sha256:1111 --parent main --print nonce) || return $?
    "$LYCHGATE" reserve --replaces "$old" --nonce "$nonce" --owner recovery --owner-pid $$ \
        --token-file "$work/new.token" --print taskId
}

act "6. fix is retired by a claim, and replaced once"
new=$(recover_step fix)
is night.fix.1 "$new" "the replacement"
is live "$(outcome "$new")" "the replacement"

act "7. A second recovery finds the claim spent, and replaces nothing"
refused claim-spent "retiring fix again" \
    "$LYCHGATE" claim-retire fix --attempt "$(cat "$work/fix.attempt")" --run night --step fix \
    --input-hash sha256:1111 --parent main
"$LYCHGATE" recover --print message
is 3 "$("$LYCHGATE" inspect --json | grep -o '"taskId":"[^"]*","outcome"' | wc -l | tr -d ' ')" "tasks in the root"

act "8. The dead child speaks up late, and somebody writes to it"
refused late-report "its late report" sh -c \
    'echo "I was nearly done" | "$LYCHGATE" report fix --attempt "$0" --token-file "$1" "$2" "$3"' \
    "$(cat "$work/fix.attempt")" "$work/fix.token"
is "I was nearly done" "$("$LYCHGATE" report fix --show --late)" "and kept"
refused retired "a send to the retired child" \
    "$LYCHGATE" admit fix --attempt "$(cat "$work/fix.attempt")" --start --token-file "$work/fix.token"
refused retired "a reawakening of the retired child" "$LYCHGATE" rotate fix --as reawaken

act "The end: one report adopted, one dead sub-agent replaced exactly once"
"$LYCHGATE" inspect
printf '\n%d checks passed\n' "$checks"
