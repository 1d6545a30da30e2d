//! `reserve`: a new task, queued, with a fresh proven attempt; or the replacement of a retired one.

use std::collections::HashSet;

use crate::answer::Answer;
use crate::cli::ReserveArgs;
use crate::protocol::checkpoint::replaced;
use crate::protocol::codes::Code;
use crate::protocol::ids::{AttemptId, InvalidId, Name, Nonce};
use crate::protocol::requests::Seen;
use crate::protocol::reservation::{self, Reserve, Reserved, Spending};
use crate::protocol::row::{Extra, Row, WorkflowTask};
use crate::protocol::run::Run;
use crate::protocol::verdict::Refusal;
use crate::protocol::workflow::{Checkpoint, refuse_stopped_run};
use crate::state::{Access, LockPlan, RunKey, StateError, Store, Transaction, Writes};

use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::handout::{self, Handout};
use super::owner::{owner, pid_hint};
use super::repeats::{self, Grant, digest};
use super::reserve_step;
use super::tokens::Keys;
use super::transact::{self, begin, lineage_up, no_task, stopped_ancestor};

pub(crate) fn run(context: &Context, args: &ReserveArgs) -> Result<Answer, Failure> {
    if args.run.is_some() {
        return reserve_step::run(context, args);
    }
    let store = Store::open(&context.root, Access::Write)?;
    let keys = Keys::without_token(&store)?;
    let job = Job { context, store: &store, keys: &keys, args, digest: wish(args) };
    // Somebody else may make the row between the look and the lock; then it is looked at anew.
    for _ in 0..ROUNDS_MAX {
        match job.round() {
            Err(Failure::State(StateError::Raced { .. })) => {}
            done => return done,
        }
    }
    Err(Failure::State(StateError::Busy {
        what: "the name of the new task".to_owned(),
        waited: context.lock_wait,
    }))
}

/// How often a reservation starts over when somebody else takes the name it was about to take. Each loss
/// means that another call won, so the bound is generous.
const ROUNDS_MAX: usize = 64;

struct Job<'a> {
    context: &'a Context,
    store: &'a Store,
    keys: &'a Keys,
    args: &'a ReserveArgs,
    digest: String,
}

fn wish(args: &ReserveArgs) -> String {
    let name = |name: &Option<Name>| name.as_ref().map_or(String::new(), ToString::to_string);
    let ancestors: Vec<&str> = args.ancestors.iter().map(Name::as_str).collect();
    digest(&[
        "reserve",
        &name(&args.task),
        &name(&args.parent),
        &ancestors.join("\n"),
        &name(&args.owner.owner),
        &args.owner.owner_pid.map_or(String::new(), |pid| pid.to_string()),
        &name(&args.replaces),
        args.nonce.as_deref().unwrap_or_default(),
    ])
}

/// Where the new task belongs: given, or taken from the claim it spends.
struct Place {
    parent: Name,
    ancestors: Vec<Name>,
    workflow_task: Option<WorkflowTask>,
}

impl Place {
    /// The checkpoint the claim was made for.
    fn checkpoint(&self) -> Option<Checkpoint> {
        let step = self.workflow_task.as_ref()?;
        Some(Checkpoint {
            parent: self.parent.clone(),
            run: step.run_id.clone(),
            step: step.step_id.clone(),
            input_hash: step.input_hash.clone(),
        })
    }

    fn run_key(&self) -> Option<RunKey> {
        let step = self.workflow_task.as_ref()?;
        Some(RunKey { parent: self.parent.clone(), run: step.run_id.clone() })
    }
}

