//! `step complete` and `step fail`: the end of a workflow step.

use serde_json::json;

use crate::answer::Answer;
use crate::cli::{StepArgs, StepCheckpointArgs, StepEnd};
use crate::protocol::checkpoint::{RunChange, complete, fail, no_such_step};
use crate::protocol::requests::Seen;
use crate::protocol::run::{Run, Step};
use crate::protocol::workflow::Checkpoint;
use crate::state::{Access, LockPlan, RunKey, StateError, Store, Transaction, Writes};

use super::children;
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
    let job = Job { context, store: &store, keys: &keys, at, key, end: &args.end, digest };
    // The step may get another child between the look and the locks; then it is looked at anew.
    for _ in 0..ROUNDS_MAX {
        match job.round() {
            Err(Failure::State(StateError::Raced { .. })) => {}
            done => return done,
        }
    }
    Err(Failure::State(StateError::Busy { what: format!("run `{}`", job.at.run), waited: context.lock_wait }))
}

/// How often a call starts over when its step got another child before its locks were held.
const ROUNDS_MAX: usize = 64;

struct Job<'a> {
    context: &'a Context,
    store: &'a Store,
    keys: &'a Keys,
    at: Checkpoint,
    key: RunKey,
    end: &'a StepEnd,
    digest: String,
}

impl Job<'_> {
    fn step(&self, run: Option<&Run>) -> Result<Option<Step>, Failure> {
        children::of_step(self.store, run, &self.at, &self.context.call())
    }

    fn round(&self) -> Result<Answer, Failure> {
        let (context, at) = (self.context, &self.at);
        let seen = self.store.read_run(&self.key)?.map(|document| document.run);
        let step = self.step(seen.as_ref())?.ok_or_else(|| no_such_step(seen.as_ref(), at))?;
        let child = step.task_id;
        let plan =
            LockPlan { run: Some(self.key.clone()), shared: vec![child.clone()], ..LockPlan::default() };
        crate::seam::pause("looked");
        let transaction = begin(context, self.store, &plan, &|| Ok(()))?;
        match transaction.run().map(|run| run.requests.seen(&context.request_id, &self.digest)) {
            Some(Seen::Before(record)) => {
                let answer = repeats::repeated(context, self.keys, record);
                transact::rewrite_run(context, &transaction)?;
                return Ok(with_path(self.store, answer?));
            }
            Some(Seen::ForAnother(record)) => return Err(repeats::reused(context, record)),
            Some(Seen::Never) | None => {}
        }
        let step = self.step(transaction.run())?.filter(|step| step.task_id == child);
        let step = step.ok_or_else(|| StateError::Raced { what: format!("step `{}`", at.step) })?;
        let change = self.judged(&transaction, &step)?;
        self.sync(&transaction, &step)?;
        let answer = commit(context, self.keys, transaction, change, &self.digest)?;
        Ok(with_path(self.store, answer))
    }

    /// Syncs what the end of the step rests on and what the commit does not write itself.
    fn sync(&self, transaction: &Transaction<'_>, step: &Step) -> Result<(), Failure> {
        transact::sync_rows(transaction, std::slice::from_ref(&step.task_id))?;
        let row = transaction.row(&step.task_id);
        if let (StepEnd::Complete(_), Some(row)) = (self.end, row)
            && let Some(report) = row.counted_report()
        {
            transaction.sync_report(&row.parent_workspace_id, &row.task_id, report.attempt_id.as_ref())?;
        }
        Ok(())
    }

    fn judged(&self, transaction: &Transaction<'_>, step: &Step) -> Result<RunChange, Failure> {
        let (store, at, call) = (self.store, &self.at, self.context.call());
        let document = transaction.document(&step.task_id);
        let row = document.map(|document| &document.row);
        let mut change = match self.end {
            StepEnd::Complete(_) => {
                let reports = document.map(|document| evidence::reports(store, document));
                complete(transaction.run(), at, step, row.zip(reports.as_ref()), &call)?
            }
            StepEnd::Fail { error, .. } => fail(transaction.run(), at, step, row, error.as_deref(), &call)?,
        };
        if let Some((row, report)) = row.and_then(|row| Some((row, row.counted_report()?))) {
            let path = store.report_path(&row.parent_workspace_id, &row.task_id, report.attempt_id.as_ref());
            let below_root = path.strip_prefix(store.root()).unwrap_or(&path);
            change.said.facts.insert("reportPath".to_owned(), json!(below_root.display().to_string()));
        }
        Ok(change)
    }
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
