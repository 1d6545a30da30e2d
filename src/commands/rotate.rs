//! `rotate`: publishes the next identity of a task.

use crate::answer::Answer;
use crate::cli::RotateArgs;
use crate::protocol::codes::Code;
use crate::protocol::ids::AttemptId;
use crate::protocol::rotation::{self, Around, Rotate};
use crate::protocol::verdict::Said;
use crate::state::{Access, Store, TokenFile, user};

use super::context::Context;
use super::failure::Failure;
use super::owner::{NO_PID_HINT, owner};
use super::repeats::{Grant, digest};
use super::tokens::Keys;
use super::transact::{Ancestors, TaskCall};

pub(crate) fn run(context: &Context, args: &RotateArgs) -> Result<Answer, Failure> {
    let store = Store::open(&context.root, Access::Change)?;
    let keys = Keys::read_if_there(&store, &args.token)?;
    let fresh = context.fresh_attempt()?;
    let request = owner(context, &args.owner).map(|owner| Rotate {
        kind: args.kind,
        expect: args.expect.clone(),
        by: args.owner.owner.as_ref().map_or_else(user, ToString::to_string),
        owner,
        unproven: args.unproven,
        fresh: fresh.clone(),
    });
    let call = TaskCall {
        context,
        store: &store,
        keys: &keys,
        task: &args.task,
        ancestors: Ancestors::Held,
        checkpoint: None,
        digest: wish(args),
    };
    // A new token lies synced beside its place before the commit, and takes the place after it: the old token
    // is never lost to a refused rotation, nor the new one to a full disk.
    let staged = stage(args, &keys, &fresh)?;
    let answer = call.run(
        &|row, sight, call| {
            let around = Around {
                credentials: &keys,
                owner_life: sight.owner_life(),
                receipt: sight.receipt(),
                stopped_ancestor: sight.stopped_ancestor(),
            };
            rotation::rotate(row, request.as_ref().map_err(Clone::clone)?, &around, call)
        },
        &grant,
    )?;
    deliver_token(answer, args, &keys, staged)
}

fn wish(args: &RotateArgs) -> String {
    let expect = args.expect.as_ref().map_or(String::new(), |e| format!("{}@{:?}", e.attempt, e.epoch));
    digest(&[
        "rotate",
        args.task.as_str(),
        args.kind.as_str(),
        &expect,
        args.owner.owner.as_ref().map_or("", |name| name.as_str()),
        &args.owner.owner_pid.map_or(String::new(), |pid| pid.to_string()),
        if args.unproven { "unproven" } else { "" },
    ])
}

/// A fresh id that somebody owns has a token; a launch under its own id keeps the token it has.
fn grant(said: &Said) -> Grant {
    let fact = |key: &str| said.facts.get(key);
    let owned = fact("owned").and_then(serde_json::Value::as_bool).unwrap_or(false);
    let fresh = said.code == Code::Rotated || said.facts.contains_key("previousAttemptId");
    let attempt = fact("attemptId").and_then(|id| id.as_str()).and_then(|id| AttemptId::parse(id).ok());
    Grant {
        tokens_of: attempt.filter(|_| owned && fresh),
        hint: Some(NO_PID_HINT.to_owned())
            .filter(|_| owned && fact("ownerPid").is_none_or(serde_json::Value::is_null)),
        ..Grant::default()
    }
}

fn stage(args: &RotateArgs, keys: &Keys, fresh: &AttemptId) -> Result<Option<TokenFile>, Failure> {
    let Some(path) = &args.token.token_file else { return Ok(None) };
    let staged = TokenFile::stage(path, &keys.owner_token(fresh));
    staged.map(Some).map_err(|error| Failure::output_file(path, &error))
}

/// Moves the token of the answer into the token file, if one was named.
fn deliver_token(
    mut answer: Answer,
    args: &RotateArgs,
    keys: &Keys,
    staged: Option<TokenFile>,
) -> Result<Answer, Failure> {
    let Some(path) = &args.token.token_file else { return Ok(answer) };
    let Some(token) = answer.fields.shift_remove("token") else { return Ok(answer) };
    answer.fields.shift_remove("workerToken");
    let attempt = answer.fields.get("attemptId").and_then(|id| id.as_str()).map(str::to_owned);
    // A repeated call answers the attempt of the first one, whose token this call did not stage.
    let same = |staged: &TokenFile| staged.holds(token.as_str().unwrap_or_default());
    let staged = if let Some(staged) = staged.filter(same) {
        staged
    } else {
        let id = attempt.as_deref().and_then(|id| AttemptId::parse(id).ok());
        let id = id.ok_or_else(|| Failure::internal("a rotation answered no attempt"))?;
        TokenFile::stage(path, &keys.owner_token(&id)).map_err(|e| Failure::undelivered_token(path, &e))?
    };
    staged.put_in_place().map_err(|error| Failure::undelivered_token(path, &error))?;
    answer.fields.insert("tokenFile".to_owned(), path.display().to_string().into());
    Ok(answer)
}
