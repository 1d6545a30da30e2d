//! Roots that are none, that are somebody else's, that cannot be written, and one root under many names.

use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::process::Command;

use super::{Family, Raw, Unchanged, call, json, sh, strs, tree};
use crate::common::{BIN, TestRoot};

/// One call of every verb, each well formed, about tasks that need not exist.
const EVERY_VERB: [&[&str]; 12] = [
    &["rotate", "t1", "--as", "launch"],
    &["admit", "t1", "--attempt", "att_0123456789abcdef", "--start"],
    &["stop", "t1"],
    &["stop", "t1", "--tree"],
    &["settle", "t1"],
    &["report", "t1", "--attempt", "att_0123456789abcdef", "--file", "/etc/hostname"],
    &["report", "t1", "--show"],
    &[
        "claim-retire",
        "t1",
        "--attempt",
        "att_0123456789abcdef",
        "--run=r",
        "--step=s",
        "--input-hash=h",
        "--parent=w",
    ],
    &["inspect", "t1"],
    &["inspect"],
    &["recover", "t1"],
    &["recover"],
];
const RESERVE: &[&str] = &["reserve", "new", "--parent", "ws"];

fn at(root: &TestRoot, place: &str, args: &[&str]) -> Raw {
    json(root, &[&["--root", place], args].concat())
}

/// A typo in a root's name makes no twin of it: only `reserve` makes a root (A53).
#[test]
fn only_a_reservation_makes_a_root() {
    let root = TestRoot::new();
    let _ = root.reserve("t1");
    let unchanged = Unchanged::of(root.scratch());
    std::fs::create_dir(root.scratch().join("blank")).unwrap();
    for place in ["typo", "no/such/root", "blank"] {
        let place = root.file(place);
        let before = Unchanged::of(root.scratch());
        for line in EVERY_VERB {
            let raw = at(&root, &place, line);
            let answers = line == ["inspect", "t1"] || line == ["inspect"] || line == ["recover"];
            let _ = if answers { raw.either(&["ok", "recovered"]) } else { raw.is(10, "no-task-record") };
        }
        before.holds("nothing was made");
    }
    std::fs::remove_dir(root.scratch().join("blank")).unwrap();
    unchanged.holds("nothing was made");
    for place in ["blank", "typo/../typo2", "deep/er/root"] {
        let reserved = at(&root, &root.file(place), RESERVE);
        if place.contains("..") {
            // What does not exist has no parent to go back to.
            let _ = reserved.either(&["io", "reserved"]);
        } else {
            let _ = reserved.is(0, "reserved");
            let mode = std::fs::metadata(root.file(place)).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o700, "{place}");
        }
    }
}

