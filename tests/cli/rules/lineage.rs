//! Test 1d: whether a fresh attempt is proven, and that the mark against it is only ever added.

use crate::actors::{Owner, PATIENT};
use crate::common::{Outcome, Task, TestRoot};

#[track_caller]
fn is_proven(out: &Outcome, proven: bool) {
    let told = (out.get("proven"), out.get("receiptEligible"));
    assert_eq!(told, (proven.to_string(), proven.to_string()), "{out}");
}

/// Settled by its owner with a receipt.
fn settled(root: &TestRoot) -> Task<'_> {
    let task = root.reserve_step("t").launched();
    let turn = task.turn();
    let _ = task.settle(&turn).is(0, "turn-settled");
    let _ = task.close().is(0, "settled");
    // The next commit of the row lets go of the record that would put a lost or damaged receipt back.
    let _ = task.stop().is(0, "already-stopped");
    task
}

/// Settled, and its receipt is gone from the parent's folder.
fn without_receipt(root: &TestRoot) -> Task<'_> {
    let task = settled(root);
    root.lose_receipt("ws", "t", &task.attempt);
    task
}

#[test]
fn test_1d_a_reservation_and_the_takeover_of_an_unmarked_queued_row_are_proven() {
    let root = TestRoot::new();
    let out = root.json(&["reserve", "t", "--parent", "ws"]).is(0, "reserved");
    is_proven(&out, true);
    is_proven(&root.json(&["rotate", "t", "--as", "launch"]).is(0, "launched"), true);
}

#[test]
fn test_1d_reawakening_over_a_receipt_is_proven_whoever_asks() {
    let root = TestRoot::new();
    let mut task = settled(&root);
    is_proven(&task.rotated_with("reawaken", &[]), true);
    assert_eq!(root.row("t").get("taskAttemptUnproven"), None, "no mark is written");
}

#[test]
fn test_1d_the_owners_own_settlement_proves_without_a_receipt_and_a_strangers_does_not() {
    for own in [true, false] {
        let root = TestRoot::new();
        let mut task = without_receipt(&root);
        let out =
            if own { task.rotated_as_owner("reawaken", &[]) } else { task.rotated_with("reawaken", &[]) };
        is_proven(&out, own);
        let _ = task.close().is(0, "settled");
        assert_eq!(task.receipts(), if own { vec![task.attempt.clone()] } else { Vec::new() });
    }
}

/// What becomes of the bytes of a task's receipt.
type Damage<'a> = &'a dyn Fn(&Task<'_>) -> Vec<u8>;

#[test]
fn test_1d_an_unreadable_receipt_proves_nothing() {
    let bytes = |task: &Task<'_>| std::fs::read(task.root.receipt_file("ws", "t", &task.attempt)).unwrap();
    let other = |task: &Task<'_>| -> Vec<u8> {
        String::from_utf8(bytes(task)).unwrap().replace(&task.attempt, "att_0000000000000000").into_bytes()
    };
    let damages: [(&str, Damage<'_>); 4] = [
        ("empty", &|_| Vec::new()),
        ("half", &|task| bytes(task)[..20].to_vec()),
        ("not JSON", &|_| b"<html>".to_vec()),
        ("another attempt's", &other),
    ];
    for (what, damage) in damages {
        let root = TestRoot::new();
        let mut task = settled(&root);
        let broken = damage(&task);
        std::fs::write(root.receipt_file("ws", "t", &task.attempt), &broken).unwrap();
        let old = task.attempt.clone();
        is_proven(&task.rotated_with("reawaken", &[]), false);
        assert_eq!(root.row("t")["taskAttemptUnproven"], true, "{what}");
        let _ = task.stop().is(0, "stopped");
        let left = std::fs::read(root.receipt_file("ws", "t", &old)).unwrap();
        assert_eq!(left, broken, "{what}: a receipt is never written over");
        assert!(!root.receipt_file("ws", "t", &task.attempt).exists(), "{what}");
    }
    let root = TestRoot::new();
    let mut task = without_receipt(&root);
    std::fs::create_dir(root.receipt_file("ws", "t", &task.attempt)).unwrap();
    is_proven(&task.rotated_with("reawaken", &[]), false);
}

#[test]
fn test_1d_a_mark_is_inherited_by_every_later_attempt() {
    let root = TestRoot::new();
    let mut task = without_receipt(&root);
    is_proven(&task.rotated_with("reawaken", &[]), false);
    let turn = task.turn();
    let _ = task.report("done").is(0, "report-accepted");
    let _ = task.settle(&turn).is(0, "turn-settled");
    is_proven(&task.rotated_as_owner("reactivate", &[]), false);
    let _ = task.stop().is(0, "stopped");
    is_proven(&task.rotated_as_owner("reactivate", &[]), false);
    assert_eq!(root.row("t")["taskAttemptUnproven"], true);
    let receipts = task.receipts();
    assert_eq!(receipts, Vec::<String>::new(), "an unproven attempt left a receipt");
}

#[test]
fn test_1d_a_restart_marks_and_owns_nothing() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let task = root.reserve_for("t", &owner).launched();
    let _ = root.refuses(10, "owner-alive", &["rotate", "t", "--as", "startup"]);
    owner.kill();
    let out = root.json(&["rotate", "t", "--as", "startup"]).is(0, "rotated");
    is_proven(&out, false);
    assert_eq!(out.get("owned"), "false");
    assert_eq!(out.json().get("token"), None, "nobody gets a token for it");
    assert_ne!(out.get("attemptId"), task.attempt);
}

