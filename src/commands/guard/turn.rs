//! `say`, `drain`, `todo` and `end-turn`: what happens within a turn, and whether it may end.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::cli::{DrainArgs, EndTurnArgs, SayArgs, TodoArgs};
use crate::protocol::codes::Code;
use crate::protocol::guard::request::{Drain, EndTurn, External, Request, Say, TICKET_MS, TodoList};
use crate::protocol::guard::todo::parse;

use super::super::context::Context;
use super::super::failure::Failure;
use super::input::{list, text};
use super::{act, act_for, is_usage};

pub(crate) fn say(context: &Context, args: &SayArgs) -> Result<Answer, Failure> {
    let say = Say { id: args.id.clone(), kind: args.kind, text: text(args.file.as_ref())? };
    act(context, &args.session, &[Request::Say(say)])
}

pub(crate) fn drain(context: &Context, args: &DrainArgs) -> Result<Answer, Failure> {
    let drain = Drain { ack: args.ack.clone(), again: args.again, failed: args.failed };
    act(context, &args.session, &[Request::Drain(drain)])
}

pub(crate) fn todo(context: &Context, args: &TodoArgs) -> Result<Answer, Failure> {
    let text = list(args.file.as_ref())?;
    let malformed = |why: String| Failure::Call {
        code: Code::TodoMalformed,
        message: format!("this is no to-do list: {why}"),
        hint: Some("nothing was changed".to_owned()),
    };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| malformed(format!("it is not one JSON value: {error}")))?;
    let items = parse(&value).map_err(|error| malformed(error.to_string()))?;
    let untrusted = match &args.agent_id {
        Some(agent) => Some(format!("it is the list of sub-agent `{agent}`")),
        None if args.replayed => Some("it is a replay of what happened before".to_owned()),
        None => None,
    };
    let list = TodoList { items, prompt: args.prompt.clone(), untrusted, only_alone: false };
    act(context, &args.session, &[Request::Todo(list)])
}

pub(crate) fn end_turn(context: &Context, args: &EndTurnArgs) -> Result<Answer, Failure> {
    let external = args.external();
    let request = EndTurn {
        prompt: args.prompt.clone(),
        external: external.clone(),
        for_ms: args.lifetime.or_ms(TICKET_MS),
        process: None,
    };
    match act_for(context, &args.session, &[Request::EndTurn(request)], args.owner_pid) {
        Err(failure) if !is_usage(&failure) => Ok(without_guard(context, failure, external.as_ref())),
        done => done,
    }
}

/// Whatever keeps the guard from deciding, only its own part is lost: the agent may stop, unless an outer hook wants
/// it to go on (O11).
fn without_guard(context: &Context, failure: Failure, external: Option<&External>) -> Answer {
    let mut answer = failure.into_answer(context.command);
    let mut tell = |field: &str, value: Value| {
        answer.fields.entry(field).or_insert(value);
    };
    match external {
        Some(External::Block(reason)) => {
            tell("decision", json!("continue"));
            tell("by", json!("hook"));
            tell("text", json!(reason));
        }
        Some(External::Allow) | None => tell("decision", json!("allow")),
    }
    answer
}
