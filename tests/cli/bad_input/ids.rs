//! Names that want out of the root, into each other, or into the command line.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::{Unchanged, call, json, json_with_stdin, text, tree};
use crate::common::TestRoot;

/// Names that are strange and fine. No two of them are the same task.
fn fine() -> Vec<String> {
    let mut names: Vec<String> = [
        ".",
        "..",
        "...",
        "../..",
        "/",
        "//",
        "/etc/passwd",
        "../../../etc",
        "a/b",
        "a%2Fb",
        "a%252Fb",
        "%",
        "%%",
        "%2E",
        "%2E%2E",
        "%~",
        ".hidden",
        ".lych-x",
        ".lych-part-x",
        "-",
        "--",
        "-x",
        "--json",
        "--root=/",
        "a.b",
        "a:b",
        "a_b",
        "A.B",
        "a b",
        " ",
        "  ",
        " a",
        "a ",
        "a\\b",
        "~",
        "$HOME",
        "`id`",
        "$(id)",
        "'",
        "\"",
        "''",
        "*",
        "?",
        "[a]",
        "{a,b}",
        ";",
        "&",
        "|",
        "<",
        ">",
        "#",
        "!",
        "con",
        "nul",
        "row.json",
        "late",
        "secret",
        "config.json",
        "tasks",
        "sessions",
        "subagent-reports",
        "abc",
        "ABC",
        "aBc",
        "\u{e9}",
        "e\u{301}",
        "\u{c9}",
        "\u{fffd}",
        "\u{feff}",
        "\u{200b}",
        "\u{202e}abc",
        "\u{2066}x\u{2069}",
        "\u{1f600}",
        "null",
        "true",
        "0",
        "att_0123456789abcdef",
    ]
    .map(str::to_owned)
    .to_vec();
    names.extend(["/", ".", "%", "-", "a", " "].map(|text| text.repeat(128)));
    names.push(format!("{}a", "/".repeat(127)));
    names.push(format!("{}b", "/".repeat(127)));
    names.push("\u{6f22}".repeat(42));
    names.push(format!("{}ab", "\u{6f22}".repeat(42)));
    names.push("\u{1f600}".repeat(32));
    names
}

/// Names that are none.
fn refused() -> Vec<String> {
    let mut names: Vec<String> =
        ["", "\n", "a\nb", "\t", "\r", "a\u{1b}[31mb", "\u{7f}", "\u{1}", "a\n"].map(str::to_owned).to_vec();
    names.extend(["\u{80}", "\u{85}", "a\u{9b}31m", "\u{9f}"].map(str::to_owned));
    names.push("a".repeat(129));
    names.push("/".repeat(129));
    names.push("\u{6f22}".repeat(43));
    names.push(format!("{}\u{e9}", "a".repeat(127)));
    names.push("x".repeat(100_000));
    names
}

/// Everything outside the root, which no name may ever reach.
fn outside(root: &TestRoot) -> Unchanged {
    std::fs::create_dir_all(root.scratch().join("etc")).unwrap();
    std::fs::write(root.scratch().join("etc/passwd"), "kept").unwrap();
    Unchanged::of(&root.scratch().join("etc"))
}

