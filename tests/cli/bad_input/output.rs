//! Standard streams that are closed, full, read-only, or read by nobody.

use std::process::{Command, Stdio};

use super::{Family, Raw, Unchanged, documented, json, sh, strs};
use crate::common::TestRoot;

/// A line of shell that runs the binary with a redirection.
fn redirected(root: &TestRoot, redirection: &str, args: &[&str]) -> Raw {
    documented(sh(root, &format!(r#"exec "$LG" "$@" {redirection}"#), args))
}

#[test]
fn an_output_that_takes_nothing_is_noticed_before_anything_is_done() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let commands = family.commands();
    let unchanged = Unchanged::of(root.scratch());
    for (index, redirection) in [">&-", "</etc/hostname 1<&0", ">&- 2>&-", "<&- >&-"].iter().enumerate() {
        for (_, line) in commands.iter().enumerate().filter(|(at, _)| index == 0 || at % 4 == index) {
            for form in ["--format=text", "--format=json", "--format=sh"] {
                let line = [strs(line), vec![form]].concat();
                let raw = silent(&root, redirection, &line);
                assert_eq!(raw.exit, 74, "{redirection} {}", raw.describe());
                assert!(
                    redirection.contains("2>&-") || raw.err().contains("nothing was done"),
                    "{}",
                    raw.describe()
                );
            }
        }
    }
    unchanged.holds("nothing was done");
}

/// A call that may have nowhere to say anything.
fn silent(root: &TestRoot, redirection: &str, args: &[&str]) -> Raw {
    sh(root, &format!(r#"exec "$LG" "$@" {redirection}"#), args)
}

/// A pipe whose reader is gone already.
fn without_reader(root: &TestRoot, args: &[&str]) -> Raw {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = root.command(args).stdout(Stdio::from(writer)).output().unwrap();
    documented(Raw::new(output, args.join(" ")))
}

#[test]
fn a_pipe_that_nobody_reads_is_noticed_before_anything_is_done() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let commands = family.commands();
    let unchanged = Unchanged::of(root.scratch());
    for line in &commands {
        let _ = without_reader(&root, &strs(line)).exits(74);
    }
    unchanged.holds("nothing was done");
}

/// A reader that goes away while the call works, and a disk for the answer that is full: the change stands, and
/// the caller is told how to hear of it.
#[test]
fn an_answer_that_got_lost_after_its_change_is_told_again() {
    for form in ["--format=text", "--format=json", "--format=sh"] {
        let root = TestRoot::new();
        let task = root.reserve("t1");
        let lines: [&[&str]; 5] = [
            &["reserve", "t2", "--parent", "ws", "--request-id", "r one"],
            &["rotate", "t1", "--as", "launch", "--token", &task.token, "--request-id", "r one"],
            &["admit", "t1", "--attempt", &task.attempt, "--token", &task.token, "--request-id", "r two"],
            &["settle", "t1", "--token", &task.token, "--request-id", "r four"],
            &["stop", "t1", "--request-id", "r three"],
        ];
        for line in lines {
            let before = Unchanged::root(&root);
            let raw = redirected(&root, ">/dev/full", &[line, &[form]].concat()).exits(71);
            assert!(raw.err().contains("answer-not-delivered"), "{}", raw.describe());
            assert_ne!(super::tree(&root.path()), before.before, "it was done: {line:?}");
            assert!(raw.err().contains(line[line.len() - 1]), "{}", raw.describe());
            let first = json(&root, line);
            let again = json(&root, line);
            assert_eq!((first.exit, &first.stdout), (again.exit, &again.stdout), "{line:?}");
            assert_eq!(first.exit, 0, "{}", first.describe());
        }
    }
}

/// Who gave the call no name learns the one that was made for it.
#[test]
fn a_lost_answer_names_the_request_that_repeats_it() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let (attempt, token) = (family.child.attempt.as_str(), family.child.token.as_str());
    let report = ["report", "t1", "--attempt", attempt, "--token", token, "--file", "/etc/hostname"];
    let lost = redirected(&root, ">/dev/full", &report).exits(71).err();
    let id = lost.split("--request-id ").nth(1).and_then(|rest| rest.split([';', ' ', '\n']).next()).unwrap();
    let again = [report.as_slice(), &["--request-id", id]].concat();
    assert_eq!(json(&root, &again).is(0, "report-accepted").get("requestId"), id, "{lost}");
    let _ = json(&root, &report).is(0, "already-reported");
}

/// The gate's answer is given once: who did not hear it is told so, and may settle what never started.
#[test]
fn a_lost_permission_is_not_given_twice() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let admit =
        ["admit", "t1", "--attempt", &task.attempt, "--start", "--token", &task.token, "--request-id", "r"];
    let _ = redirected(&root, ">/dev/full", &admit).exits(71);
    let again = json(&root, &admit).is(10, "already-admitted");
    let _ = json(&root, &["settle", "t1", "--turn", &again.get("turnId"), "--token", &task.token])
        .is(0, "turn-settled");
}

/// A refusal and a pending answer that changed something are as much worth as a grant.
#[test]
fn a_lost_refusal_that_changed_something_is_no_plain_io_error() {
    let root = TestRoot::new();
    let family = Family::new(&root).reported();
    let (attempt, token) = (family.child.attempt.as_str(), family.child.token.as_str());
    let late = ["report", "t1", "--attempt", attempt, "--token", token, "--file", "/etc/hostname"];
    let _ = redirected(&root, ">/dev/full", &[late.as_slice(), &["--json"]].concat()).exits(71);
    assert_eq!(json(&root, &["inspect", "t1"]).json()["lateReports"], 1);
    let _ = redirected(&root, ">/dev/full", &["settle", "t1", "--token", token, "--json"]).exits(71);
    assert_eq!(json(&root, &["inspect", "t1"]).json()["phase"], "closing");
    let _ = redirected(&root, ">/dev/full", &["stop", "t1", "--wait", "0", "--json"]).exits(71);
    let _ = redirected(&root, ">/dev/full", &["recover", "--strict", "--json"]).exits(74);
}

#[test]
fn a_lost_answer_that_changed_nothing_is_an_io_error() {
    let root = TestRoot::new();
    let family = Family::new(&root).reported();
    let unchanged = Unchanged::root(&root);
    let lines: [&[&str]; 9] = [
        &["inspect"],
        &["inspect", "t1", "--explain"],
        &["inspect", "t1", "--print", "outcome"],
        &["report", "t1", "--show"],
        &["reserve", "t1", "--parent", "ws", "--json"],
        &["rotate", "t1", "--as", "launch", "--json"],
        &["settle", "nobody", "--json"],
        &["recover"],
        &["--json", "nonsense"],
    ];
    for line in lines {
        let _ = redirected(&root, ">/dev/full", line).exits(74);
    }
    for line in [["--help"].as_slice(), &["--version"], &["reserve", "--help"]] {
        let _ = redirected(&root, ">/dev/full", line).exits(74);
    }
    unchanged.holds("nothing was done");
    let _ = (&family.parent, &family.other);
}

#[test]
fn nowhere_to_complain_changes_no_exit() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    for redirection in ["2>&-", "2>/dev/full", "2</etc/hostname", "2>&- <&-"] {
        let _ = silent(&root, redirection, &["reserve", "t1", "--parent", "ws"]).exits(10);
        let _ = silent(&root, redirection, &["inspect", "--nonsense"]).exits(64);
        let _ = silent(&root, redirection, &["settle", "t1", "--token", "x"]).exits(10);
        let _ = silent(&root, redirection, &["inspect", "t1"]).exits(0);
    }
    // With nothing open at all, no file of the root is ever taken for a standard stream.
    let before = Unchanged::root(&root);
    let _ =
        silent(&root, "<&- >&- 2>&-", &["rotate", "t1", "--as", "launch", "--token", &task.token]).exits(74);
    before.holds("nothing was done, and nothing was written into a file of the root");
    let _ = silent(&root, "<&- 2>&-", &["stop", "t1", "--json"]).exits(0);
    let _ = json(&root, &["inspect", "t1", "--history"]).is(0, "ok");
}

