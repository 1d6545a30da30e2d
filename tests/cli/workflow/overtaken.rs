//! What another call did between a look without locks and the locks.

use super::{ask, child, end, events};
use crate::common::TestRoot;

const THERE: [&str; 9] =
    ["reserve", "--run", "run", "--step", "scan", "--input-hash", "h", "--parent", "other"];

#[test]
fn a_made_up_name_that_another_session_took_meanwhile_is_made_up_anew() {
    let root = TestRoot::new();
    let _root_exists = child(&root, "plan");
    let call = root.paused(&THERE, "looked");
    root.wait_reached("looked");
    assert_eq!(ask(&root, "scan", &[]).is(0, "reserved").get("taskId"), "run.scan.1");
    root.go("looked");
    assert_eq!(root.finish(call).is(0, "reserved").get("taskId"), "run.scan.2");
}

#[test]
fn a_made_up_name_of_a_replacement_is_made_up_anew_too() {
    let root = TestRoot::new();
    let old = child(&root, "scan").stopped();
    let nonce = super::paths::claim(&root, &old.task, &old.attempt, &[]).is(0, "claimed").get("nonce");
    let call = root.paused(&["reserve", "--replaces", &old.task, "--nonce", &nonce], "looked");
    root.wait_reached("looked");
    assert_eq!(root.json(&THERE).is(0, "reserved").get("taskId"), "run.scan.2");
    root.go("looked");
    assert_eq!(root.finish(call).is(0, "reserved").get("taskId"), "run.scan.3");
}

#[test]
fn a_step_that_got_another_child_meanwhile_is_looked_at_anew() {
    let root = TestRoot::new();
    let _old = child(&root, "scan").stopped();
    let args = ["step", "fail", "--run", "run", "--step", "scan", "--input-hash", "h", "--parent", "ws"];
    let call = root.paused(&args, "looked");
    root.wait_reached("looked");
    let new = ask(&root, "scan", &[]).is(0, "reserved");
    root.go("looked");
    assert_eq!(root.finish(call).is(0, "step-failed").get("taskId"), new.get("taskId"));
    assert_eq!(events(&root).last().unwrap(), "run.scan.2 started -> failed");
}

#[test]
fn a_lost_answer_is_given_again_when_only_the_child_remembers_the_call() {
    let root = TestRoot::new();
    let first = ask(&root, "scan", &["--request-id", "one"]).is(0, "reserved");
    for n in 0..65 {
        let step = format!("step-{n}");
        let _ = ask(&root, &step, &[]).is(0, "reserved");
    }
    let again = ask(&root, "scan", &["--request-id", "one"]).is(0, "reserved");
    assert_eq!(first.stdout, again.stdout, "byte for byte");
    let _ = end(&root, "fail", "scan", &[]).is(0, "step-failed");
}

#[test]
fn a_repeat_writes_the_child_anew_and_not_only_the_run() {
    let root = TestRoot::new();
    let _first = ask(&root, "scan", &["--request-id", "one"]).is(0, "reserved");
    let inode = || {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(root.path().join("tasks/run.scan.1/row.json")).unwrap().ino()
    };
    let before = inode();
    let _again = ask(&root, "scan", &["--request-id", "one"]).is(0, "reserved");
    assert_ne!(inode(), before, "what an answer rests on is made durable by a whole commit");
}
