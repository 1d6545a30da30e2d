//! Something else in the place of a file or a folder: a folder, a FIFO, a link, a device, a socket. No call hangs
//! on it, follows it, takes it for what is not there, or writes over it.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Family, Raw, Unchanged, json, strs};
use crate::common::TestRoot;

/// What can lie in the place of a file.
const KINDS: [&str; 8] = [
    "folder",
    "filled folder",
    "fifo",
    "link to the good one",
    "link to nothing",
    "device",
    "socket",
    "file",
];

/// Puts a thing in a place; what was there is kept beside the root.
fn replace(kind: &str, place: &Path, kept: &Path) {
    std::fs::rename(place, kept).unwrap();
    let mknod = |args: &[&str]| {
        let made = Command::new("mknod").arg(place).args(args).status().unwrap();
        assert!(made.success(), "mknod needs root");
    };
    match kind {
        "folder" => std::fs::create_dir(place).unwrap(),
        "filled folder" => {
            std::fs::create_dir(place).unwrap();
            std::fs::write(place.join("somebody's"), "kept").unwrap();
        }
        "fifo" => mknod(&["p"]),
        "link to the good one" => symlink(kept, place).unwrap(),
        "link to nothing" => symlink("nowhere", place).unwrap(),
        "device" => mknod(&["c", "1", "5"]),
        "socket" => drop(bound(place)),
        _ => std::fs::write(place, "a file").unwrap(),
    }
}

/// A socket's path may be short only, so it is bound from beside.
fn bound(place: &Path) -> UnixListener {
    let near =
        PathBuf::from(format!("/tmp/lychgate-{}-{:?}", std::process::id(), std::thread::current().id()));
    symlink(place.parent().unwrap(), &near).unwrap();
    let listener = UnixListener::bind(near.join(place.file_name().unwrap())).unwrap();
    std::fs::remove_file(near).unwrap();
    listener
}

fn restore(place: &Path, kept: &Path) {
    if place.is_dir() && !place.is_symlink() {
        std::fs::remove_dir_all(place).unwrap();
    } else {
        std::fs::remove_file(place).unwrap();
    }
    std::fs::rename(kept, place).unwrap();
}

/// Runs every command about `t1` with every kind of thing in one place, and holds the tree to what it was. `judge`
/// gets each line that was run and what it did.
fn with_every_kind(family: &Family<'_>, place: &Path, is_folder: bool, judge: &dyn Fn(&str, &[&str], Raw)) {
    let kept = family.root.scratch().join("kept");
    let commands = family.commands();
    for (index, kind) in KINDS.iter().enumerate() {
        // A folder in the place of a folder is no damage, nor is a file in the place of a file.
        if (is_folder && kind.contains("folder")) || (!is_folder && *kind == "file") {
            continue;
        }
        replace(kind, place, &kept);
        let unchanged = Unchanged::of(family.root.scratch());
        let some = commands.iter().enumerate().filter(|(at, _)| at % 4 == index % 4);
        for (_, line) in some {
            let line = strs(line);
            let raw = json(family.root, &line);
            assert!([0, 10, 11, 65, 74].contains(&raw.exit), "{kind}: {}", raw.describe());
            judge(kind, &line, raw);
            unchanged.holds(&format!("{kind} at {}: {line:?}", place.display()));
        }
        restore(place, &kept);
    }
}

fn reads(line: &[&str]) -> bool {
    line[0] == "inspect" || line.contains(&"--show")
}

#[test]
fn nothing_else_is_a_row() {
    let root = TestRoot::new();
    let family = Family::new(&root).with_late();
    with_every_kind(&family, &family.row_file(), false, &|_, _, raw| {
        drop(raw.either(&["row-unreadable", "link-refused"]).exits(65));
    });
    family.other_is_usable();
}

#[test]
fn nothing_else_is_a_folder_of_a_row() {
    let root = TestRoot::new();
    let family = Family::new(&root).with_late();
    with_every_kind(&family, &root.path().join("tasks/t1"), true, &|_, _, raw| {
        drop(raw.either(&["row-unreadable", "link-refused"]).exits(65));
    });
    family.other_is_usable();
}

#[test]
fn nothing_else_is_the_folder_of_the_rows() {
    let root = TestRoot::new();
    let family = Family::new(&root).with_late();
    with_every_kind(&family, &root.path().join("tasks"), true, &|_, _, raw| {
        drop(raw.either(&["root-damaged", "link-refused"]).exits(65));
    });
    // Nor is its absence an empty root.
    let kept = root.scratch().join("kept");
    std::fs::rename(root.path().join("tasks"), &kept).unwrap();
    let unchanged = Unchanged::root(&root);
    for line in family.commands() {
        let _ = json(&root, &strs(&line)).is(65, "root-damaged");
    }
    let _ = json(&root, &["inspect"]).is(65, "root-damaged");
    let _ = json(&root, &["recover"]).is(65, "root-damaged");
    unchanged.holds("a root without its rows is damaged");
    std::fs::rename(kept, root.path().join("tasks")).unwrap();
    family.other_is_usable();
}

