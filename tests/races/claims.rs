//! Retiring and replacing: at most one replacement of a retired attempt, whoever asks at once.

use std::collections::BTreeSet;

use crate::common::{Task, TestRoot};
use crate::start::{Race, in_order, one_winner, rounds, sound_row, told, with_code};

/// Settled, with a receipt, for `run`/`step`/`hash`.
fn settled<'a>(root: &'a TestRoot, id: &str) -> Task<'a> {
    let task = root.reserve_step(id).launched();
    let _ = root.json(&["stop", id]).is(0, "stopped");
    task
}

fn claim<'a>(task: &'a Task<'_>) -> Vec<&'a str> {
    let mut args = vec!["claim-retire", task.id.as_str(), "--attempt", task.attempt.as_str()];
    args.extend(["--run", "run", "--step", "step", "--input-hash", "hash", "--parent", "ws"]);
    args
}

/// The tasks that say that they replace `old`.
fn replacements(root: &TestRoot, names: &[String], old: &str) -> Vec<String> {
    let exists = |name: &&String| root.path().join("tasks").join(name).join("row.json").exists();
    let replaces =
        |name: &&String| sound_row(root, name).replaces.is_some_and(|of| of.task_id.as_str() == old);
    names.iter().filter(exists).filter(replaces).cloned().collect()
}

#[test]
fn a_task_is_reawakened_or_retired_and_never_both() {
    let (mut reawakened, mut retired) = (0, 0);
    for round in 0..rounds(50) {
        let root = TestRoot::new();
        let task = settled(&root, &format!("t{round}"));
        let claim = claim(&task);
        let reawaken = ["rotate", task.id.as_str(), "--as", "reawaken"];
        let (woken, claimed) = match round % 4 {
            0 => in_order(&root, "locked-task", &reawaken, &claim),
            1 => {
                let (claimed, woken) = in_order(&root, "locked-task", &claim, &reawaken);
                (woken, claimed)
            }
            _ => {
                let mut race = Race::new(&root);
                if round % 4 == 2 {
                    race.enter(&claim).enter(&reawaken);
                } else {
                    race.enter(&reawaken).enter(&claim);
                }
                let mut outcomes = race.go();
                let last = outcomes.pop().unwrap();
                let first = outcomes.pop().unwrap();
                if round % 4 == 2 { (last, first) } else { (first, last) }
            }
        };
        let row = sound_row(&root, &task.id);
        if woken.exit == 0 {
            reawakened += 1;
            let _ = claimed.is(10, "stale-attempt");
            assert!(row.task_attempt_retired_by.is_none());
            assert_eq!(row.task_attempt_id.unwrap().as_str(), woken.get("attemptId"));
        } else {
            retired += 1;
            let _ = (woken.is(10, "retired"), claimed.is(0, "claimed"));
            assert_eq!(row.task_attempt_id.unwrap().as_str(), task.attempt);
        }
    }
    assert!(reawakened > 0 && retired > 0, "both orders: {reawakened} reawakened, {retired} retired");
}

#[test]
fn of_all_nonces_handed_out_at_once_one_can_be_spent() {
    for round in 0..rounds(20) {
        let root = TestRoot::new();
        let task = settled(&root, &format!("t{round}"));
        let claim = claim(&task);
        let mut race = Race::new(&root);
        for _ in 0..6 {
            race.enter(&claim);
        }
        let grants = race.go();
        assert_eq!(with_code(&grants, "claimed").len(), 6, "{}", told(&grants));
        let nonces: BTreeSet<_> = grants.iter().map(|grant| grant.get("nonce")).collect();
        assert_eq!(nonces.len(), 6, "each grant has a nonce of its own");
        let at = grants[0].get("claimedAt");
        assert!(grants.iter().all(|grant| grant.get("claimedAt") == at), "the claim never changes");

        let names: Vec<_> = (0..6).map(|n| format!("r{round}.{n}")).collect();
        let mut race = Race::new(&root);
        for (name, nonce) in names.iter().zip(&nonces) {
            race.enter(&["reserve", name, "--replaces", &task.id, "--nonce", nonce]);
        }
        let outcomes = race.go();
        let winner = one_winner(&outcomes, "reserved", &[(10, "stale-nonce"), (10, "claim-spent")]);
        assert_eq!(replacements(&root, &names, &task.id), [winner.get("taskId")]);
    }
}

#[test]
fn a_nonce_makes_one_replacement() {
    let root = TestRoot::new();
    for round in 0..rounds(30) {
        let task = settled(&root, &format!("t{round}"));
        let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
        let names: Vec<_> = (0..6).map(|n| format!("r{round}.{n}")).collect();
        let mut race = Race::new(&root);
        for name in &names {
            race.enter(&["reserve", name, "--replaces", &task.id, "--nonce", &nonce]);
        }
        let outcomes = race.go();
        let winner = one_winner(&outcomes, "reserved", &[(10, "claim-spent")]).get("taskId");
        for loser in with_code(&outcomes, "claim-spent") {
            assert_eq!(loser.get("replacementTaskId"), winner, "{loser}");
        }
        assert_eq!(replacements(&root, &names, &task.id), [winner.as_str()]);
        let spent = sound_row(&root, &task.id).retirement.unwrap();
        assert_eq!(spent.replacement_task_id.unwrap().as_str(), winner);
    }
}

#[test]
fn a_nonce_makes_one_replacement_under_a_made_up_name() {
    let root = TestRoot::new();
    for round in 0..rounds(15) {
        let task = settled(&root, &format!("t{round}"));
        let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
        let mut race = Race::new(&root);
        for _ in 0..6 {
            race.enter(&["reserve", "--replaces", &task.id, "--nonce", &nonce]);
        }
        let outcomes = race.go();
        let winner = one_winner(&outcomes, "reserved", &[(10, "claim-spent")]).get("taskId");
        let names: Vec<_> = (1..=round + 7).map(|n| format!("run.step.{n}")).collect();
        assert_eq!(replacements(&root, &names, &task.id), [winner]);
    }
}

#[test]
fn claims_for_different_checkpoints_never_both_hold() {
    for round in 0..rounds(15) {
        let root = TestRoot::new();
        let task = settled(&root, &format!("t{round}"));
        let right = claim(&task);
        let mut wrong = right.clone();
        let hash = wrong.iter().position(|arg| *arg == "hash").unwrap();
        wrong[hash] = "another";
        let mut race = Race::new(&root);
        race.enter(&wrong).enter(&right).enter(&wrong).enter(&right);
        let outcomes = race.go();
        assert_eq!(with_code(&outcomes, "claimed").len(), 2, "{}", told(&outcomes));
        assert_eq!(with_code(&outcomes, "checkpoint-mismatch").len(), 2, "{}", told(&outcomes));
        let claim = sound_row(&root, &task.id).task_attempt_retired_by.unwrap();
        assert_eq!(claim.input_hash.as_str(), "hash");
    }
}
