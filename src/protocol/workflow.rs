//! The one place where a workflow step gets a child (rules 5, 10, 67, 74 to 77; decisions 2, 9, 10).
//!
//! The checkpoint names the step's child. What became of that child is judged by evidence, and only proof that
//! it is over lets another one take its place: then it is disposed, claimed and replaced in one commit.

use super::classify::{Classified, Evidence, Outcome, ReportEvidence, classify};
use super::codes::Code;
use super::ids::{AttemptId, Name, Nonce};
use super::lineage::ReceiptEvidence;
use super::retirement::{ClaimEvidence, ClaimRequest, claim};
use super::row::{ClaimMode, ClosedBy, Extra, Row, TaskStatus, WorkflowTask};
use super::run::{Run, Step, StepStatus};
use super::settlement::{ClosingWords, close, release};
use super::state::{Phase, shell_word};
use super::verdict::{Call, Credentials, OwnerLife, ReceiptDue, Refusal, Role, Verdict};

/// The checkpoint somebody asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The workspace of the run.
    pub parent: Name,
    /// The run.
    pub run: Name,
    /// The step.
    pub step: Name,
    /// Its input.
    pub input_hash: Name,
}

impl Checkpoint {
    /// What a child of it works for.
    pub fn work(&self) -> WorkflowTask {
        WorkflowTask {
            run_id: self.run.clone(),
            step_id: self.step.clone(),
            input_hash: self.input_hash.clone(),
            extra: Extra::new(),
        }
    }
}

/// The step's child so far, and what is known about it.
#[derive(Debug, Clone)]
pub struct Prior<'a> {
    /// Its name, from the checkpoint.
    pub task: &'a Name,
    /// Its row, if there is one.
    pub row: Option<&'a Row>,
    /// The evidence about it.
    pub evidence: Evidence,
}

/// What may be done about a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepDecision {
    /// It has no child: reserve one.
    Fresh,
    /// Its child is proven over: the old row, claimed, is replaced.
    Replace {
        /// The old row, with its claim; not spent yet.
        old: Box<Row>,
        /// The nonce that spends the claim. Absent for a legacy child, which is replaced without one.
        nonce: Option<Nonce>,
        /// The receipt that the old attempt is due, if this call settles it.
        receipt: Option<Box<ReceiptDue>>,
    },
    /// It gets no child now.
    No(Box<Refusal>),
}

/// Refuses while the run is stopped, unless the caller names the Stop it goes on after.
pub fn refuse_stopped_run(
    run: Option<&Run>,
    at: &Checkpoint,
    resume: Option<u64>,
) -> Result<(), Box<Refusal>> {
    let Some(run) = run.filter(|run| run.stopped.is_some() && resume != Some(run.stop_epoch)) else {
        return Ok(());
    };
    let message = format!("run `{}` was stopped, so none of its steps gets a child", run.run_id);
    let word = |name: &Name| shell_word(name.as_str());
    let ask = format!(
        "lychgate reserve --run {} --step {} --input-hash {} --parent {} --resume {}",
        word(&at.run),
        word(&at.step),
        word(&at.input_hash),
        word(&at.parent),
        run.stop_epoch
    );
    Err(Box::new(
        Refusal::new(Code::RunStopped, message)
            .hint(format!("to go on on purpose: {ask}"))
            .fact("stopEpoch", run.stop_epoch),
    ))
}

