//! Stop: it shuts admission before it looks, and outlives what is in flight (rules 42 to 45, 55, 56).

use super::codes::Code;
use super::ids::{AttemptId, CleanupId};
use super::row::{Cleanup, ClosedBy, Extra, ProcessRef, Row, TaskStatus};
use super::settlement::{ClosingWords, close, release, standing};
use super::state::{Phase, owed_words};
use super::verdict::{Call, Judged, Refusal, Said, Verdict};

/// A debt to name with a Stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCleanup {
    /// What pays it; drawn for this call.
    pub id: CleanupId,
    /// What is being cleaned up.
    pub name: String,
    /// The process that owes it, if it was said.
    pub process: Option<ProcessRef>,
}

/// A request to stop one task. Anyone may.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stop {
    /// The attempt the caller means, if it said so.
    pub attempt: Option<AttemptId>,
    /// What is said.
    pub words: ClosingWords,
    /// Debts to add.
    pub cleanups: Vec<NamedCleanup>,
}

/// Stops one task: admission is shut and `interrupted` is persisted in this commit. Each Stop, an idle one
/// too, raises the stop epoch, so that what was prepared before it can be told from what was not (H15).
pub fn stop(row: &Row, request: &Stop, call: &Call) -> Judged {
    if let Some(attempt) = &request.attempt {
        row.refuse_stale(attempt)?;
    }
    let was = row.phase();
    if was == Phase::Settled && !request.cleanups.is_empty() {
        let message =
            format!("the attempt of task `{}` is settled; it can owe no cleanup any more", row.task_id);
        return Err(Box::new(Refusal::new(Code::AttemptSettled, message).hint("stop it without --cleanup")));
    }
    let before = row.state_word();
    let mut row = row.clone();
    row.stop_epoch += 1;
    let canceled = match was {
        Phase::Open => close(&mut row, ClosedBy::Stop, request.words.clone(), &call.now),
        Phase::Closing | Phase::Settled => {
            join(&mut row, &request.words);
            0
        }
    };
    let named = add_cleanups(&mut row, &request.cleanups, call);
    let receipt = release(&mut row, &call.now);
    // A turn of an earlier attempt does not hold this one open, but it is in flight all the same.
    let in_flight = row.phase() == Phase::Closing || row.is_live();
    let code = match (was, in_flight) {
        (Phase::Open, true) => Code::Stopping,
        (Phase::Open | Phase::Closing, false) => Code::Stopped,
        (Phase::Closing | Phase::Settled, true) => Code::AlreadyStopping,
        (Phase::Settled, false) => Code::AlreadyStopped,
    };
    row.record(call, Some(before), code, None, request.words.reason.as_deref());
    let mut facts = standing(&row);
    facts.insert("canceledSends".to_owned(), canceled.into());
    if let [only] = named.as_slice() {
        facts.insert("cleanupId".to_owned(), only.as_str().into());
    }
    if !named.is_empty() {
        facts.insert("cleanupIds".to_owned(), named.iter().map(CleanupId::as_str).collect());
    }
    let said = Said { code, message: stop_message(&row, code), facts };
    Ok(Verdict::Change { row: Box::new(row), receipt: receipt.map(Box::new), said })
}

/// A Stop over an attempt that is closing or settled joins it, and makes it a Stop.
fn join(row: &mut Row, words: &ClosingWords) {
    if let Some(settlement) = &mut row.settlement {
        let closure = &mut settlement.closure;
        closure.closed_by = ClosedBy::Stop;
        closure.reason = closure.reason.take().or_else(|| words.reason.clone());
        closure.failure = closure.failure.take().or_else(|| words.failure.clone());
    }
}

fn add_cleanups(row: &mut Row, cleanups: &[NamedCleanup], call: &Call) -> Vec<CleanupId> {
    let Some(settlement) = &mut row.settlement else { return Vec::new() };
    for cleanup in cleanups {
        settlement.closure.cleanups.push(Cleanup {
            cleanup_id: cleanup.id.clone(),
            name: cleanup.name.clone(),
            process: cleanup.process.clone(),
            since: call.now.clone(),
            extra: Extra::new(),
        });
    }
    cleanups.iter().map(|cleanup| cleanup.id.clone()).collect()
}

fn stop_message(row: &Row, code: Code) -> String {
    let task = &row.task_id;
    let stands = if row.task_status == TaskStatus::Reported { "; its report stands" } else { "" };
    match code {
        Code::Stopped => format!("task `{task}` is stopped{stands}"),
        Code::AlreadyStopped => format!("task `{task}` was stopped or settled before{stands}"),
        _ => format!("task `{task}` is stopping: admission is shut, {} still owed{stands}", owed_words(row)),
    }
}
