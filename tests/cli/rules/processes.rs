//! Tests 13, 15, 16, 18 and 19: what one process may conclude about a task that another one still works on.

use crate::actors::{AT_ONCE, Owner, PATIENT};
use crate::common::{Task, TestRoot};

/// Rules 33 and 98.
#[test]
fn test_13_a_restart_over_a_receipt_leaves_that_receipt_behind() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let mut task = root.reserve_step_for("t", &owner).launched();
    let _ = task.stop().is(0, "stopped");
    let first = task.attempt.clone();
    assert_eq!(task.stands(), "terminal-no-report");
    let _ = task.rotated_with("reawaken", &["--owner-pid", &owner.pid()]);
    let _ = task.settle(&task.turn()).is(0, "turn-settled");
    let x = task.attempt.clone();
    owner.kill();
    // A receipt for the very attempt that the row says is running; the restart path re-drives the row.
    std::fs::copy(root.receipt_file("ws", "t", &first), root.receipt_file("ws", "t", &x)).unwrap();
    let _ = root.json(&["rotate", "t", "--as", "startup"]).is(0, "rotated");
    assert_eq!(task.stands(), "indeterminate/unowned-no-receipt");
    let _ = task.stop().is(0, "stopped");
    assert_eq!(task.stands(), "indeterminate/lineage-unproven", "receipt of {x} proves nothing any more");
    task.attempt = root.row("t")["taskAttemptId"].as_str().unwrap().to_owned();
    let _ = task.claim(&[]).is(11, "lineage-unproven");
}

#[test]
fn test_13_a_receipt_beside_a_running_row_makes_it_no_less_running() {
    let root = TestRoot::new();
    let owner = Owner::start();
    let mut task = root.reserve_step_for("t", &owner).launched();
    let _ = task.stop().is(0, "stopped");
    let first = task.attempt.clone();
    let _ = task.rotated_with("reawaken", &["--owner-pid", &owner.pid()]);
    let bytes = std::fs::read_to_string(root.receipt_file("ws", "t", &first)).unwrap();
    std::fs::write(root.receipt_file("ws", "t", &task.attempt), bytes.replace(&first, &task.attempt))
        .unwrap();
    assert_eq!(task.stands(), "live");
    let _ = task.claim(&[]).is(10, "attempt-live");
    drop(owner);
    assert_eq!(task.stands(), "indeterminate/owner-dead-unsettled");
}

#[test]
fn test_15_a_publisher_held_right_before_its_publication_is_adopted_and_never_replaced() {
    for known in [true, false] {
        let root = TestRoot::new();
        let owner = Owner::start();
        let task = if known { root.reserve_step_for("t", &owner) } else { root.reserve_step("t") }.launched();
        let turn = task.turn();
        std::fs::write(root.scratch().join("report"), "done").unwrap();
        let args = ["report", "t", "--attempt", &task.attempt, "--token", &task.token, "--file", "report"];
        let publishing = root.park(&args, "before-rename");
        assert_eq!(task.stands(), if known { "live" } else { "indeterminate/owner-unknown" });
        let claim = ["claim-retire", "t", "--attempt", &task.attempt, "--run", "run", "--step", "step"];
        let claim = [&claim[..], &["--input-hash", "hash", "--parent", "ws"], &PATIENT].concat();
        let claiming = root.start(&claim);
        let _ = publishing.go().is(0, "report-accepted");
        assert_ne!(root.finish(claiming).exit, 0);
        assert_eq!(task.stands(), "reported");
        let _ = task.settle(&turn).is(0, "turn-settled");
        assert_eq!(task.stands(), "reported");
        assert_eq!(task.receipts(), Vec::<String>::new(), "a report alone makes no receipt");
        let _ = task.claim(&[]).is(10, "report-published");
        let _ = task.claim(&["--mode", "retire-reported"]).is(11, "no-settlement-evidence");
    }
}

#[test]
fn test_15_a_publisher_that_dies_before_its_commit_has_published_nothing() {
    let root = TestRoot::new();
    let task = root.reserve_step("t").launched();
    let turn = task.turn();
    std::fs::write(root.scratch().join("report"), "done").unwrap();
    let args = ["report", "t", "--attempt", &task.attempt, "--token", &task.token, "--file", "report"];
    root.park(&args, "before-rename").kill();
    assert_eq!(task.stands_for_owner(), "live");
    let _ = task.stop().is(0, "stopping");
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(task.stands(), "terminal-no-report");
    let _ = task.claim(&[]).is(0, "claimed");
}

