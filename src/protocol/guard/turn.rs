//! The end of a turn: may the agent stop, and if not, what is it told (1.6).
//!
//! Everything that the original does in ten steps with a claim in the middle is one decision here, because queue,
//! texts and guard lie in one row under one lock.

use super::Answered;
use super::chain::{Cause, Decision};
use super::claims::ticket_facts;
use super::request::{Claim, EndTurn, External, PromptName};
use super::session::{BLOCKS_MAX, BUDGET, Message, MessageKind, SessionState, Ticket};
use super::work::{Work, said};
use crate::protocol::codes::Code;
use crate::protocol::ids::PromptId;
use crate::protocol::row::Extra;
use crate::protocol::verdict::{Facts, Said};

impl Work<'_> {
    /// `end-turn`.
    pub(super) fn end_turn(&mut self, request: &EndTurn) -> Answered {
        let external = block_reason(request.external.as_ref());
        if !self.session.guard {
            return without_guard(external, "guard-off", "the guard is off for this session");
        }
        if self.session.state != SessionState::Open {
            return without_guard(external, "session-closed", "the session is not open");
        }
        let owner = self.session.running().map(|prompt| prompt.prompt_id.clone());
        if let Some(name) = &request.prompt
            && !self.is_running(name)
        {
            return allow("superseded", "that prompt is not the running one");
        }
        if self.session.plan {
            self.suspend(Cause::Plan, None);
        }
        if let Some(answer) = self.yield_to_person(owner.as_ref(), external.is_some()) {
            return answer;
        }
        if let Some(answer) = self.outer_hook(request.external.as_ref()) {
            return answer;
        }
        self.decide_stop(owner, request, external)
    }

    pub(super) fn is_running(&self, name: &PromptName) -> bool {
        let running = self.session.running();
        running.is_some_and(|running| {
            self.session.prompt(name).is_some_and(|named| named.prompt_id == running.prompt_id)
        })
    }

    /// What a person typed goes before everything else, and a person's queued prompt before every continuation.
    fn yield_to_person(&mut self, owner: Option<&PromptId>, outer_blocks: bool) -> Option<Answered> {
        if self.session.wait.is_some() {
            return Some(yielded(Facts::new()));
        }
        let has_queued = self.session.first_queued().is_some();
        let continues = outer_blocks || self.session.chain.needs_inspection();
        if has_queued && (continues || !self.session.inbox.is_empty()) {
            if let Some(owner) = owner {
                self.install_wait(owner);
            }
            let stored = self.take_texts();
            let ids: Vec<_> = stored.iter().map(|message| message.message_id.clone()).collect();
            return Some(yielded(crate::facts! { "stored": ids }));
        }
        if !self.session.inbox.is_empty() {
            let parts = self.take_texts();
            let text: Vec<&str> = parts.iter().map(|message| message.text.as_str()).collect();
            let mut facts = crate::facts! { "decision": "user-input", "text": text.join("\n\n") };
            facts.extend(self.taken(&parts));
            return Some(said(
                Code::UserInput,
                format!("{} text(s) of the person come first", parts.len()),
                facts,
            ));
        }
        None
    }

    /// Counts the stops in a row that an outer hook blocks. Past the cap nothing continues any more.
    fn outer_hook(&mut self, external: Option<&External>) -> Option<Answered> {
        match external {
            None => None,
            Some(External::Allow) => {
                self.session.blocks = 0;
                None
            }
            Some(External::Block(_)) if self.session.blocks >= BLOCKS_MAX => {
                self.suspend(Cause::HookCap, None);
                Some(allow("hook-cap", format!("an outer hook has blocked {BLOCKS_MAX} stops in a row")))
            }
            Some(External::Block(_)) => {
                self.session.blocks += 1;
                None
            }
        }
    }

    fn decide_stop(
        &mut self,
        owner: Option<PromptId>,
        request: &EndTurn,
        external: Option<&str>,
    ) -> Answered {
        match self.decide() {
            Decision::Inactive => match external {
                Some(reason) => external_only(reason, Facts::new()),
                None => self.nothing_to_do(),
            },
            Decision::Deferred => match external {
                Some(reason) => external_only(reason, Facts::new()),
                None => said(
                    Code::Deferred,
                    "related work is still running in the background",
                    crate::facts! { "decision": "deferred", "unfinishedCount": self.session.chain.unfinished },
                ),
            },
            Decision::Exhausted => {
                let facts = crate::facts! {
                    "decision": "exhausted", "maxAttempts": BUDGET,
                    "unfinishedCount": self.session.chain.unfinished,
                };
                self.suspend(Cause::Exhausted, None);
                match external {
                    Some(reason) => external_only(reason, crate::facts! { "exhausted": true }),
                    None => {
                        said(Code::Exhausted, format!("{BUDGET} of {BUDGET} continuations are spent"), facts)
                    }
                }
            }
            Decision::Continue(_) => self.continue_turn(owner, request, external),
        }
    }

    fn nothing_to_do(&self) -> Answered {
        let chain = &self.session.chain;
        match &chain.suspended {
            Some(suspended) => allow("suspended", format!("suspended: {}", suspended.cause.as_str())),
            None if chain.retry_paused => allow("retry-paused", "the turn broke; only a retry goes on"),
            None => allow("nothing-unfinished", "no trusted to-do list has unfinished items"),
        }
    }

    fn continue_turn(
        &mut self,
        owner: Option<PromptId>,
        request: &EndTurn,
        external: Option<&str>,
    ) -> Answered {
        let claim = Claim {
            prompt: None,
            for_ms: request.for_ms,
            process: request.process.clone(),
            attempt: None,
            chain: None,
            woken_by_cancelled: false,
        };
        if let Err(no) = self.refuse_grant(owner.as_ref(), &claim) {
            self.count_refusal(no.reason);
            if no.reason != "waiting-for-person" {
                self.suspend(Cause::ClaimUnavailable, Some(no.reason));
            }
            return match external {
                Some(reason) => external_only(reason, crate::facts! { "reason": no.reason }),
                None => allow(no.reason, no.why),
            };
        }
        let ticket = self.grant(owner, request.for_ms, request.process.clone());
        self.authorises = true;
        let guard_text = continuation(self.session.chain.unfinished, ticket.attempt);
        self.keep_guard_text(&ticket, &guard_text);
        let text = match external {
            Some(reason) => format!("{guard_text}\n\n{reason}"),
            None => guard_text,
        };
        let mut facts = crate::facts! {
            "decision": "continue", "by": if external.is_some() { "guard-and-hook" } else { "guard" },
            "text": text, "unfinishedCount": self.session.chain.unfinished,
        };
        facts.extend(ticket_facts(&ticket));
        said(Code::Continue, format!("continuation {} of {BUDGET}", ticket.attempt), facts)
    }

    /// The guard's own words lie among the kept messages as long as its ticket is open, so that they can be taken
    /// out by their name when nothing is sent (O32).
    fn keep_guard_text(&mut self, ticket: &Ticket, text: &str) {
        let seq = self.next_seq();
        self.session.kept.push(Message {
            message_id: self.moment.fresh.message(),
            kind: MessageKind::Guard,
            text: text.to_owned(),
            at: self.moment.call.now.clone(),
            seq,
            ticket_id: Some(ticket.ticket_id.clone()),
            printed: false,
            extra: Extra::new(),
        });
    }
}

