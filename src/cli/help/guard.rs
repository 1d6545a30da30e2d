//! The help of the commands of the continuation guard.

pub(in crate::cli) const SESSION: &str = "\
Open, close, suspend or move a session

A session is one conversation with an agent: it has a queue of a person's prompts, and a guard that may let the agent go on by itself. Nothing else makes a session, and a call about one that there is not leaves nothing behind.

A session that is opened again after a close, or restored, is another generation: nothing of the one before is trusted, and what a person typed is still there. `relocate` takes three calls: --begin shuts the gate, --poll says when everything before it is over, --commit or --abort opens it.

Exit codes:
   0  opened, already-open, closed, already-closed, restoring, restored
      plan-on, plan-off, suspended
      relocation-ready, relocated, relocation-aborted, no-move
  10  no-session, session-over, no-relocation
  12  relocating: --poll and --begin name what still runs
      session-restoring";
pub(in crate::cli) const SESSION_AFTER: &str = "\
Example:
  lychgate session open ci-7 --guard --cwd .
  lychgate session relocate ci-7 --begin --to .
  lychgate session relocate ci-7 --poll --print code
  lychgate session relocate ci-7 --commit
  lychgate session suspend ci-7 --cause 'stop for today'
  lychgate session close ci-7";

pub(in crate::cli) const PROMPT: &str = "\
Keep the queue of a session's prompts

A person's prompt is never overtaken: while one is queued, a claim is answered `prompt-queued`, and while an automatic send is under way, a prompt is queued behind it. `submit` mints the id that everything else names; the host's own name for it is an alias. Each prompt has one end.

`start` answers the text, if `submit` was given it, and a marker for a script that hands it on to the agent.

Exit codes:
   0  submitted (state says running or queued), already-submitted
      prompt-started, already-started, prompt-finished, already-finished, prompt-removed
  10  no-session, session-over, queue-full, no-such-prompt
      prompt-ended, prompt-not-running, prompt-is-running
  12  prompt-waiting, ticket-open, relocating, session-restoring: ask again
  64  text-empty, text-too-large";
pub(in crate::cli) const PROMPT_AFTER: &str = "\
Example:
  echo 'fix the flaky test' | lychgate prompt submit ci-7 --alias job-42 --file -
  lychgate prompt start ci-7 job-42 --owner-pid $$ --print text
  lychgate prompt finish ci-7 job-42 --as completed";

pub(in crate::cli) const CLAIM: &str = "\
Ask whether the agent may go on by itself now

The answer carries `claimed` and `hasQueuedPrompt`, and one of three things is true. Claimed: send the continuation, once, and say what became of the ticket. A prompt is queued: end the turn now, without a word. Neither: do not go on; reason says why.

The ticket is ended once, with --ticket and --as. It is charged when it was sent; one that nobody ends by its time, or whose process is proven dead, counts as sent. --stage keeps it alive. Whatever goes wrong, `claimed` is false.

Exit codes:
   0  granted: the answer names the ticket
      ticket-settled, ticket-renewed
  10  prompt-queued: the turn has yielded to a person's prompt
      unavailable: reason says why
      already-granted: the ids of an answer that was given before; nobody may send on it
      no-such-ticket, ticket-ended
      ticket-void: it was sent although it was void; cut the stream
  64  text-empty, text-too-large: of --text-kept";
pub(in crate::cli) const CLAIM_AFTER: &str = "\
Example:
  lychgate claim ci-7 --prompt job-42 --owner-pid $$ --for 30s --json
  lychgate claim ci-7 --ticket tkt_0123456789abcdef --stage compressing
  lychgate claim ci-7 --ticket tkt_0123456789abcdef --as sent";

pub(in crate::cli) const RELEASE: &str = "\
Say that the queued prompt which a prompt yielded to is gone

It names the prompt that had yielded. Only that one's wait is cleared, and its open tickets are void: one that is sent all the same is charged and refused. The guard is suspended until an ordinary prompt. Where the queue is kept here, this happens by itself.

Exit codes:
   0  released
  10  no-match: that prompt neither waits nor holds a ticket; nothing changed
      no-session, session-over";
pub(in crate::cli) const RELEASE_AFTER: &str = "\
Example:
  lychgate release ci-7 --prompt prm_0123456789abcdef";

pub(in crate::cli) const SAY: &str = "\
Keep what a person typed in the middle of a turn

The text lies in the session's inbox until `drain`, or the end of the turn, takes it. It goes before every automatic continuation.

Exit codes:
   0  said, already-said
  10  no-session, session-over, queue-full: the session keeps too much text
  64  text-empty, text-too-large";
pub(in crate::cli) const SAY_AFTER: &str = "\
Example:
  echo 'and add a test' | lychgate say ci-7 --id msg-1";

pub(in crate::cli) const DRAIN: &str = "\
Take what was typed in the middle of a turn

