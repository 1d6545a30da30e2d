//! Tests 2, 3, 6 and 6b: who leaves a receipt, for which attempt, when, and where a report was still possible.

use serde_json::Value;

use crate::actors::Owner;
use crate::common::{Task, TestRoot};

/// The one receipt of a task, as its reader sees it.
#[track_caller]
fn only_receipt(task: &Task<'_>) -> Value {
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
    let file = task.root.receipt_file("ws", &task.id, &task.attempt);
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Rules 84 and 87.
#[test]
fn test_2_each_way_to_settle_leaves_exactly_one_receipt_for_its_attempt() {
    type Story = fn(&Task<'_>);
    let stories: [(&str, &str, Story); 8] = [
        ("canceled", "reservation-canceled", |task| drop(task.stop().is(0, "stopped"))),
        ("failed", "reservation-failed", |task| {
            let args = ["settle", &task.id, "--source", "reservation-failed", "--token", &task.token];
            drop(task.root.json(&args).is(0, "settled"));
        }),
        ("launch-stopped", "launch-failed", |task| {
            drop(task.launch().is(0, "launched"));
            drop(task.stop().is(0, "stopped"));
        }),
        ("launch-failed", "launch-failed", |task| {
            drop(task.launch().is(0, "launched"));
            drop(task.close().is(0, "settled"));
        }),
        ("idle-stopped", "idle-settled", |task| {
            drop(task.launch().is(0, "launched"));
            drop(task.settle(&task.turn()).is(0, "turn-settled"));
            drop(task.stop().is(0, "stopped"));
        }),
        ("stopped", "execution-settled", |task| {
            drop(task.launch().is(0, "launched"));
            let turn = task.turn();
            drop(task.stop().is(0, "stopping"));
            assert_eq!(task.receipts(), Vec::<String>::new());
            drop(task.settle(&turn).is(0, "turn-settled"));
        }),
        ("failing", "execution-settled", |task| {
            drop(task.launch().is(0, "launched"));
            let turn = task.turn();
            drop(task.root.json(&["stop", &task.id, "--failure", "it broke"]).is(0, "stopping"));
            drop(task.settle(&turn).is(0, "turn-settled"));
        }),
        ("closed", "execution-settled", |task| {
            drop(task.launch().is(0, "launched"));
            let turn = task.turn();
            let args = ["settle", &task.id, "--turn", &turn, "--close", "--token", &task.token];
            drop(task.root.json(&args).is(0, "turn-settled"));
        }),
    ];
    let root = TestRoot::new();
    for (id, source, story) in stories {
        let task = root.reserve(id);
        story(&task);
        let receipt = only_receipt(&task);
        let told: Vec<&str> = ["taskId", "attemptId", "parentWorkspaceId", "source"]
            .map(|key| receipt[key].as_str().unwrap())
            .into();
        assert_eq!(told, [id, &task.attempt, "ws", source]);
        // Nothing that comes later writes it again.
        let before = root.bytes();
        let _ = task.close().is(0, "already-settled");
        let file = format!("sessions/ws/subagent-attempt-settlements/{id}/{}.json", task.attempt);
        let _ = task.stop().is(0, "already-stopped");
        assert!(before[&file] == root.bytes()[&file], "{id}: the receipt was written again");
    }
}

#[test]
fn test_2_receipts_lie_with_the_parent_and_every_ancestor_of_the_captured_row() {
    let root = TestRoot::new();
    let task = root.reserve_with("t", &["--ancestor", "near", "--ancestor", "far"]);
    let _ = task.stop().is(0, "stopped");
    for workspace in ["ws", "near", "far"] {
        assert_eq!(root.receipts(workspace, "t"), [task.attempt.as_str()], "{workspace}");
    }
}

#[test]
fn test_2_the_receipt_is_there_before_the_answer_and_before_the_latch_lets_go() {
    // Nothing of the settled row is visible without its receipt, at any point of the commit.
    for point in ["before-rename", "after-rename", "after-commit-point"] {
        let root = TestRoot::new();
        let task = root.reserve("t").launched();
        let turn = task.turn();
        let _ = task.stop().is(0, "stopping");
        let parked = root.park(&["settle", "t", "--turn", &turn, "--token", &task.token], point);
        let told = (task.seen("phase"), task.stands());
        let expected = match point {
            "before-rename" => ("closing", "cleanup-pending"),
            _ => ("settled", "terminal-no-report"),
        };
        assert_eq!((told.0.as_str(), told.1.as_str()), expected, "{point}");
        parked.kill();
        assert_eq!((task.seen("phase").as_str(), task.stands().as_str()), expected, "{point}, dead");
        let again = task.settle(&turn);
        let code = if point == "before-rename" { "turn-settled" } else { "already-settled" };
        assert_eq!((again.exit, again.code().as_str()), (0, code), "{point}");
        assert_eq!(task.receipts(), [task.attempt.as_str()], "{point}");
    }
}

#[test]
fn test_2_nobody_leaves_a_receipt_for_what_nobody_owned() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let task = root.reserve_for("t", &owner).launched();
    owner.kill();
    let fresh = root.json(&["rotate", "t", "--as", "startup"]).is(0, "rotated").get("attemptId");
    let turn = root.json(&["admit", "t", "--attempt", &fresh, "--start"]).is(0, "admitted").get("turnId");
    let _ = root.json(&["stop", "t", "--failure", "it broke"]).is(0, "stopping");
    let _ = root.json(&["settle", "t", "--turn", &turn]).is(0, "turn-settled");
    assert_eq!(task.seen("phase"), "settled");
    assert_eq!(task.receipts(), Vec::<String>::new());
    assert_eq!(task.stands(), "indeterminate/lineage-unproven");
}

#[test]
fn test_2_an_ineligible_owner_settles_and_claims_itself_without_a_receipt() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let mut task = root.reserve_step_for("t", &owner).launched();
    let turn = task.turn();
    let dead = task.again();
    owner.kill();
    let _ = task.stop().is(0, "stopping");
    let _ = task.rotated_with("reawaken", &[]);
    let _ = dead.settle(&turn).is(0, "turn-settled");
    let own = task.turn();
    let _ = task.settle(&own).is(0, "turn-settled");
    let settled = task.close().is(0, "settled");
    assert_eq!(settled.get("receipt"), "null");
    assert_eq!(task.receipts(), Vec::<String>::new());
    assert_eq!(task.stands(), "indeterminate/lineage-unproven");
    let _ = task.claim(&[]).is(11, "lineage-unproven");
    assert_eq!(task.claim_as_owner(&[]).is(0, "claimed").get("authority"), "token");
}

