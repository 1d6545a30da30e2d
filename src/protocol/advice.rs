//! What a person can do next about a task, as whole commands. Advice decides nothing: each command is judged
//! anew when it is typed, and none of them asks to remove a file.

use super::classify::{Classified, Outcome};
use super::codes::Code;
use super::row::{Row, TaskStatus};
use super::state::{Phase, shell_word};

/// The commands that lead on from here, most useful first.
pub fn next(row: &Row, classified: &Classified) -> Vec<String> {
    let task = shell_word(row.task_id.as_str());
    if row.task_attempt_retired_by.is_some() {
        return retired(row, &task);
    }
    match classified.outcome {
        Outcome::Reported => reported(row, &task),
        Outcome::Live => live(row, &task),
        Outcome::CleanupPending => pay(row, &task),
        Outcome::TerminalNoReport => {
            let mut next: Vec<String> = claim(row, &task).into_iter().collect();
            next.push(format!("lychgate rotate {task} --as reawaken"));
            next
        }
        Outcome::Indeterminate => indeterminate(row, classified.reason, &task),
    }
}

fn retired(row: &Row, task: &str) -> Vec<String> {
    if let Some(replacement) = row.retirement.as_ref().and_then(|r| r.replacement_task_id.as_ref()) {
        return vec![format!("lychgate inspect {}", shell_word(replacement.as_str()))];
    }
    let mut next: Vec<String> = claim(row, task).into_iter().collect();
    next.push(format!("lychgate reserve --replaces {task} --nonce NONCE"));
    next
}

fn reported(row: &Row, task: &str) -> Vec<String> {
    let mut next = vec![format!("lychgate report {task} --show")];
    if row.phase() == Phase::Open {
        next.push(format!("lychgate settle {task} --token-file FILE"));
    }
    next.extend(turns(row, task));
    next.push(format!("lychgate rotate {task} --as reactivate"));
    next
}

fn live(row: &Row, task: &str) -> Vec<String> {
    let mut next = Vec::new();
    if row.task_status == TaskStatus::Queued {
        next.push(format!("lychgate rotate {task} --as launch"));
    }
    next.push(format!("lychgate stop {task}"));
    next
}

/// The commands that pay what is owed.
fn pay(row: &Row, task: &str) -> Vec<String> {
    let cleanups = row.settlement.iter().flat_map(|settlement| &settlement.closure.cleanups);
    let cleanups = cleanups.map(|cleanup| format!("lychgate settle {task} --cleanup {}", cleanup.cleanup_id));
    turns(row, task).chain(cleanups).collect()
}

fn turns<'a>(row: &'a Row, task: &'a str) -> impl Iterator<Item = String> + 'a {
    row.turns().filter_map(move |send| {
        let turn = send.turn()?;
        let token = if send.owned { " --token-file FILE" } else { "" };
        Some(format!("lychgate settle {task} --turn {turn}{token}"))
    })
}

fn claim(row: &Row, task: &str) -> Option<String> {
    let step = row.workflow_task.as_ref()?;
    let attempt = row.task_attempt_id.as_ref()?;
    let mode = if row.task_status == TaskStatus::Reported { " --mode retire-reported" } else { "" };
    Some(format!(
        "lychgate claim-retire {task} --attempt {attempt} --run {} --step {} --input-hash {} --parent {}{mode}",
        shell_word(step.run_id.as_str()),
        shell_word(step.step_id.as_str()),
        shell_word(step.input_hash.as_str()),
        shell_word(row.parent_workspace_id.as_str()),
    ))
}

fn indeterminate(row: &Row, reason: Option<Code>, task: &str) -> Vec<String> {
    let mut next = Vec::new();
    let reawaken = format!("lychgate rotate {task} --as reawaken");
    let stop = format!("lychgate stop {task}");
    match reason {
        Some(Code::OwnerDeadUnsettled) if row.task_status == TaskStatus::Queued => {
            next.push(format!("lychgate rotate {task} --as launch"));
        }
        Some(Code::OwnerDeadUnsettled) => {
            next.extend(pay(row, task));
            if row.phase() == Phase::Closing {
                next.push(reawaken);
            } else if row.turns().next().is_some() {
                next.push(format!("lychgate recover {task} --unproven"));
            } else {
                next.push(format!("lychgate recover {task}"));
            }
        }
        Some(Code::OwnerUnknown | Code::OwnedUnsettled) => {
            next.extend(pay(row, task));
            if row.phase() == Phase::Open {
                next.push(stop);
                next.push(format!("lychgate recover {task} --unproven"));
            } else {
                next.push(format!("{reawaken} --unproven"));
            }
        }
        Some(Code::LineageUnproven) => {
            next.push(reawaken);
            next.extend(claim(row, task).map(|claim| format!("{claim} --token-file FILE")));
        }
        Some(Code::UnownedNoReceipt)
            if row.phase() == Phase::Open && row.task_status != TaskStatus::Interrupted =>
        {
            if let (Some(attempt), false) = (&row.task_attempt_id, row.attempt.unowned_send_used) {
                next.push(format!("lychgate admit {task} --attempt {attempt} --start"));
            }
            next.push(stop);
        }
        Some(Code::ReportUnreadable) => next.push(format!("lychgate report {task} --show")),
        _ => next.push(reawaken),
    }
    next
}
