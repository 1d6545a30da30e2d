//! The longer texts of `--help`: what a command does, when it refuses, and what its exit codes mean.

mod guard;

pub(super) use guard::*;

pub(super) const TOP_ABOUT: &str = "Keep the books for people who run coding agents";

pub(super) const TOP: &str = "\
Keep the books for people who run coding agents

Each call is one locked, atomic, durable transaction on a folder, and exits. It answers what harnesses get wrong after a crash, a Stop or a race: may this send start work for this sub-agent's attempt, may a sub-agent that is gone be replaced, and may the agent go on by itself while a person's prompt waits.";

pub(super) const TOP_AFTER: &str = "\
State:
  The folder is --root DIR, else $LYCHGATE_ROOT, else $XUM_ROOT, else
  $XDG_STATE_HOME/lychgate, else ~/.local/state/lychgate. It is made on first write.
  $LYCHGATE_TASK, $LYCHGATE_ATTEMPT and $LYCHGATE_TOKEN belong together. Only admit, settle,
  report and stop read them, when TASK is missing or is that task.

Exit codes:
   0  done, or the question is answered
  10  refused: a rule says no, and the code says which
  11  unresolved: evidence is missing or contradictory
  12  pending: something is still owed; ask again
  64  usage
  65  data unreadable, damaged or of a newer format; nothing was written
  70  internal error (a bug)
  71  uncertain: repeat the call with the same --request-id
  74  I/O error; the old state stands
  75  a lock was not free in time; nothing was changed

One task from start to end:
  lychgate reserve fix-1 --parent main --token-file fix-1.token
  a=$(lychgate rotate fix-1 --as launch \\
    --token-file fix-1.token --print attemptId)
  t=$(lychgate admit fix-1 --attempt $a --start \\
    --token-file fix-1.token --print turnId)
  lychgate report fix-1 --attempt $a --token-file fix-1.token --file report.md
  lychgate settle fix-1 --turn $t --close --token-file fix-1.token";

pub(super) const RESERVE: &str = "\
Reserve a new task with its first attempt

The row is written as queued, with a fresh attempt and its token. Nothing runs yet: `rotate --as launch` starts it. A task id is taken for ever.

With --run, --step and --input-hash, or --input, it is the one place where a workflow step gets a child: it looks at the step's checkpoint first, and either reserves a new child, replacing a dead one in the same commit, or tells which child there is. With --replaces and --nonce it spends a claim made by claim-retire.

Exit codes:
   0  reserved
  10  task-exists
      adopt (a report exists), reattach (the child is live, or queued: launch it), completed,
      run-stopped: for a step
      stale-nonce, claim-spent, not-claimed: for a replacement
      ancestor-stopped
  11  nobody can tell whether the step's prior child is gone
  12  the step's prior child is still closing";
pub(super) const RESERVE_AFTER: &str = "\
Example:
  lychgate reserve fix-1 --parent main --owner nightly --owner-pid $$ \\
    --token-file fix-1.token";

pub(super) const ROTATE: &str = "\
Publish the next attempt of a task

From that commit on the former attempt admits nothing more; a turn of it that is in flight is still settled with its own token. `launch` is exclusive: of several launchers of a queued task one gets 0, and the holder of its token keeps attempt and token.

Exit codes:
   0  the answer names the attempt to use from now on, and its token
  10  stale-launch, stale-attempt, stale-epoch: somebody was faster
      not-queued, not-interrupted, not-reported, not-running: the status does not fit
      owner-alive: a turn of a living owner is in flight
      owner-unknown: nobody can tell; --unproven goes ahead, on record
      not-owner, retired, ancestor-stopped
  12  the attempt is still closing; nothing changed";
pub(super) const ROTATE_AFTER: &str = "\
Example:
  lychgate rotate fix-1 --as reawaken --expect att_0123456789abcdef@2 \\
    --owner-pid $$ --json";

pub(super) const ADMIT: &str = "\
Ask whether a send may start a turn

--attempt registers a send. --send with --queued records that it lies in the agent's own queue. --send with --start is the gate: only its exit 0 allows the turn to start, once. Work taken out of a queue asks again. --attempt with --start does both in one commit.

