//! `inspect --run`: every step of a run, its child, and what `reserve` would decide now, and why.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::answer::{Answer, escaped};
use crate::cli::InspectArgs;
use crate::protocol::codes::Code;
use crate::protocol::ids::{Name, Nonce};
use crate::protocol::run::{Run, Step};
use crate::protocol::verdict::{Credentials as _, Role};
use crate::protocol::workflow::{Checkpoint, Prior, StepDecision, decide, refuse_stopped_run};
use crate::state::{Access, Store, chain};

use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::runs::find_run;
use super::tokens::Keys;

pub(crate) fn run(context: &Context, args: &InspectArgs, name: &Name) -> Result<Answer, Failure> {
    let store = Store::open(&context.root, Access::Read)?;
    let shows_token =
        args.token.token.is_some() || args.token.token_file.is_some() || args.token.token_fd.is_some();
    let keys = shows_token.then(|| Keys::read(&store, &args.token, None)).transpose()?;
    let (key, document) = find_run(&store, name, args.parent.as_ref())?;
    let run = &document.run;
    let look = Look { context, store: &store, keys: keys.as_ref(), nonce: context.fresh_nonce()?, run };
    let steps: Vec<Value> = run.steps.iter().map(|step| look.step(step)).collect();
    let message = format!("run `{name}` has {} step(s)", steps.len());
    let mut answer = Answer::new(context.command, Code::Ok, message);
    answer.body = Some(table(&store.root().display().to_string(), run, &steps));
    answer.fields = crate::facts! {
        "runId": run.run_id, "parentWorkspaceId": run.parent_workspace_id,
        "stopped": run.stopped.as_ref().map(|stop| json!({ "at": stop.at, "reason": stop.reason })),
        "stopEpoch": run.stop_epoch, "revision": document.revision,
        "path": store.run_path(&key).display().to_string(), "steps": steps,
    };
    if args.history {
        let events = store.run_archives(run).map(|mut events| {
            events.extend(run.history.events.iter().cloned());
            events
        });
        match events {
            Ok(events) => answer.fields.insert("history".to_owned(), json!(events)),
            Err(error) => answer.fields.insert("historyError".to_owned(), json!(chain(&error))),
        };
    }
    Ok(answer)
}

struct Look<'a> {
    context: &'a Context,
    store: &'a Store,
    keys: Option<&'a Keys>,
    /// Stands in for the nonce of a claim that is not made.
    nonce: Nonce,
    run: &'a Run,
}

impl Look<'_> {
    fn step(&self, step: &Step) -> Value {
        let mut told = json!({
            "stepId": step.step_id, "inputHash": step.input_hash, "status": step.status.as_str(),
            "taskId": step.task_id, "attemptId": step.attempt_id, "startedAt": step.started_at,
            "endedAt": step.ended_at, "error": step.error,
        });
        let decided = self.decided(step);
        if let (Some(object), Value::Object(decided)) = (told.as_object_mut(), decided) {
            object.extend(decided);
        }
        told
    }

    /// What `reserve` would answer now, from the very rules it asks.
    fn decided(&self, step: &Step) -> Value {
        if let Err(refusal) = refuse_stopped_run(Some(self.run), None) {
            return json!({ "decision": refusal.code.as_str(), "why": refusal.message });
        }
        let document = match self.store.read_task(&step.task_id) {
            Ok(document) => document,
            Err(error) => {
                return json!({ "decision": "unresolved", "reasonCode": error.code().as_str(), "why": chain(&error) });
            }
        };
        let attempt = document.as_ref().and_then(|document| document.row.task_attempt_id.as_ref());
        let role = self.keys.zip(attempt).map_or(Role::Absent, |(keys, attempt)| keys.role(attempt));
        let of = |document| evidence::of(self.context, self.store, document, role);
        let prior = Prior {
            task: &step.task_id,
            row: document.as_ref().map(|document| &document.row),
            evidence: document.as_ref().map_or_else(evidence::none, of),
        };
        let at = Checkpoint {
            parent: self.run.parent_workspace_id.clone(),
            run: self.run.run_id.clone(),
            step: step.step_id.clone(),
            input_hash: step.input_hash.clone(),
        };
        let call = self.context.call();
        let status = prior.row.map(|row| row.task_status.as_str());
        match decide(Some(step), Some(&prior), &at, &self.nonce, &call) {
            StepDecision::Fresh => json!({ "decision": "reserved", "why": "it has no child" }),
            StepDecision::Replace { .. } => json!({
                "decision": "replace", "why": "its child is proven over", "taskStatus": status,
            }),
            StepDecision::No(refusal) => json!({
                "decision": refusal.code.as_str(), "reasonCode": refusal.facts.get("reasonCode"),
                "why": refusal.message, "taskStatus": status,
            }),
        }
    }
}

fn table(root: &str, run: &Run, steps: &[Value]) -> String {
    let text = |value: &Value, key: &str| escaped(value.get(key).and_then(Value::as_str).unwrap_or(""));
    let mut out = format!("root {}\nrun  {}", escaped(root), escaped(run.run_id.as_str()));
    // Writing to a String cannot fail.
    let _ = writeln!(out, " in {}", escaped(run.parent_workspace_id.as_str()));
    if run.stopped.is_some() {
        let _ = writeln!(out, "stopped, epoch {}", run.stop_epoch);
    }
    let _ = writeln!(out, "{:<18} {:<10} {:<22} {:<14} WHY", "STEP", "STATUS", "TASK", "RESERVE SAYS");
    for step in steps {
        let reason = text(step, "reasonCode");
        // A decision that needs no reason has none here; `--json` has the whole sentence.
        let why = reason;
        let line = format!(
            "{:<18} {:<10} {:<22} {:<14} {why}",
            text(step, "stepId"),
            text(step, "status"),
            text(step, "taskId"),
            text(step, "decision")
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
