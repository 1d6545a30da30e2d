//! What an agent's own hook tells. A hook reports facts: what it says has happened, whatever the queue holds.
//!
//! Three things are different from the commands. The agent confirms nothing, so a continuation is charged in the
//! commit that prints it. A continuation can come back as a prompt, so its ticket is looked for before a prompt is
//! taken for a person's. And one event can be told several times, so the same bytes at the same moment are one.

use super::Answered;
use super::chain::Cause;
use super::request::{EndTurn, External, HookPrompt, HookStop, PromptName, Submit, TICKET_MS};
use super::session::{
    BootTime, EventSeen, LastEvent, MessageKind, PromptEnd, PromptKind, PromptState, Question, Session,
    SessionState, TicketEnd, Void,
};
use super::turn::allow;
use super::work::{Work, said};
use crate::protocol::codes::Code;
use crate::protocol::ids::{PromptId, TicketId};
use crate::protocol::verdict::Facts;

/// The same bytes within this time of one another are one event: no turn of a model is shorter (case H49).
const ONE_EVENT_MS: u64 = 200;
/// Names of hook events that are remembered for `hook doctor`.
const EVENTS_MAX: usize = 64;

/// Whether an event is one that was answered already: its process began before that answer, or its bytes are the
/// same and a moment has not passed since it was told last. Many registrations tell it one after the other.
fn is_repeat(last: &mut Option<LastEvent>, digest: &str, started_ms: u64, now: &BootTime) -> bool {
    let Some(last) = last.as_mut().filter(|last| last.digest == digest && last.at.boot_id == now.boot_id)
    else {
        return false;
    };
    let is_repeat = started_ms < last.at.ms || now.ms.saturating_sub(last.at.ms) < ONE_EVENT_MS;
    if is_repeat {
        last.at.ms = last.at.ms.max(now.ms);
    }
    is_repeat
}

