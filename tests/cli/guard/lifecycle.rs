//! A session's life: opened, closed, restored, suspended, moved.

use super::{Session, told};
use crate::common::TestRoot;
use crate::kit::Process;

#[test]
fn a_session_is_opened_closed_and_opened_as_another_generation() {
    let root = TestRoot::new();
    let s = Session { root: &root, id: "s" };
    let open = s.session("open", &["--guard", "--cwd", "."]).is(0, "opened");
    insta::assert_snapshot!(told(&open), @r#"0 {"ok":true,"command":"session","code":"opened","generation":1,"state":"open","guard":true,"cwd":"[DIR]","sessionId":"s","message":"session `s` is open"}"#);
    assert_eq!(
        root.tree(),
        "config.json\nsecret\nsessions/\nsessions/s/\nsessions/s/guard/\nsessions/s/guard/session.json\ntasks/"
    );
    let before = root.bytes();
    let _ = s.session("open", &[]).is(0, "already-open");
    assert_eq!(root.bytes(), before);
    insta::assert_snapshot!(told(&s.session("close", &[]).is(0, "closed")), @r#"0 {"ok":true,"command":"session","code":"closed","generation":1,"state":"closed","guard":true,"cwd":"[DIR]","queuedPrompts":0,"keptTexts":0,"sessionId":"s","message":"session `s` is closed"}"#);
    let _ = s.session("close", &[]).is(0, "already-closed");
    let again = s.session("open", &["--guard"]).is(0, "opened");
    assert_eq!(again.get("generation"), "2", "O65");
    assert_eq!(s.cause(), "closed", "O46: the suspension stands");
}

#[test]
fn a_closed_session_refuses_late_results() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let ticket = s.ticket(&p1);
    let _ = s.session("close", &[]).is(0, "closed");
    let late = s.end(&ticket, "sent").is(10, "ticket-void");
    assert_eq!(late.get("reason"), "closed", "O64: {late}");
    for out in [
        s.todo(&["pending"]),
        s.prompt("submit", &[]),
        s.prompt("start", &["p1"]),
        s.call("release", &["--prompt", &p1]),
        s.session("plan", &["on"]),
        s.session("suspend", &["--cause", "x"]),
        s.session("relocate", &["--begin", "--to", "."]),
        s.call("background", &["start", "b"]),
        s.call("notify", &["put", "--task", "b"]),
        s.call("cron", &["put", "--task", "c"]),
    ] {
        let _ = out.is(10, "session-over");
    }
    assert_eq!(s.record()["endedPrompts"][0]["end"], "abandoned");
}

#[test]
fn nothing_automatic_runs_before_a_restore_is_complete() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let _ = s.call("background", &["start", "b1"]).is(0, "background-noted");
    let begun = s.session("restore", &["--begin"]).is(0, "restoring");
    assert_eq!(begun.get("generation"), "2", "O65");
    let _ = s.prompt("submit", &["--alias", "p2"]).is(12, "session-restoring");
    let _ = s.call("notify", &["put", "--task", "b1", "--id", "n1"]).is(0, "queued");
    assert_eq!(s.call("notify", &["take"]).is(10, "kept-back").get("reason"), "session-restoring", "O66");
    let _ = s.session("restore", &["--end"]).is(0, "restored");
    let _ = s.session("restore", &["--end"]).is(0, "already-open");
    let record = s.record();
    assert_eq!(record["chain"]["armed"], false, "O46");
    assert_eq!(record["chain"]["baseline"], serde_json::json!(["b1", "n1"]), "O66: it belongs to no chain");
    let _ = s.call("notify", &["take"]).is(0, "taken");
}

#[test]
fn a_person_who_says_stop_is_heard() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    insta::assert_snapshot!(told(&s.session("suspend", &["--cause", "enough for today"]).is(0, "suspended")), @r#"0 {"ok":true,"command":"session","code":"suspended","cause":"asked","note":"enough for today","since":"2026-01-01T00:00:04.000Z","seq":4,"sessionId":"s","message":"nothing automatic goes on until an ordinary prompt runs"}"#);
    assert_eq!(s.claim(&p1).is(10, "unavailable").get("reason"), "suspended");
    let again = s.session("suspend", &["--cause", "really"]).is(0, "suspended");
    assert_eq!(again.get("note"), "enough for today", "the first one stands");
}