#[test]
fn nothing_else_is_the_config_or_the_secret() {
    let root = TestRoot::new();
    let family = Family::new(&root).with_late();
    with_every_kind(&family, &root.path().join("config.json"), false, &|_, _, raw| {
        drop(raw.either(&["foreign-root", "root-damaged", "link-refused"]).exits(65));
    });
    with_every_kind(&family, &root.path().join("secret"), false, &|_, line, raw| {
        if line[0] == "recover" || (reads(line) && !line.contains(&"--token")) {
            return;
        }
        drop(raw.either(&["root-damaged", "link-refused"]).exits(65));
    });
    family.other_is_usable();
}

/// The places of evidence on the way down: each of them unreadable makes the evidence unreadable, never missing.
#[test]
fn nothing_else_is_a_folder_of_evidence() {
    let root = TestRoot::new();
    let family = Family::new(&root).reported().settled().moved_on();
    let sessions = root.path().join("sessions");
    let receipts = sessions.join("pa/subagent-attempt-settlements");
    let reports = sessions.join("pa/subagent-reports");
    let places = [
        sessions.clone(),
        sessions.join("pa"),
        reports.clone(),
        reports.join("t1"),
        receipts.clone(),
        receipts.join("t1"),
    ];
    for place in &places {
        let kept = root.scratch().join("kept");
        for kind in ["fifo", "link to the good one", "link to nothing", "device", "socket", "file"] {
            replace(kind, place, &kept);
            let unchanged = Unchanged::of(root.scratch());
            let seen = json(&root, &["inspect", "t1"]).is(0, "ok").json();
            let holds_reports = !place.starts_with(&receipts);
            if holds_reports {
                assert_eq!(seen["reasonCode"], "report-unreadable", "{kind} {} {seen}", place.display());
                let _ = json(&root, &["report", "t1", "--show"]).is(11, "report-unreadable");
            }
            let claim = ["claim-retire", "t1", "--attempt", &family.child.attempt, "--parent", "pa"];
            let claim = [claim.as_slice(), &super::STEP, &["--mode", "retire-reported"]].concat();
            let _ = json(&root, &claim).either(&["report-unreadable", "receipt-unreadable"]).exits(11);
            unchanged.holds("nothing is claimed on evidence nobody can read");
            restore(place, &kept);
        }
    }
    family.other_is_usable();
}

/// What a commit would have to go through or write: the old state stands.
#[test]
fn a_commit_goes_through_no_strange_folder_and_over_no_strange_file() {
    let root = TestRoot::new();
    let family = Family::new(&root).with_late().moved_on();
    let (attempt, token) = (family.child.attempt.clone(), family.child.token.clone());
    let settle = ["settle", "t1", "--turn", &family.turn, "--close", "--token", &token];
    let sessions = root.path().join("sessions");
    // Folders alone are no state: a commit that fails may leave the ones it made.
    std::fs::create_dir_all(family.receipt("ws").parent().unwrap()).unwrap();
    let kept = root.scratch().join("kept");
    for place in [sessions.clone(), sessions.join("pa")] {
        for kind in KINDS.iter().filter(|kind| !kind.contains("folder")) {
            replace(kind, &place, &kept);
            let unchanged = Unchanged::of(root.scratch());
            let raw = json(&root, &settle);
            assert!([65, 74].contains(&raw.exit), "{kind}: {}", raw.describe());
            let late = ["report", "t1", "--attempt", &attempt, "--token", &token, "--file", "some-report"];
            std::fs::write(root.scratch().join("some-report"), "yet another").unwrap();
            let raw = json(&root, &late);
            assert!([65, 74].contains(&raw.exit), "{kind}: {}", raw.describe());
            std::fs::remove_file(root.scratch().join("some-report")).unwrap();
            unchanged.holds(kind);
            restore(&place, &kept);
        }
    }
    // In the very places of a receipt and of its copy.
    for workspace in ["pa", "ws"] {
        let place = family.receipt(workspace);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        for kind in KINDS {
            std::fs::write(&place, "").unwrap();
            replace(kind, &place, &kept);
            let unchanged = Unchanged::of(root.scratch());
            let raw = json(&root, &settle);
            assert!([11, 65, 74].contains(&raw.exit), "{kind}: {}", raw.describe());
            unchanged.holds(kind);
            restore(&place, &kept);
            std::fs::remove_file(&place).unwrap();
        }
    }
    let _ = json(&root, &settle).is(0, "turn-settled");
    family.other_is_usable();
}

