//! Order and ownership: O1 to O22.

use lychgate::protocol::guard::chain::Cause;
use lychgate::protocol::guard::request::{Claim, Open, PromptName, Request, Submit};
use lychgate::protocol::guard::session::{BootTime, PromptEnd, PromptKind, TicketEnd};
use lychgate::protocol::ids::TicketId;
use lychgate::protocol::row::ProcessRef;

use crate::desk::{Desk, automatic, named};

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

#[test]
fn o3_no_continuation_is_granted_twice() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let first = desk.claim(&p1).is("granted");
    let second = desk.claim(&p1).is("granted");
    assert_eq!((first.text("attempt"), second.text("attempt")), ("1".to_owned(), "2".to_owned()));
    assert_ne!(first.text("ticket"), second.text("ticket"));
    assert_eq!(desk.claim(&p1).is("unavailable").text("reason"), "budget-spent");
    let seqs: Vec<u64> = desk.now().tickets.iter().map(|ticket| ticket.seq).collect();
    assert!(seqs[0] < seqs[1]);
}

#[test]
fn o4_a_hosts_name_is_an_alias_of_what_was_submitted_and_owns_nothing_else() {
    let mut desk = Desk::open();
    let submit =
        Submit { alias: Some("host-1".to_owned()), kind: PromptKind::Ordinary, text: None, process: None };
    let p1 = desk.ask(Request::Submit(submit.clone())).is("submitted").prompt();
    assert_eq!(desk.ask(Request::Submit(submit)).is("already-submitted").prompt(), p1);
    let claim =
        |name: &str| Request::Claim(Claim { prompt: Some(PromptName(name.to_owned())), ..automatic() });
    let told = desk.ask(claim("host-2")).is("unavailable");
    assert_eq!(told.text("reason"), "not-the-owner");
    assert_eq!(
        (told.text("claimed"), told.text("hasQueuedPrompt")),
        ("false".to_owned(), "false".to_owned())
    );
    assert_eq!(desk.ask(claim("host-1")).is("granted").prompt(), p1);
}

#[test]
fn o5_only_the_running_prompt_is_granted() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let p2 = desk.submit().prompt();
    let p3 = desk.submit().prompt();
    desk.remove(&p3).is("prompt-removed");
    for other in [&p2, &p3] {
        assert_eq!(desk.claim(other).is("unavailable").text("reason"), "not-the-owner");
    }
    desk.finish(&p1, PromptEnd::Completed).is("prompt-finished");
    assert_eq!(desk.claim(&p1).is("unavailable").text("reason"), "not-the-owner");
    assert!(desk.now().wait.is_none());
}

#[test]
fn o6_a_queued_prompt_binds_the_wait_to_who_asked_and_asking_again_changes_nothing() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.submit().is("submitted");
    desk.claim(&p1).is("prompt-queued");
    let wait = desk.now().wait.clone().unwrap();
    assert_eq!(wait.prompt_id, p1);
    assert!(!desk.claim(&p1).is("prompt-queued").changed);
    assert_eq!(desk.now().wait, Some(wait));
}

#[test]
fn o7_a_strangers_claim_leaves_everybody_elses_wait_and_trust_alone() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.todo(1);
    let p2 = desk.submit().prompt();
    desk.claim(&p1).is("prompt-queued");
    let before = desk.now().clone();
    desk.claim(&p2).is("unavailable");
    desk.claim_automatic().is("unavailable");
    let after = desk.now();
    assert_eq!((&after.wait, &after.chain, &after.prompts), (&before.wait, &before.chain, &before.prompts));
    assert_eq!(after.refused["not-the-owner"].count, 1);
}

#[test]
fn o8_an_automatic_turn_starts_only_while_no_prompt_lives_and_then_holds_the_next_one() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    assert_eq!(desk.claim_automatic().is("unavailable").text("reason"), "prompt-live");
    let p2 = desk.submit().prompt();
    desk.finish(&p1, PromptEnd::Completed);
    assert_eq!(desk.claim_automatic().is("unavailable").text("hasQueuedPrompt"), "false");
    desk.remove(&p2).is("prompt-removed");

    let mut desk = Desk::open();
    let ticket = desk.claim_automatic().is("granted").ticket();
    let p1 = desk.submit().is("submitted");
    assert_eq!(p1.text("state"), "queued", "it is held until the ticket has an end");
    desk.start(&p1.prompt()).is("ticket-open");
    desk.passes(60_000);
    desk.start(&p1.prompt()).is("prompt-started");
    assert_eq!(desk.now().ended_tickets[0].ticket_id, ticket);
}

