//! One judged change of one task: read, lock, remember, judge, commit, answer. Every verb goes through here,
//! so that repeats, unlocked refusals and durability are decided in one place.

use std::cell::{Cell, OnceCell};
use std::time::Duration;

use serde_json::json;

use crate::answer::Answer;
use crate::protocol::codes::Code;
use crate::protocol::ids::Name;
use crate::protocol::lineage::ReceiptEvidence;
use crate::protocol::requests::{RequestRecord, Seen};
use crate::protocol::row::Row;
use crate::protocol::run::Run;
use crate::protocol::verdict::{Call, Judged, OwnerLife, ReceiptDue, Refusal, Said, Verdict};
use crate::state::{
    Document, LockPlan, LockWait, ReceiptWrite, RunKey, StateError, Store, Transaction, Writes,
};

use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::repeats::{self, Grant, record, repeated, reused};
use super::tokens::Keys;

/// Whether the rules look at the ancestors, which then are held still until the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ancestors {
    Held,
    NotLookedAt,
}

/// What a change of a task does to the checkpoint of its step.
pub(crate) struct RunHook<'a> {
    /// The run, which is locked first.
    pub(crate) key: RunKey,
    /// The run as the change leaves it, or `None` where it stays as it is.
    #[allow(clippy::type_complexity, reason = "one function of the rules, as it is")]
    pub(crate) change: &'a dyn Fn(Option<&Run>, &Row, &Call) -> Result<Option<Run>, Box<Refusal>>,
}

/// One call on one task.
pub(crate) struct TaskCall<'a> {
    pub(crate) context: &'a Context,
    pub(crate) store: &'a Store,
    pub(crate) keys: &'a Keys,
    pub(crate) task: &'a Name,
    pub(crate) ancestors: Ancestors,
    /// The run whose checkpoint changes in the same commit.
    pub(crate) checkpoint: Option<&'a RunHook<'a>>,
    /// Everything the call asked for, so that the same request id with another wish is refused.
    pub(crate) digest: String,
}

/// What the rules may look at around the row. Evidence is read when it is asked for, and remembered, so that
/// what an answer rests on can be synced before the commit.
pub(crate) struct Sight<'a> {
    context: &'a Context,
    store: &'a Store,
    document: &'a Document,
    stopped_ancestor: Option<Name>,
    owner_life: OnceCell<OwnerLife>,
    receipt: OnceCell<ReceiptEvidence>,
    rests_on_reports: Cell<bool>,
}

impl Sight<'_> {
    pub(crate) fn owner_life(&self) -> OwnerLife {
        *self.owner_life.get_or_init(|| evidence::owner_life(self.context, self.store, &self.document.row).0)
    }

    pub(crate) fn receipt(&self) -> ReceiptEvidence {
        self.receipt.get_or_init(|| evidence::receipt(self.store, self.document)).clone()
    }

    pub(crate) fn reports(&self) -> crate::protocol::classify::ReportEvidence {
        self.rests_on_reports.set(true);
        evidence::reports(self.store, self.document)
    }

    pub(crate) fn stopped_ancestor(&self) -> Option<Name> {
        self.stopped_ancestor.clone()
    }
}

/// The refusal for a task without a row.
pub(crate) fn no_task(task: &Name) -> Failure {
    let refusal = Refusal::new(Code::NoTaskRecord, format!("there is no task `{task}` in this root"))
        .hint("see which there are: lychgate inspect")
        .fact("taskId", task.as_str());
    Failure::Refused(Box::new(refusal))
}

/// Every ancestor of a task, nearest first: the recorded ones, and those above the topmost of them if that is
/// a task by now. A chain that comes back to itself ends there.
pub(crate) fn lineage_up(store: &Store, parent: &Name, recorded: &[Name]) -> Result<Vec<Name>, Failure> {
    let mut line: Vec<Name> = std::iter::once(parent).chain(recorded).cloned().collect();
    while let Some(top) = line.last() {
        let Some(row) = store.read_task(top)?.map(|document| document.row) else { break };
        let above = std::iter::once(row.parent_workspace_id).chain(row.ancestors);
        let fresh: Vec<Name> = above.filter(|name| !line.contains(name)).collect();
        if fresh.is_empty() {
            break;
        }
        line.extend(fresh);
    }
    Ok(line)
}

