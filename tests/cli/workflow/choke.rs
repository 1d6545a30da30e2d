//! `reserve --run` judges the checkpoint and the child it names, before it gives a step another child.

use super::{ask, child, child_of, end, events};
use crate::actors::Owner;
use crate::common::TestRoot;

#[test]
fn a_fresh_step_gets_a_child_and_a_started_checkpoint_in_one_commit() {
    let root = TestRoot::new();
    let first = ask(&root, "scan", &[]).is(0, "reserved");
    assert_eq!(first.get("taskId"), "run.scan.1");
    assert_eq!(events(&root), ["run.scan.1 none -> started"]);
    let run = root.json(&["inspect", "--run", "run"]).is(0, "ok");
    assert_eq!(
        (run.get("steps.0.status"), run.get("steps.0.decision")),
        ("started".into(), "reattach".into())
    );
}

#[test]
fn a_queued_or_live_child_is_reattached_and_never_doubled() {
    let root = TestRoot::new();
    let scan = child(&root, "scan");
    let again = ask(&root, "scan", &[]).is(10, "reattach");
    assert_eq!(again.get("taskId"), scan.task);
    assert_eq!((again.get("taskStatus"), again.get("ownerAlive")), ("queued".into(), "yes".into()));
    let scan = scan.launched();
    let _turn = scan.turn();
    let before = root.bytes();
    let _ = ask(&root, "scan", &[]).is(10, "reattach");
    assert_eq!(root.bytes(), before, "a refusal changes not one byte");
}

#[test]
fn a_queued_child_whose_maker_is_dead_is_launched_by_whoever_asks() {
    let root = TestRoot::new();
    let mut maker = Owner::start();
    let scan = child_of(&root, "scan", &maker.pid());
    maker.kill();
    let again = ask(&root, "scan", &[]).is(10, "reattach");
    assert_eq!(again.get("ownerAlive"), "no");
    let _ = root.json(&["rotate", &scan.task, "--as", "launch"]).is(0, "launched");
}

#[test]
fn a_reported_child_of_a_started_step_is_adopted() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").launched();
    let _turn = scan.turn();
    let _ = scan.report().is(0, "report-accepted");
    let adopt = ask(&root, "scan", &[]).is(10, "adopt");
    assert!(adopt.get("reportPath").ends_with(&format!("{}.json", scan.attempt)), "{adopt}");
}

#[test]
fn a_completed_step_names_its_result_and_gets_no_child() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").launched();
    let turn = scan.turn();
    let _ = scan.report().is(0, "report-accepted");
    let _ = scan.settle(&turn).is(0, "turn-settled");
    let _ = end(&root, "complete", "scan", &[]).is(0, "step-completed");
    let out = ask(&root, "scan", &[]).is(10, "completed");
    assert_eq!(out.get("taskId"), "run.scan.1");
    assert!(out.get("reportPath").contains("subagent-reports"), "{out}");
}

#[test]
fn a_child_proven_over_is_disposed_claimed_and_replaced_in_one_commit() {
    let root = TestRoot::new();
    let old = child(&root, "scan").stopped();
    let new = ask(&root, "scan", &[]).is(0, "reserved");
    assert_eq!((new.get("taskId"), new.get("replaces")), ("run.scan.2".into(), old.task.clone()));
    assert_eq!(
        events(&root),
        ["run.scan.1 none -> started", "run.scan.1 started -> failed", "run.scan.2 failed -> started"]
    );
    let old_row = root.json(&["inspect", &old.task]);
    assert_eq!(old_row.get("retiredBy.replacementTaskId"), "run.scan.2");
    let _ = ask(&root, "scan", &[]).is(10, "reattach");
    assert!(!root.tree().contains("run.scan.3"));
}

#[test]
fn a_dead_owners_idle_child_is_settled_and_replaced_by_the_same_call() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let old = child_of(&root, "scan", &owner.pid()).launched();
    let turn = old.turn();
    let _ = old.settle(&turn).is(0, "turn-settled");
    owner.kill();
    let new = ask(&root, "scan", &[]).is(0, "reserved");
    assert_eq!(new.get("replaces"), old.task);
    let receipt = format!("sessions/ws/subagent-attempt-settlements/{}/{}.json", old.task, old.attempt);
    assert!(root.tree().contains(&receipt), "{}", root.tree());
}

#[test]
fn a_child_that_died_with_its_turn_open_is_unresolved_and_nothing_changes() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let old = child_of(&root, "scan", &owner.pid()).launched();
    let turn = old.turn();
    owner.kill();
    let before = root.bytes();
    for _ in 0..3 {
        let out = ask(&root, "scan", &[]).is(11, "unresolved");
        assert_eq!(out.get("reasonCode"), "owner-dead-unsettled");
    }
    assert_eq!(root.bytes(), before, "bytes unchanged however often it is asked");
    // Nothing but the turn's own token ends it, until there is proof that its execution is over.
    let _ = old.settle(&turn).is(0, "turn-settled");
    let _ = ask(&root, "scan", &[]).is(0, "reserved");
}

