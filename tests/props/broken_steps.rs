//! Every invariant over a step can fail: a step made by hand that breaks it is reported.

use std::collections::BTreeSet;

use lychgate::protocol::codes::ReceiptSource;
use lychgate::protocol::ids::{Name, TurnId};
use lychgate::protocol::invariants::{Deed, Step, StepRule};
use lychgate::protocol::rotation::RotateAs;
use lychgate::protocol::row::{Extra, Row, Send, SendState, TaskStatus, UnprovenOverride};
use lychgate::protocol::verdict::{OwnerLife, ReceiptDue, Role};

use crate::regressions::record;
use crate::samples::{
    a_send, a_turn, attempt, call, claimed, debt, nonce, noted, queued, redriven, replaced, reported,
    rotated, running, settled, starting, stopped, superseded,
};
use crate::world::name;

struct Trial {
    before: Option<Row>,
    after: Row,
    receipt: Option<ReceiptDue>,
    is_stop: bool,
    ended: Option<(TurnId, Role)>,
    stopped_ancestor: Option<Name>,
}

impl Trial {
    /// A sound step, in which nothing but the history changes.
    fn quiet(before: Row) -> Self {
        let after = noted(&before);
        Self {
            before: Some(before),
            after,
            receipt: None,
            is_stop: false,
            ended: None,
            stopped_ancestor: None,
        }
    }

    fn to(before: Row, after: Row) -> Self {
        Self { after, ..Self::quiet(before) }
    }

    fn step(&self) -> Step<'_> {
        let deed = match &self.ended {
            Some((turn, role)) => Deed::EndOfTurn { turn, role: *role },
            None if self.is_stop => Deed::Stop,
            None => Deed::Other,
        };
        Step {
            before: self.before.as_ref(),
            after: &self.after,
            receipt: self.receipt.as_ref(),
            deed,
            stopped_ancestor: self.stopped_ancestor.as_ref(),
        }
    }
}

/// A quiet step over `row`, whose outcome is then edited.
fn edited(row: Row, edit: impl FnOnce(&mut Row)) -> Trial {
    let mut trial = Trial::quiet(row);
    edit(&mut trial.after);
    trial
}

/// The step that settles a started attempt, with its receipt edited.
fn receipt(edit: impl FnOnce(&mut ReceiptDue)) -> Trial {
    let (after, mut due) = settled();
    edit(&mut due);
    Trial { receipt: Some(due), is_stop: true, ..Trial::to(starting(), after) }
}

fn send(row: &mut Row) {
    let of = u64::from_str_radix(&row.task_attempt_id.as_ref().unwrap().as_str()[4..], 16).unwrap();
    row.sends_minted += 1;
    row.sends.push(a_send(row.sends_minted, of));
}

fn turn(row: &mut Row) {
    send(row);
    row.turns_minted += 1;
    let attempt = row.task_attempt_id.clone().unwrap();
    let turn_id = TurnId::mint(&attempt, row.turns_minted);
    row.sends.last_mut().unwrap().state = SendState::Admitted { turn_id, admitted_at: call(1).now };
}

fn closing_with_debt() -> Row {
    let (mut row, _) = stopped(&running());
    row.settlement.as_mut().unwrap().closure.cleanups.push(debt(1));
    row
}

fn turns_of(row: &Row) -> TurnId {
    row.turns().find_map(Send::turn).unwrap().clone()
}

fn ended_by(role: Role) -> Trial {
    let row = running();
    let turn = turns_of(&row);
    let mut trial = edited(row, |row| row.sends.clear());
    trial.ended = Some((turn, role));
    trial
}