#[test]
fn test_16_a_settlement_held_past_every_deadline_is_refused_to_all_until_it_is_committed() {
    let root = TestRoot::new();
    let owner = Owner::start();
    let task = root.reserve_step_for("t", &owner).launched();
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    let settle = ["settle", "t", "--turn", &turn, "--token", &task.token];
    let held = root.park(&settle, "before-rename");
    let late = root.json(&[&["stop", "t", "--wait", "1ms"][..], &AT_ONCE].concat());
    assert_eq!((late.exit, late.code().as_str()), (75, "busy"), "{late}");
    assert_eq!(task.stands(), "cleanup-pending");
    assert_eq!(task.receipts(), Vec::<String>::new());
    let claim = task.claim(&AT_ONCE);
    assert_eq!((claim.exit, claim.code().as_str()), (75, "busy"), "{claim}");
    let _ = held.go().is(0, "turn-settled");
    assert_eq!(task.stands(), "terminal-no-report");
    let _ = root.json(&settle).is(0, "already-settled");
    let _ = task.claim(&[]).is(0, "claimed");
}

#[test]
fn test_16_the_same_settlement_under_an_owner_nobody_knows_is_not_even_pending() {
    let root = TestRoot::new();
    let task = root.reserve_with("t", &["--run", "run", "--step", "step", "--input-hash", "hash"]).launched();
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    assert_eq!(task.stands(), "indeterminate/owner-unknown");
    assert_eq!(task.stands_for_owner(), "cleanup-pending");
    let _ = task.claim(&[]).is(10, "attempt-live");
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(task.stands(), "terminal-no-report");
}

/// Rule 55.
#[test]
fn test_18_a_terminal_failure_with_an_open_turn_is_undecided_until_the_turn_ends() {
    for with_report in [true, false] {
        let root = TestRoot::new();
        let mut owner = Owner::start();
        let task = root.reserve_step_for("t", &owner).launched();
        let turn = task.turn();
        let _ = root.json(&["stop", "t", "--failure", "the model is gone"]).is(0, "stopping");
        assert_eq!(root.row("t")["taskStatus"], "interrupted");
        owner.kill();
        assert_eq!(task.stands(), "indeterminate/owner-dead-unsettled");
        let _ = root.json(&["recover"]).is(0, "recovered");
        assert_eq!(task.receipts(), Vec::<String>::new(), "a dead process proves nothing about a turn");
        // The stream itself lived on elsewhere, with the token.
        if with_report {
            let _ = task.report("done after all").is(0, "report-accepted");
            let _ = task.settle(&turn).is(0, "turn-settled");
            assert_eq!(task.stands(), "reported");
        } else {
            let _ = task.settle(&turn).is(0, "turn-settled");
            assert_eq!(task.stands(), "terminal-no-report");
            assert_eq!(task.receipts(), [task.attempt.as_str()]);
        }
    }
}

/// A child of a living owner, re-driven by somebody else behind the owner's back.
fn redriven(root: &TestRoot) -> (Task<'_>, String, String) {
    let task = root.reserve_step("t").launched();
    let turn = task.turn();
    let _ = root.refuses(10, "owner-unknown", &["rotate", "t", "--as", "startup"]);
    let fresh = root.json(&["rotate", "t", "--as", "startup", "--unproven"]).is(0, "rotated");
    (task, turn, fresh.get("attemptId"))
}

/// Rules 12 and 101.
#[test]
fn test_19a_a_redriven_task_stays_unresolved_for_ever_though_its_owner_settles() {
    let root = TestRoot::new();
    let (x, turn, fresh) = redriven(&root);
    let mut y = x.again();
    y.attempt = fresh;
    assert_eq!(x.stands(), "indeterminate/owner-unknown");
    let _ = y.claim(&[]).is(10, "attempt-live");
    let _ = x.settle(&turn).is(0, "turn-settled");
    let args = ["settle", "t", "--attempt", &x.attempt, "--token", &x.token];
    let _ = root.refuses(10, "stale-attempt", &args);
    assert_eq!(x.receipts(), Vec::<String>::new());
    let _ = x.stop().is(0, "stopped");
    assert_eq!(x.stands(), "indeterminate/lineage-unproven");
    for _ in 0..2 {
        let _ = y.claim(&[]).is(11, "lineage-unproven");
        let _ = y.claim_as_owner(&[]).is(11, "lineage-unproven");
        let _ = x.claim(&[]).is(10, "stale-attempt");
    }
}

