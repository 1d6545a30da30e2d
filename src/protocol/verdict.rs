//! What a rule answers: a change, nothing to change, or a typed refusal.

use serde_json::{Map, Value};

use super::codes::Code;
use super::ids::{AttemptId, Name, RequestId, Timestamp};
use super::receipt::Receipt;
use super::row::Row;

/// One call, as the rules see it: for the history and the records it leaves.
#[derive(Debug, Clone)]
pub struct Call {
    /// The command, as the history names it.
    pub command: &'static str,
    /// The caller's name for the call.
    pub request_id: RequestId,
    /// The time, for people.
    pub now: Timestamp,
}

/// What the caller may do for one attempt, by the token it showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The owner's token of that attempt.
    Owner,
    /// The worker's token of that attempt: it may report and admit, not settle.
    Worker,
    /// A token, but not of that attempt.
    Wrong,
    /// No token.
    Absent,
}

/// The caller's credentials: a pure question about each attempt.
pub trait Credentials {
    /// The role the shown token gives for `attempt`.
    fn role(&self, attempt: &AttemptId) -> Role;
}

/// Whether the current attempt's owner is alive (decision on proof of death).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OwnerLife {
    /// Proven alive.
    Alive,
    /// Proven dead.
    Dead,
    /// Neither can be proven: treated as alive.
    Unknown,
    /// The attempt has no owner.
    None,
}

impl OwnerLife {
    /// The word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "yes",
            Self::Dead => "no",
            Self::Unknown => "unknown",
            Self::None => "none",
        }
    }
}

/// Facts an answer carries, in the order they are told.
pub type Facts = Map<String, Value>;

/// Builds [`Facts`] in order.
#[macro_export]
macro_rules! facts {
    ($($key:literal : $value:expr),* $(,)?) => {{
        #[allow(unused_mut, reason = "an empty list of facts is allowed")]
        let mut facts = serde_json::Map::new();
        $(facts.insert($key.to_owned(), serde_json::json!($value));)*
        facts
    }};
}

/// A receipt a change owes, and where its copies go: the parent's folder first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptDue {
    /// The record.
    pub receipt: Receipt,
    /// The workspaces whose folders get a copy. Only the first one's is evidence.
    pub workspaces: Vec<Name>,
}

/// What a granted call says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The code.
    pub code: Code,
    /// One sentence for people.
    pub message: String,
    /// What it is about.
    pub facts: Facts,
}

/// A granted call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The row becomes `row`, together with the receipt, in one commit.
    Change {
        /// The new row.
        row: Box<Row>,
        /// The receipt that goes with it.
        receipt: Option<Box<ReceiptDue>>,
        /// The answer.
        said: Said,
    },
    /// The answer stands already; nothing changes.
    Same(Said),
}

/// A typed refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: Code,
    /// What stands in the way, in one sentence that names what is held and by whom.
    pub message: String,
    /// What would change the answer.
    pub hint: Option<String>,
    /// The facts behind it.
    pub facts: Facts,
    /// The row as the refusal leaves it, for the few refusals that discharge something.
    pub leaves: Option<Box<Row>>,
}

impl Refusal {
    /// A refusal without facts.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, facts: Facts::new(), leaves: None }
    }

    /// Adds what would change the answer.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(key.to_owned(), value.into());
        self
    }

    /// Whether no later state of the row could turn this refusal into a grant of the same call, so that it
    /// may be answered from an unlocked reading.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self.code,
            Code::AttemptClosing
                | Code::AttemptSettled
                | Code::Retired
                | Code::StaleAttempt
                | Code::TurnEnded
                | Code::TaskExists
        )
    }
}

/// What a rule answers.
pub type Judged = Result<Verdict, Box<Refusal>>;
