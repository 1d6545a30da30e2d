//! Reserving a task: a new row, queued, with a fresh proven attempt (rule 19); and the spending of a claim.

use super::classify::ReportEvidence;
use super::codes::Code;
use super::history::History;
use super::ids::{AttemptId, Name, Nonce};
use super::requests::RequestLog;
use super::retirement::alarm;
use super::row::{Attempt, Extra, Origin, Owner, Replaces, Row, TaskStatus, WorkflowTask};
use super::verdict::{Call, Facts, Refusal, Said};
use crate::facts;

/// A request to reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// The task's name.
    pub task: Name,
    /// The parent workspace.
    pub parent: Name,
    /// The parent's own ancestors, nearest first.
    pub ancestors: Vec<Name>,
    /// The workflow step it works for.
    pub workflow_task: Option<WorkflowTask>,
    /// The owner record.
    pub owner: Owner,
    /// The id to publish.
    pub fresh: AttemptId,
}

/// A granted reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    /// The new row.
    pub row: Box<Row>,
    /// The old row with its claim spent, if this replaces one. It goes into the same commit.
    pub old: Option<Box<Row>>,
    /// The answer.
    pub said: Said,
}

/// Refuses a taken name, for ever.
pub fn refuse_taken(existing: Option<&Row>) -> Result<(), Box<Refusal>> {
    let Some(row) = existing else { return Ok(()) };
    let attempt = row.task_attempt_id.as_ref().map_or("none", AttemptId::as_str);
    let refusal = Refusal::new(
        Code::TaskExists,
        format!("task `{}` exists: {}, attempt {attempt}", row.task_id, row.task_status.as_str()),
    )
    .hint("to continue it use `rotate`; for new work take a new name")
    .fact("taskId", row.task_id.as_str())
    .fact("currentAttemptId", attempt)
    .fact("taskStatus", row.task_status.as_str());
    Err(Box::new(refusal))
}

/// Reserves a task that replaces nothing.
pub fn reserve(existing: Option<&Row>, request: &Reserve, call: &Call) -> Result<Reserved, Box<Refusal>> {
    refuse_taken(existing)?;
    let row = new_row(request, None, call);
    let said = said(&row, format!("task `{}` is reserved", row.task_id));
    Ok(Reserved { row: Box::new(row), old: None, said })
}

/// What a claim is spent with.
#[derive(Debug, Clone, Copy)]
pub struct Spending<'a> {
    /// The nonce the caller shows; `None` for something that is no nonce.
    pub nonce: Option<&'a Nonce>,
    /// The retired task's reports, read under its lock.
    pub reports: &'a ReportEvidence,
}

/// Reserves the replacement of a retired attempt, and spends its claim in the same commit (hazard H1).
pub fn replace(
    existing: Option<&Row>,
    old: &Row,
    spending: &Spending<'_>,
    request: &Reserve,
    call: &Call,
) -> Result<Reserved, Box<Refusal>> {
    let (Some(claim), Some(retirement)) = (&old.task_attempt_retired_by, &old.retirement) else {
        return Err(not_claimed(old));
    };
    if let Some(replacement) = &retirement.replacement_task_id {
        return Err(spent(old, replacement));
    }
    if spending.nonce != Some(&retirement.nonce) {
        let message = format!("the nonce is not the one last granted for task `{}`", old.task_id);
        return Err(Box::new(
            Refusal::new(Code::StaleNonce, message)
                .hint("ask again with `claim-retire`; it answers a fresh nonce"),
        ));
    }
    alarm(old, spending.reports)?;
    refuse_taken(existing)?;
    let replaces =
        Replaces { task_id: old.task_id.clone(), attempt_id: claim.attempt_id.clone(), extra: Extra::new() };
    let row = new_row(request, Some(replaces), call);
    let before = old.state_word();
    let mut spent_row = old.clone();
    spent_row.retirement = Some(super::row::Retirement {
        nonce: retirement.nonce.clone(),
        replacement_task_id: Some(request.task.clone()),
        extra: retirement.extra.clone(),
    });
    spent_row.record(call, Some(before), Code::ClaimSpent, Some(request.task.as_str()), None);
    let said = said(&row, format!("task `{}` replaces the retired `{}`", row.task_id, old.task_id));
    Ok(Reserved { row: Box::new(row), old: Some(Box::new(spent_row)), said })
}

/// The refusal of a replacement for a task that was never retired.
pub fn not_claimed(old: &Row) -> Box<Refusal> {
    let message = format!("task `{}` was not claimed for replacement", old.task_id);
    let refusal = Refusal::new(Code::NotClaimed, message).fact("taskId", old.task_id.as_str());
    Box::new(refusal.hint("retire it first: lychgate claim-retire"))
}

/// The refusal of a claim that was spent, naming what spent it.
pub fn spent(old: &Row, replacement: &Name) -> Box<Refusal> {
    let message = format!("task `{}` was replaced by `{replacement}`; a claim is spent once", old.task_id);
    Box::new(
        Refusal::new(Code::ClaimSpent, message)
            .fact("taskId", old.task_id.as_str())
            .fact("replacementTaskId", replacement.as_str()),
    )
}

fn new_row(request: &Reserve, replaces: Option<Replaces>, call: &Call) -> Row {
    let mut row = Row {
        task_id: request.task.clone(),
        parent_workspace_id: request.parent.clone(),
        ancestors: request.ancestors.clone(),
        workflow_task: request.workflow_task.clone(),
        task_status: TaskStatus::Queued,
        task_attempt_id: Some(request.fresh.clone()),
        past_attempts: Vec::new(),
        task_attempt_unproven: false,
        task_attempt_retired_by: None,
        retirement: None,
        replaces,
        attempt: Attempt {
            origin: Origin::Reserve,
            owned: true,
            receipt_eligible: true,
            reason: "a reservation is the first admission of its task".to_owned(),
            since: call.now.clone(),
            owner: request.owner.clone(),
            ever_admitted: false,
            unowned_send_used: false,
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
        created_at: call.now.clone(),
        updated_at: call.now.clone(),
        requests: RequestLog::default(),
        history: History::default(),
        extra: Extra::new(),
    };
    let subject = row.task_attempt_id.as_ref().map(|id| id.as_str().to_owned());
    row.record(call, None, Code::Reserved, subject.as_deref(), None);
    row
}

fn said(row: &Row, message: String) -> Said {
    let mut facts: Facts = facts! {
        "taskId": row.task_id, "attemptId": row.task_attempt_id, "taskStatus": row.task_status.as_str(),
        "proven": true, "receiptEligible": true, "parentWorkspaceId": row.parent_workspace_id,
    };
    if let Some(step) = &row.workflow_task {
        facts.extend(facts! { "runId": step.run_id, "stepId": step.step_id, "inputHash": step.input_hash });
    }
    if let Some(replaces) = &row.replaces {
        facts.extend(facts! { "replaces": replaces.task_id, "replacesAttemptId": replaces.attempt_id });
    }
    Said { code: Code::Reserved, message, facts }
}
