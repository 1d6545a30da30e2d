//! Retiring an attempt for exactly one checkpoint: the claim (rules 65 to 73, 80; hazard H1).

use super::classify::ReportEvidence;
use super::codes::Code;
use super::ids::{AttemptId, Name, Nonce};
use super::lineage::ReceiptEvidence;
use super::reservation::spent;
use super::row::{Claim, ClaimAuthority, ClaimMode, Extra, Retirement, Row, TaskStatus};
use super::state::{Phase, owed_words, turn_fact};
use super::verdict::{Call, Credentials, Facts, Judged, OwnerLife, Refusal, Role, Said, Verdict};
use crate::facts;

/// A request to retire an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The attempt.
    pub attempt: AttemptId,
    /// The checkpoint: its run.
    pub run: Name,
    /// Its step.
    pub step: Name,
    /// Its input.
    pub input_hash: Name,
    /// The workspace the run lives in.
    pub parent: Name,
    /// Which evidence the claim shall rest on.
    pub mode: ClaimMode,
    /// The nonce of this grant.
    pub fresh: Nonce,
}

/// The evidence around a claim, read under the row's lock.
pub struct ClaimEvidence<'a> {
    /// The caller's credentials.
    pub credentials: &'a dyn Credentials,
    /// Whether the current attempt's owner is alive.
    pub owner_life: OwnerLife,
    /// The receipt of the current attempt in the parent's folder.
    pub receipt: ReceiptEvidence,
    /// What lies in the task's report folder, against what the row says.
    pub reports: ReportEvidence,
}

/// Retires the attempt, or says what stands in the way.
pub fn claim(row: &Row, request: &ClaimRequest, evidence: &ClaimEvidence<'_>, call: &Call) -> Judged {
    refuse_other_checkpoint(row, request)?;
    if let Some(claim) = &row.task_attempt_retired_by {
        return again(row, claim, request, call);
    }
    let Some(current) = &row.task_attempt_id else {
        let message = format!(
            "task `{}` has no attempt id: it is replaced without a claim, or not at all",
            row.task_id
        );
        return Err(Box::new(Refusal::new(Code::LegacyNotNeeded, message)));
    };
    row.refuse_stale(&request.attempt)?;
    refuse_live(row, evidence.owner_life)?;
    let authority = authority(row, current, request.mode, evidence)?;
    let before = row.state_word();
    let mut row = row.clone();
    let claim = Claim {
        run_id: request.run.clone(),
        step_id: request.step.clone(),
        input_hash: request.input_hash.clone(),
        child_task_id: row.task_id.clone(),
        attempt_id: request.attempt.clone(),
        mode: request.mode,
        authority,
        at: call.now.clone(),
        extra: Extra::new(),
    };
    row.task_attempt_retired_by = Some(claim);
    row.retirement =
        Some(Retirement { nonce: request.fresh.clone(), replacement_task_id: None, extra: Extra::new() });
    row.record(
        call,
        Some(before),
        Code::Claimed,
        Some(request.attempt.as_str()),
        Some(request.mode.as_str()),
    );
    let message = format!("attempt {} of task `{}` is retired for good", request.attempt, row.task_id);
    Ok(granted(row, message))
}

/// Rule 80: a mistyped checkpoint must not block the right one for ever.
fn refuse_other_checkpoint(row: &Row, request: &ClaimRequest) -> Result<(), Box<Refusal>> {
    let step = row.workflow_task.as_ref();
    let wrong = if row.parent_workspace_id != request.parent {
        Some(("parent", row.parent_workspace_id.as_str(), &request.parent))
    } else if step.is_none_or(|step| step.run_id != request.run) {
        Some(("run", step.map_or("none", |step| step.run_id.as_str()), &request.run))
    } else if step.is_none_or(|step| step.step_id != request.step) {
        Some(("step", step.map_or("none", |step| step.step_id.as_str()), &request.step))
    } else if step.is_none_or(|step| step.input_hash != request.input_hash) {
        Some(("input hash", step.map_or("none", |step| step.input_hash.as_str()), &request.input_hash))
    } else {
        None
    };
    let Some((what, has, asked)) = wrong else { return Ok(()) };
    let message = format!("the {what} of task `{}` is `{has}`, not `{asked}`", row.task_id);
    Err(Box::new(Refusal::new(Code::CheckpointMismatch, message)))
}

