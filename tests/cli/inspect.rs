//! `inspect`: what is true of a task, on which evidence, and what leads on. It changes nothing.

use std::process::Command;

use serde_json::Value;

use crate::common::{BIN, Outcome, Task, TestRoot};
use crate::kit::{Process, owned_by, pinned, receipt_file, rewrite_row, row_path, untouched};

const STEP: [&str; 6] = ["--run", "run", "--step", "step", "--input-hash", "hash"];

/// Outcome and reason, as `inspect` answers them.
fn told(root: &TestRoot, args: &[&str]) -> String {
    let mut whole = vec!["inspect"];
    whole.extend(args);
    let out = root.json(&whole);
    match out.get("reasonCode").as_str() {
        "null" => out.get("outcome"),
        reason => format!("{} {reason}", out.get("outcome")),
    }
}

#[track_caller]
fn is(task: &Task<'_>, wanted: &str) {
    let before = untouched(task.root);
    assert_eq!(told(task.root, &[&task.id]), wanted, "{}", task.id);
    assert_eq!(before, untouched(task.root), "reading changes nothing");
}

/// What somebody with the owner's token sees.
#[track_caller]
fn is_for_its_owner(task: &Task<'_>, wanted: &str) {
    assert_eq!(told(task.root, &[&task.id, "--token", &task.token]), wanted, "{}", task.id);
    for stranger in [&task.worker, &"tok_0".to_owned()] {
        let seen = told(task.root, &[&task.id, "--token", stranger]);
        assert_eq!(seen, told(task.root, &[&task.id]), "any other token is none");
    }
}

fn register(task: &Task<'_>) {
    let args = ["admit", &task.id, "--attempt", &task.attempt, "--token", &task.token];
    task.root.json(&args).is(0, "registered");
}

/// The same task thrice: its owner alive, unknown and dead.
fn thrice<'a>(root: &'a TestRoot, name: &str, prepare: impl Fn(&Task<'a>)) -> [Task<'a>; 3] {
    let mut mortal = Process::alive();
    let unknown = root.reserve_unknown(&format!("{name}-unknown"));
    let tasks = [
        // The test itself is alive.
        root.reserve(&format!("{name}-alive")),
        unknown,
        owned_by(root, &mortal, &format!("{name}-dead")),
    ];
    tasks.iter().for_each(&prepare);
    mortal.die();
    tasks
}

fn launch(task: &Task<'_>) {
    let args = ["rotate", &task.id, "--as", "launch", "--token", &task.token];
    task.root.json(&args).is(0, "launched");
}

#[test]
fn a_queued_task_is_live_unless_its_maker_is_dead() {
    let root = TestRoot::new();
    let [alive, unknown, dead] = thrice(&root, "queued", |_| ());
    is(&alive, "live");
    is(&unknown, "live");
    is(&dead, "indeterminate owner-dead-unsettled");
}

#[test]
fn a_launched_task_is_live_only_while_somebody_vouches_for_it() {
    let root = TestRoot::new();
    let [alive, unknown, dead] = thrice(&root, "starting", launch);
    is(&alive, "live");
    is(&unknown, "indeterminate owned-unsettled");
    is_for_its_owner(&unknown, "live");
    is(&dead, "indeterminate owner-dead-unsettled");
    is_for_its_owner(&dead, "live");
    let [alive, unknown, dead] = thrice(&root, "pending", |task| {
        launch(task);
        register(task);
    });
    is(&alive, "live");
    is(&unknown, "live");
    is(&dead, "indeterminate owner-dead-unsettled");
}

#[test]
fn a_turn_in_flight_is_live_only_while_somebody_vouches_for_it() {
    let root = TestRoot::new();
    let [alive, unknown, dead] = thrice(&root, "running", |task| {
        launch(task);
        task.turn();
    });
    is(&alive, "live");
    is(&unknown, "indeterminate owner-unknown");
    is_for_its_owner(&unknown, "live");
    is(&dead, "indeterminate owner-dead-unsettled");
    is_for_its_owner(&dead, "live");
}

#[test]
fn a_closing_task_waits_for_an_owner_that_can_pay() {
    let root = TestRoot::new();
    for cleanup in [true, false] {
        let name = if cleanup { "owing" } else { "closing" };
        let [alive, unknown, dead] = thrice(&root, name, |task| {
            launch(task);
            let mut stop = vec!["stop", &task.id];
            if cleanup {
                stop.extend(["--cleanup", "worktree"]);
            } else {
                task.turn();
            }
            root.json(&stop).is(0, "stopping");
        });
        is(&alive, "cleanup-pending");
        is(&unknown, "indeterminate owner-unknown");
        is_for_its_owner(&unknown, "cleanup-pending");
        is(&dead, "indeterminate owner-dead-unsettled");
        is_for_its_owner(&dead, "cleanup-pending");
    }
}

#[test]
fn a_settled_task_is_over_on_its_receipt_or_on_its_owners_word() {
    let root = TestRoot::new();
    let [alive, unknown, dead] = thrice(&root, "settled", |task| {
        launch(task);
        root.json(&["stop", &task.id]).is(0, "stopped");
        // A later commit, so that no record of the settling one stands for the receipt.
        root.json(&["stop", &task.id]).is(0, "already-stopped");
    });
    for task in [alive, unknown, dead] {
        is(&task, "terminal-no-report");
        let file = receipt_file(&task);
        let whole = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, whole.replace(&task.attempt, "att_0000000000000000")).unwrap();
        is(&task, "indeterminate receipt-unreadable");
        is_for_its_owner(&task, "indeterminate receipt-unreadable");
        std::fs::remove_file(&file).unwrap();
        is(&task, "indeterminate unowned-no-receipt");
        is_for_its_owner(&task, "terminal-no-report");
    }
}

#[test]
fn a_marked_lineage_is_never_terminal() {
    let root = TestRoot::new();
    let mut task = root.reserve_unknown("t1").launched();
    let (turn, token) = (task.turn(), task.token.clone());
    root.json(&["stop", "t1"]).is(0, "stopping");
    let out = root.json(&["rotate", "t1", "--as", "reawaken", "--unproven"]).is(0, "rotated");
    (task.attempt, task.token, task.worker) =
        (out.get("attemptId"), out.get("token"), out.get("workerToken"));
    root.json(&["stop", "t1"]).is(0, "stopped");
    is(&task, "indeterminate owner-unknown");
    root.json(&["settle", "t1", "--turn", &turn, "--token", &token]).is(0, "turn-settled");
    is(&task, "indeterminate lineage-unproven");
    is_for_its_owner(&task, "indeterminate lineage-unproven");
}

