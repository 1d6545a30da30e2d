//! Evidence that is damaged: reports, late reports, receipts and their copies, and the history. What cannot be read
//! is never taken for what is not there, and is never written over.

use super::damage::{cuts_and_flips, damages, put};
use super::{Family, STEP, Unchanged, json, text};
use crate::common::TestRoot;

/// The report that counts: every command that rests on it is unresolved, and none writes over it.
#[test]
fn a_damaged_report_is_never_taken_for_none_or_for_the_report() {
    let root = TestRoot::new();
    let family = Family::new(&root).reported().moved_on();
    let path = family.report_file();
    let good = std::fs::read(&path).unwrap();
    let mut bad: Vec<Vec<u8>> = damages(&good).into_iter().map(|(_, bytes)| bytes).collect();
    bad.extend(cuts_and_flips(&good, 12));
    for (index, bytes) in bad.iter().enumerate() {
        put(&path, bytes);
        damaged_report(&family, index);
        assert_eq!(&std::fs::read(&path).unwrap(), bytes, "it was written over");
    }
    std::fs::remove_file(&path).unwrap();
    (0..4).for_each(|index| damaged_report(&family, index));
    assert!(!path.exists());
    put(&path, &good);
    let _ = family.child.report("the report").is(0, "already-reported");
    family.other_is_usable();
}

/// One of the commands that rest on the report.
fn damaged_report(family: &Family<'_>, index: usize) {
    let root = family.root;
    let (attempt, token) = (family.child.attempt.as_str(), family.child.token.as_str());
    let unchanged = Unchanged::root(root);
    match index % 4 {
        0 => {
            let seen = json(root, &["inspect", "t1"]).is(0, "ok").json();
            let told = (&seen["outcome"], &seen["reasonCode"]);
            assert_eq!(told, (&"indeterminate".into(), &"report-unreadable".into()), "{index}");
        }
        1 => drop(json(root, &["report", "t1", "--show"]).is(11, "report-unreadable")),
        2 => drop(family.child.report("the report").is(11, "report-unreadable")),
        _ => {
            let claim = ["claim-retire", "t1", "--attempt", attempt, "--parent", "pa", "--token", token];
            let claim = [claim.as_slice(), &STEP, &["--mode", "retire-reported"]].concat();
            // While its turn runs it is refused for that alone.
            let _ = json(root, &claim).either(&["report-unreadable", "attempt-live"]);
        }
    }
    unchanged.holds("nothing rests on a damaged report");
}

#[test]
fn a_damaged_report_of_a_finished_task_retires_nobody() {
    let root = TestRoot::new();
    let family = Family::new(&root).reported().settled().moved_on();
    let path = family.report_file();
    let good = std::fs::read(&path).unwrap();
    let claim = ["claim-retire", "t1", "--attempt", &family.child.attempt, "--parent", "pa"];
    let reported = [claim.as_slice(), &STEP, &["--mode", "retire-reported"]].concat();
    for (_, bytes) in damages(&good) {
        put(&path, &bytes);
        let unchanged = Unchanged::root(&root);
        let _ = json(&root, &reported).is(11, "report-unreadable");
        let _ = json(&root, &[claim.as_slice(), &STEP].concat()).either(&[
            "report-unreadable",
            "report-published",
            "not-interrupted",
        ]);
        unchanged.holds("no claim on a damaged report");
    }
    put(&path, &good);
    let _ = json(&root, &reported).is(0, "claimed");
}

