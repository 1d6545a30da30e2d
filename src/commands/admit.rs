//! `admit`: registers sends and asks the gate.

use crate::answer::Answer;
use crate::cli::AdmitArgs;
use crate::protocol::admission::{self, Through, Waits};
use crate::protocol::codes::Code;
use crate::protocol::ids::SendId;
use crate::protocol::verdict::Said;
use crate::state::{Access, Store};

use super::context::Context;
use super::failure::Failure;
use super::repeats::{Grant, digest};
use super::tokens::worker_keys;
use super::transact::{Ancestors, TaskCall};

pub(crate) fn run(context: &Context, args: &AdmitArgs) -> Result<Answer, Failure> {
    let task = context.task_or_environment(args.task.as_ref())?;
    let attempt = match &args.send {
        Some(_) => None,
        None => context.attempt_or_environment(args.attempt.as_ref(), &task)?,
    };
    let store = Store::open(&context.root, Access::Change)?;
    let keys = worker_keys(&store, &args.token, context, &task)?;
    let label = args.label.as_deref();
    let call = TaskCall {
        context,
        store: &store,
        keys: &keys,
        task: &task,
        ancestors: if args.start { Ancestors::Held } else { Ancestors::NotLookedAt },
        checkpoint: None,
        digest: digest(&[
            "admit",
            task.as_str(),
            attempt.as_ref().map_or("", |id| id.as_str()),
            args.send.as_ref().map_or("", |id| id.as_str()),
            if args.queued { "queued" } else { "" },
            if args.start { "start" } else { "" },
            label.unwrap_or_default(),
        ]),
    };
    let wish = match (&args.send, attempt) {
        (Some(send), _) if args.start => Wish::Gate(Through::Send(send.clone())),
        (Some(send), _) => Wish::Enqueue(send.clone()),
        (None, Some(attempt)) if args.start => Wish::Gate(Through::Attempt(attempt)),
        (None, Some(attempt)) => {
            let waits = if args.queued { Waits::Enqueued } else { Waits::Pending };
            Wish::Register(attempt, waits)
        }
        (None, None) => {
            return Err(Failure::usage(
                "neither --attempt nor --send is given, and LYCHGATE_ATTEMPT is not set",
            ));
        }
    };
    call.run(
        &|row, sight, call| match &wish {
            Wish::Register(attempt, waits) => admission::register(row, attempt, *waits, label, &keys, call),
            Wish::Enqueue(send) => admission::enqueue(row, send, &keys, call),
            Wish::Gate(through) => {
                admission::gate(row, through, label, sight.stopped_ancestor().as_ref(), &keys, call)
            }
        },
        &grant,
    )
}

enum Wish {
    Register(crate::protocol::ids::AttemptId, Waits),
    Enqueue(SendId),
    Gate(Through),
}

/// A call about a send is remembered as long as the send is undischarged; the gate's answer is given once.
fn grant(said: &Said) -> Grant {
    let send = said.facts.get("sendId").and_then(|id| id.as_str()).and_then(|id| SendId::parse(id).ok());
    Grant { send, authorises: said.code == Code::Admitted, ..Grant::default() }
}
