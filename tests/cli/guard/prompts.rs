//! The queue of prompts: a person's word is never overtaken, and each prompt has one end.

use super::{Session, told};
use crate::common::TestRoot;
use crate::kit::Process;

#[test]
fn prompts_run_one_after_the_other_in_the_order_they_were_submitted() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    insta::assert_snapshot!(told(&s.submit("p1")), @r#"0 {"ok":true,"command":"prompt","code":"submitted","promptId":"prm_44ef219a1efd157c","alias":"p1","state":"running","kind":"ordinary","seq":2,"sessionId":"s","message":"prompt prm_44ef219a1efd157c is running"}"#);
    insta::assert_snapshot!(told(&s.submit("p2")), @r#"0 {"ok":true,"command":"prompt","code":"submitted","promptId":"prm_6b60908f0b05dfa2","alias":"p2","state":"queued","kind":"ordinary","seq":4,"sessionId":"s","message":"prompt prm_6b60908f0b05dfa2 is queued"}"#);
    let _ = s.submit("p3");
    insta::assert_snapshot!(told(&s.prompt("start", &["p3"]).is(12, "prompt-waiting")), @r#"12 {"ok":false,"command":"prompt","code":"prompt-waiting","sessionId":"s","message":"prompt prm_f689a3a85894f1ed waits: prompt prm_44ef219a1efd157c runs since 2026-01-01T00:00:02.000Z","hint":"ask again when that one has ended"}"#);
    insta::assert_snapshot!(told(&s.finish("p1", "completed").is(0, "prompt-finished")), @r#"0 {"ok":true,"command":"prompt","code":"prompt-finished","promptId":"prm_44ef219a1efd157c","end":"completed","nextPromptId":"prm_6b60908f0b05dfa2","sessionId":"s","message":"prompt prm_44ef219a1efd157c has ended: completed"}"#);
    let _ = s.prompt("start", &["p3"]).is(12, "prompt-waiting");
    let _ = s.prompt("start", &["p2"]).is(0, "prompt-started");
    let _ = s.prompt("start", &["p2"]).is(0, "already-started");
    let _ = s.finish("p2", "completed").is(0, "prompt-finished");
    let _ = s.prompt("start", &["p3"]).is(0, "prompt-started");
}

#[test]
fn only_an_id_that_was_minted_here_owns_anything() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let first = s.submit("host-1");
    assert!(first.get("promptId").starts_with("prm_"), "O4: {first}");
    let again = s.prompt("submit", &["--alias", "host-1"]).is(0, "already-submitted");
    assert_eq!(again.get("promptId"), first.get("promptId"));
    assert_eq!(s.record()["prompts"].as_array().unwrap().len(), 1);
    let _ = s.finish("host-1", "completed").is(0, "prompt-finished");
    let over = s.prompt("submit", &["--alias", "host-1"]).is(10, "prompt-ended");
    assert_eq!(over.get("end"), "completed", "a name that was used for one prompt is not another's: {over}");
}

#[test]
fn each_prompt_has_one_end() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let id = s.submit("p1").get("promptId");
    let _ = s.finish(&id, "failed").is(0, "prompt-finished");
    let after = s.meaning();
    let _ = s.finish(&id, "failed").is(0, "already-finished");
    let other = s.finish("p1", "completed").is(10, "prompt-ended");
    assert_eq!(other.get("end"), "failed", "O73: {other}");
    let _ = s.prompt("start", &[&id]).is(10, "prompt-ended");
    let _ = s.prompt("remove", &[&id]).is(10, "prompt-ended");
    assert_eq!(s.meaning(), after);
}

#[test]
fn a_queued_prompt_is_removed_and_a_running_one_is_finished() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let running = s.submit("p1").get("promptId");
    let _ = s.submit("p2");
    let _ = s.submit("p3");
    let no = s.prompt("remove", &[&running]).is(10, "prompt-is-running");
    assert_eq!((no.get("removed").as_str(), no.get("reason").as_str()), ("false", "already-started"));
    let _ = s.finish("p2", "completed").is(10, "prompt-not-running");
    let removed = s.prompt("remove", &["p2"]).is(0, "prompt-removed");
    assert_eq!(removed.get("removed"), "true");
    let _ = s.prompt("remove", &["p2"]).is(10, "prompt-ended");
    let unknown = s.prompt("remove", &["p9"]).is(10, "no-such-prompt");
    assert_eq!((unknown.get("removed").as_str(), unknown.get("reason").as_str()), ("false", "not-found"));
    let _ = s.finish("p1", "completed").is(0, "prompt-finished");
    let _ = s.prompt("start", &["p2"]).is(10, "prompt-ended");
    let _ = s.prompt("start", &["p3"]).is(0, "prompt-started");
}

