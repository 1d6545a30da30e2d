//! Steps: sends, turns, the end of an attempt, its receipt and its report.

use std::collections::{BTreeMap, BTreeSet};

use super::{Deed, Step};
use crate::protocol::ids::{CleanupId, SendId, TurnId};
use crate::protocol::invariants::unless;
use crate::protocol::row::{Row, Send, SendState, TaskStatus};
use crate::protocol::state::Phase;
use crate::protocol::verdict::{ReceiptDue, Role};

pub(super) fn counters_grow(step: &Step<'_>) -> Option<String> {
    let (before, after) = (step.before?, step.after);
    let sends = before.sends_minted + step.new_sends().count() as u64;
    let turns = before.turns_minted + step.new_turns().count() as u64;
    unless(sends == after.sends_minted && turns == after.turns_minted, || {
        format!(
            "sends {} -> {}, turns {} -> {}",
            before.sends_minted, after.sends_minted, before.turns_minted, after.turns_minted
        )
    })
}

pub(super) fn send_is_admissible(step: &Step<'_>) -> Option<String> {
    let why = step.new_sends().find_map(|send| Some((send, step.inadmissible(&send.attempt_id)?)));
    why.map(|(send, why)| format!("{} was registered: {why}", send.send_id))
}

pub(super) fn turn_is_admissible(step: &Step<'_>) -> Option<String> {
    let turn = step.new_turns().next()?;
    let Some(minted) = turn.minted() else { return Some(format!("{turn} is not ours")) };
    if let Some(why) = step.inadmissible(&minted.attempt) {
        return Some(format!("{turn} was admitted: {why}"));
    }
    let before = step.before?;
    if !before.is_launched() {
        return Some(format!("{turn} was admitted: not launched, {}", before.state_word()));
    }
    let beside = before.earlier_turns().next().is_some() && before.attempt.unproven_override.is_none();
    unless(!beside, || format!("{turn} was admitted beside a turn of an earlier attempt"))
}

/// How far a send has come, as a number that only grows.
fn progress(send: &Send) -> u8 {
    match send.state {
        SendState::Pending => 0,
        SendState::Enqueued => 1,
        SendState::Admitted { .. } => 2,
    }
}

pub(super) fn send_goes_forward(step: &Step<'_>) -> Option<String> {
    let old: BTreeMap<&SendId, &Send> = step.before?.sends.iter().map(|send| (&send.send_id, send)).collect();
    let changed = step.after.sends.iter().filter_map(|send| Some((old.get(&send.send_id)?, send)));
    let mut wrong = changed.filter(|(was, is)| {
        was.attempt_id != is.attempt_id
            || was.owned != is.owned
            || was.since != is.since
            || progress(was) > progress(is)
            || (was.turn().is_some() && was.state != is.state)
    });
    wrong.next().map(|(was, is)| format!("{was:?} became {is:?}"))
}

pub(super) fn ended_stays_ended(step: &Step<'_>) -> Option<String> {
    let before = step.before?;
    let send = step
        .new_sends()
        .find(|send| send.send_id.minted().is_none_or(|minted| minted.counter <= before.sends_minted));
    if let Some(send) = send {
        return Some(format!("{} came back", send.send_id));
    }
    let turn = step
        .new_turns()
        .find(|turn| turn.minted().is_none_or(|minted| minted.counter <= before.turns_minted));
    turn.map(|turn| format!("{turn} came back"))
}

pub(super) fn turn_ends_by_its_own_word(step: &Step<'_>) -> Option<String> {
    let still: BTreeSet<&TurnId> = step.after.turns().filter_map(Send::turn).collect();
    let gone = step.before?.turns().filter_map(|send| Some((send, send.turn()?)));
    let mut wrong = gone.filter(|(_, turn)| !still.contains(turn)).filter(|(send, gone)| match step.deed {
        Deed::EndOfTurn { turn, role } => turn != *gone || (send.owned && role != Role::Owner),
        Deed::Stop | Deed::Other => true,
    });
    wrong.next().map(|(_, turn)| format!("{turn} left by {:?}", step.deed))
}

pub(super) fn phase_goes_forward(step: &Step<'_>) -> Option<String> {
    let before = step.before.filter(|_| step.same_attempt())?;
    let rank = |row: &Row| match row.phase() {
        Phase::Open => 0,
        Phase::Closing => 1,
        Phase::Settled => 2,
    };
    unless(rank(before) <= rank(step.after), || {
        format!("{} became {}", before.state_word(), step.after.state_word())
    })
}

pub(super) fn settled_stays(step: &Step<'_>) -> Option<String> {
    let was = step.before.filter(|_| step.same_attempt())?.settlement.as_ref()?.settled.as_ref()?;
    let now = step.after.settlement.as_ref().and_then(|settlement| settlement.settled.as_ref());
    unless(now == Some(was), || format!("{was:?} became {now:?}"))
}

