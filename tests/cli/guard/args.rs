//! Calls that are wrong before anything is looked at, and the form for shells.

use std::process::Command;

use super::{Session, todo_list};
use crate::common::{BIN, TestRoot};

#[test]
fn a_call_that_contradicts_itself_is_a_usage_error_and_makes_nothing() {
    let root = TestRoot::new();
    let lines = [
        "session",
        "session open",
        "session restore s",
        "session restore s --begin --end",
        "session plan s",
        "session plan s maybe",
        "session suspend s",
        "session relocate s",
        "session relocate s --begin",
        "session relocate s --to .",
        "session relocate s --poll --to .",
        "session relocate s --begin --to . --poll",
        "session relocate s --poll --for 1s",
        "session relocate s --abort --owner-pid 1",
        "prompt submit s --kind hasty",
        "prompt finish s p",
        "prompt finish s p --as removed",
        "claim",
        "claim s --ticket tkt_0123456789abcdef",
        "claim s --ticket t --as sent",
        "claim s --as sent",
        "claim s --ticket tkt_0123456789abcdef --as lapsed",
        "claim s --ticket tkt_0123456789abcdef --as sent --stage x",
        "claim s --ticket tkt_0123456789abcdef --as sent --for 1s",
        "claim s --ticket tkt_0123456789abcdef --as sent --prompt p",
        "claim s --text-kept -",
        "claim s --for 0",
        "claim s --for 0ms",
        "claim s --for 1",
        "release s",
        "say s --kind guard",
        "drain s --again --failed",
        "drain s --ack m --again",
        "end-turn s --external maybe",
        "end-turn s --external block",
        "end-turn s --reason x",
        "background s",
        "background s start",
        "background s pause b",
        "background s end b --kind shell",
        "background s mark b --owner-pid 1",
        "background s start b --for 1s",
        "background s commit b",
        "background s start b --mark mrk_0123456789abcdef",
        "notify s put",
        "notify s ack",
        "notify s take n1",
        "notify s put n1 --task b",
        "notify s take --task b",
        "notify s ack n1 --owner-pid 1",
        "notify s put --task b --for 1s",
        "cron s put --wakeup",
        "cron s take --wakeup",
        "gaps s --ack nothing",
        "inspect --session",
    ];
    for line in lines {
        let args: Vec<&str> = line.split(' ').collect();
        let out = root.json(&args);
        assert_eq!((out.exit, out.code().as_str()), (64, "usage"), "{line}: {out}");
    }
    assert_eq!(root.tree(), "");
}

#[test]
fn an_empty_name_is_never_no_name() {
    let root = TestRoot::new();
    let (_, _) = Session::at_work(&root, "s");
    let before = root.bytes();
    for args in [
        &["claim", "s", "--prompt", ""][..],
        &["claim", ""],
        &["prompt", "start", "s", ""],
        &["prompt", "submit", "s", "--alias", ""],
        &["todo", "s", "--agent-id", ""],
        &["end-turn", "s", "--prompt", ""],
        &["end-turn", "s", "--external", "block", "--reason", " "],
        &["session", "suspend", "s", "--cause", ""],
        &["drain", "s", "--ack", ""],
    ] {
        let _ = root.json_with_stdin(args, todo_list(&[]).as_bytes()).is(64, "usage");
    }
    assert_eq!(root.bytes(), before, "O4, O14");
}

#[test]
fn a_session_may_be_called_like_an_act() {
    let root = TestRoot::new();
    for id in ["put", "start", "take", "open", "-x"] {
        let run = |args: &[&str]| root.run(&[&["--json"], args].concat());
        let _ = run(&["session", "open", "--", id]).is(0, "opened");
        let _ = run(&["background", "--kind", "shell", "--", id, "start", "b"]).is(0, "background-noted");
        let _ = run(&["notify", "--task", "b", "--", id, "put"]).is(0, "queued");
    }
    let _ = root.json(&["notify", "put", "put", "--task", "b"]).is(0, "queued");
}

/// What a script sees of a call: the variables that are left after it was evaluated.
fn evaluated(root: &TestRoot, call: &str, print: &str) -> String {
    let call = format!("'{BIN}' {call} --format sh");
    let script = format!("LYCHGATE_TICKET=stale\nout=$({call})\neval \"$out\"\nprintf %s {print}");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).env("LYCHGATE_ROOT", root.path());
    command.env("LYCHGATE_TEST_BOOT_ID", "boot-1").env("LYCHGATE_TEST_BOOT_MS", "9000");
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn a_script_reads_the_answer_from_variables() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let print = r#""$LYCHGATE_EXIT $LYCHGATE_CODE $LYCHGATE_CLAIMED $LYCHGATE_HAS_QUEUED_PROMPT ${LYCHGATE_TICKET-none} $LYCHGATE_PROMPT""#;
    let granted = evaluated(&root, &format!("claim s --prompt {p1}"), print);
    let ticket = s.record()["tickets"][0]["ticketId"].as_str().unwrap().to_owned();
    assert_eq!(granted, format!("0 granted true false {ticket} {p1}"));
    let _ = s.submit("p2");
    let queued = evaluated(&root, "claim s --prompt p1", print);
    assert_eq!(queued, format!("10 prompt-queued false true none {p1}"), "no stale ticket survives");
    let unknown =
        evaluated(&root, "claim nobody", r#""$LYCHGATE_CLAIMED $LYCHGATE_REASON $LYCHGATE_SESSION""#);
    assert_eq!(unknown, "false no-session nobody");
    let ended = evaluated(&root, "end-turn s", r#""$LYCHGATE_DECISION ${LYCHGATE_TICKET-none}""#);
    assert_eq!(ended, "yield none");
    let over = evaluated(
        &root,
        &format!("claim s --ticket {ticket} --as sent"),
        r#""$LYCHGATE_TICKET $LYCHGATE_END""#,
    );
    assert_eq!(over, format!("{ticket} sent"));
}

#[test]
fn fields_are_printed_raw() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let out = root.run(&["claim", "s", "--prompt", &p1, "--print", "claimed,hasQueuedPrompt,reason"]);
    assert_eq!((out.exit, out.stdout.as_str()), (0, "true\nfalse\n\n"));
    let _ = s.say("m1", "first\nsecond").is(0, "said");
    let out = root.run(&["end-turn", "s", "--print", "text"]);
    assert_eq!(out.stdout, "first\nsecond\n");
}
