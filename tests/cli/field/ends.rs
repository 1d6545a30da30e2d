//! One end, told once and kept: A19, A21, A23, A27, A55 and A69.

use crate::actors::PATIENT;
use crate::common::{Outcome, TestRoot};

#[test]
fn a19_of_racing_ends_one_stands_and_the_losers_are_told_which() {
    for _ in 0..6 {
        let root = TestRoot::new();
        let task = root.reserve("t").launched();
        let turn = task.turn();
        std::fs::write(root.scratch().join("report"), "done").unwrap();
        let token = ["--token", &task.token];
        let report = ["report", "t", "--attempt", &task.attempt, "--file", "report"];
        let close = ["settle", "t", "--turn", &turn, "--close"];
        let failed = ["settle", "t", "--source", "launch-failed"];
        let calls: Vec<Vec<&str>> =
            [&report[..], &close, &failed].map(|call| [call, &token, &PATIENT].concat()).into();
        let outcomes = root.at_once(&calls);
        let _ = outcomes[2].clone().is(10, "source-not-true");
        let _ = outcomes[1].clone().is(0, "turn-settled");
        let reported = outcomes[0].code() == "report-accepted";
        if reported {
            assert_eq!(task.stands(), "reported");
        } else {
            let late = outcomes[0].clone().is(10, "late-report");
            assert_eq!(late.get("reasonCode"), "attempt-settled", "it names the end that stands");
            assert_eq!(task.stands(), "terminal-no-report");
        }
        // Whatever comes later, the end that stands is not replaced by another.
        let stood =
            (task.stands(), root.row("t")["settlement"]["settled"].clone(), root.row("t")["reports"].clone());
        let _ = task.report("another").is(10, "late-report");
        let _ = task.stop().is(0, "already-stopped");
        let _ = root.json(&["settle", "t", "--source", "launch-failed", "--token", &task.token]);
        let stands =
            (task.stands(), root.row("t")["settlement"]["settled"].clone(), root.row("t")["reports"].clone());
        assert_eq!(stands, stood);
    }
}

#[test]
fn a21_a_stop_wins_over_what_waits_in_a_queue_and_going_on_names_what_was_stopped() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let queued = task.queued_send();
    let gate = ["admit", "t", "--send", &queued, "--start", "--token", &task.token];
    let stop = root.park(&["stop", "t"], "before-rename");
    let drained = root.start(&[&gate[..], &PATIENT].concat());
    let _ = stop.go().is(0, "stopped");
    let _ = root.finish(drained).is(10, "attempt-settled");
    let _ = root.json(&["reserve", "t", "--parent", "ws"]).is(10, "task-exists");
    let _ = task.begin().is(10, "attempt-settled");
    let _ = root.json(&["rotate", "t", "--as", "launch"]).is(10, "not-queued");
    assert_eq!(root.row("t")["turnsMinted"], 0);
    // What was prepared before a Stop shows the epoch it has seen, and loses.
    let seen = format!("{}@0", task.attempt);
    let _ = root.refuses(10, "stale-epoch", &["rotate", "t", "--as", "reawaken", "--expect", &seen]);
    let on_purpose = format!("{}@1", task.attempt);
    let _ = root.json(&["rotate", "t", "--as", "reawaken", "--expect", &on_purpose]).is(0, "rotated");
    let _ = task.gate(&queued).is(10, "stale-attempt");
}

#[test]
fn a23_a_stop_is_a_fact_that_no_age_and_no_late_writer_takes_back() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    // A hook that looked before the Stop writes after it.
    let hook =
        root.park(&["admit", "t", "--attempt", &task.attempt, "--token", &task.token], "before-rename");
    let stop = root.start(&[&["stop", "t"][..], &PATIENT].concat());
    let _ = hook.go().is(0, "registered");
    let _ = root.finish(stop).is(0, "stopping");
    let touched = std::process::Command::new("find")
        .arg(root.path())
        .args(["-exec", "touch", "-d", "2001-01-01", "{}", "+"])
        .status();
    assert!(touched.unwrap().success());
    let mut late = root.command(&["inspect", "t", "--json"]);
    late.env("LYCHGATE_TEST_NOW", "2030-01-01T00:00:00.000Z");
    assert_eq!(root.finish(late.spawn().unwrap()).get("phase"), "closing");
    let _ = task.begin().is(10, "attempt-closing");
    let _ = root.json(&["rotate", "t", "--as", "startup", "--unproven"]).is(10, "attempt-closing");
    let _ = root.json(&["rotate", "t", "--as", "reawaken"]).is(12, "cleanup-pending");
    let _ = task.settle(&turn).is(0, "turn-settled");
    let _ = task.begin().is(10, "attempt-settled");
}

