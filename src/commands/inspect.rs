//! `inspect`: what is true of tasks. It writes nothing and takes no lock.

mod explain;
mod table;
mod xum;

use serde_json::{Map, Value, json};

use crate::answer::{Answer, Style};
use crate::cli::InspectArgs;
use crate::protocol::advice;
use crate::protocol::classify::{Classified, Evidence, Outcome, ReportEvidence, classify, identity};
use crate::protocol::codes::{Code, Exit};
use crate::protocol::history::Event;
use crate::protocol::ids::Name;
use crate::protocol::lineage::ReceiptEvidence;
use crate::protocol::row::{Row, TaskStatus};
use crate::protocol::state::{Phase, turn_fact};
use crate::protocol::verdict::{Credentials as _, Role};
use crate::state::{Access, Document, StateError, Store, chain};

use super::context::{Context, age_seconds};
use super::evidence;
use super::failure::Failure;
use super::inspect_run;
use super::inspect_session;
use super::tokens::Keys;

/// How often a task that changes while it is read is read again.
const READINGS_MAX: usize = 6;
/// A task without an event for this long, and not settled, counts as stuck.
const STUCK_SECONDS: i64 = 600;

pub(crate) fn run(context: &Context, args: &InspectArgs, style: &Style) -> Result<Answer, Failure> {
    if let Some(run) = &args.run {
        return inspect_run::run(context, args, run);
    }
    if let Some(session) = &args.session {
        return inspect_session::run(context, args, session);
    }
    if let Some(dir) = &args.xum {
        return xum::run(context, args, dir, style);
    }
    let store = match Store::open(&context.root, Access::Read) {
        Ok(store) => store,
        Err(StateError::NoRoot { path }) => return Ok(no_root(context, args, &path.display().to_string())),
        Err(error) => return Err(error.into()),
    };
    let shows_token =
        args.token.token.is_some() || args.token.token_file.is_some() || args.token.token_fd.is_some();
    let keys = shows_token.then(|| Keys::read(&store, &args.token, None)).transpose()?;
    let look = Look { context, store: &store, args, keys: keys.as_ref() };
    if let [task] = args.tasks.as_slice() {
        return Ok(look.flat(&look.task(task), style));
    }
    let mut found = if args.tasks.is_empty() { look.every_task()? } else { look.tasks(&args.tasks) };
    if args.stuck {
        found.retain(|found| found.is_stuck(context));
    }
    found.sort_by_key(Found::urgency);
    let mut answer = look.list(&found, style);
    let sessions = if args.tasks.is_empty() { store.all_sessions()?.len() } else { 0 };
    if sessions > 0 {
        answer.fields.insert("sessions".to_owned(), json!(sessions));
    }
    Ok(answer)
}

/// A root that was never made holds no task; nothing is created to say so.
fn no_root(context: &Context, args: &InspectArgs, path: &str) -> Answer {
    if let [task] = args.tasks.as_slice() {
        let found = Found::missing(task);
        let mut answer = Answer::new(
            context.command,
            Code::Ok,
            format!("there is no root at `{path}`, so no task `{task}`"),
        );
        answer.fields = found.fields(context, None, args);
        return expected(answer, args, found.classified.outcome);
    }
    let message = format!("there is no root at `{path}` yet; the first `reserve` makes it");
    Answer::new(context.command, Code::Ok, message).field("tasks", Vec::<Value>::new())
}

/// One task as it was found.
struct Found {
    task: String,
    document: Option<Document>,
    evidence: Option<Evidence>,
    owner_why: String,
    classified: Classified,
    error: Option<StateError>,
}

impl Found {
    fn missing(task: &Name) -> Self {
        let why = "there is no row for it".to_owned();
        Self::without_row(task.to_string(), Code::NoTaskRecord, why)
    }

    fn broken(task: String, error: StateError) -> Self {
        let found = Self::without_row(task, error.code(), chain(&error));
        Self { error: Some(error), ..found }
    }

