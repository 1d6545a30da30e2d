//! Closing an attempt's admission, and settling it once nothing is owed (rules 34 to 36, 42, 45, 51 to 58).

use std::borrow::Cow;

use super::codes::{Code, ReceiptSource};
use super::ids::{AttemptId, CleanupId, Name, SendId, Timestamp, TurnId};
use super::receipt::{RECEIPT_VERSION, Receipt};
use super::row::{ClosedBy, ClosedFrom, Closure, Extra, Row, Settled, Settlement, TaskStatus};
use super::state::{Phase, command_line, owed_words, turn_fact};
use super::verdict::{Call, Credentials, Facts, Judged, ReceiptDue, Refusal, Role, Said, Verdict};
use crate::facts;

/// What is said when admission is shut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClosingWords {
    /// Why.
    pub reason: Option<String>,
    /// A failure to keep.
    pub failure: Option<String>,
    /// The source the receipt shall name.
    pub source: Option<ReceiptSource>,
    /// Leave out the ancestors' copies of the receipt.
    pub parent_only: bool,
}

/// What the current attempt was doing, as the source of its receipt will say.
pub fn doing(row: &Row) -> ClosedFrom {
    if row.task_status == TaskStatus::Queued {
        ClosedFrom::Reservation
    } else if !row.attempt.ever_admitted {
        ClosedFrom::Launch
    } else if row.own_turns().next().is_some() {
        ClosedFrom::Turn
    } else {
        ClosedFrom::Idle
    }
}

/// The sources that are true for an attempt closed while doing that; the first is the one written.
pub fn true_sources(from: ClosedFrom) -> &'static [ReceiptSource] {
    match from {
        ClosedFrom::Reservation => &[ReceiptSource::ReservationCanceled, ReceiptSource::ReservationFailed],
        ClosedFrom::Launch => &[ReceiptSource::LaunchFailed, ReceiptSource::IdleSettled],
        ClosedFrom::Idle => &[ReceiptSource::IdleSettled, ReceiptSource::ExecutionSettled],
        ClosedFrom::Turn => &[ReceiptSource::ExecutionSettled],
    }
}

/// Shuts the admission of an open attempt: before anything is looked at, nothing new can start (rule 34).
/// Sends that were not admitted are discharged (rule 45). Returns how many.
pub fn close(row: &mut Row, by: ClosedBy, words: ClosingWords, now: &Timestamp) -> usize {
    let closed_from = doing(row);
    let canceled = row.discharge_waiting();
    if row.task_status != TaskStatus::Reported {
        row.task_status = TaskStatus::Interrupted;
    }
    row.settlement = Some(Settlement {
        closure: Closure {
            closed_by: by,
            closed_from,
            at: now.clone(),
            reason: words.reason,
            failure: words.failure,
            cleanups: Vec::new(),
            source_wanted: words.source,
            parent_only: words.parent_only,
            extra: Extra::new(),
        },
        settled: None,
    });
    canceled
}

/// The row as a call reads it that wants the parent's copy of the receipt only. An ancestor's folder that cannot
/// be written must not hold up an attempt that was closed before anybody knew.
pub fn with_copies(row: &Row, parent_only: bool) -> Cow<'_, Row> {
    let mut row = Cow::Borrowed(row);
    if parent_only
        && row.phase() == Phase::Closing
        && let Some(settlement) = &mut row.to_mut().settlement
    {
        settlement.closure.parent_only = true;
    }
    row
}

/// Whether the settlement of the current attempt leaves a receipt (rules 1, 58): it is owned, eligible,
/// unmarked, and no turn of any attempt is in flight.
fn receipt_is_due(row: &Row) -> bool {
    row.attempt.owned
        && row.attempt.receipt_eligible
        && !row.task_attempt_unproven
        && row.turns().next().is_none()
}

