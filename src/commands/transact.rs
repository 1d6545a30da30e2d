//! One judged change of one task: read, lock, remember, judge, commit, answer. Every verb goes through here,
//! so that repeats, unlocked refusals and durability are decided in one place.

use std::cell::{Cell, OnceCell};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::answer::Answer;
use crate::protocol::codes::Code;
use crate::protocol::ids::{AttemptId, Name, SendId};
use crate::protocol::lineage::ReceiptEvidence;
use crate::protocol::requests::{RequestRecord, Seen};
use crate::protocol::row::{Extra, Row};
use crate::protocol::state::shell_word;
use crate::protocol::verdict::{Call, Judged, OwnerLife, ReceiptDue, Refusal, Said, Verdict};
use crate::state::{Document, LockPlan, LockWait, ReceiptWrite, StateError, Store, Transaction, Writes, hex};

use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::tokens::Keys;

/// Whether the rules look at the ancestors, which then are held still until the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ancestors {
    Held,
    NotLookedAt,
}

/// One call on one task.
pub(crate) struct TaskCall<'a> {
    pub(crate) context: &'a Context,
    pub(crate) store: &'a Store,
    pub(crate) keys: &'a Keys,
    pub(crate) task: &'a Name,
    pub(crate) ancestors: Ancestors,
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

/// What a granted call hands out besides its facts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grant {
    /// Print the tokens of this attempt.
    pub(crate) tokens_of: Option<AttemptId>,
    /// The send this call is about: the call is remembered as long as that is undischarged.
    pub(crate) send: Option<SendId>,
    /// The answer authorises an act, and is given once.
    pub(crate) authorises: bool,
    /// A hint beside the answer.
    pub(crate) hint: Option<String>,
}

/// A digest of the parts of a request, independent of their spelling on the command line.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut digest = hex(&hasher.finalize());
    digest.truncate(DIGEST_LEN);
    digest
}

/// How many hex digits of its SHA-256 a request is told from another by.
const DIGEST_LEN: usize = 32;

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
        Ok(LockPlan { shared, exclusive: vec![self.task.clone()] })
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
                let row = self.remembering(*row, &said, &granted);
                commit(
                    self.context,
                    transaction,
                    Writes { rows: vec![row], receipts: receipts(receipt), report: None },
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
                    commit(
                        self.context,
                        transaction,
                        Writes { rows: vec![row], receipts: Vec::new(), report: None },
                    )?;
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
        granted(self.context, self.keys, said, grant)
    }

    /// The first answer again, byte for byte; but an answer that authorised an act is given once.
    fn repeated(&self, record: &RequestRecord) -> Result<Answer, Failure> {
        repeated(self.context, self.keys, record)
    }

    fn reused(&self, record: &RequestRecord) -> Failure {
        reused(self.context, record)
    }
}

/// The answer to a granted call.
pub(crate) fn granted(context: &Context, keys: &Keys, said: Said, grant: &Grant) -> Answer {
    let mut answer = Answer::new(context.command, said.code, said.message);
    answer.fields = said.facts;
    answer.hint.clone_from(&grant.hint);
    if let Some(attempt) = &grant.tokens_of {
        add_tokens(&mut answer, keys, attempt);
    }
    answer
}

/// Adds the tokens of an attempt to an answer.
fn add_tokens(answer: &mut Answer, keys: &Keys, attempt: &AttemptId) {
    answer.fields.insert("token".to_owned(), json!(keys.owner_token(attempt)));
    answer.fields.insert("workerToken".to_owned(), json!(keys.worker_token(attempt)));
}

/// What a row remembers of a granted call. Tokens are left out: they are computed again.
pub(crate) fn record(context: &Context, digest: &str, said: &Said, grant: &Grant) -> RequestRecord {
    let mut answer = Extra::new();
    answer.insert("code".to_owned(), json!(said.code.as_str()));
    answer.insert("message".to_owned(), json!(said.message));
    answer.insert("facts".to_owned(), Value::Object(said.facts.clone()));
    if let Some(hint) = &grant.hint {
        answer.insert("hint".to_owned(), json!(hint));
    }
    if let Some(attempt) = &grant.tokens_of {
        answer.insert("tokensOf".to_owned(), json!(attempt));
    }
    RequestRecord {
        request_id: context.request_id.clone(),
        command: context.command.to_owned(),
        digest: digest.to_owned(),
        answer,
        send_id: grant.send.clone(),
        authorised: grant.authorises,
        extra: Extra::new(),
    }
}

/// Answers a call from its record.
pub(crate) fn repeated(context: &Context, keys: &Keys, record: &RequestRecord) -> Result<Answer, Failure> {
    let text = |key: &str| record.answer.get(key).and_then(Value::as_str);
    let facts = record.answer.get("facts").and_then(Value::as_object).cloned().unwrap_or_default();
    let message = text("message").unwrap_or_default().to_owned();
    if record.authorised {
        let fact = |key: &str| facts.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (task, turn) = (shell_word(&fact("taskId")), fact("turnId"));
        let message = format!("this call was answered before, and that answer authorised turn {turn}, once");
        let hint = format!(
            "nobody may start on this answer; who knows that the turn never started may settle it: \
             lychgate settle {task} --turn {turn}"
        );
        let refusal = Refusal { facts, ..Refusal::new(Code::AlreadyAdmitted, message) };
        return Err(Failure::Refused(Box::new(refusal.hint(hint))));
    }
    let code = text("code").and_then(Code::parse).ok_or_else(|| {
        Failure::internal(format!("the remembered answer of {} has no known code", record.request_id))
    })?;
    let mut answer = Answer::new(context.command, code, message);
    answer.fields = facts;
    answer.hint = text("hint").map(str::to_owned);
    if let Some(attempt) = text("tokensOf").and_then(|text| AttemptId::parse(text).ok()) {
        add_tokens(&mut answer, keys, &attempt);
    }
    Ok(answer)
}

/// The refusal of a request id that was used for another call.
pub(crate) fn reused(context: &Context, record: &RequestRecord) -> Failure {
    let message = format!(
        "request id `{}` was used for another call (`{}`), so this is not a repeat of it",
        context.request_id, record.command
    );
    Failure::Refused(Box::new(
        Refusal::new(Code::RequestIdReused, message).hint("take a new id for a new call"),
    ))
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
