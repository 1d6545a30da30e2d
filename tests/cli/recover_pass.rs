//! `recover` as one pass over many tasks: told whole, beside other calls and damaged rows, after dead ones.

use crate::common::{Task, TestRoot};
use crate::kit::{history, receipts, refused, row_path};
use crate::recover::{idle, launch, orphan, recovered, told, unknown, working};

/// One task for every action and every reason.
fn mixed(root: &TestRoot) -> Vec<Task<'_>> {
    vec![
        orphan(root, "a-queued", |_| ()),
        orphan(root, "b-starting", launch),
        orphan(root, "c-idle", idle),
        orphan(root, "d-working", working),
        unknown(root, "e-unknown", working),
        root.reserve("f-alive").launched(),
        unknown(root, "g-starting", launch),
    ]
}

#[test]
fn the_pass_is_told_whole_and_strictness_refuses_what_it_left() {
    let root = TestRoot::new();
    let tasks = mixed(&root);
    let other = TestRoot::new();
    let same = mixed(&other);
    let text = root.run(&["recover"]);
    insta::assert_snapshot!(text, @"
    exit 0
    --- stdout
    2 task(s) recovered, 4 left alone, 1 at work
      b-starting: reverted (its launch never admitted a turn; it is queued again)
      c-idle: settled (its owner is dead and nothing was in flight: it is settled)
      a-queued: left alone, owner-dead-unsettled (its maker is dead; whoever wants it launches it)
      d-working: left alone, owner-dead-unsettled (its owner died with a turn in flight, and nothing proves that turn over)
      e-unknown: left alone, owner-unknown (nobody can tell whether its owner is gone)
      g-starting: left alone, owner-unknown (it is starting, and nobody can tell whether its launcher is gone)
    hint: each of these says what is missing: lychgate inspect TASK --explain
    ");
    let strict = other.json(&["recover", "--strict"]).is(11, "recovery-incomplete");
    insta::assert_debug_snapshot!(told(&strict), @r#"
    [
        "b-starting reverted",
        "c-idle settled",
        "a-queued left owner-dead-unsettled",
        "d-working left owner-dead-unsettled",
        "e-unknown left owner-unknown",
        "g-starting left owner-unknown",
    ]
    "#);
    let again = other.run(&["recover", "--strict"]);
    assert_eq!(again.exit, 11, "{again}");
    insta::assert_snapshot!(again, @"
    exit 11
    --- stdout
    0 task(s) recovered, 5 left alone, 1 at work
      a-queued: left alone, owner-dead-unsettled (its maker is dead; whoever wants it launches it)
      b-starting: left alone, owner-dead-unsettled (its maker is dead; whoever wants it launches it)
      d-working: left alone, owner-dead-unsettled (its owner died with a turn in flight, and nothing proves that turn over)
      e-unknown: left alone, owner-unknown (nobody can tell whether its owner is gone)
      g-starting: left alone, owner-unknown (it is starting, and nobody can tell whether its launcher is gone)
    --- stderr
    lychgate recover: unresolved (recovery-incomplete): 0 task(s) recovered, 5 left alone, 1 at work
    hint: each of these says what is missing: lychgate inspect TASK --explain
    ");
    insta::assert_snapshot!(other.run(&["recover", "--format", "sh"]), @"
    exit 0
    --- stdout
    unset LYCHGATE_EXIT LYCHGATE_CODE LYCHGATE_ANSWER_ROOT LYCHGATE_REQUEST_ID LYCHGATE_ANSWER_TASK LYCHGATE_ANSWER_ATTEMPT LYCHGATE_MESSAGE LYCHGATE_HINT LYCHGATE_RECOVERED_COUNT LYCHGATE_LEFT_COUNT LYCHGATE_AT_WORK
    LYCHGATE_EXIT='0'
    LYCHGATE_CODE='recovered'
    LYCHGATE_RECOVERED_COUNT='0'
    LYCHGATE_LEFT_COUNT='5'
    LYCHGATE_AT_WORK='1'
    LYCHGATE_ANSWER_ROOT='[DIR]/root'
    LYCHGATE_REQUEST_ID='req_c22fea8f7acdd403'
    LYCHGATE_MESSAGE='0 task(s) recovered, 5 left alone, 1 at work'
    LYCHGATE_HINT='each of these says what is missing: lychgate inspect TASK --explain'
    ");
    drop((tasks, same));
}

#[test]
fn a_row_that_cannot_be_read_or_is_held_is_left_and_the_others_are_recovered() {
    let root = TestRoot::new();
    let (broken, held, dead) =
        (root.reserve("broken"), root.reserve("held").launched(), orphan(&root, "dead", launch));
    std::fs::write(row_path(&root, "broken"), b"{}").unwrap();
    let holder = root.paused(&["stop", "held"], "locked-task");
    root.wait_reached("locked-task");
    let out = root.json(&["recover", "--lock-wait", "0"]).is(0, "recovered");
    let mut lines = told(&out);
    lines.sort();
    insta::assert_debug_snapshot!(lines, @r#"
    [
        "broken left row-unreadable",
        "dead reverted",
        "held left busy",
    ]
    "#);
    root.go("locked-task");
    root.finish(holder).is(0, "stopped");
    refused(&root, &["recover", "dead", "broken"], 65, "row-unreadable");
    drop((broken, held, dead));
}

#[test]
fn a_name_that_is_wrong_is_refused_before_anything_is_changed() {
    let root = TestRoot::new();
    let dead = orphan(&root, "dead", launch);
    let out = refused(&root, &["recover", "dead", "nobody"], 10, "no-task-record");
    assert_eq!(out.get("taskId"), "nobody");
    assert_eq!(recovered(&dead, &[]), "reverted");
}

#[test]
fn two_passes_at_once_do_everything_once() {
    let root = TestRoot::new();
    for n in 0..6 {
        drop((orphan(&root, &format!("idle{n}"), idle), orphan(&root, &format!("starting{n}"), launch)));
    }
    let calls = [0, 1, 2].map(|_| root.command(&["recover", "--lock-wait", "1m", "--json"]).spawn().unwrap());
    let mut done: Vec<String> =
        calls.into_iter().flat_map(|call| told(&root.finish(call).is(0, "recovered"))).collect();
    done.retain(|line| !line.contains("left"));
    done.sort();
    insta::assert_snapshot!(done.join("\n"), @"
    idle0 settled
    idle1 settled
    idle2 settled
    idle3 settled
    idle4 settled
    idle5 settled
    starting0 reverted
    starting1 reverted
    starting2 reverted
    starting3 reverted
    starting4 reverted
    starting5 reverted
    ");
    for n in 0..6 {
        let passes = history(&root, &format!("idle{n}")).matches("recover |").count();
        assert_eq!(passes, 1, "{}", history(&root, &format!("idle{n}")));
    }
    assert_eq!(receipts(&root).lines().count(), 12);
}

#[test]
fn what_a_dead_call_left_half_done_is_finished() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let turn = task.turn();
    let args = ["settle", "t1", "--turn", &turn, "--close", "--token", &task.token];
    let mut call = root.paused(&args, "after-commit-point");
    root.wait_reached("after-commit-point");
    call.kill().unwrap();
    call.wait().unwrap();
    assert_eq!(task.outcome(), "terminal-no-report", "its commit happened");
    let whole = |root: &TestRoot| root.tree().contains(&format!("{}.json", task.attempt));
    assert!(!whole(&root), "{}", root.tree());
    root.json(&["recover"]).is(0, "recovered");
    assert!(whole(&root), "{}", root.tree());
    insta::assert_snapshot!(root.tree(), @"
    config.json
    secret
    sessions/
    sessions/ws/
    sessions/ws/subagent-attempt-settlements/
    sessions/ws/subagent-attempt-settlements/t1/
    sessions/ws/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
    tasks/
    tasks/t1/
    tasks/t1/row.json
    ");
}

#[test]
fn a_pass_over_nothing_recovers_nothing() {
    let root = TestRoot::new();
    insta::assert_snapshot!(root.json(&["recover", "--strict"]), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"recover","code":"recovered","root":"[DIR]/root","requestId":"req_f0d5b1efa390b1eb","recovered":[],"left":[],"atWork":0,"message":"0 task(s) recovered, 0 left alone, 0 at work"}
    "#);
}
