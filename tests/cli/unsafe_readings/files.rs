//! Commits of several files that died halfway, and calls that need each other's files.

use std::process::Child;

use crate::actors::PATIENT;
use crate::common::{Task, TestRoot};

/// The points at which a call with a several-file commit is killed, and whether its commit happened.
const POINTS: [(&str, bool); 4] =
    [("before-part", false), ("before-rename", false), ("after-rename", true), ("after-commit-point", true)];

/// A retired task `old`, and the nonce that replaces it once.
fn retired(root: &TestRoot) -> (Task<'_>, String) {
    let task = root.reserve_step("old").launched();
    let _ = task.stop().is(0, "stopped");
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    (task, nonce)
}

/// Starts to replace `old` by `new`, and kills the call at `point`.
fn killed<'a>(root: &'a TestRoot, point: &str) -> (Task<'a>, String) {
    let (task, nonce) = retired(root);
    root.park(&["reserve", "new", "--replaces", "old", "--nonce", &nonce, "--request-id", "r"], point).kill();
    (task, nonce)
}

/// What `inspect` says of both tasks: whether `new` exists, and what replaced `old`.
fn seen(root: &TestRoot) -> (bool, String) {
    let new = root.json(&["inspect", "new"]).is(0, "ok");
    let old = root.json(&["inspect", "old"]).is(0, "ok");
    (new.get("reasonCode") != "no-task-record", old.get("retiredBy.replacementTaskId"))
}

fn whole(happened: bool) -> (bool, String) {
    if happened { (true, "new".to_owned()) } else { (false, "null".to_owned()) }
}

#[test]
fn a_replacement_that_died_halfway_is_seen_whole_by_inspect_which_writes_nothing() {
    for (point, happened) in POINTS {
        let root = TestRoot::new();
        let _ = killed(&root, point);
        let before = root.bytes();
        assert_eq!(seen(&root), whole(happened), "{point}");
        let all = root.json(&["inspect"]).is(0, "ok");
        assert_eq!(all.json()["tasks"].as_array().unwrap().len(), if happened { 2 } else { 1 }, "{point}");
        assert!(before == root.bytes(), "{point}: reading changed the root");
    }
}

/// Rule 74.
#[test]
fn a_replacement_that_died_halfway_is_seen_whole_by_a_call_that_locks_only_the_old_task() {
    for (point, happened) in POINTS {
        let root = TestRoot::new();
        let (task, nonce) = killed(&root, point);
        let claim = task.claim(&[]);
        if happened {
            assert_eq!(claim.is(10, "claim-spent").get("replacementTaskId"), "new", "{point}");
        } else {
            assert_ne!(claim.is(0, "claimed").get("nonce"), nonce, "{point}");
        }
        assert_eq!(seen(&root), whole(happened), "{point}");
        // The reservation itself, repeated: once it happened it answers as the first time, else its nonce is void.
        let again =
            root.json(&["reserve", "new", "--replaces", "old", "--nonce", &nonce, "--request-id", "r"]);
        let expected = if happened { (0, "reserved") } else { (10, "stale-nonce") };
        assert_eq!((again.exit, again.code().as_str()), expected, "{point}");
        assert_eq!(seen(&root), whole(happened), "{point}");
    }
}

#[test]
fn a_replacement_that_died_halfway_is_seen_whole_by_a_call_that_locks_only_the_new_task() {
    for (point, happened) in POINTS {
        let root = TestRoot::new();
        let (_, nonce) = killed(&root, point);
        let launch = root.json(&["rotate", "new", "--as", "launch"]);
        let expected = if happened { (0, "launched") } else { (10, "no-task-record") };
        assert_eq!((launch.exit, launch.code().as_str()), expected, "{point}");
        assert_eq!(seen(&root), whole(happened), "{point}");
        let other = root.json(&["reserve", "other", "--replaces", "old", "--nonce", &nonce]);
        let expected = if happened { (10, "claim-spent") } else { (0, "reserved") };
        assert_eq!((other.exit, other.code().as_str()), expected, "{point}");
    }
}

