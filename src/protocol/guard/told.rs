//! What a session would be answered now, and what would change that: for `inspect`, which changes nothing.
//!
//! It asks the very rules on a copy, so that it can never tell anything else than they would.

use serde_json::{Value, json};

use super::request::{Claim, PromptName, Request, TICKET_MS};
use super::session::{BUDGET, Session, SessionState};
use super::{Moment, judge};

/// What a claim would be answered now.
#[derive(Debug, Clone, PartialEq)]
pub struct WouldClaim {
    /// `granted`, `prompt-queued` or `unavailable`.
    pub code: &'static str,
    /// The stable word behind a refusal.
    pub reason: Option<String>,
    /// The sentence for people.
    pub why: String,
}

impl WouldClaim {
    /// As an answer carries it.
    pub fn value(&self) -> Value {
        json!({ "code": self.code, "reason": self.reason, "why": self.why })
    }
}

/// What the running prompt's claim would be answered, if one runs, and what a claim without a prompt would be.
pub fn would_claim(session: &Session, moment: &Moment<'_>) -> (Option<WouldClaim>, WouldClaim) {
    let ask = |prompt: Option<PromptName>| {
        let claim = Claim {
            prompt,
            for_ms: TICKET_MS,
            process: None,
            attempt: None,
            chain: None,
            woken_by_cancelled: false,
        };
        let done = judge(Some(session), &session.session_id, &[Request::Claim(claim)], moment);
        match done.answer {
            Ok(said) => WouldClaim {
                code: said.code.as_str(),
                reason: None,
                why: "nothing stands in the way".to_owned(),
            },
            Err(refusal) => WouldClaim {
                code: refusal.code.as_str(),
                reason: refusal.facts.get("reason").and_then(Value::as_str).map(str::to_owned),
                why: refusal.message,
            },
        }
    };
    let running = session.running().map(|prompt| ask(Some(PromptName(prompt.prompt_id.to_string()))));
    (running, ask(None))
}

/// What stands in the way of automatic work, and what lifts it, a sentence each. Empty: nothing does.
pub fn obstacles(session: &Session) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut tell = |what: String, lifts: &str| found.push((what, lifts.to_owned()));
    match session.state {
        SessionState::Open => {}
        SessionState::Closed => {
            tell("the session is closed".to_owned(), "`session open` begins another generation");
        }
        SessionState::Restoring => {
            tell("the session is being restored".to_owned(), "`session restore --end`");
        }
    }
    if !session.guard {
        tell("the guard is off".to_owned(), "`session open --guard`, or hooks installed with `--guard`");
    }
    let chain = &session.chain;
    if let Some(suspended) = &chain.suspended {
        let note = suspended.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        tell(
            format!("suspended since {}: {}{note}", suspended.at, suspended.cause.as_str()),
            "a new ordinary prompt that runs, and nothing else",
        );
    }
    if chain.retry_paused {
        tell("the turn broke".to_owned(), "`prompt submit --kind retry`, or an ordinary prompt");
    }
    if session.plan {
        tell("the agent plans".to_owned(), "`session plan off`, and then an ordinary prompt");
    }
    if let Some(wait) = &session.wait {
        tell(
            format!("prompt {} has yielded to a queued prompt since {}", wait.prompt_id, wait.at),
            "the queued prompt runs, or is removed",
        );
    }
    if let Some(gate) = &session.gate {
        tell(
            format!("the session moves to `{}` since {}", gate.to, gate.at),
            "`session relocate --commit` or `--abort`",
        );
    }
    if let Some(question) = &session.question {
        tell(
            format!("the agent waits for a person's answer since {}", question.at),
            "the answer, or a new prompt",
        );
    }
    if session.has_related_background() {
        tell("related work is still running in the background".to_owned(), "its end (`background TASK end`)");
    }
    let open = session.tickets.iter().filter(|ticket| ticket.chain == chain.id).count();
    if chain.attempts as usize + open >= BUDGET as usize {
        tell(
            format!(
                "{} of {BUDGET} continuations are charged, and {open} ticket(s) are open",
                chain.attempts
            ),
            "what the person types: in the middle of the turn, or as a new prompt",
        );
    }
    found
}
