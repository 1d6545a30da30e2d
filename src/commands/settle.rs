//! `settle`: says that a turn, a send, a cleanup or the whole attempt is over.

use crate::answer::Answer;
use crate::cli::{ReceiptCopies, SettleArgs};
use crate::protocol::ids::{CleanupId, SendId, TurnId};
use crate::protocol::settlement::{self, Disposal, SettleAttempt};
use crate::state::{Access, Store};

use super::context::Context;
use super::failure::Failure;
use super::repeats::{Grant, digest};
use super::tokens::worker_keys;
use super::transact::{Ancestors, TaskCall};

enum Wish {
    Turn(TurnId),
    Send(SendId, Disposal),
    Cleanup(CleanupId),
    Attempt,
}

pub(crate) fn run(context: &Context, args: &SettleArgs) -> Result<Answer, Failure> {
    let task = context.task_or_environment(args.task.as_ref())?;
    let wish = wish(args)?;
    // The environment's attempt guards the closing of an attempt: a worker of an earlier one must not end its
    // successor. Turns, sends and cleanups name what they mean themselves.
    let guard = match wish {
        Wish::Attempt => context.attempt_or_environment(args.attempt.as_ref(), &task)?,
        Wish::Turn(_) | Wish::Send(..) | Wish::Cleanup(_) => args.attempt.clone(),
    };
    let store = Store::open(&context.root, Access::Change)?;
    let keys = worker_keys(&store, &args.token, context, &task)?;
    let parent_only = args.receipt == ReceiptCopies::ParentOnly;
    let request = SettleAttempt { attempt: guard, source: args.source, parent_only };
    let (what, id) = words(&wish);
    let call = TaskCall {
        context,
        store: &store,
        keys: &keys,
        task: &task,
        ancestors: Ancestors::NotLookedAt,
        checkpoint: None,
        digest: digest(&[
            "settle",
            task.as_str(),
            what,
            &id,
            request.attempt.as_ref().map_or("", |id| id.as_str()),
            args.source.map_or("", |source| source.as_str()),
            if args.close { "close" } else { "" },
            if parent_only { "parent-only" } else { "" },
        ]),
    };
    let close = args.close.then_some(&request);
    call.run(
        &|row, _, call| {
            // Whatever is settled: an attempt that was named must be the current one.
            if let Some(attempt) = &request.attempt {
                row.refuse_stale(attempt)?;
            }
            let row = &*settlement::with_copies(row, parent_only);
            match &wish {
                Wish::Turn(turn) => settlement::settle_turn(row, turn, close, &keys, call),
                Wish::Send(send, disposal) => settlement::settle_send(row, send, *disposal, &keys, call),
                Wish::Cleanup(cleanup) => settlement::settle_cleanup(row, cleanup, call),
                Wish::Attempt => settlement::settle_attempt(row, &request, &keys, call),
            }
        },
        &|_| Grant::default(),
    )
}

fn wish(args: &SettleArgs) -> Result<Wish, Failure> {
    Ok(match (&args.turn, &args.send, &args.cleanup) {
        (Some(_), _, _) if args.source.is_some() && !args.close => {
            return Err(Failure::usage("--source names why an attempt ends: with --turn it needs --close"));
        }
        (Some(turn), _, _) => Wish::Turn(turn.clone()),
        (None, Some(send), _) => {
            let end =
                args.end.ok_or_else(|| Failure::usage("--send needs --as refused, no-work or canceled"))?;
            Wish::Send(send.clone(), end)
        }
        (None, None, Some(cleanup)) => Wish::Cleanup(cleanup.clone()),
        (None, None, None) => Wish::Attempt,
    })
}

fn words(wish: &Wish) -> (&'static str, String) {
    match wish {
        Wish::Turn(turn) => ("turn", turn.to_string()),
        Wish::Send(send, disposal) => (disposal.as_str(), send.to_string()),
        Wish::Cleanup(cleanup) => ("cleanup", cleanup.to_string()),
        Wish::Attempt => ("attempt", String::new()),
    }
}
