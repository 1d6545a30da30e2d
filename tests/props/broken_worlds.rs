//! Every invariant over a world can fail.

use std::collections::{BTreeMap, BTreeSet};

use lychgate::protocol::codes::ReceiptSource;
use lychgate::protocol::ids::{AttemptId, Name, TurnId};
use lychgate::protocol::invariants::{World, WorldRule};
use lychgate::protocol::receipt::Receipt;
use lychgate::protocol::row::Row;

use crate::samples::{attempt, replaced, running, settled};
use crate::world::name;

/// What a [`World`] looks at, to be edited.
struct Books {
    rows: BTreeMap<Name, Row>,
    receipts: Vec<Receipt>,
    published: Vec<(Name, AttemptId)>,
    admitted: Vec<(Name, TurnId)>,
}

/// A retired and replaced task, its replacement, and another task at work.
fn sound() -> Books {
    let (old, new) = replaced();
    let mut other = running();
    other.task_id = name("w");
    let text = serde_json::to_string(&other).unwrap().replace("0000000000000001", "00000000000000aa");
    let other: Row = serde_json::from_str(&text).unwrap();
    let turn = other.turns().find_map(|send| send.turn()).unwrap().clone();
    let ids = [("t", 1), ("r", 9), ("w", 0xaa)];
    Books {
        rows: [old, new, other].map(|row| (row.task_id.clone(), row)).into(),
        receipts: vec![settled().1.receipt],
        published: ids.map(|(task, n)| (name(task), attempt(n))).into(),
        admitted: vec![(name("w"), turn)],
    }
}

impl Books {
    fn world(&self) -> World<'_> {
        World {
            rows: &self.rows,
            receipts: &self.receipts,
            published: &self.published,
            admitted: &self.admitted,
        }
    }

    fn row(&mut self, task: &str) -> &mut Row {
        self.rows.get_mut(&name(task)).unwrap()
    }

    fn receipt_of(&mut self, task: &str, n: u64) {
        let mut receipt = self.receipts[0].clone();
        receipt.task_id = name(task);
        receipt.attempt_id = attempt(n);
        self.receipts.push(receipt);
    }
}

type Edit = fn(&mut Books);

const BROKEN: [(WorldRule, Edit); 21] = [
    (WorldRule::RowsKeepTheirNames, |books| books.row("w").task_id = name("other")),
    (WorldRule::RowsKeepTheirNames, |books| {
        books.rows.remove(&name("w"));
    }),
    (WorldRule::NoReceiptBesideATurn, |books| books.receipt_of("w", 0xaa)),
    (WorldRule::NoReceiptBeforeAnAdmission, |books| books.receipt_of("w", 0xaa)),
    (WorldRule::NoReceiptBeforeAnAdmission, |books| books.receipt_of("r", 9)),
    (WorldRule::ReceiptIsKnown, |books| books.receipt_of("t", 5)),
    (WorldRule::ReceiptIsKnown, |books| books.receipt_of("w", 1)),
    (WorldRule::OneReceipt, |books| books.receipt_of("t", 1)),
    (WorldRule::ReceiptAsTheRowSays, |books| books.receipts.clear()),
    (WorldRule::ReceiptAsTheRowSays, |books| books.receipts[0].source = ReceiptSource::ExecutionSettled),
    (WorldRule::IdsNeverRepeat, |books| books.published.push((name("w"), attempt(1)))),
    (WorldRule::IdsNeverRollBack, |books| books.published.push((name("w"), attempt(0xbb)))),
    (WorldRule::TurnsNeverRepeat, |books| books.admitted.push(books.admitted[0].clone())),
    (WorldRule::TurnsWereAdmitted, |books| books.admitted.clear()),
    (WorldRule::TurnsWereAdmitted, |books| books.row("w").turns_minted += 1),
    (WorldRule::OneReplacement, |books| books.row("w").replaces = books.row("r").replaces.clone()),
    (WorldRule::ReplacementSpentAClaim, |books| books.row("r").replaces = None),
    (WorldRule::ReplacementSpentAClaim, |books| {
        books.row("t").retirement.as_mut().unwrap().replacement_task_id = None;
    }),
    (WorldRule::ReplacementSpentAClaim, |books| books.row("t").task_attempt_retired_by = None),
    (WorldRule::ReplacementIsOfTheStep, |books| books.row("r").workflow_task = None),
    (WorldRule::ReplacementIsOfTheStep, |books| books.row("r").parent_workspace_id = name("elsewhere")),
];

#[test]
fn every_broken_world_is_reported() {
    let mut broken = BTreeSet::new();
    for (rule, edit) in BROKEN {
        let mut books = sound();
        edit(&mut books);
        assert!(rule.broken(&books.world()).is_some(), "{}: {}", rule.name(), rule.says());
        broken.insert(rule);
    }
    let unproven: Vec<_> = WorldRule::ALL.iter().filter(|rule| !broken.contains(rule)).collect();
    assert!(unproven.is_empty(), "no world breaks {unproven:?}");
}

#[test]
fn a_sound_world_is_not_reported() {
    assert_eq!(WorldRule::check(&sound().world()), vec![]);
}

#[test]
fn a_violation_names_its_invariant_its_rules_and_what_was_found() {
    let mut books = sound();
    books.published.push((name("w"), attempt(1)));
    let found: Vec<String> = WorldRule::check(&books.world()).iter().map(ToString::to_string).collect();
    let told = found.iter().find(|text| text.starts_with("IdsNeverRepeat"));
    assert_eq!(
        told.map(String::as_str),
        Some(
            "IdsNeverRepeat (rules 3, 17): no attempt id is published twice, for one task or two; found: \
             att_0000000000000001 was published again, for `w`"
        )
    );
}
