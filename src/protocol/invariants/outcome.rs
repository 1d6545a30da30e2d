//! What must be true whenever the classifier gives an answer.

use super::unless;
use crate::protocol::classify::{Classified, Outcome};
use crate::protocol::row::{Row, TaskStatus};
use crate::protocol::state::Phase;

/// A row and what the classifier said about it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The row.
    pub row: &'a Row,
    /// What was said.
    pub said: &'a Classified,
}

invariants! {
    /// The invariants over a classification.
    OutcomeRule over Seen<'_> {
        TerminalIsOver ["rules 1, 4, 36, 59, 64, 106"]
            "terminal-no-report is said only of a settled, unmarked attempt with nothing in flight and no report"
            => terminal_is_over;
        ReportedHasReport ["rule 67; decision 7"]
            "reported is said only of a reported task" => reported_has_report;
        PendingIsClosing ["rules 34, 36"]
            "cleanup-pending is said only of a closing attempt" => pending_is_closing;
        IndeterminateHasReason ["rule 61"]
            "indeterminate, and nothing else, names a reason" => indeterminate_has_reason;
    }
}

fn terminal_is_over(seen: &Seen<'_>) -> Option<String> {
    let row = seen.row;
    let over = row.phase() == Phase::Settled
        && !row.task_attempt_unproven
        && row.sends.is_empty()
        && row.reports.is_empty();
    unless(seen.said.outcome != Outcome::TerminalNoReport || over, || {
        format!("{}, marked {}, {} send(s)", row.state_word(), row.task_attempt_unproven, row.sends.len())
    })
}

fn reported_has_report(seen: &Seen<'_>) -> Option<String> {
    let reported = seen.row.task_status == TaskStatus::Reported && !seen.row.reports.is_empty();
    unless(seen.said.outcome != Outcome::Reported || reported, || seen.row.state_word())
}

fn pending_is_closing(seen: &Seen<'_>) -> Option<String> {
    let closing = seen.row.phase() == Phase::Closing;
    unless(seen.said.outcome != Outcome::CleanupPending || closing, || seen.row.state_word())
}

fn indeterminate_has_reason(seen: &Seen<'_>) -> Option<String> {
    let fits = (seen.said.outcome == Outcome::Indeterminate) == seen.said.reason.is_some();
    unless(fits, || format!("{:?} with {:?}", seen.said.outcome, seen.said.reason))
}
