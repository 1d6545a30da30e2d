//! Test 1e, i to vii: settlement shuts admission first, and what that means for whoever is on the way to the
//! gate. Pending sends are discharged by the Stop itself, so no further Stop is owed for them.

use crate::actors::{AT_ONCE, Owner, PATIENT};
use crate::common::TestRoot;

#[test]
fn test_1e_i_a_continuation_is_refused_while_the_settlement_is_under_way() {
    let root = TestRoot::new();
    let mut task = root.reserve("t").launched();
    let turn = task.turn();
    let _ = task.settle(&turn).is(0, "turn-settled");
    let parked = task.send();
    // The settlement is committed and its receipt is still on the way to its place.
    let settling = root.park(&["settle", "t", "--token", &task.token], "after-commit-point");
    let gate = ["admit", "t", "--send", &parked, "--start", "--token", &task.token];
    let _ = root.json(&[&gate[..], &PATIENT].concat()).is(10, "attempt-settled");
    let _ = settling.go().is(0, "settled");
    let _ = task.gate(&parked).is(10, "attempt-settled");
    assert_eq!(root.row("t")["taskAttemptId"], task.attempt);
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
    let _ = task.rotated_as_owner("reawaken", &[]);
    let _ = task.begin().is(0, "admitted");
}

#[test]
fn test_1e_i_a_continuation_is_refused_while_the_attempt_is_closing() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    let parked = task.send();
    let stopped = task.stop().is(0, "stopping");
    assert_eq!(stopped.get("canceledSends"), "1");
    let _ = root.refuses(
        10,
        "attempt-closing",
        &["admit", "t", "--send", &parked, "--start", "--token", &task.token],
    );
    let _ = task.begin().is(10, "attempt-closing");
    let _ = task.settle(&turn).is(0, "turn-settled");
    let _ = task.begin().is(10, "attempt-settled");
}

#[test]
fn test_1e_ib_a_send_of_a_superseded_restart_is_refused_and_its_successor_runs() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let task = root.reserve_for("t", &owner).launched();
    owner.kill();
    let y = root.json(&["rotate", "t", "--as", "startup"]).is(0, "rotated").get("attemptId");
    let pending = root.json(&["admit", "t", "--attempt", &y]).is(0, "registered").get("sendId");
    let z = root.json(&["rotate", "t", "--as", "startup"]).is(0, "rotated").get("attemptId");
    let _ = root.refuses(10, "stale-attempt", &["admit", "t", "--send", &pending, "--start"]);
    let _ = root.refuses(10, "stale-attempt", &["admit", "t", "--attempt", &y, "--start"]);
    let _ = root.json(&["admit", "t", "--attempt", &z, "--start"]).is(0, "admitted");
    drop(task);
}

#[test]
fn test_1e_ic_a_disposed_send_is_refused_for_ever_and_its_sibling_admits() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    for how in ["refused", "no-work", "canceled"] {
        for send in [task.send(), task.queued_send()] {
            let args = ["settle", "t", "--send", &send, "--as", how, "--token", &task.token];
            let _ = root.json(&args).is(0, "send-settled");
            let _ = root.json(&args).is(0, "already-settled");
            let _ = task.gate(&send).is(10, "turn-ended");
            let args = ["admit", "t", "--send", &send, "--queued", "--token", &task.token];
            let _ = root.refuses(10, "turn-ended", &args);
        }
    }
    let _ = task.begin().is(0, "admitted");
}

#[test]
fn test_1e_id_a_settled_predecessor_never_shuts_its_successor() {
    let root = TestRoot::new();
    let mut task = root.reserve("t").launched();
    let _ = task.stop().is(0, "stopped");
    let _ = task.rotated_as_owner("reawaken", &[]);
    let _ = task.begin().is(0, "admitted");
    assert_eq!(task.seen("phase"), "open");
}

