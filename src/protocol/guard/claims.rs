//! Claim, ticket, wait and release: the one ordering point between a person's queue and everything automatic (1.3
//! to 1.5; O3-O22).
//!
//! A claim is granted only to who may go on now. What is granted is a ticket: from then on a prompt may be queued,
//! and does not run before the ticket has an end. A ticket that nobody ends counts as sent.

use super::Answered;
use super::chain::{Cause, Decision};
use super::request::Claim;
use super::session::{
    BUDGET, ENDED_MAX, EndedTicket, Message, MessageKind, PromptState, SessionState, Ticket, TicketEnd,
    UNSENT_MAX, Void, Wait,
};
use super::work::{Work, refused, said};
use crate::protocol::codes::Code;
use crate::protocol::ids::{Name, PromptId, TicketId};
use crate::protocol::row::Extra;
use crate::protocol::verdict::{Facts, Refusal};

/// Why a claim is not granted: a stable word, and a sentence.
pub(super) struct No {
    /// The word.
    pub(super) reason: &'static str,
    /// The sentence.
    pub(super) why: String,
}

fn no<T>(reason: &'static str, why: impl Into<String>) -> Result<T, No> {
    Err(No { reason, why: why.into() })
}

/// `{claimed: false, hasQueuedPrompt: false}` with the reason.
pub(super) fn unavailable(no: &No) -> Refusal {
    Refusal::new(Code::Unavailable, no.why.clone())
        .fact("claimed", false)
        .fact("hasQueuedPrompt", false)
        .fact("reason", no.reason)
}

