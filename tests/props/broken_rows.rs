//! Every invariant over a row, and over what is said about one, can fail.

use std::collections::BTreeSet;

use lychgate::protocol::classify::{Classified, Outcome};
use lychgate::protocol::codes::{Code, ReceiptSource};
use lychgate::protocol::ids::{SendId, TurnId};
use lychgate::protocol::invariants::{OutcomeRule, RowRule, Seen};
use lychgate::protocol::row::{ClaimMode, Row, SendState, TaskStatus};

use crate::samples::{
    attempt, call, claimed, legacy, queued, redriven, replaced, reported, running, settled, starting,
    stopped, with_turn,
};
use crate::world::name;

fn edited(mut row: Row, edit: impl FnOnce(&mut Row)) -> Row {
    edit(&mut row);
    row
}

/// A row in which a closed attempt is closing, edited into an open one's place.
fn closing() -> Row {
    stopped(&running()).0
}

fn unsettled(row: Row) -> Row {
    edited(row, |row| row.settlement.as_mut().unwrap().settled = None)
}

fn without_receipt(row: Row) -> Row {
    edited(row, |row| row.settlement.as_mut().unwrap().settled.as_mut().unwrap().receipt = None)
}

fn beside_a_turn() -> Row {
    edited(settled().0, |row| row.sends = running().sends)
}

fn waiting(row: &mut Row) {
    row.sends[0].state = SendState::Pending;
}

fn endings() -> Vec<(RowRule, Row)> {
    vec![
        (RowRule::EligibleIsProven, edited(running(), |row| row.task_attempt_unproven = true)),
        (RowRule::EligibleIsProven, edited(running(), |row| row.attempt.owned = false)),
        (RowRule::EligibleIsProven, edited(running(), |row| row.task_attempt_id = None)),
        (RowRule::ReceiptIsDue, edited(settled().0, |row| row.attempt.receipt_eligible = false)),
        (RowRule::ReceiptIsDue, edited(settled().0, |row| row.task_attempt_unproven = true)),
        (RowRule::ReceiptIsDue, edited(settled().0, |row| row.attempt.owned = false)),
        (RowRule::ReceiptIsDue, beside_a_turn()),
        (RowRule::EligibleLeavesReceipt, without_receipt(settled().0)),
        (
            RowRule::SourceIsTrue,
            edited(settled().0, |row| {
                let settled = row.settlement.as_mut().unwrap().settled.as_mut().unwrap();
                settled.receipt = Some(ReceiptSource::ExecutionSettled);
            }),
        ),
        (RowRule::SettledOwesNothing, beside_a_turn()),
        (RowRule::ClosingOwes, unsettled(settled().0)),
        (RowRule::ClosedHasNoWaitingSend, edited(closing(), waiting)),
        (RowRule::ClosedIsInterrupted, edited(closing(), |row| row.task_status = TaskStatus::Running)),
        (RowRule::ClosedIsInterrupted, edited(running(), |row| row.task_status = TaskStatus::Interrupted)),
        (RowRule::StopIsCounted, edited(closing(), |row| row.stop_epoch = 0)),
    ]
}

fn work() -> Vec<(RowRule, Row)> {
    vec![
        (RowRule::WaitingIsCurrent, edited(redriven(), waiting)),
        (RowRule::IdsAreMinted, edited(running(), |row| row.turns_minted = 0)),
        (RowRule::IdsAreMinted, edited(running(), |row| row.sends[0].send_id = SendId::mint(&attempt(5), 1))),
        (RowRule::IdsAreMinted, edited(running(), |row| row.sends.push(row.sends[0].clone()))),
        (
            RowRule::IdsAreMinted,
            edited(running(), |row| {
                let turn_id = TurnId::mint(&attempt(1), 7);
                row.sends[0].state = SendState::Admitted { turn_id, admitted_at: call(1).now };
            }),
        ),
        (RowRule::UnlaunchedIsIdle, edited(running(), |row| row.task_status = TaskStatus::Starting)),
        (RowRule::UnlaunchedIsIdle, edited(queued(), |row| row.attempt.ever_admitted = true)),
        (RowRule::TurnsAreRemembered, edited(running(), |row| row.attempt.ever_admitted = false)),
        (RowRule::EarlierTurnsAreUnproven, edited(redriven(), |row| row.task_attempt_unproven = false)),
        (RowRule::EarlierTurnsAreUnproven, edited(redriven(), |row| row.superseded.clear())),
        (
            RowRule::BesideTurnsByWord,
            edited(with_turn(&redriven()), |row| row.attempt.unproven_override = None),
        ),
        (
            RowRule::UnownedHasOneSend,
            edited(with_turn(&redriven()), |row| row.attempt.unowned_send_used = false),
        ),
        (RowRule::UnownedHasOneSend, edited(with_turn(&running()), |row| row.attempt.owned = false)),
        (RowRule::SupersededIsMarked, edited(redriven(), |row| row.task_attempt_unproven = false)),
        (
            RowRule::SupersededIsMarked,
            edited(redriven(), |row| row.superseded.push(row.superseded[0].clone())),
        ),
        (RowRule::SupersededIsMarked, edited(redriven(), |row| row.task_attempt_id = Some(attempt(1)))),
        (RowRule::HistoryIsCounted, edited(running(), |row| row.history.total += 1)),
        (
            RowRule::HistoryIsCounted,
            edited(running(), |row| {
                row.history.events.remove(1);
            }),
        ),
        (RowRule::ReportIsBound, edited(running(), |row| row.task_status = TaskStatus::Reported)),
        (RowRule::ReportIsBound, edited(reported(), |row| row.task_status = TaskStatus::Running)),
        (RowRule::ReportIsBound, edited(reported(), |row| row.report_attempt_id = Some(attempt(5)))),
        (RowRule::ReportIsBound, edited(reported(), |row| row.reports.push(row.reports[0].clone()))),
    ]
}

