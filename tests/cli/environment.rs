//! `LYCHGATE_TASK`, `LYCHGATE_ATTEMPT` and `LYCHGATE_TOKEN` belong together.

use crate::common::{Outcome, Task, TestRoot};

/// Runs a call as a worker that was started for `task`, with `changed` variables.
fn as_worker(task: &Task, changed: &[(&str, &str)], args: &[&str]) -> Outcome {
    let mut command = task.root.command(args);
    command.arg("--json");
    command.env("LYCHGATE_TASK", &task.id);
    command.env("LYCHGATE_ATTEMPT", &task.attempt);
    command.env("LYCHGATE_TOKEN", &task.token);
    command.envs(changed.iter().copied());
    task.root.finish(command.spawn().unwrap())
}

#[test]
fn a_worker_need_not_say_for_which_task_it_asks() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    for args in [&["admit"][..], &["admit", "t1"], &["admit", "--attempt", &task.attempt]] {
        let send = as_worker(&task, &[], args).is(0, "registered").get("sendId");
        let _ = as_worker(&task, &[], &["admit", "--send", &send, "--start"]).is(0, "admitted");
    }
    assert_eq!(as_worker(&task, &[], &["stop"]).is(0, "stopping").get("taskId"), "t1");
}

#[test]
fn another_task_than_the_environments_gets_nothing_from_it() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let other = root.reserve("t2").launched();
    let before = root.bytes();
    let _ = as_worker(&task, &[], &["admit", "t2"]).is(64, "usage");
    let _ = as_worker(&other, &[("LYCHGATE_TASK", "t1")], &["admit", "t2", "--attempt", &other.attempt])
        .is(10, "not-owner");
    let _ = as_worker(&task, &[("LYCHGATE_TASK", "t2")], &["admit"]).is(10, "stale-attempt");
    assert_eq!(root.bytes(), before);
    let _ = as_worker(&task, &[], &["stop", "t2"]).is(0, "stopped");
}

#[test]
fn empty_variables_are_unset_ones() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let before = root.bytes();
    let empty = |name: &'static str, args: &[&str]| as_worker(&task, &[(name, "")], args);
    let _ = empty("LYCHGATE_TASK", &["admit"]).is(64, "usage");
    let _ = empty("LYCHGATE_TASK", &["stop"]).is(64, "usage");
    let _ = empty("LYCHGATE_TASK", &["admit", "t1", "--attempt", &task.attempt]).is(10, "not-owner");
    let _ = empty("LYCHGATE_ATTEMPT", &["admit"]).is(64, "usage");
    let _ = empty("LYCHGATE_TOKEN", &["admit"]).is(10, "not-owner");
    let _ = as_worker(&task, &[("LYCHGATE_ATTEMPT", "nonsense")], &["admit"]).is(64, "usage");
    let _ = as_worker(&task, &[("LYCHGATE_TOKEN", "nonsense")], &["admit"]).is(10, "not-owner");
    assert_eq!(root.bytes(), before);
    let token = ["admit", "--token", &task.token];
    let _ = as_worker(&task, &[("LYCHGATE_TOKEN", "nonsense")], &token).is(0, "registered");
}

#[test]
fn the_environments_attempt_guards_a_stop_of_its_own_task() {
    let root = TestRoot::new();
    let mut task = root.reserve("t1").launched();
    let old = task.attempt.clone();
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    let _ = task.rotated("reawaken");
    let before = root.bytes();
    for args in [&["stop"][..], &["stop", "t1"]] {
        let refused = as_worker(&task, &[("LYCHGATE_ATTEMPT", &old)], args).is(10, "stale-attempt");
        assert_eq!(refused.get("currentAttemptId"), task.attempt);
    }
    assert_eq!(root.bytes(), before);
    let _ = as_worker(&task, &[], &["stop"]).is(0, "stopped");
}

#[test]
fn only_a_workers_commands_read_the_identity() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    let taken = as_worker(&task, &[], &["rotate", "t1", "--as", "launch"]).is(0, "launched");
    assert_ne!(taken.get("attemptId"), task.attempt, "a rotation is told its token, or takes over");
    let _ = as_worker(&task, &[], &["rotate", "--as", "launch"]).is(64, "usage");
    let _ = as_worker(&task, &[], &["reserve", "--parent", "ws"]).is(64, "usage");
}
