//! `recover`: the pass after a restart. It does what may be done without guessing, and lists the rest.

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::cli::RecoverArgs;
use crate::protocol::codes::{Code, Exit};
use crate::protocol::ids::Name;
use crate::protocol::recovery::{Recovery, RecoverySight, recover};
use crate::protocol::row::Row;
use crate::protocol::verdict::{Call, OwnerLife};
use crate::state::{Access, LockPlan, LockWait, StateError, Store, Transaction, Writes};

use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::transact::{commit, no_task, receipts};

pub(crate) fn run(context: &Context, args: &RecoverArgs) -> Result<Answer, Failure> {
    let store = Store::open(&context.root, Access::Write)?;
    let mut pass = Pass {
        context,
        store: &store,
        unproven: args.unproven,
        done: Vec::new(),
        left: Vec::new(),
        n_at_work: 0,
    };
    if args.tasks.is_empty() {
        for entry in store.tasks()? {
            match entry.doc {
                Ok(document) => pass.visit(&document.row.task_id)?,
                Err(error) => pass.left.push(json!({
                    "folder": entry.folder, "reasonCode": error.code().as_str(), "why": super::failure::chain(&error),
                })),
            }
        }
    } else {
        for task in &args.tasks {
            pass.visit(task)?;
        }
    }
    Ok(pass.answer(args.strict))
}

struct Pass<'a> {
    context: &'a Context,
    store: &'a Store,
    unproven: bool,
    done: Vec<Value>,
    left: Vec<Value>,
    n_at_work: usize,
}

impl Pass<'_> {
    /// One task. A row somebody else holds is at work right now, so the pass leaves it and goes on.
    fn visit(&mut self, task: &Name) -> Result<(), Failure> {
        let plan = LockPlan { shared: Vec::new(), exclusive: vec![task.clone()] };
        let transaction = match self.store.begin(&plan, LockWait(self.lock_wait())) {
            Ok(transaction) => transaction,
            Err(StateError::Busy { .. }) => {
                self.left.push(json!({ "taskId": task, "reasonCode": Code::Busy.as_str(),
                                       "why": "another call holds its row right now" }));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let row = transaction.row(task).cloned().ok_or_else(|| no_task(task))?;
        let sight = self.sight(&row)?;
        let call = Call {
            command: self.context.command,
            request_id: self.context.request_id.clone(),
            now: self.context.now(),
        };
        match recover(&row, &sight, &call) {
            Recovery::Fine => Ok(()),
            Recovery::AtWork => {
                self.n_at_work += 1;
                Ok(())
            }
            Recovery::Left { why, words } => {
                self.left.push(json!({ "taskId": task, "attemptId": row.task_attempt_id,
                    "taskStatus": row.task_status.as_str(), "reasonCode": why.as_str(), "why": words,
                    "ownerAlive": sight.owner_life.as_str(), "owed": row.owed() }));
                Ok(())
            }
            Recovery::Change { row: next, receipt, did, words } => {
                self.commit(transaction, *next, receipts(receipt), did, words, &row)
            }
        }
    }

    fn lock_wait(&self) -> Duration {
        self.context.lock_wait
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
            fresh: self.context.fresh_attempt()?,
        })
    }

    fn commit(
        &mut self,
        transaction: Transaction<'_>,
        next: Row,
        receipts: Vec<crate::state::ReceiptWrite>,
        did: &str,
        words: &str,
        before: &Row,
    ) -> Result<(), Failure> {
        self.done.push(json!({
            "taskId": next.task_id, "did": did, "why": words, "from": before.state_word(), "to": next.state_word(),
            "attemptId": next.task_attempt_id, "previousAttemptId": before.task_attempt_id,
            "receipt": receipts.first().map(|write| write.receipt.source.as_str()),
        }));
        commit(self.context, transaction, Writes { rows: vec![next], receipts, report: None })?;
        Ok(())
    }

    fn answer(self, strict: bool) -> Answer {
        let (n_done, n_left) = (self.done.len(), self.left.len());
        let message = format!("{n_done} task(s) recovered, {n_left} left alone, {} at work", self.n_at_work);
        let mut answer = if strict && n_left > 0 {
            Answer::new(self.context.command, Code::RecoveryIncomplete, message)
        } else {
            Answer::new(self.context.command, Code::Recovered, message)
        };
        if n_left > 0 {
            answer.hint =
                Some("each of these says what is missing: lychgate inspect TASK --explain".to_owned());
        }
        answer.body = (answer.exit() == Exit::Done).then(|| self.told(&answer.message));
        answer.fields.insert("recovered".to_owned(), Value::Array(self.done));
        answer.fields.insert("left".to_owned(), Value::Array(self.left));
        answer.fields.insert("atWork".to_owned(), json!(self.n_at_work));
        answer
    }

    fn told(&self, summary: &str) -> String {
        use std::fmt::Write as _;
        let text =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or("?").to_owned();
        let mut told = format!("{summary}\n");
        for done in &self.done {
            // Writing to a String cannot fail.
            let _ =
                writeln!(told, "  {}: {} ({})", text(done, "taskId"), text(done, "did"), text(done, "why"));
        }
        for left in &self.left {
            let _ = writeln!(
                told,
                "  {}: left alone, {} ({})",
                text(left, "taskId"),
                text(left, "reasonCode"),
                text(left, "why")
            );
        }
        told
    }
}
