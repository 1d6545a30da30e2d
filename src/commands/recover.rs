//! `recover`: the pass after a restart. It does what may be done without guessing, and lists the rest.

use serde_json::{Value, json};

use crate::answer::{Answer, escaped};
use crate::cli::RecoverArgs;
use crate::protocol::codes::{Code, Exit};
use crate::protocol::ids::Name;
use crate::protocol::recovery::{Recovery, RecoverySight, recover};
use crate::protocol::requests::Seen;
use crate::protocol::row::Row;
use crate::protocol::verdict::{Facts, OwnerLife, ReceiptDue, Said};
use crate::state::{Access, LockPlan, LockWait, StateError, Store, Transaction, Writes, chain, user};

use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::repeats::{Grant, digest, record};
use super::transact::{commit, no_task, receipts, rewrite};

pub(crate) fn run(context: &Context, args: &RecoverArgs) -> Result<Answer, Failure> {
    let store = match Store::open(&context.root, Access::Change) {
        // A pass at every start of a machine must not fail where nothing was ever reserved.
        Err(StateError::NoRoot { .. }) if args.tasks.is_empty() => {
            let message = "0 task(s) recovered, 0 left alone, 0 at work";
            let none = || Vec::<Value>::new();
            let answer = Answer::new(context.command, Code::Recovered, message);
            return Ok(answer.field("recovered", none()).field("left", none()).field("atWork", 0));
        }
        opened => opened?,
    };
    for task in &args.tasks {
        store.read_task(task)?.ok_or_else(|| no_task(task))?;
    }
    let unproven = if args.unproven { "unproven" } else { "" };
    let mut pass = Pass {
        context,
        store: &store,
        unproven: args.unproven,
        digest: digest(&["recover", unproven]),
        done: Vec::new(),
        left: Vec::new(),
        n_at_work: 0,
        worst: None,
    };
    if args.tasks.is_empty() {
        store.sweep();
        for entry in store.tasks()? {
            match entry.doc {
                Ok(document) => pass.visit(&document.row.task_id),
                Err(error) => pass.leave(&entry.folder, error),
            }
        }
    } else {
        args.tasks.iter().for_each(|task| pass.visit(task));
    }
    Ok(pass.answer(args.strict))
}

struct Pass<'a> {
    context: &'a Context,
    store: &'a Store,
    unproven: bool,
    digest: String,
    done: Vec<Value>,
    left: Vec<Value>,
    n_at_work: usize,
    /// The failure that the exit status must tell: a change that is not proven durable, or an I/O error.
    worst: Option<StateError>,
}

