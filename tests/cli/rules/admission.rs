//! Test 1e, viii to xi: what waits in a queue or before the gate, and the whole life of a send.

use crate::actors::{Owner, PATIENT};
use crate::common::TestRoot;

#[test]
fn test_1e_viii_what_was_queued_before_a_closure_never_starts() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    let queued = task.queued_send();
    let _ = task.stop().is(0, "stopping");
    let _ = task.gate(&queued).is(10, "attempt-closing");
    let _ = task.settle(&turn).is(0, "turn-settled");
    let _ = task.gate(&queued).is(10, "attempt-settled");
    // Nor after somebody went on on purpose: the id belongs to what was stopped.
    let _ = root.json(&["rotate", "t", "--as", "reawaken"]).is(0, "rotated");
    let _ = task.gate(&queued).is(10, "stale-attempt");
}

#[test]
fn test_1e_ix_a_pending_send_is_refused_at_the_gate_after_a_stop() {
    let root = TestRoot::new();
    let mut task = root.reserve("owned").launched();
    let _ = task.stop().is(0, "stopped");
    let _ = task.rotated_as_owner("reawaken", &[]);
    let send = task.send();
    let stopped = task.stop().is(0, "stopped");
    assert_eq!((stopped.get("canceledSends").as_str(), stopped.get("phase").as_str()), ("1", "settled"));
    let args = ["admit", "owned", "--send", &send, "--start", "--token", &task.token];
    let _ = root.refuses(10, "attempt-settled", &args);
    assert_eq!(root.row("owned")["taskAttemptId"], task.attempt, "the gate rolls nothing back");
    assert!(task.receipts().contains(&task.attempt));
}

#[test]
fn test_1e_ix_a_pending_send_without_an_owner_is_refused_at_the_gate_after_a_stop() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let task = root.reserve_for("t", &owner).launched();
    owner.kill();
    let fresh = root.json(&["rotate", "t", "--as", "startup"]).is(0, "rotated").get("attemptId");
    let send = root.json(&["admit", "t", "--attempt", &fresh]).is(0, "registered").get("sendId");
    let stop = root.park(&["stop", "t"], "before-rename");
    let gate = root.start(&[&["admit", "t", "--send", &send, "--start"][..], &PATIENT].concat());
    let _ = stop.go().is(0, "stopped");
    let _ = root.finish(gate).is(10, "attempt-settled");
    assert_eq!(root.row("t")["taskAttemptId"], fresh);
    assert_eq!(task.receipts(), Vec::<String>::new());
}

#[test]
fn test_1e_x_an_admitted_turn_survives_supersession_and_belongs_to_its_own_attempt() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let mut task = root.reserve_for("t", &owner).launched();
    let turn = task.turn();
    let y = task.again();
    owner.kill();
    let _ = root.json(&["stop", "t"]).is(0, "stopping");
    let _ = task.rotated_with("reawaken", &[]);
    assert_eq!(root.row("t")["sends"][0]["turnId"], turn);
    // It does not hold the successor open: a Stop settles that one at once, and names the turn that is still in
    // flight, with the attempt it belongs to.
    let stopped = task.stop().is(0, "stopping");
    assert_eq!(stopped.get("phase"), "settled");
    assert_eq!(
        (stopped.get("owed.0.turnId"), stopped.get("owed.0.attemptId")),
        (turn.clone(), y.attempt.clone())
    );
    assert_eq!(task.seen("live"), "true");
    let _ = task.settle(&turn).is(10, "not-owner");
    let settled = y.settle(&turn).is(0, "turn-settled");
    assert_eq!(settled.get("receipt"), "null");
    assert_eq!(task.receipts(), Vec::<String>::new(), "no receipt for a superseded attempt");
}

#[test]
fn test_1e_x_an_admitted_send_cannot_be_canceled() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let send = task.send();
    let turn = task.gate(&send).is(0, "admitted").get("turnId");
    for how in ["refused", "no-work", "canceled"] {
        let args = ["settle", "t", "--send", &send, "--as", how, "--token", &task.token];
        let _ = root.refuses(10, "send-admitted", &args);
    }
    let _ = task.close().is(12, "obligations-owed");
    assert_eq!(task.receipts(), Vec::<String>::new());
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
}

#[test]
fn test_1e_x_a_send_enqueued_before_the_closure_is_refused_at_its_dequeue() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let send = task.send();
    let args = ["admit", "t", "--send", &send, "--queued", "--token", &task.token];
    let _ = root.json(&args).is(0, "enqueued");
    let _ = root.json(&args).is(0, "already-enqueued");
    let _ = task.close().is(0, "settled");
    let _ = task.gate(&send).is(10, "attempt-settled");
    let _ = root.refuses(10, "attempt-settled", &args);
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
}

#[test]
fn test_1e_xi_a_send_that_found_no_work_leaves_no_obligation() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let kept = task.queued_send();
    let duplicate = task.send();
    let args = ["settle", "t", "--send", &duplicate, "--as", "no-work", "--token", &task.token];
    let _ = root.json(&args).is(0, "send-settled");
    assert_eq!(root.row("t")["sends"].as_array().unwrap().len(), 1, "the existing item keeps its own");
    let _ = task.gate(&kept).is(0, "admitted");
}

#[test]
fn test_1e_xi_what_passed_the_gate_is_a_turn_though_its_start_fails_right_after() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let queued = task.queued_send();
    let turn = task.gate(&queued).is(0, "admitted").get("turnId");
    // The agent's own re-entry fails early. It was admitted: a launch failure is not what happened.
    let args = ["settle", "t", "--source", "launch-failed", "--token", &task.token];
    let _ = root.refuses(10, "source-not-true", &args);
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(root.row("t")["sends"].as_array().unwrap().len(), 0);
    let _ = root.refuses(10, "source-not-true", &args);
}

#[test]
fn test_1e_xi_one_queued_item_beside_a_live_turn_is_admitted_once() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let first = task.turn();
    let queued = task.queued_send();
    let args = ["admit", "t", "--send", &queued, "--start", "--token", &task.token];
    let calls = vec![[&args[..], &PATIENT].concat(); 6];
    let outcomes = root.at_once(&calls);
    let won: Vec<_> = outcomes.iter().filter(|outcome| outcome.exit == 0).collect();
    assert_eq!(won.len(), 1, "one queued item, one turn");
    let turn = won[0].get("turnId");
    for lost in outcomes.iter().filter(|outcome| outcome.exit != 0) {
        let lost = lost.clone().is(10, "already-admitted");
        assert_eq!(lost.get("turnId"), turn);
    }
    assert_ne!(turn, first);
    assert_eq!(root.row("t")["sends"].as_array().unwrap().len(), 2);
}

#[test]
fn test_1e_xi_a_second_end_of_the_same_turn_changes_nothing() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turns = [task.turn(), task.turn()];
    let _ = task.settle(&turns[0]).is(0, "turn-settled");
    let sends = root.row("t")["sends"].clone();
    for _ in 0..3 {
        let _ = task.settle(&turns[0]).is(0, "already-settled");
    }
    assert_eq!(root.row("t")["sends"], sends, "the other turn is untouched");
    let _ = task.stop().is(0, "stopping");
    let _ = task.settle(&turns[0]).is(0, "already-settled");
    assert_eq!(task.receipts(), Vec::<String>::new(), "an end told twice pays no other debt");
}
