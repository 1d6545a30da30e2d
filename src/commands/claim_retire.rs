//! `claim-retire`: retires an attempt for exactly one checkpoint.

use crate::answer::Answer;
use crate::cli::ClaimRetireArgs;
use crate::protocol::checkpoint::claimed;
use crate::protocol::retirement::{self, ClaimEvidence, ClaimRequest};
use crate::protocol::workflow::Checkpoint;
use crate::state::{Access, RunKey, Store};

use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::input;
use super::repeats::{Grant, digest};
use super::tokens::Keys;
use super::transact::{Ancestors, RunHook, TaskCall, no_task};

pub(crate) fn run(context: &Context, args: &ClaimRetireArgs) -> Result<Answer, Failure> {
    let store = Store::open(&context.root, Access::Change)?;
    let keys = Keys::read(&store, &args.token, None)?;
    let input_hash = input::required(&args.step, &args.input)?;
    let at = Checkpoint {
        parent: args.parent.clone(),
        run: args.run.clone(),
        step: args.step.clone(),
        input_hash: input_hash.clone(),
    };
    let checkpoint = RunHook {
        key: RunKey { parent: args.parent.clone(), run: args.run.clone() },
        change: &|run, row, call| claimed(run, &at, &row.task_id, call),
    };
    let request = ClaimRequest {
        attempt: args.attempt.clone(),
        run: args.run.clone(),
        step: args.step.clone(),
        input_hash: input_hash.clone(),
        parent: args.parent.clone(),
        mode: args.mode,
        fresh: context.fresh_nonce()?,
    };
    let call = TaskCall {
        context,
        store: &store,
        keys: &keys,
        task: &args.task,
        ancestors: Ancestors::NotLookedAt,
        checkpoint: Some(&checkpoint),
        digest: digest(&[
            "claim-retire",
            args.task.as_str(),
            args.attempt.as_str(),
            args.run.as_str(),
            args.step.as_str(),
            input_hash.as_str(),
            args.parent.as_str(),
            args.mode.as_str(),
        ]),
    };
    let answer = call.run(
        &|row, sight, call| {
            let claim_evidence = ClaimEvidence {
                credentials: &keys,
                owner_life: sight.owner_life(),
                receipt: sight.receipt(),
                reports: sight.reports(),
            };
            retirement::claim(row, &request, &claim_evidence, call)
        },
        &|_| Grant::default(),
    )?;
    crate::seam::pause("claimed");
    // Rule 72: after the claim is durable, the reports are looked at once more.
    let document = store.read_task(&args.task).map_err(|error| Failure::after_claim(&error))?;
    let document = document.ok_or_else(|| no_task(&args.task))?;
    retirement::alarm(&document.row, &evidence::reports(&store, &document))?;
    Ok(answer)
}