/// Takes the locks. Where they are not free at once, `refuse` is asked whether what can be read without them
/// already says no for good; then nobody waits.
pub(crate) fn begin<'s>(
    context: &Context,
    store: &'s Store,
    plan: &LockPlan,
    refuse: &dyn Fn() -> Result<(), Failure>,
) -> Result<Transaction<'s>, Failure> {
    match store.begin(plan, LockWait(Duration::ZERO)) {
        Err(StateError::Busy { .. }) => {
            refuse()?;
            Ok(store.begin(plan, LockWait(context.lock_wait))?)
        }
        other => Ok(other?),
    }
}

/// Commits, and notes that the answer of this call must not get lost unnoticed.
pub(crate) fn commit(
    context: &Context,
    transaction: Transaction<'_>,
    writes: Writes,
) -> Result<(), StateError> {
    transaction.commit(writes)?;
    context.answers_change.set(true);
    Ok(())
}

/// Makes what an earlier call changed durable before it is answered again.
pub(crate) fn rewrite(
    context: &Context,
    transaction: &Transaction<'_>,
    task: &Name,
) -> Result<(), StateError> {
    transaction.rewrite(task)?;
    context.answers_change.set(true);
    Ok(())
}

/// The same for a run.
pub(crate) fn rewrite_run(context: &Context, transaction: &Transaction<'_>) -> Result<(), StateError> {
    transaction.rewrite_run()?;
    context.answers_change.set(true);
    Ok(())
}

/// The same for a session.
pub(crate) fn rewrite_session(context: &Context, transaction: &Transaction<'_>) -> Result<(), StateError> {
    transaction.rewrite_session()?;
    context.answers_change.set(true);
    Ok(())
}