#[test]
fn o8_only_removed_prompts_are_no_prompts() {
    let mut desk = Desk::open();
    let ticket = desk.claim_automatic().is("granted").ticket();
    let p1 = desk.submit().prompt();
    desk.remove(&p1).is("prompt-removed");
    desk.end(&ticket, TicketEnd::Unsent).is("ticket-settled");
    desk.claim_automatic().is("granted");
}

#[test]
fn o9_a_session_without_a_queue_is_granted_and_an_unknown_one_is_not() {
    let mut desk = Desk::new();
    let open = Open { guard: true, without_queue: true, ..Open::default() };
    assert_eq!(desk.claim_automatic().is("unavailable").text("reason"), "no-session");
    desk.ask(Request::Open(open)).is("opened");
    desk.ask(Request::Claim(Claim { prompt: Some(PromptName("any".to_owned())), ..automatic() }))
        .is("granted");
}

#[test]
fn o10_nothing_is_made_for_an_unknown_session_and_a_closed_one_is_refused() {
    let mut desk = Desk::new();
    for request in
        [Request::Claim(automatic()), Request::Close, Request::Plan(true), Request::Gaps(Vec::new())]
    {
        let told = desk.ask(request);
        assert!(!told.changed && desk.session.is_none(), "{told:?}");
    }
    let mut desk = Desk::open();
    desk.running();
    desk.ask(Request::Close).is("closed");
    assert_eq!(desk.claim_automatic().is("unavailable").text("reason"), "session-closed");
    desk.submit().is("session-over");
}

#[test]
fn o13_o14_a_release_clears_only_the_wait_of_the_prompt_it_names() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let p2 = desk.submit().prompt();
    desk.claim(&p1).is("prompt-queued");
    let before = desk.session.clone();
    assert!(!desk.release(&p2).is("no-match").changed);
    assert_eq!(desk.session, before);
    desk.release(&p1).is("released");
    assert!(desk.now().wait.is_none());
    assert_eq!(desk.now().chain.suspended.as_ref().unwrap().cause, Cause::QueueReleased);
}

#[test]
fn o15_promotion_clears_the_wait_silently_and_the_chain_waits_for_the_prompt() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let p2 = desk.submit().prompt();
    desk.claim(&p1).is("prompt-queued");
    desk.finish(&p1, PromptEnd::Completed).is("prompt-finished");
    assert!(desk.now().wait.is_none());
    assert_eq!(desk.now().chain.suspended.as_ref().unwrap().cause, Cause::OrdinaryPending);
    assert!(desk.now().history.events.iter().all(|event| event.what != "released"));
    desk.start(&p2).is("prompt-started");
    assert!(desk.now().chain.suspended.is_none());
}

#[test]
fn o16_the_wait_is_released_with_the_last_queued_prompt_and_not_before() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let (p2, p3) = (desk.submit().prompt(), desk.submit().prompt());
    desk.claim(&p1).is("prompt-queued");
    desk.remove(&p2).is("prompt-removed");
    assert!(desk.now().wait.is_some() && desk.now().chain.suspended.is_none());
    desk.finish(&p3, PromptEnd::Aborted).is("prompt-removed");
    assert!(desk.now().wait.is_none());
    assert_eq!(desk.now().chain.suspended.as_ref().unwrap().cause, Cause::QueueReleased);
}

#[test]
fn o17_o18_o20_a_release_marks_the_open_tickets_until_the_last_of_them_has_an_end() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let (t1, t2) = (desk.claim(&p1).ticket(), desk.claim(&p1).ticket());
    desk.release(&p1).is("released");
    assert!(desk.now().released.contains(p1.as_str()));
    let told = desk.end(&t1, TicketEnd::Sent).is("ticket-void");
    assert_eq!(told.text("reason"), "released");
    assert_eq!(desk.now().chain.attempts, 1, "it is charged all the same");
    assert!(desk.now().released.contains(p1.as_str()), "one ticket is still open");
    desk.submit().is("submitted");
    assert_eq!(desk.claim(&p1).is("unavailable").text("reason"), "released");
    assert!(desk.now().wait.is_none(), "no wait comes back");
    desk.end(&t2, TicketEnd::Unsent).is("ticket-settled");
    assert!(desk.now().released.is_empty());
    desk.claim(&p1).is("prompt-queued");
}