impl Work<'_> {
    /// How many tickets of the current chain are open.
    pub(super) fn open_tickets(&self) -> u32 {
        let chain = self.session.chain.id;
        let open = self.session.tickets.iter().filter(|ticket| ticket.chain == chain).count();
        u32::try_from(open).unwrap_or(u32::MAX)
    }

    /// `claim`.
    pub(super) fn claim(&mut self, request: &Claim) -> Answered {
        let owner = match self.owner_of(request) {
            Ok(owner) => owner,
            Err(no) => return self.unavailable(&no),
        };
        if let Some(owner) = &owner
            && let Some(queued) = self.session.first_queued()
        {
            let queued = queued.prompt_id.clone();
            if self.session.released.contains(owner.as_str()) {
                let why = format!(
                    "the prompt that {owner} had yielded to is gone, and a ticket of it is still open"
                );
                return self.unavailable(&No { reason: "released", why });
            }
            self.install_wait(owner);
            let message = format!("prompt {queued} waits and goes first");
            return refused(
                Refusal::new(Code::PromptQueued, message)
                    .fact("claimed", false)
                    .fact("hasQueuedPrompt", true)
                    .fact("promptId", owner.as_str())
                    .fact("queuedPromptId", queued.as_str())
                    .hint("end the turn now; keep what the person typed, show nothing"),
            );
        }
        if let Err(no) = self.refuse_grant(owner.as_ref(), request) {
            return self.unavailable(&no);
        }
        let ticket = self.grant(owner, request.for_ms, request.process.clone());
        self.authorises = true;
        let mut facts = crate::facts! { "claimed": true, "hasQueuedPrompt": false };
        facts.extend(ticket_facts(&ticket));
        said(Code::Granted, format!("ticket {}: send it, and say what became of it", ticket.ticket_id), facts)
    }

    fn unavailable(&mut self, no: &No) -> Answered {
        if self.session.guard {
            self.count_refusal(no.reason);
        }
        refused(unavailable(no))
    }

    /// Who claims: the running prompt, or nobody. Everybody else is refused without touching anything (O5, O7).
    fn owner_of(&self, request: &Claim) -> Result<Option<PromptId>, No> {
        let session = &self.session;
        match session.state {
            SessionState::Open => {}
            SessionState::Closed => return no("session-closed", "the session is closed"),
            SessionState::Restoring => return no("restoring", "the session is being restored"),
        }
        if !session.guard {
            return no(
                "guard-off",
                "the guard is off for this session; it is turned on with `session open --guard`",
            );
        }
        if session.without_queue {
            return Ok(None);
        }
        let Some(name) = &request.prompt else {
            let live = session.prompts.iter().find(|prompt| prompt.state != PromptState::Removed);
            return match live {
                Some(live) => no(
                    "prompt-live",
                    format!("prompt {} is {}; an automatic turn waits", live.prompt_id, live.state.as_str()),
                ),
                None => Ok(None),
            };
        };
        match session.prompt(name) {
            Some(prompt) if prompt.state == PromptState::Running => Ok(Some(prompt.prompt_id.clone())),
            Some(prompt) => no(
                "not-the-owner",
                format!("prompt {} is {}, not running", prompt.prompt_id, prompt.state.as_str()),
            ),
            None => match session.ended_prompt(name) {
                Some(ended) => no(
                    "not-the-owner",
                    format!("prompt {} has ended: {}", ended.prompt_id, ended.end.as_str()),
                ),
                None => no("not-the-owner", format!("no prompt `{}` was ever submitted here", name.0)),
            },
        }
    }

    /// What keeps a claim from being granted once no prompt goes before it.
    pub(super) fn refuse_grant(&self, owner: Option<&PromptId>, request: &Claim) -> Result<(), No> {
        let session = &self.session;
        let chain = &session.chain;
        if let Some(suspended) = &chain.suspended {
            let note = suspended.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            return no(
                "suspended",
                format!("suspended since {}: {}{note}", suspended.at, suspended.cause.as_str()),
            );
        }
        if session.plan {
            return no("plan", "the agent plans");
        }
        if let Some(gate) = &session.gate {
            return no("relocating", format!("the session moves to `{}`", gate.to));
        }
        if let Some(question) = &session.question {
            return no(
                "waiting-for-person",
                format!("the agent waits for a person's answer since {}", question.at),
            );
        }
        if owner.is_some_and(|owner| session.released.contains(owner.as_str())) {
            return no("released", "the prompt it had yielded to is gone");
        }
        if owner.is_none() && session.wait.is_some() {
            return no("prompt-live", "a turn has yielded to a person's prompt");
        }
        if request.woken_by_cancelled {
            return no("cancelled", "what woke it was cancelled by a person");
        }
        if request.chain.is_some_and(|id| id != chain.id) {
            return no("other-chain", format!("the chain is {} by now", chain.id));
        }
        if chain.retry_paused {
            return no("retry-paused", "the turn broke; only a retry goes on");
        }
        if session.has_related_background() {
            return no("background-running", "related work is still running in the background");
        }
        let spent = chain.attempts.saturating_add(self.open_tickets());
        if spent >= BUDGET {
            return no("budget-spent", format!("{spent} of {BUDGET} automatic continuations are spent"));
        }
        if request.attempt.is_some_and(|attempt| attempt != spent + 1) {
            return no("other-attempt", format!("the next continuation is number {}", spent + 1));
        }
        Ok(())
    }

    /// A granted claim: its owner's wait is over, and the chain goes on.
    pub(super) fn grant(
        &mut self,
        owner: Option<PromptId>,
        for_ms: u64,
        process: Option<crate::protocol::row::ProcessRef>,
    ) -> Ticket {
        if self.session.wait.as_ref().is_some_and(|wait| Some(&wait.prompt_id) == owner.as_ref()) {
            self.session.wait = None;
        }
        self.session.chain.resume_trusted();
        let attempt = self.session.chain.attempts + self.open_tickets() + 1;
        let ticket = Ticket {
            ticket_id: self.moment.fresh.ticket(),
            generation: self.session.generation,
            prompt_id: owner,
            chain: self.session.chain.id,
            attempt,
            seq: self.next_seq(),
            at: self.moment.call.now.clone(),
            deadline: self.moment.boot.after(for_ms),
            process,
            stage: None,
            void: None,
            extra: Extra::new(),
        };
        self.session.tickets.push(ticket.clone());
        self.log("granted", Some(ticket.ticket_id.as_str()), None);
        ticket
    }

    /// The owner yields to a queued prompt (O6). A chain that is suspended orders, and is not trusted by it (O39).
    pub(super) fn install_wait(&mut self, owner: &PromptId) {
        if self.session.wait.as_ref().is_some_and(|wait| wait.prompt_id == *owner) {
            return;
        }
        let seq = self.next_seq();
        let at = self.moment.call.now.clone();
        self.session.wait = Some(Wait { prompt_id: owner.clone(), seq, at, extra: Extra::new() });
        self.session.chain.await_queued();
        self.log("yielded", Some(owner.as_str()), None);
    }

    /// `claim --ticket --stage`.
    pub(super) fn renew(&mut self, id: &TicketId, stage: &str, for_ms: u64) -> Answered {
        let deadline = self.moment.boot.after(for_ms);
        let Some(ticket) = self.session.tickets.iter_mut().find(|ticket| ticket.ticket_id == *id) else {
            return refused(self.no_ticket(id));
        };
        if let Some(void) = ticket.void {
            let message = format!("ticket {id} is void: {}", void.as_str());
            return refused(cut(message, id, void));
        }
        ticket.stage = Some(stage.to_owned());
        ticket.deadline = deadline;
        let facts = ticket_facts(ticket);
        said(Code::TicketRenewed, format!("ticket {id} lives on"), facts)
    }

    /// `claim --ticket --as`: a ticket has one end (O22, O29, O31).
    pub(super) fn end_ticket(&mut self, id: &TicketId, end: TicketEnd, kept: Option<&str>) -> Answered {
        let Some(ticket) = self.session.tickets.iter().find(|ticket| ticket.ticket_id == *id).cloned() else {
            return refused(self.no_ticket(id));
        };
        if let Some(text) = kept {
            self.refuse_more_text(Some(text))?;
            self.keep(text);
        }
        let late = ticket.void.filter(|_| end != TicketEnd::Unsent);
        self.close_ticket(id, if late.is_some() { TicketEnd::SentVoid } else { end });
        if end == TicketEnd::FailedAfterStart {
            self.session.chain.pause_for_retry();
        }
        if let Some(void) = late {
            let message = format!("ticket {id} was void when it was sent: {}", void.as_str());
            return refused(cut(message, id, void));
        }
        let chain = &self.session.chain;
        let facts = crate::facts! {
            "ticketId": id, "end": end.as_str(), "attempt": ticket.attempt, "attempts": chain.attempts,
            "maxAttempts": BUDGET, "unfinishedCount": chain.unfinished,
        };
        said(Code::TicketSettled, format!("ticket {id}: {}", end.as_str()), facts)
    }

    /// Ends an open ticket: charges it, takes its guard text away, and forgets the tombstone of its owner with the
    /// owner's last ticket (O20).
    pub(super) fn close_ticket(&mut self, id: &TicketId, end: TicketEnd) {
        let Some(index) = self.session.tickets.iter().position(|ticket| ticket.ticket_id == *id) else {
            return;
        };
        let ticket = self.session.tickets.remove(index);
        self.session.kept.retain(|message| message.ticket_id.as_ref() != Some(id));
        if ticket.chain == self.session.chain.id {
            match end {
                TicketEnd::Unsent => self.session.chain.unsent += 1,
                _ => self.session.chain.charge(),
            }
        }
        if let Some(owner) = &ticket.prompt_id
            && !self.session.tickets.iter().any(|other| other.prompt_id.as_ref() == Some(owner))
        {
            self.session.released.remove(owner.as_str());
        }
        let at = self.moment.call.now.clone();
        let ended = EndedTicket { ticket_id: id.clone(), end, at, printed: false, extra: Extra::new() };
        self.session.ended_tickets.push(ended);
        let surplus = self.session.ended_tickets.len().saturating_sub(ENDED_MAX);
        self.session.ended_tickets.drain(..surplus);
        self.log("ticket-ended", Some(id.as_str()), Some(end.as_str()));
        if self.session.chain.unsent >= UNSENT_MAX {
            self.suspend(Cause::SendsFailed, None);
        }
    }

    fn keep(&mut self, text: &str) {
        let (at, seq) = (self.moment.call.now.clone(), self.next_seq());
        let message_id: Name = self.moment.fresh.message();
        let kind = MessageKind::User;
        let text = text.to_owned();
        self.session.kept.push(Message {
            message_id,
            kind,
            text,
            at,
            seq,
            ticket_id: None,
            printed: false,
            extra: Extra::new(),
        });
    }

    fn no_ticket(&self, id: &TicketId) -> Refusal {
        let ended = self.session.ended_tickets.iter().rev().find(|ended| ended.ticket_id == *id);
        match ended {
            Some(ended) => Refusal::new(
                Code::TicketEnded,
                format!("ticket {id} has ended at {}: {}", ended.at, ended.end.as_str()),
            )
            .fact("ticketId", id.as_str())
            .fact("end", ended.end.as_str())
            .hint("if its stream runs, cut it; claim again before another one"),
            None => Refusal::new(
                Code::NoSuchTicket,
                format!("session `{}` never granted ticket {id}", self.session.session_id),
            )
            .fact("ticketId", id.as_str()),
        }
    }

    /// `release`: the queued prompt that `owner` had yielded to is gone (1.4).
    pub(super) fn release(&mut self, owner: &PromptId) -> Answered {
        self.refuse_unless_open()?;
        let waits = self.session.wait.as_ref().map(|wait| wait.prompt_id.clone());
        let n_open =
            self.session.tickets.iter().filter(|ticket| ticket.prompt_id.as_ref() == Some(owner)).count();
        if waits.as_ref() != Some(owner) && n_open == 0 {
            return refused(
                Refusal::new(Code::NoMatch, format!("prompt {owner} neither waits nor holds a ticket"))
                    .fact("released", false),
            );
        }
        if n_open > 0 {
            self.session.released.insert(owner.to_string());
            for ticket in &mut self.session.tickets {
                if ticket.prompt_id.as_ref() == Some(owner) {
                    ticket.void = Some(Void::Released);
                }
            }
        }
        let others = waits.as_ref().is_some_and(|waiting| waiting != owner);
        if !others {
            self.suspend(Cause::QueueReleased, None);
        }
        self.log("released", Some(owner.as_str()), None);
        let facts = crate::facts! { "released": true, "promptId": owner, "openTickets": n_open };
        said(Code::Released, format!("what {owner} had yielded to is gone"), facts)
    }

    /// Nobody waits any more for a queue that is empty, or on behalf of a prompt that is gone (O16, O71).
    pub(super) fn release_if_nothing_waits(&mut self) {
        let Some(wait) = &self.session.wait else { return };
        let owner = wait.prompt_id.clone();
        let owner_runs = self.session.running().is_some_and(|prompt| prompt.prompt_id == owner);
        if !owner_runs || self.session.first_queued().is_none() {
            self.suspend(Cause::QueueReleased, None);
            self.log("released", Some(owner.as_str()), None);
        }
    }

    /// A ticket past its deadline, or whose holder is proven dead, counts as sent (O21).
    pub(super) fn lapse_tickets(&mut self) {
        let lapsed: Vec<TicketId> = self
            .session
            .tickets
            .iter()
            .filter(|ticket| {
                ticket.deadline.is_over(self.moment.boot) || self.is_dead(ticket.process.as_ref())
            })
            .map(|ticket| ticket.ticket_id.clone())
            .collect();
        for id in lapsed {
            self.close_ticket(&id, TicketEnd::Lapsed);
        }
    }

    /// What the guard would do at a stop now.
    pub(super) fn decide(&self) -> Decision {
        self.session.chain.decide(self.open_tickets(), self.session.has_related_background())
    }
}

/// What an answer tells of a ticket.
pub(super) fn ticket_facts(ticket: &Ticket) -> Facts {
    crate::facts! {
        "ticket": ticket.ticket_id, "promptId": ticket.prompt_id, "attempt": ticket.attempt,
        "maxAttempts": BUDGET, "chain": ticket.chain, "generation": ticket.generation, "seq": ticket.seq,
    }
}

fn cut(message: String, id: &TicketId, void: Void) -> Refusal {
    Refusal::new(Code::TicketVoid, message)
        .fact("ticketId", id.as_str())
        .fact("reason", void.as_str())
        .hint("cut its stream now and keep nothing of it; it is charged all the same")
}
