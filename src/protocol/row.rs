//! A task's row: the whole truth about one task, as it stands on disk.
//!
//! Field names are the ones every reader of the root relies on. Each record keeps the fields it does not
//! know (`extra`), so that a rewrite by this version loses nothing a newer minor version added.

mod claim;
mod ending;
mod send;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use claim::{Claim, ClaimAuthority, ClaimMode, Replaces, Retirement};
pub use ending::{Cleanup, ClosedBy, ClosedFrom, Closure, Settled, Settlement};
pub use send::{Send, SendState};

use super::history::History;
use super::ids::{AttemptId, CleanupId, Name, Timestamp, TurnId};
use super::requests::RequestLog;

/// Fields of a record that this version does not know and keeps.
pub type Extra = Map<String, Value>;

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStatus {
    /// Reserved; nobody has launched it.
    Queued,
    /// Launched; no turn was admitted yet.
    Starting,
    /// A turn was admitted.
    Running,
    /// Stopped, failed or settled without a report.
    Interrupted,
    /// A report counts.
    Reported,
}

impl TaskStatus {
    /// The word on disk and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Reported => "reported",
        }
    }
}

/// The workflow step a task works for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowTask {
    /// The run.
    pub run_id: Name,
    /// The step of the run.
    pub step_id: Name,
    /// Which input the step was started with.
    pub input_hash: Name,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A process on this machine, named so that a later process can tell whether it is gone (hazard H8).
/// What could not be read when it was recorded is absent, and proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessRef {
    /// The process id as its recorder saw it.
    pub pid: u32,
    /// Start time in clock ticks after boot, as the recorder's time namespace counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ticks: Option<u64>,
    /// `/etc/machine-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    /// The kernel's boot id, recorded only if it provably came from the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The recorder's pid namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<String>,
    /// The recorder's time namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_namespace: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Who holds an attempt's token, as far as it was said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// A name for people. Never authority (case A17).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The process whose death can be proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRef>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How an attempt's id was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// `reserve`.
    Reserve,
    /// `rotate --as launch` by somebody who did not hold the token.
    Launch,
    /// `rotate --as reawaken`.
    Reawaken,
    /// `rotate --as reactivate`.
    Reactivate,
    /// `rotate --as startup`, or `recover`.
    Startup,
    /// Taken over from a root that knew no attempts.
    Import,
}

impl Origin {
    /// The word on disk and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Launch => "launch",
            Self::Reawaken => "reawaken",
            Self::Reactivate => "reactivate",
            Self::Startup => "startup",
            Self::Import => "import",
        }
    }
}

/// A person's word, recorded, that a rotation went ahead beside what could not be proven over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnprovenOverride {
    /// Who, as far as the caller said (`--owner`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When.
    pub at: Timestamp,
    /// The turns of earlier attempts that were not discharged then.
    #[serde(default)]
    pub beside_turns: Vec<TurnId>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The current attempt.
#[allow(clippy::struct_excessive_bools, reason = "each is an independent fact on disk, not a mode")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// How its id was published.
    pub origin: Origin,
    /// Whether a token exists for it (rule 49).
    pub owned: bool,
    /// Whether its settlement may leave a receipt. Fixed when the id was published (rule 14).
    pub receipt_eligible: bool,
    /// Why it is or is not eligible, for people.
    pub reason: String,
    /// When its id was published.
    pub since: Timestamp,
    /// Who owns it, as far as was said.
    #[serde(default)]
    pub owner: Owner,
    /// Whether a turn was ever admitted under it.
    #[serde(default)]
    pub ever_admitted: bool,
    /// Whether its single send without a token was registered (unowned attempts only).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unowned_send_used: bool,
    /// Set when it was rotated with `--unproven`: turns of earlier attempts do not shut its gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven_override: Option<UnprovenOverride>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An attempt that was superseded before it was proven settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Superseded {
    /// Its id.
    pub attempt_id: AttemptId,
    /// Whether it has a token.
    pub owned: bool,
    /// Who owned it.
    #[serde(default)]
    pub owner: Owner,
    /// When its successor was published.
    pub at: Timestamp,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A report that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportRef {
    /// The attempt that published it (rule 68). Absent for one that was published before attempts were known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// SHA-256 of the text as it was given, in hex.
    pub text_sha256: String,
    /// Length of the text in bytes.
    pub text_bytes: u64,
    /// SHA-256 of the report file, in hex: it proves the file whole.
    pub file_sha256: String,
    /// A title, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it was accepted.
    pub at: Timestamp,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How many earlier attempts a row remembers.
pub const PAST_ATTEMPTS_KEPT: usize = 64;

/// A task's row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The task. A row found under another name is unreadable.
    pub task_id: Name,
    /// Where its receipts and reports lie.
    pub parent_workspace_id: Name,
    /// The parent's own ancestors, nearest first. Fixed when the task was reserved (rule 29).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<Name>,
    /// The workflow step it works for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_task: Option<WorkflowTask>,
    /// Its status.
    pub task_status: TaskStatus,
    /// The current attempt's id. Absent: a legacy row (rule 13).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_attempt_id: Option<AttemptId>,
    /// The attempts before the current one, the latest [`PAST_ATTEMPTS_KEPT`] of them: an ended id of a send or
    /// turn is told from one that was never this task's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past_attempts: Vec<AttemptId>,
    /// The lineage marker. Only ever added (rule 11).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub task_attempt_unproven: bool,
    /// The claim. Never changed, never removed (rule 66).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_attempt_retired_by: Option<Claim>,
    /// The nonce and the spending of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retirement: Option<Retirement>,
    /// What this task replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Replaces>,
    /// The current attempt.
    pub attempt: Attempt,
    /// The end of the current attempt, once it has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settlement: Option<Settlement>,
    /// How many Stops there were.
    #[serde(default)]
    pub stop_epoch: u64,
    /// The latest cleanups that were paid or written off, so that a repeated payment is recognised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paid_cleanups: Vec<CleanupId>,
    /// Undischarged sends, of every attempt.
    #[serde(default)]
    pub sends: Vec<Send>,
    /// How many sends were ever registered.
    #[serde(default)]
    pub sends_minted: u64,
    /// How many turns were ever admitted.
    #[serde(default)]
    pub turns_minted: u64,
    /// Superseded attempts that are not settled, since the last proven one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<Superseded>,
    /// Which report counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_attempt_id: Option<AttemptId>,
    /// Every accepted report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<ReportRef>,
    /// How many refused reports are kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_reports: u64,
    /// When the task was reserved.
    pub created_at: Timestamp,
    /// When the row last changed.
    pub updated_at: Timestamp,
    /// The latest calls and their answers.
    #[serde(default)]
    pub requests: RequestLog,
    /// What happened, bounded. Nothing decides on it.
    #[serde(default)]
    pub history: History,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