#[test]
fn o19_a_mark_leaves_another_owners_wait_alone() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.claim(&p1).is("granted");
    desk.finish(&p1, PromptEnd::Completed);
    desk.passes(1);
    // The ticket of the first prompt is still open while the second one runs, because its own agent started it.
    desk.hook_prompt("host-2").is("prompt-started");
    let p2 = desk.now().running().unwrap().prompt_id.clone();
    desk.submit().is("submitted");
    desk.claim(&p2).is("prompt-queued");
    let (wait, trust) = (desk.now().wait.clone(), desk.now().chain.clone());
    desk.release(&p1).is("released");
    assert_eq!((desk.now().wait.clone(), desk.now().chain.clone()), (wait, trust));
}

#[test]
fn o21_a_ticket_that_nobody_ends_counts_as_sent_and_one_of_a_dead_holder_at_once() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let ticket = desk.claim(&p1).ticket();
    desk.passes(59_999);
    desk.todo(1);
    assert_eq!(desk.now().tickets.len(), 1, "it still blocks");
    desk.passes(1);
    desk.todo(1);
    assert_eq!((desk.now().tickets.len(), desk.now().chain.attempts), (0, 1));
    assert_eq!(desk.end(&ticket, TicketEnd::Sent).is("ticket-ended").text("end"), "lapsed");

    let process: ProcessRef = serde_json::from_value(serde_json::json!({ "pid": 7 })).unwrap();
    let mut desk = Desk::open();
    let p1 = desk.running();
    let claim = Claim { prompt: Some(named(&p1)), process: Some(process), ..automatic() };
    desk.ask(Request::Claim(claim)).is("granted");
    desk.dead.push(7);
    desk.todo(1);
    assert_eq!((desk.now().tickets.len(), desk.now().chain.attempts), (0, 1));

    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.claim(&p1).is("granted");
    desk.boot = BootTime { boot_id: Some("boot-2".to_owned()), ms: 0 };
    desk.todo(1);
    assert_eq!(desk.now().chain.attempts, 1, "nothing outlives its boot");
}

#[test]
fn o22_a_ticket_has_one_end_and_a_foreign_one_none() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let ticket = desk.claim(&p1).ticket();
    desk.end(&ticket, TicketEnd::Unsent).is("ticket-settled");
    let before = desk.session.clone();
    for end in TicketEnd::REPORTED {
        assert_eq!(desk.end(&ticket, end).is("ticket-ended").text("end"), "unsent");
    }
    desk.end(&TicketId::parse("tkt_00000000000000ff").unwrap(), TicketEnd::Sent).is("no-such-ticket");
    assert_eq!(desk.session, before);
}

#[test]
fn o71_a_wait_whose_owner_or_queue_is_gone_is_released_by_the_next_call() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.submit().is("submitted");
    desk.claim(&p1).is("prompt-queued");
    // What no call could leave behind, as if by another version of this program.
    desk.session.as_mut().unwrap().prompts.retain(|prompt| prompt.prompt_id == p1);
    desk.todo(1).is("todo-counted");
    assert!(desk.now().wait.is_none());
    assert_eq!(desk.now().chain.suspended.as_ref().unwrap().cause, Cause::QueueReleased);
    assert!(desk.now().history.events.iter().any(|event| event.what == "released"));
}

#[test]
fn o72_o73_the_sixth_prompt_is_refused_a_removed_one_keeps_its_place_and_each_has_one_end() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let queued: Vec<_> = (0..4).map(|_| desk.submit().is("submitted").prompt()).collect();
    let before = desk.session.clone();
    let told = desk.submit().is("queue-full");
    assert_eq!((told.text("limit"), told.text("pendingCount")), ("5".to_owned(), "5".to_owned()));
    assert_eq!(desk.session, before, "no trace is left");
    desk.remove(&queued[1]).is("prompt-removed");
    desk.submit().is("queue-full");
    desk.finish(&p1, PromptEnd::Completed).is("prompt-finished");
    desk.finish(&p1, PromptEnd::Completed).is("already-finished");
    assert_eq!(desk.finish(&p1, PromptEnd::Failed).is("prompt-ended").text("end"), "completed");
    desk.start(&queued[1]).is("prompt-ended");
    desk.start(&queued[0]).is("prompt-started");
    desk.finish(&p1, PromptEnd::Aborted).is("prompt-ended");
    assert_eq!(desk.now().running().unwrap().prompt_id, queued[0], "a late end touches no newer prompt");
    desk.finish(&queued[0], PromptEnd::Completed).is("prompt-finished");
    assert_eq!(desk.now().prompts.len(), 2, "the removed one's place is given up when it is the first");
}
