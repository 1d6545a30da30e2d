//! What is taken over from such a root, task by task: status and identity as they were, and never more authority
//! than was proven there. What is not taken over says why.

use serde_json::{Map, Value, json};

use super::outcome::outcome;
use super::{Sighting, StepIndex, TaskFacts, XumReport, XumRow, XumStatus, keep};
use crate::protocol::classify::Outcome;
use crate::protocol::codes::Code;
use crate::protocol::history::History;
use crate::protocol::ids::{AttemptId, Name, Nonce};
use crate::protocol::receipt::Receipt;
use crate::protocol::requests::RequestLog;
use crate::protocol::row::{
    Attempt, Extra, Origin, Owner, ReportRef, Retirement, Row, TaskStatus, WorkflowTask,
};
use crate::protocol::verdict::Call;

/// The field of our row that holds what ours has no other place for.
pub const BESIDE: &str = "xum";

/// Something that was not taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// What kind of thing: `task`, `report`, `receipt`, `run`, `step`, `field`.
    pub kind: &'static str,
    /// Which one.
    pub id: String,
    /// Why, in one stable word.
    pub why: &'static str,
    /// Why, for people.
    pub says: String,
}

impl LeftOut {
    /// Something that was not taken over.
    pub fn new(
        kind: &'static str,
        id: impl Into<String>,
        why: &'static str,
        says: impl Into<String>,
    ) -> Self {
        Self { kind, id: id.into(), why, says: says.into() }
    }
}

/// A task that is taken over: its row, and what goes into the same commit.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenTask {
    /// The row, without its report.
    pub row: Box<Row>,
    /// The report, whose text is read when it is written.
    pub report: Option<XumReport>,
    /// Whether that report makes the task a reported one. It does not where the task may have gone on after it.
    pub report_counts: bool,
    /// Receipts, with the workspaces that get a copy: the parent first.
    pub receipts: Vec<(Receipt, Vec<Name>)>,
    /// What of it is not taken over.
    pub left_out: Vec<LeftOut>,
}

/// Whether a task that exists in our root is this one: why it is not taken over again. `now` is what would be.
pub fn exists(row: &Row, now: &Row, source: &str) -> LeftOut {
    let from = row.extra.get(BESIDE).and_then(|beside| beside.get("root")).and_then(Value::as_str);
    let (why, says) = match from {
        Some(from) if from == source && row.extra.get(BESIDE) != now.extra.get(BESIDE) => (
            "changed-since",
            "it was taken over from this root before, and has changed there since; what is here stays",
        ),
        Some(from) if from == source => ("already-imported", "it was taken over from this root before"),
        Some(_) => {
            ("imported-from-another-root", "a task of this name was taken over from another root before")
        }
        None => ("task-exists", "a task of this name exists here, and is not from that root"),
    };
    LeftOut::new("task", row.task_id.as_str(), why, says)
}

/// Maps one task. `nonce` is for a claim that comes along; the application's own is never ours.
pub fn task(
    id: &str,
    facts: &TaskFacts,
    steps: &StepIndex<'_>,
    source: &str,
    nonce: Nonce,
    call: &Call,
) -> Result<TakenTask, LeftOut> {
    let skipped = |why: &'static str, says: &str| LeftOut::new("task", id, why, says);
    let found = match &facts.row {
        Sighting::Found(row) => row,
        Sighting::NotFound => return Err(skipped("no-task-record", "only a checkpoint names it")),
        Sighting::Unreadable(why) => return Err(skipped("row-unreadable", why)),
    };
    let name =
        Name::parse(id).map_err(|_| skipped("id-not-usable", "its id cannot be a task's name here"))?;
    let parent = Name::parse(&found.parent)
        .map_err(|_| skipped("parent-not-usable", "its parent's id cannot be a workspace's name here"))?;
    let mut left_out = Vec::new();
    let ancestors = ancestors(&facts.line);
    let (fields, refused) = keep::kept(&found.fields);
    left_out.extend(
        refused
            .into_iter()
            .map(|(field, why)| LeftOut::new("field", format!("{id} {field}"), "field-left-out", why)),
    );
    let mut beside = Map::new();
    beside.insert("root".to_owned(), json!(source));
    beside.insert("row".to_owned(), Value::Object(fields));
    let report = report(id, facts, &mut beside, &mut left_out);
    if let Sighting::Found(failure) = &facts.failure {
        let message = keep::shown(&failure.message);
        beside
            .insert("failure".to_owned(), json!({ "kind": keep::shown(&failure.kind), "message": message }));
    }
    let receipts = receipts(id, facts, &parent, &ancestors, &mut left_out);
    let mut row = row(name, parent, ancestors, found, status(found, facts), call);
    row.workflow_task = workflow_task(id, facts, steps);
    row.retirement = found.claim.as_ref().map(|claim| Retirement {
        nonce,
        replacement_task_id: replacement(id, facts, steps, &claim.extra),
        extra: Extra::new(),
    });
    row.past_attempts = past_attempts(found, report.as_ref(), &receipts);
    beside.insert("evidence".to_owned(), evidence(found, facts));
    row.extra.insert(BESIDE.to_owned(), Value::Object(beside));
    let attempt = row.task_attempt_id.as_ref().map(|id| id.as_str().to_owned());
    row.record(call, None, Code::Imported, attempt.as_deref(), None);
    let report_counts = outcome(facts).outcome == Outcome::Reported;
    Ok(TakenTask { row: Box::new(row), report, report_counts, receipts, left_out })
}

