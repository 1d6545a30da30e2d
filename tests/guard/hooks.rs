//! What an agent's own hook tells, and what it is answered.

use lychgate::protocol::guard::chain::Cause;
use lychgate::protocol::guard::request::{External, HookPrompt, HookStop, Open, Request};
use lychgate::protocol::guard::session::{PromptEnd, PromptState, TicketEnd};
use lychgate::protocol::ids::{PromptId, TicketId};

use crate::desk::{Desk, Told};

/// A session whose agent works on a person's prompt and has an unfinished list.
fn at_work() -> Desk {
    let mut desk = Desk::new();
    let open = Open { guard: true, in_passing: true, ..Open::default() };
    desk.ask(Request::Open(open)).is("opened");
    desk.hook_prompt("h1").is("prompt-started");
    desk.todo(1).is("todo-counted");
    desk
}

/// The next stop of the turn, some time after the one before.
fn next_stop(desk: &mut Desk) -> Told {
    desk.passes(1_000);
    desk.hook_stop("the same bytes")
}

fn prompt(digest: &str) -> HookPrompt {
    HookPrompt { digest: digest.to_owned(), guard: true, ..HookPrompt::default() }
}

#[test]
fn a_continuation_is_charged_by_the_commit_that_prints_it() {
    let mut desk = at_work();
    for attempts in 1..=2 {
        next_stop(&mut desk).is("continue");
        assert_eq!((desk.now().chain.attempts, desk.now().tickets.len()), (attempts, 0));
        assert_eq!(desk.now().ended_tickets.last().unwrap().end, TicketEnd::Sent);
        assert!(desk.now().running().is_some(), "the turn goes on");
    }
    next_stop(&mut desk).is("exhausted");
    assert!(desk.now().running().is_none(), "the turn is over");
    next_stop(&mut desk).is("allow");
    desk.hook_prompt("h2").is("prompt-started");
    desk.todo(1);
    next_stop(&mut desk).is("continue");
}

#[test]
fn a_continuation_that_comes_back_as_a_prompt_is_nobodys_prompt_once() {
    let mut desk = at_work();
    let ticket = next_stop(&mut desk).is("continue").ticket();
    let back = HookPrompt { ticket: Some(ticket), ..prompt("back") };
    desk.ask(Request::HookPrompt(back.clone())).is("ok");
    assert_eq!((desk.now().chain.attempts, desk.now().ended_prompts.len()), (1, 0));
    desk.passes(1_000);
    // The second time it is what somebody has typed: a person may paste what they saw.
    let again = HookPrompt { started_ms: desk.boot.ms, ..back };
    desk.ask(Request::HookPrompt(again)).is("prompt-started");
    assert_eq!(desk.now().chain.attempts, 0);
}

#[test]
fn a_ticket_that_was_never_printed_makes_no_prompt_automatic() {
    let mut desk = at_work();
    desk.ask(Request::Suspend("Stop".to_owned()));
    let ticket = Some(TicketId::parse("tkt_00000000000000ff").unwrap());
    desk.ask(Request::HookPrompt(HookPrompt { ticket, ..prompt("x") })).is("prompt-started");
    assert!(desk.now().chain.suspended.is_none());
}

#[test]
fn the_agents_own_text_is_no_persons_prompt_and_refills_nothing() {
    let mut desk = at_work();
    let mut continued = 0;
    for n in 0..10 {
        desk.passes(1_000);
        let told = HookPrompt { typed: Some(false), ..prompt(&format!("machine {n}")) };
        desk.ask(Request::HookPrompt(told)).is("ok");
        continued += u32::from(next_stop(&mut desk).code.as_str() == "continue");
    }
    assert_eq!(continued, 2);
}

