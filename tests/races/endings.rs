//! Reports, turns and debts that many say at once have come to an end.

use crate::common::TestRoot;
use crate::start::{Race, one_winner, rounds, sound_row, told, with_code};

#[test]
fn one_of_many_reports_counts_and_all_others_are_kept() {
    let root = TestRoot::new();
    for round in 0..rounds(25) {
        let task = root.reserve(&format!("t{round}")).launched();
        let _ = task.turn();
        let mut race = Race::new(&root);
        let texts: Vec<_> = (0..6).map(|n| format!("report {round} of {n}\n")).collect();
        for (n, text) in texts.iter().enumerate() {
            let file = root.file(&format!("report-{n}"));
            std::fs::write(&file, text).unwrap();
            let report = ["report", &task.id, "--attempt", &task.attempt, "--file", &file];
            race.enter(&[&report[..], &["--token", &task.token]].concat());
        }
        let outcomes = race.go();
        let winner = one_winner(&outcomes, "report-accepted", &[(10, "late-report")]);
        let index = outcomes.iter().position(|outcome| outcome.code() == "report-accepted").unwrap();
        let shown = root.run(&["report", &task.id, "--show"]);
        assert_eq!(shown.stdout, texts[index], "{winner}");
        let late = root.run(&["report", &task.id, "--show", "--late"]);
        for (n, text) in texts.iter().enumerate() {
            assert_eq!(late.stdout.contains(text.trim_end()), n != index, "{late}");
        }
        let row = sound_row(&root, &task.id);
        assert_eq!((row.reports.len(), row.late_reports), (1, 5));
    }
}

#[test]
fn the_same_report_at_once_is_accepted_once() {
    let root = TestRoot::new();
    for round in 0..rounds(20) {
        let task = root.reserve(&format!("t{round}")).launched();
        let _ = task.turn();
        let file = root.file("report");
        std::fs::write(&file, "the same\n").unwrap();
        let mut race = Race::new(&root);
        for token in [&task.token, &task.worker, &task.token, &task.worker] {
            let report = ["report", &task.id, "--attempt", &task.attempt, "--file", &file];
            race.enter(&[&report[..], &["--token", token]].concat());
        }
        let outcomes = race.go();
        let _ = one_winner(&outcomes, "report-accepted", &[(0, "already-reported")]);
        let row = sound_row(&root, &task.id);
        assert_eq!((row.reports.len(), row.late_reports), (1, 0));
    }
}

/// The receipts of a task that lie in its parent's folder.
fn receipts(root: &TestRoot, task: &str) -> Vec<String> {
    let folder = format!("sessions/ws/subagent-attempt-settlements/{task}/att_");
    root.tree().lines().filter(|line| line.starts_with(&folder)).map(str::to_owned).collect()
}

#[test]
fn a_turn_ends_once_and_leaves_one_receipt() {
    let root = TestRoot::new();
    for round in 0..rounds(30) {
        let task = root.reserve(&format!("t{round}")).launched();
        let turn = task.turn();
        let mut race = Race::new(&root);
        for n in 0..6 {
            let settle = ["settle", &task.id, "--turn", &turn, "--token", &task.token, "--close"];
            // Some end the turn, and some end the attempt with it.
            race.enter(if n % 3 == 2 && round % 2 == 1 { &settle[..6] } else { &settle });
        }
        let outcomes = race.go();
        // Whoever closes an attempt whose turn somebody else has ended settles the attempt alone.
        let ended = with_code(&outcomes, "turn-settled");
        assert_eq!(ended.len(), 1, "{}", told(&outcomes));
        assert!(outcomes.iter().all(|outcome| outcome.exit == 0), "{}", told(&outcomes));
        let settled = with_code(&outcomes, "settled").len();
        let ended_open = ended[0].get("phase") == "open";
        assert_eq!(settled, usize::from(ended_open), "{}", told(&outcomes));
        let row = sound_row(&root, &task.id);
        assert!(row.settlement.unwrap().settled.unwrap().receipt.is_some());
        assert_eq!(receipts(&root, &task.id).len(), 1);
    }
}

#[test]
fn a_debt_is_paid_once_and_the_last_payment_settles() {
    let root = TestRoot::new();
    for round in 0..rounds(25) {
        let task = root.reserve(&format!("t{round}")).launched();
        let stop = root.json(&["stop", &task.id, "--cleanup", "a", "--cleanup", "b"]).is(0, "stopping");
        let debts = [stop.get("cleanupIds.0"), stop.get("cleanupIds.1")];
        let mut race = Race::new(&root);
        for n in 0..6 {
            race.enter(&["settle", &task.id, "--cleanup", &debts[n % 2]]);
        }
        let outcomes = race.go();
        let paid = with_code(&outcomes, "cleanup-paid");
        assert_eq!(paid.len(), 2, "{}", told(&outcomes));
        assert!(outcomes.iter().all(|outcome| outcome.exit == 0), "{}", told(&outcomes));
        let left: Vec<_> = paid.iter().map(|outcome| outcome.get("receipt")).collect();
        assert_eq!(left.iter().filter(|receipt| *receipt == "null").count(), 1, "{left:?}");
        assert_eq!(receipts(&root, &task.id).len(), 1);
        let row = sound_row(&root, &task.id);
        let closure = row.settlement.unwrap().closure;
        assert_eq!((closure.cleanups.len(), row.paid_cleanups.len()), (0, 2));
    }
}

#[test]
fn stops_at_once_all_count_and_share_one_settlement() {
    let root = TestRoot::new();
    for round in 0..rounds(20) {
        let task = root.reserve(&format!("t{round}")).launched();
        let turn = task.turn();
        let settle = ["settle", &task.id, "--turn", &turn, "--token", &task.token];
        let mut race = Race::new(&root);
        for n in 0..5 {
            race.enter(&["stop", &task.id]);
            if n == round % 5 {
                race.enter(&settle);
            }
        }
        let outcomes = race.go();
        assert!(outcomes.iter().all(|outcome| outcome.exit == 0), "{}", told(&outcomes));
        let row = sound_row(&root, &task.id);
        assert_eq!(row.stop_epoch, 5, "each Stop counts");
        assert_eq!(receipts(&root, &task.id).len(), 1);
        let first = with_code(&outcomes, "stopping").len() + with_code(&outcomes, "stopped").len();
        assert_eq!(first, 1, "one Stop shut admission: {}", told(&outcomes));
    }
}
