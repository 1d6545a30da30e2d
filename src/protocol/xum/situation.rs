//! In which known dead end of that application a task or a run is, and what a person can do about it there.

use super::{Sighting, StepOf, TaskFacts, XumRun, XumRunStatus, XumStatus};
use crate::protocol::classify::Outcome;

/// A lease that was not renewed for this long is stale.
pub const LEASE_STALE_MS: i64 = 30_000;

macro_rules! situations {
    ($($variant:ident = $word:literal, $what:literal, $todo:literal;)+) => {
        /// A known dead end.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the table gives each its meaning")]
        pub enum Situation { $($variant,)+ }

        impl Situation {
            /// Every situation, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word in answers.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// What it is, in one sentence.
            pub fn what(self) -> &'static str {
                match self { $(Self::$variant => $what,)+ }
            }

            /// What a person can do there, in one sentence.
            pub fn todo(self) -> &'static str {
                match self { $(Self::$variant => $todo,)+ }
            }
        }
    };
}

situations! {
    UnresolvedChild = "unresolved-child",
        "The application was restarted, nobody owns this child of a started step, and every resume of the run only interrupts it again.",
        "Look at the child; if nothing of it is worth keeping, start a fresh workflow run, or import the root and decide with lychgate.";
    SecondChild = "second-child",
        "The child of a started step is interrupted, and a resume of the run would silently start a second child beside it.",
        "Do not resume the run before you have made sure that nothing of the first child is at work any more.";
    StaleLease = "stale-lease",
        "The run looks active, but its runner has not renewed its lease for over 30 seconds.",
        "Open the run in a client, which makes the application take it up again, or resume the workflow there.";
    PendingRun = "pending-run",
        "The run was made and never begun, and nothing begins it by itself.",
        "Resume the workflow there, or start a fresh run.";
    FailedRun = "failed-run",
        "The run failed while a step was started, and it is retried from its checkpoint only after an interrupted execution.",
        "Retry it from its checkpoint if the application offers that, else start a fresh run.";
    StartingChild = "starting-child",
        "The child is being launched, or the application died launching it; only its next start repairs that.",
        "Restart the application once you are sure that nothing launches the child any more.";
    SilentChild = "silent-child",
        "The child counts as at work, and nothing on disk shows whether anybody works on it.",
        "Restart the application, which asks the child again up to five times, or stop the task there.";
    QueuedChild = "queued-child",
        "The child waits for a slot, perhaps for ever: stale active tasks hold slots, and a parent that is gone launches nothing.",
        "Stop stale active tasks in the application, or stop this one and start it anew.";
    ReportMissing = "report-missing",
        "The child counts as reported, and its report is not on disk, so whoever waits for it is told that there is no such task.",
        "Ask the child for its report again, or look for it in the child's own chat.";
    StepWithoutRow = "step-without-row",
        "A started step names this child, and no row was ever written for it.",
        "Start a fresh workflow run; older versions of the application start the step again by themselves.";
    UnprovenLineage = "unproven-lineage",
        "A restart took up this child while it may have been at work, so that nothing proves its earlier attempts over.",
        "Only the process that owns it can settle it; otherwise decide by hand whether it may be replaced.";
}

/// Whether a run's lease is stale, or there is none. A lease that cannot be read proves nothing.
pub fn lease_is_stale(run: &XumRun, now_ms: i64) -> bool {
    match run.lease {
        Sighting::Found(at) => now_ms.saturating_sub(at) >= LEASE_STALE_MS,
        Sighting::NotFound => true,
        Sighting::Unreadable(_) => false,
    }
}

/// In which dead end a run is.
pub fn of_run(run: &XumRun, now_ms: i64) -> Option<Situation> {
    match run.status? {
        XumRunStatus::Running | XumRunStatus::Backgrounded => {
            lease_is_stale(run, now_ms).then_some(Situation::StaleLease)
        }
        XumRunStatus::Pending => (run.lease == Sighting::NotFound).then_some(Situation::PendingRun),
        XumRunStatus::Failed => {
            run.steps.iter().any(|step| step.status.is_open()).then_some(Situation::FailedRun)
        }
        XumRunStatus::Interrupted | XumRunStatus::Completed => None,
    }
}

/// In which dead ends a task is, the one to look at first in front.
pub fn of_task(
    task: &str,
    facts: &TaskFacts,
    outcome: Outcome,
    step: Option<StepOf<'_>>,
    fences: bool,
    now_ms: i64,
) -> Vec<Situation> {
    let mut found = by_row(facts, outcome);
    let open = step.filter(|of| of.step.status.is_open());
    if let Some(of) = open.filter(|_| outcome != Outcome::Reported) {
        let interrupted = facts.row.found().is_some_and(|row| row.status == XumStatus::Interrupted);
        if interrupted && of.run.status == Some(XumRunStatus::Interrupted) && found.is_empty() {
            if of.run.noted.contains(task) || fences {
                // With a receipt such a version replaces the child by itself.
                found.extend((outcome != Outcome::TerminalNoReport).then_some(Situation::UnresolvedChild));
            } else {
                found.push(Situation::SecondChild);
            }
        }
        found.extend(of_run(of.run, now_ms));
    }
    found
}

fn by_row(facts: &TaskFacts, outcome: Outcome) -> Vec<Situation> {
    let row = match &facts.row {
        Sighting::NotFound => return vec![Situation::StepWithoutRow],
        Sighting::Found(row) if outcome != Outcome::Reported => row,
        Sighting::Found(_) | Sighting::Unreadable(_) => return Vec::new(),
    };
    let says_reported = row.status == XumStatus::Reported || row.reported_at;
    if says_reported && !row.status.is_active() && facts.report == Sighting::NotFound {
        return vec![Situation::ReportMissing];
    }
    let by_status = match row.status {
        XumStatus::Queued => Some(Situation::QueuedChild),
        XumStatus::Starting => Some(Situation::StartingChild),
        XumStatus::Running | XumStatus::AwaitingReport => Some(Situation::SilentChild),
        XumStatus::Interrupted | XumStatus::Reported => None,
    };
    row.unproven.then_some(Situation::UnprovenLineage).into_iter().chain(by_status).collect()
}