#[test]
fn one_stop_told_twelve_times_is_one_stop() {
    let mut desk = at_work();
    let mut continued = 0;
    for _ in 0..12 {
        continued += u32::from(desk.hook_stop("the same bytes").code.as_str() == "continue");
        desk.passes(10);
    }
    assert_eq!((continued, desk.now().chain.attempts), (1, 1));
    // A process that began before the answer was written tells of the same stop, however late it comes.
    let late = HookStop {
        digest: "the same bytes".to_owned(),
        started_ms: 1_000_000 - 5,
        guard: true,
        ..HookStop::default()
    };
    desk.passes(5_000);
    assert_eq!(desk.ask(Request::HookStop(late)).is("allow").text("reason"), "repeated-event");
}

#[test]
fn one_prompt_told_twelve_times_is_one_prompt() {
    let mut desk = at_work();
    for _ in 0..12 {
        desk.ask(Request::HookPrompt(prompt("no name")));
        desk.passes(10);
    }
    assert_eq!(desk.now().ended_prompts.len(), 1, "it ended the one before, and nothing else");
}

#[test]
fn a_new_prompt_proves_that_the_interrupted_one_is_over() {
    let mut desk = at_work();
    let before = desk.now().running().unwrap().prompt_id.clone();
    desk.hook_prompt("h2").is("prompt-started");
    let ended = desk.now().ended_prompts.last().unwrap();
    assert_eq!((&ended.prompt_id, ended.end), (&before, PromptEnd::Aborted));
    assert!(desk.now().chain.suspended.is_none() && !desk.now().chain.armed);
}

#[test]
fn a_scripts_prompt_makes_the_agent_yield_and_is_known_when_it_comes_back() {
    let mut desk = at_work();
    let queued = desk.submit().is("submitted").prompt();
    next_stop(&mut desk).is("yield");
    assert!(desk.now().running().is_none() && desk.now().wait.is_none());
    assert_eq!(desk.claim_automatic().is("unavailable").text("reason"), "prompt-live");
    desk.start(&queued).is("prompt-started");
    desk.passes(1_000);
    let handed_on =
        HookPrompt { prompt: Some(queued.clone()), alias: Some("h2".to_owned()), ..prompt("handed on") };
    desk.ask(Request::HookPrompt(handed_on)).is("prompt-started");
    let session = desk.now();
    assert_eq!((session.prompts.len(), session.ended_prompts.len()), (1, 1), "it was admitted once");
    assert_eq!(session.running().unwrap().prompt_id, queued);
    desk.ask(Request::HookStop(HookStop {
        alias: Some("h2".to_owned()),
        guard: true,
        ..HookStop::default()
    }));
    assert_eq!(desk.now().ended_prompts.last().unwrap().prompt_id, queued);
}

#[test]
fn a_marker_of_a_prompt_that_nobody_handed_on_is_a_persons_text() {
    let mut desk = at_work();
    let queued = desk.submit().prompt();
    let forged = HookPrompt { prompt: Some(queued.clone()), ..prompt("forged") };
    let told = desk.ask(Request::HookPrompt(forged)).is("prompt-started");
    assert_ne!(told.prompt(), queued);
    let unknown = HookPrompt { prompt: PromptId::parse("prm_00000000000000ff").ok(), ..prompt("unknown") };
    desk.ask(Request::HookPrompt(unknown)).is("prompt-started");
    let states: Vec<_> = desk.now().prompts.iter().map(|prompt| prompt.state).collect();
    assert_eq!(states.iter().filter(|state| **state == PromptState::Queued).count(), 1);
}

#[test]
fn a_stop_without_a_known_prompt_or_of_another_turn_lets_the_agent_stop() {
    let mut desk = Desk::new();
    desk.ask(Request::Open(Open { guard: true, ..Open::default() }));
    desk.todo(1);
    assert_eq!(desk.hook_stop("a").is("allow").text("reason"), "no-prompt");
    let mut desk = at_work();
    let other = HookStop { alias: Some("h0".to_owned()), guard: true, ..HookStop::default() };
    assert_eq!(desk.ask(Request::HookStop(other)).is("allow").text("reason"), "superseded");
    assert!(desk.now().running().is_some(), "another turn's stop ends nothing");
}

#[test]
fn another_hooks_continuation_is_not_joined() {
    let mut desk = at_work();
    let forced =
        HookStop { active: Some(true), guard: true, digest: "forced".to_owned(), ..HookStop::default() };
    assert_eq!(desk.ask(Request::HookStop(forced)).is("allow").text("reason"), "another-hook");
}

