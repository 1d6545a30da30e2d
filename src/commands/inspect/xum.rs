//! `inspect --xum`: what is true of the tasks of another application's root, and which dead end each is in.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::answer::{Answer, Style};
use crate::cli::InspectArgs;
use crate::commands::context::Context;
use crate::commands::failure::Failure;
use crate::commands::xum::{Seen, milliseconds, read, told};
use crate::protocol::classify::{Classified, Outcome};
use crate::protocol::codes::Code;
use crate::protocol::ids::Name;
use crate::protocol::xum::outcome::outcome;
use crate::protocol::xum::situation::{self, Situation};
use crate::protocol::xum::{Sighting, StepIndex, StepOf, TaskFacts, XumRow, XumRun, XumRunStatus, keep};
use crate::state::XumRoot;

use super::{expected, table};

pub(super) fn run(
    context: &Context,
    args: &InspectArgs,
    dir: &Path,
    style: &Style,
) -> Result<Answer, Failure> {
    let root = XumRoot::open(dir)?;
    let seen = read(&root)?;
    let look = Look { context, args, root: &root, seen: &seen, now_ms: milliseconds(&context.now()) };
    let steps = StepIndex::of(&seen.reading);
    let mut found: Vec<Found<'_>> = if args.tasks.is_empty() {
        seen.reading.tasks.iter().map(|(id, facts)| look.judge(id, Some(facts), &steps)).collect()
    } else {
        let named = args.tasks.iter().map(Name::as_str);
        named.map(|id| look.judge(id, seen.reading.tasks.get(id), &steps)).collect()
    };
    let mut answer = if let ([_], [one]) = (args.tasks.as_slice(), found.as_slice()) {
        look.flat(one, style)
    } else {
        if args.stuck {
            found.retain(Found::is_stuck);
        }
        found.sort_by_key(Found::urgency);
        look.list(&found, style)
    };
    answer.root = Some(root.path().to_owned());
    Ok(answer)
}

/// One task as it was found.
struct Found<'a> {
    task: &'a str,
    facts: Option<&'a TaskFacts>,
    step: Option<StepOf<'a>>,
    classified: Classified,
    situations: Vec<Situation>,
}

impl Found<'_> {
    fn urgency(&self) -> (usize, String) {
        let place = Outcome::ALL.iter().position(|outcome| *outcome == self.classified.outcome);
        (place.unwrap_or(0), self.task.to_owned())
    }

    fn is_stuck(&self) -> bool {
        self.classified.outcome == Outcome::Indeterminate || !self.situations.is_empty()
    }

    fn fields(&self) -> Map<String, Value> {
        let mut fields = crate::facts! {
            "taskId": self.task,
            "outcome": self.classified.outcome.as_str(),
            "reasonCode": self.classified.reason.map(Code::as_str),
            "why": self.classified.why,
            "situation": self.situations.first().map(|situation| situation.as_str()),
            "situations": self.situations.iter().copied().map(explained).collect::<Vec<_>>(),
            "identity": identity(self.facts),
        };
        if let Some(row) = self.facts.and_then(|facts| facts.row.found()) {
            fields.extend(about_row(row));
        }
        if let Some(facts) = self.facts {
            fields.extend(about_evidence(facts));
        }
        if let Some(of) = self.step {
            fields.insert(
                "step".to_owned(),
                json!({
                    "runId": of.run.id, "stepId": of.step.step, "inputHash": of.step.input_hash,
                    "status": of.step.status.as_str(), "runStatus": of.run.status.map(XumRunStatus::as_str),
                }),
            );
        }
        fields
    }
}

fn explained(situation: Situation) -> Value {
    json!({ "situation": situation.as_str(), "what": situation.what(), "todo": situation.todo() })
}

fn identity(facts: Option<&TaskFacts>) -> Value {
    match facts.and_then(|facts| facts.row.found()).map(|row| &row.attempt) {
        Some(Some(attempt)) => json!({ "kind": "id", "attemptId": attempt }),
        Some(None) => json!({ "kind": "legacy", "attemptId": null }),
        None => json!({ "kind": "unknown", "attemptId": null }),
    }
}

fn about_row(row: &XumRow) -> Map<String, Value> {
    crate::facts! {
        "taskStatus": row.names_status.then(|| row.status.as_str()),
        "parentWorkspaceId": row.parent,
        "workflowTask": row.step.as_ref().map(|(run, step)| json!({ "runId": run, "stepId": step })),
        "proven": !row.unproven,
        "archived": row.archived,
        "reactivated": row.reactivated,
        "createdAt": row.created_at,
        "retiredBy": row.claim.as_ref().map(|claim| json!({
            "runId": claim.run_id, "stepId": claim.step_id, "inputHash": claim.input_hash,
            "attemptId": claim.attempt_id, "mode": claim.mode, "at": claim.at,
            "replacementTaskId": claim.extra.get("replacementTaskId"),
        })),
        "launchError": row.fields.get("taskLaunchError").and_then(Value::as_str).map(keep::shown),
    }
}