/// Decides what a step's next child may be. `fresh` is the nonce of the claim, should one be needed.
pub fn decide(
    status: Option<&Step>,
    prior: Option<&Prior<'_>>,
    checkpoint: &Checkpoint,
    fresh: &Nonce,
    call: &Call,
) -> StepDecision {
    let Some(prior) = prior else { return StepDecision::Fresh };
    if status.is_some_and(|step| step.status == StepStatus::Completed) {
        let message = format!("step `{}` is completed, by task `{}`", checkpoint.step, prior.task);
        return no(Refusal::new(Code::Completed, message), prior, None);
    }
    let Some(row) = prior.row else {
        let why =
            format!("step `{}` names task `{}`, and there is no row for it", checkpoint.step, prior.task);
        return unresolved(Code::NoTaskRecord, why, prior);
    };
    let (mut row, evidence, receipt) = settle_if_proven(row, &prior.evidence, call);
    // A row that was taken over may not say for which input it works; the checkpoint that is asked about does.
    row.workflow_task.get_or_insert_with(|| checkpoint.work());
    let found = classify(&row, &evidence);
    let failed = status.is_some_and(|step| step.status == StepStatus::Failed);
    let imported = status.is_some_and(|step| step.imported);
    let claimed = row.task_attempt_retired_by.is_some();
    match found.outcome {
        _ if claimed => {
            replace(&row, ClaimMode::NoReport, &evidence, receipt, prior, checkpoint, fresh, call)
        }
        Outcome::TerminalNoReport => {
            replace(&row, ClaimMode::NoReport, &evidence, receipt, prior, checkpoint, fresh, call)
        }
        Outcome::Reported if failed && row.task_attempt_id.is_none() && imported => legacy(row, receipt),
        Outcome::Reported if failed => {
            replace(&row, ClaimMode::RetireReported, &evidence, receipt, prior, checkpoint, fresh, call)
        }
        Outcome::Reported => {
            let message =
                format!("task `{}` has reported for step `{}`: take its report", prior.task, checkpoint.step);
            let hint = format!("lychgate report {} --show", shell_word(prior.task.as_str()));
            no(Refusal::new(Code::Adopt, message).hint(hint), prior, None)
        }
        Outcome::Live => reattach(&row, prior, checkpoint),
        Outcome::CleanupPending => {
            let message =
                format!("task `{}` of step `{}` is closing; ask again", prior.task, checkpoint.step);
            no(Refusal::new(Code::CleanupPending, message).fact("owed", row.owed()), prior, None)
        }
        Outcome::Indeterminate if waits_to_be_launched(&row) => reattach(&row, prior, checkpoint),
        Outcome::Indeterminate if found.reason == Some(Code::LegacyNoAttemptId) && failed && imported => {
            legacy(row, receipt)
        }
        Outcome::Indeterminate => indeterminate(&found, prior, checkpoint),
    }
}

/// A queued child never passed the gate. Whoever asks may launch it, also when its maker is dead.
fn waits_to_be_launched(row: &Row) -> bool {
    row.task_status == TaskStatus::Queued && row.phase() == Phase::Open
}

/// Decision 17: an eligible attempt whose owner is dead and in which nothing is in flight can publish nothing any
/// more, so it is settled in the commit that asks.
fn settle_if_proven(row: &Row, evidence: &Evidence, call: &Call) -> (Row, Evidence, Option<Box<ReceiptDue>>) {
    let mut row = row.clone();
    let mut evidence = evidence.clone();
    let idle = row.phase() == Phase::Open && !row.is_live() && row.task_status != TaskStatus::Queued;
    let over = idle
        && evidence.owner_life == OwnerLife::Dead
        && row.attempt.receipt_eligible
        && !row.task_attempt_unproven
        && row.task_attempt_retired_by.is_none()
        && row.task_status != TaskStatus::Interrupted;
    if !over {
        return (row, evidence, None);
    }
    let before = row.state_word();
    close(&mut row, ClosedBy::Recover, ClosingWords::default(), &call.now);
    let receipt = release(&mut row, &call.now).map(Box::new);
    row.record(call, Some(before), Code::Settled, None, Some("the owner is dead and nothing was in flight"));
    if receipt.is_some() {
        evidence.receipt = ReceiptEvidence::Found;
    }
    (row, evidence, receipt)
}

struct OneRole(Role);

impl Credentials for OneRole {
    fn role(&self, _attempt: &AttemptId) -> Role {
        self.0
    }
}