#[test]
fn an_unknown_owners_open_turn_is_unresolved() {
    let root = TestRoot::new();
    let out = ask(&root, "scan", &[]).is(0, "reserved");
    let (task, attempt, token) = (out.get("taskId"), out.get("attemptId"), out.get("token"));
    let _ = root.json(&["rotate", &task, "--as", "launch", "--token", &token]).is(0, "launched");
    let _ =
        root.json(&["admit", &task, "--attempt", &attempt, "--start", "--token", &token]).is(0, "admitted");
    let out = ask(&root, "scan", &[]).is(11, "unresolved");
    assert_eq!(out.get("reasonCode"), "owner-unknown");
    // The caller that holds the token of the child knows that it is its own, and live.
    let _ = ask(&root, "scan", &["--prior-token", &token]).is(10, "reattach");
}

#[test]
fn a_closing_child_is_pending() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").launched();
    let _turn = scan.turn();
    let _ = root.json(&["stop", &scan.task]).is(0, "stopping");
    let out = ask(&root, "scan", &[]).is(12, "cleanup-pending");
    assert_eq!(out.get("owed.0.kind"), "turn");
}

#[test]
fn a_missing_receipt_leaves_the_step_unresolved_however_often_it_is_asked() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").stopped();
    // The next commit of the row drops its own copy of the receipt.
    let _ = root.json(&["stop", &scan.task]).is(0, "already-stopped");
    let folder = root.path().join("sessions/ws/subagent-attempt-settlements").join(&scan.task);
    std::fs::remove_file(folder.join(format!("{}.json", scan.attempt))).unwrap();
    let before = root.bytes();
    for _ in 0..2 {
        let out = ask(&root, "scan", &[]).is(11, "unresolved");
        assert_eq!(out.get("reasonCode"), "unowned-no-receipt");
    }
    assert_eq!(root.bytes(), before);
    let why = root.run(&["inspect", &scan.task, "--explain"]);
    assert!(why.stdout.contains("there is none"), "{why}");
}

#[test]
fn a_failed_step_retires_its_reported_child_only_with_a_receipt() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").launched();
    let turn = scan.turn();
    let _ = scan.report().is(0, "report-accepted");
    let _ = scan.settle(&turn).is(0, "turn-settled");
    let _ = end(&root, "fail", "scan", &["--error", "the output was not valid"]).is(0, "step-failed");
    let out = ask(&root, "scan", &[]).is(11, "unresolved");
    assert_eq!(out.get("reasonCode"), "no-settlement-evidence");
    let _ = root.json(&["settle", &scan.task, "--token", &scan.token]).is(0, "settled");
    let new = ask(&root, "scan", &[]).is(0, "reserved");
    assert_eq!(new.get("replaces"), scan.task);
    let shown = root.run(&["report", &scan.task, "--show"]);
    assert_eq!(shown.stdout, "done", "the retired child's report stays");
}

#[test]
fn the_checkpoint_is_judged_before_the_name() {
    let root = TestRoot::new();
    let scan = child(&root, "scan");
    let _ = ask(&root, "scan", &[&scan.task]).is(10, "reattach");
    let _ = ask(&root, "plan", &[&scan.task]).is(10, "task-exists");
}

#[test]
fn another_input_is_another_checkpoint_and_is_told() {
    let root = TestRoot::new();
    let _scan = child(&root, "scan");
    let args = ["reserve", "--run", "run", "--step", "scan", "--input-hash", "other", "--parent", "ws"];
    let out = root.json(&args).is(0, "reserved");
    assert_eq!(out.get("otherInputs.0"), "h");
}

#[test]
fn an_input_is_hashed_as_its_canonical_text() {
    let root = TestRoot::new();
    std::fs::write(root.file("a.json"), r#"{"b": [1.0, "x"], "a": {"z": null, "y": true}}"#).unwrap();
    std::fs::write(root.file("b.json"), r#"{"a":{"y":true,"z":null},"b":[1,"x"]}"#).unwrap();
    let with = |file: &str| {
        root.json(&["reserve", "--run", "r", "--step", "s", "--input", &root.file(file), "--parent", "ws"])
    };
    let first = with("a.json").is(0, "reserved");
    assert!(first.get("inputHash").starts_with("sha256:"), "{first}");
    let _ = with("b.json").is(10, "reattach");
    let _ = with("missing.json").is(64, "usage");
}

#[test]
fn a_repeat_of_the_call_answers_the_same_child() {
    let root = TestRoot::new();
    let first = ask(&root, "scan", &["--request-id", "one"]).is(0, "reserved");
    let again = ask(&root, "scan", &["--request-id", "one"]).is(0, "reserved");
    assert_eq!(first.stdout, again.stdout, "byte for byte");
    let _ = ask(&root, "plan", &["--request-id", "two"]).is(0, "reserved");
    let _ = ask(&root, "scan", &["--request-id", "two"]).is(10, "request-id-reused");
}

#[test]
fn many_runners_at_once_give_a_step_one_child() {
    let root = TestRoot::new();
    let _old = child(&root, "scan").stopped();
    let args = [
        "reserve",
        "--run",
        "run",
        "--step",
        "scan",
        "--input-hash",
        "h",
        "--parent",
        "ws",
        "--lock-wait",
        "30s",
        "--json",
    ];
    let runners: Vec<_> = (0..12).map(|_| root.command(&args).spawn().unwrap()).collect();
    let codes: Vec<String> = runners.into_iter().map(|runner| root.finish(runner).code()).collect();
    let n = |code: &str| codes.iter().filter(|found| *found == code).count();
    assert_eq!((n("reserved"), n("reattach")), (1, 11), "{codes:?}");
}
