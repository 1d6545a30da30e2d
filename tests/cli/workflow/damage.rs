//! A run that cannot be read is never taken for one that is not there.

use super::{ask, child, edit_run, end};
use crate::common::TestRoot;

#[test]
fn a_damaged_run_gives_no_step_a_child_and_is_left_as_it_is() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").stopped();
    let path = root.path().join("sessions/ws/workflows/run/run.json");
    let good = std::fs::read(&path).unwrap();
    for damage in [&b""[..], b"{}", b"null", &good[..good.len() / 2]] {
        std::fs::write(&path, damage).unwrap();
        let before = root.bytes();
        let _ = ask(&root, "scan", &[]).is(65, "run-unreadable");
        let _ = ask(&root, "plan", &[]).is(65, "run-unreadable");
        let _ = end(&root, "fail", "scan", &[]).is(65, "run-unreadable");
        let _ = root.json(&["stop", "--run", "run"]).is(65, "run-unreadable");
        let _ = root.json(&["inspect", "--run", "run"]).is(65, "run-unreadable");
        let claim =
            ["claim-retire", &scan.task, "--attempt", &scan.attempt, "--run", "run", "--step", "scan"];
        let mut claim = claim.to_vec();
        claim.extend(["--input-hash", "h", "--parent", "ws"]);
        let _ = root.json(&claim).is(65, "run-unreadable");
        assert_eq!(root.bytes(), before);
    }
    std::fs::write(&path, good).unwrap();
    let _ = ask(&root, "scan", &[]).is(0, "reserved");
}

#[test]
fn stopping_everything_tells_a_run_that_cannot_be_read_and_stops_the_rest() {
    let root = TestRoot::new();
    let _scan = child(&root, "scan");
    let _task = root.reserve("t");
    std::fs::write(root.path().join("sessions/ws/workflows/run/run.json"), "{}").unwrap();
    let _ = root.json(&["stop", "--all"]).is(65, "run-unreadable");
    assert_eq!(root.row("t")["taskStatus"], "interrupted");
    assert_eq!(root.row("run.scan.1")["taskStatus"], "interrupted");
}

#[test]
fn a_run_of_a_thousand_steps_is_still_one_small_commit_a_step() {
    let root = TestRoot::new();
    let _first = child(&root, "scan");
    // The steps are written by hand, as a long run leaves them: each with its own child.
    edit_run(&root, |document| {
        let steps = document["body"]["steps"].as_array_mut().unwrap();
        for n in 0..1000 {
            let mut step = steps[0].clone();
            step["stepId"] = format!("step-{n}").into();
            steps.push(step);
        }
    });
    let _ = ask(&root, "step-500", &[]).is(10, "reattach");
    let _ = ask(&root, "one-more", &[]).is(0, "reserved");
    let run = root.json(&["inspect", "--run", "run"]).is(0, "ok");
    assert_eq!(run.json()["steps"].as_array().unwrap().len(), 1002);
}