#[test]
fn a_task_nobody_owns_has_nobody_to_settle_it() {
    let root = TestRoot::new();
    let mut task = root.reserve_unknown("t1").launched();
    let out = root.json(&["rotate", "t1", "--as", "startup", "--unproven"]).is(0, "rotated");
    task.attempt = out.get("attemptId");
    is(&task, "indeterminate unowned-no-receipt");
    assert_eq!(root.json(&["inspect", "t1"]).get("owner.alive"), "none");
    let send = root.json(&["admit", "t1", "--attempt", &task.attempt]).is(0, "registered").get("sendId");
    is(&task, "live");
    root.json(&["admit", "t1", "--send", &send, "--start"]).is(0, "admitted");
    is(&task, "indeterminate owner-unknown");
}

#[test]
fn a_report_counts_until_a_later_attempt_is_at_work() {
    let root = TestRoot::new();
    let [alive, unknown, dead] = thrice(&root, "reported", |task| {
        launch(task);
        let turn = task.turn();
        task.report("done").is(0, "report-accepted");
        is(task, "reported");
        root.json(&["stop", &task.id]).is(0, "stopping");
        is(task, "reported");
        task.settle(&turn).is(0, "turn-settled");
        is(task, "reported");
    });
    let life = Process::alive();
    for (task, owner, wanted) in
        [(alive, Some(&life), "live"), (unknown, None, "indeterminate owner-unknown")]
    {
        let pid = owner.map(Process::pid).unwrap_or_default();
        let mut args = vec!["rotate", &task.id, "--as", "reactivate"];
        if owner.is_some() {
            args.extend(["--owner-pid", &pid]);
        }
        let out = root.json(&args).is(0, "rotated");
        is(&task, "reported");
        let (attempt, token) = (out.get("attemptId"), out.get("token"));
        root.json(&["admit", &task.id, "--attempt", &attempt, "--start", "--token", &token])
            .is(0, "admitted");
        is(&task, wanted);
    }
    is(&dead, "reported");
}

#[test]
fn a_report_that_is_not_what_the_row_says_leaves_nothing_to_rely_on() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let folder = root.path().join("sessions/ws/subagent-reports/t1");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{}.json", task.attempt));
    std::fs::write(&file, b"{}").unwrap();
    is(&task, "indeterminate report-unreadable");
    std::fs::remove_file(&file).unwrap();
    is(&task, "live");
    task.turn();
    task.report("done").is(0, "report-accepted");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, b"{}").unwrap();
    is(&task, "indeterminate report-unreadable");
    std::fs::write(&file, whole).unwrap();
    is(&task, "reported");
    task.report("another").is(10, "late-report");
    is(&task, "reported");
}

#[test]
fn a_row_that_cannot_be_read_is_said_and_hides_no_other() {
    let root = TestRoot::new();
    let (task, other) = (root.reserve_unknown("t1"), root.reserve_unknown("t2"));
    let whole = std::fs::read(row_path(&root, "t1")).unwrap();
    std::fs::write(row_path(&root, "t1"), &whole[..whole.len() - 9]).unwrap();
    let out = root.json(&["inspect", "t1"]).is(65, "row-unreadable");
    assert_eq!(
        (out.get("outcome"), out.get("reasonCode")),
        ("indeterminate".into(), "row-unreadable".into())
    );
    assert_eq!(out.get("identity.kind"), "unknown");
    is(&other, "live");
    let out = root.json(&["inspect"]).is(0, "ok");
    assert_eq!(out.get("tasks.0.reasonCode"), "row-unreadable");
    assert_eq!(out.get("tasks.1.outcome"), "live");
    root.json(&["inspect", "t2", "t1"]).is(65, "row-unreadable");
    drop(task);
}

#[test]
fn a_task_without_a_row_or_an_attempt_id_has_no_identity_to_rely_on() {
    let root = TestRoot::new();
    let task = root.reserve_unknown("t1").launched();
    root.json(&["stop", "t1"]).is(0, "stopped");
    rewrite_row(&root, "t1", |row| {
        row.as_object_mut().unwrap().remove("taskAttemptId");
    });
    is(&task, "indeterminate legacy-no-attempt-id");
    assert_eq!(
        root.json(&["inspect", "t1"]).json()["identity"].to_string(),
        r#"{"kind":"legacy","attemptId":null}"#
    );
    insta::assert_snapshot!(root.json(&["inspect", "t9"]), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"inspect","code":"ok","root":"[DIR]/root","requestId":"req_1f668cb79ce77109","taskId":"t9","outcome":"indeterminate","reasonCode":"no-task-record","why":"there is no row for it","identity":{"kind":"unknown","attemptId":null},"message":"task `t9` is indeterminate: there is no row for it"}
    "#);
    insta::assert_snapshot!(root.run(&["inspect", "t9"]), @"
    exit 0
    --- stdout
    root [DIR]/root
    task       t9
    outcome    indeterminate (no-task-record)
    why        there is no row for it
    ");
}

#[test]
fn a_row_of_a_newer_version_is_read_and_not_written() {
    let root = TestRoot::new();
    let task = root.reserve_unknown("t1").launched();
    crate::kit::rewrite_document(&root, "t1", |document| document["version"] = Value::from(2));
    is(&task, "indeterminate owned-unsettled");
    assert_eq!(root.json(&["inspect", "t1"]).get("newerVersion"), "true");
    crate::kit::refused(&root, &["settle", "t1", "--token", &task.token], 65, "newer-version");
    crate::kit::refused(&root, &["stop", "t1"], 65, "newer-version");
}

#[test]
fn a_task_that_changes_while_it_is_read_is_read_again_and_a_restless_one_is_said() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let mut command = root.command(&["inspect", "t1", "--json"]);
    command.envs([("LYCHGATE_TEST_PAUSE", "between-readings"), ("LYCHGATE_TEST_PAUSE_EACH", "1")]);
    command.env("LYCHGATE_TEST_PAUSE_DIR", root.scratch());
    let step = |changes: bool| {
        root.wait_reached("between-readings");
        std::fs::remove_file(root.file("between-readings.reached")).unwrap();
        if changes {
            register(&task);
        }
        root.go("between-readings");
    };
    let call = command.spawn().unwrap();
    // Changed once: the new state is answered, from two readings that agree.
    [true, false, false].into_iter().for_each(step);
    let out = root.finish(call);
    assert_eq!((out.get("outcome"), out.json()["sends"].as_array().unwrap().len()), ("live".into(), 1));
    let call = command.spawn().unwrap();
    [true; 6].into_iter().for_each(step);
    let out = root.finish(call).is(0, "ok");
    assert_eq!(
        (out.get("outcome"), out.get("reasonCode")),
        ("indeterminate".into(), "identity-changed".into())
    );
    insta::assert_snapshot!(out.get("why"), @"it changes faster than it can be read; ask again");
}