At most 10 texts are taken, oldest first; left says how many remain. What was taken is kept until --ack says that it arrived, and --again gives it once more. hasQueuedPrompt is a hint: a claim confirms it.

Exit codes:
   0  drained: parts are the texts
      acknowledged
  10  no-session";
pub(in crate::cli) const DRAIN_AFTER: &str = "\
Example:
  lychgate drain ci-7 --json
  lychgate drain ci-7 --ack msg-1";

pub(in crate::cli) const TODO: &str = "\
Tell the main agent's to-do list

Only the strict envelope is read: an object with kind \"todo_list\" and an array todos, each item with a string id, a string content, and a status of pending, in_progress or completed. A list with unfinished items arms the guard, one without disarms it. Texts are not kept.

Exit codes:
   0  todo-counted
      todo-ignored: with --agent-id or --replayed
  10  todo-late: the turn is over; the guard is suspended
      no-session, session-over
  64  todo-malformed, text-empty, text-too-large";
pub(in crate::cli) const TODO_AFTER: &str = "\
Example:
  lychgate todo ci-7 --prompt job-42 --file todo.json";

pub(in crate::cli) const END_TURN: &str = "\
Ask what happens at the end of a turn

The decision is one of: allow, the agent may stop. continue, it goes on, and text is what it is told; ticket is there if the guard wants it, and is ended with `claim --ticket`. yield, a person's prompt waits, so the turn ends without a word. user-input, the person typed, and text comes first. deferred, related work still runs. exhausted, the budget is spent, which is said once.

An outer stop hook's answer is handed in with --external. Whatever keeps the guard from deciding, an error too, decision is still told: continue with the outer hook's reason, else allow.

Exit codes:
   0  allow, continue, yield, user-input, deferred, exhausted
  10  no-session
      already-granted: the ids of an answer that was given before";
pub(in crate::cli) const END_TURN_AFTER: &str = "\
Example:
  lychgate end-turn ci-7 --external block --reason 'the tests are red' --json";

pub(in crate::cli) const BACKGROUND: &str = "\
Tell what lives in the background

While work that belongs to the turn still runs, its end is waited for and nothing is charged. A task that started before the person's prompt does not belong to it, until a tool call goes on with it: mark before the call, commit when it succeeded, rollback when not. A mark that nobody ends is rolled back in time.

Exit codes:
   0  background-noted
  10  no-such-mark, no-session, session-over";
pub(in crate::cli) const BACKGROUND_AFTER: &str = "\
Example:
  lychgate background ci-7 start build-3 --kind shell --owner-pid $$
  lychgate background ci-7 mark build-3 --print markId
  lychgate background ci-7 rollback build-3 --mark mrk_0123456789abcdef
  lychgate background ci-7 end build-3";

pub(in crate::cli) const NOTIFY: &str = "\
Queue a background result, or take the next one

What is taken is offered again in time, or when its taker is proven dead, unless it is acknowledged once its turn began. At most 20 results wait; what has no place leaves a notice that `gaps` shows.

Exit codes:
   0  queued, already-queued, omitted (a notice was left)
      taken: start a turn for it, then acknowledge it
      acknowledged
  10  nothing-queued, kept-back (reason says why), no-such-item
      no-session, session-over
  64  text-empty, text-too-large";
pub(in crate::cli) const NOTIFY_AFTER: &str = "\
Example:
  echo 'exit 1' | lychgate notify ci-7 put --task build-3 --id r-1 --status failed --file -
  lychgate notify ci-7 take --owner-pid $$ --json
  lychgate notify ci-7 ack r-1";

pub(in crate::cli) const CRON: &str = "\
Queue a timer that has fired, or take the next one

A wakeup that the agent set for itself belongs to its work; a plain timer never does. What is taken is offered again in time, unless it is acknowledged once its turn began.

Exit codes:
   0  queued, already-queued, omitted (a notice was left)
      taken: start a turn for it, then acknowledge it
      acknowledged
  10  nothing-queued, kept-back (reason says why), no-such-item
      no-session, session-over
  64  text-empty, text-too-large";
pub(in crate::cli) const CRON_AFTER: &str = "\
Example:
  lychgate cron ci-7 put --task nightly --id night-1
  lychgate cron ci-7 take --json
  lychgate cron ci-7 ack night-1";

pub(in crate::cli) const GAPS: &str = "\
Show what had no place in a queue

A notice survives everything but its acknowledgement: full queues, new prompts, failed turns. Show it to the model and the person first.

Exit codes:
   0  ok: gaps are the notices
      acknowledged
  10  no-such-item, no-session";
pub(in crate::cli) const GAPS_AFTER: &str = "\
Example:
  lychgate gaps ci-7 --json
  lychgate gaps ci-7 --ack gap_0123456789abcdef";
