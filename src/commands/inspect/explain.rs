//! `inspect --explain`: every piece of evidence looked at, and what it said.

use serde_json::{Value, json};

use crate::protocol::classify::{Evidence, ReportEvidence};
use crate::protocol::lineage::ReceiptEvidence;
use crate::protocol::row::{ClaimAuthority, Row};
use crate::protocol::state::{Phase, owed_words};
use crate::protocol::verdict::Role;
use crate::state::Store;

/// The pieces, in the order they are looked at.
pub(super) fn pieces(store: &Store, row: &Row, evidence: &Evidence, owner_why: &str) -> Value {
    let mut pieces = vec![
        piece("row", &store.row_path(&row.task_id).display().to_string(), &row.state_word()),
        piece(
            "reports",
            &store.reports_path(&row.parent_workspace_id, &row.task_id).display().to_string(),
            &reports(row, evidence),
        ),
        piece("in flight", "row", &in_flight(row)),
        piece("settlement", "row", &settlement(row)),
        piece("owner", "process", &format!("{}: {owner_why}", evidence.owner_life.as_str())),
        piece("token", "caller", token(evidence.role)),
        piece("lineage", "row", &lineage(row)),
    ];
    if let Some(attempt) = &row.task_attempt_id {
        let path = store.receipt_path(&row.parent_workspace_id, &row.task_id, attempt);
        pieces.push(piece("receipt", &path.display().to_string(), &receipt(&evidence.receipt)));
    }
    if let Some(claim) = &row.task_attempt_retired_by {
        let spent = row.retirement.as_ref().and_then(|r| r.replacement_task_id.as_ref());
        let spent = spent.map_or("not spent".to_owned(), |task| format!("spent by `{task}`"));
        // Decision 5: a claim that no receipt carried is shown as such.
        let word = match claim.authority {
            Some(ClaimAuthority::Token) => "on the word of the owner's token alone, ",
            None => "",
        };
        pieces.push(piece(
            "claim",
            "row",
            &format!("for run {} step {}, {word}{spent}", claim.run_id, claim.step_id),
        ));
    }
    Value::Array(pieces)
}

fn piece(evidence: &str, place: &str, says: &str) -> Value {
    json!({ "evidence": evidence, "from": place, "says": says })
}

fn reports(row: &Row, evidence: &Evidence) -> String {
    match &evidence.reports {
        ReportEvidence::Broken(why) => format!("not what the row says: {why}"),
        ReportEvidence::AsTheRowSays if row.reports.is_empty() => "positively none".to_owned(),
        ReportEvidence::AsTheRowSays => format!("{}, whole, as the row says", row.reports.len()),
    }
}

fn in_flight(row: &Row) -> String {
    let own = row.own_turns().count();
    let earlier = row.earlier_turns().count();
    let waiting = row.waiting_sends().count();
    format!("{own} turn(s) of this attempt, {earlier} of earlier ones, {waiting} send(s) not admitted")
}

fn settlement(row: &Row) -> String {
    let receipt =
        row.settlement.as_ref().and_then(|s| s.settled.as_ref()).and_then(|settled| settled.receipt);
    match row.phase() {
        Phase::Open => "admission is open".to_owned(),
        Phase::Closing => format!("admission is shut, {} still owed", owed_words(row)),
        Phase::Settled => match receipt {
            Some(source) => format!("settled, and a receipt was written: {}", source.as_str()),
            None => "settled without a receipt: the attempt was not eligible for one".to_owned(),
        },
    }
}

fn token(role: Role) -> &'static str {
    match role {
        Role::Owner => "the owner's token of this attempt",
        Role::Worker => "a worker's token of this attempt",
        Role::Wrong => "a token, but not of this attempt",
        Role::Absent => "none was shown",
    }
}

fn lineage(row: &Row) -> String {
    let marker = if row.task_attempt_unproven { "unproven, for good" } else { "proven" };
    let receipts = if row.attempt.receipt_eligible { "may leave a receipt" } else { "leaves no receipt" };
    format!("{marker} ({}); its settlement {receipts}", row.attempt.reason)
}

fn receipt(evidence: &ReceiptEvidence) -> String {
    match evidence {
        ReceiptEvidence::Found => "found, whole, and it names this attempt".to_owned(),
        ReceiptEvidence::NotFound => "there is none".to_owned(),
        ReceiptEvidence::Unreadable(why) => format!("unreadable: {why}"),
    }
}
