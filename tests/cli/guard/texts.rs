//! What a person types in the middle of a turn: in the inbox or among the kept texts, never in both, never in neither.

use super::{Session, told};
use crate::common::TestRoot;

fn ids(s: &Session<'_>, list: &str) -> Vec<String> {
    let record = s.record();
    let texts = record[list].as_array().unwrap();
    texts.iter().map(|text| text["messageId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_text_is_taken_kept_and_acknowledged() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    insta::assert_snapshot!(told(&s.say("m1", "and a test\n").is(0, "said")), @r#"0 {"ok":true,"command":"say","code":"said","id":"m1","waiting":1,"sessionId":"s","message":"the text lies in the inbox"}"#);
    let _ = s.tell("say", &["--id", "m2", "--kind", "tool"], "exit 1").is(0, "said");
    assert_eq!((ids(&s, "inbox"), ids(&s, "kept")), (vec!["m1".into(), "m2".into()], vec![]));
    insta::assert_snapshot!(told(&s.call("drain", &[]).is(0, "drained")), @r#"0 {"ok":true,"command":"drain","code":"drained","parts":[{"id":"m1","kind":"user","text":"and a test\n"},{"id":"m2","kind":"tool","text":"exit 1"}],"left":0,"hasQueuedPrompt":false,"sessionId":"s","message":"2 text(s)"}"#);
    assert_eq!((ids(&s, "inbox"), ids(&s, "kept")), (vec![], vec!["m1".into(), "m2".into()]), "O24");
    let again = s.call("drain", &["--again"]).is(0, "drained");
    assert_eq!(again.get("parts.1.text"), "exit 1");
    insta::assert_snapshot!(told(&s.call("drain", &["--ack", "m1", "--ack", "m9"]).is(0, "acknowledged")), @r#"0 {"ok":true,"command":"drain","code":"acknowledged","acknowledged":1,"unknown":["m9"],"sessionId":"s","message":"what arrived is forgotten"}"#);
    assert_eq!(ids(&s, "kept"), ["m2"]);
}

#[test]
fn an_id_that_came_before_adds_nothing() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let _ = s.say("m1", "once").is(0, "said");
    let _ = s.say("m1", "once").is(0, "already-said");
    let _ = s.call("drain", &[]).is(0, "drained");
    let _ = s.say("m1", "once").is(0, "already-said");
    let _ = s.call("drain", &["--ack", "m1"]).is(0, "acknowledged");
    let before = root.bytes();
    let _ = s.say("m1", "once").is(0, "already-said");
    assert_eq!(root.bytes(), before, "O33");
    let made = s.tell("say", &[], "without an id").is(0, "said");
    assert!(made.get("id").starts_with("msg_"), "{made}");
}

#[test]
fn ten_are_taken_and_the_rest_stays() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    for n in 0..12 {
        let _ = s.say(&format!("m{n}"), "text").is(0, "said");
    }
    let first = s.call("drain", &[]).is(0, "drained");
    assert_eq!(first.json()["parts"].as_array().unwrap().len(), 10, "O26");
    assert_eq!((first.get("left").as_str(), ids(&s, "inbox").len()), ("2", 2));
    let second = s.call("drain", &[]).is(0, "drained");
    assert_eq!((second.get("parts.0.id").as_str(), second.get("left").as_str()), ("m10", "0"));
}

#[test]
fn that_a_prompt_is_queued_is_a_hint_that_a_claim_confirms() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let _ = s.submit("p2");
    assert_eq!(s.call("drain", &[]).is(0, "drained").get("hasQueuedPrompt"), "true");
    let _ = s.prompt("remove", &["p2"]).is(0, "prompt-removed");
    let _ = s.claim(&p1).is(0, "granted");
}

#[test]
fn what_the_person_types_begins_a_fresh_stage_and_supersedes_what_is_being_sent() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let first = s.ticket(&p1);
    let _ = s.end(&first, "sent").is(0, "ticket-settled");
    let second = s.ticket(&p1);
    let _ = s.say("m1", "no, like this").is(0, "said");
    let _ = s.call("drain", &[]).is(0, "drained");
    assert_eq!(s.attempts(), 0, "O34");
    let late = s.end(&second, "sent").is(10, "ticket-void");
    assert_eq!(late.get("reason"), "superseded", "O34: {late}");
}

#[test]
fn a_drain_that_failed_without_a_text_suspends() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let _ = s.say("m1", "recovered").is(0, "said");
    let recovered = s.call("drain", &["--failed"]).is(0, "drained");
    assert_eq!((recovered.get("parts.0.text").as_str(), s.cause().as_str()), ("recovered", ""), "O25");
    let lost = s.call("drain", &["--failed"]).is(0, "drained");
    assert_eq!((lost.get("suspended").as_str(), s.cause().as_str()), ("drain-failed", "drain-failed"), "O25");
}

#[test]
fn texts_survive_a_close_and_are_refused_by_a_closed_session() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let _ = s.say("m1", "do not lose me").is(0, "said");
    let closed = s.session("close", &[]).is(0, "closed");
    assert_eq!(closed.get("keptTexts"), "1", "{closed}");
    let _ = s.say("m2", "too late").is(10, "session-over");
    let _ = s.session("open", &["--guard"]).is(0, "opened");
    assert_eq!(s.call("drain", &[]).is(0, "drained").get("parts.0.text"), "do not lose me");
}

#[test]
fn a_session_keeps_so_much_text_and_no_more() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let _ = s.say("m1", "text").is(0, "said");
    // On disk a text has its quotes: those of this one, and those of the last one that fits.
    let fits = (4 << 20) - 2 - 6;
    s.rewrite(|record| record["inbox"][0]["text"] = "x".repeat(fits).into());
    let _ = s.say("m2", "last").is(0, "said");
    let before = root.bytes();
    let full = s.say("m3", "x").is(10, "queue-full");
    assert!(full.get("hint").contains("acknowledge"), "{full}");
    assert_eq!(root.bytes(), before);
}
