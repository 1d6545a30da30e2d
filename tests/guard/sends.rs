//! What a person typed, and the order of a send: O11, O12, O23 to O36.

use lychgate::protocol::guard::chain::Cause;
use lychgate::protocol::guard::request::{Claim, Drain, EndTurn, External, Request, Say, TICKET_MS};
use lychgate::protocol::guard::session::{Message, MessageKind, PromptEnd, TicketEnd};
use lychgate::protocol::ids::Name;

use crate::desk::{Desk, Told, automatic, named};

fn block() -> Option<External> {
    Some(External::Block("run the tests".to_owned()))
}

/// The ids of the texts an answer gives.
fn ids(told: &Told) -> Vec<String> {
    let parts = told.facts["parts"].as_array().unwrap();
    parts.iter().map(|part| part["id"].as_str().unwrap().to_owned()).collect()
}

/// Where every text of the session lies: each must be in one place.
fn places(desk: &Desk) -> (Vec<&str>, Vec<&str>) {
    fn named(list: &[Message]) -> Vec<&str> {
        list.iter().map(|message| message.message_id.as_str()).collect()
    }
    (named(&desk.now().inbox), named(&desk.now().kept))
}

#[test]
fn o11_an_outer_hooks_block_outlives_the_guards_part() {
    let mut desk = Desk::open();
    desk.running();
    desk.todo(1);
    desk.ask(Request::Suspend("Stop".to_owned())).is("suspended");
    desk.end_turn().is("allow");
    let told = desk.end_turn_with(block()).is("continue");
    assert_eq!((told.text("by"), told.text("text")), ("hook".to_owned(), "run the tests".to_owned()));
    assert!(!told.facts.contains_key("ticket"));
}

#[test]
fn o12_a_yield_neither_shows_nor_counts_the_outer_hooks_answer() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.submit().is("submitted");
    let told = desk.end_turn_with(block()).is("yield");
    assert!(!told.facts.contains_key("text"));
    assert_eq!(desk.now().blocks, 0);
    assert_eq!(desk.now().wait.as_ref().unwrap().prompt_id, p1);
    desk.end_turn_with(block()).is("yield");
    assert_eq!(desk.now().blocks, 0);
}

#[test]
fn o23_that_a_prompt_is_queued_is_a_hint_and_the_claim_is_the_truth() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let p2 = desk.submit().prompt();
    assert_eq!(desk.drain().is("drained").text("hasQueuedPrompt"), "true");
    desk.remove(&p2).is("prompt-removed");
    desk.claim(&p1).is("granted");
}

#[test]
fn o24_whoever_yields_keeps_what_was_typed_in_the_same_commit() {
    let mut desk = Desk::open();
    desk.running();
    desk.say("m1", "also the docs").is("said");
    desk.submit().is("submitted");
    assert_eq!(places(&desk), (vec!["m1"], vec![]));
    let told = desk.end_turn().is("yield");
    assert_eq!(told.facts["stored"], serde_json::json!(["m1"]));
    assert_eq!(places(&desk), (vec![], vec!["m1"]));
}

#[test]
fn o25_a_failed_drain_suspends_unless_a_text_was_recovered() {
    let failed = || Request::Drain(Drain { failed: true, ..Drain::default() });
    let mut desk = Desk::open();
    desk.running();
    desk.todo(1);
    desk.say("m1", "wait").is("said");
    assert_eq!(ids(&desk.ask(failed()).is("drained")), ["m1"]);
    assert!(desk.now().chain.suspended.is_none());
    desk.ask(failed()).is("drained");
    assert_eq!(desk.now().chain.suspended.as_ref().unwrap().cause, Cause::DrainFailed);
    desk.end_turn_with(block()).is("continue");
}

#[test]
fn o26_ten_texts_a_drain_and_the_rest_stays_in_order() {
    let mut desk = Desk::open();
    for n in 0..12 {
        desk.say(&format!("m{n:02}"), "text").is("said");
    }
    let first = desk.drain().is("drained");
    assert_eq!((ids(&first).len(), first.text("left")), (10, "2".to_owned()));
    assert_eq!(ids(&desk.drain()), ["m10", "m11"]);
    assert_eq!(ids(&desk.drain()), [""; 0]);
    let again = desk.ask(Request::Drain(Drain { again: true, ..Drain::default() })).is("drained");
    assert_eq!((ids(&again)[0].as_str(), again.text("left")), ("m00", "2".to_owned()));
}

