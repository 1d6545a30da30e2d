//! A claim is the one ordering point between a person's queue and everything automatic.

use serde_json::json;

use super::{Session, told};
use crate::common::{Outcome, TestRoot};

#[track_caller]
fn shape(outcome: &Outcome, claimed: bool, has_queued: bool) {
    let answer = outcome.json();
    assert_eq!(
        (&answer["claimed"], &answer["hasQueuedPrompt"]),
        (&json!(claimed), &json!(has_queued)),
        "{outcome}"
    );
}

#[track_caller]
fn refused(outcome: Outcome, reason: &str) -> Outcome {
    let outcome = outcome.is(10, "unavailable");
    shape(&outcome, false, false);
    assert_eq!(outcome.get("reason"), reason, "{outcome}");
    outcome
}

#[test]
fn there_are_three_answers_and_no_others() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let granted = s.claim(&p1).is(0, "granted");
    insta::assert_snapshot!(told(&granted), @r#"0 {"ok":true,"command":"claim","code":"granted","claimed":true,"hasQueuedPrompt":false,"ticket":"tkt_f689a3a85894f1ed","promptId":"prm_44ef219a1efd157c","attempt":1,"maxAttempts":2,"chain":3,"generation":1,"seq":4,"sessionId":"s","message":"ticket tkt_f689a3a85894f1ed: send it, and say what became of it"}"#);
    let _ = s.end(&granted.get("ticket"), "unsent");

    let p2 = s.submit("p2").get("promptId");
    let queued = s.claim(&p1).is(10, "prompt-queued");
    insta::assert_snapshot!(told(&queued), @r#"10 {"ok":false,"command":"claim","code":"prompt-queued","claimed":false,"hasQueuedPrompt":true,"promptId":"prm_44ef219a1efd157c","queuedPromptId":"prm_fbcbbbda26e59496","sessionId":"s","message":"prompt prm_fbcbbbda26e59496 waits and goes first","hint":"end the turn now; keep what the person typed, show nothing"}"#);
    assert_eq!(s.record()["wait"]["promptId"], p1.as_str(), "O6: the wait is bound to who asked");
    let before = s.meaning();
    let again = s.claim(&p1).is(10, "prompt-queued");
    assert_eq!((told(&again), s.meaning()), (told(&queued), before), "O6: asking again changes nothing");

    let other = refused(s.claim(&p2), "not-the-owner");
    insta::assert_snapshot!(told(&other), @r#"10 {"ok":false,"command":"claim","code":"unavailable","claimed":false,"hasQueuedPrompt":false,"reason":"not-the-owner","sessionId":"s","message":"prompt prm_fbcbbbda26e59496 is queued, not running"}"#);
}

#[test]
fn only_the_running_prompt_is_granted_and_nobody_else_is_touched() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let ended = s.submit("p0").get("promptId");
    let _ = s.finish("p0", "completed");
    let p1 = s.submit("p1").get("promptId");
    let queued = s.submit("p2").get("promptId");
    let _ = s.submit("p3");
    let _ = s.prompt("remove", &["p3"]);
    let _ = s.claim(&p1).is(10, "prompt-queued");
    let before = s.meaning();
    for who in [ended.as_str(), &queued, "p3", "host-id-never-submitted", "prm_0123456789abcdef"] {
        let _ = refused(s.claim(who), "not-the-owner");
    }
    let mut after = s.meaning();
    assert_eq!(after["refused"]["not-the-owner"]["count"], 5, "O5: what is refused is counted");
    after["refused"] = before["refused"].clone();
    assert_eq!(after, before, "O7: and nothing else");
}

#[test]
fn a_claim_without_a_prompt_is_granted_only_where_no_prompt_lives() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let automatic = || s.call("claim", &[]);
    let free = automatic().is(0, "granted");
    shape(&free, true, false);
    assert_eq!(free.get("promptId"), "null");
    // O8: a prompt that comes now waits until that send has an end.
    let p1 = s.submit("p1");
    assert_eq!(p1.get("state"), "queued");
    let _ = refused(automatic(), "prompt-live");
    let open = s.prompt("start", &["p1"]).is(12, "ticket-open");
    assert_eq!(open.get("ticketId"), free.get("ticket"));
    let _ = s.end(&free.get("ticket"), "sent").is(0, "ticket-settled");
    let _ = s.prompt("start", &["p1"]).is(0, "prompt-started");
    let _ = refused(automatic(), "prompt-live");
    let _ = s.submit("p2");
    let _ = s.prompt("remove", &["p2"]);
    let _ = s.finish("p1", "completed");
    shape(&automatic().is(0, "granted"), true, false);
}

#[test]
fn what_comes_after_a_grant_is_ordered_after_it() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let granted = s.claim(&p1).is(0, "granted");
    let p2 = s.submit("p2");
    let seq = |outcome: &Outcome| outcome.get("seq").parse::<u64>().unwrap();
    assert!(seq(&p2) > seq(&granted), "O2, O30");
    let _ = s.end(&granted.get("ticket"), "sent").is(0, "ticket-settled");
    let _ = s.finish("p1", "completed");
    let _ = s.prompt("start", &["p2"]).is(0, "prompt-started");
}

