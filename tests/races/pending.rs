//! A commit of several files whose process died right after its commit point: whoever comes next, on whichever
//! of its rows, finishes it, and calls that need each other's rows do not hold each other up.

use crate::common::{Task, TestRoot};
use crate::start::{Race, killed_at, rounds, sound_row, told, with_code};

/// Settled and claimed; gives the nonce.
fn retired<'a>(root: &'a TestRoot, id: &str) -> (Task<'a>, String) {
    let task = root.reserve_step(id).launched();
    let _ = root.json(&["stop", id]).is(0, "stopped");
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    (task, nonce)
}

#[test]
fn calls_that_need_each_others_rows_finish_a_commit_left_half_done() {
    let root = TestRoot::new();
    for round in 0..rounds(20) {
        // The home row of the record is locked before the other one in half of the rounds, and after it in the
        // rest.
        let (old, new) = if round % 2 == 0 { ("m", "a") } else { ("m", "z") };
        let (old, new) = (format!("{old}{round}"), format!("{new}{round}"));
        let (task, nonce) = retired(&root, &old);
        let replace = ["reserve", &new, "--replaces", &old, "--nonce", &nonce];
        killed_at(&root, &replace, "after-commit-point");

        let mut race = Race::new(&root);
        let third = format!("q{round}");
        race.enter(&["rotate", &new, "--as", "launch"]);
        race.enter(&["stop", &old]);
        race.enter(&["reserve", &third, "--replaces", &old, "--nonce", &nonce]);
        race.enter(&["rotate", &old, "--as", "reawaken"]);
        race.enter(&["rotate", &new, "--as", "launch"]);
        race.enter(&replace);
        race.enter(&["recover", &old, &new]);
        race.enter(&["recover", &new, &old]);
        let outcomes = race.go();
        let expected = [
            &["launched", "not-queued"][..],
            &["already-stopped"],
            &["claim-spent"],
            &["retired"],
            &["launched", "not-queued"],
            // A name is taken for ever, which is told without waiting; or the claim is looked at first.
            &["claim-spent", "task-exists"],
            &["recovered"],
            &["recovered"],
        ];
        for (outcome, codes) in outcomes.iter().zip(expected) {
            assert!(codes.contains(&outcome.code().as_str()), "{codes:?}: {outcome}");
        }
        assert_eq!(with_code(&outcomes, "launched").len(), 1, "{}", told(&outcomes));
        let spent = sound_row(&root, &old).retirement.unwrap();
        assert_eq!(spent.replacement_task_id.unwrap().as_str(), new);
        let replaces = sound_row(&root, &new).replaces.unwrap();
        assert_eq!(replaces.attempt_id.as_ref().unwrap().as_str(), task.attempt);
        assert!(!root.tree().contains(&format!("tasks/{third}/row.json")), "nothing else replaces it");
    }
}

#[test]
fn a_receipt_whose_writer_died_after_the_commit_point_is_there_for_all_who_look() {
    for round in 0..rounds(20) {
        let root = TestRoot::new();
        let task = root.reserve_step(&format!("t{round}")).launched();
        killed_at(&root, &["stop", &task.id], "after-commit-point");
        let claim = ["claim-retire", &task.id, "--attempt", &task.attempt, "--run", "run"];
        let claim = [&claim[..], &["--step", "step", "--input-hash", "hash", "--parent", "ws"]].concat();
        let mut race = Race::new(&root);
        race.enter(&["inspect", &task.id]).enter(&claim).enter(&["inspect", &task.id]);
        race.enter(&["rotate", &task.id, "--as", "reawaken"]).enter(&["stop", &task.id]);
        let outcomes = race.go();
        // The Stop that died was durable, so its receipt carries the claim, or proves the successor.
        let (claimed, woken) = (&outcomes[1], &outcomes[3]);
        if woken.exit == 0 {
            assert_eq!(woken.json()["receiptEligible"], true, "{woken}");
            let _ = claimed.clone().is(10, "stale-attempt");
        } else {
            let _ = (woken.clone().is(10, "retired"), claimed.clone().is(0, "claimed"));
        }
        for inspect in [&outcomes[0], &outcomes[2]] {
            assert_eq!(inspect.exit, 0, "{inspect}");
            let seen = inspect.get("outcome");
            assert!(["terminal-no-report", "indeterminate"].contains(&seen.as_str()), "{inspect}");
            let reason = inspect.get("reasonCode");
            // While it is reawakened nobody can tell whether its new owner is gone.
            assert!(seen == "terminal-no-report" || reason == "owned-unsettled", "{inspect}");
        }
        let path = format!("subagent-attempt-settlements/{}/{}.json", task.id, task.attempt);
        assert!(root.tree().contains(&path), "{}", told(&outcomes));
        let _ = sound_row(&root, &task.id);
    }
}

#[test]
fn many_replacements_in_a_chain_of_dead_processes_leave_one_living_end() {
    for round in 0..rounds(5) {
        let root = TestRoot::new();
        let (_, mut nonce) = retired(&root, &format!("c{round}.0"));
        for link in 1..4 {
            let (old, new) = (format!("c{round}.{}", link - 1), format!("c{round}.{link}"));
            killed_at(&root, &["reserve", &new, "--replaces", &old, "--nonce", &nonce], "after-commit-point");
            let mut race = Race::new(&root);
            race.enter(&["stop", &new]).enter(&["stop", &old]).enter(&["stop", &new]).enter(&["stop", &old]);
            let outcomes = race.go();
            assert!(outcomes.iter().all(|outcome| outcome.exit == 0), "{}", told(&outcomes));
            let attempt = sound_row(&root, &new).task_attempt_id.unwrap();
            let claim =
                ["claim-retire", &new, "--attempt", attempt.as_str(), "--run", "run", "--step", "step"];
            let claim = [&claim[..], &["--input-hash", "hash", "--parent", "ws"]].concat();
            nonce = root.json(&claim).is(0, "claimed").get("nonce");
            let spent = sound_row(&root, &old).retirement.unwrap();
            assert_eq!(spent.replacement_task_id.unwrap().as_str(), new);
        }
    }
}
