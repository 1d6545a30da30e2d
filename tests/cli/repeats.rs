//! A lost answer is harmless: a repeated call gives the first answer again, and has one effect.

use crate::common::{Outcome, Task, TestRoot};
use crate::owners::Process;

/// Makes a call twice under one request id. The second answer is the first one byte for byte, in every form,
/// and changes nothing; the same id with something else is refused, and changes nothing either.
#[track_caller]
fn twice(root: &TestRoot, args: &[&str], other: &[&str]) -> Outcome {
    let id = ["--request-id", "the same call"];
    let before = root.bytes();
    let first = root.json(&[args, &id].concat());
    let after = root.bytes();
    assert_ne!(before, after, "a call worth repeating changes something: {first}");
    let again = root.json(&[args, &id].concat());
    assert_eq!((again.exit, &again.stdout, &again.stderr), (first.exit, &first.stdout, &first.stderr));
    for format in ["text", "sh"] {
        let form = ["--format", format, "--show-token"];
        assert_eq!(root.run(&[args, &id, &form].concat()).exit, first.exit);
    }
    let _ = root.json(&[other, &id].concat()).is(10, "request-id-reused");
    assert_eq!(root.bytes(), after);
    first
}

#[test]
fn a_reservation_is_repeated() {
    let root = TestRoot::new();
    let reserve = ["reserve", "t1", "--parent", "ws"];
    let first = twice(&root, &reserve, &["reserve", "t1", "--parent", "other"]).is(0, "reserved");
    assert!(first.get("token").starts_with("tok_"), "the token is given again: {first}");
    let again = root.json(&[&reserve[..], &["--request-id", "another call"]].concat());
    let _ = again.is(10, "task-exists");
    let _ = root.json(&["stop", "t1", "--request-id", "the same call"]).is(10, "request-id-reused");
}

#[test]
fn a_reservation_that_makes_up_its_name_is_repeated() {
    let root = TestRoot::new();
    let step = |run: &'static str, hash: &'static str| {
        ["reserve", "--parent", "ws", "--run", run, "--step", "s", "--input-hash", hash]
    };
    let _ = root.json(&step("r", "h")).is(0, "reserved");
    let second = twice(&root, &step("r", "h"), &step("r", "other")).is(0, "reserved");
    assert_eq!(second.get("taskId"), "r.s.2");
}

#[test]
fn every_kind_of_rotation_is_repeated() {
    let root = TestRoot::new();
    let task = root.reserve("own");
    let launch = ["rotate", "own", "--as", "launch", "--token", &task.token];
    let _ = twice(&root, &launch, &["rotate", "own", "--as", "launch", "--owner", "x"]).is(0, "launched");

    let _ = root.reserve("t1");
    let rotate = |kind: &'static str| ["rotate", "t1", "--as", kind];
    let launched = twice(&root, &rotate("launch"), &["stop", "t1"]).is(0, "launched");
    let admit = ["admit", "t1", "--attempt", &launched.get("attemptId"), "--token", &launched.get("token")];
    let _ = root.json(&admit).is(0, "registered");
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");

    let reawaken = ["rotate", "t1", "--as", "reawaken", "--request-id", "again"];
    let first = root.json(&reawaken).is(0, "rotated");
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    let other = root.json(&["rotate", "t1", "--as", "reawaken"]).is(0, "rotated");
    assert_eq!(root.json(&reawaken).stdout, first.stdout, "though the task has another attempt now");
    assert_eq!(root.row("t1")["taskAttemptId"], other.get("attemptId"));

    let _ = root.reserve_unknown("t2").launched();
    let startup = ["rotate", "t2", "--as", "startup", "--unproven"];
    let _ = twice(&root, &startup, &["rotate", "t2", "--as", "startup"]).is(0, "rotated");
}

#[test]
fn a_rotation_is_repeated_after_its_owner_has_died() {
    let root = TestRoot::new();
    let _ = root.reserve("t1");
    let owner = Process::start();
    let pid = owner.pid();
    let launch = ["rotate", "t1", "--as", "launch", "--owner-pid", &pid, "--request-id", "r"];
    let first = root.json(&launch).is(0, "launched");
    owner.die();
    assert_eq!(root.json(&launch).stdout, first.stdout);
}

#[test]
fn sends_are_registered_and_enqueued_once() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let register = ["admit", "t1", "--attempt", &task.attempt, "--token", &task.token];
    let other = [&register[..], &["--queued"]].concat();
    let send = twice(&root, &register, &other).is(0, "registered").get("sendId");
    assert_eq!(root.row("t1")["sendsMinted"], 1);
    let enqueue = ["admit", "t1", "--send", &send, "--queued", "--token", &task.token, "--request-id", "q"];
    let first = root.json(&enqueue).is(0, "enqueued");
    assert_eq!(root.json(&enqueue).stdout, first.stdout);
}

/// The gate's answer is given once: its repeat names the same turn, and grants nothing.
fn gate_twice(root: &TestRoot, task: &Task, through: &[&str]) -> String {
    let gate =
        [&["admit", "t1", "--start", "--token", &task.token, "--request-id", "gate"], through].concat();
    let first = root.json(&gate).is(0, "admitted");
    let after = root.bytes();
    let again = root.json(&gate).is(10, "already-admitted");
    for id in ["taskId", "attemptId", "sendId", "turnId"] {
        assert_eq!(again.get(id), first.get(id), "{again}");
    }
    let labelled = [&gate[..], &["--label", "x"]].concat();
    let _ = root.json(&labelled).is(10, "request-id-reused");
    assert_eq!(root.bytes(), after);
    first.get("turnId")
}

