//! Files that are damaged: cut, flipped, emptied, another's, of a newer version. What cannot be read is never
//! taken for what is not there, and is never written over.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Family, Unchanged, json, strs, text};
use crate::common::TestRoot;

/// Whole-file damage, by name.
pub(super) fn damages(good: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("empty", Vec::new()),
        ("half", good[..good.len() / 2].to_vec()),
        ("all but the last byte", good[..good.len() - 1].to_vec()),
        ("zeros", vec![0; good.len()]),
        ("two objects", [good, good].concat()),
        ("a byte in front", [b" ", good].concat()),
        ("a byte behind", [good, b"\n"].concat()),
        ("null", b"null\n".to_vec()),
        ("a list", b"[]\n".to_vec()),
        ("another object", b"{}\n".to_vec()),
        ("foreign", br#"{"projects":[["/home/u/p",{"workspaces":[]}]]}"#.to_vec()),
        ("a page", b"<html></html>\n".to_vec()),
        ("no text", b"\xff\xfe\x00{".to_vec()),
        ("deep", b"[".repeat(200_000)),
    ]
}

/// Offsets all over a file: its first and last bytes, and a stride between.
fn offsets(len: usize, n: usize) -> Vec<usize> {
    let stride = (len / n).max(1);
    let mut at: Vec<usize> = (0..len).step_by(stride).collect();
    at.extend(0..len.min(4));
    at.extend(len.saturating_sub(4)..len);
    at.sort_unstable();
    at.dedup();
    at
}

/// Cuts and flips of a file, sampled.
pub(super) fn cuts_and_flips(good: &[u8], n: usize) -> Vec<Vec<u8>> {
    let mut bad: Vec<Vec<u8>> = offsets(good.len(), n).into_iter().map(|at| good[..at].to_vec()).collect();
    for (index, at) in offsets(good.len(), n).into_iter().enumerate() {
        let mut flipped = good.to_vec();
        flipped[at] ^= [0x01, 0x20, 0x80, 0x04][index % 4];
        bad.push(flipped);
    }
    bad
}

/// A row file with this document and a checksum that is right.
fn with_checksum(document: &str) -> Vec<u8> {
    let mut digest = String::new();
    for byte in Sha256::digest(document.as_bytes()) {
        write!(digest, "{byte:02x}").unwrap();
    }
    format!("{{\"sha256\":\"{digest}\",\"document\":{document}}}\n").into_bytes()
}

/// The document of a row file, changed.
fn changed(good: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut file: Value = serde_json::from_slice(good).unwrap();
    change(&mut file["document"]);
    with_checksum(&file["document"].to_string())
}

