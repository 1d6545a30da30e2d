//! A session while it is being judged, and what all requests share.

use super::chain::{Cause, Suspended};
use super::session::{Refused, Session, SessionState, Void};
use super::{Answered, Moment};
use crate::protocol::codes::Code;
use crate::protocol::history::Event;
use crate::protocol::row::{Extra, ProcessRef};
use crate::protocol::verdict::{Facts, OwnerLife, Refusal, Said};

/// A session being judged.
pub(crate) struct Work<'a> {
    pub(crate) session: Session,
    pub(crate) moment: &'a Moment<'a>,
    pub(crate) authorises: bool,
}

impl Work<'_> {
    /// The next number of the one order of events.
    pub(crate) fn next_seq(&mut self) -> u64 {
        self.session.seq += 1;
        self.session.seq
    }

    /// Writes into the session's history.
    pub(crate) fn log(&mut self, what: &str, subject: Option<&str>, note: Option<&str>) {
        let call = self.moment.call;
        let to = state_word(&self.session);
        let from = self.session.history.events.last().map(|event| event.to.clone());
        self.session.history.push(Event {
            n: 0,
            at: call.now.clone(),
            command: call.command.to_owned(),
            request_id: call.request_id.clone(),
            what: what.to_owned(),
            from,
            to,
            subject: subject.map(str::to_owned),
            note: note.map(str::to_owned),
            extra: Extra::new(),
        });
    }

    /// Whether a recorded process is proven dead.
    pub(crate) fn is_dead(&self, process: Option<&ProcessRef>) -> bool {
        process.is_some_and(|process| (self.moment.life)(process) == OwnerLife::Dead)
    }

    /// Suspends the chain (O37, O38): trust and the wait are gone, what is being sent is void, and nothing but an
    /// ordinary prompt lifts it. An earlier suspension stands with its own cause.
    pub(crate) fn suspend(&mut self, cause: Cause, note: Option<&str>) {
        self.session.wait = None;
        for ticket in &mut self.session.tickets {
            ticket.void.get_or_insert(Void::Suspended);
        }
        let before = self.session.chain.suspended.take();
        self.session.chain.clear_trust();
        if before.is_some() {
            self.session.chain.suspended = before;
            return;
        }
        let (at, seq) = (self.moment.call.now.clone(), self.next_seq());
        let note_of = note.map(str::to_owned);
        self.session.chain.suspended = Some(Suspended { cause, note: note_of, at, seq, extra: Extra::new() });
        self.log("suspended", Some(cause.as_str()), note);
    }

    /// Counts a refusal of something automatic by its cause, so that a loop of refusals is seen.
    pub(crate) fn count_refusal(&mut self, cause: &str) {
        let at = self.moment.call.now.clone();
        let refused =
            self.session.refused.entry(cause.to_owned()).or_insert(Refused { count: 0, at: at.clone() });
        refused.count += 1;
        refused.at = at;
    }
}

/// The state as the history tells it.
fn state_word(session: &Session) -> String {
    let chain = &session.chain;
    let trust = match &chain.suspended {
        Some(suspended) => format!("suspended:{}", suspended.cause.as_str()),
        None if chain.retry_paused => "retry-paused".to_owned(),
        None if chain.is_trusted() => format!("unfinished:{}", chain.unfinished),
        None => "idle".to_owned(),
    };
    match session.state {
        SessionState::Open => trust,
        state => format!("{}/{trust}", state.as_str()),
    }
}

/// A granted request.
#[allow(clippy::unnecessary_wraps, reason = "a request is granted or refused, and its caller answers either")]
pub(crate) fn said(code: Code, message: impl Into<String>, facts: Facts) -> Answered {
    Ok(Said { code, message: message.into(), facts })
}

/// A refused request.
pub(crate) fn refused(refusal: Refusal) -> Answered {
    Err(Box::new(refusal))
}