/// Settles a closed attempt in which nothing is owed any more, whoever makes the call (decision 17).
/// Returns the receipt that goes into the same commit.
pub fn release(row: &mut Row, now: &Timestamp) -> Option<ReceiptDue> {
    if row.phase() != Phase::Closing || row.n_owed() > 0 {
        return None;
    }
    let due = receipt_is_due(row);
    let attempt_id = row.task_attempt_id.clone();
    let settlement = row.settlement.as_mut()?;
    let written = settlement
        .closure
        .source_wanted
        .or_else(|| true_sources(settlement.closure.closed_from).first().copied())
        .filter(|_| due);
    settlement.settled = Some(Settled { settled_at: now.clone(), receipt: written, extra: Extra::new() });
    let receipt = Receipt {
        version: RECEIPT_VERSION,
        task_id: row.task_id.clone(),
        attempt_id: attempt_id?,
        parent_workspace_id: row.parent_workspace_id.clone(),
        source: written?,
        settled_at: now.clone(),
        evidence: None,
    };
    let parent_only = settlement.closure.parent_only;
    let mut workspaces: Vec<Name> = vec![row.parent_workspace_id.clone()];
    if !parent_only {
        workspaces.extend(row.ancestors.iter().cloned());
    }
    Some(ReceiptDue { receipt, workspaces })
}

/// What a settling call answers besides its own facts.
pub(super) fn standing(row: &Row) -> Facts {
    let settled = row.settlement.as_ref().and_then(|settlement| settlement.settled.as_ref());
    let mut facts = facts! {
        "taskId": row.task_id,
        "attemptId": row.task_attempt_id,
        "taskStatus": row.task_status.as_str(),
        "phase": row.phase().as_str(),
        "stopEpoch": row.stop_epoch,
        "receipt": settled.and_then(|settled| settled.receipt).map(ReceiptSource::as_str),
        "owed": row.owed(),
    };
    if row.late_reports > 0 {
        facts.insert("lateReports".to_owned(), row.late_reports.into());
    }
    facts
}

fn and_then_settled(row: &Row) -> &'static str {
    match (row.phase(), row.settlement.as_ref().and_then(|s| s.settled.as_ref()).map(|s| s.receipt.is_some()))
    {
        (Phase::Settled, Some(true)) => "; the attempt is settled and its receipt is written",
        (Phase::Settled, _) => "; the attempt is settled, without a receipt",
        (Phase::Closing, _) => "; admission is shut and more is still owed",
        (Phase::Open, _) => "",
    }
}

/// `settle TASK`, and `settle TASK --turn ID --close`: the owner says that this attempt is over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettleAttempt {
    /// The attempt the caller means, if it said so.
    pub attempt: Option<AttemptId>,
    /// The source the receipt shall name. It may only narrow to one that is true.
    pub source: Option<ReceiptSource>,
    /// Leave out the ancestors' copies of the receipt.
    pub parent_only: bool,
}

fn refuse_untrue(row: &Row, wanted: Option<ReceiptSource>) -> Result<(), Box<Refusal>> {
    let from =
        row.settlement.as_ref().map_or_else(|| doing(row), |settlement| settlement.closure.closed_from);
    match wanted {
        Some(source) if !true_sources(from).contains(&source) => {
            let true_ones: Vec<&str> = true_sources(from).iter().map(|source| source.as_str()).collect();
            let message = format!(
                "`{}` is not what happened to task `{}`; true would be: {}",
                source.as_str(),
                row.task_id,
                true_ones.join(", ")
            );
            Err(Box::new(Refusal::new(Code::SourceNotTrue, message).fact("trueSources", true_ones)))
        }
        Some(_) | None => Ok(()),
    }
}

/// The owner ends its attempt: admission is shut first, then it is looked (finding 104).
pub fn settle_attempt(
    row: &Row,
    request: &SettleAttempt,
    credentials: &dyn Credentials,
    call: &Call,
) -> Judged {
    if let Some(attempt) = &request.attempt {
        row.refuse_stale(attempt)?;
    }
    if let Some(attempt) = &row.task_attempt_id {
        // Nobody's attempt needs no token; but whoever shows one means another attempt, and must not end this.
        let enough: &[Role] =
            if row.attempt.owned { &[Role::Owner] } else { &[Role::Absent, Role::Owner, Role::Worker] };
        row.refuse_stranger(credentials, attempt, enough)?;
    }
    refuse_untrue(row, request.source)?;
    let before = row.state_word();
    let mut row = row.clone();
    match row.phase() {
        Phase::Settled => {
            let message = format!("the attempt of task `{}` was settled before", row.task_id);
            return Ok(Verdict::Same(Said { code: Code::AlreadySettled, message, facts: standing(&row) }));
        }
        Phase::Closing => return Ok(Verdict::Same(still_owed(&row))),
        Phase::Open => {}
    }
    let words =
        ClosingWords { source: request.source, parent_only: request.parent_only, ..ClosingWords::default() };
    let canceled = close(&mut row, ClosedBy::Settle, words, &call.now);
    let receipt = release(&mut row, &call.now);
    let mut said = if row.phase() == Phase::Settled {
        let message =
            format!("task `{}` is {}{}", row.task_id, row.task_status.as_str(), and_then_settled(&row));
        Said { code: Code::Settled, message, facts: standing(&row) }
    } else {
        still_owed(&row)
    };
    said.facts.insert("canceledSends".to_owned(), canceled.into());
    row.record(call, Some(before), said.code, None, None);
    Ok(Verdict::Change { row: Box::new(row), receipt: receipt.map(Box::new), said })
}

