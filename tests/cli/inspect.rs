//! `inspect`: what is true of a task, on which evidence, and what leads on. It changes nothing.

use serde_json::Value;

use crate::common::{Task, TestRoot};
use crate::kit::{Process, owned_by, receipt_file, rewrite_row, row_path, untouched};

/// Outcome and reason, as `inspect` answers them.
pub fn told(root: &TestRoot, args: &[&str]) -> String {
    let mut whole = vec!["inspect"];
    whole.extend(args);
    let out = root.json(&whole);
    match out.get("reasonCode").as_str() {
        "null" => out.get("outcome"),
        reason => format!("{} {reason}", out.get("outcome")),
    }
}

#[track_caller]
pub fn is(task: &Task<'_>, wanted: &str) {
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

pub fn register(task: &Task<'_>) {
    let args = ["admit", &task.id, "--attempt", &task.attempt, "--token", &task.token];
    task.root.json(&args).is(0, "registered");
}

/// The same task thrice: its owner alive, unknown and dead.
pub fn thrice<'a>(root: &'a TestRoot, name: &str, prepare: impl Fn(&Task<'a>)) -> [Task<'a>; 3] {
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

pub fn launch(task: &Task<'_>) {
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

/// Rule 62.
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
    root.json(&["stop", "t1"]).is(0, "stopping");
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

/// Rules 60 and 85.
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
