//! Tests 1, 1b and 1c: which calls publish a fresh attempt, which keep it, and what stands when they fail.

use serde_json::Value;

use crate::actors::{Owner, PATIENT};
use crate::common::{Task, TestRoot};

#[test]
fn test_1_a_reservation_persists_its_attempt_and_its_own_launch_keeps_it() {
    let root = TestRoot::new();
    let task = root.reserve("t");
    assert_eq!(root.row("t")["taskAttemptId"], task.attempt);
    let launched = task.launch().is(0, "launched");
    assert_eq!(launched.get("attemptId"), task.attempt);
    assert_eq!(launched.json().get("token"), None, "the owner has its token already");
    assert_eq!(root.row("t")["taskAttemptId"], task.attempt);
    assert_eq!(root.row("t")["attempt"]["receiptEligible"], true);
    assert_eq!(root.row("t")["taskStatus"], "starting");
}

#[test]
fn test_1_a_launch_of_a_foreign_reservation_publishes_a_fresh_attempt() {
    let root = TestRoot::new();
    let task = root.reserve("t");
    let taken = root.json(&["rotate", "t", "--as", "launch"]).is(0, "launched");
    assert_eq!(taken.get("previousAttemptId"), task.attempt);
    let fresh = taken.get("attemptId");
    assert_ne!(fresh, task.attempt);
    assert_eq!(root.row("t")["taskAttemptId"], fresh);
    assert_eq!(taken.get("receiptEligible"), "true");
    // The reservation's own launcher comes late, with its token, and with the id it has seen.
    let _ = root.refuses(10, "not-queued", &["rotate", "t", "--as", "launch", "--token", &task.token]);
    let _ = task.begin().is(10, "stale-attempt");
    let _ = root
        .json(&["admit", "t", "--attempt", &fresh, "--start", "--token", &task.token])
        .is(10, "not-owner");
}

#[test]
fn test_1_reawakening_and_reactivating_persist_fresh_attempts_and_never_an_old_one() {
    let root = TestRoot::new();
    let mut task = root.reserve("t").launched();
    let mut seen = vec![task.attempt.clone()];
    let _ = task.stop().is(0, "stopped");
    let awake = task.rotated_as_owner("reawaken", &[]);
    assert_eq!(awake.get("taskStatus"), "running");
    seen.push(task.attempt.clone());
    let turn = task.turn();
    let _ = task.report("done").is(0, "report-accepted");
    let _ = task.settle(&turn).is(0, "turn-settled");
    let active = task.rotated_as_owner("reactivate", &[]);
    assert_eq!(active.get("taskStatus"), "reported", "a reactivated task stays reported");
    seen.push(task.attempt.clone());
    assert_eq!(root.row("t")["taskAttemptId"], task.attempt);
    let n_before = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), n_before, "an id came back: {seen:?}");
}

/// Rule 57.
#[test]
fn test_1_a_rotation_that_loses_its_compare_publishes_nothing() {
    let root = TestRoot::new();
    let mut task = root.reserve("t").launched();
    let old = task.attempt.clone();
    let _ = task.stop().is(0, "stopped");
    let _ = root.refuses(10, "not-reported", &["rotate", "t", "--as", "reactivate"]);
    let _ = task.rotated_as_owner("reawaken", &[]);
    let _ = task.stop().is(0, "stopped");
    // The attempt was seen before the reawakening, and the epoch before the second Stop.
    let _ = root.refuses(10, "stale-attempt", &["rotate", "t", "--as", "reawaken", "--expect", &old]);
    let late = format!("{}@1", task.attempt);
    let _ = root.refuses(10, "stale-epoch", &["rotate", "t", "--as", "reawaken", "--expect", &late]);
    let right = format!("{}@2", task.attempt);
    let _ = root.json(&["rotate", "t", "--as", "reawaken", "--expect", &right]).is(0, "rotated");
}

/// A reported task that was reactivated: the report is the first attempt's, and the second is open.
fn reactivated(root: &TestRoot) -> Task<'_> {
    let mut task = root.reserve("t").launched();
    let turn = task.turn();
    let _ = task.report("done").is(0, "report-accepted");
    let _ = task.settle(&turn).is(0, "turn-settled");
    let _ = task.rotated_as_owner("reactivate", &["--owner-pid", &std::process::id().to_string()]);
    task
}