#[test]
fn o27_a_claim_is_judged_against_the_number_the_mode_and_the_background_of_that_moment() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let numbered = |attempt| Claim { prompt: Some(named(&p1)), attempt: Some(attempt), ..automatic() };
    assert_eq!(desk.ask(Request::Claim(numbered(2))).is("unavailable").text("reason"), "other-attempt");
    desk.ask(Request::Claim(numbered(1))).is("granted");
    let other = Claim { prompt: Some(named(&p1)), chain: Some(99), ..automatic() };
    assert_eq!(desk.ask(Request::Claim(other)).is("unavailable").text("reason"), "other-chain");
    desk.ask(Request::Plan(true)).is("plan-on");
    assert_eq!(desk.claim(&p1).is("unavailable").text("reason"), "suspended");
}

#[test]
fn o28_a_stage_is_recorded_and_renews_the_ticket() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let ticket = desk.claim(&p1).ticket();
    desk.passes(TICKET_MS - 1);
    desk.ask(Request::Stage(ticket.clone(), "compressing".to_owned(), TICKET_MS)).is("ticket-renewed");
    desk.passes(TICKET_MS - 1);
    desk.todo(1);
    assert_eq!(desk.now().tickets[0].stage.as_deref(), Some("compressing"));
    desk.end(&ticket, TicketEnd::Sent).is("ticket-settled");
}

#[test]
fn o29_every_stream_needs_a_ticket_of_its_own() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let ticket = desk.claim(&p1).ticket();
    desk.end(&ticket, TicketEnd::Sent).is("ticket-settled");
    desk.end(&ticket, TicketEnd::Sent).is("ticket-ended");
    assert_eq!(desk.now().chain.attempts, 1);
}

#[test]
fn o30_every_order_has_its_number() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.claim(&p1).is("granted");
    desk.submit().is("submitted");
    let session = desk.now();
    assert!(
        session.prompts[0].seq < session.tickets[0].seq && session.tickets[0].seq < session.prompts[1].seq
    );
}

#[test]
fn o31_unsent_is_free_and_a_stream_that_broke_is_not() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.todo(1);
    let ticket = desk.claim(&p1).ticket();
    desk.end(&ticket, TicketEnd::Unsent).is("ticket-settled");
    assert_eq!(desk.now().chain.attempts, 0);
    let ticket = desk.claim(&p1).ticket();
    desk.end(&ticket, TicketEnd::FailedAfterStart).is("ticket-settled");
    assert_eq!((desk.now().chain.attempts, desk.now().chain.retry_paused), (1, true));
    assert_eq!(desk.claim(&p1).is("unavailable").text("reason"), "retry-paused");
}

#[test]
fn o31_a_sender_that_never_sends_is_stopped_after_eight_tries() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    for _ in 0..8 {
        let ticket = desk.claim(&p1).is("granted").ticket();
        desk.end(&ticket, TicketEnd::Unsent).is("ticket-settled");
    }
    assert_eq!(desk.claim(&p1).is("unavailable").text("reason"), "suspended");
    assert_eq!(desk.now().chain.suspended.as_ref().unwrap().cause, Cause::SendsFailed);
}

#[test]
fn o32_only_the_guards_own_text_is_taken_out_when_nothing_was_sent() {
    let mut desk = Desk::open();
    desk.running();
    let tool = Say { id: Some(Name::parse("t1").unwrap()), kind: MessageKind::Tool, text: "done".to_owned() };
    desk.ask(Request::Say(tool)).is("said");
    desk.drain().is("drained");
    desk.todo(1);
    let told = desk.end_turn().is("continue");
    assert_eq!(desk.now().kept.len(), 2);
    // A person's text that equals the guard's is not the guard's.
    let ticket = told.ticket();
    desk.ask(Request::EndTicket(ticket, TicketEnd::Unsent, Some(told.text("text")))).is("ticket-settled");
    let kept: Vec<_> = desk.now().kept.iter().map(|message| message.kind).collect();
    assert_eq!(kept, [MessageKind::Tool, MessageKind::User]);
}

