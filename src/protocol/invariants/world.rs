//! What must be true of all rows together, and of everything that ever happened to them.

use std::collections::{BTreeMap, BTreeSet};

use super::unless;
use crate::protocol::ids::{AttemptId, Name, TurnId};
use crate::protocol::receipt::Receipt;
use crate::protocol::row::{Replaces, Row};
use crate::protocol::state::Phase;

/// All rows, and everything that was ever published, admitted and written. Each list is in the order in which
/// things happened.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    /// Every row, under the name it is found by.
    pub rows: &'a BTreeMap<Name, Row>,
    /// Every receipt that was ever written.
    pub receipts: &'a [Receipt],
    /// Every attempt id that was ever published, with its task.
    pub published: &'a [(Name, AttemptId)],
    /// Every turn that was ever admitted, with its task.
    pub admitted: &'a [(Name, TurnId)],
}

invariants! {
    /// The invariants over a whole world.
    WorldRule over World<'_> {
        RowsKeepTheirNames ["hazards H10, H13"]
            "a row is found under its own name, and no row and no task goes away" => rows_keep_their_names;
        NoReceiptBesideATurn ["rule 1"]
            "there is no receipt for an attempt with a send or turn in flight" => no_receipt_beside_a_turn;
        NoReceiptBeforeAnAdmission ["rules 1, 104"]
            "there is no receipt for an attempt under which a turn could still be admitted"
            => no_receipt_before_an_admission;
        ReceiptIsKnown ["rule 2"]
            "a receipt names an attempt that was published for its task" => receipt_is_known;
        OneReceipt ["rules 8, 31, 56"]
            "an attempt has one receipt at most" => one_receipt;
        ReceiptAsTheRowSays ["decision 3"]
            "the current attempt has a receipt exactly if its row says so" => receipt_as_the_row_says;
        IdsNeverRepeat ["rules 3, 17"]
            "no attempt id is published twice, for one task or two" => ids_never_repeat;
        IdsNeverRollBack ["rules 3, 18"]
            "the current attempt of a task is the last one published for it" => ids_never_roll_back;
        TurnsNeverRepeat ["rule 39"]
            "no turn is admitted twice" => turns_never_repeat;
        TurnsWereAdmitted ["rules 1, 37, 38"]
            "a turn in flight was admitted, under the task that carries it, and the counter counts them all"
            => turns_were_admitted;
        OneReplacement ["rules 10, 99; hazard H1"]
            "a retired attempt has one replacement at most" => one_replacement;
        ReplacementSpentAClaim ["rules 10, 75; hazard H1"]
            "a replacement and the claim it spent name each other" => replacement_spent_a_claim;
        ReplacementIsOfTheStep ["rules 65, 75"]
            "a replacement works for the claim's checkpoint, under the same parent" => replacement_is_of_the_step;
    }
}

fn current<'a>(world: &'a World<'_>, receipt: &Receipt) -> Option<&'a Row> {
    world.rows.get(&receipt.task_id).filter(|row| row.task_attempt_id.as_ref() == Some(&receipt.attempt_id))
}

fn rows_keep_their_names(world: &World<'_>) -> Option<String> {
    let renamed = world.rows.iter().find(|(name, row)| **name != row.task_id);
    if let Some((name, row)) = renamed {
        return Some(format!("`{}` lies under `{name}`", row.task_id));
    }
    let lost = world.published.iter().find(|(task, _)| !world.rows.contains_key(task));
    lost.map(|(task, attempt)| format!("`{task}` had {attempt} and is gone"))
}

fn no_receipt_beside_a_turn(world: &World<'_>) -> Option<String> {
    world.receipts.iter().find_map(|receipt| {
        let row = world.rows.get(&receipt.task_id)?;
        let send = row.sends.iter().find(|send| send.attempt_id == receipt.attempt_id)?;
        Some(format!("{} has a receipt, and {} is in flight", receipt.attempt_id, send.send_id))
    })
}

fn no_receipt_before_an_admission(world: &World<'_>) -> Option<String> {
    world.receipts.iter().find_map(|receipt| {
        let row = current(world, receipt).filter(|row| row.phase() != Phase::Settled)?;
        Some(format!("{} has a receipt and is {}", receipt.attempt_id, row.state_word()))
    })
}

fn receipt_is_known(world: &World<'_>) -> Option<String> {
    let known = |receipt: &Receipt| {
        world.published.iter().any(|(task, id)| *task == receipt.task_id && *id == receipt.attempt_id)
    };
    let unknown = world.receipts.iter().find(|receipt| !known(receipt));
    unknown.map(|receipt| format!("{} of `{}` was never published", receipt.attempt_id, receipt.task_id))
}

