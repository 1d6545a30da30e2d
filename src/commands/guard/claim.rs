//! `claim` and `release`: may something be sent automatically now, and what became of it.

use serde_json::json;

use crate::answer::Answer;
use crate::cli::{ClaimArgs, ReleaseArgs, WokenBy};
use crate::protocol::guard::request::{Claim, Request, TICKET_MS};

use super::super::context::Context;
use super::super::failure::Failure;
use super::input::text_if_given;
use super::{act, act_for, is_usage};

pub(crate) fn claim(context: &Context, args: &ClaimArgs) -> Result<Answer, Failure> {
    if let Some(ticket) = &args.ticket {
        let request = match (args.end, &args.stage) {
            (Some(end), _) => {
                Request::EndTicket(ticket.clone(), end, text_if_given(args.text_kept.as_ref())?)
            }
            (None, Some(stage)) => {
                Request::Stage(ticket.clone(), stage.as_str().to_owned(), args.lifetime.or_ms(TICKET_MS))
            }
            (None, None) => return Err(Failure::usage("--ticket needs --as or --stage")),
        };
        return act(context, &args.session, &[request]);
    }
    let request = Claim {
        prompt: args.prompt.clone(),
        for_ms: args.lifetime.or_ms(TICKET_MS),
        process: None,
        attempt: args.attempt,
        chain: args.chain,
        woken_by_cancelled: args.woken_by == Some(WokenBy::Cancelled),
    };
    match act_for(context, &args.session, &[Request::Claim(request)], args.owner_pid) {
        Err(failure) if !is_usage(&failure) => Ok(not_claimed(context, failure)),
        done => done,
    }
}

/// Whatever keeps a claim from being answered, it is not granted: a caller that looks at nothing else sees that
/// (O11).
fn not_claimed(context: &Context, failure: Failure) -> Answer {
    let mut answer = failure.into_answer(context.command);
    for field in ["claimed", "hasQueuedPrompt"] {
        answer.fields.entry(field).or_insert(json!(false));
    }
    answer
}

pub(crate) fn release(context: &Context, args: &ReleaseArgs) -> Result<Answer, Failure> {
    act(context, &args.session, &[Request::Release(args.prompt.clone())])
}
