//! Proof of lineage: whether everything before a new attempt is proven over (rules 11, 15, 16).

use super::row::Row;
use super::state::Phase;
use super::verdict::Role;

/// What a strict reading of an attempt's receipt in the parent's folder said (rule 32).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptEvidence {
    /// It is there, whole, and names this task and attempt.
    Found,
    /// It is positively absent.
    NotFound,
    /// It cannot be read, or is not what it should be.
    Unreadable(String),
}

/// The outcome of the proof, with the reason for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Whether the predecessor is proven over.
    pub proven: bool,
    /// Why, or why not.
    pub reason: String,
}

impl Proof {
    fn yes(reason: impl Into<String>) -> Self {
        Self { proven: true, reason: reason.into() }
    }
    fn no(reason: impl Into<String>) -> Self {
        Self { proven: false, reason: reason.into() }
    }
}

/// Whether the current attempt of `row` is proven over, so that its successor is proven too: by induction
/// only, from a receipt or from the owner's own settlement, and never over a marker.
pub fn prove(row: &Row, receipt: &ReceiptEvidence, role: Role) -> Proof {
    let Some(attempt) = &row.task_attempt_id else {
        return Proof::no("the task comes from a time before attempts had ids");
    };
    if row.task_attempt_unproven {
        return Proof::no("an earlier attempt of this task was never proven over");
    }
    if row.turns().next().is_some() {
        return Proof::no("a turn of this task is still in flight");
    }
    match receipt {
        ReceiptEvidence::Found => return Proof::yes(format!("the receipt of {attempt} proves it over")),
        ReceiptEvidence::Unreadable(why) => {
            return Proof::no(format!("the receipt of {attempt} is unreadable: {why}"));
        }
        ReceiptEvidence::NotFound => {}
    }
    let settled_by_owner = row.phase() == Phase::Settled && row.attempt.owned && row.attempt.receipt_eligible;
    if settled_by_owner && role == Role::Owner {
        return Proof::yes(format!("the owner of {attempt} settled it and says so itself"));
    }
    Proof::no(format!("nothing proves {attempt} over: there is no receipt for it"))
}