#[test]
fn five_prompts_are_held_and_a_removed_one_keeps_its_place() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    for alias in ["p1", "p2", "p3", "p4", "p5"] {
        let _ = s.submit(alias);
    }
    let before = s.record();
    let full = s.prompt("submit", &["--alias", "p6"]).is(10, "queue-full");
    insta::assert_snapshot!(told(&full), @r#"10 {"ok":false,"command":"prompt","code":"queue-full","limit":5,"pendingCount":5,"retryable":true,"sessionId":"s","message":"5 prompts are in the queue, and 5 are the most","hint":"nothing was kept: submit it again when one has ended"}"#);
    assert_eq!(s.record(), before, "O72: no trace is left");
    let _ = s.prompt("remove", &["p3"]).is(0, "prompt-removed");
    let _ = s.prompt("submit", &["--alias", "p6"]).is(10, "queue-full");
    let _ = s.finish("p1", "completed").is(0, "prompt-finished");
    let _ = s.submit("p6");
    let _ = s.prompt("submit", &["--alias", "p7"]).is(10, "queue-full");
}

#[test]
fn the_text_of_a_prompt_is_handed_on_by_whoever_starts_it() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let _ = s.submit("p1");
    std::fs::write(root.file("text"), "fix the \"test\"\n").unwrap();
    let _ = s.prompt("submit", &["--alias", "p2", "--file", &root.file("text")]).is(0, "submitted");
    let told = root.json_with_stdin(
        &["prompt", "submit", "s", "--alias", "p3", "--file", "-"],
        "and then \u{1b}[31m this".as_bytes(),
    );
    let _ = told.is(0, "submitted");
    let _ = s.finish("p1", "completed");
    let started = s.prompt("start", &["p2"]).is(0, "prompt-started");
    assert_eq!(started.get("text"), "fix the \"test\"\n");
    assert_eq!(s.prompt("start", &["p2"]).is(0, "already-started").get("text"), "fix the \"test\"\n");
    let removed = s.prompt("remove", &["p3"]).is(0, "prompt-removed");
    assert_eq!(removed.get("text"), "and then \u{1b}[31m this", "what a person typed is given back");
}

#[test]
fn the_proven_death_of_its_process_ends_the_running_prompt() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let mut worker = Process::alive();
    let id = s.prompt("submit", &["--owner-pid", &worker.pid()]).is(0, "submitted").get("promptId");
    let _ = s.submit("p2");
    assert_eq!(s.claim(&id).code(), "prompt-queued", "it lives");
    worker.die();
    let over = s.claim(&id).is(10, "unavailable");
    assert_eq!(over.get("reason"), "not-the-owner", "{over}");
    assert_eq!(s.record()["endedPrompts"][0]["end"], "abandoned");
    let _ = s.prompt("start", &["p2"]).is(0, "prompt-started");
}

#[test]
fn only_an_ordinary_prompt_lifts_a_suspension_and_refills_the_budget() {
    let root = TestRoot::new();
    for (kind, cause, attempts) in
        [("ordinary", "", 0), ("retry", "retry-without-trust", 1), ("continue", "retry-without-trust", 1)]
    {
        let root = if kind == "ordinary" { &root } else { &TestRoot::new() };
        let (s, p1) = Session::at_work(root, "s");
        let ticket = s.ticket(&p1);
        let _ = s.end(&ticket, "sent").is(0, "ticket-settled");
        let _ = s.session("suspend", &["--cause", "enough"]).is(0, "suspended");
        let _ = s.finish("p1", "completed");
        let _ = s.prompt("submit", &["--kind", kind]).is(0, "submitted");
        assert_eq!((s.cause().as_str(), s.attempts()), (cause, attempts), "O41, O42: {kind}");
    }
}

#[test]
fn a_retry_goes_on_with_a_chain_whose_turn_broke() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let ticket = s.ticket(&p1);
    let _ = s.end(&ticket, "sent").is(0, "ticket-settled");
    let _ = s.finish("p1", "failed").is(0, "prompt-finished");
    assert_eq!(s.record()["chain"]["retryPaused"], true);
    let chain = s.record()["chain"]["id"].clone();
    let p2 = s.prompt("submit", &["--kind", "retry"]).is(0, "submitted").get("promptId");
    let record = s.record();
    assert_eq!((&record["chain"]["id"], &record["chain"]["retryPaused"]), (&chain, &false.into()), "O42");
    assert_eq!(s.attempts(), 1, "the budget is kept");
    assert_eq!(s.claim(&p2).is(0, "granted").get("attempt"), "2");
}
