//! Command lines that say nothing, too much, or two things at once. Every one is exit 64, in the form that was
//! asked for, and changes nothing.

use super::{Family, Unchanged, call, json, text};
use crate::common::TestRoot;

/// Words that a well-formed call of each verb begins with.
const VERBS: [&[&str]; 9] = [
    &["reserve", "n", "--parent=ws"],
    &["rotate", "t1", "--as=launch"],
    &["admit", "t1", "--attempt=att_0123456789abcdef"],
    &["stop", "t1"],
    &["settle", "t1"],
    &["report", "t1", "--show"],
    &[
        "claim-retire",
        "t1",
        "--attempt=att_0123456789abcdef",
        "--run=r",
        "--step=s",
        "--input-hash=h",
        "--parent=w",
    ],
    &["inspect", "t1"],
    &["recover", "t1"],
];

#[track_caller]
fn refused(root: &TestRoot, args: &[&str]) {
    let raw = json(root, args).is(64, "usage");
    let answer = raw.json();
    assert_eq!(answer["ok"], false);
    assert!(answer["hint"].is_string(), "{}", raw.describe());
}

#[test]
fn unknown_flags_and_stray_words_are_refused_by_every_verb() {
    let root = TestRoot::new();
    let _ = Family::new(&root);
    let unchanged = Unchanged::root(&root);
    for verb in VERBS {
        for more in [
            "--nonsense",
            "--nonsense=1",
            "-x",
            "-",
            "--=",
            "--parent-",
            "-rf",
            "--Json",
            "--json=yes",
            "--show-token=1",
            "--force",
            "--no-json",
            "\u{2014}json",
        ] {
            // A stray word is another task where several may be named.
            if ["-", "\u{2014}json"].contains(&more) && ["stop", "inspect", "recover"].contains(&verb[0]) {
                continue;
            }
            refused(&root, &[verb, &[more]].concat());
        }
        for option in ["--root", "--lock-wait", "--request-id", "--format", "--print"] {
            let raw = json(&root, &[verb, &[option]].concat());
            assert_eq!(raw.exit, 64, "{}", raw.describe());
        }
    }
    for line in [["reserve"], ["rotate"], ["admit"], ["stop"], ["settle"], ["report"], ["claim-retire"]] {
        refused(&root, &line);
    }
    for line in [
        vec![],
        vec!["help"],
        vec!["Reserve"],
        vec![""],
        vec!["reserv"],
        vec!["reserve", "reserve"],
        vec!["--", "reserve"],
        vec!["t1", "stop"],
    ] {
        refused(&root, &line);
    }
    unchanged.holds("a call that cannot be read does nothing");
}

#[test]
fn a_missing_value_is_never_taken_from_the_next_option() {
    let root = TestRoot::new();
    let _ = Family::new(&root);
    let unchanged = Unchanged::root(&root);
    let options: [(usize, &[&str]); 9] = [
        (
            0,
            &[
                "--owner",
                "--owner-pid",
                "--ancestor",
                "--run",
                "--step",
                "--input-hash",
                "--token-file",
                "--replaces",
                "--nonce",
            ],
        ),
        (1, &["--expect", "--owner", "--owner-pid", "--token", "--token-file", "--token-fd"]),
        (2, &["--send", "--label", "--token", "--token-file", "--token-fd"]),
        (3, &["--attempt", "--reason", "--failure", "--cleanup", "--wait", "--receipt"]),
        (4, &["--turn", "--send", "--as", "--cleanup", "--attempt", "--source", "--receipt", "--token"]),
        (5, &["--attempt", "--file", "--title", "--token"]),
        (6, &["--mode", "--token"]),
        (7, &["--expect", "--token"]),
        (8, &[]),
    ];
    for (verb, options) in options {
        for option in options {
            refused(&root, &[VERBS[verb], &[option]].concat());
            refused(&root, &[VERBS[verb], &[option, "--lock-wait=0"]].concat());
        }
    }
    unchanged.holds("no option was taken for a value");
}

