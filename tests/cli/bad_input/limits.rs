//! Limits on the process: the size of a file, and how many files may be open.

use super::{EXITS, Family, Raw, Unchanged, documented, json, sh, tree};
use crate::common::TestRoot;

/// Runs a call under a limit that a line of shell sets.
fn limited(root: &TestRoot, limit: &str, args: &[&str]) -> Raw {
    sh(root, &format!(r#"{limit} || exit 97; exec "$LG" --json "$@""#), args)
}

/// One change of every kind, about `t1` of a family.
fn changes(family: &Family<'_>) -> Vec<Vec<String>> {
    let (attempt, token) = (family.child.attempt.as_str(), family.child.token.as_str());
    std::fs::write(family.root.scratch().join("long"), "x".repeat(200_000)).unwrap();
    let lines: [&[&str]; 6] = [
        &["reserve", "t2", "--parent", "pa"],
        &["admit", "t1", "--attempt", attempt, "--token", token],
        &["report", "t1", "--attempt", attempt, "--token", token, "--file", "long"],
        &["stop", "t1", "--reason", "limits"],
        &["settle", "t1", "--turn", &family.turn, "--close", "--token", token],
        &["rotate", "t1", "--as", "reawaken"],
    ];
    lines.iter().map(|line| line.iter().map(|word| (*word).to_owned()).collect()).collect()
}

/// The files alone: a call that failed may leave the empty folders it made.
fn files(root: &TestRoot) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let all = tree(&root.path()).into_iter();
    all.filter(|(path, _)| path.is_file()).map(|(path, (_, bytes))| (path, bytes)).collect()
}

/// Where the limit's signal is ignored, as supervisors often have it, the write fails and is reported.
#[test]
fn a_file_size_limit_is_an_error_and_the_old_state_stands() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    for line in changes(&family) {
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let before = files(&root);
        let raw = documented(limited(&root, "trap '' XFSZ; ulimit -f 0", &line));
        // Some ask for what is refused before anything is written.
        let _ = raw.either(&["io", "not-interrupted"]);
        assert_eq!(files(&root), before, "{line:?}");
    }
    family.other_is_usable();
}

/// Where it is not, the call dies of it like of any other signal: the old state stands, and the next call works.
#[test]
fn a_death_by_the_file_size_limit_leaves_the_old_state() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let mut died = 0;
    for line in changes(&family) {
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let row = Unchanged::of(&family.row_file());
        let raw = limited(&root, "ulimit -f 0", &line);
        assert!(raw.exit == -1 || EXITS.contains(&raw.exit), "{}", raw.describe());
        assert!(raw.exit != 0, "{}", raw.describe());
        died += i32::from(raw.exit == -1);
        row.holds("the old state stands");
        let _ = json(&root, &["inspect", "t1"]).is(0, "ok");
    }
    assert!(died > 3, "the limit was not felt");
    let _ = json(&root, &["reserve", "t2", "--parent", "pa"]).is(0, "reserved");
    let _ = family.child.report("after all").is(0, "report-accepted");
    let _ = family.child.settle(&family.turn).is(0, "turn-settled");
    let _ = json(&root, &["stop", "t1"]).is(0, "stopped");
    let litter = files(&root).into_iter().filter(|(path, _)| path.to_string_lossy().contains(".lych-"));
    assert_eq!(litter.count(), 0, "the next call in each folder sweeps it");
    family.other_is_usable();
}

/// However few files may be open: a call does all of what it was asked or none of it, and never takes a file that
/// it could not open for one that is not there.
#[test]
fn a_small_number_of_open_files_is_an_error_or_no_hindrance() {
    let root = TestRoot::new();
    let family = Family::new(&root).with_late();
    let all = changes(&family);
    let mut refused = 0;
    for n_files in 3..16 {
        let limit = format!("ulimit -n {n_files}");
        for line in &all {
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            let before = files(&root);
            let raw = limited(&root, &limit, &line);
            // The loader needs one to find the C library; without it nothing of ours runs.
            if raw.exit == 127 {
                continue;
            }
            let raw = documented(raw);
            if raw.exit >= 64 {
                refused += 1;
                assert_eq!(files(&root), before, "{n_files}: {}", raw.describe());
            }
            assert_ne!(raw.code(), "no-task-record", "{n_files}: {}", raw.describe());
            assert_ne!(raw.code(), "foreign-root", "{n_files}: {}", raw.describe());
        }
        let seen = limited(&root, &limit, &["inspect", "t1"]);
        if seen.exit == 0 {
            let outcome = seen.json()["outcome"].clone();
            assert!(["reported", "live", "indeterminate"].contains(&outcome.as_str().unwrap()), "{outcome}");
            assert_ne!(seen.json()["reasonCode"], "no-task-record");
        }
    }
    assert!(refused > 5, "the limit was not felt");
    family.other_is_usable();
}