#[test]
fn strange_names_work_from_end_to_end_and_never_meet() {
    let root = TestRoot::new();
    let _ = root.reserve("first");
    let outside = outside(&root);
    let names = fine();
    let mut attempts = HashSet::new();
    for name in &names {
        let out = json(&root, &["reserve", "--parent=ws", "--", name]).is(0, "reserved");
        assert_eq!(&out.get("taskId"), name, "JSON carries it exactly");
        assert!(attempts.insert(out.get("attemptId")));
    }
    for name in &names {
        let taken = json(&root, &["reserve", "--parent=ws", "--", name]).is(10, "task-exists");
        assert_eq!(&taken.get("taskId"), name);
    }
    let all = json(&root, &["inspect"]).is(0, "ok").json();
    let seen: HashSet<&str> =
        all["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap()).collect();
    assert_eq!(seen.len(), names.len() + 1);
    assert!(names.iter().all(|name| seen.contains(name.as_str())));
    outside.holds("no name leads out of the root");
    only_known_places(&root.path());
}

/// Nothing lies in the root but what the layout says, each folder one level below where it belongs.
fn only_known_places(root: &Path) {
    for path in tree(root).keys() {
        let below: Vec<&str> =
            path.strip_prefix(root).unwrap().iter().map(|part| part.to_str().unwrap()).collect();
        let known = match below.as_slice() {
            [] | ["tasks" | "sessions" | "config.json" | "secret"] => true,
            ["tasks" | "sessions", folder] => !folder.starts_with('.'),
            ["tasks", _, file] => *file == "row.json",
            ["sessions", _, "subagent-reports" | "subagent-attempt-settlements", rest @ ..] => {
                rest.len() <= 2 && rest.last().is_none_or(|file| !file.starts_with('.'))
            }
            _ => false,
        };
        assert!(known, "{}", path.display());
    }
}

/// The whole life of a task under one name, with the same name as its owner, run, step, hash and request.
fn whole_life(root: &TestRoot, name: &str) {
    let option = |option: &str| format!("--{option}={name}");
    let ws = format!("ws of {}", name.chars().take(8).collect::<String>());
    let place = [option("run"), option("step"), option("input-hash"), option("owner")];
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    let parent = format!("--parent={ws}");
    let request = option("request-id");
    let reserve = [&["reserve", &parent, &request], place.as_slice(), &["--", name]].concat();
    let reserved = json(root, &reserve).is(0, "reserved");
    assert_eq!(reserved.get("requestId"), name);
    assert_eq!(json(root, &reserve).is(0, "reserved").stdout, reserved.stdout, "the repeat answers the same");
    let (attempt, token) = (reserved.get("attemptId"), reserved.get("token"));
    let token = format!("--token={token}");
    let _ = json(root, &["rotate", "--as=launch", &token, "--", name]).is(0, "launched");
    let admit = ["admit", "--attempt", &attempt, "--start", &token, &option("label"), "--", name];
    let turn = json(root, &admit).is(0, "admitted").get("turnId");
    let report = ["report", "--attempt", &attempt, &token, &option("title"), "--", name];
    let _ = json_with_stdin(root, &report, name.as_bytes()).either(&["report-accepted", "report-empty"]);
    let _ = json(root, &["stop", &option("reason"), &option("failure"), &option("cleanup"), "--", name])
        .either(&["stopping"]);
    let inspected = json(root, &["inspect", "--explain", "--history", "--", name]).is(0, "ok").json();
    assert_eq!(inspected["owner"]["name"], name);
    assert_eq!(inspected["turns"][0]["label"], name);
    assert_eq!(inspected["closed"]["reason"], name);
    assert_eq!(inspected["closed"]["failure"], name);
    assert_eq!(inspected["workflowTask"]["stepId"], name);
    let cleanup = inspected["owed"].as_array().unwrap().iter().find(|owed| owed["cleanupId"].is_string());
    assert_eq!(cleanup.unwrap()["name"], name);
    let cleanup = cleanup.unwrap()["cleanupId"].as_str().unwrap().to_owned();
    let _ = json(root, &["settle", "--cleanup", &cleanup, "--", name]).is(0, "cleanup-paid");
    let settled = json(root, &["settle", "--turn", &turn, &token, "--", name]).is(0, "turn-settled");
    assert_eq!(settled.get("receipt"), "execution-settled");
    let _ = json(root, &["recover", "--", name]).is(0, "recovered");
}

#[test]
fn a_whole_life_works_under_the_strangest_names() {
    let root = TestRoot::new();
    let _ = root.reserve("first");
    let outside = outside(&root);
    let chosen =
        ["..", ".", "-x", "a%2Fb", "a/b", "e\u{301}", "\u{e9}", "'; touch pwned; '", "\u{202e}x", " "];
    for name in chosen.map(str::to_owned).into_iter().chain(["/".repeat(128), "\u{6f22}".repeat(42)]) {
        whole_life(&root, &name);
    }
    outside.holds("no name leads out of the root");
    only_known_places(&root.path());
}

/// The suggested commands of a strange task, typed into a shell as they are printed, are about that very task.
#[test]
fn a_suggested_command_can_be_typed_as_it_stands() {
    let root = TestRoot::new();
    for name in ["-x", "--json", "it's", "a b", "$(touch pwned)", "*", "; exit 7", "-'"] {
        let _ = json(&root, &["reserve", "--parent=ws", "--", name]).is(0, "reserved");
        let next = json(&root, &["inspect", "--", name]).is(0, "ok").json()["next"].clone();
        let stop = next.as_array().unwrap().iter().find(|line| line.as_str().unwrap().contains("stop"));
        let line = stop.unwrap().as_str().unwrap();
        let typed = super::sh(&root, &format!("lychgate() {{ \"$LG\" --json \"$@\"; }}; {line}"), &[]);
        assert_eq!(typed.get("taskId"), name, "{line}\n{}", typed.describe());
        assert_eq!(typed.exit, 0, "{line}");
        let next = json(&root, &["inspect", "--", name]).is(0, "ok").json()["next"].clone();
        for line in next.as_array().unwrap().iter().map(|line| line.as_str().unwrap()) {
            let typed = super::sh(&root, &format!("lychgate() {{ \"$LG\" --json \"$@\"; }}; {line}"), &[]);
            assert_ne!(typed.code(), "usage", "{line}\n{}", typed.describe());
        }
    }
    assert!(!root.scratch().join("pwned").exists());
}

#[test]
fn what_is_no_name_is_refused_wherever_a_name_is_asked_for() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    let unchanged = Unchanged::root(&root);
    for (index, bad) in refused().iter().enumerate() {
        let every = places(bad, &task.attempt);
        // Every place sees the first bad name, and every bad name sees some places.
        let some = every.iter().enumerate().filter(|(place, _)| index == 0 || place % 7 == index % 7);
        for (_, line) in some {
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            let _ = json(&root, &line).is(64, "usage");
        }
        let told = text(&root, &["inspect", "--", bad]).exits(64);
        assert!(told.err().chars().all(|c| c == '\n' || !c.is_control()), "{}", told.describe());
        unchanged.holds("a refused name changes nothing");
    }
}