#[test]
fn test_1e_id_a_stop_of_the_successor_between_its_rotation_and_its_send_stands() {
    let root = TestRoot::new();
    let mut task = root.reserve("t").launched();
    let _ = task.stop().is(0, "stopped");
    let _ = task.rotated_as_owner("reawaken", &[]);
    let send = task.send();
    let _ = task.stop().is(0, "stopped");
    let _ = task.gate(&send).is(10, "attempt-settled");
    let _ = task.begin().is(10, "attempt-settled");
    assert_eq!(task.seen("phase"), "settled");
    assert!(task.receipts().contains(&task.attempt), "an idle reawakened attempt is settled with a receipt");
}

#[test]
fn test_1e_ii_a_turn_admitted_before_the_stop_holds_it_open_and_leaves_one_receipt() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let send = task.send();
    // The gate has the lock and has decided, when the Stop arrives.
    let gate =
        root.park(&["admit", "t", "--send", &send, "--start", "--token", &task.token], "before-rename");
    let stop = root.start(&[&["stop", "t"][..], &PATIENT].concat());
    let turn = gate.go().is(0, "admitted").get("turnId");
    let stopping = root.finish(stop).is(0, "stopping");
    assert_eq!(stopping.get("owed.0.turnId"), turn);
    assert_eq!(task.receipts(), Vec::<String>::new());
    let settled = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(settled.get("receipt"), "execution-settled");
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
    let _ = task.settle(&turn).is(0, "already-settled");
}

/// Rules 43 and 94.
#[test]
fn test_1e_ii_a_stop_before_the_gate_discharges_the_pending_send_and_is_settled_at_once() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let send = task.send();
    let stop = root.park(&["stop", "t"], "before-rename");
    let gate = root
        .start(&[&["admit", "t", "--send", &send, "--start", "--token", &task.token][..], &PATIENT].concat());
    let stopped = stop.go().is(0, "stopped");
    assert_eq!((stopped.get("canceledSends"), stopped.get("receipt")), ("1".into(), "launch-failed".into()));
    let _ = root.finish(gate).is(10, "attempt-settled");
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
}

#[test]
fn test_1e_iii_a_terminal_failure_shuts_the_gate_before_its_receipt_exists() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    let parked = task.send();
    let failing = root.json(&["stop", "t", "--failure", "the model is gone"]).is(0, "stopping");
    assert_eq!(failing.get("receipt"), "null");
    let _ = task.gate(&parked).is(10, "attempt-closing");
    assert_eq!(task.receipts(), Vec::<String>::new());
    assert_eq!(task.seen("closed.failure"), "the model is gone");
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
    assert_eq!(task.seen("closed.failure"), "the model is gone", "the failure is kept");
}

/// Rule 44.
#[test]
fn test_1e_iv_a_launch_failure_and_the_gate_exclude_each_other_in_both_orders() {
    let root = TestRoot::new();
    for (id, gate_first) in [("gate", true), ("failure", false)] {
        let task = root.reserve(id).launched();
        let send = task.send();
        let gate = ["admit", id, "--send", &send, "--start", "--token", &task.token];
        let fail = ["settle", id, "--source", "launch-failed", "--token", &task.token];
        let (first, second) = if gate_first { (&gate[..], &fail[..]) } else { (&fail[..], &gate[..]) };
        let parked = root.park(first, "before-rename");
        let waiting = root.start(&[second, &PATIENT].concat());
        let _ = parked.go().is(0, if gate_first { "admitted" } else { "settled" });
        let lost = root.finish(waiting);
        if gate_first {
            let _ = lost.is(10, "source-not-true");
            assert_eq!(task.receipts(), Vec::<String>::new());
            assert_eq!(task.seen("phase"), "open", "a refused settlement shuts nothing");
        } else {
            let _ = lost.is(10, "attempt-settled");
            assert_eq!(task.receipts(), [task.attempt.as_str()]);
        }
    }
}