#[test]
fn an_option_given_twice_is_refused() {
    let root = TestRoot::new();
    let _ = Family::new(&root);
    let unchanged = Unchanged::root(&root);
    for (index, verb) in VERBS.into_iter().enumerate() {
        for option in ["--lock-wait=0", "--request-id=r", "--root=root", "--format=json"] {
            let raw = call(root.command(&[verb, &[option, option, "--json"]].concat()));
            assert_eq!(raw.exit, 64, "{}", raw.describe());
        }
        for own in verb.iter().filter(|word| word.starts_with("--")) {
            let _ = (index, refused(&root, &[verb, &[own]].concat()));
        }
    }
    refused(&root, &["stop", "t1", "--tree", "--tree"]);
    refused(&root, &["stop", "t1", "--reason=a", "--reason=b"]);
    refused(&root, &["stop", "t1", "t1"]);
    refused(&root, &["inspect", "t1", "other", "t1"]);
    refused(&root, &["recover", "t1", "t1"]);
    unchanged.holds("nothing was guessed");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let (attempt, turn) = (format!("--attempt={}", family.child.attempt), format!("--turn={}", family.turn));
    let send = format!("--send=snd_{}0001", family.child.attempt.trim_start_matches("att_"));
    let lines: [&[&str]; 33] = [
        &["reserve", "--parent=ws"],
        &["reserve", "n"],
        &["reserve", "n", "m", "--parent=ws"],
        &["reserve", "n", "--parent=ws", "--run=r"],
        &["reserve", "n", "--parent=ws", "--run=r", "--step=s"],
        &["reserve", "n", "--parent=ws", "--step=s"],
        &["reserve", "n", "--parent=ws", "--input-hash=h"],
        &["reserve", "n", "--replaces=t1"],
        &["reserve", "n", "--nonce=x", "--parent=ws"],
        &["reserve", "n", "--replaces=t1", "--nonce=x", "--run=r", "--step=s", "--input-hash=h"],
        &["reserve", "n", "--replaces=t1", "--nonce=x", "--parent=other"],
        &["reserve", "n", "--replaces=t1", "--nonce=x", "--ancestor=other"],
        &["reserve", "n", "--parent=t1", "--ancestor=wrong"],
        &["rotate", "t1"],
        &["rotate", "t1", "--as=launch", "--token=x", "--token-file=f"],
        &["admit", "t1"],
        &["admit", "t1", "--queued"],
        &["admit", "t1", &attempt, &send, "--start"],
        &["admit", "t1", &send],
        &["admit", "t1", &attempt, "--queued", "--start"],
        &["admit", "t1", &attempt, "--label=x"],
        &["admit", "t1", &attempt, "--token=x", "--token-fd=0"],
        &["stop", "t1", "other", &attempt],
        &["stop", "t1", "--owner-pid=1"],
        &["stop", "t1", "--cleanup=a", "--owner-pid=1", "--owner-pid=2"],
        &["settle", "t1", &turn, &send, "--as=refused"],
        &["settle", "t1", "--close"],
        &["settle", "t1", &send],
        &["settle", "t1", "--as=refused"],
        &["report", "t1"],
        &["report", "t1", "--show", "--file=f"],
        &["report", "t1", "--late"],
        &["recover", "--unproven"],
    ];
    let unchanged = Unchanged::root(&root);
    for line in lines {
        refused(&root, line);
    }
    for line in [["--json", "--format=text", "inspect"], ["--format=sh", "--print=code", "inspect"]] {
        let _ = call(root.command(&line)).exits(64);
        let _ = call(root.command(&[line[2], line[0], line[1]])).exits(64);
    }
    unchanged.holds("nothing was guessed");
}

