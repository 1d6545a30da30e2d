//! Findings 102 to 106: five ways in which an earlier program let two processes work, or settled a live one.

use crate::actors::{Owner, PATIENT};
use crate::common::{Task, TestRoot};

#[test]
fn finding_102_a_stale_launcher_never_owns_what_somebody_else_reserved_or_took_over() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    // The launcher is about to launch, or has launched and not sent, when the pass hands its launch back and
    // somebody else takes the queued row over.
    let stale = root.reserve_for("t", &owner).launched();
    let send = stale.send();
    owner.kill();
    let _ = root.json(&["recover"]).is(0, "recovered");
    let taken = root.json(&["rotate", "t", "--as", "launch"]).is(0, "launched");
    let expect = ["rotate", "t", "--as", "launch", "--expect", &stale.attempt, "--token", &stale.token];
    let _ = root.refuses(10, "stale-launch", &expect);
    let _ = stale.gate(&send).is(10, "stale-attempt");
    let _ = stale.begin().is(10, "stale-attempt");
    let _ = stale.close().is(10, "not-owner");
    let row = root.row("t");
    assert_eq!(row["taskAttemptId"], taken.get("attemptId"));
    assert_eq!((row["turnsMinted"].as_u64(), row["taskStatus"].as_str()), (Some(0), Some("starting")));
}

#[test]
fn finding_102_a_launcher_that_waited_for_the_lock_adopts_no_attempt_but_its_own() {
    let root = TestRoot::new();
    let task = root.reserve("t");
    let taking = root.park(&["rotate", "t", "--as", "launch"], "before-rename");
    let expect = ["rotate", "t", "--as", "launch", "--expect", &task.attempt, "--token", &task.token];
    let waiting = root.start(&[&expect[..], &PATIENT].concat());
    let taken = taking.go().is(0, "launched");
    let _ = root.finish(waiting).is(10, "stale-launch");
    assert_eq!(root.row("t")["taskAttemptId"], taken.get("attemptId"));
}

#[test]
fn finding_103_a_reawakening_whose_send_never_got_in_is_settled_by_its_owner_with_a_receipt() {
    let root = TestRoot::new();
    let mut task = root.reserve("t").launched();
    let _ = task.stop().is(0, "stopped");
    let _ = task.rotated_as_owner("reawaken", &[]);
    let send = task.send();
    let args = ["settle", "t", "--send", &send, "--as", "refused", "--token", &task.token];
    let _ = root.json(&args).is(0, "send-settled");
    let args = ["settle", "t", "--source", "launch-failed", "--token", &task.token];
    assert_eq!(root.json(&args).is(0, "settled").get("receipt"), "launch-failed");
    assert_eq!(task.stands(), "terminal-no-report");
    assert_eq!(task.rotated_with("reawaken", &[]).get("proven"), "true", "the next retry inherits no mark");
}

#[test]
fn finding_103_a_reawakening_whose_send_got_in_did_not_fail_to_launch() {
    let root = TestRoot::new();
    let mut task = root.reserve("t").launched();
    let _ = task.stop().is(0, "stopped");
    let before = task.receipts();
    let _ = task.rotated_as_owner("reawaken", &[]);
    let _ = task.turn();
    let args = ["settle", "t", "--source", "launch-failed", "--token", &task.token];
    let _ = root.refuses(10, "source-not-true", &args);
    let _ = task.close().is(12, "obligations-owed");
    assert_eq!(task.receipts(), before, "no receipt beside a live turn");
}

#[test]
fn finding_104_a_settlement_never_stands_beside_a_live_turn_in_either_order() {
    for settle_first in [true, false] {
        let root = TestRoot::new();
        let task = root.reserve("t").launched();
        let _ = task.settle(&task.turn()).is(0, "turn-settled");
        let settle = ["settle", "t", "--token", &task.token];
        let admit = ["admit", "t", "--attempt", &task.attempt, "--start", "--token", &task.token];
        let (first, second) =
            if settle_first { (&settle[..], &admit[..]) } else { (&admit[..], &settle[..]) };
        let parked = root.park(first, "before-rename");
        let waiting = root.start(&[second, &PATIENT].concat());
        let won = parked.go();
        assert_eq!(won.exit, 0, "{won}");
        let lost = root.finish(waiting);
        let _ = if settle_first { lost.is(10, "attempt-settled") } else { lost.is(12, "obligations-owed") };
        let n_turns = root.row("t")["sends"].as_array().unwrap().len();
        assert_eq!((task.receipts().len(), n_turns), if settle_first { (1, 0) } else { (0, 1) });
    }
}