/// One bad name in every place that takes a name.
fn places(bad: &str, attempt: &str) -> Vec<Vec<String>> {
    let option = |name: &str| format!("--{name}={bad}");
    let s = |line: &[&str]| line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let claim = ["claim-retire", "--attempt", attempt];
    vec![
        s(&["reserve", "--parent=ws", "--", bad]),
        s(&["reserve", "n", &option("parent")]),
        s(&["reserve", "n", "--parent=ws", &option("ancestor")]),
        s(&["reserve", "n", "--parent=ws", &option("owner")]),
        s(&["reserve", "n", "--parent=ws", &option("run"), "--step=s", "--input-hash=h"]),
        s(&["reserve", "n", "--parent=ws", "--run=r", &option("step"), "--input-hash=h"]),
        s(&["reserve", "n", "--parent=ws", "--run=r", "--step=s", &option("input-hash")]),
        s(&["reserve", "n", &option("replaces"), "--nonce=x"]),
        s(&["reserve", "n", "--parent=ws", &option("request-id")]),
        s(&["rotate", "--as=launch", "--", bad]),
        s(&["rotate", "t1", "--as=launch", &option("owner")]),
        s(&["rotate", "t1", "--as=launch", &option("expect")]),
        s(&["admit", "--attempt", attempt, "--", bad]),
        s(&["admit", "t1", &option("attempt")]),
        s(&["admit", "t1", "--start", &option("send")]),
        s(&["stop", "--", bad]),
        s(&["stop", "t1", &option("attempt")]),
        s(&["stop", "t1", &option("cleanup")]),
        s(&["stop", "t1", "--", bad]),
        s(&["settle", "--", bad]),
        s(&["settle", "t1", &option("turn")]),
        s(&["settle", "t1", &option("cleanup")]),
        s(&["settle", "t1", "--as=refused", &option("send")]),
        s(&["report", "--show", "--", bad]),
        s(&["report", "t1", &option("attempt")]),
        [s(&claim), s(&["--run=r", "--step=s", "--input-hash=h", "--parent=ws", "--", bad])].concat(),
        [s(&claim), s(&["t1", &option("run"), "--step=s", "--input-hash=h", "--parent=ws"])].concat(),
        [s(&claim), s(&["t1", "--run=r", &option("step"), "--input-hash=h", "--parent=ws"])].concat(),
        [s(&claim), s(&["t1", "--run=r", "--step=s", &option("input-hash"), "--parent=ws"])].concat(),
        [s(&claim), s(&["t1", "--run=r", "--step=s", "--input-hash=h", &option("parent")])].concat(),
        s(&["inspect", "--", bad]),
        s(&["recover", "--", bad]),
    ]
}