#[test]
fn values_of_the_wrong_form_are_refused() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let attempt = family.child.attempt.as_str();
    let unchanged = Unchanged::root(&root);
    for bad in [
        "",
        "-1s",
        "+1s",
        "1h",
        "1.5s",
        "1",
        "s",
        "ms",
        "1 s",
        " 1s",
        "1s ",
        "1e3s",
        "0x1s",
        "infinity",
        "1S",
        "1m1s",
        "31536001s",
        "18446744073709551616ms",
        "99999999999999999999999999s",
        "\u{663}s",
        "NaN",
        "1\u{b5}s",
        "-0",
        "00",
    ] {
        refused(&root, &["inspect", &format!("--lock-wait={bad}")]);
        refused(&root, &["stop", "t1", &format!("--wait={bad}")]);
    }
    for bad in ["", "0", "-1", "1.0", "4294967296", "99999999999", "self", "0x1", " 1", "1\u{a0}"] {
        refused(&root, &["reserve", "n", "--parent=ws", &format!("--owner-pid={bad}")]);
        refused(&root, &["stop", "t1", "--cleanup=c", &format!("--owner-pid={bad}")]);
    }
    let upper = attempt.to_uppercase();
    let longer = format!("{attempt}0");
    for bad in [
        "",
        "att_",
        "att_0123456789abcde",
        "att_0123456789ABCDEF",
        "0123456789abcdef",
        &upper,
        &longer,
        " att_0123456789abcdef",
    ] {
        refused(&root, &["admit", "t1", &format!("--attempt={bad}")]);
        refused(&root, &["stop", "t1", &format!("--attempt={bad}")]);
        refused(&root, &["rotate", "t1", "--as=launch", &format!("--expect={bad}")]);
        refused(&root, &["settle", "t1", &format!("--turn={bad}")]);
        refused(&root, &["settle", "t1", &format!("--cleanup={bad}")]);
        refused(&root, &["admit", "t1", "--start", &format!("--send={bad}")]);
    }
    for bad in ["@", "@1", "@-1", "@+1", "@1.0", "@18446744073709551616", "@0@0", "@ 1"] {
        refused(&root, &["rotate", "t1", "--as=launch", &format!("--expect={attempt}{bad}x")]);
    }
    for (verb, option) in
        [(1, "--as"), (4, "--as"), (4, "--source"), (4, "--receipt"), (6, "--mode"), (7, "--expect")]
    {
        for bad in ["", "nonsense", "LAUNCH", "launch,reawaken", " "] {
            refused(
                &root,
                &[&VERBS[verb][..2.min(VERBS[verb].len())], &[&format!("{option}={bad}")]].concat(),
            );
        }
    }
    unchanged.holds("nothing was guessed");
}

#[test]
fn ids_of_another_task_or_of_nothing_are_refused_by_the_rules() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let (attempt, token) = (family.child.attempt.as_str(), family.child.token.as_str());
    let digits = attempt.trim_start_matches("att_");
    let other = family.other.attempt.as_str();
    let unchanged = Unchanged::root(&root);
    for tail in ["0002", "ffff", "ffffffffffffffff", "0000"] {
        let (turn, send) = (format!("--turn=turn_{digits}{tail}"), format!("--send=snd_{digits}{tail}"));
        let _ = json(&root, &["settle", "t1", &turn, "--token", token]).either(&["no-such-turn", "usage"]);
        let _ = json(&root, &["admit", "t1", &send, "--start", "--token", token])
            .either(&["no-such-send", "usage"]);
        let _ = json(&root, &["settle", "t1", &send, "--as=refused", "--token", token])
            .either(&["no-such-send", "usage"]);
    }
    let _ = json(&root, &["settle", "t1", "--cleanup", &format!("cln_{}", "0".repeat(32))])
        .is(10, "no-such-cleanup");
    let _ = json(&root, &["admit", "other", "--attempt", attempt, "--start", "--token", token])
        .is(10, "stale-attempt");
    let _ = json(&root, &["admit", "t1", "--attempt", other, "--start", "--token", token])
        .is(10, "stale-attempt");
    let _ =
        json(&root, &["settle", "other", "--turn", &family.turn, "--token", token]).is(10, "no-such-turn");
    let _ = json(
        &root,
        &["rotate", "t1", "--as=reawaken", "--expect", &format!("{attempt}@18446744073709551615")],
    )
    .exits(10);
    let _ = json(&root, &["reserve", "n", "--parent=ws", "--owner-pid=4294967295"])
        .is(10, "owner-pid-unreadable");
    unchanged.holds("a refusal changes not one byte");
}

