//! `wait`: looks again and again, without a lock, until a task has an outcome.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::answer::Answer;
use crate::cli::WaitArgs;
use crate::protocol::classify::{Classified, Outcome, classify};
use crate::protocol::codes::Code;
use crate::protocol::ids::{AttemptId, Name};
use crate::protocol::verdict::{Credentials as _, Refusal, Role};
use crate::protocol::workflow::Checkpoint;
use crate::state::{Access, Document, Store};

use super::children;
use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::runs::find_run;
use super::tokens::Keys;
use super::transact::no_task;

/// How long the looks are apart at first, and at most.
const POLL_MIN: Duration = Duration::from_millis(5);
const POLL_MAX: Duration = Duration::from_millis(100);

#[allow(clippy::disallowed_methods, reason = "a wait ends by the clock, and grants nothing")]
pub(crate) fn run(context: &Context, args: &WaitArgs) -> Result<Answer, Failure> {
    let store = Store::open(&context.root, Access::Read)?;
    let shows_token =
        args.token.token.is_some() || args.token.token_file.is_some() || args.token.token_fd.is_some();
    let keys = shows_token.then(|| Keys::read(&store, &args.token, None)).transpose()?;
    let deadline = Instant::now() + args.timeout;
    let mut pause = POLL_MIN;
    loop {
        let task = awaited(context, &store, args)?;
        let document = store.read_task(&task)?.ok_or_else(|| no_task(&task))?;
        let found = look(context, &store, &document, keys.as_ref());
        if found.outcome == args.outcome {
            let message = format!("task `{task}` is {}", found.outcome.as_str());
            return Ok(told(context, Code::Reached, message, &document, &found));
        }
        if ended_otherwise(&document, &found) {
            let message = format!(
                "task `{task}` is {}: {}; it will not be {}",
                found.outcome.as_str(),
                found.why,
                args.outcome.as_str()
            );
            return Ok(told(context, Code::EndedOtherwise, message, &document, &found));
        }
        let now = Instant::now();
        if now >= deadline {
            let message = format!("task `{task}` is still {}: {}", found.outcome.as_str(), found.why);
            return Ok(told(context, Code::NotYet, message, &document, &found));
        }
        std::thread::sleep(pause.min(deadline - now));
        pause = (pause * 2).min(POLL_MAX);
    }
}

/// The task: named, or the child the step has now.
fn awaited(context: &Context, store: &Store, args: &WaitArgs) -> Result<Name, Failure> {
    if let Some(task) = &args.task {
        return Ok(task.clone());
    }
    let (Some(run), Some(step)) = (&args.run, &args.step) else {
        return Err(Failure::usage("no task is named"));
    };
    let (key, document) = find_run(store, run, args.parent.as_ref())?;
    let run = &document.run;
    // A step may have a child for each of several inputs: the one that was started last is meant.
    let records = run.steps.iter().filter(|record| record.step_id == *step);
    let latest = records.max_by(|a, b| a.started_at.cmp(&b.started_at)).map(|record| &record.input_hash);
    let unrecorded = || run.unrecorded.iter().find(|child| child.step_id == *step);
    let input_hash = latest.cloned().or_else(|| Some(unrecorded()?.asked_hash()));
    let at = input_hash.map(|input_hash| Checkpoint {
        parent: key.parent,
        run: key.run,
        step: step.clone(),
        input_hash,
    });
    let found = at.map(|at| children::of_step(store, Some(run), &at, &context.call())).transpose()?.flatten();
    found.map(|step| step.task_id).ok_or_else(|| {
        let message = format!("run `{}` has no record of step `{step}`", run.run_id);
        Failure::Refused(Box::new(Refusal::new(Code::NoSuchStep, message)))
    })
}

fn look(context: &Context, store: &Store, document: &Document, keys: Option<&Keys>) -> Classified {
    let attempt = document.row.task_attempt_id.as_ref();
    let role = keys.zip(attempt).map_or(Role::Absent, |(keys, attempt)| keys.role(attempt));
    classify(&document.row, &evidence::of(context, store, document, role))
}

/// Whether the task is over in a way that leaves no room for another outcome without somebody's new decision.
fn ended_otherwise(document: &Document, found: &Classified) -> bool {
    document.row.task_attempt_retired_by.is_some()
        || matches!(found.outcome, Outcome::Reported | Outcome::TerminalNoReport)
}

fn told(context: &Context, code: Code, message: String, document: &Document, found: &Classified) -> Answer {
    let row = &document.row;
    let mut answer = Answer::new(context.command, code, message);
    answer.fields = crate::facts! {
        "taskId": row.task_id, "attemptId": row.task_attempt_id.as_ref().map(AttemptId::as_str),
        "outcome": found.outcome.as_str(), "reasonCode": found.reason.map(Code::as_str), "why": found.why,
        "taskStatus": row.task_status.as_str(), "phase": row.phase().as_str(),
    };
    answer.fields.insert("lateReports".to_owned(), json!(row.late_reports));
    answer
}
