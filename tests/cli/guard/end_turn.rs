//! The end of a turn: may the agent stop, and if not, what is it told.

use super::{Session, told};
use crate::common::{Outcome, TestRoot};

fn end(s: &Session<'_>, more: &[&str]) -> Outcome {
    s.call("end-turn", more)
}

const BLOCK: [&str; 4] = ["--external", "block", "--reason", "the tests are red"];

#[test]
fn a_turn_with_unfinished_work_goes_on_twice_and_is_exhausted_once() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let first = end(&s, &[]).is(0, "continue");
    insta::assert_snapshot!(told(&first), @r#"0 {"ok":true,"command":"end-turn","code":"continue","decision":"continue","by":"guard","text":"Your to-do list is not finished: 1 item left. Go on without asking. If an item cannot be done, say why and take it off the list.","unfinishedCount":1,"ticket":"tkt_f689a3a85894f1ed","promptId":"prm_44ef219a1efd157c","attempt":1,"maxAttempts":2,"chain":3,"generation":1,"seq":4,"sessionId":"s","message":"continuation 1 of 2"}"#);
    let _ = s.end(&first.get("ticket"), "sent").is(0, "ticket-settled");
    let second = end(&s, &[]).is(0, "continue");
    assert!(second.get("text").contains("the last automatic continuation"), "O36: {second}");
    let _ = s.end(&second.get("ticket"), "sent").is(0, "ticket-settled");
    insta::assert_snapshot!(told(&end(&s, &[]).is(0, "exhausted")), @r#"0 {"ok":true,"command":"end-turn","code":"exhausted","decision":"exhausted","maxAttempts":2,"unfinishedCount":1,"sessionId":"s","message":"2 of 2 continuations are spent"}"#);
    let over = end(&s, &[]).is(0, "allow");
    assert_eq!((over.get("reason").as_str(), s.cause().as_str()), ("suspended", "exhausted"), "O36");
}

#[test]
fn a_turn_with_nothing_unfinished_ends() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let p1 = s.submit("p1").get("promptId");
    let before = root.bytes();
    insta::assert_snapshot!(told(&end(&s, &[]).is(0, "allow")), @r#"0 {"ok":true,"command":"end-turn","code":"allow","decision":"allow","reason":"nothing-unfinished","sessionId":"s","message":"no trusted to-do list has unfinished items"}"#);
    assert_eq!(end(&s, &["--prompt", &p1]).is(0, "allow").get("reason"), "nothing-unfinished");
    assert_eq!(end(&s, &["--prompt", "p9"]).is(0, "allow").get("reason"), "superseded");
    assert_eq!(root.bytes(), before);
}

#[test]
fn a_turn_yields_to_a_prompt_without_a_word() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let _ = s.say("m1", "typed before").is(0, "said");
    let _ = s.submit("p2");
    let yielded = end(&s, &BLOCK).is(0, "yield");
    insta::assert_snapshot!(told(&yielded), @r#"0 {"ok":true,"command":"end-turn","code":"yield","decision":"yield","stored":["m1"],"sessionId":"s","message":"a person's prompt waits; the turn ends now"}"#);
    let record = s.record();
    assert_eq!(record["wait"]["promptId"], p1.as_str());
    assert_eq!(
        (&record["kept"][0]["messageId"], &record["inbox"]),
        (&"m1".into(), &"[]".parse().unwrap()),
        "O24"
    );
    assert_eq!(record["blocks"], 0, "O12: the outer hook's answer is not counted");
}

#[test]
fn what_the_person_typed_comes_first() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let _ = s.say("m1", "not that file").is(0, "said");
    let _ = s.say("m2", "the other one").is(0, "said");
    insta::assert_snapshot!(told(&end(&s, &BLOCK).is(0, "user-input")), @r#"0 {"ok":true,"command":"end-turn","code":"user-input","decision":"user-input","text":"not that file\n\nthe other one","parts":[{"id":"m1","kind":"user","text":"not that file"},{"id":"m2","kind":"user","text":"the other one"}],"left":0,"hasQueuedPrompt":false,"sessionId":"s","message":"2 text(s) of the person come first"}"#);
}

#[test]
fn related_work_in_the_background_is_waited_for_without_a_charge() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let _ = s.call("background", &["start", "b1", "--kind", "shell"]).is(0, "background-noted");
    insta::assert_snapshot!(told(&end(&s, &[]).is(0, "deferred")), @r#"0 {"ok":true,"command":"end-turn","code":"deferred","decision":"deferred","unfinishedCount":1,"sessionId":"s","message":"related work is still running in the background"}"#);
    assert_eq!(s.attempts(), 0, "O57");
    let _ = s.call("background", &["end", "b1"]).is(0, "background-noted");
    let _ = end(&s, &[]).is(0, "continue");
}

#[test]
fn an_outer_hook_and_the_guard_speak_together_and_count_apart() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let both = end(&s, &BLOCK).is(0, "continue");
    assert_eq!(both.get("by"), "guard-and-hook");
    assert!(both.get("text").ends_with("\n\nthe tests are red"), "{both}");
    let _ = s.end(&both.get("ticket"), "sent").is(0, "ticket-settled");
    assert_eq!((s.attempts(), &s.record()["blocks"]), (1, &1.into()));
    let _ = end(&s, &["--external", "allow"]).is(0, "continue");
    assert_eq!(s.record()["blocks"], 0, "O35");
}