/// Rule 48.
#[test]
fn test_1_a_committed_reactivation_whose_dispatch_fails_keeps_its_attempt_until_a_stop_settles_it() {
    let root = TestRoot::new();
    let first = root.reserve("other").attempt;
    let task = reactivated(&root);
    // The dispatch fails before the gate, and again after it: nothing is rolled back.
    let send = task.send();
    let args = ["settle", "t", "--send", &send, "--as", "refused", "--token", &task.token];
    let _ = root.json(&args).is(0, "send-settled");
    assert_eq!(root.row("t")["taskAttemptId"], task.attempt);
    let turn = task.turn();
    assert_eq!(task.stands(), "live", "a reactivated task with a turn in flight is live");
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(root.row("t")["taskAttemptId"], task.attempt);
    let stopped = task.stop().is(0, "stopped");
    assert_eq!((stopped.get("phase").as_str(), stopped.get("taskStatus").as_str()), ("settled", "reported"));
    assert!(!task.receipts().contains(&first));
    assert_eq!(task.stands(), "reported", "the report of the earlier attempt stands");
}

#[test]
fn test_1_a_row_without_an_attempt_id_is_marked_at_its_launch() {
    let root = TestRoot::new();
    let task = root.reserve("t");
    root.forge("t", |row| drop(row.as_object_mut().unwrap().remove("taskAttemptId")));
    assert_eq!(task.seen("identity.kind"), "legacy");
    let launched = root.json(&["rotate", "t", "--as", "launch"]).is(0, "launched");
    assert_eq!((launched.get("proven"), launched.get("receiptEligible")), ("false".into(), "false".into()));
    assert_ne!(launched.get("attemptId"), task.attempt);
    assert_eq!(root.row("t")["taskAttemptUnproven"], true);
    let _ = task.stop().is(0, "stopped");
    assert_eq!(task.receipts(), Vec::<String>::new());
    assert_eq!(task.stands(), "indeterminate/lineage-unproven");
}

/// Rule 13.
#[test]
fn test_1_a_malformed_attempt_id_is_damage_and_never_taken_for_legacy() {
    for id in ["att_0123456789ABCDEF", "att_", "att_0123456789abcdef0", "", "tok_0123456789abcdef"] {
        let root = TestRoot::new();
        let task = root.reserve("t");
        root.forge("t", |row| row["taskAttemptId"] = Value::from(id));
        let seen = root.json(&["inspect", "t"]).is(65, "row-unreadable");
        assert_eq!(seen.get("identity.kind"), "unknown", "{id}");
        let _ = root.refuses(65, "row-unreadable", &["rotate", "t", "--as", "launch"]);
        let _ = root.refuses(65, "row-unreadable", &["stop", "t"]);
        drop(task);
    }
}

#[test]
fn test_1b_every_restart_path_publishes_a_fresh_attempt_before_its_send() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let named = root.reserve_for("named", &owner).launched();
    let swept = root.reserve_for("swept", &owner).launched();
    for task in [&named, &swept] {
        let turn = task.turn();
        let _ = task.settle(&turn).is(0, "turn-settled");
        let _ = task.turn();
    }
    owner.kill();
    let _ = root.json(&["rotate", "named", "--as", "startup"]).is(0, "rotated");
    let done = root.json(&["recover", "swept", "--unproven"]).is(0, "recovered");
    assert_eq!(done.get("recovered.0.did"), "re-driven");
    for task in [&named, &swept] {
        assert_ne!(root.row(&task.id)["taskAttemptId"], task.attempt);
        assert_eq!(root.row(&task.id)["taskAttemptUnproven"], true);
        assert_eq!(root.row(&task.id)["attempt"]["owned"], false);
        let _ = task.begin().is(10, "stale-attempt");
    }
}

#[test]
fn test_1b_continuations_under_the_owner_keep_the_attempt() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    // A kickoff, a recovery prompt between turns, guidance into the live turn, and a queued continuation.
    let kickoff = task.turn();
    let guidance = task.begin().is(0, "admitted");
    let queued = task.queued_send();
    let _ = task.settle(&kickoff).is(0, "turn-settled");
    let continued = task.gate(&queued).is(0, "admitted");
    let _ = task.report("so far").is(0, "report-accepted");
    for answer in [&guidance, &continued] {
        assert_eq!(answer.get("attemptId"), task.attempt);
    }
    assert_eq!(root.row("t")["taskAttemptId"], task.attempt);
}