/// A pipe that breaks while a long answer is written.
#[test]
fn a_reader_that_leaves_in_the_middle_costs_the_answer_only() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let text = "x".repeat(1_000_000);
    let _ = family.child.report(&text).is(0, "report-accepted");
    let unchanged = Unchanged::root(&root);
    let script = r#"set -o pipefail; "$LG" report t1 --show | head -c 10"#;
    let raw = sh(&root, script, &[]).exits(74);
    assert_eq!(raw.out(), "xxxxxxxxxx");
    unchanged.holds("showing changes nothing");
    // A change whose reader leaves between its start and its answer. Another test that starts a process in that very
    // moment holds the reading end for an instant too, so the reader may have to leave more than once.
    let told = (0..20).map(|_| answer_without_a_reader()).find(|outcome| outcome.exit != 0);
    let told = told.expect("because a pipe without a reader cannot be written");
    assert_eq!(told.exit, 71, "{told}");
    assert!(told.stderr.contains("answer-not-delivered"), "{told}");
}

/// Stops a task; the reader of the answer leaves between the change and the answer.
fn answer_without_a_reader() -> crate::common::Outcome {
    let root = TestRoot::new();
    let _family = Family::new(&root);
    let mut command: Command = root.command(&["stop", "t1", "--json"]);
    command.env("LYCHGATE_TEST_PAUSE", "after-rename").env("LYCHGATE_TEST_PAUSE_DIR", root.scratch());
    let (reader, writer) = std::io::pipe().unwrap();
    let child = command.stdout(Stdio::from(writer)).spawn().unwrap();
    drop(command);
    root.wait_reached("after-rename");
    drop(reader);
    root.go("after-rename");
    root.finish(child)
}