#[test]
fn an_outer_hook_that_blocks_for_ever_is_not_passed_on_for_ever() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let _ = s.submit("p1");
    for _ in 0..8 {
        let out = end(&s, &BLOCK).is(0, "continue");
        assert_eq!((out.get("by").as_str(), out.get("text").as_str()), ("hook", "the tests are red"));
    }
    assert_eq!(end(&s, &BLOCK).is(0, "allow").get("reason"), "hook-cap");
    assert_eq!(s.cause(), "hook-cap");
}

#[test]
fn only_the_guards_part_dies_with_the_guard() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let no_one = Session { root: &root, id: "unknown" };
    let check = |out: Outcome, exit: i32, code: &str, blocks: bool| {
        let out = out.is(exit, code);
        let expected = if blocks { ("continue", "the tests are red") } else { ("allow", "null") };
        assert_eq!((out.get("decision").as_str(), out.get("text").as_str()), expected, "O11: {out}");
        assert!(out.json()["ticket"].is_null(), "O11: {out}");
    };
    check(end(&no_one, &[]), 10, "no-session", false);
    check(end(&no_one, &BLOCK), 10, "no-session", true);

    let held = root.paused(&["session", "plan", "s", "on"], "locked-session");
    root.wait_reached("locked-session");
    check(end(&s, &["--lock-wait", "0"]), 75, "busy", false);
    check(end(&s, &[&BLOCK[..], &["--lock-wait", "50ms"]].concat()), 75, "busy", true);
    let out = s.call("claim", &["--lock-wait", "0"]).is(75, "busy");
    assert_eq!((out.get("claimed").as_str(), out.get("hasQueuedPrompt").as_str()), ("false", "false"), "O11");
    root.go("locked-session");
    let _ = root.finish(held).is(0, "plan-on");

    let path = root.path().join("sessions/s/guard/session.json");
    std::fs::write(&path, "damaged").unwrap();
    check(end(&s, &[]), 65, "session-unreadable", false);
    check(end(&s, &BLOCK), 65, "session-unreadable", true);
    let out = s.call("claim", &[]).is(65, "session-unreadable");
    assert_eq!(out.get("claimed"), "false", "O11");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "damaged");
}

#[test]
fn without_the_guard_the_outer_hook_still_speaks() {
    let root = TestRoot::new();
    let s = Session { root: &root, id: "s" };
    let _ = s.session("open", &[]).is(0, "opened");
    let _ = s.submit("p1");
    let _ = s.todo(&["pending"]);
    assert_eq!(end(&s, &[]).is(0, "allow").get("reason"), "guard-off", "O1");
    let hook = end(&s, &BLOCK).is(0, "continue");
    assert_eq!((hook.get("by").as_str(), hook.get("reason").as_str()), ("hook", "guard-off"));
}

#[test]
fn a_plan_ends_the_turn_and_leaving_it_lifts_nothing() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let _ = s.session("plan", &["on"]).is(0, "plan-on");
    assert_eq!(end(&s, &[]).is(0, "allow").get("reason"), "suspended");
    let _ = s.session("plan", &["off"]).is(0, "plan-off");
    let _ = s.todo(&["pending"]).is(0, "todo-counted");
    assert_eq!(end(&s, &[]).is(0, "allow").get("reason"), "suspended");
    assert_eq!(s.cause(), "plan", "O44");
    let _ = s.finish("p1", "completed");
    let _ = s.submit("p2");
    let _ = s.todo(&["pending"]).is(0, "todo-counted");
    let _ = end(&s, &[]).is(0, "continue");
}