fn one_receipt(world: &World<'_>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let twice = world.receipts.iter().find(|receipt| !seen.insert(&receipt.attempt_id));
    twice.map(|receipt| format!("two receipts for {}", receipt.attempt_id))
}

fn receipt_as_the_row_says(world: &World<'_>) -> Option<String> {
    world.rows.values().find_map(|row| {
        let says = row.settlement.as_ref().and_then(|settlement| settlement.settled.as_ref()?.receipt);
        let lies = (world.receipts.iter())
            .find(|receipt| current(world, receipt).is_some_and(|current| current.task_id == row.task_id));
        let written = lies.map(|receipt| receipt.source);
        unless(says == written, || format!("`{}` says {says:?}, and there is {written:?}", row.task_id))
    })
}

fn ids_never_repeat(world: &World<'_>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let twice = world.published.iter().find(|(_, id)| !seen.insert(id));
    twice.map(|(task, id)| format!("{id} was published again, for `{task}`"))
}

fn ids_never_roll_back(world: &World<'_>) -> Option<String> {
    let last: BTreeMap<&Name, &AttemptId> = world.published.iter().map(|(task, id)| (task, id)).collect();
    world.rows.values().find_map(|row| {
        let last = last.get(&row.task_id).copied();
        unless(row.task_attempt_id.as_ref() == last, || {
            format!("`{}` has {:?}, and {last:?} was published last", row.task_id, row.task_attempt_id)
        })
    })
}

fn turns_never_repeat(world: &World<'_>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let twice = world.admitted.iter().find(|(_, turn)| !seen.insert(turn));
    twice.map(|(task, turn)| format!("{turn} was admitted again, for `{task}`"))
}

fn turns_were_admitted(world: &World<'_>) -> Option<String> {
    let mut admitted: BTreeMap<&Name, BTreeSet<&TurnId>> = BTreeMap::new();
    for (task, turn) in world.admitted {
        admitted.entry(task).or_default().insert(turn);
    }
    let none = BTreeSet::new();
    world.rows.values().find_map(|row| {
        let admitted = admitted.get(&row.task_id).unwrap_or(&none);
        let stray = row.turns().filter_map(|send| send.turn()).find(|turn| !admitted.contains(turn));
        if let Some(turn) = stray {
            return Some(format!("{turn} is in flight and was never admitted"));
        }
        unless(admitted.len() as u64 == row.turns_minted, || {
            format!("`{}` counts {} turns, {} were admitted", row.task_id, row.turns_minted, admitted.len())
        })
    })
}

fn replacements<'a>(world: &'a World<'_>) -> impl Iterator<Item = (&'a Row, &'a Replaces)> {
    world.rows.values().filter_map(|row| Some((row, row.replaces.as_ref()?)))
}

fn one_replacement(world: &World<'_>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let twice = replacements(world).find(|(_, replaces)| !seen.insert(&replaces.attempt_id));
    twice.map(|(row, replaces)| format!("{} is replaced again, by `{}`", replaces.attempt_id, row.task_id))
}

fn replacement_spent_a_claim(world: &World<'_>) -> Option<String> {
    for (row, replaces) in replacements(world) {
        let old = world.rows.get(&replaces.task_id);
        let claim = old.and_then(|old| old.task_attempt_retired_by.as_ref());
        let spent = old.and_then(|old| old.retirement.as_ref()?.replacement_task_id.as_ref());
        let fits =
            claim.is_some_and(|claim| claim.attempt_id == replaces.attempt_id) && spent == Some(&row.task_id);
        if !fits {
            return Some(format!(
                "`{}` replaces {}, which {spent:?} replaced",
                row.task_id, replaces.attempt_id
            ));
        }
    }
    world.rows.values().find_map(|old| {
        let name = old.retirement.as_ref()?.replacement_task_id.as_ref()?;
        let back = world.rows.get(name).and_then(|row| row.replaces.as_ref());
        unless(back.is_some_and(|back| back.task_id == old.task_id), || {
            format!("`{}` was spent for `{name}`, which replaces {back:?}", old.task_id)
        })
    })
}

fn replacement_is_of_the_step(world: &World<'_>) -> Option<String> {
    replacements(world).find_map(|(row, replaces)| {
        let old = world.rows.get(&replaces.task_id)?;
        let claim = old.task_attempt_retired_by.as_ref()?;
        let same = row.workflow_task.as_ref().is_some_and(|step| {
            step.run_id == claim.run_id
                && step.step_id == claim.step_id
                && step.input_hash == claim.input_hash
        });
        let fits =
            same && row.parent_workspace_id == old.parent_workspace_id && row.ancestors == old.ancestors;
        unless(fits, || format!("`{}` works for {:?}", row.task_id, row.workflow_task))
    })
}
