//! The pass after a restart: settle what evidence proves, hand back stale launches, re-drive the rest
//! (rules 24, 25; decisions 15, 17; hazards H3, H15).

use super::codes::Code;
use super::ids::{AttemptId, CleanupId};
use super::rotation::{Rotate, RotateAs, redriven};
use super::row::{ClosedBy, Row, TaskStatus};
use super::settlement::{ClosingWords, close, pay, release};
use super::state::Phase;
use super::verdict::{Call, OwnerLife, ReceiptDue};

/// What the pass does with one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing is to be done: it is over, or reported, or retired.
    Fine,
    /// It is at work under an owner that is alive.
    AtWork,
    /// It is left alone, for a reason.
    Left {
        /// The reason.
        why: Code,
        /// One clause for people.
        words: &'static str,
    },
    /// It changes.
    Change {
        /// The new row.
        row: Box<Row>,
        /// The receipt that goes with it.
        receipt: Option<Box<ReceiptDue>>,
        /// What was done, in one word.
        did: &'static str,
        /// One clause for people.
        words: &'static str,
    },
}

/// What the pass sees around a row.
#[derive(Debug, Clone)]
pub struct RecoverySight {
    /// Whether the current attempt's owner is alive.
    pub owner_life: OwnerLife,
    /// The cleanups whose debtor is proven dead.
    pub dead_debts: Vec<CleanupId>,
    /// The caller named this task and passed `--unproven`.
    pub named_unproven: bool,
    /// Who runs the pass, for the record of an override.
    pub by: String,
    /// An id to publish, should one be needed.
    pub fresh: AttemptId,
}

const fn left(why: Code, words: &'static str) -> Recovery {
    Recovery::Left { why, words }
}

/// Decides what the pass does with one task. Doing it twice changes nothing more.
pub fn recover(row: &Row, sight: &RecoverySight, call: &Call) -> Recovery {
    if row.task_attempt_retired_by.is_some() {
        return Recovery::Fine;
    }
    match row.phase() {
        Phase::Settled => Recovery::Fine,
        Phase::Closing => finish_stop(row, sight, call),
        Phase::Open => match row.task_status {
            TaskStatus::Interrupted => Recovery::Fine,
            TaskStatus::Queued => queued(sight.owner_life),
            TaskStatus::Starting => starting(row, sight, call),
            TaskStatus::Running | TaskStatus::Reported => at_work(row, sight, call),
        },
    }
}

fn queued(life: OwnerLife) -> Recovery {
    match life {
        OwnerLife::Dead => left(Code::OwnerDeadUnsettled, "its maker is dead; whoever wants it launches it"),
        OwnerLife::Alive | OwnerLife::Unknown | OwnerLife::None => Recovery::AtWork,
    }
}

/// A closing attempt: the debts of the dead are written off, and if nothing is owed then, it is settled.
/// A turn is never written off: a dead owner proves nothing about it.
fn finish_stop(row: &Row, sight: &RecoverySight, call: &Call) -> Recovery {
    if sight.dead_debts.is_empty() {
        return match sight.owner_life {
            OwnerLife::Alive => Recovery::AtWork,
            OwnerLife::Dead => {
                left(Code::OwnerDeadUnsettled, "it is closing, and its owner died owing something")
            }
            OwnerLife::Unknown | OwnerLife::None => {
                left(Code::OwnerUnknown, "it is closing, and nobody can tell whether its owner is gone")
            }
        };
    }
    let before = row.state_word();
    let mut row = row.clone();
    for cleanup in &sight.dead_debts {
        pay(&mut row, cleanup);
    }
    let receipt = release(&mut row, &call.now);
    row.record(call, Some(before), Code::CleanupPaid, None, Some("written off: the debtor is dead"));
    let words = if row.phase() == Phase::Settled {
        "the debts of dead processes are written off, and it is settled"
    } else {
        "the debts of dead processes are written off; more is owed"
    };
    Recovery::Change { row: Box::new(row), receipt: receipt.map(Box::new), did: "wrote-off", words }
}

