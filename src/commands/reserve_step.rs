//! `reserve --run`: the one place where a workflow step gets a child. The checkpoint, the child so far and the
//! new child are read, judged and written under their locks, in one commit.

use serde_json::json;

use crate::answer::Answer;
use crate::cli::{ReserveArgs, TokenArgs};
use crate::protocol::checkpoint::other_inputs;
use crate::protocol::codes::Code;
use crate::protocol::ids::{AttemptId, Name};
use crate::protocol::requests::{RequestLog, Seen};
use crate::protocol::reservation::{self, Reserve, Reserved, Spending};
use crate::protocol::run::{Run, Step};
use crate::protocol::verdict::{Credentials as _, Refusal, Role};
use crate::protocol::workflow::{Checkpoint, Prior, StepDecision, decide, refuse_stopped_run};
use crate::protocol::xum::runs;
use crate::state::{
    Access, Document, LockPlan, ReceiptWrite, RunKey, StateError, Store, Transaction, Writes,
};

use super::children;
use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::handout::{self, Handout};
use super::input;
use super::owner::owner;
use super::repeats::{self, Grant, digest};
use super::reserve::ancestors_of;
use super::tokens::Keys;
use super::transact::{self, begin, lineage_up, receipts, stopped_ancestor};

/// How often a reservation starts over when the step's child or the new name changed before its locks were held.
const ROUNDS_MAX: usize = 64;

pub(crate) fn run(context: &Context, args: &ReserveArgs) -> Result<Answer, Failure> {
    let (Some(run), Some(step), Some(parent)) = (&args.run, &args.step, &args.parent) else {
        return Err(Failure::usage("--run, --step and --parent belong together"));
    };
    let input_hash = input::required(step, &args.input)?;
    let at = Checkpoint { parent: parent.clone(), run: run.clone(), step: step.clone(), input_hash };
    let store = Store::open(&context.root, Access::Write)?;
    let token = TokenArgs { token: args.prior_token.clone(), ..TokenArgs::default() };
    let keys = Keys::read(&store, &token, None)?;
    let key = RunKey { parent: parent.clone(), run: run.clone() };
    let digest = wish(args, &at);
    let job = Job { context, store: &store, keys: &keys, args, at, key, digest };
    for _ in 0..ROUNDS_MAX {
        match job.round() {
            Err(Failure::State(StateError::Raced { .. })) => {}
            done => return done,
        }
    }
    Err(Failure::State(StateError::Busy { what: format!("run `{run}`"), waited: context.lock_wait }))
}

fn wish(args: &ReserveArgs, at: &Checkpoint) -> String {
    let ancestors: Vec<&str> = args.ancestors.iter().map(Name::as_str).collect();
    digest(&[
        "reserve --run",
        args.task.as_ref().map_or("", Name::as_str),
        at.parent.as_str(),
        &ancestors.join("\n"),
        args.owner.owner.as_ref().map_or("", Name::as_str),
        &args.owner.owner_pid.map_or(String::new(), |pid| pid.to_string()),
        at.run.as_str(),
        at.step.as_str(),
        at.input_hash.as_str(),
        &args.resume.map_or(String::new(), |epoch| epoch.to_string()),
    ])
}

struct Job<'a> {
    context: &'a Context,
    store: &'a Store,
    keys: &'a Keys,
    args: &'a ReserveArgs,
    at: Checkpoint,
    key: RunKey,
    digest: String,
}