#[test]
fn the_gate_answers_a_turn_once() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let turn = gate_twice(&root, &task, &["--attempt", &task.attempt]);
    assert_eq!(root.row("t1")["turnsMinted"], 1);
    // Who knows that it never started may settle it, and the repeat still grants nothing.
    let _ = task.settle(&turn).is(0, "turn-settled");
    let gate = ["admit", "t1", "--start", "--token", &task.token, "--request-id", "gate"];
    let again = root.run(&[&gate[..], &["--attempt", &task.attempt]].concat());
    insta::assert_snapshot!(again, @"
    exit 10
    --- stderr
    lychgate admit: refused (already-admitted): this call was answered before, and that answer authorised turn turn_de15204e35ca515e0001, once
    hint: nobody may start on this answer; who knows that the turn never started may settle it: lychgate settle t1 --turn turn_de15204e35ca515e0001
    ");
    assert_eq!(root.row("t1")["turnsMinted"], 1);
}

#[test]
fn the_gate_answers_a_registered_send_once() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let register = ["admit", "t1", "--attempt", &task.attempt, "--token", &task.token];
    let send = root.json(&register).is(0, "registered").get("sendId");
    let _turn = gate_twice(&root, &task, &["--send", &send]);
}

#[test]
fn a_refusal_that_discharged_its_send_is_repeated() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    let register = ["admit", "t1", "--attempt", &task.attempt, "--token", &task.token];
    let send = root.json(&register).is(0, "registered").get("sendId");
    let gate = ["admit", "t1", "--send", &send, "--start", "--token", &task.token];
    let other = [&gate[..], &["--label", "x"]].concat();
    let refused = twice(&root, &gate, &other).is(10, "not-launched");
    assert_eq!(refused.get("hint"), "lychgate rotate t1 --as launch");
}

#[test]
fn a_stop_is_repeated_with_the_same_cleanups_and_one_epoch() {
    let root = TestRoot::new();
    let _ = root.reserve("t1").launched();
    let debtor = Process::start();
    let pid = debtor.pid();
    let stop = ["stop", "t1", "--cleanup", "worktree", "--owner-pid", &pid];
    let first = twice(&root, &stop, &["stop", "t1"]).is(0, "stopping");
    debtor.die();
    let again = root.json(&[&stop[..], &["--request-id", "the same call"]].concat());
    assert_eq!(again.stdout, first.stdout, "though the debtor is gone");
    assert_eq!(root.row("t1")["stopEpoch"], 1);
    assert_eq!(root.row("t1")["settlement"]["cleanups"].as_array().unwrap().len(), 1);
}

#[test]
fn a_stop_of_several_is_repeated_and_finishes_what_was_not_done() {
    let root = TestRoot::new();
    let _ = root.reserve("p");
    let _ = root.json(&["reserve", "c", "--parent", "p"]).is(0, "reserved");
    let tree = ["stop", "p", "--tree", "--request-id", "r"];
    let first = root.json(&tree).is(0, "stopped");
    let after = root.bytes();
    assert_eq!(root.json(&tree).stdout, first.stdout);
    assert_eq!(root.bytes(), after);

    let _ = root.reserve("a");
    let _ = root.reserve("b");
    let _ = root.json(&["stop", "a", "--request-id", "s"]).is(0, "stopped");
    let both = root.json(&["stop", "a", "b", "--request-id", "s"]).is(0, "stopped");
    assert_eq!(
        (both.get("tasks.0.stopEpoch"), both.get("tasks.1.stopEpoch")),
        ("1".to_owned(), "1".to_owned())
    );
}

#[test]
fn other_copies_of_the_receipt_are_another_call() {
    let root = TestRoot::new();
    let _ = root.reserve("t1");
    let _ = twice(&root, &["stop", "t1"], &["stop", "t1", "--receipt", "parent-only"]).is(0, "stopped");
}

#[test]
fn the_call_of_an_unsettled_turn_is_remembered_beyond_the_latest_64() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let gate = ["admit", "t1", "--attempt", &task.attempt, "--start", "--token", &task.token];
    let gate = [&gate[..], &["--request-id", "gate"]].concat();
    let turn = root.json(&gate).is(0, "admitted").get("turnId");
    let first = ["stop", "t1", "--request-id", "first"];
    assert_eq!(root.json(&first).is(0, "stopping").get("stopEpoch"), "1");
    for _ in 0..64 {
        let _ = root.json(&["stop", "t1"]).is(0, "already-stopping");
    }
    assert_eq!(root.json(&gate).is(10, "already-admitted").get("turnId"), turn);
    assert_eq!(
        root.json(&first).is(0, "already-stopping").get("stopEpoch"),
        "66",
        "an old call is a new one"
    );
}

#[test]
fn a_request_id_is_a_short_text_and_every_answer_carries_one() {
    let root = TestRoot::new();
    for wrong in ["", "a\nb", &"x".repeat(129)] {
        let _ = root.json(&["reserve", "t1", "--parent", "ws", "--request-id", wrong]).is(64, "usage");
    }
    assert_eq!(root.tree(), "");
    for (args, code) in [(["reserve", "t1"], "reserved"), (["reserve", "t1"], "task-exists")] {
        let out = root.json(&[&args[..], &["--parent", "ws"]].concat());
        assert_eq!(out.code(), code);
        assert!(out.get("requestId").starts_with("req_"), "{out}");
    }
    let named = root.json(&["stop", "t1", "--request-id", "漢 'x'"]);
    assert_eq!(named.get("requestId"), "漢 'x'");
}