#[test]
fn o33_a_text_that_came_before_adds_nothing_wherever_it_is_now() {
    let mut desk = Desk::open();
    desk.say("m1", "one").is("said");
    desk.say("m1", "one").is("already-said");
    desk.drain();
    desk.say("m1", "one").is("already-said");
    let ack = vec![Name::parse("m1").unwrap()];
    desk.ask(Request::Drain(Drain { ack, ..Drain::default() })).is("acknowledged");
    desk.say("m1", "one").is("already-said");
    assert_eq!(places(&desk), (vec![], vec![]));
}

#[test]
fn o34_what_is_typed_in_the_middle_begins_a_fresh_stage_and_supersedes_what_was_about_to_be_sent() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.todo(1);
    let spent = desk.end_turn().is("continue").ticket();
    desk.end(&spent, TicketEnd::Sent);
    let ticket = desk.end_turn_with(block()).is("continue").ticket();
    assert_eq!((desk.now().chain.attempts, desk.now().blocks), (1, 1));
    desk.say("m1", "no, the other file").is("said");
    assert_eq!(desk.end_turn().is("user-input").text("text"), "no, the other file");
    assert_eq!((desk.now().chain.attempts, desk.now().blocks), (0, 0));
    assert_eq!(desk.end(&ticket, TicketEnd::Sent).is("ticket-void").text("reason"), "superseded");
    desk.claim(&p1).is("granted");
}

#[test]
fn o35_an_outer_hook_that_lets_stop_resets_its_count_and_nine_blocks_in_a_row_are_capped() {
    let mut desk = Desk::open();
    desk.running();
    for _ in 0..20 {
        desk.end_turn_with(block()).is("continue");
        desk.end_turn_with(Some(External::Allow)).is("allow");
    }
    for _ in 0..8 {
        desk.end_turn_with(block()).is("continue");
    }
    assert_eq!(desk.end_turn_with(block()).is("allow").text("reason"), "hook-cap");
    assert_eq!(desk.now().chain.suspended.as_ref().unwrap().cause, Cause::HookCap);
}

#[test]
fn o36_that_the_budget_is_spent_is_said_once_and_no_answer_tells_an_items_text() {
    let mut desk = Desk::open();
    desk.running();
    desk.todo(3);
    for last in [false, true] {
        let told = desk.end_turn().is("continue");
        assert!(told.text("text").starts_with("Your to-do list is not finished: 3 items left."));
        assert_eq!(told.text("text").contains("last automatic"), last);
        desk.end(&told.ticket(), TicketEnd::Sent);
    }
    let told = desk.end_turn().is("exhausted");
    assert_eq!(told.text("unfinishedCount"), "3");
    desk.end_turn().is("allow");
    desk.todo(2).is("todo-counted");
    desk.end_turn().is("allow");
}

#[test]
fn end_turn_of_a_prompt_that_is_not_the_running_one_touches_nothing() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.finish(&p1, PromptEnd::Completed);
    desk.running();
    desk.todo(1);
    let old = EndTurn { prompt: Some(named(&p1)), external: block(), for_ms: TICKET_MS, process: None };
    let told = desk.ask(Request::EndTurn(old)).is("allow");
    assert_eq!((told.text("reason"), told.changed), ("superseded".to_owned(), false));
}

#[test]
fn a_session_keeps_no_more_text_than_its_record_holds_and_says_so() {
    let mut desk = Desk::open();
    // A control character has six bytes on disk.
    let text = "\u{1}".repeat(60_000);
    let mut n = 0;
    while desk.session.as_ref().unwrap().inbox.len() == n {
        desk.say(&format!("m{n}"), &text);
        n += 1;
        assert!(n < 100, "there is no bound");
    }
    let bytes = serde_json::to_string(desk.now()).unwrap().len();
    assert!((3 << 20..5 << 20).contains(&bytes), "{bytes}");
    assert_eq!(desk.say("more", &text).is("queue-full").text("limit"), (4 << 20).to_string());
    desk.drain().is("drained");
    desk.say("more", &text).is("queue-full");
    let ack = desk.now().kept.iter().map(|message| message.message_id.clone()).collect();
    desk.ask(Request::Drain(Drain { ack, ..Drain::default() })).is("acknowledged");
    desk.say("more", &text).is("said");
}
