//! `rotate`: the four kinds, what is expected, and what is left behind.

use std::fmt::Write as _;

use crate::common::{Task, TestRoot, without_tokens};
use crate::owners::{NOBODY, Process, alive};

#[test]
fn a_launch_under_the_reservations_own_token_keeps_id_and_token() {
    let root = TestRoot::new();
    let task = root.reserve_unknown("t1");
    let launch = ["rotate", "t1", "--as", "launch", "--token", &task.token];
    let out = root.run(&launch);
    insta::assert_snapshot!(out, @"
    exit 0
    --- stdout
    task `t1` is starting under its own attempt
    taskId:          t1
    attemptId:       att_de15204e35ca515e
    taskStatus:      starting
    proven:          true
    receiptEligible: true
    owned:           true
    reason:          the reservation's own launch
    stopEpoch:       0
    hint: without --owner-pid nobody can prove later that the owner died; pass the pid of the process that does the work
    ");
    assert!(!out.stdout.contains("tok"), "no token, and no word of a hidden one");
    let row = root.row("t1");
    assert_eq!(
        (&row["taskAttemptId"], &row["taskStatus"]),
        (&task.attempt.as_str().into(), &"starting".into())
    );
    let again = root.json(&launch).is(10, "not-queued");
    assert_eq!(again.get("taskStatus"), "starting");
    let _turn = task.turn();
}

#[test]
fn an_own_launch_keeps_the_owner_record_unless_it_gives_a_new_one() {
    let root = TestRoot::new();
    let first = Process::start();
    let task = root.reserve_with("t1", &["--owner", "a", "--owner-pid", &first.pid()]);
    let kept = root.json(&["rotate", "t1", "--as", "launch", "--token", &task.token]).is(0, "launched");
    assert_eq!((kept.get("ownerPid"), kept.get("owned")), (first.pid(), "true".to_owned()));
    assert_eq!(kept.json().get("token"), None, "{kept}");
    assert_eq!(root.row("t1")["attempt"]["owner"]["name"], "a");

    let task = root.reserve_with("t2", &["--owner", "a", "--owner-pid", &first.pid()]);
    let launch = ["rotate", "t2", "--as", "launch", "--token", &task.token, "--owner-pid", &alive()];
    let _ = root.json(&launch).is(0, "launched");
    let owner = root.row("t2")["attempt"]["owner"].clone();
    assert_eq!(owner["process"]["pid"], std::process::id());
    assert_eq!(owner["name"], serde_json::Value::Null, "the record is replaced whole");

    let task = root.reserve_with("t3", &["--owner", "a", "--owner-pid", &first.pid()]);
    let _ = root.json(&["rotate", "t3", "--as", "launch", "--token", &task.token, "--owner", "b"]);
    assert_eq!(root.row("t3")["attempt"]["owner"].to_string(), r#"{"name":"b"}"#);
}

#[test]
fn a_launch_by_a_stranger_takes_the_row_over_under_a_fresh_id() {
    let root = TestRoot::new();
    let first = Process::start();
    let mut task = root.reserve_with("t1", &["--owner", "first", "--owner-pid", &first.pid()]);
    let (old, old_token) = (task.attempt.clone(), task.token.clone());
    let out = root.json(&["rotate", "t1", "--as", "launch"]).is(0, "launched");
    insta::assert_snapshot!(without_tokens(&out.to_string()), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"rotate","code":"launched","root":"[DIR]/root","requestId":"req_b0599e694c170d04","taskId":"t1","attemptId":"att_44ef219a1efd157c","taskStatus":"starting","proven":true,"receiptEligible":true,"owned":true,"ownerPid":null,"reason":"a queued task was never admitted, so its launcher is proven","stopEpoch":0,"previousAttemptId":"att_de15204e35ca515e","token":"[TOKEN]","workerToken":"[TOKEN]","message":"task `t1` is starting, taken over from its reservation","hint":"without --owner-pid nobody can prove later that the owner died; pass the pid of the process that does the work"}
    "#);
    assert_eq!(out.get("previousAttemptId"), old);
    (task.attempt, task.token) = (out.get("attemptId"), out.get("token"));
    assert_ne!((task.attempt.as_str(), task.token.as_str()), (old.as_str(), old_token.as_str()));

    let attempt = root.row("t1")["attempt"].to_string();
    assert!(!attempt.contains("first") && !attempt.contains(&first.pid()), "no trace: {attempt}");
    assert_eq!(root.row("t1")["superseded"], serde_json::Value::Null, "a queued attempt was never admitted");
    let admit = ["admit", "t1", "--attempt", &task.attempt, "--start", "--token"];
    let _ = root.json(&[&admit[..], &[&old_token]].concat()).is(10, "not-owner");
    let stale = root.json(&["admit", "t1", "--attempt", &old, "--start", "--token", &old_token]);
    assert_eq!(stale.is(10, "stale-attempt").get("currentAttemptId"), task.attempt);
    let turn = task.turn();
    let closed = root.json(&["settle", "t1", "--turn", &turn, "--close", "--token", &task.token]);
    assert_eq!(closed.is(0, "turn-settled").get("receipt"), "execution-settled", "its launcher is proven");
}

#[test]
fn a_taken_over_row_keeps_its_marker() {
    let root = TestRoot::new();
    let _task = root.reserve("t1");
    let attempt = root.row("t1")["taskAttemptId"].to_string();
    root.edit_row("t1", &format!("{attempt},"), &format!(r#"{attempt},"taskAttemptUnproven":true,"#));
    let out = root.json(&["rotate", "t1", "--as", "launch"]).is(0, "launched");
    assert_eq!((out.get("proven"), out.get("receiptEligible")), ("false".to_owned(), "false".to_owned()));
    assert_eq!(root.row("t1")["taskAttemptUnproven"], true);
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    assert!(!root.tree().contains("settlements"), "no receipt: {}", root.tree());
}

#[test]
fn a_queued_row_from_before_attempts_is_launched_unproven() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    root.edit_row("t1", &format!(r#""taskAttemptId":"{}","#, task.attempt), "");
    let out = root.json(&["rotate", "t1", "--as", "launch", "--token", &task.token]).is(0, "launched");
    assert_eq!((out.get("proven"), out.get("receiptEligible")), ("false".to_owned(), "false".to_owned()));
    assert_ne!(out.get("attemptId"), task.attempt);
    assert!(out.json()["previousAttemptId"].is_null(), "{out}");
}

#[test]
fn a_launch_with_somebody_elses_token_is_refused() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    let other = root.reserve("t2");
    let before = root.bytes();
    for token in [&other.token, &task.worker, "tok_", "nonsense", ""] {
        let _ = root.json(&["rotate", "t1", "--as", "launch", "--token", token]).is(10, "not-owner");
    }
    let worker = root.run(&["rotate", "t1", "--as", "launch", "--token", &task.worker]);
    insta::assert_snapshot!(worker, @"
    exit 10
    --- stderr
    lychgate rotate: refused (not-owner): attempt att_de15204e35ca515e of task `t1` needs the token, and a worker's token may report and admit, not settle
    hint: pass --token, --token-file or --token-fd, or set LYCHGATE_TOKEN; anyone may `stop`
    ");
    assert_eq!(root.bytes(), before);
}

#[test]
fn of_two_launchers_one_is_abandoned() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    let expected = ["rotate", "t1", "--as", "launch", "--expect", &task.attempt];
    // The first one holds the lock; the second cannot tell yet, and gets nothing.
    let first = root.paused(&["rotate", "t1", "--as", "launch"], "locked-task");
    root.wait_reached("locked-task");
    let _ = root.json(&[&expected[..], &["--lock-wait", "0"]].concat()).is(75, "busy");
    root.go("locked-task");
    let first = root.finish(first).is(0, "launched");
    let before = root.bytes();
    let late = root.json(&expected).is(10, "stale-launch");
    assert_eq!(late.get("currentAttemptId"), first.get("attemptId"));
    insta::assert_snapshot!(root.run(&expected), @"
    exit 10
    --- stderr
    lychgate rotate: refused (stale-launch): task `t1` has attempt att_44ef219a1efd157c now, not the reserved att_de15204e35ca515e: this launch is abandoned
    ");
    let own = [&expected[..], &["--token", &task.token]].concat();
    let _ = root.json(&own).is(10, "stale-launch");
    let _ = root.json(&["rotate", "t1", "--as", "launch"]).is(10, "not-queued");
    assert_eq!(root.bytes(), before);
}

#[test]
fn what_a_caller_expects_is_compared_under_the_lock() {
    let root = TestRoot::new();
    let mut task = root.reserve("t1").launched();
    let first = task.attempt.clone();
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    let rotate = |expect: &str| root.json(&["rotate", "t1", "--as", "reawaken", "--expect", expect]);
    let before = root.bytes();
    for epoch in [0, 2, u64::MAX] {
        let refused = rotate(&format!("{first}@{epoch}")).is(10, "stale-epoch");
        assert_eq!(refused.get("stopEpoch"), "1");
    }
    for wrong in ["", "t1", "@1", &format!("{first}@"), &format!("{first}@-1"), &format!("{first}@+1")] {
        let _ = rotate(wrong).is(64, "usage");
    }
    let unknown = "att_0000000000000000";
    let refused = rotate(&format!("{unknown}@1")).is(10, "stale-attempt");
    assert_eq!(refused.get("currentAttemptId"), first);
    assert_eq!(root.bytes(), before);
    let second = rotate(&format!("{first}@1")).is(0, "rotated");
    assert_eq!(second.get("stopEpoch"), "1");
    let _ = rotate(&first).is(10, "stale-attempt");
    task.attempt = second.get("attemptId");
    task.token = second.get("token");
    let turn = task.turn();
    let _ = task.report("done").is(0, "report-accepted");
    let _ = task.settle(&turn).is(0, "turn-settled");
    for kind in ["reactivate", "startup"] {
        let _ = root.json(&["rotate", "t1", "--as", kind, "--expect", &first]).is(10, "stale-attempt");
    }
}

#[test]
fn each_kind_needs_its_own_status() {
    let root = TestRoot::new();
    let _queued = root.reserve("queued");
    let _running = root.reserve("starting").launched();
    let stopped = root.reserve("interrupted").launched();
    let _ = root.json(&["stop", &stopped.id]).is(0, "stopped");
    let reported = root.reserve("reported").launched();
    let turn = reported.turn();
    let _ = reported.report("done").is(0, "report-accepted");
    let _ = reported.settle(&turn).is(0, "turn-settled");
    let before = root.bytes();
    let mut seen = String::new();
    for task in ["queued", "starting", "interrupted", "reported"] {
        for kind in ["launch", "reawaken", "reactivate", "startup"] {
            let fits = matches!(
                (task, kind),
                ("queued", "launch") | ("interrupted", "reawaken") | ("reported", "reactivate")
            );
            if !fits {
                let out = root.json(&["rotate", task, "--as", kind]);
                writeln!(seen, "{task} --as {kind}: {} {}", out.exit, out.code()).unwrap();
            }
        }
    }
    insta::assert_snapshot!(seen, @"
    queued --as reawaken: 10 not-interrupted
    queued --as reactivate: 10 not-reported
    queued --as startup: 10 not-running
    starting --as launch: 10 not-queued
    starting --as reawaken: 10 not-interrupted
    starting --as reactivate: 10 not-reported
    starting --as startup: 10 owner-alive
    interrupted --as launch: 10 not-queued
    interrupted --as reactivate: 10 not-reported
    interrupted --as startup: 10 attempt-settled
    reported --as launch: 10 not-queued
    reported --as reawaken: 10 not-interrupted
    reported --as startup: 10 not-running
    ");
    let _ = root.json(&["rotate", "nobody", "--as", "launch"]).is(10, "no-task-record");
    let _ = root.json(&["rotate", "queued"]).is(64, "usage");
    let _ = root.json(&["rotate", "queued", "--as", "other"]).is(64, "usage");
    assert_eq!(root.bytes(), before);
}

#[test]
fn a_reawakening_is_proven_by_the_receipt_of_what_was_before() {
    let root = TestRoot::new();
    let mut task = root.reserve("t1").launched();
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    let out = task.rotated("reawaken");
    insta::assert_snapshot!(without_tokens(&out.to_string()), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"rotate","code":"rotated","root":"[DIR]/root","requestId":"req_fa93608d3808a42c","taskId":"t1","attemptId":"att_f689a3a85894f1ed","taskStatus":"running","proven":true,"receiptEligible":true,"owned":true,"ownerPid":null,"reason":"the receipt of att_de15204e35ca515e proves it over","stopEpoch":1,"previousAttemptId":"att_de15204e35ca515e","token":"[TOKEN]","workerToken":"[TOKEN]","message":"task `t1` has a fresh, proven attempt: the receipt of att_de15204e35ca515e proves it over","hint":"without --owner-pid nobody can prove later that the owner died; pass the pid of the process that does the work"}
    "#);
    assert_eq!(root.row("t1")["taskStatus"], "running");
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    let receipts = root.tree().lines().filter(|line| line.contains("settlements/t1/")).count();
    assert_eq!(receipts, 3, "the folder and both attempts' receipts: {}", root.tree());

    lose_receipt(&task);
    let stranger = root.json(&["rotate", "t1", "--as", "reawaken"]).is(0, "rotated");
    assert_eq!(stranger.get("proven"), "false", "{stranger}");
}

#[test]
fn the_owner_itself_proves_its_own_settlement() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    lose_receipt(&task);
    let out = root.json(&["rotate", "t1", "--as", "reawaken", "--token", &task.token]).is(0, "rotated");
    assert_eq!((out.get("proven"), out.get("receiptEligible")), ("true".to_owned(), "true".to_owned()));
    assert!(out.get("reason").contains("settled it and says so itself"), "{out}");
}

/// Somebody removes the receipt of a settled attempt, after the row has stopped vouching for it.
fn lose_receipt(task: &Task) {
    let _ = task.root.json(&["stop", &task.id]).is(0, "already-stopped");
    let receipt = format!("sessions/ws/subagent-attempt-settlements/{}/{}.json", task.id, task.attempt);
    std::fs::remove_file(task.root.path().join(receipt)).unwrap();
}

#[test]
fn a_reactivated_task_stays_reported_and_may_be_admitted_again() {
    let root = TestRoot::new();
    let mut task = root.reserve("t1").launched();
    let turn = task.turn();
    let _ = task.report("first").is(0, "report-accepted");
    let _ = root.json(&["settle", "t1", "--turn", &turn, "--close", "--token", &task.token]);
    let first = task.attempt.clone();
    let out = task.rotated("reactivate");
    assert_eq!((out.get("taskStatus"), out.get("proven")), ("reported".to_owned(), "true".to_owned()));
    let row = root.row("t1");
    assert_eq!((&row["taskStatus"], &row["reportAttemptId"]), (&"reported".into(), &first.as_str().into()));
    let _turn = task.turn();
    assert_eq!(root.row("t1")["taskStatus"], "reported");
}

#[test]
fn a_startup_is_nobodys_and_unproven_for_good() {
    let root = TestRoot::new();
    let owner = Process::start();
    let task = root.reserve_with("t1", &["--owner", "gone", "--owner-pid", &owner.pid()]).launched();
    owner.die();
    let startup = ["rotate", "t1", "--as", "startup", "--owner", "new", "--owner-pid", &alive()];
    let out = root.json(&startup).is(0, "rotated");
    insta::assert_snapshot!(without_tokens(&out.to_string()), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"rotate","code":"rotated","root":"[DIR]/root","requestId":"req_983fe5c6f3a3b9e0","taskId":"t1","attemptId":"att_6b60908f0b05dfa2","taskStatus":"running","proven":false,"receiptEligible":false,"owned":false,"ownerPid":null,"reason":"re-driven after a restart: what ran before was never proven over","stopEpoch":0,"previousAttemptId":"att_de15204e35ca515e","message":"task `t1` has a fresh attempt that nobody owns; it gets one send"}
    "#);
    assert_eq!(out.json().get("token"), None);
    let attempt = root.row("t1")["attempt"].clone();
    assert_eq!((&attempt["owned"], &attempt["owner"]), (&false.into(), &serde_json::json!({})));
    let stale = ["admit", "t1", "--attempt", &task.attempt, "--start", "--token", &task.token];
    let _ = root.json(&stale).is(10, "stale-attempt");
    for kind in ["startup", "reawaken", "reawaken"] {
        if kind == "reawaken" {
            let _ = root.json(&["stop", "t1"]).is(0, "stopped");
        }
        let out = root.json(&["rotate", "t1", "--as", kind]).is(0, "rotated");
        assert_eq!((out.get("proven"), out.get("receiptEligible")), ("false".to_owned(), "false".to_owned()));
    }
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    assert!(!root.tree().contains("settlements"), "no receipt, ever: {}", root.tree());
}

#[test]
fn a_closed_attempt_is_not_re_driven() {
    let root = TestRoot::new();
    let owner = Process::start();
    let task = root.reserve_with("t1", &["--owner-pid", &owner.pid()]).launched();
    let turn = task.turn();
    let _ = root.json(&["stop", "t1"]).is(0, "stopping");
    owner.die();
    let startup = ["rotate", "t1", "--as", "startup", "--unproven"];
    let refused = root.json(&startup).is(10, "attempt-closing");
    assert_eq!(refused.get("owed.0.turnId"), turn);
    let _ = task.settle(&turn).is(0, "turn-settled");
    let _ = root.json(&startup).is(10, "attempt-settled");
}

#[test]
fn a_retired_attempt_is_never_followed_by_another() {
    let root = TestRoot::new();
    let task = root.reserve_step("t1");
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    let _ = task.claim(&[]).is(0, "claimed");
    let before = root.bytes();
    for kind in ["launch", "reawaken", "reactivate", "startup"] {
        let _ = root.json(&["rotate", "t1", "--as", kind, "--token", &task.token]).is(10, "retired");
    }
    insta::assert_snapshot!(root.run(&["rotate", "t1", "--as", "reawaken"]), @"
    exit 10
    --- stderr
    lychgate rotate: refused (retired): This sub-agent's attempt was retired by workflow run run (step step); start a new task instead.
    ");
    assert_eq!(root.bytes(), before);
}

#[test]
fn nothing_below_a_stopped_ancestor_is_launched_reawakened_or_reactivated() {
    let root = TestRoot::new();
    let _ = root.reserve("p").launched();
    let child = |id: &str| root.json(&["reserve", id, "--parent", "p"]).is(0, "reserved");
    let _ = child("queued");
    let _ = child("interrupted");
    let _ = root.json(&["stop", "interrupted"]).is(0, "stopped");
    let made = child("reported");
    let task = Task {
        root: &root,
        id: "reported".to_owned(),
        attempt: made.get("attemptId"),
        token: made.get("token"),
        worker: made.get("workerToken"),
    }
    .launched();
    let _turn = task.turn();
    let _ = task.report("done").is(0, "report-accepted");
    let _ = root.json(&["stop", "p"]).is(0, "stopped");
    let before = root.bytes();
    for (id, kind) in [("queued", "launch"), ("interrupted", "reawaken"), ("reported", "reactivate")] {
        let refused = root.json(&["rotate", id, "--as", kind, "--unproven"]).is(10, "ancestor-stopped");
        assert_eq!(refused.get("ancestor"), "p");
    }
    insta::assert_snapshot!(root.run(&["rotate", "queued", "--as", "launch"]), @"
    exit 10
    --- stderr
    lychgate rotate: refused (ancestor-stopped): ancestor `p` of task `queued` is stopped
    hint: its descendants go on after: lychgate rotate p --as reawaken
    ");
    assert_eq!(root.bytes(), before);
    let _ = root.json(&["rotate", "p", "--as", "reawaken"]).is(0, "rotated");
    let _ = root.json(&["rotate", "queued", "--as", "launch"]).is(0, "launched");
}

#[test]
fn an_owner_that_cannot_be_read_now_is_refused() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    let before = root.bytes();
    let launch = ["rotate", "t1", "--as", "launch", "--owner-pid", NOBODY];
    let _ = root.json(&launch).is(10, "owner-pid-unreadable");
    let _ = root.json(&[&launch[..], &["--token", &task.token]].concat()).is(10, "owner-pid-unreadable");
    assert_eq!(root.bytes(), before);
}