#[test]
fn an_argument_that_is_not_utf8_is_refused_wherever_it_stands() {
    let root = TestRoot::new();
    let _ = root.reserve("t1");
    let unchanged = Unchanged::of(root.scratch());
    for bad in [b"\xff".as_slice(), b"a\xc0\x80", b"\xed\xa0\x80", b"t1\xfe", b"--reason=\xff", b"--r\xff"] {
        for verb in
            ["reserve", "rotate", "admit", "stop", "settle", "report", "claim-retire", "inspect", "recover"]
        {
            let mut command = root.command(&["--json", verb]);
            command.arg(OsStr::from_bytes(bad));
            let _ = call(command).is(64, "usage");
        }
    }
    for option in ["--root", "--title", "--token-file", "--file", "--token", "--request-id"] {
        let mut command = root.command(&["--json", "report", "t1", option]);
        command.arg(OsStr::from_bytes(b"x\xffy"));
        let _ = call(command).is(64, "usage");
    }
    unchanged.holds("nothing was made under another spelling");
}

/// The environment names the task, its attempt and its token. What cannot be read there is never taken for
/// something that is not set: the attempt may be all that keeps a late worker from ending its successor.
#[test]
fn an_environment_that_is_not_utf8_is_never_taken_for_none() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let unchanged = Unchanged::root(&root);
    let bad = OsStr::from_bytes(b"\xff");
    let run = |args: &[&str], name: &str, others: &[(&str, &str)]| {
        let mut command = root.command(&[&["--json"], args].concat());
        command.envs(others.iter().copied()).env(name, bad);
        call(command)
    };
    let me = [("LYCHGATE_TASK", "t1"), ("LYCHGATE_TOKEN", task.token.as_str())];
    for args in [["settle", "t1"], ["stop", "t1"], ["admit", "t1"], ["report", "t1"]] {
        let _ = run(&args, "LYCHGATE_ATTEMPT", &me).is(64, "usage");
    }
    for args in [["settle"], ["stop"], ["admit"], ["report"]] {
        let _ = run(&args, "LYCHGATE_TASK", &[]).is(64, "usage");
    }
    let _ = run(&["settle", "t1"], "LYCHGATE_TOKEN", &[("LYCHGATE_TASK", "t1")]).is(10, "not-owner");
    let _ = run(&["stop", "t1"], "LYCHGATE_ROOT", &[]).is(64, "usage");
    unchanged.holds("nothing was done on a guess");
}