fn still_owed(row: &Row) -> Said {
    let message = format!("admission of task `{}` is shut; {} still owed", row.task_id, owed_words(row));
    Said { code: Code::ObligationsOwed, message, facts: standing(row) }
}

/// `settle TASK --turn ID [--close]`: the turn has ended.
pub fn settle_turn(
    row: &Row,
    turn: &TurnId,
    and_close: Option<&SettleAttempt>,
    credentials: &dyn Credentials,
    call: &Call,
) -> Judged {
    let Some(send) = row.turns().find(|send| send.turn() == Some(turn)) else {
        return settle_ended_turn(row, turn, and_close, credentials, call);
    };
    if send.owned {
        row.refuse_stranger(credentials, &send.attempt_id, &[Role::Owner])?;
    }
    let ended = facts! { "turnId": turn, "sendId": send.send_id, "turnAttemptId": send.attempt_id };
    let is_current = row.task_attempt_id.as_ref() == Some(&send.attempt_id);
    if let Some(close) = and_close {
        row.refuse_stale(&send.attempt_id)?;
        refuse_untrue(row, close.source)?;
    }
    let before = row.state_word();
    let mut row = row.clone();
    let closed_here = and_close.filter(|_| row.phase() == Phase::Open);
    if let Some(request) = closed_here {
        let words = ClosingWords {
            source: request.source,
            parent_only: request.parent_only,
            ..ClosingWords::default()
        };
        close(&mut row, ClosedBy::Settle, words, &call.now);
    }
    row.sends.retain(|send| send.turn() != Some(turn));
    let receipt = if is_current { release(&mut row, &call.now) } else { None };
    let mut facts = standing(&row);
    facts.extend(ended);
    let owed = and_close.is_some() && row.phase() == Phase::Closing;
    let said = Said {
        code: if owed { Code::ObligationsOwed } else { Code::TurnSettled },
        message: format!("turn {turn} of task `{}` has ended{}", row.task_id, and_then_settled(&row)),
        facts,
    };
    row.record(call, Some(before), Code::TurnSettled, Some(turn.as_str()), None);
    Ok(Verdict::Change { row: Box::new(row), receipt: receipt.map(Box::new), said })
}

/// A turn that is not in flight: it ended before, or it never was. An old id never ends a newer turn.
fn settle_ended_turn(
    row: &Row,
    turn: &TurnId,
    and_close: Option<&SettleAttempt>,
    credentials: &dyn Credentials,
    call: &Call,
) -> Judged {
    let minted = turn.minted().filter(|minted| {
        (1..=row.turns_minted).contains(&minted.counter) && row.had_attempt(&minted.attempt)
    });
    let Some(minted) = minted else {
        let message = format!("turn {turn} was never admitted for task `{}`", row.task_id);
        return Err(Box::new(Refusal::new(Code::NoSuchTurn, message)));
    };
    let is_current = row.task_attempt_id.as_ref() == Some(&minted.attempt);
    if let (Some(close), true, Phase::Open) = (and_close, is_current, row.phase()) {
        let request = SettleAttempt { attempt: Some(minted.attempt), ..close.clone() };
        return settle_attempt(row, &request, credentials, call);
    }
    let mut facts = standing(row);
    facts.extend(facts! { "turnId": turn, "turnAttemptId": minted.attempt });
    let message = format!("turn {turn} of task `{}` had ended before", row.task_id);
    Ok(Verdict::Same(Said { code: Code::AlreadySettled, message, facts }))
}

/// How a send ended without a turn (rule 38).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposal {
    /// Something refused it before it started.
    Refused,
    /// There was nothing to do.
    NoWork,
    /// It was canceled.
    Canceled,
}

