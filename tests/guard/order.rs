//! Order and ownership: O1 to O22.

use lychgate::protocol::guard::request::{Open, Request};
use lychgate::protocol::guard::session::{PromptEnd, TicketEnd};

use crate::desk::Desk;

#[test]
fn o1_two_continuations_a_stage_and_no_third() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.todo(2).is("todo-counted");
    for attempt in 1..=2 {
        let told = desk.end_turn().is("continue");
        assert_eq!(told.text("attempt"), attempt.to_string());
        desk.end(&told.ticket(), TicketEnd::Sent).is("ticket-settled");
    }
    desk.end_turn().is("exhausted");
    desk.end_turn().is("allow");
    let told = desk.claim(&p1).is("unavailable");
    assert_eq!(told.text("reason"), "suspended");
}

#[test]
fn o1_without_the_guard_nothing_continues_and_nothing_changes() {
    let mut desk = Desk::new();
    desk.ask(Request::Open(Open::default())).is("opened");
    let p1 = desk.running();
    desk.todo(1);
    let before = desk.session.clone();
    assert!(!desk.end_turn().is("allow").changed);
    assert!(!desk.claim(&p1).is("unavailable").changed);
    assert_eq!(desk.session, before);
}

#[test]
fn o2_a_prompt_before_the_claim_goes_first_and_one_after_it_waits_for_its_ticket() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let p2 = desk.submit().is("submitted").prompt();
    let told = desk.claim(&p1).is("prompt-queued");
    assert_eq!((told.text("claimed"), told.text("hasQueuedPrompt")), ("false".to_owned(), "true".to_owned()));
    desk.remove(&p2).is("prompt-removed");

    let mut desk = Desk::open();
    let p1 = desk.running();
    let ticket = desk.claim(&p1).is("granted").ticket();
    let p2 = desk.submit().is("submitted");
    assert_eq!(p2.text("state"), "queued");
    let seq: u64 = p2.text("seq").parse().unwrap();
    assert!(seq > desk.now().tickets[0].seq);
    desk.finish(&p1, PromptEnd::Completed).is("prompt-finished");
    desk.start(&p2.prompt()).is("ticket-open");
    desk.end(&ticket, TicketEnd::Sent);
    desk.start(&p2.prompt()).is("prompt-started");
}