#[test]
fn nothing_else_is_a_receipt_or_a_report() {
    let root = TestRoot::new();
    let family = Family::new(&root).with_late().settled().moved_on();
    let kept = root.scratch().join("kept");
    let claim = ["claim-retire", "t1", "--attempt", &family.child.attempt, "--parent", "pa"];
    let claim = [claim.as_slice(), &super::STEP, &["--mode", "retire-reported"]].concat();
    let late = family.late_file();
    for kind in KINDS.iter().filter(|kind| **kind != "file") {
        for (place, code) in [
            (family.report_file(), Some("report-unreadable")),
            (family.receipt("pa"), Some("receipt-unreadable")),
            (late.clone(), None),
        ] {
            replace(kind, &place, &kept);
            let unchanged = Unchanged::of(root.scratch());
            let seen = json(&root, &["inspect", "t1"]).is(0, "ok").json();
            if let Some(code) = code {
                let refused = json(&root, &claim).is(11, code).json();
                assert_eq!(refused["taskId"], "t1");
                if code == "report-unreadable" {
                    assert_eq!(seen["reasonCode"], code, "{kind}");
                    let _ = json(&root, &["report", "t1", "--show"]).is(11, code);
                }
            } else {
                let shown = json(&root, &["report", "t1", "--show", "--late"]);
                let _ = shown.is(11, "report-unreadable");
            }
            unchanged.holds(kind);
            restore(&place, &kept);
        }
    }
    let _ = json(&root, &claim).is(0, "claimed");
}

#[test]
fn nothing_else_is_a_history_and_the_task_goes_on() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    for _ in 0..50 {
        let _ = json(&root, &["stop", &task.id]).exits(0);
    }
    let place = root.path().join("tasks/t1/history-1.jsonl");
    let kept = root.scratch().join("kept");
    for kind in KINDS.iter().filter(|kind| **kind != "file") {
        replace(kind, &place, &kept);
        let unchanged = Unchanged::of(root.scratch());
        let seen = json(&root, &["inspect", "t1", "--history"]).is(0, "ok").json();
        assert!(seen["historyError"].is_string(), "{kind}: {seen}");
        unchanged.holds(kind);
        let _ = json(&root, &["stop", "t1"]).exits(0);
        restore(&place, &kept);
    }
}

/// Litter of other tools in the root and in its folders is no state and no hindrance (A33, A45, A51).
#[test]
fn litter_is_neither_state_nor_a_hindrance() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    for place in ["tasks/t1", "tasks", "sessions", ""] {
        let folder = root.path().join(place);
        for name in ["row.json.tmp", "lock", ".lock.stale", "pid", "row.json.0.tmp"] {
            // Among the rows a name is a row's, so there only links and hidden ones are litter.
            if place != "tasks" {
                std::fs::write(folder.join(name), "999999").unwrap();
            }
        }
        symlink("/etc/passwd", folder.join(".lych-link")).unwrap();
        std::fs::create_dir(folder.join(".lych-folder")).unwrap();
    }
    std::fs::write(root.path().join("tasks/t1/.lych-part-0"), "junk").unwrap();
    let passwd = std::fs::read("/etc/passwd").unwrap();
    let raw = json(&root, &["settle", "t1", "--turn", &family.turn, "--token", &family.child.token]);
    // A part that is no part of ours may be the newer row: it is not guessed about.
    let _ = raw.is(65, "row-unreadable");
    std::fs::remove_file(root.path().join("tasks/t1/.lych-part-0")).unwrap();
    let _ = json(&root, &["settle", "t1", "--turn", &family.turn, "--close", "--token", &family.child.token])
        .is(0, "turn-settled");
    let _ = json(&root, &["reserve", "t2", "--parent", "pa"]).is(0, "reserved");
    assert_eq!(std::fs::read("/etc/passwd").unwrap(), passwd);
    family.other_is_usable();
}

/// What is wrong with one task keeps the pass over all of them from no other, and is told in its exit.
#[test]
fn recovery_goes_on_past_a_task_it_cannot_settle() {
    let root = TestRoot::new();
    let mut owner = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = owner.id().to_string();
    let tasks: Vec<_> =
        ["a", "b", "c"].map(|id| root.reserve_with(id, &["--owner-pid", &pid]).launched()).into();
    for task in &tasks {
        let _ = task.settle(&task.turn()).is(0, "turn-settled");
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    let folder = root.path().join("sessions/ws/subagent-attempt-settlements/b");
    std::fs::create_dir_all(folder.join(format!("{}.json", tasks[1].attempt))).unwrap();
    let before = Unchanged::of(&root.path().join("tasks/b"));
    let pass = json(&root, &["recover"]);
    assert!([11, 65, 74].contains(&pass.exit), "{}", pass.describe());
    let ids = |list: &str| {
        let pass = pass.json();
        let ids =
            pass[list].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!((ids("recovered"), ids("left")), (vec!["a".to_owned(), "c".to_owned()], vec!["b".to_owned()]));
    before.holds("the task that cannot be settled is as it was");
    let _ = json(&root, &["recover", "b", "c"]).either(&["io", "root-damaged", "receipt-unreadable"]);
}
