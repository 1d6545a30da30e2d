//! `stop --tree`: the named task first, then everything below it.

use crate::common::{Outcome, Task, TestRoot};

/// `p`, its children `a` and `b`, the grandchild `a1`, and `q` beside them.
fn family(root: &TestRoot) -> Task<'_> {
    let parent = root.reserve("p").launched();
    for (child, parent) in [("b", "p"), ("a", "p"), ("a1", "a")] {
        let _ = root.json(&["reserve", child, "--parent", parent]).is(0, "reserved");
    }
    let _ = root.reserve("q");
    parent
}

fn stopped(out: &Outcome) -> Vec<String> {
    let tasks = out.json()["tasks"].as_array().unwrap().clone();
    let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    tasks.iter().map(|task| format!("{} {}", word(&task["taskId"]), word(&task["code"]))).collect()
}

fn epoch(root: &TestRoot, task: &str) -> u64 {
    root.row(task)["stopEpoch"].as_u64().unwrap()
}

#[test]
fn a_tree_is_stopped_root_first_and_nothing_beside_it() {
    let root = TestRoot::new();
    let _parent = family(&root);
    let out = root.json(&["stop", "p", "--tree", "--reason", "wrong branch"]).is(0, "stopped");
    assert_eq!(stopped(&out), ["p stopped", "a stopped", "b stopped", "a1 stopped"]);
    assert_eq!(root.row("a1")["settlement"]["reason"], "wrong branch");
    assert_eq!(epoch(&root, "q"), 0);
    let again = root.json(&["stop", "p", "--tree"]).is(0, "stopped");
    assert_eq!(stopped(&again)[3], "a1 already-stopped");
    insta::assert_snapshot!(root.run(&["stop", "a", "--tree"]), @"
    exit 0
    --- stdout
    2 task(s) stopped or stopping
      a: already-stopped (task `a` was stopped or settled before)
      a1: already-stopped (task `a1` was stopped or settled before)
    ");
}

#[test]
fn without_tree_the_children_are_left_running() {
    let root = TestRoot::new();
    let _parent = family(&root);
    let _ = root.json(&["stop", "p"]).is(0, "stopped");
    assert_eq!((epoch(&root, "a"), &root.row("a")["taskStatus"]), (0, &"queued".into()));
}

#[test]
fn a_workspace_that_is_no_task_has_its_tasks_stopped() {
    let root = TestRoot::new();
    let _parent = family(&root);
    let out = root.json(&["stop", "ws", "--tree"]).is(0, "stopped");
    assert_eq!(stopped(&out), ["p stopped", "q stopped", "a stopped", "b stopped", "a1 stopped"]);
    // A workspace with nothing below it is most likely mistyped.
    let _ = root.json(&["stop", "wx", "--tree"]).is(10, "no-task-record");
}

#[test]
fn a_child_that_is_being_reserved_meanwhile_is_stopped_too() {
    let root = TestRoot::new();
    let _parent = family(&root);
    let reserve = root.paused(&["reserve", "late", "--parent", "a1"], "locked");
    root.wait_reached("locked");
    let stop = ["stop", "p", "--tree", "--lock-wait", "60s", "--json"];
    let stop = root.command(&stop).spawn().unwrap();
    root.go("locked");
    let _ = root.finish(reserve).is(0, "reserved");
    let out = root.finish(stop).is(0, "stopped");
    assert_eq!(stopped(&out).last().unwrap(), "late stopped");
    let _ = root.json(&["reserve", "later", "--parent", "a1"]).is(10, "ancestor-stopped");
}

#[test]
fn a_tree_with_work_in_flight_is_stopping() {
    let root = TestRoot::new();
    let _parent = family(&root);
    let launched = root.json(&["rotate", "a1", "--as", "launch"]).is(0, "launched");
    let (attempt, token) = (launched.get("attemptId"), launched.get("token"));
    let admit = ["admit", "a1", "--attempt", &attempt, "--start", "--token", &token];
    let turn = root.json(&admit).is(0, "admitted").get("turnId");
    let out = root.json(&["stop", "p", "--tree", "--wait", "0"]).is(12, "stopping");
    assert_eq!(out.get("tasks.3.owed.0.turnId"), turn);
    let _ = root.json(&["stop", "p", "--tree"]).is(0, "stopping");
    let _ = root.json(&["settle", "a1", "--turn", &turn, "--token", &token]).is(0, "turn-settled");
    let _ = root.json(&["stop", "p", "--tree", "--wait", "0"]).is(0, "stopped");
}

#[test]
fn a_guard_is_about_the_named_task_and_decides_for_the_tree() {
    let root = TestRoot::new();
    let parent = family(&root);
    let before = root.bytes();
    let other = ["stop", "p", "--tree", "--attempt", "att_0000000000000000"];
    let refused = root.json(&other).is(10, "stale-attempt");
    assert_eq!(stopped(&refused), ["p stale-attempt"]);
    assert_eq!(root.bytes(), before, "a tree that was not meant is left alone");
    let out = root.json(&["stop", "p", "--tree", "--attempt", &parent.attempt]).is(0, "stopped");
    assert_eq!(stopped(&out).len(), 4);
}

#[test]
fn a_cleanup_is_a_debt_of_the_named_task() {
    let root = TestRoot::new();
    let _parent = family(&root);
    let _ = root.json(&["stop", "b"]).is(0, "stopped");
    let out = root.json(&["stop", "p", "--tree", "--cleanup", "worktree"]).is(0, "stopping");
    assert_eq!(stopped(&out), ["p stopping", "a stopped", "b already-stopped", "a1 stopped"]);
    let _ = root.json(&["settle", "p", "--cleanup", &out.get("tasks.0.cleanupId")]).is(0, "cleanup-paid");
    assert_eq!(root.row("p")["settlement"]["settled"]["receipt"], "launch-failed");
}