/// Binds the report that was written to the row.
pub fn bind(row: &mut Row, report: ReportRef, counts: bool) {
    row.report_attempt_id.clone_from(&report.attempt_id);
    row.reports.push(report);
    if counts {
        row.task_status = TaskStatus::Reported;
    }
}

/// What the row's own fields were made of, so that a later import sees whether any of it has changed there.
fn evidence(found: &XumRow, facts: &TaskFacts) -> Value {
    let report = facts.report.found();
    let receipts = facts.receipts.iter().map(|(receipt, _)| &receipt.attempt_id);
    json!({
        "attemptId": found.attempt, "unproven": found.unproven,
        "retired": found.claim.is_some(),
        "replacement": found.claim.as_ref().and_then(|claim| claim.extra.get("replacementTaskId")),
        "report": facts.report.word(), "reportAttemptId": report.map(|report| &report.attempt),
        "reportSha256": report.map(|report| &report.text_sha256), "receipts": receipts.collect::<Vec<_>>(),
    })
}

fn ancestors(line: &[String]) -> Vec<Name> {
    line.iter().skip(1).map_while(|id| Name::parse(id).ok()).collect()
}

fn status(found: &XumRow, facts: &TaskFacts) -> TaskStatus {
    if found.reactivated {
        return TaskStatus::Running;
    }
    match found.status {
        // It reported, or something lies where its report belongs. Without one that can be taken over it is a reported
        // task whose report is missing, never one that positively has none.
        XumStatus::Interrupted if found.reported_at || facts.report != Sighting::NotFound => {
            TaskStatus::Reported
        }
        XumStatus::Queued => TaskStatus::Queued,
        XumStatus::Starting => TaskStatus::Starting,
        XumStatus::Running | XumStatus::AwaitingReport => TaskStatus::Running,
        XumStatus::Interrupted => TaskStatus::Interrupted,
        XumStatus::Reported => TaskStatus::Reported,
    }
}

/// The row, nobody's. What was found active is unproven: nothing says what of it is still at work, and no send is
/// admitted without a fresh attempt.
fn row(
    task_id: Name,
    parent: Name,
    ancestors: Vec<Name>,
    found: &XumRow,
    task_status: TaskStatus,
    call: &Call,
) -> Row {
    let active = found.status.is_active() || found.reactivated;
    let unlaunched = matches!(task_status, TaskStatus::Queued | TaskStatus::Starting);
    let made = found.created_at.clone().unwrap_or_else(|| call.now.clone());
    Row {
        task_id,
        parent_workspace_id: parent,
        ancestors,
        workflow_task: None,
        task_status,
        task_attempt_id: found.attempt.clone(),
        past_attempts: Vec::new(),
        task_attempt_unproven: found.unproven || active || found.attempt.is_none(),
        task_attempt_retired_by: found.claim.as_deref().cloned(),
        retirement: None,
        replaces: None,
        attempt: Attempt {
            origin: Origin::Import,
            owned: false,
            receipt_eligible: false,
            reason: "taken over from a root where nothing of ours fenced it".to_owned(),
            since: made.clone(),
            owner: Owner::default(),
            ever_admitted: !unlaunched,
            unowned_send_used: true,
            unproven_override: None,
            extra: Extra::new(),
        },
        settlement: None,
        stop_epoch: 0,
        paid_cleanups: Vec::new(),
        sends: Vec::new(),
        sends_minted: 0,
        turns_minted: 0,
        superseded: Vec::new(),
        report_attempt_id: None,
        reports: Vec::new(),
        late_reports: 0,
        created_at: made,
        updated_at: call.now.clone(),
        requests: RequestLog::default(),
        history: History::default(),
        extra: Extra::new(),
    }
}