    fn without_row(task: String, reason: Code, why: String) -> Self {
        Self {
            task,
            document: None,
            evidence: None,
            owner_why: String::new(),
            classified: Classified { outcome: Outcome::Indeterminate, reason: Some(reason), why },
            error: None,
        }
    }

    fn row(&self) -> Option<&Row> {
        self.document.as_ref().map(|document| &document.row)
    }

    /// Most urgent first: what cannot be told, what waits, what may be replaced, what is at work, what is over.
    fn urgency(&self) -> (usize, String) {
        let settled_business = self.row().is_some_and(|row| row.task_attempt_retired_by.is_some());
        let place = Outcome::ALL.iter().position(|outcome| *outcome == self.classified.outcome).unwrap_or(0);
        (if settled_business { Outcome::ALL.len() } else { place }, self.task.clone())
    }

    fn is_stuck(&self, context: &Context) -> bool {
        let Some(row) = self.row() else { return true };
        if row.task_attempt_retired_by.is_some() {
            return false;
        }
        let reported =
            row.task_status == TaskStatus::Reported && row.phase() == Phase::Open && !row.is_live();
        let over = row.phase() == Phase::Settled || reported;
        let quiet = age_seconds(&row.updated_at, &context.now()).is_none_or(|age| age >= STUCK_SECONDS);
        self.classified.outcome == Outcome::Indeterminate || (!over && quiet)
    }

    /// The fields of the answer, the same for one task and in a list.
    fn fields(&self, context: &Context, store: Option<&Store>, args: &InspectArgs) -> Map<String, Value> {
        let mut fields = crate::facts! {
            "taskId": self.task,
            "outcome": self.classified.outcome.as_str(),
            "reasonCode": self.classified.reason.map(Code::as_str),
            "why": self.classified.why,
            "identity": identity(self.row()),
        };
        let (Some(row), Some(document), Some(evidence)) = (self.row(), &self.document, &self.evidence) else {
            return fields;
        };
        fields.extend(about_attempt(row, evidence, &self.owner_why));
        fields.extend(about_work(row, context));
        fields.extend(about_ends(row, store));
        fields.extend(crate::facts! {
            "parentWorkspaceId": row.parent_workspace_id, "ancestors": row.ancestors,
            "revision": document.revision, "createdAt": row.created_at, "updatedAt": row.updated_at,
        });
        if let Some(step) = &row.workflow_task {
            fields.insert("workflowTask".to_owned(), json!(step));
        }
        if document.newer {
            fields.insert("newerVersion".to_owned(), json!(true));
        }
        fields.insert("next".to_owned(), json!(advice::next(row, &self.classified)));
        if let (true, Some(store)) = (args.explain, store) {
            fields.insert("evidence".to_owned(), explain::pieces(store, row, evidence, &self.owner_why));
        }
        fields
    }
}

fn about_attempt(row: &Row, evidence: &Evidence, owner_why: &str) -> Map<String, Value> {
    let owner = &row.attempt.owner;
    let process = owner.process.as_ref();
    let told = json!({
        "name": owner.name, "alive": evidence.owner_life.as_str(), "why": owner_why,
        "pid": process.map(|p| p.pid), "startTicks": process.and_then(|p| p.start_ticks),
        "host": process.and_then(|p| p.machine_id.as_ref()), "bootId": process.and_then(|p| p.boot_id.as_ref()),
    });
    crate::facts! {
        "taskStatus": row.task_status.as_str(),
        "phase": row.phase().as_str(),
        "proven": !row.task_attempt_unproven,
        "receiptEligible": row.attempt.receipt_eligible,
        "origin": row.attempt.origin.as_str(),
        "since": row.attempt.since,
        "owner": told,
    }
}