impl Job<'_> {
    fn round(&self) -> Result<Answer, Failure> {
        let old = self.args.replaces.as_ref().map(|old| self.read_old(old)).transpose()?;
        let place = self.place(old.as_ref())?;
        let task = self.name(&place, old.as_ref())?;
        let mut shared = lineage_up(self.store, &place.parent, &place.ancestors)?;
        shared.reverse();
        if shared.contains(&task) {
            return Err(Failure::usage(format!("`{task}` cannot be an ancestor of itself")));
        }
        let exclusive = std::iter::once(task.clone()).chain(self.args.replaces.clone()).collect();
        let plan = LockPlan { run: place.run_key(), shared, exclusive, ..LockPlan::default() };
        let refuse = || self.refuse_unlocked(&task);
        crate::seam::pause("looked");
        let transaction = begin(self.context, self.store, &plan, &refuse)?;
        if let Some(answer) = self.answered_before(&transaction, &task) {
            let holder = transaction.row(&task).map_or(self.args.replaces.clone(), |_| Some(task.clone()));
            if let Some(holder) = holder {
                transact::rewrite(self.context, &transaction, &holder)?;
            }
            return answer;
        }
        if self.args.task.is_none() && transaction.row(&task).is_some() {
            // Somebody took the name that was made up for this one.
            return Err(StateError::Raced { what: format!("task `{task}`") }.into());
        }
        let at = place.checkpoint();
        if let Some(at) = &at {
            refuse_stopped_run(transaction.run(), at, None)?;
        }
        let fresh = self.context.fresh_attempt()?;
        let request = Reserve {
            task: task.clone(),
            parent: place.parent,
            ancestors: place.ancestors,
            workflow_task: place.workflow_task,
            owner: owner(self.context, &self.args.owner)?.unwrap_or_default(),
            fresh: fresh.clone(),
        };
        let reserved = self.judge(&transaction, &request, &plan.shared)?;
        transact::sync_rows(&transaction, &plan.shared)?;
        let old = self.args.replaces.as_ref().and_then(|old| transaction.row(old));
        let run = at
            .as_ref()
            .zip(old)
            .map(|(at, old)| replaced(transaction.run(), at, old, (&task, &fresh), &self.context.call()));
        let run = run.transpose()?;
        self.commit(transaction, reserved, run, &fresh)
    }

    fn read_old(&self, old: &Name) -> Result<Row, Failure> {
        Ok(self.store.read_task(old)?.ok_or_else(|| no_task(old))?.row)
    }

    /// The place of the new task. What the claim or the parent's own row knows may be left out, and may not
    /// be contradicted.
    fn place(&self, old: Option<&Row>) -> Result<Place, Failure> {
        if let Some(old) = old {
            let agrees = self.args.parent.as_ref().is_none_or(|parent| *parent == old.parent_workspace_id);
            if !agrees || !(self.args.ancestors.is_empty() || self.args.ancestors == old.ancestors) {
                return Err(Failure::usage(format!(
                    "a replacement has the parent and the ancestors of `{}`; leave --parent and --ancestor out",
                    old.task_id
                )));
            }
            let step = old.task_attempt_retired_by.as_ref().map(|claim| WorkflowTask {
                run_id: claim.run_id.clone(),
                step_id: claim.step_id.clone(),
                input_hash: claim.input_hash.clone(),
                extra: Extra::new(),
            });
            return Ok(Place {
                parent: old.parent_workspace_id.clone(),
                ancestors: old.ancestors.clone(),
                workflow_task: step,
            });
        }
        let parent = self.args.parent.clone().ok_or_else(|| Failure::usage("--parent is missing"))?;
        let ancestors = ancestors_of(self.store, &parent, &self.args.ancestors)?;
        Ok(Place { parent, ancestors, workflow_task: None })
    }

    /// The given name, or the first free `<run>.<step>.<n>`; a name this very call made before counts as free.
    fn name(&self, place: &Place, old: Option<&Row>) -> Result<Name, Failure> {
        if let Some(task) = &self.args.task {
            return Ok(task.clone());
        }
        if let (Some(old), None) = (old, &place.workflow_task) {
            return Err(reservation::not_claimed(old).into());
        }
        let step = place.workflow_task.as_ref().ok_or_else(|| Failure::usage("no task is named"))?;
        for n in 1_u64.. {
            let name = Name::parse(&format!("{}.{}.{n}", step.run_id, step.step_id)).map_err(too_long)?;
            match self.store.read_task(&name)? {
                Some(document) if self.seen(&document.row) == Seen::Never => {}
                Some(_) | None => return Ok(name),
            }
        }
        Err(Failure::internal("every number is taken"))
    }

    fn seen<'r>(&self, row: &'r Row) -> Seen<'r> {
        row.requests.seen(&self.context.request_id, &self.digest)
    }

    /// A name is taken for ever, so a taken one is refused without waiting. One that was made up is only made up anew.
    fn refuse_unlocked(&self, task: &Name) -> Result<(), Failure> {
        if self.args.task.is_none() {
            return Ok(());
        }
        match self.store.read_task(task)? {
            Some(document) if self.seen(&document.row) == Seen::Never => {
                Ok(reservation::refuse_taken(Some(&document.row))?)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn answered_before(&self, transaction: &Transaction<'_>, task: &Name) -> Option<Result<Answer, Failure>> {
        let rows = [transaction.row(task), self.args.replaces.as_ref().and_then(|old| transaction.row(old))];
        rows.into_iter().flatten().find_map(|row| match self.seen(row) {
            Seen::Never => None,
            Seen::Before(record) => {
                Some(handout::repeated(self.context, self.keys, record, self.args.token_file.as_deref()))
            }
            Seen::ForAnother(record) => Some(Err(repeats::reused(self.context, record))),
        })
    }

    fn judge(
        &self,
        transaction: &Transaction<'_>,
        request: &Reserve,
        ancestors: &[Name],
    ) -> Result<Reserved, Failure> {
        let existing = transaction.row(&request.task);
        let call = self.context.call();
        let reserved = match &self.args.replaces {
            None => reservation::reserve(existing, request, &call)?,
            Some(old) => {
                let old = transaction.document(old).ok_or_else(|| no_task(old))?;
                let reports = evidence::reports(self.store, old);
                let old = &old.row;
                let nonce = self.args.nonce.as_deref().and_then(|text| Nonce::parse(text).ok());
                let spending = Spending { nonce: nonce.as_ref(), reports: &reports };
                reservation::replace(existing, old, &spending, request, &call)?
            }
        };
        if let Some(ancestor) = stopped_ancestor(transaction, ancestors) {
            let message =
                format!("ancestor `{ancestor}` is stopped, so `{}` is not reserved under it", request.task);
            let refusal = Refusal::new(Code::AncestorStopped, message).fact("ancestor", ancestor.as_str());
            return Err(Failure::Refused(Box::new(refusal)));
        }
        Ok(reserved)
    }

    fn commit(
        &self,
        transaction: Transaction<'_>,
        reserved: Reserved,
        mut run: Option<Run>,
        fresh: &AttemptId,
    ) -> Result<Answer, Failure> {
        let Reserved { mut row, old, said } = reserved;
        let grant =
            Grant { tokens_of: Some(fresh.clone()), hint: pid_hint(&self.args.owner), ..Grant::default() };
        row.remember(repeats::record(self.context, &self.digest, &said, &grant));
        if let Some(run) = &mut run {
            run.remember(repeats::record(self.context, &self.digest, &said, &grant));
        }
        let mut rows = vec![*row];
        if let Some(mut old) = old {
            old.remember(repeats::record(self.context, &self.digest, &said, &grant));
            rows.push(*old);
        }
        let writes = Writes { rows, run, ..Writes::default() };
        let out = Handout { said, grant: &grant, token_file: self.args.token_file.as_deref() };
        handout::commit(self.context, self.keys, transaction, writes, out)
    }
}

/// The ancestors of a task under `parent`, nearest first: a parent that is a task itself knows its own.
pub(super) fn ancestors_of(store: &Store, parent: &Name, given: &[Name]) -> Result<Vec<Name>, Failure> {
    let Some(row) = store.read_task(parent)?.map(|document| document.row) else {
        let mut line = std::iter::once(parent).chain(given);
        let mut seen = HashSet::new();
        return match line.find(|name| !seen.insert(*name)) {
            Some(twice) => Err(Failure::usage(format!("the ancestor `{twice}` is named twice"))),
            None => Ok(given.to_vec()),
        };
    };
    let known = lineage_up(store, &row.parent_workspace_id, &row.ancestors)?;
    if given.is_empty() || given == known {
        return Ok(known);
    }
    let known: Vec<&str> = known.iter().map(Name::as_str).collect();
    Err(Failure::usage(format!(
        "task `{parent}` has the ancestors {}; leave --ancestor out or name these, nearest first",
        known.join(", ")
    )))
}

#[allow(clippy::needless_pass_by_value, reason = "used as a function of map_err")]
fn too_long(error: InvalidId) -> Failure {
    Failure::usage(format!("run and step are too long for a made-up task name ({error}); name the task"))
}