fn identity() -> Vec<(StepRule, Trial)> {
    vec![
        (StepRule::NewRowIsProven, Trial { before: None, ..Trial::quiet(starting()) }),
        (StepRule::NewRowIsProven, Trial { before: None, ..edited(queued(), |row| row.stop_epoch = 1) }),
        (StepRule::TaskIsFixed, edited(running(), |row| row.ancestors.clear())),
        (StepRule::TaskIsFixed, edited(running(), |row| row.workflow_task = None)),
        (StepRule::MarkerStays, edited(redriven(), |row| row.task_attempt_unproven = false)),
        (StepRule::ClaimStays, edited(claimed(), |row| row.task_attempt_retired_by = None)),
        (
            StepRule::ClaimStays,
            edited(claimed(), |row| {
                row.task_attempt_retired_by.as_mut().unwrap().step_id = name("other");
            }),
        ),
        (StepRule::NonceByGrant, edited(claimed(), |row| row.retirement = None)),
        (
            StepRule::NonceByGrant,
            edited(replaced().0, |row| row.retirement.as_mut().unwrap().nonce = nonce(2)),
        ),
        (
            StepRule::NonceByGrant,
            edited(claimed(), |row| {
                let retirement = row.retirement.as_mut().unwrap();
                (retirement.nonce, retirement.replacement_task_id) = (nonce(2), Some(name("r")));
            }),
        ),
        (
            StepRule::ReplacedOnce,
            edited(replaced().0, |row| {
                row.retirement.as_mut().unwrap().replacement_task_id = Some(name("another"));
            }),
        ),
    ]
}

fn succession() -> Vec<(StepRule, Trial)> {
    let reawakened = || rotated(&settled().0, RotateAs::Reawaken, 5, OwnerLife::Alive, false);
    vec![
        (StepRule::IdIsFresh, edited(redriven(), |row| row.task_attempt_id = Some(attempt(1)))),
        (StepRule::IdIsFresh, edited(running(), |row| row.task_attempt_id = None)),
        (StepRule::IdIsFresh, {
            let mut before = running();
            before.past_attempts = vec![attempt(5)];
            edited(before, |row| row.task_attempt_id = Some(attempt(5)))
        }),
        (
            StepRule::PastIsRemembered,
            Trial::to(running(), {
                let mut row = redriven();
                row.past_attempts.clear();
                row
            }),
        ),
        (StepRule::RetiredKeepsId, edited(claimed(), |row| row.task_attempt_id = Some(attempt(5)))),
        (
            StepRule::FreshIsOpen,
            Trial {
                after: {
                    let mut row = noted(&reawakened());
                    send(&mut row);
                    row
                },
                ..Trial::quiet(settled().0)
            },
        ),
        (StepRule::AttemptIsFixed, edited(redriven(), |row| row.attempt.receipt_eligible = true)),
        (StepRule::AttemptIsFixed, edited(redriven(), |row| row.attempt.owned = true)),
        (StepRule::AttemptIsFixed, edited(running(), |row| row.attempt.owner.name = Some("me".to_owned()))),
        (StepRule::AttemptIsFixed, edited(running(), |row| row.attempt.ever_admitted = false)),
        (
            StepRule::AttemptIsFixed,
            edited(running(), |row| {
                row.attempt.unproven_override = Some(UnprovenOverride {
                    by: None,
                    at: call(1).now,
                    beside_turns: Vec::new(),
                    extra: Extra::new(),
                });
            }),
        ),
        (StepRule::ProvenByInduction, Trial::to(running(), reawakened())),
        (StepRule::SupersededStays, edited(redriven(), |row| row.superseded.clear())),
        (
            StepRule::SupersededStays,
            Trial::to(running(), {
                let mut row = redriven();
                row.superseded = vec![superseded(7)];
                row
            }),
        ),
    ]
}

fn bounds() -> Vec<(StepRule, Trial)> {
    let reawakened = || rotated(&settled().0, RotateAs::Reawaken, 5, OwnerLife::Alive, false);
    vec![
        (StepRule::StatusMoves, edited(running(), |row| row.task_status = TaskStatus::Queued)),
        (StepRule::StatusMoves, edited(settled().0, |row| row.task_status = TaskStatus::Running)),
        (StepRule::StatusMoves, edited(queued(), |row| row.task_status = TaskStatus::Running)),
        (
            StepRule::NothingUnderAStop,
            Trial { stopped_ancestor: Some(name("top")), ..Trial::to(queued(), starting()) },
        ),
        (
            StepRule::NothingUnderAStop,
            Trial { stopped_ancestor: Some(name("top")), ..Trial::to(starting(), running()) },
        ),
        (
            StepRule::NothingUnderAStop,
            Trial { stopped_ancestor: Some(name("top")), ..Trial::to(settled().0, reawakened()) },
        ),
        (
            StepRule::NothingUnderAStop,
            Trial { before: None, stopped_ancestor: Some(name("top")), ..Trial::quiet(queued()) },
        ),
        (StepRule::HistoryGrows, Trial::to(running(), running())),
        (
            StepRule::RequestsAreBounded,
            edited(running(), |row| {
                let mut log: Vec<_> = (0..64).map(|n| record(n, None)).collect();
                log.push(record(99, None));
                row.requests = serde_json::from_value(serde_json::to_value(log).unwrap()).unwrap();
            }),
        ),
    ]
}