fn about_work(row: &Row, context: &Context) -> Map<String, Value> {
    let now = context.now();
    let aged = |mut value: Value| {
        let since = value.get("since").and_then(Value::as_str).and_then(|text| text.parse().ok());
        let age = since.and_then(|since| age_seconds(&since, &now));
        if let (Some(object), Some(age)) = (value.as_object_mut(), age) {
            object.insert("ageSeconds".to_owned(), json!(age));
        }
        value
    };
    let waiting: Vec<Value> = row.waiting_sends().map(|send| aged(json!({
        "sendId": send.send_id, "attemptId": send.attempt_id, "state": send.state.as_str(), "label": send.label, "since": send.since,
    }))).collect();
    crate::facts! {
        "live": row.is_live(),
        "turns": row.turns().map(|send| aged(turn_fact(send))).collect::<Vec<_>>(),
        "sends": waiting,
        "owed": row.owed().into_iter().map(aged).collect::<Vec<_>>(),
        "stopEpoch": row.stop_epoch,
    }
}

fn about_ends(row: &Row, store: Option<&Store>) -> Map<String, Value> {
    let closure = row.settlement.as_ref();
    let mut fields = crate::facts! {
        "closed": closure.map(|settlement| json!({
            "by": settlement.closure.closed_by, "while": settlement.closure.closed_from,
            "at": settlement.closure.at, "reason": settlement.closure.reason,
            "failure": settlement.closure.failure,
            "settledAt": settlement.settled.as_ref().map(|settled| &settled.settled_at),
            "receipt": settlement.settled.as_ref().and_then(|settled| settled.receipt),
        })),
        "retiredBy": row.task_attempt_retired_by.as_ref().map(|claim| json!({
            "runId": claim.run_id, "stepId": claim.step_id, "inputHash": claim.input_hash,
            "attemptId": claim.attempt_id, "mode": claim.mode, "authority": claim.authority, "at": claim.at,
            "replacementTaskId": row.retirement.as_ref().and_then(|r| r.replacement_task_id.as_ref()),
        })),
    };
    if let Some(replaces) = &row.replaces {
        fields.insert("replaces".to_owned(), json!(replaces));
    }
    if let Some(report) = row.counted_report() {
        let path = store.map(|store| {
            store.report_path(&row.parent_workspace_id, &row.task_id, report.attempt_id.as_ref())
        });
        fields.insert("report".to_owned(), json!({
            "attemptId": report.attempt_id, "title": report.title, "bytes": report.text_bytes, "at": report.at,
            "path": path.map(|path| path.display().to_string()),
        }));
    }
    fields.insert("lateReports".to_owned(), json!(row.late_reports));
    if !row.superseded.is_empty() {
        fields.insert("unsettledAttempts".to_owned(), json!(row.superseded));
    }
    if let Some(over) = &row.attempt.unproven_override {
        fields.insert("unprovenOverride".to_owned(), json!(over));
    }
    fields
}

/// One look at the root.
struct Look<'a> {
    context: &'a Context,
    store: &'a Store,
    args: &'a InspectArgs,
    keys: Option<&'a Keys>,
}