impl Job<'_> {
    fn round(&self) -> Result<Answer, Failure> {
        let seen = self.store.read_run(&self.key)?.map(|document| document.run);
        let prior = self.step(seen.as_ref())?.map(|step| step.task_id);
        let task = self.name()?;
        let ancestors = ancestors_of(self.store, &self.at.parent, &self.args.ancestors)?;
        let mut shared = lineage_up(self.store, &self.at.parent, &ancestors)?;
        shared.reverse();
        if shared.contains(&task) {
            return Err(Failure::usage(format!("`{task}` cannot be an ancestor of itself")));
        }
        let exclusive = std::iter::once(task.clone()).chain(prior.clone()).collect();
        let plan = LockPlan { run: Some(self.key.clone()), shared, exclusive, ..LockPlan::default() };
        crate::seam::pause("looked");
        let transaction = begin(self.context, self.store, &plan, &|| Ok(()))?;
        crate::seam::pause("locked-step");
        if let Some(answer) = self.answered_before(&transaction, &plan.exclusive) {
            return answer;
        }
        // What was read without the locks only chose them. If the step has another child by now, or somebody took
        // the name that was made up for this one, look anew. A run that was not there yet could not be locked: whoever
        // made it meanwhile may have given the step its child.
        let step = self.step(transaction.run())?;
        let is_taken = self.args.task.is_none() && transaction.row(&task).is_some();
        let is_made = transaction.run().is_none() && self.store.read_run(&self.key)?.is_some();
        if is_taken || is_made || step.as_ref().map(|step| &step.task_id) != prior.as_ref() {
            return Err(StateError::Raced { what: format!("task `{task}`") }.into());
        }
        self.judged(transaction, &task, ancestors, step.as_ref(), &plan.shared)
    }

    fn step(&self, run: Option<&Run>) -> Result<Option<Step>, Failure> {
        children::of_step(self.store, run, &self.at, &self.context.call())
    }

    /// The given name, or the first free `<run>.<step>.<n>`.
    fn name(&self) -> Result<Name, Failure> {
        if let Some(task) = &self.args.task {
            return Ok(task.clone());
        }
        for n in 1_u64.. {
            let name = Name::parse(&format!("{}.{}.{n}", self.at.run, self.at.step)).map_err(|error| {
                Failure::usage(format!(
                    "run and step are too long for a made-up task name ({error}); name the task"
                ))
            })?;
            if self.store.read_task(&name)?.is_none() {
                return Ok(name);
            }
        }
        Err(Failure::internal("every number is taken"))
    }

    /// The answer this call was given before, as the run or the child it got remembers it.
    fn answered_before(
        &self,
        transaction: &Transaction<'_>,
        tasks: &[Name],
    ) -> Option<Result<Answer, Failure>> {
        let seen = |log: &RequestLog| match log.seen(&self.context.request_id, &self.digest) {
            Seen::Never => None,
            Seen::Before(record) => Some(Ok(record.clone())),
            Seen::ForAnother(record) => Some(Err(repeats::reused(self.context, record))),
        };
        let of_row = |task: &&Name| transaction.row(task).is_some_and(|row| seen(&row.requests).is_some());
        let holders: Vec<&Name> = tasks.iter().filter(of_row).collect();
        let rows = holders.iter().filter_map(|task| transaction.row(task)).map(|row| &row.requests);
        let mut logs = transaction.run().map(|run| &run.requests).into_iter().chain(rows);
        let record = match logs.find_map(seen)? {
            Ok(record) => record,
            Err(reused) => return Some(Err(reused)),
        };
        let answer = handout::repeated(self.context, self.keys, &record, self.args.token_file.as_deref());
        let rewritten =
            holders.iter().try_for_each(|task| transact::rewrite(self.context, transaction, task));
        let rewritten = rewritten.and_then(|()| match transaction.run() {
            Some(_) => transact::rewrite_run(self.context, transaction),
            None => Ok(()),
        });
        Some(rewritten.map_err(Failure::from).and(answer))
    }

    fn judged(
        &self,
        transaction: Transaction<'_>,
        task: &Name,
        ancestors: Vec<Name>,
        step: Option<&Step>,
        shared: &[Name],
    ) -> Result<Answer, Failure> {
        let call = self.context.call();
        refuse_stopped_run(transaction.run(), &self.at, self.args.resume)?;
        let document = step.and_then(|step| transaction.document(&step.task_id)).cloned();
        let known = step.map(|step| self.known(&step.task_id, document.as_ref()));
        let (fresh, nonce) = (self.context.fresh_attempt()?, self.context.fresh_nonce()?);
        let decision = decide(step, known.as_ref(), &self.at, &nonce, &call);
        let mut run = transaction.run().cloned();
        let lifted = run.as_ref().is_some_and(|run| run.stopped.is_some());
        if let Some(run) = run.as_mut().filter(|_| lifted) {
            run.resume(&call);
        }
        if let StepDecision::No(refusal) = decision {
            return Err(self.refused(transaction, *refusal, run.filter(|_| lifted), document.as_ref()));
        }
        if let Some(ancestor) = stopped_ancestor(&transaction, shared) {
            let message = format!("ancestor `{ancestor}` is stopped, so `{task}` is not reserved under it");
            let refusal = Refusal::new(Code::AncestorStopped, message).fact("ancestor", ancestor.as_str());
            return Err(Failure::Refused(Box::new(refusal)));
        }
        let request = Reserve {
            task: task.clone(),
            parent: self.at.parent.clone(),
            ancestors,
            workflow_task: Some(self.at.work()),
            owner: owner(self.context, &self.args.owner)?.unwrap_or_default(),
            fresh: fresh.clone(),
        };
        let existing = transaction.row(task);
        let (reserved, due) = match decision {
            StepDecision::Replace { old, nonce: Some(nonce), receipt } => {
                let reports = known.as_ref().map(|known| known.evidence.reports.clone());
                let reports =
                    reports.ok_or_else(|| Failure::internal("a replacement without a prior child"))?;
                let spending = Spending { nonce: Some(&nonce), reports: &reports };
                (reservation::replace(existing, &old, &spending, &request, &call)?, receipts(receipt))
            }
            StepDecision::Replace { old, nonce: None, receipt } => {
                (reservation::replace_legacy(existing, &old, &request, &call)?, receipts(receipt))
            }
            StepDecision::Fresh | StepDecision::No(_) => {
                (reservation::reserve(existing, &request, &call)?, Vec::new())
            }
        };
        self.sync(&transaction, document.as_ref(), due.is_empty(), shared)?;
        let mut run = run.unwrap_or_else(|| Run::new(&self.at.run, &self.at.parent, &call));
        run.start_step(&self.at, step, task, &fresh, &call);
        self.commit(transaction, reserved, due, run, &fresh)
    }

    fn known<'p>(&self, task: &'p Name, document: Option<&'p Document>) -> Prior<'p> {
        let row = document.map(|document| &document.row);
        let role =
            row.and_then(|row| row.task_attempt_id.as_ref()).map_or(Role::Absent, |id| self.keys.role(id));
        let known = |document| evidence::of(self.context, self.store, document, role);
        let evidence = document.map_or_else(evidence::none, known);
        Prior { task, row, evidence }
    }

    /// Syncs what the commit rests on and does not write itself.
    fn sync(
        &self,
        transaction: &Transaction<'_>,
        document: Option<&Document>,
        by_receipt: bool,
        shared: &[Name],
    ) -> Result<(), Failure> {
        transact::sync_rows(transaction, shared)?;
        let Some(row) = document.map(|document| &document.row) else { return Ok(()) };
        if let (true, Some(attempt)) = (by_receipt, &row.task_attempt_id)
            && document.is_some_and(|document| {
                evidence::receipt(self.store, document) == crate::protocol::lineage::ReceiptEvidence::Found
            })
        {
            transaction.sync_receipt(&row.parent_workspace_id, &row.task_id, attempt)?;
        }
        if let Some(report) = row.counted_report() {
            transaction.sync_report(&row.parent_workspace_id, &row.task_id, report.attempt_id.as_ref())?;
        }
        Ok(())
    }

    /// A refusal names the child, its report, and the step's other inputs. A latch that was lifted on purpose
    /// stays lifted.
    fn refused(
        &self,
        transaction: Transaction<'_>,
        mut refusal: Refusal,
        lifted: Option<Run>,
        document: Option<&Document>,
    ) -> Failure {
        let others: Vec<String> =
            other_inputs(transaction.run(), &self.at).into_iter().map(str::to_owned).collect();
        if !others.is_empty() {
            refusal.facts.insert("otherInputs".to_owned(), json!(others));
        }
        if let Some((row, report)) =
            document.and_then(|d| d.row.counted_report().map(|report| (&d.row, report)))
        {
            let path =
                self.store.report_path(&row.parent_workspace_id, &row.task_id, report.attempt_id.as_ref());
            refusal.facts.insert("reportPath".to_owned(), json!(path.display().to_string()));
        }
        if refusal.code == Code::Completed && !refusal.facts.contains_key("reportPath") {
            let result = transaction.run().and_then(runs::result_elsewhere);
            refusal.facts.extend(result.map(|path| ("resultPath".to_owned(), json!(path))));
        }
        if let Some(run) = lifted {
            let writes = Writes { run: Some(run), ..Writes::default() };
            if let Err(error) = transact::commit(self.context, transaction, writes) {
                return error.into();
            }
        }
        Failure::Refused(Box::new(refusal))
    }

    fn commit(
        &self,
        transaction: Transaction<'_>,
        reserved: Reserved,
        receipts: Vec<ReceiptWrite>,
        mut run: Run,
        fresh: &AttemptId,
    ) -> Result<Answer, Failure> {
        let Reserved { mut row, old, mut said } = reserved;
        let others: Vec<&str> = other_inputs(Some(&run), &self.at);
        if !others.is_empty() {
            said.facts.insert("otherInputs".to_owned(), json!(others));
        }
        let hint = super::owner::pid_hint(&self.args.owner);
        let grant = Grant { tokens_of: Some(fresh.clone()), hint, ..Grant::default() };
        let record = repeats::record(self.context, &self.digest, &said, &grant);
        row.remember(record.clone());
        run.remember(record.clone());
        let mut rows = vec![*row];
        if let Some(mut old) = old {
            old.remember(record);
            rows.push(*old);
        }
        let writes = Writes { rows, receipts, run: Some(run), ..Writes::default() };
        let out = Handout { said, grant: &grant, token_file: self.args.token_file.as_deref() };
        handout::commit(self.context, self.keys, transaction, writes, out)
    }
}
