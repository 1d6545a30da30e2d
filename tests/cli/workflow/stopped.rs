//! `stop --run` and `stop --all`: the latch first, then every child.

use super::{ask, child, edit_run};
use crate::common::TestRoot;

#[test]
fn a_stopped_run_gives_no_step_a_child_until_somebody_goes_on_on_purpose() {
    let root = TestRoot::new();
    let scan = child(&root, "scan");
    let _plan = child(&root, "plan");
    let out = root.json(&["stop", "--run", "run", "--reason", "wrong branch"]).is(0, "stopped");
    assert_eq!((out.get("stopEpoch"), out.get("tasks.0.taskId")), ("1".into(), scan.task.clone()));
    for step in ["scan", "fix"] {
        let out = ask(&root, step, &[]).is(10, "run-stopped");
        assert_eq!(out.get("stopEpoch"), "1");
        let _ = ask(&root, step, &["--resume", "0"]).is(10, "run-stopped");
    }
    let new = ask(&root, "scan", &["--resume", "1"]).is(0, "reserved");
    assert_eq!(new.get("replaces"), scan.task, "the stopped child is proven over");
    let _ = ask(&root, "fix", &[]).is(0, "reserved");
}

#[test]
fn a_lost_answer_of_a_stop_is_given_again_and_stops_nothing_that_was_started_after_it() {
    let root = TestRoot::new();
    let _scan = child(&root, "scan");
    let stop = ["stop", "--run", "run", "--request-id", "one"];
    let first = root.json(&stop).is(0, "stopped");
    let again = root.json(&stop).is(0, "stopped");
    assert_eq!(first.stdout, again.stdout, "byte for byte");
    assert_eq!(root.json(&["inspect", "--run", "run"]).get("stopEpoch"), "1", "and stopped once");

    let new = ask(&root, "scan", &["--resume", "1"]).is(0, "reserved").get("taskId");
    let before = root.row(&new);
    let late = root.json(&stop).is(10, "stale-epoch");
    assert_eq!((late.get("tasks.0.taskId"), late.get("tasks.0.code")), (new.clone(), "stale-epoch".into()));
    assert_eq!(root.row(&new), before, "its child is not meant");
    let _ = ask(&root, "scan", &[]).is(10, "reattach");
    let _ = root.json(&["stop", "--run", "run"]).is(0, "stopped");
    assert_eq!(root.row(&new)["taskStatus"], "interrupted");
}

#[test]
fn a_latched_run_takes_no_replacement_either() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").stopped();
    let claim = ["claim-retire", &scan.task, "--attempt", &scan.attempt, "--run", "run", "--step", "scan"];
    let mut args = claim.to_vec();
    args.extend(["--input-hash", "h", "--parent", "ws"]);
    let nonce = root.json(&args).is(0, "claimed").get("nonce");
    let _ = root.json(&["stop", "--run", "run"]).is(0, "stopped");
    let _ = root.json(&["reserve", "--replaces", &scan.task, "--nonce", &nonce]).is(10, "run-stopped");
}

#[test]
fn a_name_that_two_sessions_have_must_be_told_apart() {
    let root = TestRoot::new();
    let _here = child(&root, "scan");
    let there = ["reserve", "--run", "run", "--step", "scan", "--input-hash", "h", "--parent", "other"];
    let _ = root.json(&there).is(0, "reserved");
    let _ = root.json(&["inspect", "--run", "run"]).is(64, "ambiguous-run");
    let _ = root.json(&["stop", "--run", "run"]).is(64, "ambiguous-run");
    let _ = root.json(&["inspect", "--run", "run", "--parent", "other"]).is(0, "ok");
    let _ = root.json(&["stop", "--run", "run", "--parent", "ws"]).is(0, "stopped");
    let _ = root.json(&there).is(10, "reattach");
}

#[test]
fn everything_is_stopped_at_once() {
    let root = TestRoot::new();
    let _scan = child(&root, "scan");
    let _task = root.reserve("t");
    let out = root.json(&["stop", "--all"]).is(0, "stopped");
    assert_eq!(out.get("runs.0.runId"), "run");
    assert_eq!(out.json()["tasks"].as_array().unwrap().len(), 2);
    let _ = ask(&root, "scan", &[]).is(10, "run-stopped");
    assert_eq!(root.row("t")["taskStatus"], "interrupted");
}

#[test]
fn one_run_that_cannot_be_latched_keeps_nothing_else_from_being_stopped() {
    let root = TestRoot::new();
    let _scan = child(&root, "scan");
    let other = ["reserve", "--run", "zz", "--step", "scan", "--input-hash", "h", "--parent", "ws"];
    let _ = root.json(&other).is(0, "reserved");
    let _task = root.reserve("t");
    edit_run(&root, |document| document["version"] = 2.into());
    let out = root.json(&["stop", "--all"]).is(65, "newer-version");
    assert_eq!(out.get("tasks.0.taskId"), "sessions/ws/workflows/run", "{out}");
    assert_eq!(out.get("runs.0.runId"), "zz");
    for task in ["t", "run.scan.1", "zz.scan.1"] {
        assert_eq!(root.row(task)["taskStatus"], "interrupted", "{task}");
    }
}

#[test]
fn a_child_whose_row_cannot_be_read_keeps_no_other_from_being_stopped_with_its_run() {
    let root = TestRoot::new();
    let scan = child(&root, "scan");
    let plan = child(&root, "plan");
    std::fs::write(root.path().join("tasks").join(&scan.task).join("row.json"), "{}").unwrap();
    let out = root.json(&["stop", "--run", "run"]).is(65, "row-unreadable");
    assert_eq!((out.get("tasks.0.taskId"), out.get("tasks.0.code")), (scan.task, "row-unreadable".into()));
    assert_eq!(root.row(&plan.task)["taskStatus"], "interrupted");
    let _ = ask(&root, "fix", &[]).is(10, "run-stopped");
}