impl Look<'_> {
    fn every_task(&self) -> Result<Vec<Found>, Failure> {
        let mut found = Vec::new();
        for entry in self.store.tasks()? {
            match entry.doc {
                Ok(document) => found.push(self.task(&document.row.task_id)),
                Err(error) => found.push(Found::broken(entry.folder, error)),
            }
        }
        Ok(found)
    }

    fn tasks(&self, tasks: &[Name]) -> Vec<Found> {
        tasks.iter().map(|task| self.task(task)).collect()
    }

    /// Reads one task and everything its answer rests on twice, and answers when both readings are equal.
    fn task(&self, task: &Name) -> Found {
        let mut last = None;
        for _ in 0..READINGS_MAX {
            let reading = match self.read(task) {
                Ok(Some(reading)) => reading,
                Ok(None) => return Found::missing(task),
                Err(error) => return Found::broken(task.to_string(), error),
            };
            crate::seam::pause("between-readings");
            if last.as_ref() == Some(&reading) {
                return self.judge(task, reading);
            }
            last = Some(reading);
        }
        let mut found = match last {
            Some(reading) => self.judge(task, reading),
            None => Found::missing(task),
        };
        found.classified = Classified {
            outcome: Outcome::Indeterminate,
            reason: Some(Code::IdentityChanged),
            why: "it changes faster than it can be read; ask again".to_owned(),
        };
        found
    }

    fn read(&self, task: &Name) -> Result<Option<(Document, ReceiptEvidence, ReportEvidence)>, StateError> {
        let Some(document) = self.store.read_task(task)? else { return Ok(None) };
        let receipt = evidence::receipt(self.store, &document);
        let reports = evidence::reports(self.store, &document);
        Ok(Some((document, receipt, reports)))
    }

    fn judge(&self, task: &Name, reading: (Document, ReceiptEvidence, ReportEvidence)) -> Found {
        let (document, receipt, reports) = reading;
        let (owner_life, owner_why) = evidence::owner_life(self.context, self.store, &document.row);
        let role = match (self.keys, &document.row.task_attempt_id) {
            (Some(keys), Some(attempt)) => keys.role(attempt),
            _ => Role::Absent,
        };
        let evidence = Evidence { receipt, reports, owner_life, role };
        let classified = classify(&document.row, &evidence);
        Found {
            task: task.to_string(),
            document: Some(document),
            evidence: Some(evidence),
            owner_why,
            classified,
            error: None,
        }
    }

    fn history(&self, row: &Row) -> Result<Vec<Event>, StateError> {
        let mut events = self.store.archives(row)?;
        events.extend(row.history.events.iter().cloned());
        Ok(events)
    }

    /// Exactly one task: its fields are the answer's own.
    fn flat(&self, found: &Found, style: &Style) -> Answer {
        let message = format!(
            "task `{}` is {}: {}",
            found.task,
            found.classified.outcome.as_str(),
            found.classified.why
        );
        let code = found.error.as_ref().map_or(Code::Ok, StateError::code);
        let mut answer = Answer::new(self.context.command, code, message);
        answer.hint = found.error.as_ref().and_then(StateError::hint);
        answer.fields = found.fields(self.context, Some(self.store), self.args);
        if let (true, Some(row)) = (self.args.history, found.row()) {
            match self.history(row) {
                Ok(events) => answer.fields.insert("history".to_owned(), json!(events)),
                Err(error) => answer.fields.insert("historyError".to_owned(), json!(chain(&error))),
            };
        }
        if found.error.is_none() {
            answer.body = Some(table::one(self.store.root(), &answer.fields, style));
        }
        expected(answer, self.args, found.classified.outcome)
    }

    fn list(&self, found: &[Found], style: &Style) -> Answer {
        let tasks: Vec<Value> = found
            .iter()
            .map(|found| Value::Object(found.fields(self.context, Some(self.store), self.args)))
            .collect();
        let message = format!("{} task(s)", tasks.len());
        let body = table::many(self.store.root(), &tasks, style);
        let mut answer = Answer::new(self.context.command, Code::Ok, message).body(body);
        let named_broken = found.iter().find_map(|found| found.error.as_ref());
        if let (Some(error), false) = (named_broken, self.args.tasks.is_empty()) {
            answer.code = error.code();
            answer.message = chain(error);
            answer.hint = error.hint();
        }
        answer.fields.insert("tasks".to_owned(), Value::Array(tasks));
        if let Some(wanted) = self.args.expect {
            let other = found.iter().find(|found| found.classified.outcome != wanted);
            if let (Some(other), Exit::Done) = (other, answer.exit()) {
                answer = expected(answer, self.args, other.classified.outcome);
            }
        }
        answer
    }
}

/// `--expect`: another outcome is exit 10, with the same fields.
fn expected(mut answer: Answer, args: &InspectArgs, outcome: Outcome) -> Answer {
    if let Some(wanted) = args.expect
        && wanted != outcome
        && answer.exit() == Exit::Done
    {
        answer.code = Code::OutcomeDiffers;
        answer.message = format!("the outcome is {}, not {}", outcome.as_str(), wanted.as_str());
    }
    answer
}

/// Whether the owner is alive, as the table shows it.
pub(super) fn owner_word(life: &str) -> &'static str {
    match life {
        "yes" => "alive",
        "no" => "dead",
        "none" => "none",
        _ => "unknown",
    }
}