#[test]
fn test_3_a_settlement_that_comes_after_the_next_rotation_settles_only_its_own_attempt() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let mut task = root.reserve_for("t", &owner).launched();
    let turn = task.turn();
    let old = task.again();
    let _ = root.json(&["stop", "t", "--failure", "it broke"]).is(0, "stopping");
    owner.kill();
    let second = Owner::start();
    let _ = task.rotated_with("reawaken", &["--owner-pid", &second.pid()]);
    // The first attempt's settlement was on its way all the time.
    let _ = root.refuses(10, "not-owner", &["settle", "t", "--token", &old.token]);
    let args = ["settle", "t", "--attempt", &old.attempt, "--token", &old.token];
    let _ = root.refuses(10, "stale-attempt", &args);
    let args = ["settle", "t", "--turn", &turn, "--close", "--token", &old.token];
    let _ = root.refuses(10, "stale-attempt", &args);
    let settled = old.settle(&turn).is(0, "turn-settled");
    assert_eq!((settled.get("phase").as_str(), settled.get("receipt").as_str()), ("open", "null"));
    assert_eq!(
        task.receipts(),
        Vec::<String>::new(),
        "no receipt for a superseded attempt, nor for its successor"
    );
    assert_eq!(task.stands(), "live");
    assert_eq!(root.row("t")["taskAttemptId"], task.attempt);
}

#[test]
fn test_6_a_stop_waits_as_long_as_it_was_told_and_its_latch_outlives_the_wait() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    let late = root.json(&["stop", "t", "--cleanup", "worktree", "--wait", "1ms"]);
    assert_eq!((late.exit, late.code().as_str()), (12, "stopping"), "{late}");
    let cleanup = late.get("cleanupId");
    assert_eq!(task.stands(), "cleanup-pending");
    let _ = task.begin().is(10, "attempt-closing");
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(task.stands(), "cleanup-pending");
    assert_eq!(
        root.json(&["settle", "t", "--cleanup", &cleanup]).is(0, "cleanup-paid").get("phase"),
        "settled"
    );
    assert_eq!(task.stands(), "terminal-no-report");
    // Paid late and twice: the latch lets go once.
    let again = root.json(&["settle", "t", "--cleanup", &cleanup]).is(0, "already-settled");
    assert_eq!(again.get("phase"), "settled");
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
}

