//! What is refused before any rule is asked: sessions that there are not, roots of others, damaged records.

use std::os::unix::fs::chown;

use super::{Session, todo_list};
use crate::common::TestRoot;
use crate::kit::untouched;

const TICKET: &str = "tkt_0123456789abcdef";

/// Every call on a session but the one that opens it.
fn calls() -> Vec<Vec<&'static str>> {
    let lines = [
        "session close s",
        "session restore s --begin",
        "session plan s on",
        "session suspend s --cause x",
        "session relocate s --begin --to .",
        "session relocate s --poll",
        "prompt submit s",
        "prompt start s p",
        "prompt finish s p --as completed",
        "prompt remove s p",
        "claim s --prompt p",
        "claim s",
        "claim s --ticket tkt_0123456789abcdef --as sent",
        "claim s --ticket tkt_0123456789abcdef --stage x",
        "release s --prompt prm_0123456789abcdef",
        "say s",
        "drain s",
        "drain s --ack m",
        "todo s",
        "end-turn s",
        "background s start b",
        "background s mark b",
        "notify s put --task b",
        "notify s take",
        "notify s ack n",
        "cron s put --task c",
        "cron s take",
        "gaps s",
        "inspect --session s",
    ];
    lines.iter().map(|line| line.split(' ').collect()).collect()
}

fn run(root: &TestRoot, args: &[&str]) -> crate::common::Outcome {
    root.json_with_stdin(args, todo_list(&["pending"]).as_bytes())
}

#[test]
fn a_session_that_there_is_not_is_refused_without_a_trace() {
    let root = TestRoot::new();
    let refused = |place: &str| {
        for args in calls() {
            let out = run(&root, &args);
            let is_claim = args[0] == "claim" && !args.contains(&"--ticket");
            let code = if is_claim { "unavailable" } else { "no-session" };
            let out = out.is(10, code);
            assert_eq!(out.get("sessionId"), "s", "{place}: {out}");
            if is_claim {
                let json = out.json();
                assert_eq!((&json["claimed"], &json["hasQueuedPrompt"]), (&false.into(), &false.into()));
                assert_eq!(json["reason"], "no-session");
            }
        }
    };
    refused("no root");
    assert!(!root.path().exists(), "O10");
    let _ = Session::open(&root, "other");
    let before = untouched(&root);
    refused("no session");
    assert_eq!(untouched(&root), before, "O10");
}

#[test]
fn a_root_of_somebody_else_is_read_and_not_written() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    chown(root.path(), Some(4242), None).unwrap();
    let before = untouched(&root);
    for args in calls().iter().filter(|args| args[0] != "inspect") {
        let _ = run(&root, args).is(65, "root-not-yours");
    }
    let _ = s.session("open", &[]).is(65, "root-not-yours");
    assert_eq!(untouched(&root), before);
    let _ = root.json(&["inspect", "--session", "s"]).is(0, "ok");
}

#[test]
fn a_damaged_record_is_refused_and_left_as_it_is() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let path = root.path().join("sessions/s/guard/session.json");
    let good = std::fs::read_to_string(&path).unwrap();
    for bad in [good.replace("\"guard\":true", "\"guard\":false"), String::new()] {
        std::fs::write(&path, &bad).unwrap();
        for args in calls() {
            let _ = run(&root, &args).is(65, "session-unreadable");
        }
        let _ = s.session("open", &["--guard"]).is(65, "session-unreadable");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), bad);
    }
}

#[test]
fn a_folder_that_is_something_elses_is_left_alone() {
    let root = TestRoot::new();
    std::fs::create_dir(root.path()).unwrap();
    std::fs::write(root.path().join("notes"), "mine").unwrap();
    let before = root.bytes();
    let _ = root.json(&["session", "open", "s"]).is(65, "foreign-root");
    let _ = root.json(&["claim", "s", "--ticket", TICKET, "--as", "sent"]).is(65, "foreign-root");
    assert_eq!(root.bytes(), before);
}