impl TaskCall<'_> {
    fn sight<'s>(&'s self, document: &'s Document, stopped_ancestor: Option<Name>) -> Sight<'s> {
        Sight {
            context: self.context,
            store: self.store,
            document,
            stopped_ancestor,
            owner_life: OnceCell::new(),
            receipt: OnceCell::new(),
            rests_on_reports: Cell::new(false),
        }
    }

    /// The locks of the call: the ancestors root first, shared; then the task.
    fn plan(&self, row: &Row) -> Result<LockPlan, Failure> {
        let mut shared = match self.ancestors {
            Ancestors::Held => lineage_up(self.store, &row.parent_workspace_id, &row.ancestors)?,
            Ancestors::NotLookedAt => Vec::new(),
        };
        shared.reverse();
        let run = self.checkpoint.map(|hook| hook.key.clone());
        Ok(LockPlan { run, shared, exclusive: vec![self.task.clone()], ..LockPlan::default() })
    }

    /// Runs the whole call. `grant` says what the granted answer hands out.
    pub(crate) fn run(
        &self,
        judge: &dyn Fn(&Row, &Sight<'_>, &Call) -> Judged,
        grant: &dyn Fn(&Said) -> Grant,
    ) -> Result<Answer, Failure> {
        let seen = self.store.read_task(self.task)?.ok_or_else(|| no_task(self.task))?;
        let refuse = || self.refuse_unlocked(&seen, judge);
        let plan = self.plan(&seen.row)?;
        crate::seam::pause("looked");
        let transaction = begin(self.context, self.store, &plan, &refuse)?;
        crate::seam::pause("locked-task");
        let document = transaction.document(self.task).cloned().ok_or_else(|| no_task(self.task))?;
        match document.row.requests.seen(&self.context.request_id, &self.digest) {
            Seen::Never => {}
            Seen::Before(record) => {
                let answer = self.repeated(record);
                rewrite(self.context, &transaction, self.task)?;
                return answer;
            }
            Seen::ForAnother(record) => return Err(self.reused(record)),
        }
        let stopped = stopped_ancestor(&transaction, &plan.shared);
        let sight = self.sight(&document, stopped);
        match judge(&document.row, &sight, &self.context.call()) {
            Ok(Verdict::Change { row, receipt, said }) => {
                self.sync_evidence(&transaction, &sight, &plan.shared)?;
                let granted = grant(&said);
                let run = match self.checkpoint {
                    Some(hook) => (hook.change)(transaction.run(), &row, &self.context.call())?,
                    None => None,
                };
                let row = self.remembering(*row, &said, &granted);
                commit(
                    self.context,
                    transaction,
                    Writes { rows: vec![row], receipts: receipts(receipt), run, ..Writes::default() },
                )?;
                Ok(self.answer(said, &granted))
            }
            Ok(Verdict::Same(said)) => {
                self.sync_evidence(&transaction, &sight, &plan.shared)?;
                rewrite(self.context, &transaction, self.task)?;
                Ok(self.answer(said, &Grant::default()))
            }
            Err(mut refusal) => {
                refusal.facts.entry("taskId").or_insert_with(|| json!(self.task));
                if let Some(row) = refusal.leaves.take() {
                    let row = self.remembering_refusal(*row, &refusal);
                    commit(self.context, transaction, Writes { rows: vec![row], ..Writes::default() })?;
                }
                Err(Failure::Refused(refusal))
            }
        }
    }

    /// A refusal that no later state can turn into a grant is answered without waiting for the lock.
    fn refuse_unlocked(
        &self,
        seen: &Document,
        judge: &dyn Fn(&Row, &Sight<'_>, &Call) -> Judged,
    ) -> Result<(), Failure> {
        if seen.row.requests.seen(&self.context.request_id, &self.digest) != Seen::Never {
            return Ok(());
        }
        match judge(&seen.row, &self.sight(seen, None), &self.context.call()) {
            Err(mut refusal) if refusal.is_permanent() => {
                refusal.facts.entry("taskId").or_insert_with(|| json!(self.task));
                Err(Failure::Refused(refusal))
            }
            _ => Ok(()),
        }
    }

    /// Syncs what the answer rests on, so that no power cut takes back the ground under a commit.
    #[allow(clippy::unused_self, reason = "it belongs to the call")]
    fn sync_evidence(
        &self,
        transaction: &Transaction<'_>,
        sight: &Sight<'_>,
        ancestors: &[Name],
    ) -> Result<(), Failure> {
        let row = &sight.document.row;
        if let (Some(ReceiptEvidence::Found), Some(attempt)) = (sight.receipt.get(), &row.task_attempt_id) {
            transaction.sync_receipt(&row.parent_workspace_id, &row.task_id, attempt)?;
        }
        if let (true, Some(report)) = (sight.rests_on_reports.get(), row.counted_report()) {
            transaction.sync_report(&row.parent_workspace_id, &row.task_id, report.attempt_id.as_ref())?;
        }
        sync_rows(transaction, ancestors)
    }

    fn remembering(&self, mut row: Row, said: &Said, grant: &Grant) -> Row {
        row.remember(record(self.context, &self.digest, said, grant));
        row
    }

    /// A refusal that changes something is repeated like any other answer that tells of a change.
    fn remembering_refusal(&self, row: Row, refusal: &Refusal) -> Row {
        let said =
            Said { code: refusal.code, message: refusal.message.clone(), facts: refusal.facts.clone() };
        self.remembering(row, &said, &Grant { hint: refusal.hint.clone(), ..Grant::default() })
    }

    fn answer(&self, said: Said, grant: &Grant) -> Answer {
        repeats::granted(self.context, self.keys, said, grant)
    }

    /// The first answer again, byte for byte; but an answer that authorised an act is given once.
    fn repeated(&self, record: &RequestRecord) -> Result<Answer, Failure> {
        repeated(self.context, self.keys, record)
    }

    fn reused(&self, record: &RequestRecord) -> Failure {
        reused(self.context, record)
    }
}

/// Syncs the rows an answer rests on.
pub(crate) fn sync_rows(transaction: &Transaction<'_>, tasks: &[Name]) -> Result<(), Failure> {
    for task in tasks.iter().filter(|task| transaction.row(task).is_some()) {
        transaction.sync_row(task)?;
    }
    Ok(())
}

/// The first ancestor, from the root on, whose current attempt is closed by a Stop.
pub(crate) fn stopped_ancestor(transaction: &Transaction<'_>, ancestors: &[Name]) -> Option<Name> {
    ancestors.iter().find(|name| transaction.row(name).is_some_and(Row::is_stopped)).cloned()
}

/// The receipt of a change, as the store takes it.
pub(crate) fn receipts(due: Option<Box<ReceiptDue>>) -> Vec<ReceiptWrite> {
    due.into_iter().map(|due| ReceiptWrite { receipt: due.receipt, workspaces: due.workspaces }).collect()
}
