//! `step complete` and `step fail`: the end of a workflow step.

use serde_json::json;

use crate::answer::Answer;
use crate::cli::{StepArgs, StepCheckpointArgs, StepEnd};
use crate::protocol::checkpoint::{RunChange, complete, fail, find_step};
use crate::protocol::requests::Seen;
use crate::protocol::verdict::Refusal;
use crate::protocol::workflow::Checkpoint;
use crate::state::{Access, LockPlan, RunKey, Store, Transaction, Writes};

use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::input;
use super::repeats::{self, Grant, digest};
use super::tokens::Keys;
use super::transact::{self, begin};

pub(crate) fn run(context: &Context, args: &StepArgs) -> Result<Answer, Failure> {
    let (at, error, what) = match &args.end {
        StepEnd::Complete(at) => (at, None, "complete"),
        StepEnd::Fail { at, error } => (at, error.as_deref(), "fail"),
    };
    let at = checkpoint(at)?;
    let store = Store::open(&context.root, Access::Change)?;
    let keys = Keys::without_token(&store)?;
    let key = RunKey { parent: at.parent.clone(), run: at.run.clone() };
    let digest = digest(&[
        "step",
        what,
        at.parent.as_str(),
        at.run.as_str(),
        at.step.as_str(),
        at.input_hash.as_str(),
        error.unwrap_or_default(),
    ]);
    let seen = store.read_run(&key)?.map(|document| document.run);
    let child = find_step(seen.as_ref(), &at)?.task_id.clone();
    let plan = LockPlan { run: Some(key), shared: vec![child.clone()], ..LockPlan::default() };
    let transaction = begin(context, &store, &plan, &|| Ok(()))?;
    let current = transaction.run().ok_or_else(|| missing(&at))?;
    match current.requests.seen(&context.request_id, &digest) {
        Seen::Never => {}
        Seen::Before(record) => {
            let answer = repeats::repeated(context, &keys, record);
            transact::rewrite_run(context, &transaction)?;
            return Ok(with_path(&store, answer?));
        }
        Seen::ForAnother(record) => return Err(repeats::reused(context, record)),
    }
    if find_step(Some(current), &at)?.task_id != child {
        return Err(Failure::internal("the step got another child under its lock"));
    }
    let call = context.call();
    let document = transaction.document(&child);
    let reports = document.map(|document| evidence::reports(&store, document));
    let change = match &args.end {
        StepEnd::Complete(_) => {
            let child = document.zip(reports.as_ref()).map(|(document, reports)| (&document.row, reports));
            complete(current, &at, child, &call)?
        }
        StepEnd::Fail { .. } => fail(current, &at, document.map(|document| &document.row), error, &call)?,
    };
    let path = document.and_then(|document| {
        let row = &document.row;
        let report = row.counted_report()?;
        Some(store.report_path(&row.parent_workspace_id, &row.task_id, report.attempt_id.as_ref()))
    });
    let mut change = change;
    if let Some(path) = path {
        let below_root = path.strip_prefix(store.root()).unwrap_or(&path);
        change.said.facts.insert("reportPath".to_owned(), json!(below_root.display().to_string()));
    }
    Ok(with_path(&store, commit(context, &keys, transaction, change, &digest)?))
}

/// What is remembered of an answer names the report below the root, so that a repeat is right after the root was
/// moved.
fn with_path(store: &Store, mut answer: Answer) -> Answer {
    if let Some(path) = answer.fields.get_mut("reportPath")
        && let Some(below_root) = path.as_str()
    {
        *path = json!(store.root().join(below_root).display().to_string());
    }
    answer
}

fn commit(
    context: &Context,
    keys: &Keys,
    transaction: Transaction<'_>,
    change: RunChange,
    digest: &str,
) -> Result<Answer, Failure> {
    let RunChange { run, said } = change;
    let answer = repeats::granted(context, keys, said.clone(), &Grant::default());
    match run {
        Some(mut run) => {
            run.remember(repeats::record(context, digest, &said, &Grant::default()));
            transact::commit(context, transaction, Writes { run: Some(*run), ..Writes::default() })?;
        }
        None => transact::rewrite_run(context, &transaction)?,
    }
    Ok(answer)
}

pub(crate) fn checkpoint(args: &StepCheckpointArgs) -> Result<Checkpoint, Failure> {
    Ok(Checkpoint {
        parent: args.parent.clone(),
        run: args.run.clone(),
        step: args.step.clone(),
        input_hash: input::required(&args.step, &args.input)?,
    })
}

fn missing(at: &Checkpoint) -> Failure {
    match find_step(None, at) {
        Err(refusal) => Failure::Refused(refusal),
        Ok(_) => Failure::Refused(Box::new(Refusal::new(
            crate::protocol::codes::Code::NoSuchStep,
            "the run is gone",
        ))),
    }
}