#[test]
fn the_owner_is_told_with_what_is_known_of_it() {
    let root = TestRoot::new();
    let mut process = Process::alive();
    let task = owned_by(&root, &process, "t1").launched();
    let owner = |task: &str| root.json(&["inspect", task]).json()["owner"].clone();
    let told = owner("t1");
    assert_eq!((&told["name"], &told["alive"]), (&Value::from("bob"), &Value::from("yes")));
    assert_eq!(told["pid"].to_string(), process.pid());
    assert!(told["startTicks"].is_u64() && told["bootId"].is_string() && told["host"].is_string(), "{told}");
    process.die();
    assert_eq!(owner("t1")["alive"], "no");
    // Another process with the same number is not the owner.
    let mine = std::process::id().to_string();
    let reused = root.reserve_with("t2", &["--owner-pid", &mine]);
    assert_eq!(owner("t2")["alive"], "yes");
    rewrite_row(&root, "t2", |row| row["attempt"]["owner"]["process"]["startTicks"] = Value::from(1));
    assert_eq!(owner("t2")["alive"], "no");
    // On another machine, or from what a recorder could not read, nothing is proven.
    rewrite_row(&root, "t2", |row| {
        row["attempt"]["owner"]["process"]["machineId"] = Value::from("elsewhere");
    });
    assert_eq!(owner("t2")["alive"], "unknown");
    let unknown = root.reserve_unknown("t3");
    insta::assert_snapshot!(owner("t3"), @r#"{"name":null,"alive":"unknown","why":"no --owner-pid was given, so nobody can tell","pid":null,"startTicks":null,"host":null,"bootId":null}"#);
    drop((task, reused, unknown));
}

#[test]
#[allow(clippy::too_many_lines, reason = "the answers are pinned whole")]
fn one_task_is_told_whole() {
    let root = TestRoot::new();
    let args = ["--ancestor", "top", "--owner", "bob"];
    let mut more = args.to_vec();
    more.extend(STEP);
    let task = root.reserve_with("t1", &more).launched();
    let start = ["admit", "t1", "--attempt", &task.attempt, "--start", "--label", "write tests"];
    let mut start = start.to_vec();
    start.extend(["--token", &task.token]);
    root.json(&start).is(0, "admitted");
    register(&task);
    task.report("late").is(0, "report-accepted");
    task.report("later").is(10, "late-report");
    root.json(&["stop", "t1", "--reason", "lunch", "--failure", "too hot", "--cleanup", "worktree"])
        .is(0, "stopping");
    let out = root.json(&["inspect", "t1", "--explain", "--history"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&out.json()).unwrap(), @r#"
    {
      "ok": true,
      "command": "inspect",
      "code": "ok",
      "root": "[DIR]/root",
      "requestId": "req_0b4057279873b28c",
      "taskId": "t1",
      "outcome": "reported",
      "reasonCode": null,
      "why": "its report counts",
      "identity": {
        "kind": "id",
        "attemptId": "att_de15204e35ca515e"
      },
      "taskStatus": "reported",
      "phase": "closing",
      "proven": true,
      "receiptEligible": true,
      "origin": "reserve",
      "since": "2026-01-01T00:00:01.000Z",
      "owner": {
        "name": "bob",
        "alive": "unknown",
        "why": "no --owner-pid was given, so nobody can tell",
        "pid": null,
        "startTicks": null,
        "host": null,
        "bootId": null
      },
      "live": true,
      "turns": [
        {
          "kind": "turn",
          "turnId": "turn_de15204e35ca515e0001",
          "sendId": "snd_de15204e35ca515e0001",
          "attemptId": "att_de15204e35ca515e",
          "since": "2026-01-01T00:00:03.000Z",
          "label": "write tests",
          "ageSeconds": 5
        }
      ],
      "sends": [],
      "owed": [
        {
          "kind": "turn",
          "turnId": "turn_de15204e35ca515e0001",
          "sendId": "snd_de15204e35ca515e0001",
          "attemptId": "att_de15204e35ca515e",
          "since": "2026-01-01T00:00:03.000Z",
          "label": "write tests",
          "ageSeconds": 5
        },
        {
          "kind": "cleanup",
          "cleanupId": "cln_f908fb94e17cee91ee613f96b00129e5",
          "name": "worktree",
          "since": "2026-01-01T00:00:07.000Z",
          "ageSeconds": 1
        }
      ],
      "stopEpoch": 1,
      "closed": {
        "by": "stop",
        "while": "turn",
        "at": "2026-01-01T00:00:07.000Z",
        "reason": "lunch",
        "failure": "too hot",
        "settledAt": null,
        "receipt": null
      },
      "retiredBy": null,
      "report": {
        "attemptId": "att_de15204e35ca515e",
        "title": null,
        "bytes": 4,
        "at": "2026-01-01T00:00:05.000Z",
        "path": "[DIR]/root/sessions/ws/subagent-reports/t1/att_de15204e35ca515e.json"
      },
      "lateReports": 1,
      "parentWorkspaceId": "ws",
      "ancestors": [
        "top"
      ],
      "revision": 7,
      "createdAt": "2026-01-01T00:00:01.000Z",
      "updatedAt": "2026-01-01T00:00:07.000Z",
      "workflowTask": {
        "runId": "run",
        "stepId": "step",
        "inputHash": "hash"
      },
      "next": [
        "lychgate report t1 --show",
        "lychgate settle t1 --turn turn_de15204e35ca515e0001 --token-file FILE",
        "lychgate settle t1 --cleanup cln_f908fb94e17cee91ee613f96b00129e5"
      ],
      "evidence": [
        {
          "evidence": "row",
          "from": "[DIR]/root/tasks/t1/row.json",
          "says": "reported/closing"
        },
        {
          "evidence": "reports",
          "from": "[DIR]/root/sessions/ws/subagent-reports/t1",
          "says": "1, whole, as the row says"
        },
        {
          "evidence": "in flight",
          "from": "row",
          "says": "1 turn(s) of this attempt, 0 of earlier ones, 0 send(s) not admitted"
        },
        {
          "evidence": "settlement",
          "from": "row",
          "says": "admission is shut, 1 turn and 1 cleanup are still owed"
        },
        {
          "evidence": "owner",
          "from": "process",
          "says": "unknown: no --owner-pid was given, so nobody can tell"
        },
        {
          "evidence": "token",
          "from": "caller",
          "says": "none was shown"
        },
        {
          "evidence": "lineage",
          "from": "row",
          "says": "proven (a reservation is the first admission of its task); its settlement may leave a receipt"
        },
        {
          "evidence": "receipt",
          "from": "[DIR]/root/sessions/ws/subagent-attempt-settlements/t1/att_de15204e35ca515e.json",
          "says": "there is none"
        }
      ],
      "history": [
        {
          "n": 1,
          "at": "2026-01-01T00:00:01.000Z",
          "command": "reserve",
          "requestId": "req_f0d5b1efa390b1eb",
          "what": "reserved",
          "to": "queued/open",
          "subject": "att_de15204e35ca515e"
        },
        {
          "n": 2,
          "at": "2026-01-01T00:00:02.000Z",
          "command": "rotate",
          "requestId": "req_b0599e694c170d04",
          "what": "launched",
          "from": "queued/open",
          "to": "starting/open"
        },
        {
          "n": 3,
          "at": "2026-01-01T00:00:03.000Z",
          "command": "admit",
          "requestId": "req_983fe5c6f3a3b9e0",
          "what": "admitted",
          "from": "starting/open",
          "to": "running/open",
          "subject": "turn_de15204e35ca515e0001",
          "note": "write tests"
        },
        {
          "n": 4,
          "at": "2026-01-01T00:00:04.000Z",
          "command": "admit",
          "requestId": "req_fa93608d3808a42c",
          "what": "registered",
          "from": "running/open",
          "to": "running/open",
          "subject": "snd_de15204e35ca515e0002"
        },
        {
          "n": 5,
          "at": "2026-01-01T00:00:05.000Z",
          "command": "report",
          "requestId": "req_fa49589d28a678f0",
          "what": "report-accepted",
          "from": "running/open",
          "to": "reported/open",
          "subject": "att_de15204e35ca515e"
        },
        {
          "n": 6,
          "at": "2026-01-01T00:00:06.000Z",
          "command": "report",
          "requestId": "req_1f668cb79ce77109",
          "what": "late-report",
          "from": "reported/open",
          "to": "reported/open",
          "subject": "att_de15204e35ca515e",
          "note": "second-report"
        },
        {
          "n": 7,
          "at": "2026-01-01T00:00:07.000Z",
          "command": "stop",
          "requestId": "req_0b23a835283d1d6d",
          "what": "stopping",
          "from": "reported/open",
          "to": "reported/closing",
          "note": "lunch"
        }
      ],
      "message": "task `t1` is reported: its report counts"
    }
    "#);
    insta::assert_snapshot!(root.run(&["inspect", "t1", "--explain", "--history"]), @"
    exit 0
    --- stdout
    root [DIR]/root
    task       t1
    outcome    reported
    why        its report counts
    status     reported, admission shut, closing
    attempt    att_de15204e35ca515e (reserve)
    lineage    proven
    owner      `bob`, unknown: no --owner-pid was given, so nobody can tell
    in flight  1 turn(s), 0 send(s); 2 owed
      owed     turn turn_de15204e35ca515e0001  since 2026-01-01T00:00:03.000Z
      owed     cleanup cln_f908fb94e17cee91ee613f96b00129e5 worktree since 2026-01-01T00:00:07.000Z
    stopped    lunch
    failure    too hot
    report     [DIR]/root/sessions/ws/subagent-reports/t1/att_de15204e35ca515e.json
    late       1 refused report(s) kept
    evidence
      row        reported/closing
                 [DIR]/root/tasks/t1/row.json
      reports    1, whole, as the row says
                 [DIR]/root/sessions/ws/subagent-reports/t1
      in flight  1 turn(s) of this attempt, 0 of earlier ones, 0 send(s) not admitted
      settlement admission is shut, 1 turn and 1 cleanup are still owed
      owner      unknown: no --owner-pid was given, so nobody can tell
      token      none was shown
      lineage    proven (a reservation is the first admission of its task); its settlement may leave a receipt
      receipt    there is none
                 [DIR]/root/sessions/ws/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
    next
      lychgate report t1 --show
      lychgate settle t1 --turn turn_de15204e35ca515e0001 --token-file FILE
      lychgate settle t1 --cleanup cln_f908fb94e17cee91ee613f96b00129e5
    history
      2026-01-01T00:00:01.000Z reserve      reserved           queued/open att_de15204e35ca515e
      2026-01-01T00:00:02.000Z rotate       launched           queued/open -> starting/open
      2026-01-01T00:00:03.000Z admit        admitted           starting/open -> running/open turn_de15204e35ca515e0001 write tests
      2026-01-01T00:00:04.000Z admit        registered         running/open -> running/open snd_de15204e35ca515e0002
      2026-01-01T00:00:05.000Z report       report-accepted    running/open -> reported/open att_de15204e35ca515e
      2026-01-01T00:00:06.000Z report       late-report        reported/open -> reported/open att_de15204e35ca515e second-report
      2026-01-01T00:00:07.000Z stop         stopping           reported/open -> reported/closing lunch
    ");
    insta::assert_snapshot!(root.run(&["inspect", "t1", "--format", "sh"]), @"
    exit 0
    --- stdout
    unset LYCHGATE_EXIT LYCHGATE_CODE LYCHGATE_ANSWER_ROOT LYCHGATE_REQUEST_ID LYCHGATE_ANSWER_TASK LYCHGATE_ANSWER_ATTEMPT LYCHGATE_MESSAGE LYCHGATE_HINT LYCHGATE_OUTCOME LYCHGATE_REASON LYCHGATE_WHY LYCHGATE_TASK_STATUS LYCHGATE_PHASE LYCHGATE_PROVEN LYCHGATE_RECEIPT_ELIGIBLE LYCHGATE_RECEIPT LYCHGATE_OWNER_ALIVE LYCHGATE_LIVE LYCHGATE_TURNS_COUNT LYCHGATE_OWED_COUNT LYCHGATE_REPORT_PATH LYCHGATE_REPORT_ATTEMPT_ID LYCHGATE_LATE_REPORTS LYCHGATE_PARENT_WORKSPACE_ID LYCHGATE_RUN_ID LYCHGATE_STEP_ID LYCHGATE_INPUT_HASH LYCHGATE_REPLACEMENT_TASK_ID LYCHGATE_STOP_EPOCH LYCHGATE_SINCE LYCHGATE_TASKS_COUNT
    LYCHGATE_EXIT='0'
    LYCHGATE_CODE='ok'
    LYCHGATE_OUTCOME='reported'
    LYCHGATE_WHY='its report counts'
    LYCHGATE_TASK_STATUS='reported'
    LYCHGATE_PHASE='closing'
    LYCHGATE_PROVEN='true'
    LYCHGATE_RECEIPT_ELIGIBLE='true'
    LYCHGATE_OWNER_ALIVE='unknown'
    LYCHGATE_LIVE='true'
    LYCHGATE_TURNS_COUNT='1'
    LYCHGATE_OWED_COUNT='2'
    LYCHGATE_REPORT_PATH='[DIR]/root/sessions/ws/subagent-reports/t1/att_de15204e35ca515e.json'
    LYCHGATE_REPORT_ATTEMPT_ID='att_de15204e35ca515e'
    LYCHGATE_LATE_REPORTS='1'
    LYCHGATE_PARENT_WORKSPACE_ID='ws'
    LYCHGATE_RUN_ID='run'
    LYCHGATE_STEP_ID='step'
    LYCHGATE_INPUT_HASH='hash'
    LYCHGATE_STOP_EPOCH='1'
    LYCHGATE_SINCE='2026-01-01T00:00:01.000Z'
    LYCHGATE_ANSWER_TASK='t1'
    LYCHGATE_ANSWER_ATTEMPT='att_de15204e35ca515e'
    LYCHGATE_ANSWER_ROOT='[DIR]/root'
    LYCHGATE_REQUEST_ID='req_d41ffaecb32de191'
    LYCHGATE_MESSAGE='task `t1` is reported: its report counts'
    ");
    let print =
        ["inspect", "t1", "--print", "outcome,owner.name,turns.0.label,owed.1.ageSeconds,none,closed.reason"];
    insta::assert_snapshot!(root.run(&print).stdout, @"
    reported
    bob
    write tests
    4

    lunch
    ");
}

#[test]
fn a_retired_task_is_shown_with_its_claim_and_its_replacement() {
    let root = TestRoot::new();
    let task = root.reserve_step("t1").launched();
    root.json(&["stop", "t1"]).is(0, "stopped");
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    let out = root.run(&["inspect", "t1"]);
    insta::assert_snapshot!(pinned(&out), @"
    exit 0
    --- stdout
    root [DIR]/root
    task       t1
    outcome    terminal-no-report
    why        the receipt of att_de15204e35ca515e proves it over
    status     interrupted, admission shut, settled
    attempt    att_de15204e35ca515e (reserve)
    lineage    proven
    owner      unnamed, unknown: no --owner-pid was given, so nobody can tell
    in flight  0 turn(s), 0 send(s); 0 owed
    retired    for run run step step, not replaced yet
    next
      lychgate claim-retire t1 --attempt att_de15204e35ca515e --run run --step step --input-hash hash --parent ws
      lychgate reserve --replaces t1 --nonce NONCE
    ");
    assert!(
        !root.json(&["inspect", "t1", "--explain"]).stdout.contains(&nonce),
        "a nonce is not for everybody"
    );
    root.json(&["reserve", "t2", "--replaces", "t1", "--nonce", &nonce]).is(0, "reserved");
    insta::assert_snapshot!(root.json(&["inspect", "t1"]).json()["retiredBy"], @r#"{"runId":"run","stepId":"step","inputHash":"hash","attemptId":"att_de15204e35ca515e","mode":"no-report","authority":null,"at":"2026-01-01T00:00:04.000Z","replacementTaskId":"t2"}"#);
    assert_eq!(root.json(&["inspect", "t1"]).json()["next"].to_string(), r#"["lychgate inspect t2"]"#);
    assert_eq!(root.json(&["inspect", "t2"]).json()["replaces"]["taskId"], "t1");
    insta::assert_snapshot!(root.run(&["inspect"]), @"
    exit 0
    --- stdout
    root [DIR]/root
    TASK    OUTCOME            STATUS       OWNER    WHY
    t2      live               queued       unknown  it is queued and waits to be l…
    t1      retired            interrupted  unknown  replaced by t2
    ");
}

/// One task of each outcome, with long names and words.
fn of_each(root: &TestRoot) -> Vec<Task<'_>> {
    let reported = root.reserve("a-reported").launched();
    reported.turn();
    reported.report("done").is(0, "report-accepted");
    let live = root
        .reserve("b-live, with a name that is far too long to fit into any column of a table 漢字")
        .launched();
    let over = root.reserve_step("c-over").launched();
    root.json(&["stop", "c-over"]).is(0, "stopped");
    let closing = root.reserve("d-closing").launched();
    closing.turn();
    root.json(&["stop", "d-closing"]).is(0, "stopping");
    let unknown = root.reserve_unknown("e-unknown").launched();
    unknown.turn();
    let retired = root.reserve_step("f-retired").launched();
    root.json(&["stop", "f-retired"]).is(0, "stopped");
    retired.claim(&[]).is(0, "claimed");
    vec![reported, live, over, closing, unknown, retired]
}

#[test]
fn the_list_is_most_urgent_first_and_fits_its_columns() {
    let root = TestRoot::new();
    insta::assert_snapshot!(root.run(&["inspect"]), @"
    exit 0
    --- stdout
    there is no root at `[DIR]/root` yet; the first `reserve` makes it
    tasks: none
    ");
    let tasks = of_each(&root);
    let list = root.run(&["inspect"]);
    insta::assert_snapshot!(list, @"
    exit 0
    --- stdout
    root [DIR]/root
    TASK                      OUTCOME            STATUS       OWNER    WHY
    e-unknown                 indeterminate      running      unknown  owner-unknown
    d-closing                 cleanup-pending    interrupted  alive    admission is…
    c-over                    terminal-no-report interrupted  unknown  the receipt …
    b-live, with a name that… live               starting     alive    admission is…
    a-reported                reported           reported     alive    its report c…
    f-retired                 retired            interrupted  unknown  not replaced…
    ");
    for columns in ["60", "80", "132"] {
        let mut command = root.command(&["inspect"]);
        let out = root.finish(command.env("COLUMNS", columns).spawn().unwrap());
        let widest = out.stdout.lines().skip(1).map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse().unwrap(), "{columns}: {out}");
    }
    let order = |args: &[&str]| -> Vec<String> {
        let json = root.json(args).json();
        let tasks = json["tasks"].as_array().unwrap().iter();
        tasks.map(|task| task["taskId"].as_str().unwrap()[..1].to_owned()).collect()
    };
    assert_eq!(order(&["inspect"]), ["e", "d", "c", "b", "a", "f"]);
    assert_eq!(order(&["inspect", "a-reported", "e-unknown", "nobody"]), ["e", "n", "a"]);
    drop(tasks);
}

#[test]
fn stuck_is_what_cannot_be_told_and_what_nothing_has_happened_to_for_ten_minutes() {
    let root = TestRoot::new();
    let tasks = of_each(&root);
    let stuck = |now: &str| {
        let mut command = root.command(&["inspect", "--stuck", "--json"]);
        let out = root.finish(command.env("LYCHGATE_TEST_NOW", now).spawn().unwrap());
        let json = out.json();
        let tasks = json["tasks"].as_array().unwrap().iter();
        tasks.map(|task| &task["taskId"].as_str().unwrap()[..1]).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(stuck("2026-01-01T00:05:00.000Z"), "e");
    assert_eq!(stuck("2026-01-01T00:30:00.000Z"), "e d b a", "its turn has not ended, though it reported");
    // Whatever the clock says, what is over is not stuck; and time alone changes no outcome.
    assert_eq!(stuck("2036-01-01T00:00:00.000Z"), "e d b a");
    assert_eq!(stuck("2016-01-01T00:00:00.000Z"), "e");
    drop(tasks);
}

#[test]
fn expecting_another_outcome_is_refused_with_the_same_fields() {
    let root = TestRoot::new();
    let tasks = of_each(&root);
    root.json(&["inspect", "c-over", "--expect", "terminal-no-report"]).is(0, "ok");
    let fields = |out: Outcome| {
        let mut json = out.json();
        for told in ["ok", "code", "message", "requestId"] {
            json.as_object_mut().unwrap().remove(told);
        }
        json
    };
    let other = root.json(&["inspect", "c-over", "--expect", "live"]).is(10, "outcome-differs");
    assert_eq!(fields(other), fields(root.json(&["inspect", "c-over"])));
    root.json(&["inspect", "c-over", "a-reported", "--expect", "reported"]).is(10, "outcome-differs");
    root.json(&["inspect", "a-reported", "--expect", "reported"]).is(0, "ok");
    root.json(&["inspect", "nobody", "--expect", "indeterminate"]).is(0, "ok");
    root.json(&["inspect", "c-over", "--expect", "gone"]).is(64, "usage");
    insta::assert_snapshot!(root.run(&["inspect", "c-over", "--expect", "live"]), @"
    exit 10
    --- stdout
    root [DIR]/root
    task       c-over
    outcome    terminal-no-report
    why        the receipt of att_f908fb94e17cee91 proves it over
    status     interrupted, admission shut, settled
    attempt    att_f908fb94e17cee91 (reserve)
    lineage    proven
    owner      unnamed, unknown: no --owner-pid was given, so nobody can tell
    in flight  0 turn(s), 0 send(s); 0 owed
    next
      lychgate claim-retire c-over --attempt att_f908fb94e17cee91 --run run --step step --input-hash hash --parent ws
      lychgate rotate c-over --as reawaken
    --- stderr
    lychgate inspect: refused (outcome-differs): the outcome is terminal-no-report, not live
    ");
    drop(tasks);
}

#[test]
fn a_root_that_is_not_there_holds_no_task_and_is_not_made() {
    let root = TestRoot::new();
    insta::assert_snapshot!(root.json(&["inspect", "t1"]), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"inspect","code":"ok","root":"[DIR]/root","requestId":"req_f0d5b1efa390b1eb","taskId":"t1","outcome":"indeterminate","reasonCode":"no-task-record","why":"there is no row for it","identity":{"kind":"unknown","attemptId":null},"message":"there is no root at `[DIR]/root`, so no task `t1`"}
    "#);
    insta::assert_snapshot!(root.run(&["inspect"]), @"
    exit 0
    --- stdout
    there is no root at `[DIR]/root` yet; the first `reserve` makes it
    tasks: none
    ");
    root.json(&["inspect", "t1", "--expect", "live"]).is(10, "outcome-differs");
    assert!(!root.path().exists());
    assert!(!root.scratch().join("home").exists());
}

#[test]
fn reading_changes_no_byte_and_no_time_takes_no_lock_and_shows_no_token() {
    let root = TestRoot::new();
    let tasks = of_each(&root);
    let held = root.paused(
        &["stop", "b-live, with a name that is far too long to fit into any column of a table 漢字"],
        "locked-task",
    );
    root.wait_reached("locked-task");
    let before = untouched(&root);
    for args in [
        vec!["inspect"],
        vec!["inspect", "--json"],
        vec!["inspect", "--stuck", "--explain", "--history"],
        vec!["inspect", "c-over", "--explain", "--history", "--json"],
        vec!["inspect", "e-unknown", "--token", &tasks[4].token, "--json"],
        vec!["inspect", "e-unknown", "--token", &tasks[4].token, "--show-token"],
        vec!["inspect", "nobody"],
    ] {
        let out = root.run(&args);
        assert!(out.exit == 0 && !out.stdout.contains("tok_"), "{out}");
    }
    assert_eq!(before, untouched(&root));
    root.go("locked-task");
    root.finish(held).is(0, "stopped");
}

#[test]
fn a_root_that_cannot_be_written_is_read() {
    let root = TestRoot::new();
    let tasks = of_each(&root);
    let shell = format!(
        "mount --bind {0} {0} && mount -o remount,bind,ro {0} && {BIN} inspect --json && {BIN} stop a-reported --json",
        root.path().display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &shell]).env("LYCHGATE_ROOT", root.path());
    let out = command.output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["tasks"].as_array().unwrap().len(), tasks.len(), "{text}");
    assert_eq!((out.status.code(), &lines[1]["code"]), (Some(74), &Value::from("io")), "{text}");
}

#[test]
fn the_whole_history_is_told_however_long_it_is() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    for _ in 0..60 {
        register(&task);
    }
    assert!(root.path().join("tasks/t1").read_dir().unwrap().count() > 1, "a part of it lies beside the row");
    let json = root.json(&["inspect", "t1", "--history"]).json();
    let numbers: Vec<u64> =
        json["history"].as_array().unwrap().iter().map(|e| e["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=62).collect::<Vec<u64>>());
}

/// Runs every command that `inspect` suggests, each on a copy of the root as it is, and gives their exit codes.
fn suggested(task: &Task<'_>, token: &str, nonce: &str) -> Vec<(String, i32)> {
    let root = task.root;
    let next = root.run(&["inspect", "--explain", "--json", "--", &task.id]).json()["next"].clone();
    let next: Vec<String> = serde_json::from_value(next).unwrap();
    let file = root.file("token");
    std::fs::write(&file, token).unwrap();
    let run = |line: &String| {
        let copy = root.scratch().join("copy");
        let _fresh = std::fs::remove_dir_all(&copy);
        assert!(Command::new("cp").arg("-a").args([root.path(), copy.clone()]).status().unwrap().success());
        let whole = line.replace("FILE", &file).replace("NONCE", nonce).replacen("lychgate", BIN, 1);
        let mut command = Command::new("sh");
        let out = command.args(["-c", &whole]).env("LYCHGATE_ROOT", &copy).output().unwrap();
        (line.replace(&task.attempt, "ATTEMPT"), out.status.code().unwrap())
    };
    next.iter().map(run).collect()
}

/// The suggestions of one situation, one a line, after each was run.
fn leads_on(task: &Task<'_>, nonce: &str) -> String {
    let lines = suggested(task, &task.token, nonce);
    let lines: Vec<String> = lines.into_iter().map(|(line, exit)| format!("{exit:>2} {line}")).collect();
    lines.join("\n")
}

#[test]
fn what_is_suggested_for_a_task_at_work_can_be_typed() {
    let root = TestRoot::new();
    let [queued, queued_unknown, queued_dead] = thrice(&root, "queued", |_| ());
    insta::assert_snapshot!(leads_on(&queued, ""), @"
    0 lychgate rotate queued-alive --as launch
    0 lychgate stop queued-alive
    ");
    insta::assert_snapshot!(leads_on(&queued_unknown, ""), @"
    0 lychgate rotate queued-unknown --as launch
    0 lychgate stop queued-unknown
    ");
    insta::assert_snapshot!(leads_on(&queued_dead, ""), @" 0 lychgate rotate queued-dead --as launch");
    let [starting, starting_unknown, starting_dead] = thrice(&root, "starting", launch);
    insta::assert_snapshot!(leads_on(&starting, ""), @" 0 lychgate stop starting-alive");
    insta::assert_snapshot!(leads_on(&starting_unknown, ""), @"
    0 lychgate stop starting-unknown
    0 lychgate recover starting-unknown --unproven
    ");
    insta::assert_snapshot!(leads_on(&starting_dead, ""), @" 0 lychgate recover starting-dead");
    let [_, running_unknown, running_dead] = thrice(&root, "running", |task| {
        launch(task);
        task.turn();
    });
    insta::assert_snapshot!(leads_on(&running_unknown, ""), @"
    0 lychgate settle running-unknown --turn turn_5cef1fe7bd4ab6210001 --token-file FILE
    0 lychgate stop running-unknown
    0 lychgate recover running-unknown --unproven
    ");
    insta::assert_snapshot!(leads_on(&running_dead, ""), @"
    0 lychgate settle running-dead --turn turn_93017453a80232cf0001 --token-file FILE
    0 lychgate recover running-dead --unproven
    ");
    let [closing, closing_unknown, closing_dead] = thrice(&root, "closing", |task| {
        launch(task);
        task.turn();
        root.json(&["stop", &task.id]).is(0, "stopping");
    });
    insta::assert_snapshot!(leads_on(&closing, ""), @" 0 lychgate settle closing-alive --turn turn_c09b4faf5dc734e50001 --token-file FILE");
    insta::assert_snapshot!(leads_on(&closing_unknown, ""), @"
    0 lychgate settle closing-unknown --turn turn_de855896ca32faa90001 --token-file FILE
    0 lychgate rotate closing-unknown --as reawaken --unproven
    ");
    insta::assert_snapshot!(leads_on(&closing_dead, ""), @"
    0 lychgate settle closing-dead --turn turn_f8e4bd319137a0c90001 --token-file FILE
    0 lychgate rotate closing-dead --as reawaken
    ");
}

#[test]
fn what_is_suggested_for_a_task_that_reported_can_be_typed() {
    let root = TestRoot::new();
    let [reported, reported_unknown, reported_dead] = thrice(&root, "reported", |task| {
        launch(task);
        task.turn();
        task.report("done").is(0, "report-accepted");
    });
    insta::assert_snapshot!(leads_on(&reported, ""), @"
     0 lychgate report reported-alive --show
    12 lychgate settle reported-alive --token-file FILE
     0 lychgate settle reported-alive --turn turn_44ef219a1efd157c0001 --token-file FILE
    ");
    insta::assert_snapshot!(leads_on(&reported_unknown, ""), @"
     0 lychgate report reported-unknown --show
    12 lychgate settle reported-unknown --token-file FILE
     0 lychgate settle reported-unknown --turn turn_de15204e35ca515e0001 --token-file FILE
    ");
    let turn = root.row("reported-dead")["sends"][0]["turnId"].as_str().unwrap().to_owned();
    reported_dead.settle(&turn).is(0, "turn-settled");
    insta::assert_snapshot!(leads_on(&reported_dead, ""), @"
    0 lychgate report reported-dead --show
    0 lychgate settle reported-dead --token-file FILE
    0 lychgate rotate reported-dead --as reactivate
    ");
    // Reactivated, and at work again.
    let mut mortal = Process::alive();
    for (task, pid) in [(&reported, mortal.pid()), (&reported_unknown, String::new())] {
        let turn = root.row(&task.id)["sends"][0]["turnId"].as_str().unwrap().to_owned();
        task.settle(&turn).is(0, "turn-settled");
        let mut args = vec!["rotate", &task.id, "--as", "reactivate"];
        if !pid.is_empty() {
            args.extend(["--owner-pid", &pid]);
        }
        let out = root.json(&args).is(0, "rotated");
        let again = Task {
            root: &root,
            id: task.id.clone(),
            attempt: out.get("attemptId"),
            token: out.get("token"),
            worker: String::new(),
        };
        again.turn();
        if pid.is_empty() {
            insta::assert_snapshot!(leads_on(&again, ""), @"
            0 lychgate settle reported-unknown --turn turn_03c45a284c25ff3b0002 --token-file FILE
            0 lychgate stop reported-unknown
            0 lychgate rotate reported-unknown --as reactivate --unproven
            ");
            root.json(&["stop", &again.id]).is(0, "stopping");
            insta::assert_snapshot!(leads_on(&again, ""), @"
            0 lychgate settle reported-unknown --turn turn_03c45a284c25ff3b0002 --token-file FILE
            0 lychgate rotate reported-unknown --as reactivate --unproven
            ");
        } else {
            insta::assert_snapshot!(leads_on(&again, ""), @" 0 lychgate stop reported-alive");
            mortal.die();
            insta::assert_snapshot!(leads_on(&again, ""), @"
            0 lychgate settle reported-alive --turn turn_93017453a80232cf0002 --token-file FILE
            0 lychgate rotate reported-alive --as reactivate --unproven
            ");
            root.json(&["stop", &again.id]).is(0, "stopping");
            insta::assert_snapshot!(leads_on(&again, ""), @"
            0 lychgate settle reported-alive --turn turn_93017453a80232cf0002 --token-file FILE
            0 lychgate rotate reported-alive --as reactivate
            ");
        }
    }
}

#[test]
fn what_is_suggested_for_a_task_that_is_over_can_be_typed() {
    let root = TestRoot::new();
    let over = root.reserve_step("over").launched();
    root.json(&["stop", "over"]).is(0, "stopped");
    insta::assert_snapshot!(leads_on(&over, ""), @"
    0 lychgate claim-retire over --attempt ATTEMPT --run run --step step --input-hash hash --parent ws
    0 lychgate rotate over --as reawaken
    ");
    let nonce = over.claim(&[]).is(0, "claimed").get("nonce");
    insta::assert_snapshot!(leads_on(&over, &nonce), @"
    0 lychgate claim-retire over --attempt ATTEMPT --run run --step step --input-hash hash --parent ws
    0 lychgate reserve --replaces over --nonce NONCE
    ");
    let mut marked = root.reserve_step("marked").launched();
    root.json(&["rotate", "marked", "--as", "startup", "--unproven"]).is(0, "rotated");
    marked.attempt = root.json(&["inspect", "marked"]).get("identity.attemptId");
    insta::assert_snapshot!(leads_on(&marked, ""), @"
    0 lychgate admit marked --attempt ATTEMPT --start
    0 lychgate stop marked
    ");
    root.json(&["stop", "marked"]).is(0, "stopped");
    marked.rotated("reawaken");
    root.json(&["stop", "marked"]).is(0, "stopped");
    insta::assert_snapshot!(leads_on(&marked, ""), @"
    0 lychgate rotate marked --as reawaken
    0 lychgate claim-retire marked --token-file FILE --attempt ATTEMPT --run run --step step --input-hash hash --parent ws
    ");
    let lost = root.reserve_unknown("lost").launched();
    root.json(&["stop", "lost"]).is(0, "stopped");
    root.json(&["stop", "lost"]).is(0, "already-stopped");
    std::fs::remove_file(receipt_file(&lost)).unwrap();
    insta::assert_snapshot!(leads_on(&lost, ""), @" 0 lychgate rotate lost --as reawaken");
}

#[test]
fn names_that_a_shell_or_the_tool_would_misread_are_suggested_so_that_they_can_be_typed() {
    let root = TestRoot::new();
    let args =
        ["reserve", "--parent=-p s", "--run=-r", "--step=it's", "--input-hash=$(h)", "--json", "--", "-x; y"];
    let out = root.run(&args).is(0, "reserved");
    let task = Task {
        root: &root,
        id: "-x; y".to_owned(),
        attempt: out.get("attemptId"),
        token: out.get("token"),
        worker: String::new(),
    };
    insta::assert_snapshot!(leads_on(&task, ""), @"
    0 lychgate rotate --as launch -- '-x; y'
    0 lychgate stop -- '-x; y'
    ");
    root.run(&["stop", "--json", "--", "-x; y"]).is(0, "stopped");
    insta::assert_snapshot!(leads_on(&task, ""), @r"
    0 lychgate claim-retire --attempt ATTEMPT --run=-r --step 'it'\''s' --input-hash '$(h)' --parent='-p s' -- '-x; y'
    0 lychgate rotate --as reawaken -- '-x; y'
    ");
}
