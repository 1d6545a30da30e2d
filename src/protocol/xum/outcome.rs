//! What is true of a task of such a root, in the words of `inspect`.
//!
//! Who is alive cannot be told from there: no process is on record. So nothing is `live`, and a task that
//! application calls active is `indeterminate`.

use super::{Sighting, TaskFacts, XumRow, XumStatus};
use crate::protocol::classify::{Classified, Outcome};
use crate::protocol::codes::Code;

fn unknown(reason: Code, why: impl Into<String>) -> Classified {
    Classified { outcome: Outcome::Indeterminate, reason: Some(reason), why: why.into() }
}

fn is(outcome: Outcome, why: impl Into<String>) -> Classified {
    Classified { outcome, reason: None, why: why.into() }
}

/// Classifies a task. Age decides nothing.
pub fn outcome(facts: &TaskFacts) -> Classified {
    let row = match &facts.row {
        Sighting::NotFound => {
            return unknown(Code::NoTaskRecord, "a started step names it, and there is no row for it");
        }
        Sighting::Unreadable(why) => return unknown(Code::RowUnreadable, why.clone()),
        Sighting::Found(row) => row,
    };
    if row.reactivated {
        return unknown(Code::OwnerUnknown, "a reactivation of it is under way, and no process is on record");
    }
    if row.status.is_active() {
        return active(facts, row);
    }
    match &facts.report {
        Sighting::Unreadable(why) => return unknown(Code::ReportUnreadable, why.clone()),
        Sighting::Found(_) => return is(Outcome::Reported, "its report is there"),
        Sighting::NotFound if row.status == XumStatus::Reported || row.reported_at => {
            return unknown(Code::ReportUnreadable, "it says that it has reported, and no report is there");
        }
        Sighting::NotFound => {}
    }
    interrupted(facts, row)
}

fn active(facts: &TaskFacts, row: &XumRow) -> Classified {
    let bound = facts.report.found().filter(|report| row.attempt.is_some() && report.attempt == row.attempt);
    if bound.is_some() {
        return is(Outcome::Reported, "the report of its current attempt is there");
    }
    let why = if row.names_status {
        format!(
            "it is `{}`, and no process is on record whose life could prove anything",
            row.status.as_str()
        )
    } else {
        "its row names no status, which was how old rows said that it runs".to_owned()
    };
    unknown(Code::OwnerUnknown, why)
}

/// Interrupted, and positively without a report.
fn interrupted(facts: &TaskFacts, row: &XumRow) -> Classified {
    let Some(attempt) = &row.attempt else {
        return unknown(Code::LegacyNoAttemptId, "it comes from a time before attempts had ids");
    };
    if row.unproven {
        return unknown(Code::LineageUnproven, "an earlier attempt was never proven over");
    }
    match &facts.receipt {
        Sighting::Found(_) => {
            is(Outcome::TerminalNoReport, format!("the receipt of {attempt} proves it over"))
        }
        Sighting::NotFound => {
            unknown(Code::UnownedNoReceipt, format!("there is no settlement receipt for {attempt}"))
        }
        Sighting::Unreadable(why) => unknown(Code::ReceiptUnreadable, why.clone()),
    }
}