fn sends() -> Vec<(StepRule, Trial)> {
    let over = |row: Row, edit: fn(&mut Row)| edited(row, edit);
    vec![
        (StepRule::CountersGrow, over(running(), |row| row.turns_minted += 1)),
        (StepRule::CountersGrow, over(running(), |row| row.sends_minted = 0)),
        (StepRule::SendIsAdmissible, over(claimed(), send)),
        (StepRule::SendIsAdmissible, over(stopped(&running()).0, send)),
        (
            StepRule::SendIsAdmissible,
            over(redriven(), |row| {
                row.sends_minted += 1;
                row.sends.push(a_send(row.sends_minted, 1));
            }),
        ),
        (StepRule::TurnIsAdmissible, over(queued(), turn)),
        (StepRule::TurnIsAdmissible, over(claimed(), turn)),
        (StepRule::TurnIsAdmissible, over(settled().0, turn)),
        (StepRule::TurnIsAdmissible, over(stopped(&running()).0, turn)),
        (StepRule::TurnIsAdmissible, over(reported(), turn)),
        (
            StepRule::TurnIsAdmissible,
            over(redriven(), |row| {
                row.sends_minted += 1;
                row.turns_minted += 1;
                row.sends.push(a_turn(row.sends_minted, 1));
            }),
        ),
        (StepRule::TurnIsAdmissible, {
            let mut before = redriven();
            before.attempt.unproven_override = None;
            edited(before, turn)
        }),
        (StepRule::SendGoesForward, over(running(), |row| row.sends[0].attempt_id = attempt(5))),
        (StepRule::SendGoesForward, over(running(), |row| row.sends[0].state = SendState::Enqueued)),
        (StepRule::SendGoesForward, over(running(), |row| row.sends[0].state = a_turn(2, 1).state)),
        (StepRule::EndedStaysEnded, {
            let mut before = running();
            before.sends.clear();
            edited(before, |row| row.sends.push(a_turn(1, 1)))
        }),
        (StepRule::TurnEndsByItsOwnWord, over(running(), |row| row.sends.clear())),
        (StepRule::TurnEndsByItsOwnWord, over(redriven(), |row| row.sends.clear())),
        (StepRule::TurnEndsByItsOwnWord, Trial { is_stop: true, ..over(running(), |row| row.sends.clear()) }),
        (StepRule::TurnEndsByItsOwnWord, ended_by(Role::Worker)),
        (StepRule::TurnEndsByItsOwnWord, ended_by(Role::Wrong)),
        (StepRule::TurnEndsByItsOwnWord, {
            let mut trial = ended_by(Role::Owner);
            trial.ended = Some((TurnId::mint(&attempt(1), 9), Role::Owner));
            trial
        }),
    ]
}