#[allow(clippy::too_many_arguments, reason = "the whole evidence of one decision")]
fn replace(
    row: &Row,
    mode: ClaimMode,
    evidence: &Evidence,
    receipt: Option<Box<ReceiptDue>>,
    prior: &Prior<'_>,
    checkpoint: &Checkpoint,
    fresh: &Nonce,
    call: &Call,
) -> StepDecision {
    let Some(attempt) = row.task_attempt_id.clone() else {
        return unresolved(
            Code::LegacyNoAttemptId,
            "it comes from a time before attempts had ids".to_owned(),
            prior,
        );
    };
    let request = ClaimRequest {
        attempt,
        run: checkpoint.run.clone(),
        step: checkpoint.step.clone(),
        input_hash: checkpoint.input_hash.clone(),
        parent: checkpoint.parent.clone(),
        mode,
        fresh: fresh.clone(),
    };
    let role = OneRole(evidence.role);
    let claim_evidence = ClaimEvidence {
        credentials: &role,
        owner_life: evidence.owner_life,
        receipt: evidence.receipt.clone(),
        reports: evidence.reports.clone(),
    };
    match claim(row, &request, &claim_evidence, call) {
        Ok(Verdict::Change { row, .. }) => {
            StepDecision::Replace { old: row, nonce: Some(fresh.clone()), receipt }
        }
        Ok(Verdict::Same(said)) => unresolved(said.code, said.message, prior),
        Err(refusal) => unresolved(refusal.code, refusal.message, prior),
    }
}

/// Decision 10: a legacy child of a step that was failed when it was taken over is replaced without a claim.
fn legacy(row: Row, receipt: Option<Box<ReceiptDue>>) -> StepDecision {
    StepDecision::Replace { old: Box::new(row), nonce: None, receipt }
}

fn reattach(row: &Row, prior: &Prior<'_>, checkpoint: &Checkpoint) -> StepDecision {
    let task = shell_word(prior.task.as_str());
    let (what, hint) = if waits_to_be_launched(row) {
        ("is queued and waits to be launched by whoever asks", format!("lychgate rotate {task} --as launch"))
    } else {
        ("is live", format!("lychgate inspect {task}"))
    };
    let message = format!("task `{}` of step `{}` {what}", prior.task, checkpoint.step);
    no(Refusal::new(Code::Reattach, message).hint(hint), prior, None)
}

fn indeterminate(found: &Classified, prior: &Prior<'_>, checkpoint: &Checkpoint) -> StepDecision {
    let why = format!(
        "nobody can tell what became of task `{}` of step `{}`: {}",
        prior.task, checkpoint.step, found.why
    );
    unresolved(found.reason.unwrap_or(Code::Unresolved), why, prior)
}

/// Nothing changes, however often it is asked: the reason names the missing evidence (rules 6, 77).
fn unresolved(reason: Code, why: String, prior: &Prior<'_>) -> StepDecision {
    let hint = format!("lychgate inspect {} --explain", shell_word(prior.task.as_str()));
    no(Refusal::new(Code::Unresolved, why).hint(hint), prior, Some(reason))
}

fn no(mut refusal: Refusal, prior: &Prior<'_>, reason: Option<Code>) -> StepDecision {
    refusal = refusal.fact("taskId", prior.task.as_str());
    if let Some(reason) = reason {
        refusal = refusal.fact("reasonCode", reason.as_str());
    }
    if let Some(row) = prior.row {
        refusal = refusal
            .fact("attemptId", row.task_attempt_id.as_ref().map(AttemptId::as_str))
            .fact("taskStatus", row.task_status.as_str())
            .fact("ownerAlive", prior.evidence.owner_life.as_str())
            .fact("lateReports", row.late_reports);
    }
    StepDecision::No(Box::new(refusal))
}

/// Whether the reports are as the row says, for a result to be taken.
pub fn is_sound(reports: &ReportEvidence) -> Result<(), String> {
    match reports {
        ReportEvidence::AsTheRowSays => Ok(()),
        ReportEvidence::Broken(why) => Err(why.clone()),
    }
}