#[test]
fn a_part_of_a_commit_is_never_put_back_over_newer_bytes() {
    for (point, happened) in POINTS {
        // The old task moves on first, and then the new one finishes what the dead call left.
        let root = TestRoot::new();
        let (task, _) = killed(&root, point);
        for epoch in ["2", "3", "4"] {
            assert_eq!(
                root.json(&["stop", "old", "--reason", "newer"]).is(0, "already-stopped").get("stopEpoch"),
                epoch
            );
        }
        let newer = root.row("old");
        let _ = root.json(&["rotate", "new", "--as", "launch"]);
        let _ = root.json(&["stop", "new"]);
        let _ = root.json(&["recover"]).is(0, "recovered");
        let _ = root.json(&["inspect"]).is(0, "ok");
        assert_eq!(root.row("old"), newer, "{point}");
        assert_eq!(newer["stopEpoch"], 4, "{point}");
        assert_eq!(seen(&root), whole(happened), "{point}");
        drop(task);
    }
}

#[test]
fn a_part_that_comes_back_from_the_dead_is_not_taken_for_the_newest_row() {
    let root = TestRoot::new();
    let _ = killed(&root, "after-commit-point");
    let folder = root.path().join("tasks/old");
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let part = names.into_iter().find(|path| path.display().to_string().contains(".lych-")).unwrap();
    let bytes = std::fs::read(&part).unwrap();
    let _ = root.json(&["stop", "old", "--reason", "newer"]).is(0, "already-stopped");
    let newer = root.row("old");
    assert_eq!((newer["stopEpoch"].as_u64(), part.exists()), (Some(2), false));
    // A restored folder, or a disk that forgot a rename, brings it back while its record still stands.
    for call in [vec!["inspect", "old"], vec!["stop", "old"], vec!["rotate", "new", "--as", "launch"]] {
        std::fs::write(&part, &bytes).unwrap();
        assert_eq!(root.json(&["inspect", "old"]).get("stopEpoch"), root.row("old")["stopEpoch"].to_string());
        assert_eq!(root.json(&call).exit, 0, "{call:?}");
        let epoch = root.row("old")["stopEpoch"].as_u64().unwrap();
        assert_eq!(epoch, if call[0] == "inspect" { 2 } else { 3 }, "{call:?}");
    }
    assert_eq!(seen(&root), whole(true));
}

#[test]
fn a_settlement_that_died_halfway_is_whole_with_its_receipt_or_has_not_happened() {
    for (point, happened) in &POINTS[1..] {
        let root = TestRoot::new();
        let task = root.reserve_with(
            "t",
            &["--ancestor", "above", "--run", "run", "--step", "step", "--input-hash", "hash"],
        );
        let task = task.launched();
        root.park(&["stop", "t"], point).kill();
        let stands = task.stands();
        assert_eq!(stands == "terminal-no-report", *happened, "{point}: {stands}");
        assert_eq!(task.stands(), stands);
        // A call that locks the row finishes the rest; the ancestor's copy too.
        let claim = task.claim(&[]);
        assert_eq!(claim.exit == 0, *happened, "{point}: {claim}");
        for workspace in ["ws", "above"] {
            assert_eq!(root.receipts(workspace, "t").len(), usize::from(*happened), "{point}: {workspace}");
        }
    }
}