#[test]
fn without_the_guard_the_books_are_kept_and_a_wrappers_verdict_is_passed_on() {
    let mut desk = at_work();
    let blocked =
        HookStop { external: Some(External::Block("tests fail".to_owned())), ..HookStop::default() };
    let told = desk.ask(Request::HookStop(blocked)).is("continue");
    assert_eq!(told.text("text"), "tests fail");
    assert!(desk.now().running().is_some());
    desk.passes(1_000);
    let quiet = HookStop { started_ms: desk.boot.ms, ..HookStop::default() };
    desk.ask(Request::HookStop(quiet)).is("allow");
    assert_eq!(desk.now().ended_prompts.last().unwrap().end, PromptEnd::Completed);
    assert_eq!(desk.now().chain.attempts, 0);
}

#[test]
fn what_a_person_said_to_a_script_is_the_continuation_and_has_arrived_with_the_next_event() {
    let mut desk = at_work();
    desk.say("m1", "use the other file").is("said");
    let told = next_stop(&mut desk).is("user-input");
    assert_eq!(told.text("text"), "use the other file");
    assert_eq!(desk.now().kept.len(), 1, "nobody knows yet that it has arrived");
    next_stop(&mut desk).is("continue");
    assert!(desk.now().kept.is_empty());
    assert_eq!(desk.now().acknowledged.len(), 1);
}

#[test]
fn a_broken_turn_waits_for_a_retry_and_an_interrupt_suspends() {
    let mut desk = at_work();
    desk.ask(Request::HookTurnEnded(PromptEnd::Failed)).is("ok");
    assert!(desk.now().chain.retry_paused && desk.now().running().is_none());
    let mut desk = at_work();
    desk.ask(Request::HookTurnEnded(PromptEnd::Aborted)).is("ok");
    assert_eq!(desk.now().chain.suspended.as_ref().unwrap().cause, Cause::Aborted);
}

#[test]
fn a_session_that_begins_again_resets_releases_and_refills_nothing() {
    let mut desk = at_work();
    next_stop(&mut desk).is("continue");
    let before = desk.now().clone();
    desk.ask(Request::HookStarted).is("ok");
    let after = desk.now();
    assert_eq!((after.chain.attempts, &after.prompts, after.generation), (1, &before.prompts, 1));
    assert!(!after.chain.armed, "only trust in its list is gone");
    let mut desk = at_work();
    desk.ask(Request::Suspend("Stop".to_owned()));
    desk.ask(Request::HookStarted);
    desk.ask(Request::HookCleared);
    assert_eq!(desk.now().chain.suspended.as_ref().unwrap().cause, Cause::Asked);
    assert_eq!((desk.now().generation, desk.now().todos.len()), (2, 0));
}

#[test]
fn while_a_question_is_open_nothing_answers_in_the_persons_place() {
    let mut desk = at_work();
    desk.ask(Request::HookQuestion(true, Some("q1".to_owned())));
    desk.passes(600_000);
    assert_eq!(desk.claim_automatic().is("unavailable").text("reason"), "prompt-live");
    assert_eq!(next_stop(&mut desk).is("allow").text("reason"), "waiting-for-person");
    let mut desk = at_work();
    desk.ask(Request::HookQuestion(true, Some("q1".to_owned())));
    desk.ask(Request::HookQuestion(false, Some("q2".to_owned())));
    assert!(desk.now().question.is_some(), "another question's answer answers nothing");
    desk.ask(Request::HookQuestion(false, Some("q1".to_owned())));
    next_stop(&mut desk).is("continue");
}

#[test]
fn an_event_is_seen_and_timed() {
    let mut desk = at_work();
    let told_ms = desk.boot.ms;
    desk.passes(7);
    desk.ask(Request::HookSeen("stop".to_owned(), told_ms));
    assert_eq!((desk.now().events["stop"].count, desk.now().events["stop"].took_ms), (1, 7));
}
