//! `--help`: every command shows an example, and the examples work.

use crate::common::{Outcome, TestRoot};
use crate::owners::alive;
use crate::sh::script;

const VERBS: [&str; 9] =
    ["reserve", "rotate", "admit", "stop", "settle", "report", "claim-retire", "inspect", "recover"];

/// The help of a command, as wide as a terminal usually is.
fn help(root: &TestRoot, verb: &str) -> Outcome {
    let args: Vec<&str> = verb.split_whitespace().chain(["--help"]).collect();
    root.run(&args)
}

/// The commands under a heading of a help text.
fn example(help: &str, heading: &str) -> String {
    let text = help.split_once(heading).unwrap_or_else(|| panic!("no `{heading}` in {help}")).1;
    let lines: Vec<&str> = text.lines().skip(1).take_while(|line| line.starts_with("  ")).collect();
    lines.join("\n")
}

#[test]
fn every_command_shows_an_example_that_can_be_typed() {
    let root = TestRoot::new();
    for verb in VERBS {
        let help = help(&root, verb);
        assert_eq!((help.exit, help.stderr.as_str()), (0, ""));
        assert!(help.stdout.contains("Exit codes:\n"), "{verb}");
        let example = example(&help.stdout, "Example:");
        assert!(example.starts_with(&format!("  lychgate {verb} ")), "{verb}: {example}");
        let pid = alive();
        let typed = example.replace("4242", &pid).replace("--wait 10s", "--wait 0");
        std::fs::write(root.file("report.md"), "done").unwrap();
        let out = script(&root, &format!("set +e\n{typed}"));
        assert!(matches!(out.exit, 0 | 10 | 12), "not even understood: {typed}{out}");
    }
}

#[test]
fn no_example_is_broken_by_the_width_of_a_terminal() {
    let root = TestRoot::new();
    for verb in VERBS.iter().chain([&""]) {
        let help = help(&root, verb).stdout;
        let heading = if verb.is_empty() { "One task from start to end:" } else { "Example:" };
        let example = example(&help, heading);
        let joined = example.replace("\\\n", "");
        for line in joined.lines() {
            assert!(line.contains("lychgate"), "`{line}` is the rest of a line: {example}");
        }
        // The usage line is not broken, so that it can be read as one.
        for line in help.lines().filter(|line| !line.starts_with("Usage:")) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn the_task_of_the_help_goes_from_start_to_end() {
    let root = TestRoot::new();
    std::fs::write(root.file("report.md"), "fixed").unwrap();
    let task = example(&help(&root, "").stdout, "One task from start to end:");
    let out = script(&root, &task);
    assert_eq!((out.exit, out.stderr.as_str()), (0, ""), "{out}");
    let inspected = root.json(&["inspect", "fix-1"]);
    assert_eq!(
        (inspected.get("outcome"), inspected.get("phase")),
        ("reported".to_owned(), "settled".to_owned())
    );
}

#[test]
fn help_needs_no_root_and_makes_none() {
    let root = TestRoot::new();
    for verb in VERBS {
        let mut command = root.command(&[verb, "-h"]);
        command.env_remove("LYCHGATE_ROOT").env_remove("HOME");
        assert_eq!(root.finish(command.spawn().unwrap()).exit, 0, "{verb}");
    }
    assert_eq!(root.run(&["--version"]).exit, 0);
    assert_eq!(root.tree(), "");
}

#[test]
fn the_help_names_every_code_its_command_refuses_with() {
    let root = TestRoot::new();
    for (verb, codes) in [
        ("reserve", &["task-exists", "stale-nonce", "claim-spent", "not-claimed", "ancestor-stopped"][..]),
        (
            "rotate",
            &[
                "stale-launch",
                "stale-attempt",
                "stale-epoch",
                "not-queued",
                "not-interrupted",
                "not-reported",
                "not-running",
                "owner-alive",
                "owner-unknown",
                "not-owner",
                "retired",
                "ancestor-stopped",
            ],
        ),
        (
            "admit",
            &[
                "stale-attempt",
                "attempt-closing",
                "attempt-settled",
                "attempt-live",
                "ancestor-stopped",
                "not-launched",
                "already-admitted",
                "turn-ended",
                "no-such-send",
                "not-owner",
                "unowned-send-used",
            ],
        ),
        ("stop", &["no-task-record", "stale-attempt"]),
    ] {
        let help = help(&root, verb).stdout;
        for code in codes {
            assert!(help.contains(code), "{verb}: {code}");
        }
    }
}
