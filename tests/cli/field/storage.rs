//! What lies on disk, and where: A49, A53, A59 and A61.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::actors::PATIENT;
use crate::common::{BIN, Task, TestRoot};

/// One call of each verb that looks at a task.
fn verbs<'a>(task: &'a Task<'_>) -> Vec<Vec<&'a str>> {
    let (attempt, token) = (task.attempt.as_str(), task.token.as_str());
    let mut claim = vec!["claim-retire", "t", "--attempt", attempt, "--run", "run", "--step", "step"];
    claim.extend(["--input-hash", "hash", "--parent", "ws"]);
    vec![
        vec!["reserve", "t", "--parent", "ws"],
        vec!["reserve", "below", "--parent", "t"],
        vec!["reserve", "next", "--replaces", "t", "--nonce", "non_0"],
        vec!["rotate", "t", "--as", "launch"],
        vec!["rotate", "t", "--as", "reawaken", "--unproven"],
        vec!["rotate", "t", "--as", "startup", "--unproven"],
        vec!["admit", "t", "--attempt", attempt, "--token", token],
        vec!["admit", "t", "--attempt", attempt, "--start", "--token", token],
        vec!["stop", "t"],
        vec!["settle", "t", "--token", token],
        vec!["report", "t", "--show"],
        vec!["report", "t", "--attempt", attempt, "--token", token, "--file", "report"],
        claim,
        vec!["recover", "t", "--unproven"],
        vec!["inspect", "t"],
    ]
}

#[test]
fn a49_a_damaged_row_is_refused_by_every_call_written_by_none_and_never_taken_for_absent() {
    let root = TestRoot::new();
    let task = root.reserve_step("t").launched();
    let other = root.reserve("other").launched();
    std::fs::write(root.scratch().join("report"), "done").unwrap();
    let file = root.path().join("tasks/t/row.json");
    let good = std::fs::read(&file).unwrap();
    let flipped = || {
        let mut bytes = good.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        bytes
    };
    let damages: [(&str, Vec<u8>); 9] = [
        ("empty", Vec::new()),
        ("half", good[..good.len() / 2].to_vec()),
        ("zeros", vec![0; good.len()]),
        ("null", b"null".to_vec()),
        ("a list", b"[]".to_vec()),
        ("a page", b"<html>".to_vec()),
        ("twice", [good.clone(), good.clone()].concat()),
        ("flipped", flipped()),
        ("another task's", std::fs::read(root.path().join("tasks/other/row.json")).unwrap()),
    ];
    for (what, bytes) in damages {
        std::fs::write(&file, &bytes).unwrap();
        for call in verbs(&task) {
            let before = root.bytes();
            let outcome = root.json(&call);
            assert_eq!(
                (outcome.exit, outcome.code().as_str()),
                (65, "row-unreadable"),
                "{what} {call:?}: {outcome}"
            );
            assert!(outcome.stdout.contains("tasks/t/row.json"), "{what} {call:?} names no file: {outcome}");
            assert!(before == root.bytes(), "{what} {call:?} wrote something");
        }
        let all = root.json(&["inspect"]);
        assert!(all.stdout.contains("row-unreadable"), "{what}: {all}");
        assert_eq!(other.stands(), "live", "{what}: other tasks are usable");
        let _ = other.begin().is(0, "admitted");
    }
    std::fs::write(&file, &good).unwrap();
    assert_eq!(task.launch().code(), "not-queued");
    let _ = task.stop().is(0, "stopped");
}

#[test]
fn a49_a_row_a_config_or_a_secret_that_is_gone_is_damage_and_no_new_beginning() {
    for lost in ["config.json", "secret", "tasks"] {
        let root = TestRoot::new();
        let task = root.reserve("t").launched();
        let kept = root.scratch().join("kept");
        std::fs::rename(root.path().join(lost), &kept).unwrap();
        for call in [vec!["reserve", "new", "--parent", "ws"], vec!["stop", "t"], vec!["stop", "t", "--tree"]]
        {
            let outcome = root.json(&call);
            assert_eq!(outcome.exit, 65, "{lost} {call:?}: {outcome}");
            assert!(!root.path().join(lost).exists(), "{lost} {call:?}: it was made anew");
        }
        std::fs::rename(&kept, root.path().join(lost)).unwrap();
        let _ = task.begin().is(0, "admitted");
    }
}

#[test]
fn a53_every_spelling_of_one_root_meets_the_same_lock() {
    let root = TestRoot::new();
    let _ = root.reserve("first");
    std::os::unix::fs::symlink(root.path(), root.scratch().join("link")).unwrap();
    let absolute = root.path().display().to_string();
    let linked = root.scratch().join("link/.").display().to_string();
    let spellings = [absolute.as_str(), "root", "./root/", "link", &linked, "root/../root", "link/../root//"];
    let calls: Vec<Vec<&str>> = spellings
        .iter()
        .cycle()
        .take(14)
        .map(|path| [&["reserve", "t", "--parent", "ws", "--root", path][..], &PATIENT].concat())
        .collect();
    let outcomes = root.at_once(&calls);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.exit == 0).count(), 1);
    for lost in outcomes.iter().filter(|outcome| outcome.exit != 0) {
        let _ = lost.clone().is(10, "task-exists");
    }
    // A bind mount is the same root under one more name.
    let script =
        r#"mkdir -p bound; mount --bind root bound; exec "$0" --root bound reserve t --parent ws --json"#;
    let child = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-euc", script, BIN])
        .env_remove("LYCHGATE_ROOT")
        .current_dir(root.scratch())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let _ = root.finish(child.unwrap()).is(10, "task-exists");
}