#[test]
fn arguments_of_any_length_are_answered() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let long = "x".repeat(100_000);
    let unchanged = Unchanged::root(&root);
    refused(&root, &[&long]);
    refused(&root, &["inspect", &format!("--{long}")]);
    refused(&root, &["inspect", &format!("--lock-wait={long}")]);
    refused(&root, &["settle", "t1", &format!("--turn=turn_{long}")]);
    let _ = call(root.command(&["inspect", &format!("--format={long}")])).exits(64);
    let _ = json(&root, &["inspect", "t1", &format!("--print={long}")]).exits(0);
    let _ = json(&root, &["--root", &long, "inspect"]).is(74, "io");
    let tasks: Vec<String> = (0..3000).map(|n| format!("nobody-{n}")).collect();
    let many: Vec<&str> = tasks.iter().map(String::as_str).collect();
    let _ = json(&root, &[&["inspect"], many.as_slice()].concat()).is(0, "ok");
    let _ = json(&root, &[&["stop"], many.as_slice()].concat()).is(10, "no-task-record");
    let (attempt, token) = (family.child.attempt.as_str(), family.child.token.as_str());
    let label = ["admit", "t1", "--attempt", attempt, "--start", "--token", token, "--label", &long];
    let _ = json(&root, &label).is(64, "usage");
    unchanged.holds("nothing was done");
    // The longest word of a person is kept, and the task goes on with it.
    let long = &long[..4096];
    let label = ["admit", "t1", "--attempt", attempt, "--start", "--token", token, "--label", long];
    let _ = json(&root, &label).is(0, "admitted");
    let _ = json(&root, &["stop", "t1", "--reason", long, "--failure", long]).is(0, "stopping");
    assert_eq!(json(&root, &["inspect", "t1"]).is(0, "ok").json()["closed"]["reason"], long);
    let _ = json(&root, &["settle", "t1", "--turn", &family.turn, "--token", token]).is(0, "turn-settled");
}

/// A usage error comes in the form that was asked for, wherever that was said.
#[test]
fn a_usage_error_has_the_form_that_was_asked_for() {
    let root = TestRoot::new();
    let _ = root.reserve("t1");
    for line in
        [["--json", "stop", "--nonsense"], ["stop", "--json", "--nonsense"], ["stop", "--nonsense", "--json"]]
    {
        let raw = call(root.command(&line)).is(64, "usage");
        assert!(raw.stderr.is_empty(), "{}", raw.describe());
        assert_eq!(raw.get("command"), "stop");
    }
    for line in [["--format=json", "stop"], ["--format=json", "--"]] {
        let _ = call(root.command(&line)).is(64, "usage");
    }
    let raw = call(root.command(&["--format", "sh", "stop", "--nonsense"])).exits(64);
    assert!(
        raw.out().contains("LYCHGATE_EXIT='64'\nLYCHGATE_CODE='usage'\n") && raw.stderr.is_empty(),
        "{}",
        raw.describe()
    );
    for line in [
        ["--format=yaml", "inspect"],
        ["--format=", "inspect"],
        ["--format=JSON", "inspect"],
        ["--nonsense", "inspect"],
    ] {
        let raw = text(&root, &line).exits(64);
        assert!(raw.stdout.is_empty() && raw.err().starts_with("lychgate"), "{}", raw.describe());
        assert_eq!(raw.err().lines().count(), 2, "one line says what, one what helps: {}", raw.describe());
    }
    // What only the command itself can see is a usage error in the same forms.
    let raw = call(root.command(&["--json", "admit", "t1"])).is(64, "usage");
    assert_eq!(raw.get("command"), "admit");
}

/// The environment is as much input as the arguments.
#[test]
fn a_strange_environment_is_no_reason_to_fail() {
    let root = TestRoot::new();
    let _ = root.reserve("t1");
    for columns in [
        "0",
        "1",
        "-1",
        "59",
        "65535",
        "65536",
        "100000",
        "18446744073709551615",
        "18446744073709551616",
        "x",
        "",
    ] {
        for args in
            [["inspect", "--format=text"], ["inspect", "--json"], ["inspect", "--help"], ["inspect", "t1"]]
        {
            let mut command = root.command(&args);
            command.env("COLUMNS", columns);
            let raw = call(command).exits(0);
            assert!(raw.stdout.len() < 10_000, "{columns}: {}", raw.describe());
        }
    }
    let mut command = root.command(&["--json", "inspect", "t1"]);
    command
        .env("NO_COLOR", "x")
        .env("TERM", "nonsense")
        .env("LANG", "xx")
        .env("TZ", "No/Where")
        .env("RUST_BACKTRACE", "full");
    let _ = call(command).is(0, "ok");
    let bad = [("LYCHGATE_TASK", "a\nb"), ("LYCHGATE_TASK", "")];
    for (name, value) in bad {
        for verb in ["admit", "settle", "stop", "report"] {
            let mut command = root.command(&["--json", verb]);
            command.env(name, value);
            let _ = call(command).is(64, "usage");
        }
    }
    for value in ["nonsense", "att_", " "] {
        let mut command = root.command(&["--json", "settle"]);
        command.env("LYCHGATE_TASK", "t1").env("LYCHGATE_ATTEMPT", value);
        let _ = call(command).is(64, "usage");
    }
}
