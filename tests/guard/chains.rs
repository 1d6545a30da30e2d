//! Suspension, chains and modes: O37 to O46, O64 and O65.

use lychgate::protocol::guard::background::TaskKind;
use lychgate::protocol::guard::chain::Cause;
use lychgate::protocol::guard::request::{
    Background, External, Open, PromptName, Request, TodoChange, TodoList,
};
use lychgate::protocol::guard::session::{PromptEnd, PromptKind, TicketEnd};
use lychgate::protocol::ids::{Name, PromptId};

use crate::desk::Desk;

fn cause(desk: &Desk) -> Option<Cause> {
    desk.now().chain.suspended.as_ref().map(|suspended| suspended.cause)
}

/// A running prompt with two unfinished items.
fn working() -> (Desk, PromptId) {
    let mut desk = Desk::open();
    let p1 = desk.running();
    desk.todo(2).is("todo-counted");
    assert!(desk.now().chain.armed);
    (desk, p1)
}

#[test]
fn o37_every_source_suspends_with_its_own_cause() {
    type Act = fn(&mut Desk, &PromptId);
    let sources: [(Cause, Act); 9] = [
        (Cause::Asked, |desk, _| drop(desk.ask(Request::Suspend("enough".to_owned())))),
        (Cause::Closed, |desk, _| drop(desk.ask(Request::Close))),
        (Cause::Plan, |desk, _| drop(desk.ask(Request::Plan(true)))),
        (Cause::Aborted, |desk, p1| drop(desk.finish(p1, PromptEnd::Aborted))),
        (Cause::Abandoned, |desk, p1| drop(desk.finish(p1, PromptEnd::Abandoned))),
        (Cause::Relocated, |desk, _| drop(desk.ask(Request::HookMoved(Some("/other".to_owned()))))),
        (Cause::LateTodo, |desk, _| {
            let prompt = Some(PromptName("prm_00000000000000ff".to_owned()));
            desk.ask(Request::Todo(TodoList {
                items: Vec::new(),
                prompt,
                untrusted: None,
                only_alone: false,
            }))
            .is("todo-late");
        }),
        (Cause::RetryWithoutTrust, |desk, p1| {
            desk.todo(0);
            desk.finish(p1, PromptEnd::Completed);
            desk.submit_as(PromptKind::Retry).is("submitted");
        }),
        (Cause::Exhausted, |desk, _| {
            for _ in 0..2 {
                let ticket = desk.end_turn().is("continue").ticket();
                desk.end(&ticket, TicketEnd::Sent);
            }
            desk.end_turn().is("exhausted");
        }),
    ];
    for (wanted, act) in sources {
        let (mut desk, p1) = working();
        act(&mut desk, &p1);
        assert_eq!(cause(&desk), Some(wanted));
        assert!(!desk.now().chain.armed && desk.now().wait.is_none());
    }
}

#[test]
fn o38_a_suspended_chain_counts_a_late_list_and_is_not_armed_by_it() {
    let (mut desk, p1) = working();
    let ticket = desk.claim(&p1).ticket();
    desk.submit().is("submitted");
    desk.claim(&p1).is("prompt-queued");
    desk.ask(Request::Suspend("Stop".to_owned())).is("suspended");
    assert!(desk.now().wait.is_none());
    desk.todo(4).is("todo-counted");
    assert_eq!((desk.now().chain.unfinished, desk.now().chain.armed), (4, false));
    assert_eq!(desk.end(&ticket, TicketEnd::Sent).is("ticket-void").text("reason"), "suspended");
}

#[test]
fn o39_a_suspended_session_orders_and_trusts_nobody() {
    let (mut desk, p1) = working();
    desk.ask(Request::Suspend("Stop".to_owned()));
    desk.claim(&p1).is("unavailable");
    desk.submit().is("submitted");
    desk.claim(&p1).is("prompt-queued");
    assert!(desk.now().wait.is_some() && !desk.now().chain.awaiting && !desk.now().chain.armed);
}

#[test]
fn o40_nothing_installs_a_wait_after_a_close() {
    let (mut desk, p1) = working();
    desk.submit().is("submitted");
    desk.ask(Request::Close).is("closed");
    assert_eq!(desk.claim(&p1).is("unavailable").text("hasQueuedPrompt"), "false");
    assert!(desk.now().wait.is_none());
}

#[test]
fn o41_only_an_ordinary_prompt_lifts_a_suspension_and_refills_the_budget() {
    let (mut desk, p1) = working();
    let ticket = desk.claim(&p1).ticket();
    desk.end(&ticket, TicketEnd::Sent);
    desk.ask(Request::Suspend("Stop".to_owned()));
    desk.finish(&p1, PromptEnd::Completed);
    for kind in [PromptKind::Retry, PromptKind::Continue] {
        let retry = desk.submit_as(kind).is("submitted").prompt();
        assert!(cause(&desk).is_some());
        assert_eq!(desk.now().chain.attempts, 1);
        desk.finish(&retry, PromptEnd::Completed);
    }
    desk.ask(Request::Open(Open { guard: true, ..Open::default() })).is("already-open");
    assert!(cause(&desk).is_some());
    let before = desk.now().chain.id;
    desk.running();
    let chain = &desk.now().chain;
    assert!(chain.suspended.is_none() && chain.attempts == 0 && chain.id > before && !chain.armed);
}