#[test]
fn what_is_no_root_is_left_alone() {
    let root = TestRoot::new();
    let make = |name: &str, files: &[(&str, &str)]| {
        for (file, text) in files {
            let path = root.scratch().join(name).join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    };
    let projects = r#"{"projects":[["/home/u/p",{"workspaces":[{"id":"t1","path":"/p"}]}]]}"#;
    std::fs::write(root.scratch().join("file"), "text").unwrap();
    make(
        "xum",
        &[("config.json", projects), ("sessions/w/chat.jsonl", "{}\n"), ("sessions/w/metadata.json", "{}")],
    );
    make("foreign", &[("notes.txt", "mine")]);
    make("other-config", &[("config.json", r#"{"version":1}"#)]);
    make("text-config", &[("config.json", "a = 1\n")]);
    make("ours-and-theirs", &[("notes.txt", "mine"), ("tasks/x/row.json", "{}")]);
    make("lost-config", &[("tasks/x/row.json", "{}"), ("secret", "x")]);
    let unchanged = Unchanged::of(root.scratch());
    for place in ["file", "xum", "foreign", "other-config", "text-config", "ours-and-theirs", "lost-config"] {
        for line in EVERY_VERB.into_iter().chain([RESERVE]) {
            let raw = at(&root, &root.file(place), line);
            let code = if place == "lost-config" { "root-damaged" } else { "foreign-root" };
            let raw = raw.is(65, code);
            if code == "foreign-root" {
                assert!(raw.get("hint").contains("LYCHGATE_ROOT"), "{}", raw.describe());
            }
        }
        unchanged.holds(place);
    }
    // A root below a file can neither exist nor be made.
    for line in EVERY_VERB.into_iter().chain([RESERVE]) {
        let _ = at(&root, &root.file("file/root"), line).is(74, "io");
    }
    unchanged.holds("below a file");
}

#[test]
fn a_link_to_a_root_is_the_root_and_a_link_to_nothing_is_an_error() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    symlink(root.path(), root.scratch().join("link")).unwrap();
    symlink("nowhere", root.scratch().join("dangling")).unwrap();
    symlink("loop", root.scratch().join("loop")).unwrap();
    let link = root.file("link");
    assert_eq!(
        at(&root, &link, &["inspect", "t1"]).is(0, "ok").get("root"),
        root.path().canonicalize().unwrap().to_str().unwrap()
    );
    let _ = at(&root, &link, &["settle", "t1", "--turn", &family.turn, "--token", &family.child.token])
        .is(0, "turn-settled");
    let unchanged = Unchanged::of(root.scratch());
    for place in ["dangling", "loop"] {
        for line in EVERY_VERB.into_iter().chain([RESERVE]) {
            let _ = at(&root, &root.file(place), line).is(74, "io");
        }
    }
    unchanged.holds("nothing is made behind a link that leads nowhere");
    // A made root reached through a link is made once, where the link leads.
    std::fs::create_dir(root.scratch().join("there")).unwrap();
    symlink("there", root.scratch().join("to-there")).unwrap();
    let _ = at(&root, &root.file("to-there"), RESERVE).is(0, "reserved");
    assert!(root.scratch().join("there/config.json").exists());
    assert!(root.scratch().join("to-there").is_symlink());
}

#[test]
fn a_root_under_five_names_at_once_is_one_root() {
    let root = TestRoot::new();
    let real = root.path();
    std::fs::create_dir(&real).unwrap();
    symlink("root", root.scratch().join("link")).unwrap();
    let names = ["root", "./root/", "link", "link/.", "root/../root"];
    let mut children = Vec::new();
    for round in 0..3 {
        for name in names {
            let task = format!("t{round}");
            let args = ["--json", "--root", name, "--lock-wait", "30s", "reserve", &task, "--parent", "ws"];
            children.push(root.command(&args).spawn().unwrap());
        }
    }
    let outcomes: Vec<_> = children.into_iter().map(|child| root.finish(child)).collect();
    for round in outcomes.chunks(names.len()) {
        let mut codes: Vec<String> = round.iter().map(crate::common::Outcome::code).collect();
        codes.sort();
        assert_eq!(codes, ["reserved", "task-exists", "task-exists", "task-exists", "task-exists"]);
    }
    assert!(outcomes.iter().all(|outcome| outcome.get("root") == "[DIR]/root"));
    let made: Vec<_> =
        std::fs::read_dir(root.scratch()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(made.len(), 2, "{made:?}");
}

#[test]
fn the_root_is_looked_for_in_one_order() {
    let root = TestRoot::new();
    let place = |name: &str| root.file(name);
    let order = [
        ("LYCHGATE_ROOT", place("one"), place("one")),
        ("XUM_ROOT", place("two"), place("two")),
        ("XDG_STATE_HOME", place("three"), place("three/lychgate")),
        ("HOME", place("four"), place("four/.local/state/lychgate")),
    ];
    let run = |from: usize, changes: &dyn Fn(&mut Command)| {
        let mut command = root.command(&["--json", "inspect"]);
        command.env_remove("LYCHGATE_ROOT").env_remove("HOME");
        for (name, value, _) in &order[from..] {
            command.env(name, value);
        }
        changes(&mut command);
        call(command)
    };
    for (from, (name, _, expected)) in order.iter().enumerate() {
        assert_eq!(&run(from, &|_| ()).is(0, "ok").get("root"), expected);
        // Empty is unset: the next one counts, and without any there is no root.
        let emptied = run(from, &|command| {
            command.env(name, "");
        });
        match order.get(from + 1) {
            Some((_, _, next)) => assert_eq!(&emptied.is(0, "ok").get("root"), next),
            None => drop(emptied.is(64, "usage")),
        }
    }
    let given = run(0, &|command| {
        command.args(["--root", &place("five")]);
    });
    assert_eq!(given.is(0, "ok").get("root"), place("five"));
    // A relative XDG_STATE_HOME is to be ignored: it would be another root in every folder.
    let relative = run(2, &|command| {
        command.env("XDG_STATE_HOME", "three");
    });
    assert_eq!(relative.is(0, "ok").get("root"), order[3].2);
    for verb in EVERY_VERB.into_iter().chain([RESERVE]) {
        let mut command = root.command(&[&["--json"], verb].concat());
        command.env_clear();
        let _ = call(command).is(64, "usage");
    }
    assert_eq!(tree(root.scratch()).len(), 1, "nothing was made on the way");
}

#[test]
fn a_read_only_mount_is_read_and_never_written() {
    let root = TestRoot::new();
    let family = Family::new(&root).reported();
    let script = r#"
        set -e
        root=$1; shift
        mount --bind "$root" "$root"; mount -o remount,bind,ro "$root"
        exec "$LG" --json --root "$root" "$@"
    "#;
    let unchanged = Unchanged::of(root.scratch());
    let path = root.path();
    let run = |place: &str, args: &[&str]| {
        let mut command = root.command(&[]);
        let real = command
            .get_envs()
            .map(|(n, v)| (n.to_owned(), v.unwrap_or_default().to_owned()))
            .collect::<Vec<_>>();
        command = Command::new("unshare");
        command.args(["-m", "--propagation", "private", "sh", "-c", script, "sh", place]).args(args);
        command.env_clear().envs(real).env("LG", BIN).current_dir(root.scratch());
        call(command)
    };
    for line in family.commands() {
        // The report to be published was written by the list of commands.
        let line = strs(&line);
        let raw = run(path.to_str().unwrap(), &line);
        let reads = line[0] == "inspect" || line.contains(&"--show");
        let raw = if reads { raw.either(&["ok", "no-report"]) } else { raw.is(74, "io") };
        assert!(reads || raw.get("message").to_lowercase().contains("read-only"), "{}", raw.describe());
        assert!(reads || !raw.out().contains("\"token\""), "no id is handed out: {}", raw.describe());
    }
    let seen = run(path.to_str().unwrap(), &["inspect", "t1", "--expect", "reported"]).is(0, "ok");
    assert_eq!(seen.get("taskId"), "t1");
    // Where there is no root yet, none is made, and reading says so.
    std::fs::remove_file(root.scratch().join("some-report")).unwrap();
    let scratch = root.scratch().to_str().unwrap();
    let below = format!(
        r#"set -e; mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; exec "{BIN}" --json --root "$1/new" "$2" new --parent ws"#
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", &below, "sh", scratch, "reserve"]);
    let _ = call(command).is(74, "io");
    unchanged.holds("nothing was written");
}

/// Runs a call as another user, who can reach the scratch folder.
fn as_user(root: &TestRoot, uid: u32, args: &[&str]) -> Raw {
    let ours = root.command(&[]);
    let mut command = Command::new("setpriv");
    let (uid, gid) = (format!("--reuid={uid}"), format!("--regid={uid}"));
    command.args([&uid, &gid, "--clear-groups", BIN, "--json"]).args(args).env_clear();
    for (name, value) in ours.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    call({
        command.current_dir("/");
        command
    })
}

fn own(root: &TestRoot, uid: u32) {
    for path in tree(&root.path()).keys() {
        chown(path, Some(uid), Some(uid)).unwrap();
    }
}

fn set_mode(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn somebody_elses_root_is_read_and_not_written() {
    let root = TestRoot::new();
    let family = Family::new(&root).reported();
    set_mode(root.scratch(), 0o755);
    own(&root, 1000);
    let commands = family.commands();
    let unchanged = Unchanged::root(&root);
    // Even by who could: what root writes would be lost to its owner.
    for line in &commands {
        let raw = json(&root, &strs(line));
        let reads = line[0] == "inspect" || line.contains(&"--show".to_owned());
        let _ = if reads { raw.either(&["ok", "no-report"]) } else { raw.is(65, "root-not-yours") };
    }
    let _ = json(&root, RESERVE).is(65, "root-not-yours");
    unchanged.holds("somebody else's root");
    // Its owner works in it, a stranger cannot even look.
    let _ = as_user(&root, 1000, &["stop", "t1"]).is(0, "stopping");
    let unchanged = Unchanged::root(&root);
    for line in [["inspect", "t1"].as_slice(), &["stop", "t1"], RESERVE] {
        let _ = as_user(&root, 1001, line).is(74, "io");
    }
    // With the folders open to all, a stranger reads and does not write.
    for (path, _) in tree(&root.path()) {
        set_mode(&path, if path.is_dir() { 0o755 } else { 0o644 });
    }
    let _ = as_user(&root, 1001, &["inspect", "t1"]).is(0, "ok");
    let _ = as_user(&root, 1001, &["stop", "t1"]).is(65, "root-not-yours");
    drop(unchanged);
    // Where the config trusts the owner, others write too; a trust that is malformed is none.
    let config = |trust: &str| {
        let config = format!(r#"{{"kind":"lychgate","version":1,"trustUid":{trust}}}"#);
        std::fs::write(root.path().join("config.json"), config).unwrap();
    };
    config("[7, 1000]");
    let _ = json(&root, &["stop", "t1"]).is(0, "already-stopping");
    for wrong in ["\"1000\"", "null", "{}", "[\"1000\"]", "-1000", "1000.5", "true", "[[1000]]"] {
        config(wrong);
        let _ = json(&root, &["stop", "t1"]).is(65, "root-not-yours");
    }
}

#[test]
fn without_permission_nothing_is_taken_for_missing() {
    let root = TestRoot::new();
    let family = Family::new(&root).reported().settled().moved_on();
    set_mode(root.scratch(), 0o755);
    own(&root, 1000);
    let claim = ["claim-retire", "t1", "--attempt", &family.child.attempt, "--parent", "pa"];
    let claim = [claim.as_slice(), &super::STEP, &["--mode", "retire-reported"]].concat();
    let places: [(&str, &[i32]); 8] = [
        ("", &[74]),
        ("config.json", &[74]),
        ("secret", &[74]),
        ("tasks", &[74]),
        ("tasks/t1", &[74]),
        ("tasks/t1/row.json", &[74]),
        ("sessions", &[11]),
        ("sessions/pa/subagent-reports/t1", &[11]),
    ];
    for (place, exits) in places {
        let path = root.path().join(place);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        set_mode(&path, 0);
        let unchanged = Unchanged::root(&root);
        let raw = as_user(&root, 1000, &claim);
        assert!(exits.contains(&raw.exit), "{place}: {}", raw.describe());
        let seen = as_user(&root, 1000, &["inspect", "t1"]);
        assert!(seen.exit == 74 || seen.json()["outcome"] != "terminal-no-report", "{}", seen.describe());
        assert_ne!(seen.json()["reasonCode"], "no-task-record", "{place}: {}", seen.describe());
        let stopped = as_user(&root, 1000, &["stop", "nobody"]);
        assert!([10, 74].contains(&stopped.exit), "{place}: {}", stopped.describe());
        unchanged.holds(place);
        set_mode(&path, mode);
    }
    let _ = as_user(&root, 1000, &claim).is(0, "claimed");
}

/// A folder that may be looked at and not written, and one that may not be made.
#[test]
fn a_root_that_cannot_be_made_or_written_is_an_error_before_any_id() {
    let root = TestRoot::new();
    set_mode(root.scratch(), 0o755);
    let unchanged = Unchanged::of(root.scratch());
    let _ = as_user(&root, 1000, RESERVE).is(74, "io");
    unchanged.holds("nothing was made");
    let task = root.reserve("t1");
    own(&root, 1000);
    set_mode(&root.path().join("tasks"), 0o500);
    set_mode(&root.path().join("tasks/t1"), 0o500);
    set_mode(&root.path().join("sessions"), 0o500);
    let unchanged = Unchanged::root(&root);
    for line in [RESERVE, &["stop", "t1"], &["rotate", "t1", "--as", "launch", "--token", &task.token]] {
        let raw = as_user(&root, 1000, line).is(74, "io");
        assert!(!raw.out().contains("att_"), "{}", raw.describe());
    }
    unchanged.holds("nothing was written");
}

#[test]
fn an_empty_or_absurd_root_is_an_error() {
    let root = TestRoot::new();
    let _ = root.reserve("t1");
    let long = format!("/{}", "a/".repeat(3000));
    let name = root.file(&"n".repeat(300));
    let unchanged = Unchanged::of(root.scratch());
    for place in [long.as_str(), &name, "/dev/null", "/dev/null/x", "/proc/self/fd/x", "/proc/1/lychgate"] {
        for line in [RESERVE, &["inspect", "t1"], &["stop", "t1"], &["inspect"]] {
            let raw = at(&root, place, line);
            assert!([0, 10, 65, 74].contains(&raw.exit), "{}", raw.describe());
            assert!(line != RESERVE || raw.exit >= 65, "{}", raw.describe());
        }
    }
    let _ = json(&root, &["--root", "", "inspect"]).is(64, "usage");
    let _ = sh(&root, r#""$LG" --json --root= inspect"#, &[]).is(64, "usage");
    unchanged.holds("nothing was made");
}
