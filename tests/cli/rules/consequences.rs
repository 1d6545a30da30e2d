//! What follows from the rules and is easily taken for an oversight. The number stands in the name of the test.

use crate::actors::Owner;
use crate::common::TestRoot;

#[test]
fn rule_86_the_end_of_a_turn_after_its_report_leaves_a_receipt_only_with_a_stop_or_a_close() {
    for ending in ["stop", "settle"] {
        let root = TestRoot::new();
        let task = root.reserve("t").launched();
        let turn = task.turn();
        let _ = task.report("done").is(0, "report-accepted");
        let _ = task.settle(&turn).is(0, "turn-settled");
        assert_eq!((task.stands().as_str(), task.seen("phase").as_str()), ("reported", "open"));
        assert_eq!(task.receipts(), Vec::<String>::new(), "the turn's end only pays");
        let ended =
            if ending == "stop" { task.stop().is(0, "stopped") } else { task.close().is(0, "settled") };
        assert_eq!(ended.get("taskStatus"), "reported");
        assert_eq!(task.receipts(), [task.attempt.as_str()], "{ending}");
    }
}

#[test]
fn rule_97_to_drive_a_task_again_costs_one_commit_of_its_row() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let task = root.reserve_for("t", &owner).launched();
    let _ = task.turn();
    owner.kill();
    let revision = || root.json(&["inspect", "t"]).json()["revision"].as_u64().unwrap();
    let before = revision();
    let pass = root.json(&["recover", "t", "--unproven"]).is(0, "recovered");
    assert_eq!(pass.json()["recovered"][0]["did"], "re-driven", "{pass}");
    assert_eq!(revision(), before + 1);
}

#[test]
fn rule_100_admission_looks_at_no_receipt() {
    for damage in ["whole", "missing", "garbage", "a folder"] {
        let root = TestRoot::new();
        let mut task = root.reserve("t").launched();
        let _ = task.stop().is(0, "stopped");
        // A later commit, so that no record of the settling one puts the receipt back.
        let _ = task.stop().is(0, "already-stopped");
        let receipt = root.receipt_file("ws", "t", &task.attempt);
        if damage != "whole" {
            std::fs::remove_file(&receipt).unwrap();
        }
        match damage {
            "garbage" => std::fs::write(&receipt, b"<html>").unwrap(),
            "a folder" => std::fs::create_dir(&receipt).unwrap(),
            _ => {}
        }
        let _ = task.begin().is(10, "attempt-settled");
        let _ = task.rotated_with("reawaken", &[]);
        let _ = task.begin().is(0, "admitted");
    }
}

#[test]
fn rule_50_a_send_that_nobody_ends_is_listed_with_its_age_and_times_out_never() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let send = task.send();
    let mut command = root.command(&["inspect", "t", "--json"]);
    let seen =
        root.finish(command.env("LYCHGATE_TEST_NOW", "2036-01-01T00:00:00.000Z").spawn().unwrap()).json();
    assert_eq!(seen["sends"][0]["sendId"], send);
    assert!(seen["sends"][0]["ageSeconds"].as_u64().unwrap() > 10 * 365 * 24 * 3600 - 60, "{seen}");
    let mut late =
        root.command(&["admit", "t", "--send", &send, "--start", "--token", &task.token, "--json"]);
    let admitted = root.finish(late.env("LYCHGATE_TEST_NOW", "2036-01-01T00:00:00.000Z").spawn().unwrap());
    let _ = admitted.is(0, "admitted");
}
