//! What a person can do next about a task, as whole commands. Advice decides nothing: each command is judged
//! anew when it is typed, and none of them asks to remove a file.

use super::classify::{Classified, Outcome};
use super::codes::Code;
use super::ids::Name;
use super::row::{Row, TaskStatus};
use super::state::{Phase, shell_command, shell_option};

/// The commands that lead on from here, most useful first.
pub fn next(row: &Row, classified: &Classified) -> Vec<String> {
    let task = &row.task_id;
    if row.task_attempt_retired_by.is_some() {
        return retired(row, task);
    }
    match classified.outcome {
        Outcome::Reported => reported(row, task),
        Outcome::Live => live(row, task),
        Outcome::CleanupPending => pay(row, task),
        Outcome::TerminalNoReport => {
            let mut next: Vec<String> = claim(row, task, "").into_iter().collect();
            next.push(shell_command("rotate", task, "--as reawaken"));
            next
        }
        Outcome::Indeterminate => indeterminate(row, classified.reason, task),
    }
}

fn retired(row: &Row, task: &Name) -> Vec<String> {
    if let Some(replacement) = row.retirement.as_ref().and_then(|r| r.replacement_task_id.as_ref()) {
        return vec![shell_command("inspect", replacement, "")];
    }
    let mut next: Vec<String> = claim(row, task, "").into_iter().collect();
    next.push(format!("lychgate reserve {} --nonce NONCE", shell_option("--replaces", task)));
    next
}

fn reported(row: &Row, task: &Name) -> Vec<String> {
    let mut next = vec![shell_command("report", task, "--show")];
    if row.phase() == Phase::Open {
        next.push(shell_command("settle", task, "--token-file FILE"));
    }
    next.extend(turns(row, task));
    next.push(shell_command("rotate", task, "--as reactivate"));
    next
}

fn live(row: &Row, task: &Name) -> Vec<String> {
    let mut next = Vec::new();
    if row.task_status == TaskStatus::Queued {
        next.push(shell_command("rotate", task, "--as launch"));
    }
    next.push(shell_command("stop", task, ""));
    next
}

/// The commands that pay what is owed.
fn pay(row: &Row, task: &Name) -> Vec<String> {
    let cleanups = row.settlement.iter().flat_map(|settlement| &settlement.closure.cleanups);
    let cleanups =
        cleanups.map(|cleanup| shell_command("settle", task, &format!("--cleanup {}", cleanup.cleanup_id)));
    turns(row, task).chain(cleanups).collect()
}

fn turns<'a>(row: &'a Row, task: &'a Name) -> impl Iterator<Item = String> + 'a {
    row.turns().filter_map(move |send| {
        let turn = send.turn()?;
        let token = if send.owned { " --token-file FILE" } else { "" };
        Some(shell_command("settle", task, &format!("--turn {turn}{token}")))
    })
}

fn claim(row: &Row, task: &Name, token: &str) -> Option<String> {
    let step = row.workflow_task.as_ref()?;
    let attempt = row.task_attempt_id.as_ref()?;
    let mode = if row.task_status == TaskStatus::Reported { " --mode retire-reported" } else { "" };
    let options = format!(
        "--attempt {attempt} {} {} {} {}{mode}{token}",
        shell_option("--run", &step.run_id),
        shell_option("--step", &step.step_id),
        shell_option("--input-hash", &step.input_hash),
        shell_option("--parent", &row.parent_workspace_id),
    );
    Some(shell_command("claim-retire", task, &options))
}

fn indeterminate(row: &Row, reason: Option<Code>, task: &Name) -> Vec<String> {
    let mut next = Vec::new();
    let reawaken = shell_command("rotate", task, "--as reawaken");
    let stop = shell_command("stop", task, "");
    match reason {
        Some(Code::OwnerDeadUnsettled) if row.task_status == TaskStatus::Queued => {
            next.push(shell_command("rotate", task, "--as launch"));
        }
        Some(Code::OwnerDeadUnsettled) => {
            next.extend(pay(row, task));
            if row.phase() == Phase::Closing {
                next.push(reawaken);
            } else if row.turns().next().is_some() {
                next.push(shell_command("recover", task, "--unproven"));
            } else {
                next.push(shell_command("recover", task, ""));
            }
        }
        Some(Code::OwnerUnknown | Code::OwnedUnsettled) => {
            next.extend(pay(row, task));
            if row.phase() == Phase::Open {
                next.push(stop);
                next.push(shell_command("recover", task, "--unproven"));
            } else {
                next.push(shell_command("rotate", task, "--as reawaken --unproven"));
            }
        }
        Some(Code::LineageUnproven) => {
            next.push(reawaken);
            next.extend(claim(row, task, " --token-file FILE"));
        }
        Some(Code::UnownedNoReceipt)
            if row.phase() == Phase::Open && row.task_status != TaskStatus::Interrupted =>
        {
            if let (Some(attempt), false) = (&row.task_attempt_id, row.attempt.unowned_send_used) {
                next.push(shell_command("admit", task, &format!("--attempt {attempt} --start")));
            }
            next.push(stop);
        }
        Some(Code::ReportUnreadable) => next.push(shell_command("report", task, "--show")),
        _ => next.push(reawaken),
    }
    next
}