#[test]
fn a53_reading_neither_makes_nor_accepts_a_root_that_is_not_there() {
    let root = TestRoot::new();
    let missing = root.file("no/such/root");
    for call in [vec!["inspect"], vec!["inspect", "t"], vec!["report", "t", "--show"]] {
        let outcome = root.json(&[&call[..], &["--root", &missing]].concat());
        assert!(!Path::new(&root.file("no")).exists(), "{call:?} made a root: {outcome}");
        assert!(!outcome.stdout.contains("\"outcome\":\"live\""), "{outcome}");
    }
    let twin = root.scratch().join("twin");
    std::fs::create_dir(&twin).unwrap();
    std::fs::write(twin.join("config.json"), b"{\"projects\":[]}").unwrap();
    let foreign = root.json(&["reserve", "t", "--parent", "ws", "--root", "twin"]).is(65, "foreign-root");
    assert!(foreign.get("hint").contains("LYCHGATE_ROOT"), "{foreign}");
    assert_eq!(std::fs::read_dir(&twin).unwrap().count(), 1, "nothing was put beside it");
}

#[test]
fn a59_a_read_only_root_is_read_and_a_change_is_refused_before_an_id_is_shown() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let _ = task.turn();
    std::fs::write(root.scratch().join("report"), "done").unwrap();
    let play = |args: &[&str]| {
        let plain = root.command(&[]);
        let script = r#"mount --bind root root; mount -o remount,bind,ro root; exec "$@""#;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-euc", script, "sh", BIN]).args(args);
        command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
            .current_dir(root.scratch())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        root.finish(command.spawn().unwrap())
    };
    let before = root.bytes();
    assert_eq!(play(&["inspect", "t", "--json"]).is(0, "ok").get("outcome"), "live");
    assert_eq!(play(&["inspect"]).exit, 0);
    assert_eq!(play(&["inspect", "t", "--explain", "--history"]).exit, 0);
    let token = ["--token", &task.token];
    let report = ["report", "t", "--attempt", &task.attempt, "--file", "report"];
    let changes: [Vec<&str>; 6] = [
        vec!["reserve", "t2", "--parent", "ws"],
        vec!["reserve", "t2", "--parent", "ws", "--token-file", "root/token"],
        vec!["stop", "t"],
        [&["admit", "t", "--attempt", &task.attempt, "--start"][..], &token].concat(),
        [&report[..], &token].concat(),
        [&["settle", "t"][..], &token].concat(),
    ];
    for call in changes {
        let refused = play(&call);
        assert_eq!((refused.exit, refused.stdout.as_str()), (74, ""), "{call:?}: {refused}");
        assert!(refused.stderr.to_lowercase().contains("read-only"), "{call:?}: {refused}");
    }
    assert!(before == root.bytes());
}

/// Every file and folder of a root with a task in it, by what it is.
fn linkable(root: &TestRoot, task: &Task<'_>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        ["tasks/t/row.json", "tasks/t", "tasks", "sessions", "secret", "config.json", "sessions/ws"]
            .map(|name| root.path().join(name))
            .into();
    paths.push(root.receipt_file("ws", "t", &task.attempt));
    paths
}

#[test]
fn a61_a_link_inside_the_root_is_refused_and_neither_followed_nor_replaced() {
    let n_paths = {
        let root = TestRoot::new();
        linkable(&root, &root.reserve("t")).len()
    };
    for n in 0..n_paths {
        let root = TestRoot::new();
        let task = root.reserve("t").launched();
        let _ = task.stop().is(0, "stopped");
        let _ = task.stop().is(0, "already-stopped");
        let path = linkable(&root, &task)[n].clone();
        let kept = root.scratch().join("kept");
        std::fs::rename(&path, &kept).unwrap();
        std::os::unix::fs::symlink(&kept, &path).unwrap();
        let (before, kept_before) = (root.bytes(), std::fs::read(&kept).ok());
        let evidence = path.starts_with(root.path().join("sessions"));
        for call in [vec!["stop", "t"], vec!["rotate", "t", "--as", "reawaken"]] {
            let outcome = root.json(&call);
            let at = format!("{} {call:?}: {outcome}", path.display());
            if evidence {
                // A linked receipt proves nothing: what is granted, is granted without it.
                assert!(outcome.exit != 0 || outcome.json()["proven"] != true, "{at}");
                assert!(task.stands().starts_with("indeterminate/"), "{at}: {}", task.stands());
            } else {
                assert_eq!((outcome.exit, outcome.code().as_str()), (65, "link-refused"), "{at}");
                assert!(before == root.bytes(), "{at}");
            }
        }
        assert!(path.symlink_metadata().unwrap().is_symlink(), "{}: the link is gone", path.display());
        assert_eq!(std::fs::read(&kept).ok(), kept_before, "{}: written through the link", path.display());
    }
}

#[test]
fn a61_a_root_that_is_a_link_is_followed_and_stays_a_link() {
    let root = TestRoot::new();
    let elsewhere = root.scratch().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, root.path()).unwrap();
    let task = root.reserve("t").launched();
    let _ = task.begin().is(0, "admitted");
    assert!(root.path().symlink_metadata().unwrap().is_symlink());
    assert!(elsewhere.join("tasks/t/row.json").is_file());
}