fn endings() -> Vec<(StepRule, Trial)> {
    vec![
        (StepRule::PhaseGoesForward, edited(settled().0, |row| row.settlement = None)),
        (
            StepRule::PhaseGoesForward,
            edited(settled().0, |row| row.settlement.as_mut().unwrap().settled = None),
        ),
        (
            StepRule::SettledStays,
            edited(settled().0, |row| {
                row.settlement.as_mut().unwrap().settled.as_mut().unwrap().receipt = None;
            }),
        ),
        (
            StepRule::DebtsArePaid,
            edited(closing_with_debt(), |row| {
                row.settlement.as_mut().unwrap().closure.cleanups.clear();
            }),
        ),
        (
            StepRule::DebtsArePaid,
            edited(closing_with_debt(), |row| row.paid_cleanups = vec![debt(1).cleanup_id]),
        ),
        (
            StepRule::DebtsArePaid,
            edited(closing_with_debt(), |row| {
                row.paid_cleanups = vec![debt(2).cleanup_id, debt(2).cleanup_id];
            }),
        ),
        (StepRule::DebtsArePaid, {
            let mut before = running();
            before.paid_cleanups = vec![debt(2).cleanup_id];
            edited(before, |row| row.paid_cleanups.clear())
        }),
        (StepRule::ReceiptIsRight, receipt(|due| due.receipt.attempt_id = attempt(5))),
        (StepRule::ReceiptIsRight, receipt(|due| due.receipt.task_id = name("other"))),
        (StepRule::ReceiptIsRight, receipt(|due| due.receipt.source = ReceiptSource::ExecutionSettled)),
        (StepRule::ReceiptIsRight, receipt(|due| due.workspaces.reverse())),
        (StepRule::ReceiptIsRight, receipt(|due| due.workspaces.truncate(1))),
        (StepRule::ReceiptIsRight, Trial { after: noted(&starting()), ..receipt(|_| {}) }),
        (StepRule::ReceiptIsRight, Trial { before: Some(settled().0), ..receipt(|_| {}) }),
        (StepRule::ReceiptIsRight, {
            let mut trial = receipt(|_| {});
            trial.after.sends.push(a_turn(1, 1));
            trial
        }),
        (StepRule::ReceiptIsRight, {
            let mut trial = receipt(|_| {});
            trial.before.as_mut().unwrap().task_attempt_unproven = true;
            trial
        }),
        (StepRule::ReceiptIsRight, {
            let mut trial = receipt(|_| {});
            trial.before.as_mut().unwrap().attempt.owned = false;
            trial
        }),
        (StepRule::ReceiptComesWithSettlement, Trial { receipt: None, ..receipt(|_| {}) }),
        (StepRule::StopIsCounted, edited(running(), |row| row.stop_epoch += 1)),
        (StepRule::StopIsCounted, Trial { is_stop: true, ..Trial::quiet(settled().0) }),
        (StepRule::StopIsCounted, edited(settled().0, |row| row.stop_epoch = 0)),
        (StepRule::ReportIsRight, Trial::to(starting(), reported())),
        (StepRule::ReportIsRight, Trial::to(stopped(&starting()).0, reported())),
        (StepRule::ReportIsRight, {
            let mut before = running();
            before.task_attempt_id = Some(attempt(5));
            Trial::to(before, reported())
        }),
        (StepRule::ReportStays, edited(reported(), |row| row.reports.clear())),
        (StepRule::ReportStays, edited(reported(), |row| row.task_status = TaskStatus::Running)),
        (StepRule::ReportStays, edited(reported(), |row| row.report_attempt_id = None)),
        (StepRule::ReportStays, {
            let mut before = reported();
            before.late_reports = 1;
            edited(before, |row| row.late_reports = 0)
        }),
    ]
}

#[test]
fn every_broken_step_is_reported() {
    let mut broken = BTreeSet::new();
    for (rule, trial) in
        identity().into_iter().chain(succession()).chain(bounds()).chain(sends()).chain(endings())
    {
        assert!(rule.broken(&trial.step()).is_some(), "{}: {}", rule.name(), rule.says());
        broken.insert(rule);
    }
    let unproven: Vec<_> = StepRule::ALL.iter().filter(|rule| !broken.contains(rule)).collect();
    assert!(unproven.is_empty(), "no step breaks {unproven:?}");
}

#[test]
fn sound_steps_are_not_reported() {
    let own = ended_by(Role::Owner);
    let legacy = crate::samples::legacy(name("old"), 0, &call(1));
    let sound = vec![
        Trial { before: None, ..Trial::quiet(queued()) },
        Trial { before: None, ..Trial::quiet(legacy) },
        Trial::to(queued(), starting()),
        Trial::to(starting(), running()),
        own,
        receipt(|_| {}),
        Trial { is_stop: true, ..Trial::to(running(), stopped(&running()).0) },
        Trial::to(running(), redriven()),
        Trial::to(running(), reported()),
        Trial::to(settled().0, claimed()),
        Trial::to(claimed(), replaced().0),
        Trial::to(settled().0, rotated(&settled().0, RotateAs::Reawaken, 5, OwnerLife::Alive, false)),
    ];
    for (index, trial) in sound.iter().enumerate() {
        assert_eq!(StepRule::check(&trial.step()), vec![], "step {index}");
    }
}
