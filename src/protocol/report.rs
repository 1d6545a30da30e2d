//! Publishing a report: accepted once, bound to its attempt; a refused one is kept (rules 68, 72; hazard H14).

use super::codes::Code;
use super::ids::{AttemptId, Timestamp};
use super::row::{Extra, ReportRef, Row, TaskStatus};
use super::state::Phase;
use super::verdict::{Call, Credentials, Facts, Refusal, Role, Said};
use crate::facts;

/// A report that was read in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The attempt that publishes it.
    pub attempt: AttemptId,
    /// SHA-256 of its text, in hex.
    pub text_sha256: String,
    /// Length of its text in bytes.
    pub text_bytes: u64,
    /// SHA-256 of the file it will become, in hex.
    pub file_sha256: String,
    /// A title, for people.
    pub title: Option<String>,
    /// Whether this very text is kept under `late/` already.
    pub kept_late: bool,
}

/// What becomes of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Publishing {
    /// It counts: the report file and the row go into one commit.
    Accept {
        /// The new row.
        row: Box<Row>,
        /// The answer.
        said: Said,
    },
    /// The attempt published this very report before.
    Already(Said),
    /// It does not count and is kept under `late/`, in one commit with the row that counts it.
    Late {
        /// The new row; absent when this text is kept already.
        row: Option<Box<Row>>,
        /// The refusal.
        refusal: Box<Refusal>,
    },
}

/// Why a report does not count, if it does not. It is accepted while closing: the turn that made it is
/// still in flight then.
fn refuse(row: &Row, publication: &Publication, credentials: &dyn Credentials) -> Result<(), Box<Refusal>> {
    let attempt = &publication.attempt;
    row.refuse_retired()?;
    row.refuse_stale(attempt)?;
    if row.attempt.owned {
        row.refuse_stranger(credentials, attempt, &[Role::Owner, Role::Worker])?;
    }
    if row.phase() == Phase::Settled {
        row.refuse_closed()?;
    }
    if row.reports.iter().any(|report| report.attempt_id.as_ref() == Some(attempt)) {
        let message = format!("attempt {attempt} of task `{}` published another report before", row.task_id);
        return Err(Box::new(Refusal::new(Code::SecondReport, message)));
    }
    if row.own_turns().next().is_none() {
        let message = format!(
            "attempt {attempt} of task `{}` has no turn in flight that could have made it",
            row.task_id
        );
        return Err(Box::new(Refusal::new(Code::NoTurnRunning, message)));
    }
    Ok(())
}

/// Judges a report.
pub fn publish(
    row: &Row,
    publication: &Publication,
    credentials: &dyn Credentials,
    call: &Call,
) -> Publishing {
    let published =
        row.reports.iter().find(|report| report.attempt_id.as_ref() == Some(&publication.attempt));
    if published.is_some_and(|report| report.text_sha256 == publication.text_sha256) {
        let message =
            format!("attempt {} of task `{}` published this report before", publication.attempt, row.task_id);
        return Publishing::Already(Said {
            code: Code::AlreadyReported,
            message,
            facts: about(row, publication),
        });
    }
    match refuse(row, publication, credentials) {
        Ok(()) => accept(row, publication, call),
        Err(refusal) => keep_late(row, publication, &refusal, call),
    }
}

fn accept(row: &Row, publication: &Publication, call: &Call) -> Publishing {
    let before = row.state_word();
    let mut row = row.clone();
    row.reports.push(reference(publication, &call.now));
    row.report_attempt_id = Some(publication.attempt.clone());
    row.task_status = TaskStatus::Reported;
    row.record(
        call,
        Some(before),
        Code::ReportAccepted,
        Some(publication.attempt.as_str()),
        publication.title.as_deref(),
    );
    let message = format!("task `{}` is reported", row.task_id);
    let said = Said { code: Code::ReportAccepted, message, facts: about(&row, publication) };
    Publishing::Accept { row: Box::new(row), said }
}

fn keep_late(row: &Row, publication: &Publication, why: &Refusal, call: &Call) -> Publishing {
    let mut refusal = Refusal::new(
        Code::LateReport,
        format!("{}; the report does not count, and is kept", why.message.trim_end_matches('.')),
    )
    .hint("read it with `report TASK --show --late`");
    refusal.facts.clone_from(&why.facts);
    refusal.facts.insert("reasonCode".to_owned(), why.code.as_str().into());
    if publication.kept_late {
        refusal.facts.extend(about(row, publication));
        return Publishing::Late { row: None, refusal: Box::new(refusal) };
    }
    let before = row.state_word();
    let mut row = row.clone();
    row.late_reports += 1;
    row.record(
        call,
        Some(before),
        Code::LateReport,
        Some(publication.attempt.as_str()),
        Some(why.code.as_str()),
    );
    refusal.facts.extend(about(&row, publication));
    Publishing::Late { row: Some(Box::new(row)), refusal: Box::new(refusal) }
}

fn reference(publication: &Publication, now: &Timestamp) -> ReportRef {
    ReportRef {
        attempt_id: Some(publication.attempt.clone()),
        text_sha256: publication.text_sha256.clone(),
        text_bytes: publication.text_bytes,
        file_sha256: publication.file_sha256.clone(),
        title: publication.title.clone(),
        at: now.clone(),
        extra: Extra::new(),
    }
}

fn about(row: &Row, publication: &Publication) -> Facts {
    facts! {
        "taskId": row.task_id,
        "attemptId": publication.attempt,
        "taskStatus": row.task_status.as_str(),
        "reportAttemptId": row.report_attempt_id,
        "bytes": publication.text_bytes,
        "sha256": publication.text_sha256,
        "lateReports": row.late_reports,
    }
}

impl Row {
    /// The report that counts.
    pub fn counted_report(&self) -> Option<&ReportRef> {
        self.reports.iter().rev().find(|report| report.attempt_id == self.report_attempt_id)
    }
}
