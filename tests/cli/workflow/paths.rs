//! Both ways to a replacement, by `reserve --run` and by a claim that is spent, end in the same state.

use super::{ask, child, end, events};
use crate::common::TestRoot;

pub(crate) fn claim(root: &TestRoot, task: &str, attempt: &str, more: &[&str]) -> crate::common::Outcome {
    let mut args = vec!["claim-retire", task, "--attempt", attempt, "--run", "run", "--step", "scan"];
    args.extend(["--input-hash", "h", "--parent", "ws"]);
    args.extend(more);
    root.json(&args)
}

#[test]
fn a_claim_disposes_the_checkpoint_and_its_spending_rewrites_it() {
    let root = TestRoot::new();
    let old = child(&root, "scan").stopped();
    let nonce = claim(&root, &old.task, &old.attempt, &[]).is(0, "claimed").get("nonce");
    let run = root.json(&["inspect", "--run", "run"]);
    assert_eq!((run.get("steps.0.status"), run.get("steps.0.decision")), ("failed".into(), "replace".into()));
    let new = root.json(&["reserve", "--replaces", &old.task, "--nonce", &nonce]).is(0, "reserved");
    assert_eq!(new.get("taskId"), "run.scan.2");
    assert_eq!(
        events(&root),
        ["run.scan.1 none -> started", "run.scan.1 started -> failed", "run.scan.2 failed -> started"]
    );
    let _ = ask(&root, "scan", &[]).is(10, "reattach");
}

#[test]
fn a_claim_that_was_made_and_not_spent_is_spent_by_the_step() {
    let root = TestRoot::new();
    let old = child(&root, "scan").stopped();
    let nonce = claim(&root, &old.task, &old.attempt, &[]).is(0, "claimed").get("nonce");
    let new = ask(&root, "scan", &[]).is(0, "reserved");
    assert_eq!(new.get("replaces"), old.task);
    let out = root.json(&["reserve", "--replaces", &old.task, "--nonce", &nonce]).is(10, "claim-spent");
    assert_eq!(out.get("replacementTaskId"), new.get("taskId"));
}

#[test]
fn a_claim_needs_the_child_the_checkpoint_names_now() {
    let root = TestRoot::new();
    let old = child(&root, "scan").stopped();
    let new = ask(&root, "scan", &["--owner-pid", &std::process::id().to_string()]).is(0, "reserved");
    let _ = claim(&root, &old.task, &old.attempt, &[]).is(10, "claim-spent");
    let _ = root.json(&["stop", &new.get("taskId")]).is(0, "stopped");
    let _ = claim(&root, &new.get("taskId"), &new.get("attemptId"), &[]).is(0, "claimed");
}

#[test]
fn a_reported_child_of_a_started_step_is_adopted_unless_a_claim_says_that_it_does_not_count() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").launched();
    let turn = scan.turn();
    let _ = scan.report().is(0, "report-accepted");
    let settle = ["settle", &scan.task, "--turn", &turn, "--close", "--token", &scan.token];
    let _ = root.json(&settle).is(0, "turn-settled");
    let _ = ask(&root, "scan", &[]).is(10, "adopt");
    let retire = ["--mode", "retire-reported"];
    let _ = claim(&root, &scan.task, &scan.attempt, &retire).is(0, "claimed");
    assert_eq!(events(&root), ["run.scan.1 none -> started", "run.scan.1 started -> failed"]);
    let _ = end(&root, "complete", "scan", &[]).is(10, "step-ended");
    assert_eq!(ask(&root, "scan", &[]).is(0, "reserved").get("replaces"), scan.task);
}

#[test]
fn a_completed_step_is_not_retired() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").launched();
    let turn = scan.turn();
    let _ = scan.report().is(0, "report-accepted");
    let settle = ["settle", &scan.task, "--turn", &turn, "--close", "--token", &scan.token];
    let _ = root.json(&settle).is(0, "turn-settled");
    let _ = end(&root, "complete", "scan", &[]).is(0, "step-completed");
    let _ = claim(&root, &scan.task, &scan.attempt, &["--mode", "retire-reported"]).is(10, "completed");
}