/// What the agent is told. It names the count and no item: the texts of a list are nobody's instructions.
fn continuation(unfinished: u32, attempt: u32) -> String {
    let items = if unfinished == 1 { "1 item".to_owned() } else { format!("{unfinished} items") };
    let mut text = format!(
        "Your to-do list is not finished: {items} left. Go on without asking. If an item cannot be done, say why \
         and take it off the list."
    );
    if attempt >= BUDGET {
        text.push_str(
            " This is the last automatic continuation: bring the list into its true state before you stop.",
        );
    }
    text
}

fn block_reason(external: Option<&External>) -> Option<&str> {
    match external {
        Some(External::Block(reason)) => Some(reason.as_str()),
        _ => None,
    }
}

/// The guard's part is dead, an independent outer hook is not (O11).
fn without_guard(external: Option<&str>, reason: &'static str, why: &str) -> Answered {
    match external {
        Some(text) => external_only(text, crate::facts! { "reason": reason }),
        None => allow(reason, why),
    }
}

fn external_only(reason: &str, more: Facts) -> Answered {
    let mut facts = crate::facts! { "decision": "continue", "by": "hook", "text": reason };
    facts.extend(more);
    said(Code::Continue, "the outer hook wants the agent to go on", facts)
}

#[allow(clippy::unnecessary_wraps, reason = "a request is granted or refused, and its caller answers either")]
fn yielded(more: Facts) -> Answered {
    let mut facts = crate::facts! { "decision": "yield" };
    facts.extend(more);
    Ok(Said { code: Code::Yield, message: "a person's prompt waits; the turn ends now".to_owned(), facts })
}

pub(super) fn allow(reason: &'static str, why: impl Into<String>) -> Answered {
    said(Code::Allow, why, crate::facts! { "decision": "allow", "reason": reason })
}
