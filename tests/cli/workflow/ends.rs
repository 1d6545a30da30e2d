//! `step complete` and `step fail`.

use super::{ask, child, end, events};
use crate::common::TestRoot;

#[test]
fn a_step_is_completed_by_its_childs_report_and_by_nothing_else() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").launched();
    let _turn = scan.turn();
    let before = root.bytes();
    let _ = end(&root, "complete", "scan", &[]).is(10, "no-report");
    assert_eq!(root.bytes(), before);
    let _ = scan.report().is(0, "report-accepted");
    let done = end(&root, "complete", "scan", &[]).is(0, "step-completed");
    assert_eq!((done.get("taskId"), done.get("attemptId")), (scan.task.clone(), scan.attempt.clone()));
    let _ = end(&root, "complete", "scan", &[]).is(0, "already-ended");
    let _ = end(&root, "fail", "scan", &[]).is(10, "step-ended");
    assert_eq!(events(&root), ["run.scan.1 none -> started", "run.scan.1 started -> completed"]);
}

#[test]
fn a_failed_step_stays_failed_until_its_child_is_replaced() {
    let root = TestRoot::new();
    let _scan = child(&root, "scan").stopped();
    let _ = end(&root, "fail", "scan", &["--error", "it was stopped"]).is(0, "step-failed");
    let _ = end(&root, "fail", "scan", &[]).is(0, "already-ended");
    let _ = end(&root, "complete", "scan", &[]).is(10, "step-ended");
    let _ = ask(&root, "scan", &[]).is(0, "reserved");
    assert_eq!(
        events(&root),
        ["run.scan.1 none -> started", "run.scan.1 started -> failed", "run.scan.2 failed -> started"]
    );
}

#[test]
fn a_step_without_a_record_is_refused_and_its_other_inputs_are_named() {
    let root = TestRoot::new();
    let _plan = child(&root, "plan");
    let _ = end(&root, "complete", "scan", &[]).is(10, "no-such-step");
    let _scan = child(&root, "scan");
    let args = ["step", "fail", "--run", "run", "--step", "scan", "--input-hash", "x", "--parent", "ws"];
    let out = root.json(&args).is(10, "no-such-step");
    assert_eq!(out.get("otherInputs.0"), "h");
}

#[test]
fn a_damaged_report_completes_no_step() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").launched();
    let turn = scan.turn();
    let _ = scan.report().is(0, "report-accepted");
    let _ = scan.settle(&turn).is(0, "turn-settled");
    let file = root.path().join(format!("sessions/ws/subagent-reports/{}/{}.json", scan.task, scan.attempt));
    std::fs::write(&file, "{}").unwrap();
    let _ = end(&root, "complete", "scan", &[]).is(11, "report-unreadable");
    let out = ask(&root, "scan", &[]).is(11, "unresolved");
    assert_eq!(out.get("reasonCode"), "report-unreadable");
}

#[test]
fn a_lost_answer_of_a_step_is_given_again() {
    let root = TestRoot::new();
    let _scan = child(&root, "scan");
    let first = end(&root, "fail", "scan", &["--request-id", "f"]).is(0, "step-failed");
    let again = end(&root, "fail", "scan", &["--request-id", "f"]).is(0, "step-failed");
    assert_eq!(first.stdout, again.stdout);
}