impl Disposal {
    /// The word in answers and in the history.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NoWork => "no-work",
            Self::Canceled => "canceled-before-admission",
        }
    }
}

/// `settle TASK --send ID --as ...`: the send never got a turn. Ignored once it has one (rule 39).
pub fn settle_send(
    row: &Row,
    send_id: &SendId,
    disposal: Disposal,
    credentials: &dyn Credentials,
    call: &Call,
) -> Judged {
    let Some(send) = row.sends.iter().find(|send| send.send_id == *send_id) else {
        let ended = send_id.minted().is_some_and(|minted| {
            (1..=row.sends_minted).contains(&minted.counter) && row.had_attempt(&minted.attempt)
        });
        if ended {
            let message = format!("send {send_id} of task `{}` had ended before", row.task_id);
            return Ok(Verdict::Same(Said { code: Code::AlreadySettled, message, facts: standing(row) }));
        }
        let message = format!("send {send_id} was never registered for task `{}`", row.task_id);
        return Err(Box::new(Refusal::new(Code::NoSuchSend, message)));
    };
    if send.owned {
        row.refuse_stranger(credentials, &send.attempt_id, &[Role::Owner])?;
    }
    if let Some(turn) = send.turn() {
        let message = format!(
            "send {send_id} of task `{}` has turn {turn}; a turn ends, it is not canceled",
            row.task_id
        );
        let refusal = Refusal::new(Code::SendAdmitted, message)
            .hint(format!(
                "when it has ended, or if you know that it never started: {}",
                command_line("settle", &row.task_id, &format!("--turn {turn}"))
            ))
            .fact("turn", turn_fact(send));
        return Err(Box::new(refusal));
    }
    let before = row.state_word();
    let mut row = row.clone();
    row.sends.retain(|send| send.send_id != *send_id);
    row.record(call, Some(before), Code::SendSettled, Some(send_id.as_str()), Some(disposal.as_str()));
    let mut facts = standing(&row);
    facts.extend(facts! { "sendId": send_id, "as": disposal.as_str() });
    let said = Said {
        code: Code::SendSettled,
        message: format!("send {send_id} of task `{}` is discharged: {}", row.task_id, disposal.as_str()),
        facts,
    };
    Ok(Verdict::Change { row: Box::new(row), receipt: None, said })
}

/// `settle TASK --cleanup ID`: a named debt of a Stop is paid. The id alone authorises it.
pub fn settle_cleanup(row: &Row, cleanup: &CleanupId, call: &Call) -> Judged {
    let closure = row.settlement.as_ref().map(|settlement| &settlement.closure);
    if row.paid_cleanups.contains(cleanup) {
        let message = format!("cleanup {cleanup} of task `{}` was paid before", row.task_id);
        return Ok(Verdict::Same(Said { code: Code::AlreadySettled, message, facts: standing(row) }));
    }
    if !closure.is_some_and(|closure| closure.cleanups.iter().any(|owed| owed.cleanup_id == *cleanup)) {
        let message =
            format!("cleanup {cleanup} is not owed by the current attempt of task `{}`", row.task_id);
        return Err(Box::new(Refusal::new(Code::NoSuchCleanup, message)));
    }
    let before = row.state_word();
    let mut row = row.clone();
    pay(&mut row, cleanup);
    let receipt = release(&mut row, &call.now);
    row.record(call, Some(before), Code::CleanupPaid, Some(cleanup.as_str()), None);
    let mut facts = standing(&row);
    facts.extend(facts! { "cleanupId": cleanup });
    let said = Said {
        code: Code::CleanupPaid,
        message: format!("a cleanup of task `{}` is paid{}", row.task_id, and_then_settled(&row)),
        facts,
    };
    Ok(Verdict::Change { row: Box::new(row), receipt: receipt.map(Box::new), said })
}

/// How many paid cleanups a row remembers.
const PAID_KEPT: usize = 64;

/// Moves one debt to the paid ones.
pub fn pay(row: &mut Row, cleanup: &CleanupId) {
    if let Some(settlement) = &mut row.settlement {
        settlement.closure.cleanups.retain(|owed| owed.cleanup_id != *cleanup);
        row.paid_cleanups.push(cleanup.clone());
        let surplus = row.paid_cleanups.len().saturating_sub(PAID_KEPT);
        row.paid_cleanups.drain(..surplus);
    }
}