#[test]
fn a23_no_call_makes_a_row_from_what_it_read_before_the_lock() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let _ = root.reserve("other");
    let folder = root.path().join("tasks/t");
    let token = &task.token;
    for call in [
        vec!["stop", "t"],
        vec!["settle", "t", "--token", token],
        vec!["admit", "t", "--attempt", &task.attempt, "--start", "--token", token],
        vec!["rotate", "t", "--as", "startup", "--unproven"],
        vec!["recover", "t"],
    ] {
        // Whoever removes the row while a call waits for it is not undone by that call.
        let holder = root.park(&["stop", "t"], "locked-task");
        let waiting = root.start(&[&call[..], &PATIENT].concat());
        let kept = root.scratch().join("kept.json");
        std::fs::rename(folder.join("row.json"), &kept).unwrap();
        holder.kill();
        let outcome = root.finish(waiting);
        assert_ne!(outcome.exit, 0, "{call:?}: {outcome}");
        assert!(!folder.join("row.json").exists(), "{call:?} made a row: {outcome}");
        std::fs::rename(&kept, folder.join("row.json")).unwrap();
    }
}

#[test]
fn a27_a_stop_that_came_too_late_says_which_fact_stands() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    let _ = task.report("done").is(0, "report-accepted");
    let stopping = task.stop().is(0, "stopping");
    assert_eq!(stopping.get("taskStatus"), "reported");
    assert!(stopping.get("message").contains("report stands"), "{stopping}");
    let _ = task.settle(&turn).is(0, "turn-settled");
    let late = task.stop().is(0, "already-stopped");
    assert_eq!((late.get("taskStatus"), late.get("phase")), ("reported".into(), "settled".into()));
    assert_eq!(task.stands(), "reported");
    let replaced = root.reserve_step("r").launched();
    let _ = replaced.stop().is(0, "stopped");
    let nonce = replaced.claim(&[]).is(0, "claimed").get("nonce");
    let _ = root.json(&["reserve", "r2", "--replaces", "r", "--nonce", &nonce]).is(0, "reserved");
    let refused = replaced.begin().is(10, "retired");
    assert_eq!(refused.get("replacementTaskId"), "r2");
}

#[test]
fn a55_children_that_end_together_all_deliver_their_reports() {
    let root = TestRoot::new();
    let text = "0123456789abcdef".repeat(60_000);
    std::fs::write(root.scratch().join("report"), &text).unwrap();
    let tasks: Vec<_> = (0..10)
        .map(|n| {
            let task = root.reserve(&format!("z{n}")).launched();
            let _ = task.turn();
            task
        })
        .collect();
    let report = |n: usize| {
        let args = ["report", &tasks[n].id, "--attempt", &tasks[n].attempt, "--token", &tasks[n].token];
        root.start(&[&args[..], &["--file", "report"], &PATIENT].concat())
    };
    let children: Vec<_> = (0..tasks.len()).map(report).collect();
    for child in children {
        let _ = root.finish(child).is(0, "report-accepted");
    }
    for task in &tasks {
        assert_eq!(task.stands(), "reported");
        assert_eq!(root.run(&["report", &task.id, "--show"]).stdout, text);
    }
}

#[test]
fn a69_an_end_told_again_changes_not_a_byte_and_gives_the_first_answer() {
    let root = TestRoot::new();
    let task = root.reserve_step("t").launched();
    let turn = task.turn();
    let same = |first: &Outcome, call: &[&str]| {
        let before = root.bytes();
        for _ in 0..3 {
            assert_eq!(root.json(call).stdout, first.stdout, "{call:?}");
        }
        assert!(before == root.bytes(), "{call:?} changed something when it was repeated");
    };
    std::fs::write(root.scratch().join("report"), "done").unwrap();
    let report = ["report", "t", "--attempt", &task.attempt, "--token", &task.token, "--file", "report"];
    let report = [&report[..], &["--request-id", "r"]].concat();
    let first = root.json(&report).is(0, "report-accepted");
    same(&first, &report);
    // Without a request id it is still the same report, and another one is not.
    let before = root.bytes();
    for _ in 0..3 {
        let _ = task.report("done").is(0, "already-reported");
    }
    assert!(before == root.bytes());
    let revision = task.seen("revision");
    let settle = ["settle", "t", "--turn", &turn, "--close", "--token", &task.token, "--request-id", "s"];
    let first = root.json(&settle).is(0, "turn-settled");
    same(&first, &settle);
    assert_ne!(task.seen("revision"), revision, "readers can compare revisions");
    let claim = ["claim-retire", "t", "--attempt", &task.attempt, "--run", "run", "--step", "step"];
    let claim =
        [&claim[..], &["--input-hash", "hash", "--parent", "ws", "--mode", "retire-reported"]].concat();
    let claim = [&claim[..], &["--request-id", "c"]].concat();
    let first = root.json(&claim).is(0, "claimed");
    same(&first, &claim);
    let reserve = ["reserve", "t2", "--replaces", "t", "--nonce", &first.get("nonce"), "--request-id", "n"];
    let first = root.json(&reserve).is(0, "reserved");
    same(&first, &reserve);
    let _ = task.report("other").is(10, "late-report");
    assert_eq!(root.run(&["report", "t", "--show"]).stdout.trim_end(), "done");
}