#[test]
fn test_19b_of_two_processes_that_launch_one_reservation_exactly_one_sends() {
    for first in 0..2 {
        let root = TestRoot::new();
        let task = root.reserve("t");
        let owners = ["rotate", "t", "--as", "launch", "--token", &task.token];
        let other = ["rotate", "t", "--as", "launch"];
        let calls = [&owners[..], &other[..]];
        let parked = root.park(calls[first], "before-rename");
        let waiting = root.start(&[calls[1 - first], &PATIENT].concat());
        let won = parked.go().is(0, "launched");
        let _ = root.finish(waiting).is(10, "not-queued");
        let winner = Task {
            root: &root,
            id: "t".to_owned(),
            attempt: won.get("attemptId"),
            token: if first == 0 { task.token.clone() } else { won.get("token") },
            worker: String::new(),
        };
        let turn = winner.turn();
        if first == 1 {
            let _ = task.begin().is(10, "stale-attempt");
            let _ = task.close().is(10, "not-owner");
        }
        let _ = winner.settle(&turn).is(0, "turn-settled");
        let _ = winner.close().is(0, "settled");
        assert_eq!(winner.receipts(), [winner.attempt.as_str()], "the winner's receipt is the only one");
    }
}

/// Rule 23.
#[test]
fn test_19b_of_many_launches_at_once_exactly_one_wins() {
    let root = TestRoot::new();
    let task = root.reserve("t");
    let own = [&["rotate", "t", "--as", "launch", "--token", &task.token][..], &PATIENT].concat();
    let other = [&["rotate", "t", "--as", "launch"][..], &PATIENT].concat();
    let outcomes = root.at_once(&[own.clone(), other.clone(), own.clone(), other.clone(), own, other]);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.exit == 0).count(), 1);
    for lost in outcomes.iter().filter(|outcome| outcome.exit != 0) {
        let _ = lost.clone().is(10, "not-queued");
    }
}

#[test]
fn test_19c_no_detour_washes_the_mark_off() {
    let root = TestRoot::new();
    let (x, turn, _) = redriven(&root);
    let mut task = x.again();
    let _ = task.stop().is(0, "stopping");
    assert_eq!(
        task.stands(),
        "indeterminate/owner-unknown",
        "the turn of the first owner is still in flight"
    );
    let out = task.rotated_with("reawaken", &[]);
    assert_eq!((out.get("proven"), out.get("receiptEligible")), ("false".into(), "false".into()));
    let _ = task.stop().is(0, "stopping");
    assert_eq!(task.stands(), "indeterminate/owner-unknown");
    // The first owner settles its turn at last; nothing changes for the marked lineage.
    let _ = x.settle(&turn).is(0, "turn-settled");
    assert_eq!(task.stands(), "indeterminate/lineage-unproven");
    let _ = task.rotated_as_owner("reawaken", &[]);
    let own = task.turn();
    let _ = task.report("done").is(0, "report-accepted");
    let _ = task.settle(&own).is(0, "turn-settled");
    let _ = task.close().is(0, "settled");
    assert_eq!(task.stands(), "reported");
    assert_eq!(task.receipts(), Vec::<String>::new());
    let _ = task.claim(&["--mode", "retire-reported"]).is(11, "lineage-unproven");
    let granted = task.claim_as_owner(&["--mode", "retire-reported"]).is(0, "claimed");
    assert_eq!(granted.get("authority"), "token", "outside the guarantee, and recorded as such");
    assert_eq!(task.seen("retiredBy.authority"), "token");
}

#[test]
fn test_19c_the_owners_own_retry_needs_the_earlier_turn_settled_with_its_own_token() {
    let root = TestRoot::new();
    let (x, turn, _) = redriven(&root);
    let mut task = x.again();
    let _ = task.stop().is(0, "stopping");
    let _ = task.rotated_with("reawaken", &[]);
    let _ = task.close().is(0, "settled");
    let _ = task.claim_as_owner(&[]).is(10, "attempt-live");
    let _ = task.settle(&turn).is(10, "not-owner");
    let _ = x.settle(&turn).is(0, "turn-settled");
    let _ = task.claim_as_owner(&[]).is(0, "claimed");
}

#[test]
fn test_19c_a_launch_handed_back_and_taken_over_stays_marked_if_it_ever_worked() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let x = root.reserve_step_for("t", &owner).launched();
    let turn = x.turn();
    owner.kill();
    let _ = root.json(&["recover", "t", "--unproven"]).is(0, "recovered");
    let mut task = x.again();
    for _ in 0..3 {
        let _ = task.stop().is(0, "stopping");
        let out = task.rotated_with("reawaken", &[]);
        assert_eq!(out.get("receiptEligible"), "false");
        assert_eq!(task.receipts(), Vec::<String>::new());
    }
    let _ = task.stop().is(0, "stopping");
    let _ = task.claim(&[]).is(10, "attempt-live");
    let _ = x.settle(&turn).is(0, "turn-settled");
    let _ = task.claim(&[]).is(11, "lineage-unproven");
}