#[track_caller]
pub(super) fn put(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn every_command_refuses_a_damaged_row_and_leaves_it_as_it_is() {
    let root = TestRoot::new();
    let family = Family::new(&root).with_late();
    let good = std::fs::read(family.row_file()).unwrap();
    let strangers = std::fs::read(root.path().join("tasks/other/row.json")).unwrap();
    let mut bad = damages(&good);
    bad.push(("another task's row", strangers));
    bad.push(("newer and strange", with_checksum(r#"{"version":2,"kind":"task","revision":1,"body":{}}"#)));
    bad.push(("revision 0", changed(&good, |document| document["revision"] = 0.into())));
    bad.push(("version 0", changed(&good, |document| document["version"] = 0.into())));
    bad.push(("an id that is none", changed(&good, |document| document["body"]["taskId"] = "a\nb".into())));
    bad.push(("no attempt", changed(&good, |document| document["body"]["taskAttemptId"] = "att_1".into())));
    bad.push((
        "a record out of the root",
        changed(&good, |document| {
            document["pending"] = serde_json::json!({ "id": "0".repeat(32), "files": [{
            "path": "sessions/../../x/y.json", "staged": ".lych-x", "sha256": "0".repeat(64) }] });
        }),
    ));
    let commands = family.commands();
    for (index, (what, bytes)) in bad.iter().enumerate() {
        put(&family.row_file(), bytes);
        let unchanged = Unchanged::root(&root);
        // Every command sees some of the damages, and every damage some of the commands.
        let some = commands.iter().enumerate().filter(|(at, _)| index == 0 || at % 6 == index % 6);
        for (_, line) in some {
            let raw = json(&root, &strs(line)).either(&["row-unreadable", "newer-version"]);
            assert_eq!(raw.exit, 65, "{what}: {}", raw.describe());
            unchanged.holds(what);
        }
        let _ = text(&root, &["inspect", "t1"]).exits(65);
        unchanged.holds(what);
    }
    family.other_is_usable();
    put(&family.row_file(), &good);
    let _ = json(&root, &["inspect", "t1", "--expect", "reported"]).is(0, "ok");
}

#[test]
fn no_cut_and_no_flipped_byte_of_a_row_goes_unnoticed() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let good = std::fs::read(family.row_file()).unwrap();
    let token = family.child.token.clone();
    let settle = ["settle", "t1", "--turn", family.turn.as_str(), "--token", token.as_str()];
    for (index, bytes) in cuts_and_flips(&good, 40).iter().enumerate() {
        put(&family.row_file(), bytes);
        let line: &[&str] = match index % 3 {
            0 => &["inspect", "t1"],
            1 => &["stop", "t1"],
            _ => &settle,
        };
        let _ = json(&root, line).is(65, "row-unreadable");
        assert_eq!(&std::fs::read(family.row_file()).unwrap(), bytes, "it was written over");
    }
    put(&family.row_file(), &good);
    let _ = json(&root, &settle).is(0, "turn-settled");
}

/// A pass over all tasks says which ones it could not read, and does the others.
#[test]
fn a_damaged_row_hides_no_other_task_and_is_not_hidden_itself() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    put(&family.row_file(), b"");
    let unchanged = Unchanged::of(&family.row_file());
    let all = json(&root, &["inspect"]).is(0, "ok").json();
    let tasks = all["tasks"].as_array().unwrap();
    let of = |id: &str| tasks.iter().find(|task| task["taskId"] == id).unwrap();
    assert_eq!(
        (&of("t1")["outcome"], &of("t1")["reasonCode"]),
        (&"indeterminate".into(), &"row-unreadable".into())
    );
    assert_eq!(of("other")["outcome"], "live");
    let _ = json(&root, &["inspect", "other", "t1"]).is(65, "row-unreadable");
    let pass = json(&root, &["recover"]).is(0, "recovered").json();
    assert_eq!(pass["left"][0]["reasonCode"], "row-unreadable");
    let _ = json(&root, &["recover", "--strict"]).is(11, "recovery-incomplete");
    let _ = json(&root, &["recover", "t1", "other"]).is(65, "row-unreadable");
    // It may be a descendant, so a tree that was asked to stop was not stopped as a whole.
    let tree = json(&root, &["stop", "pa", "--tree"]).is(65, "row-unreadable").json();
    let stopped: Vec<_> = tree["tasks"].as_array().unwrap().iter().map(|task| &task["code"]).collect();
    assert_eq!(stopped, ["stopped", "row-unreadable"]);
    unchanged.holds("a damaged row stays as it is");
    family.other_is_usable();
}

#[test]
fn a_damaged_parent_lets_no_child_start() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let parent = root.path().join("tasks/pa/row.json");
    let good = std::fs::read(&parent).unwrap();
    let (attempt, token) = (family.child.attempt.clone(), family.child.token.clone());
    for bad in [b"".as_slice(), &good[..good.len() - 9], b"{}"] {
        put(&parent, bad);
        let unchanged = Unchanged::root(&root);
        let admit = ["admit", "t1", "--attempt", &attempt, "--start", "--token", &token];
        let _ = json(&root, &admit).is(65, "row-unreadable");
        let _ = json(&root, &["reserve", "t2", "--parent", "pa"]).is(65, "row-unreadable");
        let _ = json(&root, &["reserve", "t3", "--parent", "t1"]).is(65, "row-unreadable");
        unchanged.holds("nothing starts under a parent nobody can read");
    }
    // What ends work asks no ancestor.
    let _ = json(&root, &["settle", "t1", "--turn", &family.turn, "--token", &token]).is(0, "turn-settled");
    let _ = json(&root, &["stop", "t1"]).is(0, "stopped");
    family.other_is_usable();
}

#[test]
fn a_newer_row_is_read_and_never_written() {
    let root = TestRoot::new();
    let family = Family::new(&root).reported();
    let good = std::fs::read(family.row_file()).unwrap();
    put(
        &family.row_file(),
        &changed(&good, |document| {
            document["version"] = 2.into();
            document["body"]["later"] = serde_json::json!({ "a": [1] });
        }),
    );
    let unchanged = Unchanged::root(&root);
    for line in family.commands() {
        let raw = json(&root, &strs(&line));
        match line[0].as_str() {
            "inspect" => assert_eq!(raw.is(0, "ok").json()["newerVersion"], true),
            "report" if line.contains(&"--late".to_owned()) => drop(raw.is(10, "no-report")),
            "report" if line.contains(&"--show".to_owned()) => drop(raw.is(0, "ok")),
            "recover" => assert_eq!(raw.is(0, "recovered").json()["left"][0]["reasonCode"], "newer-version"),
            _ => drop(raw.either(&["newer-version", "task-exists", "not-claimed"])),
        }
        unchanged.holds("a newer row is never written");
    }
    family.other_is_usable();
}

#[test]
fn a_damaged_config_makes_no_new_root() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let path = root.path().join("config.json");
    let good = std::fs::read(&path).unwrap();
    let mut bad: Vec<Vec<u8>> = damages(&good).into_iter().map(|(_, bytes)| bytes).collect();
    bad.retain(|bytes| bytes.trim_ascii() != good.trim_ascii());
    bad.extend((0..good.len() - 1).map(|at| good[..at].to_vec()));
    bad.retain(|bytes| bytes.trim_ascii() != good.trim_ascii());
    let commands = family.commands();
    for (index, bytes) in bad.iter().enumerate() {
        put(&path, bytes);
        let unchanged = Unchanged::root(&root);
        for line in [&commands[index % commands.len()], &commands[(index * 7 + 3) % commands.len()]] {
            let raw = json(&root, &strs(line)).either(&["root-damaged", "foreign-root"]);
            assert_eq!(raw.exit, 65);
        }
        unchanged.holds("a root is never made anew over a damaged one");
    }
    for (at, byte) in good.iter().enumerate() {
        let mut flipped = good.clone();
        flipped[at] = byte ^ 0x01;
        put(&path, &flipped);
        let _ = json(&root, &["stop", "t1"]).exits(65);
        assert_eq!(std::fs::read(&path).unwrap(), flipped);
    }
    std::fs::remove_file(&path).unwrap();
    let unchanged = Unchanged::root(&root);
    for line in &commands {
        let _ = json(&root, &strs(line)).is(65, "root-damaged");
    }
    unchanged.holds("a root that lost its config is damaged");
    put(&path, &good);
    family.other_is_usable();
}