#[test]
fn finding_104_of_settlements_and_sends_at_once_no_turn_starts_after_the_receipt() {
    for _ in 0..3 {
        let root = TestRoot::new();
        let task = root.reserve("t").launched();
        let settle = [&["settle", "t", "--token", &task.token][..], &PATIENT].concat();
        let admit = ["admit", "t", "--attempt", &task.attempt, "--start", "--token", &task.token];
        let admit = [&admit[..], &PATIENT].concat();
        let outcomes = root.at_once(&[admit.clone(), settle.clone(), admit.clone(), settle, admit]);
        let admitted = outcomes.iter().filter(|outcome| outcome.code() == "admitted").count();
        let n_turns = root.row("t")["sends"].as_array().unwrap().len();
        assert_eq!(admitted, n_turns, "every turn that may run is on the row");
        assert_eq!(task.receipts().is_empty(), n_turns > 0);
    }
}

/// A restart's follow-up: registered, and not through the gate yet.
fn follow_up(root: &TestRoot) -> (Task<'_>, String) {
    let mut owner = Owner::start();
    let mut task = root.reserve_step_for("t", &owner).launched();
    owner.kill();
    task.attempt = root.json(&["rotate", "t", "--as", "startup"]).is(0, "rotated").get("attemptId");
    let send = root.json(&["admit", "t", "--attempt", &task.attempt]).is(0, "registered").get("sendId");
    (task, send)
}

#[test]
fn finding_105_the_follow_up_of_a_restart_passes_the_fence_like_every_other_send() {
    type Meanwhile = fn(&Task<'_>);
    let meanwhile: [(&str, Meanwhile); 4] = [
        ("attempt-settled", |task| drop(task.stop().is(0, "stopped"))),
        ("stale-attempt", |task| {
            drop(task.stop().is(0, "stopped"));
            drop(task.root.json(&["rotate", "t", "--as", "reawaken"]).is(0, "rotated"));
        }),
        ("stale-attempt", |task| drop(task.root.json(&["rotate", "t", "--as", "startup"]).is(0, "rotated"))),
        ("retired", |task| {
            let mut own = task.again();
            drop(own.stop().is(0, "stopped"));
            drop(own.rotated_with("reawaken", &[]));
            drop(own.close().is(0, "settled"));
            drop(own.claim_as_owner(&[]).is(0, "claimed"));
        }),
    ];
    for (code, happens) in meanwhile {
        let root = TestRoot::new();
        let (task, send) = follow_up(&root);
        happens(&task);
        let _ = root.refuses(10, code, &["admit", "t", "--send", &send, "--start"]);
        let _ = root.refuses(10, code, &["admit", "t", "--attempt", &task.attempt, "--start"]);
        assert_eq!(root.row("t")["turnsMinted"], 0, "nothing was dispatched");
    }
    let root = TestRoot::new();
    let (_task, send) = follow_up(&root);
    let _ = root.json(&["admit", "t", "--send", &send, "--start"]).is(0, "admitted");
}

#[test]
fn finding_106_a_settlement_of_another_attempt_than_the_persisted_one_is_no_evidence() {
    let root = TestRoot::new();
    let a = root.reserve_step("t").launched();
    let turn = a.turn();
    let fresh =
        root.json(&["rotate", "t", "--as", "startup", "--unproven"]).is(0, "rotated").get("attemptId");
    // The first owner goes on as if nothing had happened.
    let _ = a.settle(&turn).is(0, "turn-settled");
    let args = ["settle", "t", "--attempt", &a.attempt, "--token", &a.token];
    let _ = root.refuses(10, "stale-attempt", &args);
    let _ = a.stop().is(0, "stopped");
    assert_eq!(a.stands(), "indeterminate/lineage-unproven");
    assert_eq!(
        a.stands_for_owner(),
        "indeterminate/lineage-unproven",
        "its token is not the current attempt's"
    );
    let _ = a.claim_as_owner(&[]).is(10, "stale-attempt");
    let mut b = a.again();
    b.attempt = fresh;
    let _ = b.claim_as_owner(&[]).is(11, "lineage-unproven");
}

#[test]
fn finding_106_the_owners_word_counts_only_for_the_persisted_attempt() {
    let root = TestRoot::new();
    let task = root.reserve_step("t").launched();
    let _ = task.close().is(0, "settled");
    root.lose_receipt("ws", "t", &task.attempt);
    assert_eq!(task.stands_for_owner(), "terminal-no-report");
    root.forge("t", |row| row["taskAttemptId"] = "att_00000000000000ff".into());
    assert_eq!(task.stands_for_owner(), "indeterminate/unowned-no-receipt");
    let mut current = task.again();
    current.attempt = "att_00000000000000ff".to_owned();
    let _ = current.claim_as_owner(&[]).is(11, "no-settlement-evidence");
}
