//! The continuation guard: an automatic continuation never overtakes a person's queued prompt, never revives
//! stopped work, is bounded, and loses nothing that the person typed.
//!
//! Pure, like all rules. One call is one [`judge`]: what time and death have changed is put right first, then the
//! requests are applied one after the other, and the session as it is then goes to disk in one commit together
//! with the answer. The numbers `O1` to `O73` are those of `docs/RULES.md`.

pub mod background;
pub mod chain;
mod claims;
mod hooks;
mod life;
mod prompts;
pub mod queues;
mod relocation;
pub mod request;
pub mod session;
#[cfg(test)]
pub(crate) mod testing;
mod texts;
pub mod todo;
mod todos;
pub mod told;
mod turn;
mod work;

use crate::protocol::codes::Code;
use crate::protocol::ids::{Fresh, Name};
use crate::protocol::row::ProcessRef;
use crate::protocol::verdict::{Call, Facts, OwnerLife, Refusal, Said};

use request::Request;
use session::{BootTime, PromptEnd, Session};
pub(crate) use work::Work;

/// What one call sees of the world.
pub struct Moment<'a> {
    /// The call.
    pub call: &'a Call,
    /// The boot clock.
    pub boot: &'a BootTime,
    /// Digits for the ids this call may mint.
    pub fresh: &'a Fresh,
    /// Whether a recorded process lives.
    pub life: &'a dyn Fn(&ProcessRef) -> OwnerLife,
}

/// What a request is answered.
pub type Answered = Result<Said, Box<Refusal>>;

/// A judged call.
#[derive(Debug, Clone)]
pub struct Done {
    /// The session as it is to be written; absent: nothing has changed.
    pub session: Option<Box<Session>>,
    /// The answer. A refusal may go with a change: a wait that was installed, a ticket that has lapsed.
    pub answer: Answered,
    /// The answer authorises an act, and is given once.
    pub authorises: bool,
}

/// Judges the requests of one call. `session` is what lies on disk; `None`: the session was never opened.
pub fn judge(session: Option<&Session>, name: &Name, requests: &[Request], moment: &Moment<'_>) -> Done {
    let known = match (session, requests.first()) {
        (Some(session), _) => session.clone(),
        (None, Some(Request::Open(open))) => Session::new(name, open, &moment.call.now),
        (None, first) => {
            return Done { session: None, answer: Err(Box::new(unknown(name, first))), authorises: false };
        }
    };
    let is_new = session.is_none();
    let mut work = Work { session: known, moment, authorises: false };
    work.sweep();
    let mut answer = Err(Box::new(Refusal::new(Code::Internal, "nothing was asked")));
    for (index, request) in requests.iter().enumerate() {
        answer = if is_new && index == 0 { work.opened() } else { work.apply(request) };
    }
    let tell = |facts: &mut Facts| {
        facts.insert("sessionId".to_owned(), name.as_str().into());
    };
    match &mut answer {
        Ok(said) => tell(&mut said.facts),
        Err(refusal) => tell(&mut refusal.facts),
    }
    let Work { session: mut judged, authorises, .. } = work;
    let has_changed = session != Some(&judged);
    judged.updated_at.clone_from(&moment.call.now);
    Done { session: has_changed.then(|| Box::new(judged)), answer, authorises }
}

/// What is answered about a session that was never opened. A claim has its own shape (O10).
fn unknown(name: &Name, request: Option<&Request>) -> Refusal {
    let message = format!("there is no session `{name}` in this root");
    match request {
        Some(Request::Claim(_)) => claims::unavailable(&claims::No { reason: "no-session", why: message }),
        _ => Refusal::new(Code::NoSession, message),
    }
    .fact("sessionId", name.as_str())
    .hint(format!("open it: lychgate session open {}", crate::protocol::state::shell_word(name.as_str())))
}

impl Work<'_> {
    /// What time and death have changed since the last call.
    fn sweep(&mut self) {
        self.lapse_tickets();
        let dead: Vec<_> = self
            .session
            .running()
            .filter(|prompt| self.is_dead(prompt.process.as_ref()))
            .map(|prompt| prompt.prompt_id.clone())
            .into_iter()
            .collect();
        for prompt in dead {
            self.end_running(&prompt, PromptEnd::Abandoned);
        }
        self.sweep_background();
        self.release_if_nothing_waits();
        self.prune();
    }

    fn apply(&mut self, request: &Request) -> Answered {
        match request {
            Request::Open(open) => self.open(open),
            Request::Close => self.close(),
            Request::Restore(begin) => self.restore(*begin),
            Request::Plan(on) => self.plan(*on),
            Request::Suspend(note) => self.suspend_asked(note),
            Request::Relocate(relocate) => {
                self.refuse_unless_open()?;
                self.relocate(relocate)
            }
            Request::Submit(submit) => self.submit(submit),
            Request::Start(name, process) => self.start(name, process.as_ref()),
            Request::Finish(name, end) => self.finish(name, *end),
            Request::Remove(name) => self.remove(name),
            Request::Claim(claim) => self.claim(claim),
            Request::Stage(ticket, stage, for_ms) => self.renew(ticket, stage, *for_ms),
            Request::EndTicket(ticket, end, kept) => self.end_ticket(ticket, *end, kept.as_deref()),
            Request::Release(owner) => self.release(owner),
            Request::Say(say) => self.say(say),
            Request::Drain(drain) => self.drain(drain),
            Request::Todo(list) => self.todo(list),
            Request::TodoItem(change) => self.todo_item(change),
            Request::EndTurn(end) => self.end_turn(end),
            Request::Background(background) => self.background(background),
            Request::Notify(notify) => self.notify(notify),
            Request::Cron(cron) => self.cron(cron),
            Request::Gaps(ack) => self.gaps(ack),
            Request::HookPrompt(prompt) => self.hook_prompt(prompt),
            Request::HookStop(stop) => self.hook_stop(stop),
            Request::HookTurnEnded(end) => self.hook_turn_ended(*end),
            Request::HookPlan(on) => self.hook_plan(*on),
            Request::HookStarted => self.hook_started(),
            Request::HookCleared => self.hook_cleared(),
            Request::HookMoved(to) => self.hook_moved(to.as_deref()),
            Request::HookQuestion(asked, id) => self.hook_question(*asked, id.as_deref()),
            Request::HookSeen(event, told_ms) => self.hook_seen(event, *told_ms),
        }
    }
}
