mod overflow;
mod turns;

use super::*;
use crate::protocol::guard::background::{Task, TaskKind};
use crate::protocol::guard::request::{CronRequest, Notify};
use crate::protocol::guard::testing::{World, name, process};

/// A task that belongs to the chain: `mine`. Every other name belongs to nobody.
pub(super) fn with_mine(mut session: Session) -> Session {
    session.tasks.push(Task {
        task_id: name("mine"),
        kind: TaskKind::Agent,
        parent: None,
        owner: None,
        at: session.created_at.clone(),
        told_by_agent: false,
        process: None,
        extra: Extra::new(),
    });
    session
}

pub(super) fn result(id: &str, from: &str) -> Notify {
    let text = Some(format!("text of {id}"));
    Notify::Put { id: Some(name(id)), task: name(from), kind: None, status: None, text }
}

/// A firing of `timer`: a wakeup where it is of the chain's own, else a plain timer.
pub(super) fn firing(id: &str, timer: &str, wakeup: bool) -> CronRequest {
    CronRequest::Put { id: Some(name(id)), task: name(timer), wakeup, text: None }
}

pub(super) fn put(world: &mut World, session: &mut Session, id: &str, from: &str) -> Facts {
    world.work(session, |work| work.notify(&result(id, from))).unwrap().facts
}

pub(super) fn fire(world: &mut World, session: &mut Session, id: &str, timer: &str, wakeup: bool) -> Facts {
    world.work(session, |work| work.cron(&firing(id, timer, wakeup))).unwrap().facts
}

/// Takes the next result: its id and whether it was taken before, or why none may start a turn.
pub(super) fn take(world: &mut World, session: &mut Session) -> Result<(String, bool), String> {
    let request = Notify::Take { for_ms: 1_000, process: Some(process(7)) };
    told(world.work(session, |work| work.notify(&request)))
}

pub(super) fn take_cron(world: &mut World, session: &mut Session) -> Result<(String, bool), String> {
    let request = CronRequest::Take { for_ms: 1_000, process: Some(process(7)) };
    told(world.work(session, |work| work.cron(&request)))
}

fn told(answer: Answered) -> Result<(String, bool), String> {
    let word = |facts: &Facts, key: &str| facts[key].as_str().unwrap().to_owned();
    match answer {
        Ok(said) => Ok((word(&said.facts, "id"), said.facts["repeat"] == true)),
        Err(refusal) if refusal.code == Code::KeptBack => Err(word(&refusal.facts, "reason")),
        Err(refusal) => Err(refusal.code.as_str().to_owned()),
    }
}

pub(super) fn acknowledge(world: &mut World, session: &mut Session, id: &str) -> Result<Code, Code> {
    let answer = world.work(session, |work| work.notify(&Notify::Ack(name(id))));
    answer.map(|said| said.code).map_err(|refusal| refusal.code)
}

pub(super) fn ids<T: Item>(items: &[T]) -> Vec<&str> {
    items.iter().map(|item| item.id().as_str()).collect()
}

/// What the gap notices name, notice by notice.
pub(super) fn omitted(session: &Session) -> Vec<Vec<&str>> {
    session.gaps.iter().map(|gap| gap.omitted.iter().map(|item| item.id.as_str()).collect()).collect()
}