#[test]
fn a_prompt_waits_for_what_is_being_sent_though_its_turn_has_come() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let ticket = s.ticket(&p1);
    let _ = s.submit("p2");
    let _ = s.finish("p1", "completed").is(0, "prompt-finished");
    let open = s.prompt("start", &["p2"]).is(12, "ticket-open");
    assert_eq!(open.get("ticketId"), ticket, "O2");
    let void = s.end(&ticket, "sent").is(10, "ticket-void");
    assert_eq!(void.get("reason"), "suspended", "the turn it was for is over: {void}");
    let _ = s.prompt("start", &["p2"]).is(0, "prompt-started");
}

#[test]
fn a_host_without_a_queue_is_granted_what_the_rest_allows() {
    let root = TestRoot::new();
    let s = Session { root: &root, id: "s" };
    let _ = refused(s.claim("p"), "no-session");
    let _ = s.session("open", &["--guard", "--no-queue"]).is(0, "opened");
    shape(&s.claim("whatever").is(0, "granted"), true, false);
    let _ = s.session("suspend", &["--cause", "x"]).is(0, "suspended");
    let _ = refused(s.call("claim", &[]), "suspended");
}

#[test]
fn everything_is_judged_as_it_is_at_the_claim() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let with = |more: &[&str]| s.call("claim", &[&["--prompt", &p1], more].concat());
    let chain = s.record()["chain"]["id"].to_string();
    let _ = refused(with(&["--attempt", "2"]), "other-attempt");
    let _ = refused(with(&["--chain", "999"]), "other-chain");
    let _ = refused(with(&["--woken-by", "cancelled"]), "cancelled");
    let _ = s.call("background", &["start", "b1"]).is(0, "background-noted");
    let _ = refused(with(&[]), "background-running");
    let _ = s.call("background", &["end", "b1"]).is(0, "background-noted");
    let good = with(&["--attempt", "1", "--chain", &chain, "--woken-by", "completed"]).is(0, "granted");
    let _ = s.end(&good.get("ticket"), "unsent");
    let _ = s.session("plan", &["on"]).is(0, "plan-on");
    assert_eq!(with(&[]).is(10, "unavailable").get("reason"), "suspended", "O27");
    assert_eq!(s.cause(), "plan");
}

#[test]
fn a_suspended_session_orders_and_trusts_nobody() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let _ = s.session("suspend", &["--cause", "enough"]).is(0, "suspended");
    let _ = refused(s.claim(&p1), "suspended");
    let _ = s.submit("p2");
    shape(&s.claim(&p1).is(10, "prompt-queued"), false, true);
    assert_eq!(s.record()["wait"]["promptId"], p1.as_str(), "O39");
    assert_eq!(s.record()["chain"]["armed"], false, "O39");
}

#[test]
fn a_closed_session_installs_no_wait() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let _ = s.submit("p2");
    let _ = s.session("close", &[]).is(0, "closed");
    let _ = refused(s.claim(&p1), "session-closed");
    assert!(s.record()["wait"].is_null(), "O40");
    let _ = s.session("open", &["--guard"]).is(0, "opened");
    let _ = s.session("restore", &["--begin"]).is(0, "restoring");
    let _ = refused(s.claim(&p1), "restoring");
}

#[test]
fn the_guard_is_off_unless_it_was_asked_for() {
    let root = TestRoot::new();
    let s = Session { root: &root, id: "s" };
    let _ = s.session("open", &[]).is(0, "opened");
    let p1 = s.submit("p1").get("promptId");
    let _ = s.todo(&["pending"]);
    let before = root.bytes();
    let _ = refused(s.claim(&p1), "guard-off");
    assert_eq!(root.bytes(), before, "O1: byte for byte");
}

#[test]
fn a_stage_has_two_continuations() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    for attempt in ["1", "2"] {
        let granted = s.claim(&p1).is(0, "granted");
        assert_eq!(granted.get("attempt"), attempt);
        let _ = s.end(&granted.get("ticket"), "sent").is(0, "ticket-settled");
    }
    let _ = refused(s.claim(&p1), "budget-spent");
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let _ = (s.ticket(&p1), s.ticket(&p1));
    let _ = refused(s.claim(&p1), "budget-spent");
    assert_eq!(s.record()["tickets"].as_array().unwrap().len(), 2, "O17: what is under way counts");
}

#[test]
fn a_wait_is_released_with_the_last_prompt_that_it_was_for() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let _ = s.submit("p2");
    let _ = s.submit("p3");
    let _ = s.claim(&p1).is(10, "prompt-queued");
    let _ = s.prompt("remove", &["p2"]).is(0, "prompt-removed");
    assert_eq!(s.record()["wait"]["promptId"], p1.as_str(), "O16: another one waits");
    let _ = s.prompt("remove", &["p3"]).is(0, "prompt-removed");
    assert!(s.record()["wait"].is_null(), "O16: in the same commit");
    assert_eq!(s.cause(), "queue-released");
}

#[test]
fn the_next_prompts_turn_clears_the_wait_without_a_release() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let _ = s.submit("p2");
    let _ = s.claim(&p1).is(10, "prompt-queued");
    let _ = s.finish("p1", "completed").is(0, "prompt-finished");
    assert!(s.record()["wait"].is_null(), "O15");
    assert_eq!(s.cause(), "ordinary-pending", "O15");
    let _ = s.prompt("start", &["p2"]).is(0, "prompt-started");
    assert_eq!(s.cause(), "");
}
