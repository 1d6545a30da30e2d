//! A row that works for a step of which no record names a child counts as that child.

use super::{Child, ask, child, edit_run, end, events};
use crate::common::TestRoot;

/// Loses the checkpoints of the run, as a restored backup may have.
fn lose_run(root: &TestRoot) {
    std::fs::remove_dir_all(root.path().join("sessions/ws/workflows")).unwrap();
}

/// Makes the root one that is older than checkpoints.
fn make_old(root: &TestRoot) {
    let path = root.path().join("config.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let old = text.replace(",\"checkpoints\":true", "");
    assert_ne!(text, old);
    std::fs::write(path, old).unwrap();
}

fn reported(child: &Child<'_>) {
    let turn = child.turn();
    let _ = child.report().is(0, "report-accepted");
    let _ = child.settle(&turn).is(0, "turn-settled");
}

#[test]
fn the_child_of_a_lost_run_is_found_by_its_name_and_never_doubled() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").launched();
    let turn = scan.turn();
    lose_run(&root);
    assert_eq!(ask(&root, "scan", &[]).is(10, "reattach").get("taskId"), scan.task);
    assert!(!root.tree().contains("run.scan.2"));
    let _ = scan.report().is(0, "report-accepted");
    let _ = scan.settle(&turn).is(0, "turn-settled");
    let _ = ask(&root, "scan", &[]).is(10, "adopt");
    let done = end(&root, "complete", "scan", &[]).is(0, "step-completed");
    assert_eq!(done.get("taskId"), scan.task);
    let _ = ask(&root, "scan", &[]).is(10, "completed");
    assert_eq!(events(&root), ["run.scan.1 none -> completed"]);
}

#[test]
fn the_child_of_a_lost_run_is_replaced_on_the_same_evidence_as_any() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").stopped();
    lose_run(&root);
    assert_eq!(ask(&root, "scan", &[]).is(0, "reserved").get("replaces"), scan.task);
    assert_eq!(events(&root), ["run.scan.1 none -> failed", "run.scan.2 failed -> started"]);
    let _ = ask(&root, "scan", &[]).is(10, "reattach");
}

#[test]
fn a_report_of_a_root_that_is_older_than_checkpoints_completes_its_step() {
    let root = TestRoot::new();
    let out = ask(&root, "scan", &["mine", "--owner-pid", &std::process::id().to_string()]).is(0, "reserved");
    let mine =
        Child { root: &root, task: "mine".into(), attempt: out.get("attemptId"), token: out.get("token") };
    reported(&mine.launched());
    lose_run(&root);
    make_old(&root);
    assert_eq!(ask(&root, "scan", &[]).is(10, "adopt").get("taskId"), "mine");
    let _ = end(&root, "complete", "scan", &[]).is(0, "step-completed");
    let _ = ask(&root, "scan", &[]).is(10, "completed");
}

#[test]
fn both_ways_to_a_replacement_leave_a_record_also_where_there_was_none() {
    let root = TestRoot::new();
    let out = ask(&root, "scan", &["mine", "--owner-pid", &std::process::id().to_string()]).is(0, "reserved");
    let mine =
        Child { root: &root, task: "mine".into(), attempt: out.get("attemptId"), token: out.get("token") };
    let _mine = mine.stopped();
    lose_run(&root);
    let nonce = super::paths::claim(&root, "mine", &out.get("attemptId"), &[]).is(0, "claimed").get("nonce");
    let _ = root.json(&["reserve", "next", "--replaces", "mine", "--nonce", &nonce]).is(0, "reserved");
    assert_eq!(events(&root), ["mine none -> failed", "next failed -> started"]);
    assert_eq!(ask(&root, "scan", &[]).is(10, "reattach").get("taskId"), "next");
}

#[test]
fn two_children_of_one_step_without_a_record_contradict_each_other() {
    let root = TestRoot::new();
    let _scan = child(&root, "scan");
    let _task = root.reserve("t");
    edit_run(&root, |document| {
        let body = &mut document["body"];
        body["steps"] = serde_json::json!([]);
        body["unrecorded"] = serde_json::json!([
            { "stepId": "scan", "taskId": "t" },
            { "stepId": "scan", "taskId": "run.scan.1" },
            { "stepId": "plan", "taskId": "gone" },
            { "stepId": "fix", "inputHash": "other", "taskId": "t" },
        ]);
    });
    let before = root.bytes();
    for _ in 0..2 {
        let out = ask(&root, "scan", &[]).is(11, "unresolved");
        assert_eq!(out.get("reasonCode"), "checkpoint-mismatch", "{out}");
    }
    assert_eq!(ask(&root, "plan", &[]).is(11, "unresolved").get("reasonCode"), "no-task-record");
    assert_eq!(root.bytes(), before);
    let run = root.json(&["inspect", "--run", "run"]).is(0, "ok");
    assert_eq!(
        (run.get("steps.0.status"), run.get("steps.0.reasonCode")),
        ("unrecorded".into(), "checkpoint-mismatch".into())
    );
    assert_eq!(
        (run.get("steps.2.taskId"), run.get("steps.2.reasonCode")),
        ("gone".into(), "no-task-record".into())
    );
    // The child of another input is none of this one's.
    assert_eq!(ask(&root, "fix", &[]).is(0, "reserved").get("taskId"), "run.fix.1");
    let _ = root.json(&["stop", "--run", "run"]);
    assert_eq!(root.row("t")["taskStatus"], "interrupted", "a Stop of the run reaches them");
}

#[test]
fn no_claim_passes_over_a_child_that_no_record_names() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").stopped();
    let _task = root.reserve("t");
    let nonce = super::paths::claim(&root, &scan.task, &scan.attempt, &[]).is(0, "claimed").get("nonce");
    edit_run(&root, |document| {
        document["body"]["unrecorded"] = serde_json::json!([{ "stepId": "scan", "taskId": "t" }]);
    });
    let before = root.bytes();
    for _ in 0..2 {
        let out = super::paths::claim(&root, &scan.task, &scan.attempt, &[]).is(10, "checkpoint-mismatch");
        assert_eq!(out.get("currentTaskId"), "t");
        let out = root.json(&["reserve", "--replaces", &scan.task, "--nonce", &nonce]);
        let _ = out.is(10, "checkpoint-mismatch");
        assert_eq!(ask(&root, "scan", &[]).is(11, "unresolved").get("reasonCode"), "checkpoint-mismatch");
    }
    assert_eq!(root.bytes(), before);
}