Exit codes:
   0  registered, enqueued, or admitted with a turnId
  10  start nothing
      stale-attempt, attempt-closing, attempt-settled, attempt-live, ancestor-stopped,
      not-launched: at the gate the send is discharged too
      already-admitted: the ids of an answer that was given before; nobody may start on it
      turn-ended, no-such-send, not-owner, unowned-send-used";
pub(super) const ADMIT_AFTER: &str = "\
Example:
  lychgate admit fix-1 --attempt att_0123456789abcdef --start \\
    --token-file fix-1.token --print turnId";

pub(super) const STOP: &str = "\
Shut the admission of tasks

Anyone may. Sends that have no turn yet are discharged, and the task becomes interrupted; a report that counts stays. No process is signalled: this keeps the books. Turns in flight and the cleanups named here hold the attempt open until they are settled.

With --run the run is latched first: none of its steps gets a child until `reserve --resume EPOCH`. Then every child of it is stopped. --all does that with every run, and stops every task.

Exit codes:
   0  stopped: nothing is in flight
      stopping: owed lists what is in flight, whose, and since when
      already-stopped, already-stopping: an earlier Stop or settlement stands
  10  no-task-record, or stale-attempt with --attempt
      no-such-step: there is no such run
      stale-epoch: a repeat with --run or --all, after the run has gone on
  12  --wait ran out
  64  ambiguous-run: say which with --parent";
pub(super) const STOP_AFTER: &str = "\
Example:
  lychgate stop fix-1 --tree --reason 'wrong branch' \\
    --cleanup worktree --owner-pid 4242 --wait 10s";

pub(super) const SETTLE: &str = "\
Say that a turn, a send, a cleanup or the whole attempt is over

With none of --turn, --send and --cleanup the owner says that the attempt is over: admission is shut first, then what is still running is looked at. The call that pays the last debt of a closed attempt writes its receipt.

A turn or a send of an owned attempt needs that attempt's own token. A cleanup id alone authorises its payment.

Exit codes:
   0  settled, turn-settled, send-settled, cleanup-paid, already-settled
  10  not-owner, stale-attempt
      no-such-turn, no-such-send, no-such-cleanup
      send-admitted: settle its turn instead
      source-not-true: the receipt cannot name this source
  12  admission is shut, and turns or cleanups are still owed";
pub(super) const SETTLE_AFTER: &str = "\
Example:
  lychgate settle fix-1 --turn turn_0123456789abcdef0001 --close \\
    --token-file fix-1.token";

pub(super) const REPORT: &str = "\
Publish the report of an attempt, or print it

A report counts while its attempt is current, not retired, not settled, and has a turn in flight, also while it is closing. One that does not count is kept and never lost: --show --late prints it.

Exit codes:
   0  report-accepted, or already-reported for the same text
  10  late-report: kept under late/
      not-owner
      no-report: there is nothing to show
  64  report-empty, report-too-large, report-not-text";
pub(super) const REPORT_AFTER: &str = "\
Example:
  lychgate report fix-1 --attempt att_0123456789abcdef \\
    --title 'Flaky test fixed' --file report.md";

pub(super) const CLAIM_RETIRE: &str = "\
Retire an attempt for exactly one checkpoint

The claim is permanent and never changes. Asking again for the same checkpoint answers a fresh nonce, which voids the older ones; `reserve --replaces TASK --nonce N` spends it, once.

Exit codes:
   0  claimed
  10  the evidence says no
      claim-lost: claimed for another checkpoint
      claim-spent: the answer names the replacement
      attempt-live, report-published, not-interrupted, not-reported, stale-attempt,
      checkpoint-mismatch
  11  the evidence is missing or unreadable; reasonCode names it
  12  the attempt is still closing";
pub(super) const CLAIM_RETIRE_AFTER: &str = "\
Example:
  lychgate claim-retire fix-1 --attempt att_0123456789abcdef \\
    --run night --step fix --input-hash 9f2c --parent main --print nonce";

pub(super) const INSPECT: &str = "\
Tell what has become of tasks

