//! Names, ids and payloads: A63, A65 and A67.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::common::{BIN, Task, TestRoot};

#[test]
fn a63_a_large_report_lies_beside_the_row_and_costs_nobody_else() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    std::fs::write(root.scratch().join("report"), "0123456789abcdef".repeat(1_000_000)).unwrap();
    let args = ["report", "t", "--attempt", &task.attempt, "--token", &task.token, "--file", "report"];
    let _ = root.json(&args).is(0, "report-accepted");
    let row = std::fs::metadata(root.path().join("tasks/t/row.json")).unwrap().len();
    assert!(row < 20_000, "the payload is in the row: {row} bytes");
    let plain = root.command(&[]);
    let limited = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-euc", &format!("ulimit -v 200000; {script}"), BIN]).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        root.finish(command.spawn().unwrap())
    };
    let seen = limited(r#""$0" inspect t --explain --history --json"#).is(0, "ok");
    assert!(seen.stdout.len() < 20_000, "inspect prints the payload");
    assert_eq!(seen.get("outcome"), "reported");
    let shown = limited(r#""$0" report t --show | wc -c"#);
    assert_eq!((shown.exit, shown.stdout.trim()), (0, "16000000"));
    let _ = task.settle(&turn).is(0, "turn-settled");
}

#[test]
fn a63_what_is_too_large_is_refused_by_name_and_nothing_of_it_stays() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let _ = task.turn();
    std::fs::write(root.scratch().join("report"), vec![b'x'; 16 * 1024 * 1024 + 1]).unwrap();
    let args = ["report", "t", "--attempt", &task.attempt, "--token", &task.token, "--file", "report"];
    let _ = root.refuses(64, "report-too-large", &args);
    let long = "x".repeat(129);
    for call in [
        vec!["reserve", long.as_str(), "--parent", "ws"],
        vec!["reserve", "u", "--parent", &long],
        vec!["reserve", "u", "--parent", "ws", "--owner", &long],
        vec!["inspect", &long],
    ] {
        let _ = root.refuses(64, "usage", &call);
    }
    assert_eq!(task.stands(), "live");
}

#[test]
fn a65_names_that_look_alike_are_different_tasks() {
    let root = TestRoot::new();
    let long = "y".repeat(128);
    let longer = format!("{}z", "y".repeat(127));
    let spaced = "%".repeat(128);
    let names = [
        "a.b", "a:b", "a_b", "A.B", "a b", "a/b", "a%2Fb", "a%252Fb", "a\\b", "e\u{301}", "\u{e9}", "-x",
        ".", "..", ".hidden", "con", "a.json", "row.json", "tasks", "~", "*", "a'b", "a\"b", "$HOME", "%2E",
        "%", &long, &longer, &spaced,
    ];
    let mut attempts = BTreeSet::new();
    let tasks: Vec<Task<'_>> = names
        .iter()
        .map(|name| {
            let out = root.run(&["reserve", "--json", "--parent", "ws", "--", name]).is(0, "reserved");
            assert_eq!(out.get("taskId"), *name);
            attempts.insert(out.get("attemptId"));
            Task {
                root: &root,
                id: (*name).into(),
                attempt: out.get("attemptId"),
                token: out.get("token"),
                worker: String::new(),
            }
        })
        .collect();
    assert_eq!(attempts.len(), names.len());
    let listed = root.json(&["inspect"]).is(0, "ok").json();
    let listed: BTreeSet<&str> =
        listed["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap()).collect();
    assert_eq!(listed, names.into_iter().collect());
    let (dot, colon) = (&tasks[0], &tasks[1]);
    let _ = dot.launch().is(0, "launched");
    assert_eq!(root.json(&["inspect", "a:b"]).get("taskStatus"), "queued");
    let _ = root
        .json(&["admit", "a:b", "--attempt", &dot.attempt, "--token", &dot.token])
        .is(10, "stale-attempt");
    let _ =
        root.json(&["admit", "a:b", "--attempt", &colon.attempt, "--token", &dot.token]).is(10, "not-owner");
    for (task, before) in tasks.iter().zip(&names) {
        let _ = root.run(&["stop", "--json", "--", before]).is(0, "stopped");
        let seen = root.run(&["inspect", "--json", "--", before]).is(0, "ok");
        assert_eq!(
            (seen.get("outcome"), seen.get("identity.attemptId")),
            ("terminal-no-report".into(), task.attempt.clone())
        );
    }
    let escaped: Vec<_> =
        std::fs::read_dir(root.scratch()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(escaped, ["root"], "a name led out of the root");
}

#[test]
fn a65_a_row_under_another_tasks_name_is_unreadable() {
    let root = TestRoot::new();
    let _ = root.reserve("one");
    std::fs::create_dir(root.path().join("tasks/ONE")).unwrap();
    std::fs::copy(root.path().join("tasks/one/row.json"), root.path().join("tasks/ONE/row.json")).unwrap();
    let _ = root.json(&["inspect", "ONE"]).is(65, "row-unreadable");
    let _ = root.refuses(65, "row-unreadable", &["stop", "ONE"]);
    let _ = root.refuses(65, "row-unreadable", &["reserve", "ONE", "--parent", "ws"]);
}

#[test]
fn a67_ids_come_from_the_system_and_never_twice_not_even_in_a_copy_of_the_root() {
    let root = TestRoot::new();
    let plain = |path: &str, name: &str| {
        let mut command = Command::new(BIN);
        command
            .env_clear()
            .args(["--root", path, "reserve", name, "--parent", "ws", "--owner", "same", "--json"]);
        command
            .current_dir(root.scratch())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..30).map(|n| plain("root", &format!("r{n}"))).collect();
    let ids: BTreeSet<String> =
        children.into_iter().map(|child| root.finish(child).is(0, "reserved").get("attemptId")).collect();
    assert_eq!(ids.len(), 30);
    let copied = Command::new("cp").args(["-a", "root", "copy"]).current_dir(root.scratch()).status();
    assert!(copied.unwrap().success());
    let original = root.finish(plain("root", "s")).is(0, "reserved");
    let copy = root.finish(plain("copy", "s")).is(0, "reserved");
    assert_ne!(original.get("attemptId"), copy.get("attemptId"), "the same id from a copy");
    assert_ne!(original.get("token"), copy.get("token"));
}

#[test]
fn a67_turns_and_sends_of_one_task_are_never_numbered_twice() {
    let root = TestRoot::new();
    let mut task = root.reserve("t").launched();
    let mut seen = BTreeSet::new();
    let mut n = 0;
    for _ in 0..3 {
        for _ in 0..2 {
            let admitted = task.begin().is(0, "admitted");
            let turn = admitted.get("turnId");
            assert!(seen.insert(turn.clone()) && seen.insert(admitted.get("sendId")));
            n += 2;
            let _ = task.settle(&turn).is(0, "turn-settled");
        }
        let _ = task.stop().is(0, "stopped");
        let _ = task.rotated_as_owner("reawaken", &[]);
    }
    assert_eq!(seen.len(), n);
    let counters: BTreeSet<&str> =
        seen.iter().filter(|id| id.starts_with("turn_")).map(|id| &id[21..]).collect();
    assert_eq!(counters.len(), n / 2, "the counter went back to where it was");
}