#[test]
fn a_newer_root_is_read_and_never_written() {
    let root = TestRoot::new();
    let family = Family::new(&root).reported();
    put(&root.path().join("config.json"), br#"{"kind":"lychgate","version":2,"later":[1]}"#);
    let unchanged = Unchanged::root(&root);
    for line in family.commands() {
        let raw = json(&root, &strs(&line));
        let reads = line[0] == "inspect" || line.contains(&"--show".to_owned());
        let _ = if reads { raw.either(&["ok", "no-report"]) } else { raw.is(65, "newer-version") };
    }
    unchanged.holds("a newer root is never written");
}

#[test]
fn a_damaged_secret_stops_every_change_and_no_reading() {
    let root = TestRoot::new();
    let family = Family::new(&root).reported();
    let path = root.path().join("secret");
    let good = std::fs::read(&path).unwrap();
    let mut bad: Vec<Option<Vec<u8>>> = damages(&good).into_iter().map(|(_, bytes)| Some(bytes)).collect();
    bad.extend((0..good.len()).step_by(9).map(|at| Some(good[..at].to_vec())));
    bad.push(Some(good.to_ascii_uppercase()).filter(|upper| *upper != good));
    let commands = family.commands();
    for (index, bytes) in bad.iter().enumerate() {
        match bytes {
            Some(bytes) => put(&path, bytes),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let unchanged = Unchanged::root(&root);
        let some = commands.iter().enumerate().filter(|(at, _)| index == 0 || at % 6 == index % 6);
        for (_, line) in some.filter(|(_, line)| line[0] != "recover") {
            let raw = json(&root, &strs(line));
            let shows_token = line.contains(&"--token".to_owned());
            let reads = (line[0] == "inspect" && !shows_token) || line.contains(&"--show".to_owned());
            let _ = if reads { raw.either(&["ok", "no-report"]) } else { raw.is(65, "root-damaged") };
        }
        unchanged.holds("no token is made or checked with a damaged secret");
    }
}

/// Another valid secret makes every token a wrong one: nothing is permitted by it.
#[test]
fn another_secret_permits_nothing() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    put(&root.path().join("secret"), format!("{}\n", "ab".repeat(32)).as_bytes());
    let unchanged = Unchanged::root(&root);
    let (attempt, token) = (family.child.attempt.as_str(), family.child.token.as_str());
    let _ =
        json(&root, &["admit", "t1", "--attempt", attempt, "--start", "--token", token]).is(10, "not-owner");
    let _ = json(&root, &["settle", "t1", "--turn", &family.turn, "--token", token]).is(10, "not-owner");
    let _ = json(&root, &["settle", "t1", "--token", token]).is(10, "not-owner");
    unchanged.holds("a token of another root's secret is a wrong one");
}
