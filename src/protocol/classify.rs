//! What is true of a task: the classifier behind `inspect` (rules 59 to 64; decisions 1, 7).

use serde_json::{Value, json};

use super::codes::Code;
use super::lineage::ReceiptEvidence;
use super::row::{Row, TaskStatus};
use super::state::Phase;
use super::verdict::{OwnerLife, Role};

/// What is true of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A report counts; adopt it.
    Reported,
    /// Work is in flight, or may start by right.
    Live,
    /// Closing under an owner that will finish it.
    CleanupPending,
    /// Proven over, positively without a report: may be replaced once.
    TerminalNoReport,
    /// Cannot be told; the reason names the missing evidence.
    Indeterminate,
}

impl Outcome {
    /// Every outcome, most urgent first.
    pub const ALL: [Self; 5] =
        [Self::Indeterminate, Self::CleanupPending, Self::TerminalNoReport, Self::Live, Self::Reported];

    /// The word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Live => "live",
            Self::CleanupPending => "cleanup-pending",
            Self::TerminalNoReport => "terminal-no-report",
            Self::Indeterminate => "indeterminate",
        }
    }
}

/// What lies in a task's report folder, against what its row says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportEvidence {
    /// Every report the row names is there and whole, and no other file is: in a row that names none, the
    /// report is positively absent.
    AsTheRowSays,
    /// A report is missing, damaged, or unknown to the row.
    Broken(String),
}

/// The evidence a classification rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The receipt of the current attempt, in the parent's folder.
    pub receipt: ReceiptEvidence,
    /// The reports.
    pub reports: ReportEvidence,
    /// Whether the owner is alive.
    pub owner_life: OwnerLife,
    /// What the caller's token gives for the current attempt.
    pub role: Role,
}

/// A classification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// The outcome.
    pub outcome: Outcome,
    /// For an indeterminate outcome: which evidence is missing.
    pub reason: Option<Code>,
    /// One clause for people.
    pub why: String,
}

fn is(outcome: Outcome, why: impl Into<String>) -> Classified {
    Classified { outcome, reason: None, why: why.into() }
}

fn unknown(reason: Code, why: impl Into<String>) -> Classified {
    Classified { outcome: Outcome::Indeterminate, reason: Some(reason), why: why.into() }
}

/// Classifies a task. Reading changes nothing, and age decides nothing.
pub fn classify(row: &Row, evidence: &Evidence) -> Classified {
    let vouched = evidence.owner_life == OwnerLife::Alive || evidence.role == Role::Owner;
    if let Some(found) = by_report(row, evidence, vouched) {
        return found;
    }
    if row.phase() == Phase::Closing {
        return closing(evidence.owner_life, vouched);
    }
    if row.turns().next().is_some() {
        return in_flight(evidence.owner_life, vouched);
    }
    match row.task_status {
        TaskStatus::Queued if evidence.owner_life == OwnerLife::Dead => {
            unknown(Code::OwnerDeadUnsettled, "its maker is dead and nobody launched it; whoever asks may")
        }
        TaskStatus::Queued => is(Outcome::Live, "it is queued and waits to be launched"),
        TaskStatus::Starting | TaskStatus::Running | TaskStatus::Reported => {
            open(row, evidence.owner_life, vouched)
        }
        TaskStatus::Interrupted => interrupted(row, evidence),
    }
}

/// The report is looked at first, unless a later attempt is at work (decision 7).
fn by_report(row: &Row, evidence: &Evidence, vouched: bool) -> Option<Classified> {
    if let ReportEvidence::Broken(why) = &evidence.reports {
        return Some(unknown(Code::ReportUnreadable, why.clone()));
    }
    // A report from before attempts had ids is bound to none, and counts.
    row.counted_report().filter(|_| row.task_status == TaskStatus::Reported)?;
    let goes_on = row.report_attempt_id != row.task_attempt_id && row.is_live();
    if !goes_on {
        return Some(is(Outcome::Reported, "its report counts"));
    }
    if row.phase() == Phase::Closing {
        return None;
    }
    Some(if row.turns().next().is_some() {
        in_flight(evidence.owner_life, vouched)
    } else {
        open(row, evidence.owner_life, vouched)
    })
}

fn closing(life: OwnerLife, vouched: bool) -> Classified {
    match life {
        _ if vouched => is(Outcome::CleanupPending, "admission is shut and its owner still owes something"),
        OwnerLife::Dead => unknown(Code::OwnerDeadUnsettled, "its owner died before it settled what it owes"),
        OwnerLife::Alive | OwnerLife::Unknown | OwnerLife::None => {
            unknown(Code::OwnerUnknown, "it is closing, and nobody can tell whether its owner is gone")
        }
    }
}

fn in_flight(life: OwnerLife, vouched: bool) -> Classified {
    match life {
        _ if vouched => is(Outcome::Live, "a turn is in flight and its owner is alive"),
        OwnerLife::Dead => unknown(Code::OwnerDeadUnsettled, "its owner died with a turn in flight"),
        OwnerLife::Alive | OwnerLife::Unknown | OwnerLife::None => {
            unknown(Code::OwnerUnknown, "a turn is in flight, and nobody can tell whether its owner is gone")
        }
    }
}

/// Admission is open and no turn is in flight.
fn open(row: &Row, life: OwnerLife, vouched: bool) -> Classified {
    if vouched {
        return is(Outcome::Live, "admission is open and its owner is alive");
    }
    match life {
        OwnerLife::Dead => unknown(Code::OwnerDeadUnsettled, "its owner died before it settled it"),
        _ if row.waiting_sends().next().is_some() => is(Outcome::Live, "a send waits to be admitted"),
        OwnerLife::None => unknown(Code::UnownedNoReceipt, "nobody owns it, so nobody can settle it"),
        OwnerLife::Alive | OwnerLife::Unknown => unknown(
            Code::OwnedUnsettled,
            "its owner has not settled it, and nobody can tell whether it is gone",
        ),
    }
}

fn interrupted(row: &Row, evidence: &Evidence) -> Classified {
    let Some(attempt) = &row.task_attempt_id else {
        return unknown(Code::LegacyNoAttemptId, "it comes from a time before attempts had ids");
    };
    if row.task_attempt_unproven {
        return unknown(Code::LineageUnproven, "an earlier attempt was never proven over");
    }
    match &evidence.receipt {
        ReceiptEvidence::Found => {
            is(Outcome::TerminalNoReport, format!("the receipt of {attempt} proves it over"))
        }
        ReceiptEvidence::Unreadable(why) => unknown(Code::ReceiptUnreadable, why.clone()),
        ReceiptEvidence::NotFound => {
            let own = row.attempt.owned && row.attempt.receipt_eligible && evidence.role == Role::Owner;
            if own && row.phase() == Phase::Settled {
                is(Outcome::TerminalNoReport, format!("the owner of {attempt} settled it and says so itself"))
            } else {
                unknown(Code::UnownedNoReceipt, format!("there is no settlement receipt for {attempt}"))
            }
        }
    }
}

/// The identity behind an outcome (rule 60).
pub fn identity(row: Option<&Row>) -> Value {
    match row.map(|row| &row.task_attempt_id) {
        Some(Some(attempt)) => json!({ "kind": "id", "attemptId": attempt }),
        Some(None) => json!({ "kind": "legacy", "attemptId": null }),
        None => json!({ "kind": "unknown", "attemptId": null }),
    }
}
