//! What a person types in the middle of a turn: in the inbox or in the kept list, never in both, never in neither
//! (O24-O26, O33, O34).

use serde_json::{Value, json};

use super::Answered;
use super::chain::Cause;
use super::request::{Drain, Say};
use super::session::{ACKNOWLEDGED_MAX, DRAIN_MAX, Message, MessageKind, Void};
use super::work::{Work, said};
use crate::protocol::codes::Code;
use crate::protocol::ids::Name;
use crate::protocol::row::Extra;
use crate::protocol::verdict::Facts;

impl Work<'_> {
    /// `say`.
    pub(super) fn say(&mut self, request: &Say) -> Answered {
        self.must_not_be_over()?;
        let id = request.id.clone().unwrap_or_else(|| self.moment.fresh.message());
        let session = &self.session;
        let known = session.inbox.iter().chain(&session.kept).any(|message| message.message_id == id)
            || session.acknowledged.contains(&id);
        if known {
            return said(Code::AlreadySaid, format!("`{id}` came before"), crate::facts! { "id": id });
        }
        self.refuse_more_text(Some(&request.text))?;
        let (at, seq) = (self.moment.call.now.clone(), self.next_seq());
        self.session.inbox.push(Message {
            message_id: id.clone(),
            kind: request.kind,
            text: request.text.clone(),
            at,
            seq,
            ticket_id: None,
            printed: false,
            extra: Extra::new(),
        });
        self.log("said", Some(id.as_str()), None);
        let facts = crate::facts! { "id": id, "waiting": self.session.inbox.len() };
        said(Code::Said, "the text lies in the inbox", facts)
    }

    /// `drain`.
    pub(super) fn drain(&mut self, request: &Drain) -> Answered {
        if !request.ack.is_empty() {
            return self.acknowledge_texts(&request.ack);
        }
        if request.again {
            let kept: Vec<Value> = self.kept_texts().take(DRAIN_MAX).map(part).collect();
            let left = self.kept_texts().count() - kept.len();
            let facts = crate::facts! { "parts": kept, "left": left, "again": true };
            return said(Code::Drained, "what was taken and not acknowledged", facts);
        }
        if request.failed && self.session.inbox.is_empty() && self.session.guard {
            self.suspend(Cause::DrainFailed, None);
        }
        let parts = self.take_texts();
        let mut facts = self.taken(&parts);
        if let Some(suspended) = &self.session.chain.suspended {
            facts.insert("suspended".to_owned(), suspended.cause.as_str().into());
        }
        said(Code::Drained, format!("{} text(s)", parts.len()), facts)
    }

    fn kept_texts(&self) -> impl Iterator<Item = &Message> {
        self.session.kept.iter().filter(|message| message.kind != MessageKind::Guard)
    }

    /// What an answer tells of texts that were taken. Whether a prompt is queued is a hint; a claim confirms it
    /// (O23).
    pub(super) fn taken(&self, parts: &[Message]) -> Facts {
        crate::facts! {
            "parts": parts.iter().map(part).collect::<Vec<_>>(), "left": self.session.inbox.len(),
            "hasQueuedPrompt": self.session.first_queued().is_some(),
        }
    }

    /// Moves the oldest texts from the inbox to the kept list. The person has spoken, so the stage is a fresh one
    /// and what was about to be sent is superseded.
    pub(super) fn take_texts(&mut self) -> Vec<Message> {
        let count = self.session.inbox.len().min(DRAIN_MAX);
        let taken: Vec<Message> = self.session.inbox.drain(..count).collect();
        if taken.is_empty() {
            return taken;
        }
        self.session.kept.extend(taken.iter().cloned());
        if taken.iter().any(|message| message.kind == MessageKind::User) {
            self.session.chain.accept_user_input();
            for ticket in &mut self.session.tickets {
                if ticket.void.is_none() {
                    ticket.void = Some(Void::Superseded);
                    self.session.blocks = self.session.blocks.saturating_sub(1);
                }
            }
        }
        self.log("drained", None, Some(&format!("{count}")));
        taken
    }

    fn acknowledge_texts(&mut self, ids: &[Name]) -> Answered {
        let unknown: Vec<&Name> = ids.iter().filter(|id| !self.is_taken(id)).collect();
        let facts = crate::facts! { "acknowledged": ids.len() - unknown.len(), "unknown": unknown };
        self.forget_kept(|message| ids.contains(&message.message_id));
        said(Code::Acknowledged, "what arrived is forgotten", facts)
    }

    fn is_taken(&self, id: &Name) -> bool {
        self.session.acknowledged.contains(id) || self.session.kept.iter().any(|kept| kept.message_id == *id)
    }

    /// Forgets kept messages but for their ids.
    pub(super) fn forget_kept(&mut self, arrived: impl Fn(&Message) -> bool) {
        let (gone, kept): (Vec<_>, Vec<_>) = self.session.kept.drain(..).partition(arrived);
        self.session.kept = kept;
        self.session.acknowledged.extend(gone.into_iter().map(|message| message.message_id));
        let surplus = self.session.acknowledged.len().saturating_sub(ACKNOWLEDGED_MAX);
        self.session.acknowledged.drain(..surplus);
    }
}

fn part(message: &Message) -> Value {
    let kind = match message.kind {
        MessageKind::User => "user",
        MessageKind::Tool => "tool",
        MessageKind::Hook => "hook",
        MessageKind::Guard => "guard",
    };
    json!({ "id": message.message_id, "kind": kind, "text": message.text })
}
