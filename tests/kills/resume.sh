#!/usr/bin/env bash
# resume.sh RUN STEP...: the loop of examples/workflow.sh, to be killed at any moment. Its agents are processes of their
# own, that live on. Every call is told in the log before it is made.
set -euo pipefail
run=$1
shift
say() { printf '%s\n' "$*" >>"$LOG"; }
call() { say "call $$ $1"; "$LYCHGATE" "$@"; }
for step in "$@"; do
    at=(--run "$run" --step "$step" --input-hash h --parent ws)
    while :; do
        out=$(call reserve "${at[@]}" --owner-pid $$ --lock-wait 30s --format sh) || true
        eval "$out"
        case $LYCHGATE_CODE/${LYCHGATE_TASK_STATUS-} in
            reserved/* | reattach/queued)
                # It speaks when its task is launched, by itself or by somebody else.
                setsid -f "$AGENT" "$LYCHGATE_ANSWER_TASK" | read -r _ || true ;;
            reattach/* | cleanup-pending/*)
                call wait "$LYCHGATE_ANSWER_TASK" --timeout 1s >/dev/null || true ;;
            adopt/*)
                call step complete "${at[@]}" --lock-wait 30s >/dev/null ;;
            completed/*)
                break ;;
            *)
                # An owner that has ended and is not reaped yet is neither dead nor alive; its death shows soon.
                if [ "${LYCHGATE_REASON-}" = owned-unsettled ]; then continue; fi
                say "gave-up $$ $step $LYCHGATE_CODE ${LYCHGATE_REASON-}"
                exit 3 ;;
        esac
    done
done
say "finished $$ $run"