impl Pass<'_> {
    /// One task. What goes wrong with it is told, and the pass goes on with the others.
    fn visit(&mut self, task: &Name) {
        if let Err(failure) = self.try_visit(task) {
            match failure {
                Failure::State(error) => self.leave(task.as_str(), error),
                other => {
                    let answer = other.into_answer(self.context.command);
                    self.left.push(
                        json!({ "taskId": task, "reasonCode": answer.code.as_str(), "why": answer.message }),
                    );
                }
            }
        }
    }

    fn leave(&mut self, task: &str, error: StateError) {
        let why = match &error {
            StateError::Busy { .. } => "another call holds its row right now".to_owned(),
            error => chain(error),
        };
        self.left.push(json!({ "taskId": task, "reasonCode": error.code().as_str(), "why": why }));
        let weight = |error: &StateError| match error.code().exit() {
            Exit::Uncertain => 2,
            Exit::Io | Exit::Internal => 1,
            _ => 0,
        };
        if weight(&error) > self.worst.as_ref().map_or(0, weight) {
            self.worst = Some(error);
        }
    }

    fn try_visit(&mut self, task: &Name) -> Result<(), Failure> {
        let plan = LockPlan { exclusive: vec![task.clone()], ..LockPlan::default() };
        let transaction = self.store.begin(&plan, LockWait(self.context.lock_wait))?;
        let row = transaction.row(task).cloned().ok_or_else(|| no_task(task))?;
        if let Seen::Before(record) = row.requests.seen(&self.context.request_id, &self.digest) {
            let told = record.answer.get("facts").cloned().unwrap_or_default();
            self.done.push(told);
            return Ok(rewrite(self.context, &transaction, task)?);
        }
        let sight = self.sight(&row)?;
        match recover(&row, &sight, &self.context.call()) {
            Recovery::Fine => {}
            Recovery::AtWork => self.n_at_work += 1,
            Recovery::Left { why, words } => self.left.push(json!({
                "taskId": task, "attemptId": row.task_attempt_id, "taskStatus": row.task_status.as_str(),
                "reasonCode": why.as_str(), "why": words, "ownerAlive": sight.owner_life.as_str(),
                "owed": row.owed(),
            })),
            Recovery::Change { row: next, receipt, did, words } => {
                let told = crate::facts! {
                    "taskId": task, "did": did, "why": words, "from": row.state_word(), "to": next.state_word(),
                    "attemptId": next.task_attempt_id, "previousAttemptId": row.task_attempt_id,
                    "receipt": receipt.as_ref().map(|due| due.receipt.source.as_str()),
                };
                self.commit(transaction, *next, receipt, told)?;
            }
        }
        Ok(())
    }

    fn sight(&self, row: &Row) -> Result<RecoverySight, Failure> {
        let cleanups = row.settlement.iter().flat_map(|settlement| &settlement.closure.cleanups);
        let dead_debts = cleanups
            .filter(|cleanup| {
                cleanup.process.as_ref().is_some_and(|process| {
                    evidence::process_life(self.context, self.store, process).0 == OwnerLife::Dead
                })
            })
            .map(|cleanup| cleanup.cleanup_id.clone())
            .collect();
        Ok(RecoverySight {
            owner_life: evidence::owner_life(self.context, self.store, row).0,
            dead_debts,
            named_unproven: self.unproven,
            by: user(),
            fresh: self.context.fresh_attempt()?,
        })
    }

    fn commit(
        &mut self,
        transaction: Transaction<'_>,
        mut next: Row,
        receipt: Option<Box<ReceiptDue>>,
        told: Facts,
    ) -> Result<(), Failure> {
        let said = Said { code: Code::Recovered, message: String::new(), facts: told };
        next.remember(record(self.context, &self.digest, &said, &Grant::default()));
        commit(
            self.context,
            transaction,
            Writes { rows: vec![next], receipts: receipts(receipt), ..Writes::default() },
        )?;
        self.done.push(Value::Object(said.facts));
        Ok(())
    }

    fn answer(self, strict: bool) -> Answer {
        let (n_done, n_left) = (self.done.len(), self.left.len());
        let message = format!("{n_done} task(s) recovered, {n_left} left alone, {} at work", self.n_at_work);
        let (code, message) = match &self.worst {
            Some(error) => (error.code(), format!("{message}; {}", chain(error))),
            None if strict && n_left > 0 => (Code::RecoveryIncomplete, message),
            None => (Code::Recovered, message),
        };
        let mut answer = Answer::new(self.context.command, code, message);
        if n_left > 0 {
            answer.hint =
                Some("each of these says what is missing: lychgate inspect TASK --explain".to_owned());
        }
        // What was left is said to people, too, where the exit status refuses it.
        answer.body = Some(self.told(&answer.message));
        answer.fields.insert("recovered".to_owned(), Value::Array(self.done));
        answer.fields.insert("left".to_owned(), Value::Array(self.left));
        answer.fields.insert("atWork".to_owned(), json!(self.n_at_work));
        answer
    }

    fn told(&self, summary: &str) -> String {
        use std::fmt::Write as _;
        // A folder's name and a path may hold a line feed, which a body keeps.
        let text = |value: &Value, key: &str| escaped(value.get(key).and_then(Value::as_str).unwrap_or("?"));
        let mut told = format!("{summary}\n");
        for done in &self.done {
            // Writing to a String cannot fail.
            let _ =
                writeln!(told, "  {}: {} ({})", text(done, "taskId"), text(done, "did"), text(done, "why"));
        }
        for left in &self.left {
            let (task, reason) = (text(left, "taskId"), text(left, "reasonCode"));
            let _ = writeln!(told, "  {task}: left alone, {reason} ({})", text(left, "why"));
        }
        told
    }
}
