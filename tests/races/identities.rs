//! Who may publish the next identity of a task: one of all who ask at once.

use std::process::{Command, Stdio};

use crate::common::{Task, TestRoot};
use crate::start::{Race, in_order, one_winner, paused, rounds, sound_row, told, with_code};

#[test]
fn one_of_many_launches_wins() {
    let root = TestRoot::new();
    for round in 0..rounds(10) {
        let task = root.reserve_unknown(&format!("t{round}"));
        let mut race = Race::new(&root);
        for n in 0..32 {
            // The reservation's own launcher beside others who take it over.
            let own = ["rotate", &task.id, "--as", "launch", "--token", &task.token];
            race.enter(if n % 2 == 0 { &own } else { &own[..4] });
        }
        let outcomes = race.go();
        let winner = one_winner(&outcomes, "launched", &[(10, "not-queued")]);
        let row = sound_row(&root, &task.id);
        assert_eq!(row.task_attempt_id.unwrap().as_str(), winner.get("attemptId"));
    }
}

#[test]
fn one_of_many_reservations_of_a_name_wins() {
    let root = TestRoot::new();
    for round in 0..rounds(10) {
        let task = format!("t{round}");
        let mut race = Race::new(&root);
        for _ in 0..32 {
            race.enter(&["reserve", &task, "--parent", "ws"]);
        }
        let outcomes = race.go();
        let winner = one_winner(&outcomes, "reserved", &[(10, "task-exists")]).get("attemptId");
        for loser in with_code(&outcomes, "task-exists") {
            assert_eq!(loser.get("currentAttemptId"), winner, "{loser}");
        }
        let row = sound_row(&root, &task);
        assert_eq!((row.task_attempt_id.unwrap().as_str(), row.history.total), (winner.as_str(), 1));
    }
}

#[test]
fn a_reservation_that_looked_before_the_name_was_taken_looks_again() {
    let root = TestRoot::new();
    let first = root.reserve_step("t");
    let _ = root.json(&["stop", "t"]).is(0, "stopped");
    let nonce = first.claim(&[]).is(0, "claimed").get("nonce");
    let plain = ["reserve", "new", "--parent", "ws"];
    let replacing = ["reserve", "other", "--replaces", "t", "--nonce", &nonce];
    for late in [&plain[..], &replacing] {
        let looked = paused(&root, late, "locked");
        let taken = root.json(&["reserve", late[1], "--parent", "ws"]).is(0, "reserved").get("attemptId");
        root.go("locked");
        let refused = root.finish(looked).is(10, "task-exists");
        assert_eq!(refused.get("currentAttemptId"), taken);
        let row = sound_row(&root, late[1]);
        assert_eq!((row.task_attempt_id.unwrap().as_str(), row.history.total), (taken.as_str(), 1));
    }
    assert!(
        sound_row(&root, "t").retirement.unwrap().replacement_task_id.is_none(),
        "the claim is not spent"
    );
}

#[test]
fn the_first_calls_on_a_root_make_it_together() {
    for _ in 0..rounds(12) {
        let root = TestRoot::new();
        let mut race = Race::new(&root);
        for n in 0..8 {
            race.enter(&["reserve", &format!("t{n}"), "--parent", "ws"]);
        }
        let outcomes = race.go();
        assert_eq!(with_code(&outcomes, "reserved").len(), 8, "{}", told(&outcomes));
        // All of them made their tokens from the one secret of the root.
        for (n, outcome) in outcomes.iter().enumerate() {
            let token = outcome.get("token");
            let _ = root
                .json(&["rotate", &format!("t{n}"), "--as", "launch", "--token", &token])
                .is(0, "launched");
        }
    }
}

#[test]
fn a_root_that_another_call_makes_between_two_looks_is_found() {
    for late in [&["reserve", "t1", "--parent", "ws"][..], &["inspect"], &["stop", "t2"]] {
        let root = TestRoot::new();
        let paused = root.paused(late, "no-root-folder");
        root.wait_reached("no-root-folder");
        let _ = root.json(&["reserve", "t2", "--parent", "ws"]).is(0, "reserved");
        root.go("no-root-folder");
        let done = root.finish(paused);
        assert_eq!(done.exit, 0, "{done}");
    }
}

#[test]
fn one_of_many_rotations_wins() {
    let root = TestRoot::new();
    for round in 0..rounds(30) {
        let id = format!("t{round}");
        let task = root.reserve_unknown(&id).launched();
        let (kind, others) = if round % 2 == 0 {
            let _ = root.json(&["stop", &id]).is(0, "stopped");
            ("reawaken", [(10, "not-interrupted"), (10, "stale-attempt")])
        } else {
            let turn = task.turn();
            let _ = task.report("done").is(0, "report-accepted");
            let _ = task.settle(&turn).is(0, "turn-settled");
            ("reactivate", [(10, "stale-attempt"), (10, "stale-attempt")])
        };
        let mut race = Race::new(&root);
        for n in 0..6 {
            let rotate = ["rotate", &id, "--as", kind, "--expect", &task.attempt];
            race.enter(if n % 2 == 0 && round % 2 == 0 { &rotate[..4] } else { &rotate });
        }
        let outcomes = race.go();
        let winner = one_winner(&outcomes, "rotated", &others);
        let row = sound_row(&root, &id);
        assert_eq!(row.task_attempt_id.unwrap().as_str(), winner.get("attemptId"));
        let _ = root.json(&["settle", &id, "--token", &winner.get("token")]).is(0, "settled");
    }
}

/// Launched by a process that is dead by now.
fn left_starting<'a>(root: &'a TestRoot, id: &str) -> Task<'a> {
    let mut owner = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let task = root.reserve_with(id, &["--owner-pid", &owner.id().to_string()]).launched();
    owner.kill().unwrap();
    owner.wait().unwrap();
    task
}

#[test]
fn a_stale_launch_is_handed_back_once_and_launched_once() {
    let root = TestRoot::new();
    for round in 0..rounds(40) {
        let task = left_starting(&root, &format!("t{round}"));
        let launch = ["rotate", task.id.as_str(), "--as", "launch"];
        let recover = ["recover", task.id.as_str()];
        let (passes, launches) = match round % 4 {
            0 => {
                let (pass, launch) = in_order(&root, "locked", &recover, &launch);
                assert_eq!(launch.code(), "launched", "{launch}");
                (vec![pass], vec![launch])
            }
            1 => {
                let (launch, pass) = in_order(&root, "locked", &launch, &recover);
                assert_eq!(launch.code(), "not-queued", "{launch}");
                (vec![pass], vec![launch])
            }
            _ => {
                let mut race = Race::new(&root);
                race.enter(&recover).enter(&launch).enter(&recover).enter(&launch);
                race.go().into_iter().partition(|outcome| outcome.json()["command"] == "recover")
            }
        };
        let reverted: usize =
            passes.iter().map(|pass| pass.json()["recovered"].as_array().unwrap().len()).sum();
        assert_eq!(reverted, 1, "{}", told(&passes));
        let winners = with_code(&launches, "launched");
        assert!(winners.len() <= 1, "{}", told(&launches));
        let row = sound_row(&root, &task.id);
        let attempt = winners.first().map_or(task.attempt.clone(), |winner| winner.get("attemptId"));
        assert_eq!(row.task_attempt_id.unwrap().as_str(), attempt);
        assert!(!row.task_attempt_unproven, "a launch that never admitted a turn leaves no marker");
    }
}