/// A launch in which no turn was ever admitted: the gate proves that it never worked, so it goes back to
/// the queue without a marker (rule 24).
fn starting(row: &Row, sight: &RecoverySight, call: &Call) -> Recovery {
    if row.attempt.ever_admitted || row.turns().next().is_some() {
        return at_work(row, sight, call);
    }
    match sight.owner_life {
        OwnerLife::Alive => return Recovery::AtWork,
        OwnerLife::Unknown | OwnerLife::None if !sight.named_unproven => {
            return left(
                Code::OwnerUnknown,
                "it is starting, and nobody can tell whether its launcher is gone",
            );
        }
        OwnerLife::Dead | OwnerLife::Unknown | OwnerLife::None => {}
    }
    let before = row.state_word();
    let mut row = row.clone();
    row.discharge_waiting();
    row.task_status = TaskStatus::Queued;
    row.record(
        call,
        Some(before),
        Code::Recovered,
        None,
        Some("a launch that never admitted a turn goes back to the queue"),
    );
    let words = "its launch never admitted a turn; it is queued again";
    Recovery::Change { row: Box::new(row), receipt: None, did: "reverted", words }
}

fn at_work(row: &Row, sight: &RecoverySight, call: &Call) -> Recovery {
    let in_flight = row.turns().next().is_some();
    // Beside turns that a person gave up, a re-driven attempt may still use its send: doing it twice would take
    // that away again.
    let gate_is_shut = in_flight && row.attempt.unproven_override.is_none();
    match sight.owner_life {
        OwnerLife::Alive => return Recovery::AtWork,
        OwnerLife::None if row.waiting_sends().next().is_some() && !gate_is_shut => {
            return left(Code::UnownedNoReceipt, "it was re-driven, and its send waits to be admitted");
        }
        OwnerLife::None if !row.attempt.unowned_send_used && !gate_is_shut => {
            return left(Code::UnownedNoReceipt, "it was re-driven, and waits for its one send");
        }
        _ => {}
    }
    let reported = row.task_status == TaskStatus::Reported;
    if reported && in_flight {
        let why =
            if sight.owner_life == OwnerLife::Dead { Code::OwnerDeadUnsettled } else { Code::OwnerUnknown };
        return left(why, "its report counts, and a turn that went on after it is not proven over");
    }
    match (sight.owner_life, in_flight) {
        (OwnerLife::Dead, true) if !sight.named_unproven => left(
            Code::OwnerDeadUnsettled,
            "its owner died with a turn in flight, and nothing proves that turn over",
        ),
        (OwnerLife::Unknown, _) | (OwnerLife::None, true) if !sight.named_unproven && !reported => {
            left(Code::OwnerUnknown, "nobody can tell whether its owner is gone")
        }
        (OwnerLife::Dead, false) if row.attempt.receipt_eligible => settle_idle(row, call),
        // A task that has reported is not re-driven, and with nothing in flight there is nothing to recover.
        _ if reported => Recovery::Fine,
        _ => redrive(row, sight, call),
    }
}

/// The gate is shut, a report needs an open turn, and no turn is open: nothing can publish any more.
fn settle_idle(row: &Row, call: &Call) -> Recovery {
    let before = row.state_word();
    let mut row = row.clone();
    close(&mut row, ClosedBy::Recover, ClosingWords::default(), &call.now);
    let receipt = release(&mut row, &call.now);
    row.record(call, Some(before), Code::Settled, None, Some("the owner is dead and nothing was in flight"));
    let words = "its owner is dead and nothing was in flight: it is settled";
    Recovery::Change { row: Box::new(row), receipt: receipt.map(Box::new), did: "settled", words }
}

fn redrive(row: &Row, sight: &RecoverySight, call: &Call) -> Recovery {
    let request = Rotate {
        kind: RotateAs::Startup,
        expect: None,
        owner: None,
        by: sight.by.clone(),
        unproven: sight.named_unproven,
        fresh: sight.fresh.clone(),
    };
    let reason = "re-driven after a restart: what ran before was never proven over";
    let row = redriven(row, &request, reason, call);
    let words = "re-driven under a fresh attempt that nobody owns; it gets one send, and stays unproven";
    Recovery::Change { row: Box::new(row), receipt: None, did: "re-driven", words }
}