pub(super) fn debts_are_paid(step: &Step<'_>) -> Option<String> {
    let (before, after) = (step.before?, step.after);
    let (was, now) = (&before.paid_cleanups, &after.paid_cleanups);
    // The list of paid debts is bounded, so the oldest of a full one may be forgotten.
    let forgotten = was.iter().filter(|id| !now.contains(id)).count();
    let once: BTreeSet<_> = now.iter().collect();
    let owes = |row: &Row, id: &CleanupId| {
        let cleanups = row.settlement.iter().flat_map(|settlement| &settlement.closure.cleanups);
        cleanups.map(|cleanup| &cleanup.cleanup_id).any(|owed| owed == id)
    };
    let stays = (forgotten == 0 || now.len() >= was.len())
        && once.len() == now.len()
        && !now.iter().any(|id| owes(after, id));
    let debts = before.settlement.iter().flat_map(|settlement| &settlement.closure.cleanups);
    let mut debts = debts.map(|cleanup| &cleanup.cleanup_id).filter(|_| step.same_attempt());
    let lost = debts.find(|id| !owes(after, id) && !now.contains(id));
    unless(stays && lost.is_none(), || format!("{lost:?} is gone; {was:?} were paid, {now:?} are"))
}

pub(super) fn receipt_is_right(step: &Step<'_>) -> Option<String> {
    let ReceiptDue { receipt, workspaces } = step.receipt?;
    let Some(before) = step.before else { return Some("a receipt for a task that was not there".to_owned()) };
    let after = step.after;
    let names = receipt.task_id == after.task_id
        && before.task_attempt_id.as_ref() == Some(&receipt.attempt_id)
        && step.same_attempt()
        && receipt.parent_workspace_id == after.parent_workspace_id;
    let eligible = [before, after]
        .iter()
        .all(|row| row.attempt.owned && row.attempt.receipt_eligible && !row.task_attempt_unproven);
    let settles = before.phase() != Phase::Settled
        && after.phase() == Phase::Settled
        && after.sends.is_empty()
        && after.n_owed() == 0;
    let said = after.settlement.as_ref().and_then(|settlement| settlement.settled.as_ref());
    let same = said
        .is_some_and(|said| said.receipt == Some(receipt.source) && said.settled_at == receipt.settled_at);
    let line = std::iter::once(&after.parent_workspace_id).chain(&after.ancestors);
    let parent_only = after.settlement.as_ref().is_some_and(|settlement| settlement.closure.parent_only);
    let to = line.take(if parent_only { 1 } else { usize::MAX }).eq(workspaces);
    unless(names && eligible && settles && same && to, || {
        format!("{receipt:?} for {}: {} -> {}", before.task_id, before.state_word(), after.state_word())
    })
}

pub(super) fn receipt_comes_with_settlement(step: &Step<'_>) -> Option<String> {
    let source = |row: &Row| row.settlement.as_ref()?.settled.as_ref()?.receipt;
    let before = step.before.filter(|_| step.same_attempt()).and_then(source);
    let says = source(step.after).is_some() && before.is_none();
    unless(!says || step.receipt.is_some(), || format!("{:?}, and no file", source(step.after)))
}

pub(super) fn stop_is_counted(step: &Step<'_>) -> Option<String> {
    let before = step.before?;
    let expected = before.stop_epoch + u64::from(step.deed == Deed::Stop);
    unless(step.after.stop_epoch == expected, || {
        format!("{} -> {}", before.stop_epoch, step.after.stop_epoch)
    })
}

pub(super) fn report_is_right(step: &Step<'_>) -> Option<String> {
    let before = step.before?;
    let added = step.after.reports.get(before.reports.len()..).unwrap_or_default();
    let report = added.first()?;
    let fits = added.len() == 1
        && report.attempt_id.is_some()
        && report.attempt_id == before.task_attempt_id
        && step.same_attempt()
        && before.own_turns().next().is_some()
        && before.phase() != Phase::Settled
        && before.task_attempt_retired_by.is_none()
        && step.after.report_attempt_id == report.attempt_id;
    unless(fits, || format!("a report of {:?} over {}", report.attempt_id, before.state_word()))
}

pub(super) fn report_stays(step: &Step<'_>) -> Option<String> {
    let (before, after) = (step.before?, step.after);
    let counts =
        before.report_attempt_id == after.report_attempt_id || after.reports.len() > before.reports.len();
    let stays = after.reports.starts_with(&before.reports)
        && before.late_reports <= after.late_reports
        && (before.report_attempt_id.is_none() || (after.report_attempt_id.is_some() && counts))
        && (before.task_status != TaskStatus::Reported || after.task_status == TaskStatus::Reported);
    unless(stays, || format!("{} -> {}", before.state_word(), after.state_word()))
}