/// A claim that exists: satisfied by the same checkpoint and attempt, whatever its mode and age (rule 65).
/// The claim never changes; a fresh nonce beside it voids the older ones.
fn again(row: &Row, claim: &Claim, request: &ClaimRequest, call: &Call) -> Judged {
    let same = claim.run_id == request.run
        && claim.step_id == request.step
        && claim.input_hash == request.input_hash
        && claim.child_task_id == row.task_id
        && claim.attempt_id == request.attempt;
    if !same {
        let message = format!(
            "task `{}` is retired for run {} step {} attempt {}",
            row.task_id, claim.run_id, claim.step_id, claim.attempt_id
        );
        return Err(Box::new(Refusal::new(Code::ClaimLost, message)));
    }
    if let Some(replacement) = row.retirement.as_ref().and_then(|r| r.replacement_task_id.as_ref()) {
        return Err(spent(row, replacement));
    }
    let before = row.state_word();
    let mut row = row.clone();
    row.retirement =
        Some(Retirement { nonce: request.fresh.clone(), replacement_task_id: None, extra: Extra::new() });
    row.record(call, Some(before), Code::Claimed, Some(request.attempt.as_str()), Some("granted again"));
    let message = format!(
        "attempt {} of task `{}` was retired before; the nonce is fresh",
        request.attempt, row.task_id
    );
    Ok(granted(row, message))
}

/// Rule 69: anything in flight, of any attempt, is a veto, a token holder's claim included.
fn refuse_live(row: &Row, life: OwnerLife) -> Result<(), Box<Refusal>> {
    let in_flight: Vec<_> = row.sends.iter().map(turn_fact).collect();
    if !in_flight.is_empty() {
        let message = format!(
            "attempt is live: {} turn(s) or send(s) of task `{}` are in flight",
            in_flight.len(),
            row.task_id
        );
        return Err(Box::new(
            Refusal::new(Code::AttemptLive, message)
                .hint("stop it, and have the owner settle what runs")
                .fact("inFlight", in_flight),
        ));
    }
    match row.phase() {
        Phase::Closing => {
            let message =
                format!("the attempt of task `{}` is closing; {} still owed", row.task_id, owed_words(row));
            Err(Box::new(Refusal::new(Code::CleanupPending, message).fact("owed", row.owed())))
        }
        Phase::Open if life == OwnerLife::Alive && row.is_launched() => {
            let message = format!("attempt is live: task `{}` is open and its owner is alive", row.task_id);
            Err(Box::new(Refusal::new(Code::AttemptLive, message).hint("stop it first")))
        }
        Phase::Open | Phase::Settled => Ok(()),
    }
}

/// Rules 67, 68, 70: what the claim rests on. `None` is a receipt, the only word that counts across owners.
fn authority(
    row: &Row,
    current: &AttemptId,
    mode: ClaimMode,
    evidence: &ClaimEvidence<'_>,
) -> Result<Option<ClaimAuthority>, Box<Refusal>> {
    if let ReportEvidence::Broken(why) = &evidence.reports {
        let message = format!("the reports of task `{}` are not what its row says: {why}", row.task_id);
        return Err(Box::new(Refusal::new(Code::ReportUnreadable, message)));
    }
    refuse_wrong_mode(row, current, mode)?;
    let own_word = row.attempt.owned && evidence.credentials.role(current) == Role::Owner;
    let own_settlement = own_word && (mode == ClaimMode::RetireReported || row.phase() == Phase::Settled);
    let token = || Ok(Some(ClaimAuthority::Token));
    if row.task_attempt_unproven {
        if own_settlement {
            return token();
        }
        let message = format!("an earlier attempt of task `{}` was never proven over", row.task_id);
        return Err(Box::new(
            Refusal::new(Code::LineageUnproven, message)
                .hint("the owner of the current attempt may settle it and claim with its own token"),
        ));
    }
    match &evidence.receipt {
        ReceiptEvidence::Found => Ok(None),
        ReceiptEvidence::NotFound if own_settlement => token(),
        ReceiptEvidence::NotFound => {
            let message =
                format!("nothing proves attempt {current} of task `{}` over: it has no receipt", row.task_id);
            Err(Box::new(Refusal::new(Code::NoSettlementEvidence, message).hint(settle_hint(row))))
        }
        ReceiptEvidence::Unreadable(why) => {
            let message =
                format!("the receipt of attempt {current} of task `{}` is unreadable: {why}", row.task_id);
            Err(Box::new(Refusal::new(Code::ReceiptUnreadable, message)))
        }
    }
}