#[test]
fn a_report_that_died_halfway_is_whole_or_has_not_happened() {
    for (text, what) in [("short".to_owned(), "small"), ("long ".repeat(40_000), "large")] {
        for (point, happened) in &POINTS[1..] {
            let root = TestRoot::new();
            let task = root.reserve("t").launched();
            let turn = task.turn();
            std::fs::write(root.scratch().join("report"), &text).unwrap();
            let args =
                ["report", "t", "--attempt", &task.attempt, "--token", &task.token, "--file", "report"];
            root.park(&args, point).kill();
            let before = root.bytes();
            let expected = if *happened { "reported" } else { "live" };
            assert_eq!(task.stands(), expected, "{what} {point}");
            let shown = root.run(&["report", "t", "--show"]);
            assert_eq!(shown.exit == 0, *happened, "{what} {point}: {shown}");
            assert!(before == root.bytes(), "{what} {point}: reading changed the root");
            if *happened {
                assert_eq!(shown.stdout.trim_end(), text.trim_end(), "{what} {point}");
            }
            let _ = task.report(&text).is(0, if *happened { "already-reported" } else { "report-accepted" });
            let _ = task.settle(&turn).is(0, "turn-settled");
            assert_eq!(task.stands(), "reported", "{what} {point}");
        }
    }
}

#[test]
fn calls_over_the_two_rows_of_a_dead_commit_never_deadlock_and_agree() {
    // The names decide the order of the locks; both orders are played.
    for (old, new) in [("a-old", "z-new"), ("z-old", "a-new")] {
        let root = TestRoot::new();
        let task = root.reserve_step(old).launched();
        let _ = task.stop().is(0, "stopped");
        let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
        let replace = ["reserve", new, "--replaces", old, "--nonce", &nonce, "--request-id", "r"];
        root.park(&replace, "after-commit-point").kill();
        let calls: Vec<Vec<&str>> = vec![
            replace.to_vec(),
            vec!["stop", old],
            vec!["rotate", new, "--as", "launch"],
            vec!["stop", new, old],
            vec!["stop", old, new],
            vec!["reserve", "third", "--replaces", old, "--nonce", &nonce],
            vec!["recover", old, new],
            vec!["recover", new, old],
        ];
        let calls: Vec<Vec<&str>> = calls.into_iter().map(|call| [&call[..], &PATIENT].concat()).collect();
        for outcome in root.at_once(&calls) {
            assert!(matches!(outcome.exit, 0 | 10), "{outcome}");
        }
        let spent = task.claim(&[]).is(10, "claim-spent");
        assert_eq!(spent.get("replacementTaskId"), new);
        assert!(!root.path().join("tasks/third/row.json").exists());
    }
}

/// Holds the lock of a task's row from outside, as a reader that takes its time would.
fn hold(root: &TestRoot, task: &str) -> std::fs::File {
    let folder = std::fs::File::open(root.path().join("tasks").join(task)).unwrap();
    folder.lock_shared().unwrap();
    folder
}

/// Waits until each of these calls holds a lock at the same moment.
fn wait_until_all_hold(children: &[Child]) {
    for _ in 0..20_000 {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let holds = |child: &Child| {
            let pid = child.id().to_string();
            locks
                .lines()
                .any(|line| line.contains("FLOCK") && line.split_whitespace().any(|word| word == pid))
        };
        if children.iter().all(holds) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("the calls never held their first locks together");
}

#[test]
fn two_calls_that_each_hold_what_the_other_needs_both_end() {
    // Each task has the other for an ancestor, so a launch reads one row and asks to write the other, crosswise.
    // No call makes such rows; a restored or hand-made root may hold them. The readers from outside let both
    // calls get as far as the first lock, and not to the second.
    let root = TestRoot::new();
    for round in 0..3 {
        let (a, b) = (format!("a{round}"), format!("b{round}"));
        let tasks = [root.reserve(&a), root.reserve(&b)];
        for (task, above) in [(&a, &b), (&b, &a)] {
            root.forge(task, |row| row["ancestors"] = vec![above.as_str()].into());
        }
        let readers = [hold(&root, &a), hold(&root, &b)];
        let launch = |task: &Task<'_>| {
            let args = ["rotate", &task.id, "--as", "launch", "--token", &task.token, "--lock-wait", "20s"];
            root.start(&args)
        };
        let children: Vec<Child> = tasks.iter().map(launch).collect();
        wait_until_all_hold(&children);
        drop(readers);
        for outcome in children.into_iter().map(|child| root.finish(child)) {
            let _ = outcome.is(0, "launched");
        }
    }
}