fn report(
    id: &str,
    facts: &TaskFacts,
    beside: &mut Map<String, Value>,
    left_out: &mut Vec<LeftOut>,
) -> Option<XumReport> {
    let report = match &facts.report {
        Sighting::Found(report) => report,
        Sighting::NotFound => return None,
        Sighting::Unreadable(why) => {
            left_out.push(LeftOut::new("report", id, "report-unreadable", why.clone()));
            return None;
        }
    };
    if let Some(structured) = &report.structured {
        match keep::checked("structuredOutput", structured) {
            Ok(kept) => {
                beside.insert("structuredOutput".to_owned(), kept);
            }
            Err(why) => {
                left_out.push(LeftOut::new("field", format!("{id} structuredOutput"), "field-left-out", why));
            }
        }
    }
    Some(report.clone())
}

/// Every strict receipt. The parent's copy is the one that counts, so it goes first.
fn receipts(
    id: &str,
    facts: &TaskFacts,
    parent: &Name,
    ancestors: &[Name],
    left_out: &mut Vec<LeftOut>,
) -> Vec<(Receipt, Vec<Name>)> {
    if let Sighting::Unreadable(why) = &facts.receipt {
        left_out.push(LeftOut::new("receipt", id, "receipt-unreadable", why.clone()));
    }
    let copies = |holders: &[String]| {
        let held = ancestors.iter().filter(|name| holders.iter().any(|holder| holder == name.as_str()));
        std::iter::once(parent).chain(held).cloned().collect()
    };
    facts.receipts.iter().map(|(receipt, holders)| (receipt.clone(), copies(holders))).collect()
}

/// The step, if its latest record says with which input it was started; the row alone does not.
fn workflow_task(id: &str, facts: &TaskFacts, steps: &StepIndex<'_>) -> Option<WorkflowTask> {
    let claim = facts.row.found().and_then(|row| row.claim.as_deref());
    if let Some(claim) = claim {
        return Some(WorkflowTask {
            run_id: claim.run_id.clone(),
            step_id: claim.step_id.clone(),
            input_hash: claim.input_hash.clone(),
            extra: Extra::new(),
        });
    }
    let of = steps.step_of(id, facts)?;
    Some(WorkflowTask {
        run_id: Name::parse(&of.run.id).ok()?,
        step_id: Name::parse(&of.step.step).ok()?,
        input_hash: Name::parse(&of.step.input_hash).ok()?,
        extra: Extra::new(),
    })
}

/// What replaced a retired task: named by the claim, or by the latest record of its checkpoint.
fn replacement(id: &str, facts: &TaskFacts, steps: &StepIndex<'_>, claim: &Extra) -> Option<Name> {
    if let Some(named) = claim.get("replacementTaskId").and_then(Value::as_str) {
        return usable(named);
    }
    let row = facts.row.found()?;
    let record = steps.latest(&row.parent, row.claim.as_deref()?)?;
    record.task.as_deref().filter(|task| *task != id).and_then(usable)
}

/// The name of a task that ours cannot have: no task has this one either, so that nobody takes a step for one that
/// never had a child, or a claim for one that was never spent.
const UNUSABLE: &str = "(its id cannot be a name here)";

/// The name of a task that exists there, whatever its id.
pub(super) fn usable(id: &str) -> Option<Name> {
    Name::parse(id).or_else(|_| Name::parse(UNUSABLE)).ok()
}

fn past_attempts(
    found: &XumRow,
    report: Option<&XumReport>,
    receipts: &[(Receipt, Vec<Name>)],
) -> Vec<AttemptId> {
    let named = report
        .and_then(|report| report.attempt.clone())
        .into_iter()
        .chain(receipts.iter().map(|(receipt, _)| receipt.attempt_id.clone()));
    let mut past: Vec<AttemptId> = named.filter(|attempt| Some(attempt) != found.attempt.as_ref()).collect();
    past.sort();
    past.dedup();
    past
}
