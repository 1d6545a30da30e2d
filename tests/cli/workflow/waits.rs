//! `wait`: it ends when the outcome is there, when it can no longer come, or when the time is over.

use super::{child, end};
use crate::common::TestRoot;

#[test]
fn a_wait_ends_when_the_report_comes() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").launched();
    let _turn = scan.turn();
    let waiting = root.command(&["wait", &scan.task, "--timeout", "30s", "--json"]).spawn().unwrap();
    let by_step = root
        .command(&["wait", "--run", "run", "--step", "scan", "--timeout", "30s", "--json"])
        .spawn()
        .unwrap();
    let _ = scan.report().is(0, "report-accepted");
    assert_eq!(root.finish(waiting).is(0, "reached").get("outcome"), "reported");
    let _ = root.finish(by_step).is(0, "reached");
}

#[test]
fn a_wait_ends_when_the_outcome_can_no_longer_come() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").stopped();
    let out = root.json(&["wait", &scan.task, "--timeout", "30s"]).is(10, "ended-otherwise");
    assert_eq!(out.get("outcome"), "terminal-no-report");
    let _ = root.json(&["wait", &scan.task, "--for", "terminal-no-report"]).is(0, "reached");
}

#[test]
fn a_wait_gives_up_when_its_time_is_over_and_changes_nothing() {
    let root = TestRoot::new();
    let scan = child(&root, "scan");
    let before = root.bytes();
    let out = root.json(&["wait", &scan.task, "--timeout", "20ms"]).is(12, "not-yet");
    assert_eq!(out.get("outcome"), "live");
    let _ = root.json(&["wait", "nobody", "--timeout", "0"]).is(10, "no-task-record");
    let _ = root.json(&["wait", "--run", "run", "--step", "nope", "--timeout", "0"]).is(10, "no-such-step");
    assert_eq!(root.bytes(), before);
    let _ = end(&root, "fail", "scan", &[]);
}