#[test]
fn test_6_a_second_stop_joins_the_first_and_adds_its_own_debt() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    let first = root.json(&["stop", "t", "--cleanup", "worktree"]).is(0, "stopping").get("cleanupId");
    let second =
        root.json(&["stop", "t", "--cleanup", "worktree"]).is(0, "already-stopping").get("cleanupId");
    assert_ne!(first, second);
    let _ = task.settle(&turn).is(0, "turn-settled");
    for (cleanup, phase) in [(&first, "closing"), (&first, "closing"), (&second, "settled")] {
        let paid = root.json(&["settle", "t", "--cleanup", cleanup]);
        assert_eq!((paid.exit, paid.get("phase").as_str()), (0, phase));
    }
    assert_eq!(root.json(&["stop", "t"]).is(0, "already-stopped").get("stopEpoch"), "3");
}

/// Rules 6 and 96.
#[test]
fn test_6_a_settlement_whose_receipt_cannot_be_written_leaves_the_attempt_as_it_was() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    // Something that is no folder lies where the receipts go.
    let place = root.path().join("sessions").join("ws").join("subagent-attempt-settlements");
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(&place, b"in the way").unwrap();
    let before = root.row("t");
    let failed = task.settle(&turn);
    assert!(matches!(failed.exit, 65 | 74), "{failed}");
    assert_eq!(root.row("t"), before);
    assert_eq!(task.stands(), "cleanup-pending");
    std::fs::remove_file(&place).unwrap();
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
    assert_eq!(task.stands(), "terminal-no-report");
}

#[test]
fn test_6_the_debts_of_a_dead_debtor_are_written_off_and_a_deadline_pays_nothing() {
    let root = TestRoot::new();
    let mut debtor = Owner::start();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    let args = ["stop", "t", "--cleanup", "worktree", "--owner-pid", &debtor.pid()];
    let _ = root.json(&args).is(0, "stopping");
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(root.json(&["recover"]).is(0, "recovered").get("atWork"), "1");
    assert_eq!(task.seen("phase"), "closing");
    debtor.kill();
    let done = root.json(&["recover"]).is(0, "recovered");
    assert_eq!((done.get("recovered.0.did").as_str(), task.seen("phase").as_str()), ("wrote-off", "settled"));
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
}

#[test]
fn test_6b_a_report_published_while_a_stop_waits_is_adopted() {
    let root = TestRoot::new();
    let task = root.reserve_step("t").launched();
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    let _ = task.report("it was nearly done").is(0, "report-accepted");
    assert_eq!(task.stands(), "reported");
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(task.stands(), "reported");
    let _ = task.claim(&[]).is(10, "report-published");
    let _ = task.report("a second one").is(10, "late-report");
    assert_eq!(root.run(&["report", "t", "--show"]).stdout.trim_end(), "it was nearly done");
}

/// How a task comes to a point where its turn may still publish.
type Boundary = fn(&Task<'_>);

#[test]
fn test_6b_at_every_boundary_where_a_report_is_still_possible_there_is_no_receipt() {
    let root = TestRoot::new();
    let boundaries: [(&str, Boundary); 5] = [
        ("stopping", |task| drop(task.stop().is(0, "stopping"))),
        ("failing", |task| drop(task.root.json(&["stop", &task.id, "--failure", "x"]).is(0, "stopping"))),
        ("closing", |task| drop(task.close().is(12, "obligations-owed"))),
        ("running", |_| ()),
        ("swept", |task| drop(task.root.json(&["recover", &task.id]).is(0, "recovered"))),
    ];
    for (id, boundary) in boundaries {
        let task = root.reserve(id).launched();
        let turn = task.turn();
        boundary(&task);
        assert_eq!(task.receipts(), Vec::<String>::new(), "{id}");
        let _ = task.report("done").is(0, "report-accepted");
        assert_eq!(task.stands(), "reported", "{id}");
        let _ = task.settle(&turn).is(0, "turn-settled");
        // And once nothing is in flight, a report does not count any more; it is kept.
        let _ = task.stop();
        let _ = task.report("later").is(10, "late-report");
        assert_eq!(root.run(&["report", id, "--show"]).stdout.trim_end(), "done");
        assert_eq!(root.run(&["report", id, "--show", "--late"]).stdout.trim_end(), "later");
    }
}

#[test]
fn test_6b_a_report_after_the_receipt_is_refused_and_kept() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    let _ = task.settle(&turn).is(0, "turn-settled");
    let late = task.report("too late").is(10, "late-report");
    assert_eq!(late.get("reasonCode"), "attempt-settled");
    assert_eq!(task.stands(), "terminal-no-report");
    assert_eq!(task.seen("lateReports"), "1");
    assert_eq!(root.run(&["report", "t", "--show", "--late"]).stdout.trim_end(), "too late");
}