#[test]
fn test_1b_a_retired_task_refuses_every_entry_with_one_stable_sentence() {
    let root = TestRoot::new();
    let task = root.reserve_step("t").launched();
    let send = task.send();
    let _ = task.stop().is(0, "stopped");
    let _ = task.claim(&[]).is(0, "claimed");
    let token = ["--token", &task.token];
    for args in [
        vec!["rotate", "t", "--as", "launch"],
        vec!["rotate", "t", "--as", "reawaken"],
        vec!["rotate", "t", "--as", "reawaken", "--unproven"],
        vec!["rotate", "t", "--as", "reactivate"],
        vec!["rotate", "t", "--as", "startup"],
        vec!["rotate", "t", "--as", "startup", "--unproven"],
        vec!["admit", "t", "--attempt", &task.attempt],
        vec!["admit", "t", "--attempt", &task.attempt, "--queued"],
        vec!["admit", "t", "--attempt", &task.attempt, "--start"],
        vec!["admit", "t", "--send", &send, "--queued"],
        vec!["admit", "t", "--send", &send, "--start"],
    ] {
        let refused = root.refuses(10, "retired", &[args.as_slice(), &token].concat());
        let sentence =
            "This sub-agent's attempt was retired by workflow run run (step step); start a new task instead.";
        assert_eq!(refused.get("message"), sentence, "{args:?}");
    }
    let before = root.bytes();
    let _ = root.json(&["recover"]).is(0, "recovered");
    let _ = root.json(&["recover", "t", "--unproven"]).is(0, "recovered");
    assert!(before == root.bytes(), "the pass touched a retired task");
}

/// A terminal child, and the claim and the reawakening that race for it.
fn raced(root: &TestRoot) -> (Task<'_>, [Vec<String>; 2]) {
    let task = root.reserve_step("t").launched();
    let _ = task.stop().is(0, "stopped");
    let words = |text: &str| -> Vec<String> { text.split(' ').chain(PATIENT).map(str::to_owned).collect() };
    let claim = format!(
        "claim-retire t --attempt {} --run run --step step --input-hash hash --parent ws",
        task.attempt
    );
    (task, [words(&claim), words("rotate t --as reawaken")])
}

/// Rule 5.
#[test]
fn test_1c_a_claim_and_a_reawakening_exclude_each_other_in_both_orders() {
    for first in 0..2 {
        let root = TestRoot::new();
        let (task, calls) = raced(&root);
        let args = |n: usize| -> Vec<&str> { calls[n].iter().map(String::as_str).collect() };
        // The first holds the lock and has decided; the second waits for the lock, and finds what the first made.
        let parked = root.park(&args(first), "before-rename");
        let waiting = root.start(&args(1 - first));
        let won = parked.go();
        let lost = root.finish(waiting);
        assert_eq!(won.exit, 0, "{won}");
        if first == 0 {
            let _ = lost.is(10, "retired");
            assert_eq!(root.row("t")["taskAttemptId"], task.attempt);
        } else {
            let _ = lost.is(10, "stale-attempt");
            assert_eq!(root.row("t")["taskAttemptRetiredBy"], Value::Null);
        }
    }
}

#[test]
fn test_1c_of_many_claims_and_reawakenings_at_once_exactly_one_side_wins() {
    for _ in 0..4 {
        let root = TestRoot::new();
        let (_, calls) = raced(&root);
        let both = calls.iter().map(|call| call.iter().map(String::as_str).collect::<Vec<_>>());
        let both: Vec<Vec<&str>> = both.collect();
        let outcomes = root.at_once(&[both.clone(), both.clone(), both].concat());
        let n =
            |side: usize| outcomes.iter().skip(side).step_by(2).filter(|outcome| outcome.exit == 0).count();
        // A claim is idempotent, a reawakening is not.
        let sides = (n(0), n(1));
        assert!(sides == (3, 0) || sides == (0, 1), "{sides:?}");
    }
}
