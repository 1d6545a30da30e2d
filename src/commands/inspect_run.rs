//! `inspect --run`: every step of a run, its child, and what `reserve` would decide now, and why.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::answer::{Answer, escaped};
use crate::cli::InspectArgs;
use crate::protocol::codes::Code;
use crate::protocol::ids::{Name, Nonce};
use crate::protocol::run::Run;
use crate::protocol::verdict::{Credentials as _, Role};
use crate::protocol::workflow::{Checkpoint, Prior, StepDecision, decide, refuse_stopped_run};
use crate::state::{Access, RunDocument, RunKey, Store, chain};

use super::children;
use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::runs::find_run;
use super::tokens::Keys;

/// How often a run that changes while it is read is read again.
const READINGS_MAX: usize = 6;

pub(crate) fn run(context: &Context, args: &InspectArgs, name: &Name) -> Result<Answer, Failure> {
    let store = Store::open(&context.root, Access::Read)?;
    let shows_token =
        args.token.token.is_some() || args.token.token_file.is_some() || args.token.token_fd.is_some();
    let keys = shows_token.then(|| Keys::read(&store, &args.token, None)).transpose()?;
    let look = Look { context, store: &store, keys: keys.as_ref(), nonce: context.fresh_nonce()? };
    // Everything is read twice, and told when both readings are equal: a run and its children may change between.
    let mut last = None;
    for _ in 0..READINGS_MAX {
        let (key, document) = find_run(&store, name, args.parent.as_ref())?;
        let steps = look.steps(&document.run);
        crate::seam::pause("between-readings");
        let reading = Some((document, steps));
        if let (true, Some((document, steps))) = (reading == last, &reading) {
            return Ok(told(context, &store, args, &key, document, steps));
        }
        last = reading;
    }
    let message = format!("run `{name}` changes faster than it can be read; ask again");
    Ok(Answer::new(context.command, Code::IdentityChanged, message))
}

fn told(
    context: &Context,
    store: &Store,
    args: &InspectArgs,
    key: &RunKey,
    document: &RunDocument,
    steps: &[Value],
) -> Answer {
    let run = &document.run;
    let message = format!("run `{}` has {} step(s)", run.run_id, steps.len());
    let mut answer = Answer::new(context.command, Code::Ok, message);
    answer.body = Some(table(&store.root().display().to_string(), run, steps));
    answer.fields = crate::facts! {
        "runId": run.run_id, "parentWorkspaceId": run.parent_workspace_id,
        "stopped": run.stopped.as_ref().map(|stop| json!({ "at": stop.at, "reason": stop.reason })),
        "stopEpoch": run.stop_epoch, "revision": document.revision,
        "path": store.run_path(key).display().to_string(), "steps": steps,
    };
    if document.newer {
        answer.fields.insert("newerVersion".to_owned(), json!(true));
    }
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
    answer
}

struct Look<'a> {
    context: &'a Context,
    store: &'a Store,
    keys: Option<&'a Keys>,
    /// Stands in for the nonce of a claim that is not made.
    nonce: Nonce,
}

impl Look<'_> {
    fn steps(&self, run: &Run) -> Vec<Value> {
        let recorded = run.steps.iter().map(|step| {
            let told = json!({
                "stepId": step.step_id, "inputHash": step.input_hash, "status": step.status.as_str(),
                "taskId": step.task_id, "attemptId": step.attempt_id, "startedAt": step.started_at,
                "endedAt": step.ended_at, "error": step.error,
            });
            self.step(run, &step.step_id, &step.input_hash, told)
        });
        let unrecorded = run.unrecorded.iter().map(|child| {
            let told = json!({
                "stepId": child.step_id, "inputHash": child.input_hash, "status": "unrecorded",
                "taskId": child.task_id,
            });
            self.step(run, &child.step_id, &child.asked_hash(), told)
        });
        recorded.chain(unrecorded).collect()
    }

    fn step(&self, run: &Run, step: &Name, input_hash: &Name, mut told: Value) -> Value {
        let at = Checkpoint {
            parent: run.parent_workspace_id.clone(),
            run: run.run_id.clone(),
            step: step.clone(),
            input_hash: input_hash.clone(),
        };
        let decided = self.decided(run, &at).unwrap_or_else(|failure| {
            let answer = failure.into_answer(self.context.command);
            let reason =
                answer.fields.get("reasonCode").cloned().unwrap_or_else(|| json!(answer.code.as_str()));
            json!({ "decision": Code::Unresolved.as_str(), "reasonCode": reason, "why": answer.message })
        });
        if let (Some(object), Value::Object(decided)) = (told.as_object_mut(), decided) {
            object.extend(decided);
        }
        told
    }

    /// What `reserve` would answer now, from the very rules it asks.
    fn decided(&self, run: &Run, at: &Checkpoint) -> Result<Value, Failure> {
        if let Err(refusal) = refuse_stopped_run(Some(run), at, None) {
            return Ok(json!({ "decision": refusal.code.as_str(), "why": refusal.message }));
        }
        let call = self.context.call();
        let Some(step) = children::of_step(self.store, Some(run), at, &call)? else {
            return Ok(json!({ "decision": Code::Reserved.as_str(), "why": "it has no child" }));
        };
        let document = self.store.read_task(&step.task_id)?;
        let attempt = document.as_ref().and_then(|document| document.row.task_attempt_id.as_ref());
        let role = self.keys.zip(attempt).map_or(Role::Absent, |(keys, attempt)| keys.role(attempt));
        let of = |document| evidence::of(self.context, self.store, document, role);
        let prior = Prior {
            task: &step.task_id,
            row: document.as_ref().map(|document| &document.row),
            evidence: document.as_ref().map_or_else(evidence::none, of),
        };
        let status = prior.row.map(|row| row.task_status.as_str());
        let decided = match decide(Some(&step), Some(&prior), at, &self.nonce, &call) {
            StepDecision::Fresh => json!({ "decision": Code::Reserved.as_str(), "why": "it has no child" }),
            StepDecision::Replace { .. } => json!({
                "decision": "replace", "why": "its child is proven over", "taskStatus": status,
            }),
            StepDecision::No(refusal) => json!({
                "decision": refusal.code.as_str(), "reasonCode": refusal.facts.get("reasonCode"),
                "why": refusal.message, "taskStatus": status,
            }),
        };
        Ok(decided)
    }
}

/// How much of an input's hash a table shows.
const INPUT_SHOWN: usize = 14;

fn table(root: &str, run: &Run, steps: &[Value]) -> String {
    let text = |value: &Value, key: &str| escaped(value.get(key).and_then(Value::as_str).unwrap_or(""));
    let mut out = format!("root {}\nrun  {}", escaped(root), escaped(run.run_id.as_str()));
    // Writing to a String cannot fail.
    let _ = writeln!(out, " in {}", escaped(run.parent_workspace_id.as_str()));
    if run.stopped.is_some() {
        let _ = writeln!(out, "stopped, epoch {}", run.stop_epoch);
    }
    let _ = writeln!(
        out,
        "{:<18} {:<14} {:<10} {:<22} {:<14} WHY",
        "STEP", "INPUT", "STATUS", "TASK", "RESERVE SAYS"
    );
    for step in steps {
        let why = match text(step, "reasonCode") {
            reason if reason.is_empty() => text(step, "why"),
            reason => reason,
        };
        let input: String = text(step, "inputHash").chars().take(INPUT_SHOWN).collect();
        let line = format!(
            "{:<18} {input:<14} {:<10} {:<22} {:<14} {why}",
            text(step, "stepId"),
            text(step, "status"),
            text(step, "taskId"),
            text(step, "decision")
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