#[test]
fn a_session_moves_when_everything_before_the_move_is_over() {
    let root = TestRoot::new();
    for name in ["a", "b"] {
        std::fs::create_dir(root.file(name)).unwrap();
    }
    std::os::unix::fs::symlink("b", root.file("link")).unwrap();
    let s = Session { root: &root, id: "s" };
    let _ = s.session("open", &["--guard", "--cwd", "a"]).is(0, "opened");
    let _ = s.submit("p1");
    let _ = s.submit("p2");
    let begun = s.session("relocate", &["--begin", "--to", "link"]).is(12, "relocating");
    insta::assert_snapshot!(told(&begun), @r#"12 {"ok":false,"command":"session","code":"relocating","from":"[DIR]/a","to":"[DIR]/b","blockers":[{"kind":"prompt","id":"prm_44ef219a1efd157c","state":"running"},{"kind":"prompt","id":"prm_6b60908f0b05dfa2","state":"queued"}],"sessionId":"s","message":"2 things that began before the move to `[DIR]/b` are not over","hint":"ask again with `session relocate --poll`, or give up with `--abort`"}"#);
    assert_eq!(s.cause(), "relocated", "O60");
    let _ = s.prompt("submit", &["--alias", "p3"]).is(12, "relocating");
    let _ = s.session("relocate", &["--commit"]).is(12, "relocating");
    let _ = s.finish("p1", "completed");
    let _ = s.session("relocate", &["--poll"]).is(12, "relocating");
    let _ = s.prompt("start", &["p2"]).is(0, "prompt-started");
    let _ = s.session("relocate", &["--poll"]).is(12, "relocating");
    let _ = s.finish("p2", "completed");
    let _ = s.session("relocate", &["--poll"]).is(0, "relocation-ready");
    let _ = s.session("relocate", &["--commit"]).is(0, "relocated");
    let record = s.record();
    assert!(record["cwd"].as_str().unwrap().ends_with("/b") && record["gate"].is_null(), "{record}");
    let _ = s.session("relocate", &["--commit"]).is(10, "no-relocation");
    let _ = s.submit("p3");
}

#[test]
fn a_target_that_is_no_folder_shuts_no_gate() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    std::fs::write(root.file("file"), "").unwrap();
    let before = root.bytes();
    for to in ["nowhere", "file", "file/below", ""] {
        let _ = s.session("relocate", &["--begin", "--to", to]).is(64, "usage");
    }
    assert_eq!(root.bytes(), before, "O58");
    let _ = s.claim(&p1).is(0, "granted");
}

#[test]
fn a_move_to_where_it_is_suspends_nothing() {
    let root = TestRoot::new();
    let s = Session { root: &root, id: "s" };
    let _ = s.session("open", &["--guard", "--cwd", "."]).is(0, "opened");
    let before = root.bytes();
    let _ = s.session("relocate", &["--begin", "--to", "./."]).is(0, "no-move");
    assert_eq!(root.bytes(), before, "O59");
}

#[test]
fn a_gate_is_always_given_up() {
    for how in ["abort", "time", "death"] {
        let root = TestRoot::new();
        let (s, _) = Session::at_work(&root, "s");
        let mut mover = Process::alive();
        std::fs::create_dir(root.file("b")).unwrap();
        let begin = ["--begin", "--to", "b", "--for", "30s", "--owner-pid", &mover.pid()];
        let _ = s.session("relocate", &begin).is(12, "relocating");
        match how {
            "abort" => drop(s.session("relocate", &["--abort"]).is(0, "relocation-aborted")),
            "time" => root.later(31_000),
            _ => mover.die(),
        }
        let _ = s.session("relocate", &["--poll"]).is(10, "no-relocation");
        let record = s.record();
        assert!(record["gate"].is_null(), "O61: {how}");
        assert_eq!(record["chain"]["suspended"]["cause"], "relocated", "O61: {how}");
    }
}

#[test]
fn two_calls_that_open_a_session_at_once_open_one() {
    let root = TestRoot::new();
    let _ = Session::open(&root, "another");
    let one = root.paused(&["session", "open", "s"], "locked-session");
    root.wait_reached("locked-session");
    // The folder is not there yet, so there is nothing to lock.
    let _ = root.json(&["session", "open", "s", "--guard"]).is(0, "opened");
    root.go("locked-session");
    let _ = root.finish(one).is(0, "already-open");
    let s = Session { root: &root, id: "s" };
    assert_eq!((&s.record()["guard"], &s.record()["generation"]), (&true.into(), &1.into()));
}
