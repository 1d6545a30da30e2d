//! What a person can do next about a task, as whole commands. Advice decides nothing: each command is judged
//! anew when it is typed, and none of them asks to remove a file.

use super::classify::{Classified, Outcome};
use super::codes::Code;
use super::row::{Row, TaskStatus};
use super::state::{Phase, command_line, shell_option};

/// The commands that lead on from here, most useful first. `FILE` stands for a file with the token of the attempt
/// that a command is about, `NONCE` for what `claim-retire` answered.
pub fn next(row: &Row, classified: &Classified) -> Vec<String> {
    if row.task_attempt_retired_by.is_some() {
        return retired(row);
    }
    match classified.outcome {
        Outcome::Reported => reported(row),
        Outcome::Live => live(row),
        Outcome::CleanupPending => pay(row).collect(),
        Outcome::TerminalNoReport => claim(row).into_iter().chain([go_on(row, "")]).collect(),
        Outcome::Indeterminate => indeterminate(row, classified.reason),
    }
}

fn line(row: &Row, verb: &str, options: &str) -> String {
    command_line(verb, &row.task_id, options)
}

fn retired(row: &Row) -> Vec<String> {
    if let Some(replacement) = row.retirement.as_ref().and_then(|r| r.replacement_task_id.as_ref()) {
        return vec![command_line("inspect", replacement, "")];
    }
    let replaces = shell_option("--replaces", row.task_id.as_str());
    claim(row).into_iter().chain([format!("lychgate reserve {replaces} --nonce NONCE")]).collect()
}

fn reported(row: &Row) -> Vec<String> {
    let mut next = vec![line(row, "report", "--show")];
    if row.phase() == Phase::Open {
        let token = if row.attempt.owned { "--token-file FILE" } else { "" };
        next.push(line(row, "settle", token));
    }
    next.extend(pay(row));
    // While something is in flight or owed, a fresh attempt would be refused, or could do nothing.
    if row.phase() != Phase::Closing && !row.is_live() {
        next.push(go_on(row, ""));
    }
    next
}

fn live(row: &Row) -> Vec<String> {
    let mut next = Vec::new();
    if row.task_status == TaskStatus::Queued {
        next.push(line(row, "rotate", "--as launch"));
    }
    next.push(line(row, "stop", ""));
    next
}

/// The commands that pay what is owed.
fn pay(row: &Row) -> impl Iterator<Item = String> + '_ {
    let turns = row.turns().filter_map(|send| {
        let token = if send.owned { " --token-file FILE" } else { "" };
        Some(line(row, "settle", &format!("--turn {}{token}", send.turn()?)))
    });
    let cleanups = row.settlement.iter().flat_map(|settlement| &settlement.closure.cleanups);
    turns.chain(cleanups.map(|cleanup| line(row, "settle", &format!("--cleanup {}", cleanup.cleanup_id))))
}

/// The rotation that goes on with a task nobody works on.
fn go_on(row: &Row, more: &str) -> String {
    let how = if row.task_status == TaskStatus::Reported { "reactivate" } else { "reawaken" };
    line(row, "rotate", &format!("--as {how}{more}"))
}

fn claim(row: &Row) -> Option<String> {
    let step = row.workflow_task.as_ref()?;
    let attempt = row.task_attempt_id.as_ref()?;
    let mode = if row.task_status == TaskStatus::Reported { " --mode retire-reported" } else { "" };
    let options = format!(
        "--attempt {attempt} {} {} {} {}{mode}",
        shell_option("--run", step.run_id.as_str()),
        shell_option("--step", step.step_id.as_str()),
        shell_option("--input-hash", step.input_hash.as_str()),
        shell_option("--parent", row.parent_workspace_id.as_str()),
    );
    Some(line(row, "claim-retire", &options))
}

fn indeterminate(row: &Row, reason: Option<Code>) -> Vec<String> {
    let mut next = Vec::new();
    match reason {
        Some(Code::OwnerDeadUnsettled) if row.task_status == TaskStatus::Queued => {
            next.push(line(row, "rotate", "--as launch"));
        }
        Some(Code::OwnerDeadUnsettled) => {
            next.extend(pay(row));
            let in_flight = row.turns().next().is_some();
            next.push(match row.phase() {
                Phase::Closing => go_on(row, ""),
                // The pass re-drives no task that has reported.
                _ if in_flight && row.task_status == TaskStatus::Reported => go_on(row, " --unproven"),
                _ if in_flight => line(row, "recover", "--unproven"),
                _ => line(row, "recover", ""),
            });
        }
        Some(Code::OwnerUnknown | Code::OwnedUnsettled) => {
            next.extend(pay(row));
            if row.phase() == Phase::Open {
                next.push(line(row, "stop", ""));
            }
            next.push(if row.phase() == Phase::Open && row.task_status != TaskStatus::Reported {
                line(row, "recover", "--unproven")
            } else {
                go_on(row, " --unproven")
            });
        }
        Some(Code::LineageUnproven) => {
            next.push(go_on(row, ""));
            next.extend(claim(row).map(|claim| with_token(&claim)));
        }
        Some(Code::UnownedNoReceipt)
            if row.phase() == Phase::Open && row.task_status != TaskStatus::Interrupted =>
        {
            if let (Some(attempt), false) = (&row.task_attempt_id, row.attempt.unowned_send_used) {
                next.push(line(row, "admit", &format!("--attempt {attempt} --start")));
            }
            next.push(line(row, "stop", ""));
        }
        Some(Code::ReportUnreadable) => next.push(line(row, "report", "--show")),
        _ => next.push(go_on(row, "")),
    }
    next
}

/// The same command with the owner's own word.
fn with_token(claim: &str) -> String {
    claim.replacen(" --attempt", " --token-file FILE --attempt", 1)
}