#[test]
fn a_damaged_late_report_is_shown_as_such_and_kept() {
    let root = TestRoot::new();
    let family = Family::new(&root).with_late();
    let path = family.late_file();
    let good = std::fs::read(&path).unwrap();
    let mut bad: Vec<Vec<u8>> = damages(&good).into_iter().map(|(_, bytes)| bytes).collect();
    bad.extend(cuts_and_flips(&good, 8));
    for bytes in bad {
        put(&path, &bytes);
        let unchanged = Unchanged::root(&root);
        let shown = json(&root, &["report", "t1", "--show", "--late"]);
        // Some bytes of it are nobody's business: the time, for one. Its text is.
        if shown.exit == 0 {
            assert_eq!(shown.get("text"), "another one");
        } else {
            let _ = shown.is(11, "report-unreadable");
        }
        let again = family.child.report("another one");
        assert!([10, 11, 65].contains(&again.exit), "{again}");
        unchanged.holds("a refused report is kept as it is");
    }
    let _ = json(&root, &["inspect", "t1", "--expect", "reported"]).is(0, "ok");
}

#[test]
fn a_damaged_receipt_proves_nothing_and_is_never_written_over() {
    let root = TestRoot::new();
    let family = Family::new(&root).settled().moved_on();
    let path = family.receipt("pa");
    let good = std::fs::read(&path).unwrap();
    let strange =
        |from: &str, to: &str| String::from_utf8(good.clone()).unwrap().replace(from, to).into_bytes();
    let mut bad: Vec<Vec<u8>> = damages(&good).into_iter().map(|(_, bytes)| bytes).collect();
    // White space around a JSON object says the same.
    bad.retain(|bytes| bytes.trim_ascii() != good.trim_ascii());
    bad.push(strange("\"version\":1", "\"version\":2"));
    bad.push(strange("\"taskId\":\"t1\"", "\"taskId\":\"t2\""));
    bad.push(strange("\"parentWorkspaceId\":\"pa\"", "\"parentWorkspaceId\":\"ws\""));
    bad.push(strange(&family.child.attempt, "att_0123456789abcdef"));
    bad.push(strange("execution-settled", "invented"));
    for at in (0..good.len() - 3).step_by(11) {
        bad.push(good[..at].to_vec());
    }
    let claim = ["claim-retire", "t1", "--attempt", &family.child.attempt, "--parent", "pa"];
    let claim = [claim.as_slice(), &STEP].concat();
    for bytes in bad {
        put(&path, &bytes);
        let unchanged = Unchanged::root(&root);
        let seen = json(&root, &["inspect", "t1"]).is(0, "ok").json();
        let told = (&seen["outcome"], &seen["reasonCode"]);
        assert_eq!(told, (&"indeterminate".into(), &"receipt-unreadable".into()), "{bytes:?}");
        let _ = json(&root, &claim).either(&["receipt-unreadable", "no-settlement-evidence"]).exits(11);
        let _ = json(&root, &["reserve", "t9", "--replaces", "t1", "--nonce", "x"]).is(10, "not-claimed");
        unchanged.holds("nothing rests on a damaged receipt");
    }
    put(&path, &good);
    let _ = json(&root, &claim).is(0, "claimed");
    family.other_is_usable();
}