impl Work<'_> {
    /// A prompt goes to the model.
    pub(super) fn hook_prompt(&mut self, request: &HookPrompt) -> Answered {
        // Before its ticket is looked at: a continuation that comes back and is told twice would be a person's prompt
        // the second time.
        if is_repeat(&mut self.session.last_prompt, &request.digest, request.started_ms, self.moment.boot) {
            return noted("this event was told before");
        }
        self.session.last_prompt =
            Some(LastEvent { digest: request.digest.clone(), at: self.moment.boot.clone() });
        if self.comes_back(request.ticket.as_ref()) {
            return noted("a continuation of ours came back as a prompt");
        }
        if request.typed == Some(false) {
            return noted("the text is the agent's own, not a person's");
        }
        if let Some(alias) = &request.alias
            && self.is_running(&PromptName(alias.clone()))
        {
            return noted("this prompt runs already");
        }
        if self.session.state == SessionState::Closed {
            self.reopen();
        }
        self.session.guard |= request.guard;
        self.arrived();
        let handed_on = request.prompt.as_ref().and_then(|id| self.handed_on(id));
        self.settle_interrupted(handed_on.as_ref());
        let id = match handed_on {
            Some(id) => {
                if let (Some(prompt), Some(alias)) = (self.prompt_mut(&id), &request.alias) {
                    prompt.alias.get_or_insert_with(|| alias.clone());
                }
                id
            }
            None => self.add_prompt(
                &Submit {
                    alias: request.alias.clone(),
                    kind: PromptKind::Ordinary,
                    text: None,
                    process: None,
                },
                true,
            ),
        };
        if self.session.running().is_none() {
            self.run_prompt(&id, None);
        }
        let facts = crate::facts! { "promptId": id, "state": "running" };
        said(Code::PromptStarted, format!("prompt {id} runs now"), facts)
    }

    /// A person's new prompt in the agent proves that the one before is over, although no stop was told (a
    /// person's interrupt fires none).
    fn settle_interrupted(&mut self, but: Option<&PromptId>) {
        let Some(running) = self.session.running().map(|prompt| prompt.prompt_id.clone()) else { return };
        if but != Some(&running) {
            for ticket in &mut self.session.tickets {
                ticket.void.get_or_insert(Void::Superseded);
            }
            self.end_running(&running, PromptEnd::Aborted);
        }
    }

    /// A prompt of ours that a script was given to hand on.
    fn handed_on(&self, id: &PromptId) -> Option<PromptId> {
        let is_it = |prompt: &&super::session::Prompt| {
            prompt.prompt_id == *id && prompt.handed_on && prompt.state != PromptState::Removed
        };
        self.session.prompts.iter().find(is_it).map(|prompt| prompt.prompt_id.clone())
    }

    /// Whether a text carries a ticket that was printed and has not come back yet. Each comes back once.
    fn comes_back(&mut self, ticket: Option<&TicketId>) -> bool {
        let Some(ticket) = ticket else { return false };
        let ended =
            self.session.ended_tickets.iter_mut().find(|ended| ended.ticket_id == *ticket && ended.printed);
        let Some(ended) = ended else { return false };
        ended.printed = false;
        self.log("continuation-returned", Some(ticket.as_str()), None);
        true
    }

    /// What was printed for the agent has arrived, because the agent has gone on.
    fn arrived(&mut self) {
        if self.session.kept.iter().any(|message| message.printed) {
            self.forget_kept(|message| message.printed);
        }
    }

    /// The model has stopped by itself.
    pub(super) fn hook_stop(&mut self, request: &HookStop) -> Answered {
        if is_repeat(&mut self.session.last_stop, &request.digest, request.started_ms, self.moment.boot) {
            return allow("repeated-event", "this event was told before");
        }
        self.session.last_stop =
            Some(LastEvent { digest: request.digest.clone(), at: self.moment.boot.clone() });
        self.arrived();
        let Some(running) = self.session.running() else {
            return without_prompt(request, "no-prompt", "no prompt is known to run");
        };
        let (id, alias) = (running.prompt_id.clone(), running.alias.clone());
        let is_other = request.alias.as_ref().zip(alias.as_ref()).is_some_and(|(told, known)| told != known);
        if is_other {
            return without_prompt(request, "superseded", "the turn is not that of the running prompt");
        }
        let answer = if request.guard { self.guarded_stop(request) } else { unguarded(request) };
        if !goes_on(&answer) {
            self.end_running(&id, PromptEnd::Completed);
        }
        answer
    }

    fn guarded_stop(&mut self, request: &HookStop) -> Answered {
        let chain = &self.session.chain;
        if request.active == Some(true)
            && chain.attempts == 0
            && chain.needs_inspection()
            && self.session.inbox.is_empty()
        {
            // Somebody else's hook has forced this turn. Two that force turns would do so for ever.
            return match &request.external {
                Some(External::Block(_)) => unguarded(request),
                _ => allow("another-hook", "another hook has continued this turn"),
            };
        }
        let answer = self.end_turn(&EndTurn {
            prompt: None,
            external: request.external.clone(),
            for_ms: TICKET_MS,
            process: None,
        })?;
        if answer.code == Code::UserInput {
            for message in self.session.kept.iter_mut().filter(|message| message.kind != MessageKind::Guard) {
                message.printed = true;
            }
        }
        // Most agents never confirm a continuation, so it is charged with the commit that prints it.
        if answer.code == Code::Continue
            && let Some(ticket) = self.session.tickets.last().map(|ticket| ticket.ticket_id.clone())
            && ticket == self.moment.fresh.ticket()
        {
            self.close_ticket(&ticket, TicketEnd::Sent);
            if let Some(ended) = self.session.ended_tickets.last_mut() {
                ended.printed = true;
            }
        }
        self.authorises = false;
        Ok(answer)
    }

    /// The turn broke, or a person interrupted it.
    pub(super) fn hook_turn_ended(&mut self, end: PromptEnd) -> Answered {
        match self.session.running().map(|prompt| prompt.prompt_id.clone()) {
            Some(id) => {
                self.end_running(&id, end);
                noted("the turn has ended")
            }
            None => noted("no prompt is known to run"),
        }
    }

    /// The agent begins or goes on with this session. That resets, releases and refills nothing (case H75): only
    /// trust in a list that the agent may not remember is gone (O46).
    pub(super) fn hook_started(&mut self) -> Answered {
        if self.session.state == SessionState::Closed {
            self.reopen();
        }
        let chain = &mut self.session.chain;
        chain.armed = false;
        chain.unfinished = 0;
        noted("the session goes on")
    }

    /// The agent says whether it plans (O44).
    pub(super) fn hook_plan(&mut self, on: bool) -> Answered {
        self.session.plan = on;
        if on && self.session.state != SessionState::Closed {
            self.suspend(Cause::Plan, None);
        }
        noted("noted")
    }

    /// The conversation was cleared: an own generation, with the budget as it is.
    pub(super) fn hook_cleared(&mut self) -> Answered {
        self.session.state = SessionState::Open;
        self.session.generation += 1;
        for ticket in &mut self.session.tickets {
            ticket.void = Some(Void::Closed);
        }
        self.session.todos.clear();
        self.session.question = None;
        if let Some(running) = self.session.running().map(|prompt| prompt.prompt_id.clone()) {
            self.end_running(&running, PromptEnd::Aborted);
        }
        self.drop_trust();
        self.log("cleared", None, None);
        noted("the conversation was cleared")
    }

    /// The working directory is another one already.
    pub(super) fn hook_moved(&mut self, to: Option<&str>) -> Answered {
        if to.is_some() && to == self.session.cwd.as_deref() {
            return noted("the directory is the same");
        }
        self.session.cwd = to.map(str::to_owned);
        self.suspend(Cause::Relocated, None);
        noted("the directory is another one")
    }

    /// The agent asks the person something, or has the answer.
    pub(super) fn hook_question(&mut self, asked: bool, id: Option<&str>) -> Answered {
        if asked {
            let at = self.moment.call.now.clone();
            self.session.question = Some(Question { id: id.map(str::to_owned), at });
        } else if self
            .session
            .question
            .as_ref()
            .is_some_and(|open| open.id.as_deref() == id || open.id.is_none())
        {
            self.session.question = None;
        }
        noted("noted")
    }

    /// For `hook doctor`.
    pub(super) fn hook_seen(&mut self, event: &str, told_ms: u64) -> Answered {
        let at = self.moment.call.now.clone();
        let took_ms = self.moment.boot.ms.saturating_sub(told_ms);
        let events = &mut self.session.events;
        if events.len() < EVENTS_MAX || events.contains_key(event) {
            let seen =
                events.entry(event.to_owned()).or_insert(EventSeen { count: 0, at: at.clone(), took_ms });
            seen.count += 1;
            seen.at = at;
            seen.took_ms = took_ms;
        }
        noted("noted")
    }
}

/// Whether the agent goes on with the same turn after this answer.
fn goes_on(answer: &Answered) -> bool {
    matches!(answer, Ok(said) if matches!(said.code, Code::Continue | Code::UserInput))
}

/// A stop that is not the end of the turn that is known to run.
fn without_prompt(request: &HookStop, reason: &'static str, why: &str) -> Answered {
    match &request.external {
        Some(External::Block(_)) => unguarded(request),
        _ => allow(reason, why),
    }
}

/// What an outer hook wants, where the guard has no part.
fn unguarded(request: &HookStop) -> Answered {
    match &request.external {
        Some(External::Block(reason)) => {
            let facts = crate::facts! { "decision": "continue", "by": "hook", "text": reason };
            said(Code::Continue, "the outer hook wants the agent to go on", facts)
        }
        _ => allow("guard-off", "the guard is off"),
    }
}

fn noted(what: &str) -> Answered {
    said(Code::Ok, what, Facts::new())
}

impl Session {
    /// Whether a hook event of this session was ever seen.
    pub fn has_seen_hooks(&self) -> bool {
        !self.events.is_empty()
    }
}
