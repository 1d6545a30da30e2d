//! `inspect` over many tasks, and what it never does: write, wait, or show a secret.

use std::process::Command;

use serde_json::Value;

use crate::common::{BIN, Outcome, Task, TestRoot};
use crate::inspect::register;
use crate::kit::untouched;

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
