//! `recover`: the pass after a restart does what may be done without guessing, and lists the rest.

use serde_json::Value;

use crate::common::{Outcome, Task, TestRoot};
use crate::kit::{Process, history, owned_by, pinned, receipts, refused, row, untouched};

pub fn launch(task: &Task<'_>) {
    let args = ["rotate", &task.id, "--as", "launch", "--token", &task.token];
    task.root.json(&args).is(0, "launched");
}

fn register(task: &Task<'_>) -> String {
    let args = ["admit", &task.id, "--attempt", &task.attempt, "--token", &task.token];
    task.root.json(&args).is(0, "registered").get("sendId")
}

pub fn idle(task: &Task<'_>) {
    launch(task);
    let turn = task.turn();
    task.settle(&turn).is(0, "turn-settled");
}

pub fn working(task: &Task<'_>) {
    launch(task);
    task.turn();
}

/// A task whose owner has died since.
pub fn orphan<'a>(root: &'a TestRoot, id: &str, prepare: impl Fn(&Task<'a>)) -> Task<'a> {
    let mut process = Process::alive();
    let task = owned_by(root, &process, id);
    prepare(&task);
    process.die();
    task
}

/// A task whose owner nobody can tell anything about.
pub fn unknown<'a>(root: &'a TestRoot, id: &str, prepare: impl Fn(&Task<'a>)) -> Task<'a> {
    let task = root.reserve_unknown(id);
    prepare(&task);
    task
}

/// What the pass did with each task, and why it left the others.
pub fn told(out: &Outcome) -> Vec<String> {
    let json = out.json();
    let list = |key: &str| json[key].as_array().unwrap().clone();
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or("-").to_owned();
    let done =
        list("recovered").into_iter().map(|done| format!("{} {}", text(&done, "taskId"), text(&done, "did")));
    let left = list("left").into_iter();
    let left = left.map(|left| format!("{} left {}", text(&left, "taskId"), text(&left, "reasonCode")));
    done.chain(left).collect()
}

/// Runs the pass over one task and says what it did; a second pass must change nothing more.
#[track_caller]
pub fn recovered(task: &Task<'_>, flags: &[&str]) -> String {
    let root = task.root;
    let mut args = vec!["recover", task.id.as_str()];
    args.extend(flags);
    let out = root.json(&args).is(0, "recovered");
    let before = untouched(root);
    root.json(&args).is(0, "recovered");
    root.json(&["recover"]).is(0, "recovered");
    assert_eq!(before, untouched(root), "twice changes nothing more: {out}");
    match told(&out).as_slice() {
        [] => format!("at work {}", out.get("atWork")),
        [one] => one.strip_prefix(&task.id).unwrap().trim().to_owned(),
        more => panic!("{more:?}"),
    }
}

#[test]
fn a_queued_task_waits_for_whoever_launches_it() {
    let root = TestRoot::new();
    assert_eq!(recovered(&root.reserve("alive"), &[]), "at work 1");
    assert_eq!(recovered(&unknown(&root, "unknown", |_| ()), &[]), "at work 1");
    let dead = orphan(&root, "dead", |_| ());
    assert_eq!(recovered(&dead, &[]), "left owner-dead-unsettled");
    assert_eq!(recovered(&dead, &["--unproven"]), "left owner-dead-unsettled");
}

#[test]
fn a_launch_that_never_admitted_a_turn_goes_back_to_the_queue_without_a_mark() {
    let root = TestRoot::new();
    assert_eq!(recovered(&root.reserve("alive").launched(), &[]), "at work 1");
    let lost = unknown(&root, "unknown", launch);
    assert_eq!(recovered(&lost, &[]), "left owner-unknown");
    assert_eq!(recovered(&lost, &["--unproven"]), "reverted");
    let dead = orphan(&root, "dead", |task| {
        launch(task);
        register(task);
    });
    assert_eq!(recovered(&dead, &[]), "reverted");
    insta::assert_snapshot!(row(&root, "dead"), @r#"
    {
      "taskId": "dead",
      "parentWorkspaceId": "ws",
      "taskStatus": "queued",
      "taskAttemptId": "att_dcc2d3e1b91d1af0",
      "attempt": {
        "origin": "reserve",
        "owned": true,
        "receiptEligible": true,
        "reason": "a reservation is the first admission of its task",
        "since": "2026-01-01T00:00:14.000Z",
        "owner": {
          "name": "bob",
          "process": "[PROCESS]"
        },
        "everAdmitted": false
      },
      "stopEpoch": 0,
      "sends": [],
      "sendsMinted": 1,
      "turnsMinted": 0,
      "createdAt": "2026-01-01T00:00:14.000Z",
      "updatedAt": "2026-01-01T00:00:17.000Z"
    }
    "#);
    insta::assert_snapshot!(history(&root, "dead"), @"
    reserve | reserved | - | queued/open | -
    rotate | launched | queued/open | starting/open | -
    admit | registered | starting/open | starting/open | -
    recover | recovered | starting/open | queued/open | a launch that never admitted a turn goes back to the queue
    ");
    let out = root.json(&["rotate", "dead", "--as", "launch"]).is(0, "launched");
    assert_eq!(out.get("receiptEligible"), "true", "its next launch is proven");
}

#[test]
fn an_idle_task_of_a_dead_owner_is_settled_with_a_receipt() {
    let root = TestRoot::new();
    let alive = root.reserve("alive");
    idle(&alive);
    assert_eq!(recovered(&alive, &[]), "at work 1");
    let dead = orphan(&root, "dead", idle);
    let send = register(&dead);
    assert_eq!(recovered(&dead, &[]), "settled");
    insta::assert_snapshot!(receipts(&root), @r#"
    sessions/ws/subagent-attempt-settlements/dead/att_1bb55efa9b096b7a.json
      {"version":1,"taskId":"dead","attemptId":"att_1bb55efa9b096b7a","parentWorkspaceId":"ws","source":"idle-settled","settledAt":"2026-01-01T00:00:13.000Z"}
    "#);
    insta::assert_snapshot!(row(&root, "dead"), @r#"
    {
      "taskId": "dead",
      "parentWorkspaceId": "ws",
      "taskStatus": "interrupted",
      "taskAttemptId": "att_1bb55efa9b096b7a",
      "attempt": {
        "origin": "reserve",
        "owned": true,
        "receiptEligible": true,
        "reason": "a reservation is the first admission of its task",
        "since": "2026-01-01T00:00:08.000Z",
        "owner": {
          "name": "bob",
          "process": "[PROCESS]"
        },
        "everAdmitted": true
      },
      "settlement": {
        "closedBy": "recover",
        "closedFrom": "idle",
        "at": "2026-01-01T00:00:13.000Z",
        "settled": {
          "settledAt": "2026-01-01T00:00:13.000Z",
          "receipt": "idle-settled"
        }
      },
      "stopEpoch": 0,
      "sends": [],
      "sendsMinted": 2,
      "turnsMinted": 1,
      "createdAt": "2026-01-01T00:00:08.000Z",
      "updatedAt": "2026-01-01T00:00:13.000Z"
    }
    "#);
    refused(
        &root,
        &["admit", "dead", "--send", &send, "--start", "--token", &dead.token],
        10,
        "attempt-settled",
    );
    assert_eq!(dead.outcome(), "terminal-no-report");
    let reported = orphan(&root, "reported", |task| {
        launch(task);
        let turn = task.turn();
        task.report("done").is(0, "report-accepted");
        task.settle(&turn).is(0, "turn-settled");
    });
    assert_eq!(recovered(&reported, &[]), "settled");
    assert_eq!(reported.outcome(), "reported", "its report stays");
}

#[test]
fn an_idle_task_whose_lineage_is_unproven_is_driven_again_and_stays_unproven() {
    let root = TestRoot::new();
    let mut mortal = Process::alive();
    let mut task = root.reserve_unknown("t1").launched();
    let (turn, token) = (task.turn(), task.token.clone());
    root.json(&["stop", "t1"]).is(0, "stopping");
    let reawaken = ["rotate", "t1", "--as", "reawaken", "--unproven", "--owner-pid", &mortal.pid()];
    task.attempt = root.json(&reawaken).is(0, "rotated").get("attemptId");
    root.json(&["settle", "t1", "--turn", &turn, "--token", &token]).is(0, "turn-settled");
    mortal.die();
    assert_eq!(recovered(&task, &[]), "re-driven");
    assert_eq!(receipts(&root), "");
    let row = root.row("t1");
    assert_eq!(
        (&row["taskStatus"], &row["attempt"]["owned"]),
        (&Value::from("running"), &Value::from(false))
    );
    assert_eq!(row["taskAttemptUnproven"], true);
    assert_ne!(row["taskAttemptId"], Value::from(task.attempt));
}

#[test]
fn an_unknown_owner_is_left_alone_unless_the_task_is_named_as_unproven() {
    let root = TestRoot::new();
    let quiet = unknown(&root, "quiet", idle);
    assert_eq!(recovered(&quiet, &[]), "left owner-unknown");
    assert_eq!(recovered(&quiet, &["--unproven"]), "re-driven");
    let busy = unknown(&root, "busy", working);
    assert_eq!(recovered(&busy, &[]), "left owner-unknown");
    assert_eq!(recovered(&busy, &["--unproven"]), "re-driven");
    let row = root.row("busy");
    assert_eq!(row["attempt"]["unprovenOverride"]["besideTurns"].as_array().unwrap().len(), 1);
    assert_eq!(row["superseded"][0]["attemptId"], Value::from(busy.attempt.clone()));
    assert_eq!(row["sends"].as_array().unwrap().len(), 1, "the turn of the earlier attempt is kept");
    refused(&root, &["recover", "--unproven"], 64, "usage");
}

#[test]
fn a_turn_of_a_dead_owner_is_never_written_off() {
    let root = TestRoot::new();
    let task = orphan(&root, "t1", working);
    assert_eq!(recovered(&task, &[]), "left owner-dead-unsettled");
    root.json(&["recover"]).is(0, "recovered");
    assert_eq!(receipts(&root), "");
    assert_eq!(recovered(&task, &["--unproven"]), "re-driven");
    assert_eq!(root.row("t1")["sends"].as_array().unwrap().len(), 1);
    assert_eq!(receipts(&root), "");
    assert_eq!(
        recovered(&root.reserve("alive").launched(), &["--unproven"]),
        "at work 1",
        "an alive owner is never passed over"
    );
}

#[test]
fn a_reported_task_is_not_driven_again_whoever_names_it() {
    let root = TestRoot::new();
    let publish = |task: &Task<'_>| {
        working(task);
        task.report("done").is(0, "report-accepted");
    };
    let dead = orphan(&root, "dead", publish);
    assert_eq!(recovered(&dead, &[]), "left owner-dead-unsettled");
    assert_eq!(recovered(&dead, &["--unproven"]), "left owner-dead-unsettled");
    let lost = unknown(&root, "unknown", publish);
    assert_eq!(recovered(&lost, &["--unproven"]), "left owner-unknown");
    assert_eq!(root.row("unknown")["taskAttemptId"], Value::from(lost.attempt));
}

#[test]
fn a_task_that_nobody_owns_gets_its_one_send_before_it_is_driven_again() {
    let root = TestRoot::new();
    let mut task = unknown(&root, "t1", idle);
    let again = |task: &mut Task<'_>| task.attempt = root.json(&["inspect", "t1"]).get("identity.attemptId");
    assert_eq!(recovered(&task, &["--unproven"]), "re-driven");
    again(&mut task);
    assert_eq!(recovered(&task, &[]), "left unowned-no-receipt", "it waits for its send");
    let send = root.json(&["admit", "t1", "--attempt", &task.attempt]).is(0, "registered").get("sendId");
    assert_eq!(recovered(&task, &[]), "left unowned-no-receipt", "the send waits for the gate");
    let turn = root.json(&["admit", "t1", "--send", &send, "--start"]).is(0, "admitted").get("turnId");
    assert_eq!(recovered(&task, &[]), "left owner-unknown", "a turn may be running anywhere");
    root.json(&["settle", "t1", "--turn", &turn]).is(0, "turn-settled");
    assert_eq!(recovered(&task, &[]), "re-driven");
    assert_eq!(receipts(&root), "");
}

#[test]
fn a_closing_task_waits_for_what_its_owner_owes() {
    let root = TestRoot::new();
    let closing = |task: &Task<'_>| {
        working(task);
        root.json(&["stop", &task.id, "--cleanup", "worktree"]).is(0, "stopping");
    };
    let alive = root.reserve("alive");
    closing(&alive);
    assert_eq!(recovered(&alive, &[]), "at work 1");
    assert_eq!(recovered(&unknown(&root, "unknown", closing), &["--unproven"]), "left owner-unknown");
    let dead = orphan(&root, "dead", closing);
    assert_eq!(recovered(&dead, &[]), "left owner-dead-unsettled");
    let out = root.json(&["recover", "dead"]);
    insta::assert_snapshot!(pinned(&out), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"recover","code":"recovered","root":"[DIR]/root","requestId":"req_a330b156cce85aa9","recovered":[],"left":[{"taskId":"dead","attemptId":"att_a6bca6a814fad80a","taskStatus":"interrupted","reasonCode":"owner-dead-unsettled","why":"it is closing, and its owner died owing something","ownerAlive":"no","owed":[{"kind":"turn","turnId":"turn_a6bca6a814fad80a0001","sendId":"snd_a6bca6a814fad80a0001","attemptId":"att_a6bca6a814fad80a","since":"2026-01-01T00:00:17.000Z","owner":"bob"},{"kind":"cleanup","cleanupId":"cln_93017453a80232cf5e842e9f1d0a6d68","name":"worktree","ownerPid":null,"since":"2026-01-01T00:00:18.000Z"}]}],"atWork":0,"message":"0 task(s) recovered, 1 left alone, 0 at work","hint":"each of these says what is missing: lychgate inspect TASK --explain"}
    "#);
    assert_eq!(receipts(&root), "");
}

#[test]
fn the_debts_of_dead_debtors_are_written_off_and_the_last_of_them_leaves_the_receipt() {
    let root = TestRoot::new();
    let mut debtor = Process::alive();
    let stop = |task: &Task<'_>, pid: &str| {
        let args = ["stop", &task.id, "--cleanup", "worktree", "--owner-pid", pid];
        root.json(&args).is(0, "stopping");
    };
    let over = root.reserve("over").launched();
    stop(&over, &debtor.pid());
    assert_eq!(recovered(&over, &[]), "at work 1", "the debtor is alive");
    let more = root.reserve("more").launched();
    stop(&more, &debtor.pid());
    root.json(&["stop", "more", "--cleanup", "container"]).is(0, "already-stopping");
    let turn = root.reserve("turn").launched();
    turn.turn();
    stop(&turn, &debtor.pid());
    debtor.die();
    insta::assert_snapshot!(root.run(&["recover"]), @"
    exit 0
    --- stdout
    3 task(s) recovered, 0 left alone, 0 at work
      more: wrote-off (the debts of dead processes are written off; more is owed)
      over: wrote-off (the debts of dead processes are written off, and it is settled)
      turn: wrote-off (the debts of dead processes are written off; more is owed)
    ");
    insta::assert_snapshot!(receipts(&root), @r#"
    sessions/ws/subagent-attempt-settlements/over/att_de15204e35ca515e.json
      {"version":1,"taskId":"over","attemptId":"att_de15204e35ca515e","parentWorkspaceId":"ws","source":"launch-failed","settledAt":"2026-01-01T00:00:15.000Z"}
    "#);
    assert_eq!(
        (more.outcome(), turn.outcome()),
        ("cleanup-pending".to_owned(), "cleanup-pending".to_owned())
    );
    let cleanups = |task: &str| root.row(task)["settlement"]["cleanups"].as_array().map_or(0, Vec::len);
    assert_eq!((cleanups("more"), cleanups("turn")), (1, 0));
    let before = untouched(&root);
    root.json(&["recover"]).is(0, "recovered");
    assert_eq!(before, untouched(&root));
}

#[test]
fn what_is_over_is_fine_and_not_touched() {
    let root = TestRoot::new();
    let over = orphan(&root, "over", launch);
    root.json(&["stop", "over"]).is(0, "stopped");
    let retired = root.reserve_step("retired").launched();
    root.json(&["stop", "retired"]).is(0, "stopped");
    retired.claim(&[]).is(0, "claimed");
    let before = untouched(&root);
    let out = root.json(&["recover", "over", "retired", "--unproven", "--strict"]).is(0, "recovered");
    insta::assert_snapshot!(out, @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"recover","code":"recovered","root":"[DIR]/root","requestId":"req_0b4057279873b28c","recovered":[],"left":[],"atWork":0,"message":"0 task(s) recovered, 0 left alone, 0 at work"}
    "#);
    insta::assert_snapshot!(root.run(&["recover"]), @"
    exit 0
    --- stdout
    0 task(s) recovered, 0 left alone, 0 at work
    ");
    assert_eq!(before, untouched(&root));
    drop(over);
}