#[test]
fn o42_a_trusted_retry_keeps_chain_and_budget() {
    let (mut desk, p1) = working();
    let ticket = desk.claim(&p1).ticket();
    desk.end(&ticket, TicketEnd::FailedAfterStart);
    desk.finish(&p1, PromptEnd::Failed).is("prompt-finished");
    let before = desk.now().chain.clone();
    assert!(before.retry_paused);
    desk.submit_as(PromptKind::Retry).is("submitted");
    let after = desk.now().chain.clone();
    assert_eq!((after.id, after.attempts, after.armed), (before.id, 1, true));
    assert!(!after.retry_paused && after.suspended.is_none());
    desk.end_turn().is("continue");
}

#[test]
fn o44_plan_mode_clears_trust_and_leaving_it_lifts_nothing() {
    let (mut desk, p1) = working();
    desk.ask(Request::Plan(true)).is("plan-on");
    desk.todo(2);
    assert!(!desk.now().chain.armed);
    desk.ask(Request::Plan(false)).is("plan-off");
    assert_eq!(cause(&desk), Some(Cause::Plan));
    desk.end_turn().is("allow");
    desk.finish(&p1, PromptEnd::Completed);
    desk.running();
    assert_eq!(cause(&desk), None);
}

#[test]
fn o44_a_prompt_in_plan_mode_begins_no_chain() {
    let mut desk = Desk::open();
    desk.ask(Request::Plan(true));
    let before = desk.now().chain.id;
    desk.running();
    assert_eq!((desk.now().chain.id, cause(&desk)), (before, Some(Cause::Plan)));
}

#[test]
fn o45_only_the_main_agents_own_list_in_its_own_turn_arms() {
    let mut desk = Desk::open();
    let p1 = desk.running();
    let list = |prompt: Option<&str>, untrusted: Option<&str>| {
        Request::Todo(TodoList {
            items: vec![("a".to_owned(), false)],
            prompt: prompt.map(|name| PromptName(name.to_owned())),
            untrusted: untrusted.map(str::to_owned),
            only_alone: false,
        })
    };
    desk.ask(list(None, Some("a sub-agent's"))).is("todo-ignored");
    assert!(!desk.now().chain.armed);
    desk.ask(list(Some(p1.as_str()), None)).is("todo-counted");
    assert!(desk.now().chain.armed);
    let item = |id: &str, done| Request::TodoItem(TodoChange { id: id.to_owned(), done, prompt: None });
    desk.ask(item("b", Some(false)));
    assert_eq!(desk.now().chain.unfinished, 2);
    desk.ask(item("a", Some(true)));
    desk.ask(item("b", None));
    assert!(!desk.now().chain.armed, "a complete list disarms");
    desk.ask(list(Some("prm_00000000000000ff"), None)).is("todo-late");
    assert_eq!(cause(&desk), Some(Cause::LateTodo));
}

#[test]
fn o46_o65_what_is_opened_or_restored_again_is_another_generation_and_not_trusted() {
    let (mut desk, p1) = working();
    let ticket = desk.claim(&p1).ticket();
    desk.ask(Request::Close).is("closed");
    assert_eq!(desk.end(&ticket, TicketEnd::Sent).is("ticket-void").text("reason"), "closed");
    assert_eq!(desk.now().ended_prompts[0].end, PromptEnd::Abandoned);
    let told = desk.ask(Request::Open(Open { guard: true, ..Open::default() })).is("opened");
    assert_eq!(told.text("generation"), "2");
    assert!(!desk.now().chain.armed && cause(&desk).is_some());
    desk.claim(&p1).is("unavailable");

    let (mut desk, p1) = working();
    desk.ask(Request::Restore(true)).is("restoring");
    assert_eq!(desk.claim(&p1).is("unavailable").text("reason"), "restoring");
    desk.submit().is("session-restoring");
    desk.ask(Request::Restore(false)).is("restored");
    assert!(!desk.now().chain.armed);
    desk.end_turn().is("allow");
}

#[test]
fn o64_a_closed_session_refuses_late_results() {
    let (mut desk, p1) = working();
    desk.ask(Request::Close);
    desk.todo(1).is("session-over");
    desk.say("m1", "late").is("session-over");
    desk.start(&p1).is("session-over");
    desk.ask(Request::Suspend("late".to_owned())).is("session-over");
    desk.end_turn().is("allow");
    desk.end_turn_with(Some(External::Block("go".to_owned()))).is("continue");
    desk.ask(Request::Close).is("already-closed");
}

#[test]
fn o45_a_list_that_may_be_a_sub_agents_is_not_looked_at_while_one_lives() {
    let mut desk = Desk::open();
    desk.running();
    let list = || {
        let items = vec![("a".to_owned(), false)];
        Request::Todo(TodoList { items, prompt: None, untrusted: None, only_alone: true })
    };
    let task = Name::parse("sub-agent").unwrap();
    desk.ask(Request::Background(Background::Start {
        task: task.clone(),
        kind: TaskKind::Agent,
        parent: None,
        owner: None,
        process: None,
        told_by_agent: true,
    }));
    desk.ask(list()).is("todo-ignored");
    assert!(!desk.now().chain.armed);
    desk.ask(Request::Background(Background::End(task)));
    desk.ask(list()).is("todo-counted");
    assert!(desk.now().chain.armed);
}