#[test]
fn test_1d_a_launch_that_never_admitted_goes_back_to_the_queue_without_a_mark() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let task = root.reserve_for("t", &owner).launched();
    let send = task.send();
    owner.kill();
    let done = root.json(&["recover"]).is(0, "recovered");
    assert_eq!(done.get("recovered.0.did"), "reverted");
    assert_eq!(root.row("t")["taskStatus"], "queued");
    assert_eq!(root.row("t").get("taskAttemptUnproven"), None);
    let _ = task.gate(&send).is(10, "turn-ended");
    is_proven(&root.json(&["rotate", "t", "--as", "launch"]).is(0, "launched"), true);
}

#[test]
fn test_1d_a_launch_that_admitted_never_goes_back_to_the_queue() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let task = root.reserve_for("t", &owner).launched();
    let turn = task.turn();
    owner.kill();
    let left = root.json(&["recover"]).is(0, "recovered");
    assert_eq!(left.get("left.0.reasonCode"), "owner-dead-unsettled");
    let _ = root.json(&["recover", "t", "--unproven"]).is(0, "recovered");
    assert_eq!(root.row("t")["taskStatus"], "running");
    assert_eq!(root.row("t")["taskAttemptUnproven"], true);
    assert_eq!(root.row("t")["sends"][0]["turnId"], turn, "the turn of the dead owner is not forgotten");
}

#[test]
fn test_1d_reawakening_over_a_closing_predecessor_answers_at_once_and_without_a_wait() {
    let root = TestRoot::new();
    let mut task = root.reserve("t").launched();
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    let _ = root.refuses(12, "cleanup-pending", &["rotate", "t", "--as", "reawaken"]);
    let _ = root.refuses(12, "cleanup-pending", &["rotate", "t", "--as", "reawaken", "--token", &task.token]);
    let _ = task.settle(&turn).is(0, "turn-settled");
    is_proven(&task.rotated_with("reawaken", &[]), true);
}

#[test]
fn test_1d_reawakening_over_a_dead_closing_owner_is_unproven() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let mut task = root.reserve_for("t", &owner).launched();
    let _ = task.turn();
    let _ = task.stop().is(0, "stopping");
    owner.kill();
    let out = task.rotated_with("reawaken", &[]);
    is_proven(&out, false);
    assert_eq!(out.json()["turnsOfEarlierAttempts"].as_array().unwrap().len(), 1);
    let _ = task.begin().is(10, "attempt-live");
}

#[test]
fn test_1d_a_mark_that_appears_before_the_compare_and_set_counts() {
    // The caller has read the row; what makes it unproven is committed before the caller gets the lock.
    let root = TestRoot::new();
    let mut task = settled(&root);
    let parked = root.park(&["stop", "t"], "locked");
    let waiting = root.start(&[&["rotate", "t", "--as", "reawaken"][..], &PATIENT].concat());
    std::fs::remove_file(root.receipt_file("ws", "t", &task.attempt)).unwrap();
    let _ = parked.go().is(0, "already-stopped");
    let out = root.finish(waiting).is(0, "rotated");
    is_proven(&out, false);
    task.attempt = out.get("attemptId");
    task.token = out.get("token");
    let _ = task.close().is(0, "settled");
    assert_eq!(task.receipts(), Vec::<String>::new());

    // The same for the takeover of a queued row that another version marked meanwhile.
    let queued = root.reserve("q");
    root.forge("q", |row| row["taskAttemptUnproven"] = true.into());
    let args = ["rotate", "q", "--as", "launch", "--token", &queued.token];
    let own = root.json(&args).is(0, "launched");
    assert_eq!(own.get("proven"), "false");
    let _ = queued.close().is(0, "settled");
    assert_eq!(queued.receipts(), Vec::<String>::new());
}