It writes nothing, takes no lock, and works on a read-only root. The outcome is reported, live, cleanup-pending, terminal-no-report or indeterminate, and reasonCode says why.

With --session it shows a session: who waits for whom, what is under way, and what a claim would be answered now, and why.

With --run R it tells every step of a workflow run, its child, and what `reserve` would decide now, and why.

With --xum DIR it looks at a root of the application xum instead, also while that runs, and names the known dead end each task is in. No file with credentials is opened.

Exit codes:
   0  the question is answered, whatever the outcome
  10  outcome-differs, with --expect
      no-session, no-such-step: there is no session or run of that name
  11  identity-changed: the task or the run changed while it was being read
  64  ambiguous-run: say which with --parent
  65  the root or a row is damaged
      not-xum-root, config-unreadable: with --xum";
pub(super) const INSPECT_AFTER: &str = "\
Example:
  lychgate inspect fix-1 --explain
  lychgate inspect --session ci-7 --print claim.running.code";

pub(super) const RECOVER: &str = "\
Do after a restart what may be done without guessing

It settles what evidence proves to be over, reverts launches that never came to a turn, takes up the rest under new attempts, and finishes what a dead process left half done. It leaves alone whose owner is alive, and, unless the task is named with --unproven, every unknown owner and every turn in flight. A second pass changes nothing more.

Exit codes:
   0  what may be done was done; left lists the rest
  11  recovery-incomplete: something was left, with --strict";
pub(super) const RECOVER_AFTER: &str = "\
Example:
  lychgate recover --strict || lychgate inspect --stuck --explain";

pub(super) const STEP: &str = "\
Record the end of a workflow step

`complete` takes the child's report as the step's result, and refuses without one. `fail` says that the child gave no result that counts: the next `reserve` for the step retires the child, if evidence allows it, and replaces it.

Exit codes:
   0  step-completed, step-failed, or already-ended
  10  no-such-step, no-report, no-task-record, step-ended (it has the other end)
  11  report-unreadable, legacy-no-attempt-id
      unresolved: two tasks say that they are the step's child";
pub(super) const STEP_AFTER: &str = "\
Example:
  lychgate step complete --parent main --run night --step fix \\
    --input-hash sha256:9f2c";

pub(super) const WAIT: &str = "\
Wait until a task has an outcome

It looks again and again, takes no lock, and changes nothing.

Exit codes:
   0  reached
  10  ended-otherwise: the task is over in another way; no-task-record, no-such-step
  12  not-yet: the time ran out";
pub(super) const WAIT_AFTER: &str = "\
Example:
  lychgate wait fix-1 --for reported --timeout 5m";

pub(super) const IMPORT: &str = "\
Take over the tasks of a root of the application xum

Rows, ids, markers, claims, reports, strict receipts and the checkpoints of workflow runs come along as they are; what was found active is unproven here and nobody's. Nothing in DIR is changed, no file with credentials is opened, and what is not taken over is listed with the reason. Doing it twice adds nothing; doing it again later adds what is new there.

Stop the application first: what it does afterwards is not known here.

Exit codes:
   0  imported: left lists what was not taken over
  11  identity-changed: the root changes faster than it can be read
  65  not-xum-root, config-unreadable";
pub(super) const IMPORT_AFTER: &str = "\
Example:
  lychgate import --xum ~/.xum --dry-run";

pub(super) const HOOK: &str = "\
Have agents call this program, or no more

`install` writes a command into the agent's own settings that survives this program's absence. What else is there keeps its place and form, a copy from before the first change is kept beside the file, and doing it twice changes nothing. `uninstall` takes out exactly that. Without --project, --local or --user both work on the settings of this user.

`doctor` looks at every settings file of the agent and says where this program is called, with which root, and what keeps it from being called.

Exit codes:
   0  installed, already-installed, uninstalled, not-installed
      ok: doctor has looked; healthy says what it thinks
  65  settings-unreadable: the file is not what it should be; nothing was written
  74  the file cannot be written
  75  somebody else changed the file at the same time";
pub(super) const HOOK_AFTER: &str = "\
Example:
  lychgate hook install claude --dry-run
  lychgate hook doctor claude";