fn settle_hint(row: &Row) -> &'static str {
    match row.phase() {
        Phase::Open => "its owner settles it, or anyone stops it",
        Phase::Closing => "its owner settles what it owes",
        Phase::Settled => "its receipt is missing from the parent's folder; look for a copy in a backup",
    }
}

fn refuse_wrong_mode(row: &Row, current: &AttemptId, mode: ClaimMode) -> Result<(), Box<Refusal>> {
    let status = row.task_status.as_str();
    match mode {
        ClaimMode::NoReport if !row.reports.is_empty() => {
            let message = format!("task `{}` published a report", row.task_id);
            Err(Box::new(
                Refusal::new(Code::ReportPublished, message)
                    .hint("adopt it, or retire it with --mode retire-reported"),
            ))
        }
        ClaimMode::NoReport if row.task_status != TaskStatus::Interrupted => {
            let message = format!("task `{}` is {status}, not interrupted", row.task_id);
            Err(Box::new(Refusal::new(Code::NotInterrupted, message).fact("taskStatus", status)))
        }
        ClaimMode::RetireReported if row.task_status != TaskStatus::Reported => {
            let message = format!("task `{}` is {status}, not reported", row.task_id);
            Err(Box::new(Refusal::new(Code::NotReported, message).fact("taskStatus", status)))
        }
        ClaimMode::RetireReported if row.report_attempt_id.as_ref() != Some(current) => {
            let message =
                format!("the report of task `{}` is not bound to its current attempt {current}", row.task_id);
            Err(Box::new(Refusal::new(Code::ReportNotBound, message)))
        }
        ClaimMode::NoReport | ClaimMode::RetireReported => Ok(()),
    }
}

fn granted(row: Row, message: String) -> Verdict {
    let mut facts: Facts = facts! { "taskId": row.task_id, "attemptId": row.task_attempt_id };
    if let (Some(claim), Some(retirement)) = (&row.task_attempt_retired_by, &row.retirement) {
        facts.extend(facts! {
            "nonce": retirement.nonce, "runId": claim.run_id, "stepId": claim.step_id,
            "inputHash": claim.input_hash, "mode": claim.mode.as_str(), "authority": claim.authority,
            "claimedAt": claim.at, "lateReports": row.late_reports,
        });
    }
    Verdict::Change { row: Box::new(row), receipt: None, said: Said { code: Code::Claimed, message, facts } }
}

/// Rule 72: the reports are read again after the claim is durable, and once more before it is spent. What is
/// found then is an alarm: the claim stands, and nothing may be replaced on it. Which evidence is looked for
/// follows from the claim as it was first granted, not from how it was asked for again.
pub fn alarm(row: &Row, reports: &ReportEvidence) -> Result<(), Box<Refusal>> {
    let granted = row.task_attempt_retired_by.as_ref().map(|claim| claim.mode);
    let (ReportEvidence::Broken(why), Some(ClaimMode::NoReport)) = (reports, granted) else { return Ok(()) };
    let message = format!(
        "ALARM: the attempt of task `{}` was settled without a report, and now there is one: {why}",
        row.task_id
    );
    Err(Box::new(
        Refusal::new(Code::ReportAfterSettlement, message)
            .hint("the claim stands and nothing is replaced; a person must look at the report")
            .fact("taskId", row.task_id.as_str()),
    ))
}