#[test]
fn test_1e_v_a_pending_send_beside_a_captured_turn_owes_nothing_and_never_starts() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    let pending = task.send();
    let stopping = task.stop().is(0, "stopping");
    assert_eq!(stopping.json()["owed"].as_array().unwrap().len(), 1, "the turn, and not the send");
    let settled = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(settled.get("phase"), "settled");
    let _ = task.gate(&pending).is(10, "attempt-settled");
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
}

#[test]
fn test_1e_v_every_captured_turn_and_cleanup_holds_the_stop_until_the_last() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turns = [task.turn(), task.turn()];
    let stopping = root.json(&["stop", "t", "--cleanup", "worktree"]).is(0, "stopping");
    let cleanup = stopping.get("cleanupId");
    let _ = task.settle(&turns[0]).is(0, "turn-settled");
    assert_eq!((task.seen("phase").as_str(), task.receipts().len()), ("closing", 0));
    let _ = task.settle(&turns[1]).is(0, "turn-settled");
    assert_eq!((task.seen("phase").as_str(), task.receipts().len()), ("closing", 0));
    let _ = root.json(&["settle", "t", "--cleanup", &cleanup]).is(0, "cleanup-paid");
    assert_eq!((task.seen("phase").as_str(), task.receipts().len()), ("settled", 1));
}

#[test]
fn test_1e_vi_before_the_commit_point_nothing_has_happened_and_nobody_is_kept_waiting() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let send = task.send();
    let stuck = root.park(&["stop", "t"], "before-rename");
    assert_eq!(task.stands(), "live", "`inspect` needs no lock");
    let gate = ["admit", "t", "--send", &send, "--start", "--token", &task.token];
    let _ = root.json(&[&gate[..], &AT_ONCE].concat()).is(75, "busy");
    stuck.kill();
    assert_eq!(task.stands(), "live");
    assert_eq!(task.receipts(), Vec::<String>::new());
    let _ = task.gate(&send).is(0, "admitted");
}

/// Rule 47.
#[test]
fn test_1e_vi_after_the_commit_point_everybody_sees_the_end_without_waiting_for_the_lock() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let send = task.send();
    let stuck = root.park(&["stop", "t"], "after-commit-point");
    assert_eq!(task.stands(), "terminal-no-report");
    let gate = ["admit", "t", "--send", &send, "--start", "--token", &task.token];
    let _ = root.json(&[&gate[..], &PATIENT].concat()).is(10, "attempt-settled");
    stuck.kill();
    assert_eq!(task.stands(), "terminal-no-report");
    let mut task = task;
    assert_eq!(task.rotated_with("reawaken", &[]).get("proven"), "true");
}

#[test]
fn test_1e_vii_a_restart_gets_one_unowned_send_and_a_retired_task_none() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let task = root.reserve_for("t", &owner).launched();
    owner.kill();
    let fresh = root.json(&["rotate", "t", "--as", "startup"]).is(0, "rotated").get("attemptId");
    let turn = root.json(&["admit", "t", "--attempt", &fresh, "--start"]).is(0, "admitted").get("turnId");
    let _ = root.refuses(10, "unowned-send-used", &["admit", "t", "--attempt", &fresh, "--start"]);
    let _ = root.refuses(10, "unowned-send-used", &["admit", "t", "--attempt", &fresh]);
    let _ = root.json(&["settle", "t", "--turn", &turn]).is(0, "turn-settled");
    let _ = root.refuses(10, "unowned-send-used", &["admit", "t", "--attempt", &fresh, "--start"]);
    let _ = task.stop().is(0, "stopped");
    assert_eq!(task.receipts(), Vec::<String>::new(), "nobody may settle what nobody owned");

    let retired = root.reserve_step("retired").launched();
    let _ = retired.stop().is(0, "stopped");
    let _ = retired.claim(&[]).is(0, "claimed");
    let _ = root.refuses(10, "retired", &["rotate", "retired", "--as", "startup"]);
}
