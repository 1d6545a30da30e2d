//! Killed anywhere is before or after, never between: what a hook and the guard's commands leave (O21, O24).

use std::io::Write as _;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{Agent, Heard};
use crate::actors::PATIENT;
use crate::common::TestRoot;
use crate::guard::Session;

/// A hook call that is held at a point.
fn held(agent: &Agent<'_>, event: &str, point: &str) -> (std::process::Child, tempfile::TempDir) {
    let folder = tempfile::Builder::new().prefix("seam").tempdir_in(agent.root.scratch()).unwrap();
    let mut command = agent.command();
    command.env("LYCHGATE_TEST_PAUSE", point).env("LYCHGATE_TEST_PAUSE_DIR", folder.path());
    let mut child = command.spawn().unwrap();
    let payload = agent.payload(event, &json!({ "prompt": "hello" })).to_string();
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    let reached = folder.path().join(format!("{point}.reached"));
    // A machine that is slow enough lets the hook give its worker up before it has come so far.
    while !reached.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    (child, folder)
}

/// The process that works on a hook call is killed at a point.
pub fn kill_the_worker(agent: &Agent<'_>, event: &str, point: &str) -> Heard {
    let (child, _folder) = held(agent, event, point);
    let listed = format!("/proc/{0}/task/{0}/children", child.id());
    for pid in std::fs::read_to_string(listed).unwrap_or_default().split_whitespace() {
        let _ = kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL);
    }
    let heard = Heard(agent.root.finish(child));
    assert_eq!(heard.0.exit, 0, "{}", heard.0);
    assert!(!heard.goes_on(), "{}", heard.0);
    heard
}

#[test]
fn a_worker_that_is_killed_leaves_the_old_state_or_the_new_one_and_says_nothing() {
    for (point, charged) in [("locked-session", 0), ("before-rename", 0), ("after-rename", 1)] {
        let root = TestRoot::new();
        let agent = Agent::at_work(&root, "s");
        let s = agent.books();
        let before = s.record();
        let _ = kill_the_worker(&agent, "Stop", point);
        assert_eq!(agent.attempts(), charged, "{point}");
        if charged == 0 {
            assert_eq!(s.record(), before, "{point}");
        }
        // Whatever it left, the budget is one.
        assert_eq!(agent.stops(4) as u64, 2 - charged, "{point}");
    }
}

#[test]
fn a_persons_prompt_is_there_or_not_when_its_hook_is_killed_and_the_agent_sends_it_on() {
    for (point, known) in [("before-rename", false), ("after-rename", true)] {
        let root = TestRoot::new();
        let agent = Agent::at_work(&root, "s");
        let s = agent.books();
        agent.turn.set(2);
        let _ = kill_the_worker(&agent, "UserPromptSubmit", point);
        let prompts = s.record()["prompts"].as_array().unwrap().clone();
        assert_eq!(prompts.len(), 1, "{point}: {prompts:?}");
        assert_eq!(prompts[0]["alias"] == "turn-2", known, "{point}: {prompts:?}");
        // The turn of a prompt that is not known gets nothing; the next one is as ever.
        assert!(!agent.stop(), "{point}");
        agent.work();
        assert_eq!(agent.stops(3), 2, "{point}");
    }
}

#[test]
fn a_hook_that_its_agent_kills_grants_nothing_that_is_not_charged() {
    for point in ["before-rename", "after-rename"] {
        let root = TestRoot::new();
        let agent = Agent::at_work(&root, "s");
        let (mut child, folder) = held(&agent, "Stop", point);
        child.kill().unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(out.stdout.is_empty(), "{point}");
        // The one that works goes on to its end, and nobody hears it.
        std::fs::write(folder.path().join(format!("{point}.go")), b"").unwrap();
        let _ = agent.books().call("drain", &PATIENT).is(0, "drained");
        let charged = agent.attempts();
        assert!(charged <= 1, "{point}");
        assert_eq!(agent.stops(4) as u64, 2 - charged, "{point}");
    }
}

#[test]
fn a_command_of_the_guard_that_is_killed_has_happened_or_not_and_its_repeat_comes_to_one() {
    let calls: [(&str, &[&str]); 7] = [
        ("open", &["session", "open", "fresh", "--guard"]),
        ("submit", &["prompt", "submit", "s", "--alias", "p2"]),
        ("claim", &["claim", "s", "--prompt", "p1"]),
        ("suspend", &["session", "suspend", "s", "--cause", "enough"]),
        ("sent", &["claim", "s", "--as", "sent", "--ticket"]),
        ("end-turn", &["end-turn", "s"]),
        ("yield", &["end-turn", "s"]),
    ];
    for (what, args) in calls {
        for point in ["before-rename", "after-rename"] {
            let root = TestRoot::new();
            let (s, p1) = Session::at_work(&root, "s");
            let mut args = args.to_vec();
            let ticket = if what == "sent" { s.ticket(&p1) } else { String::new() };
            if what == "sent" {
                args.push(&ticket);
            }
            if what == "yield" {
                let _ = s.say("m1", "mind the tests").is(0, "said");
                let _ = s.submit("p2");
            }
            let id = ["--request-id", "the-call"];
            let call = [&args[..], &id].concat();
            let before = if what == "open" { serde_json::Value::Null } else { s.meaning() };
            root.park(&call, point).kill();
            let happened = point == "after-rename";
            if what == "open" {
                let known = root.json(&["inspect", "--session", "fresh"]).exit == 0;
                assert_eq!(known, happened, "{what} {point}");
            } else {
                assert_eq!(s.meaning() != before, happened, "{what} {point}");
            }
            if what == "yield" {
                let record = s.record();
                let [inbox, kept] = ["inbox", "kept"].map(|place| record[place].as_array().unwrap().len());
                assert_eq!((inbox, kept), if happened { (0, 1) } else { (1, 0) }, "O24, {point}");
            }
            let repeat = root.json(&call);
            assert!([0, 10].contains(&repeat.exit), "{what} {point}: {repeat}");
            let settled = if what == "open" { serde_json::Value::Null } else { s.meaning() };
            let again = root.json(&call);
            // What authorises an act is given once. Who was killed before they were told never started.
            if happened && ["claim", "end-turn"].contains(&what) {
                assert_eq!(repeat.code(), "already-granted", "{what} {point}");
            }
            assert!(again.code() == repeat.code() || again.code() == "already-granted", "{what}: {again}");
            if what != "open" {
                assert_eq!(s.meaning(), settled, "{what} {point}");
            }
        }
    }
}