fn about_evidence(facts: &TaskFacts) -> Map<String, Value> {
    let state = |word: &str, says: Option<&String>| json!({ "sighting": word, "says": says });
    let report = match &facts.report {
        Sighting::Found(report) => json!({
            "sighting": "found", "attemptId": report.attempt, "bytes": report.text_bytes, "at": report.at,
            "title": report.title.as_deref().map(keep::shown), "in": report.holder,
        }),
        Sighting::NotFound => state(facts.report.word(), None),
        Sighting::Unreadable(why) => state(facts.report.word(), Some(why)),
    };
    let failure = match &facts.failure {
        Sighting::Found(failure) => json!({
            "sighting": "found", "type": keep::shown(&failure.kind), "message": keep::shown(&failure.message),
        }),
        Sighting::NotFound => state(facts.failure.word(), None),
        Sighting::Unreadable(why) => state(facts.failure.word(), Some(why)),
    };
    let receipt = match &facts.receipt {
        Sighting::Found(receipt) => json!({
            "sighting": "found", "source": receipt.source.as_str(), "settledAt": receipt.settled_at,
        }),
        Sighting::NotFound => state(facts.receipt.word(), None),
        Sighting::Unreadable(why) => state(facts.receipt.word(), Some(why)),
    };
    crate::facts! {
        "ancestors": facts.line.iter().skip(1).collect::<Vec<_>>(),
        "report": report, "failure": failure, "receiptFile": receipt,
    }
}

fn about_run(run: &XumRun, now_ms: i64) -> Value {
    let situation = situation::of_run(run, now_ms);
    json!({
        "runId": run.id, "parentWorkspaceId": run.owner,
        "status": run.status.map(XumRunStatus::as_str), "steps": run.steps.len(),
        "openSteps": run.steps.iter().filter(|step| step.status.is_open()).count(),
        "lease": run.lease.word(), "unreadable": run.unreadable,
        "situation": situation.map(Situation::as_str), "what": situation.map(Situation::what),
        "todo": situation.map(Situation::todo),
    })
}

/// One look at the root.
struct Look<'a> {
    context: &'a Context,
    args: &'a InspectArgs,
    root: &'a XumRoot,
    seen: &'a Seen,
    now_ms: i64,
}

impl<'a> Look<'a> {
    fn judge(&self, task: &'a str, facts: Option<&'a TaskFacts>, steps: &StepIndex<'a>) -> Found<'a> {
        let unknown = |reason: Code, why: &str| Classified {
            outcome: Outcome::Indeterminate,
            reason: Some(reason),
            why: why.to_owned(),
        };
        let changes = self.seen.changed.contains(task);
        let (Some(facts), false) = (facts, changes) else {
            let classified = if changes {
                unknown(Code::IdentityChanged, "it changes faster than it can be read; ask again")
            } else {
                unknown(Code::NoTaskRecord, "there is no sub-agent's row for it")
            };
            return Found { task, facts: None, step: None, classified, situations: Vec::new() };
        };
        let classified = outcome(facts);
        let step = steps.step_of(task, facts);
        let fences = self.seen.reading.has_write_id;
        let situations = situation::of_task(task, facts, classified.outcome, step, fences, self.now_ms);
        Found { task, facts: Some(facts), step, classified, situations }
    }

    /// Nothing that rests on two equal readings is said of a task that changed between them.
    fn code(found: &[Found<'_>]) -> Code {
        let changed = found.iter().any(|found| found.classified.reason == Some(Code::IdentityChanged));
        if changed { Code::IdentityChanged } else { Code::Ok }
    }

    /// Exactly one task: its fields are the answer's own.
    fn flat(&self, found: &Found<'_>, style: &Style) -> Answer {
        let word = found.classified.outcome.as_str();
        let message = format!("task `{}` is {word}: {}", found.task, found.classified.why);
        let mut answer = Answer::new(self.context.command, Self::code(std::slice::from_ref(found)), message);
        answer.fields = found.fields();
        let about = |at: &str| at == found.task || at.split_once(' ').is_some_and(|(id, _)| id == found.task);
        let problems = self.seen.reading.problems.iter().filter(|problem| about(&problem.at));
        answer.fields.insert("problems".to_owned(), problems.map(told).collect());
        answer.body = Some(table::xum_one(self.root.path(), &answer.fields, style));
        expected(answer, self.args, found.classified.outcome)
    }

    fn list(&self, found: &[Found<'_>], style: &Style) -> Answer {
        let reading = &self.seen.reading;
        let tasks: Vec<Value> = found.iter().map(|found| Value::Object(found.fields())).collect();
        let runs: Vec<Value> = reading.runs.iter().map(|run| about_run(run, self.now_ms)).collect();
        let problems: Vec<Value> = reading.problems.iter().map(told).collect();
        let body = table::xum_many(self.root.path(), &tasks, &runs, &problems, style);
        let message = format!("{} task(s)", tasks.len());
        let mut answer = Answer::new(self.context.command, Self::code(found), message).body(body);
        answer.fields = crate::facts! {
            "outcomes": counted(found.iter().map(|found| found.classified.outcome.as_str())),
            "inSituations": counted(found.iter().filter_map(|found| found.situations.first()).map(|s| s.as_str())),
            "workspaces": reading.n_workspaces, "steady": self.seen.is_steady,
            "tasks": tasks, "runs": runs, "problems": problems,
        };
        if let Some(wanted) = self.args.expect
            && let Some(other) = found.iter().find(|found| found.classified.outcome != wanted)
        {
            answer = expected(answer, self.args, other.classified.outcome);
        }
        answer
    }
}

fn counted<'w>(words: impl Iterator<Item = &'w str>) -> BTreeMap<&'w str, usize> {
    words.fold(BTreeMap::new(), |mut counted, word| {
        *counted.entry(word).or_default() += 1;
        counted
    })
}