/// A copy at an ancestor is no evidence; it is neither needed nor touched.
#[test]
fn a_damaged_copy_of_a_receipt_changes_no_answer() {
    let root = TestRoot::new();
    let family = Family::new(&root).settled().moved_on();
    let path = family.receipt("ws");
    let good = std::fs::read(&path).unwrap();
    let claim = ["claim-retire", "t1", "--attempt", &family.child.attempt, "--parent", "pa"];
    for (_, bytes) in damages(&good) {
        put(&path, &bytes);
        let _ = json(&root, &["inspect", "t1", "--expect", "terminal-no-report"]).is(0, "ok");
        let _ = json(&root, &["recover", "t1"]).is(0, "recovered");
        let _ = json(&root, &[claim.as_slice(), &STEP].concat()).is(0, "claimed");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

/// Right after the commit that wrote a file, its damage is what it is later: nobody writes over it, nothing rests on
/// it, and it keeps its task from nothing else, from being stopped least of all.
#[test]
fn damage_to_what_the_last_commit_wrote_keeps_no_task_from_being_stopped() {
    for (which, reason) in ["report-unreadable", "receipt-unreadable", ""].into_iter().enumerate() {
        let root = TestRoot::new();
        let family = Family::new(&root);
        let family = if which == 0 { family.reported() } else { family.settled() };
        let path = [family.report_file(), family.receipt("pa"), family.receipt("ws")][which].clone();
        let claim = ["claim-retire", "t1", "--attempt", &family.child.attempt, "--parent", "pa"];
        for bytes in [b"".as_slice(), b"{}", b"\0\0"] {
            put(&path, bytes);
            let seen = json(&root, &["inspect", "t1"]).is(0, "ok").json();
            assert!(reason.is_empty() || seen["reasonCode"] == reason, "{seen}");
            if which == 1 {
                let _ = json(&root, &[claim.as_slice(), &STEP].concat()).is(11, reason);
            }
            let _ = json(&root, &["stop", "t1"]).either(&["stopping", "already-stopping", "already-stopped"]);
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "it was written over");
        }
        family.other_is_usable();
    }
}

/// Somebody else's bytes where a receipt or a report belongs: the attempt stays as it was, and so do they.
#[test]
fn what_lies_in_the_place_of_evidence_is_never_written_over() {
    for workspace in ["pa", "ws"] {
        let root = TestRoot::new();
        let family = Family::new(&root);
        let path = family.receipt(workspace);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for bytes in [b"".as_slice(), b"{}", b"\0\0\0\0"] {
            put(&path, bytes);
            let settle = ["settle", "t1", "--turn", &family.turn, "--close", "--token", &family.child.token];
            let _ = json(&root, &settle).is(11, "receipt-unreadable");
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
            let _ = json(&root, &["inspect", "t1"]).is(0, "ok");
        }
        std::fs::remove_file(&path).unwrap();
        let settle = ["settle", "t1", "--turn", &family.turn, "--close", "--token", &family.child.token];
        let _ = json(&root, &settle).is(0, "turn-settled");
    }
    let root = TestRoot::new();
    let family = Family::new(&root);
    let path = family.report_file();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    put(&path, b"{}");
    let row = Unchanged::of(&family.row_file());
    let _ = family.child.report("mine").is(11, "report-unreadable");
    assert_eq!(std::fs::read(&path).unwrap(), b"{}");
    row.holds("a report that cannot be kept does not count");
}

/// The events that left the row are for people; when they cannot be read, it is said, in both forms.
#[test]
fn a_damaged_history_is_said_to_be_damaged() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    for _ in 0..50 {
        let _ = json(&root, &["stop", &task.id]).exits(0);
    }
    let path = root.path().join("tasks/t1/history-1.jsonl");
    let good = std::fs::read(&path).unwrap();
    let whole = json(&root, &["inspect", "t1", "--history"]).is(0, "ok").json();
    assert_eq!(whole["history"].as_array().unwrap().len(), 51);
    let mut bad: Vec<Option<Vec<u8>>> = damages(&good).into_iter().map(|(_, bytes)| Some(bytes)).collect();
    bad.retain(|bytes| bytes.as_ref().is_none_or(|bytes| bytes.trim_ascii() != good.trim_ascii()));
    bad.push(None);
    for bytes in bad {
        match &bytes {
            Some(bytes) => put(&path, bytes),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let unchanged = Unchanged::root(&root);
        let seen = json(&root, &["inspect", "t1", "--history"]).is(0, "ok").json();
        assert!(seen["historyError"].is_string() && seen["history"].is_null(), "{bytes:?} {seen}");
        let shown = text(&root, &["inspect", "t1", "--history"]).exits(0).out();
        assert!(shown.contains("history-1.jsonl"), "{shown}");
        unchanged.holds("reading changes nothing");
    }
    // Nothing decides on it: the task goes on.
    let _ = json(&root, &["stop", "t1"]).exits(0);
    let _ = json(&root, &["rotate", "t1", "--as", "reawaken"]).is(0, "rotated");
}