fn claims() -> Vec<(RowRule, Row)> {
    vec![
        (RowRule::ClaimIsCurrent, edited(claimed(), |row| row.task_attempt_id = Some(attempt(5)))),
        (RowRule::ClaimIsCurrent, edited(claimed(), |row| row.sends = running().sends)),
        (RowRule::ClaimIsCurrent, edited(claimed(), |row| row.task_id = name("other"))),
        (RowRule::ClaimHasNonce, edited(claimed(), |row| row.retirement = None)),
        (RowRule::ClaimHasNonce, edited(claimed(), |row| row.task_attempt_retired_by = None)),
        (RowRule::ClaimIsOfItsStep, edited(claimed(), |row| row.workflow_task = None)),
        (
            RowRule::ClaimIsOfItsStep,
            edited(claimed(), |row| {
                row.workflow_task.as_mut().unwrap().input_hash = name("other");
            }),
        ),
        (RowRule::ClaimRests, unsettled(claimed())),
        (RowRule::ClaimRests, without_receipt(claimed())),
        (RowRule::ClaimRests, edited(claimed(), |row| row.task_attempt_unproven = true)),
        (RowRule::ClaimRests, edited(claimed(), |row| row.reports = reported().reports)),
        (
            RowRule::ClaimRests,
            edited(claimed(), |row| {
                row.task_attempt_retired_by.as_mut().unwrap().mode = ClaimMode::RetireReported;
            }),
        ),
    ]
}

#[test]
fn every_broken_row_is_reported() {
    let mut broken = BTreeSet::new();
    for (rule, row) in endings().into_iter().chain(work()).chain(claims()) {
        assert!(rule.broken(&row).is_some(), "{}: {}", rule.name(), rule.says());
        broken.insert(rule);
    }
    let unproven: Vec<_> = RowRule::ALL.iter().filter(|rule| !broken.contains(rule)).collect();
    assert!(unproven.is_empty(), "no row breaks {unproven:?}");
}

#[test]
fn sound_rows_are_not_reported() {
    let (old, new) = replaced();
    let states = (0..4).map(|state| legacy(name("old"), state, &call(1)));
    let sound = vec![
        queued(),
        starting(),
        running(),
        closing(),
        settled().0,
        reported(),
        claimed(),
        redriven(),
        old,
        new,
    ];
    for row in sound.into_iter().chain(states) {
        assert_eq!(RowRule::check(&row), vec![], "{}", row.state_word());
    }
}

fn said(outcome: Outcome, reason: Option<Code>) -> Classified {
    Classified { outcome, reason, why: String::new() }
}

#[test]
fn every_broken_outcome_is_reported() {
    let terminal = said(Outcome::TerminalNoReport, None);
    let marked = edited(settled().0, |row| row.task_attempt_unproven = true);
    let cases = vec![
        (OutcomeRule::TerminalIsOver, running(), terminal.clone()),
        (OutcomeRule::TerminalIsOver, closing(), terminal.clone()),
        (OutcomeRule::TerminalIsOver, reported(), terminal.clone()),
        (OutcomeRule::TerminalIsOver, beside_a_turn(), terminal.clone()),
        (OutcomeRule::TerminalIsOver, marked, terminal.clone()),
        (OutcomeRule::ReportedHasReport, running(), said(Outcome::Reported, None)),
        (OutcomeRule::PendingIsClosing, settled().0, said(Outcome::CleanupPending, None)),
        (OutcomeRule::IndeterminateHasReason, running(), said(Outcome::Indeterminate, None)),
        (OutcomeRule::IndeterminateHasReason, running(), said(Outcome::Live, Some(Code::OwnerUnknown))),
    ];
    let mut broken = BTreeSet::new();
    for (rule, row, said) in &cases {
        assert!(rule.broken(&Seen { row, said }).is_some(), "{}: {}", rule.name(), rule.says());
        broken.insert(*rule);
    }
    assert_eq!(broken.len(), OutcomeRule::ALL.len());
    assert_eq!(OutcomeRule::check(&Seen { row: &settled().0, said: &terminal }), vec![]);
}
