//! A root of the application xum (formerly mux): what one strict reading of it found, as plain values.
//!
//! Nothing of it is trusted further than it can be shown. [`outcome`] says what is true of a task, [`situation`]
//! in which of the known dead ends it is, [`mapping`] what is taken over from it, and [`keep`] which words of it
//! may be repeated at all.

pub mod index;
pub mod keep;
pub mod mapping;
pub mod outcome;
pub mod runs;
pub mod situation;

pub use index::{StepIndex, StepOf, XumUnrecorded};

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::ids::{AttemptId, Timestamp};
use super::receipt::Receipt;
use super::row::Claim;

/// What was found where a piece of evidence belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting<T> {
    /// It is there, and is what it should be.
    Found(T),
    /// It is positively not there.
    NotFound,
    /// Something is there, or nobody can tell. The text is for people and quotes nothing of it.
    Unreadable(String),
}

impl<T> Sighting<T> {
    /// The word in answers.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Found(_) => "found",
            Self::NotFound => "not-found",
            Self::Unreadable(_) => "unreadable",
        }
    }

    /// What was found, if it was.
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(found) => Some(found),
            Self::NotFound | Self::Unreadable(_) => None,
        }
    }
}

/// Something in the root that is damaged, unknown or contradictory. Nothing is guessed about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// What is wrong, in one stable word.
    pub what: &'static str,
    /// Where: a path below the root, or an id.
    pub at: String,
    /// One clause for people.
    pub says: String,
}

impl Problem {
    /// A problem.
    pub fn new(what: &'static str, at: impl Into<String>, says: impl Into<String>) -> Self {
        Self { what, at: at.into(), says: says.into() }
    }
}

/// The status of a task, as that application writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum XumStatus {
    /// Waits for a slot.
    Queued,
    /// Being launched.
    Starting,
    /// At work.
    Running,
    /// At work, and asked for its report.
    AwaitingReport,
    /// Stopped, failed or given up.
    Interrupted,
    /// Its report was accepted.
    Reported,
}

impl XumStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Starting,
        Self::Running,
        Self::AwaitingReport,
        Self::Interrupted,
        Self::Reported,
    ];

    /// The word on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::AwaitingReport => "awaiting_report",
            Self::Interrupted => "interrupted",
            Self::Reported => "reported",
        }
    }

    /// The status with that word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Whether that application counts the task as at work.
    pub fn is_active(self) -> bool {
        !matches!(self, Self::Interrupted | Self::Reported)
    }
}

/// A task's row in `config.json`.
#[allow(clippy::struct_excessive_bools, reason = "each is an independent fact on disk, not a mode")]
#[derive(Debug, Clone, PartialEq)]
pub struct XumRow {
    /// The workspace it belongs to.
    pub parent: String,
    /// Its status. A row without one is an old row of a running task.
    pub status: XumStatus,
    /// Whether the row itself names its status.
    pub names_status: bool,
    /// The current attempt. Absent: a row from before attempts had ids.
    pub attempt: Option<AttemptId>,
    /// The lineage marker.
    pub unproven: bool,
    /// The claim.
    pub claim: Option<Box<Claim>>,
    /// The run and the step it works for.
    pub step: Option<(String, String)>,
    /// Whether it says when it reported.
    pub reported_at: bool,
    /// Whether it is archived.
    pub archived: bool,
    /// Whether a reactivation of it is under way.
    pub reactivated: bool,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// Every field, as it stands.
    pub fields: Map<String, Value>,
}

/// A report that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct XumReport {
    /// The workspace in whose folder it was found.
    pub holder: String,
    /// The attempt that published it.
    pub attempt: Option<AttemptId>,
    /// Its title.
    pub title: Option<String>,
    /// SHA-256 of its text, in hex.
    pub text_sha256: String,
    /// The length of its text in bytes.
    pub text_bytes: u64,
    /// Whether its text is nothing but white space.
    pub is_blank: bool,
    /// When it was written.
    pub at: Option<Timestamp>,
    /// The structured result beside the text.
    pub structured: Option<Value>,
}

/// A failure that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XumFailure {
    /// Its kind.
    pub kind: String,
    /// What it says.
    pub message: String,
}

/// Everything the root holds about one task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskFacts {
    /// Its row. `Unreadable`: there is one that cannot be judged. `NotFound`: a checkpoint names it, and no row does.
    pub row: Sighting<XumRow>,
    /// The workspaces above it, its parent first, as far as rows are there. A chain that comes back to itself ends.
    pub line: Vec<String>,
    /// Its report, in its parent's folder or in one of an ancestor.
    pub report: Sighting<XumReport>,
    /// Its failure.
    pub failure: Sighting<XumFailure>,
    /// The receipt of its current attempt, in its parent's folder.
    pub receipt: Sighting<Receipt>,
    /// Every strict receipt in its parent's folder, of any attempt, with the workspaces that hold the same record.
    pub receipts: Vec<(Receipt, Vec<String>)>,
}

/// How far a run has come, as that application writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum XumRunStatus {
    /// Made, and not begun.
    Pending,
    /// At work.
    Running,
    /// At work without a client.
    Backgrounded,
    /// Stopped; it can be resumed.
    Interrupted,
    /// Over.
    Completed,
    /// Over, with an error.
    Failed,
}

impl XumRunStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Running, Self::Backgrounded, Self::Interrupted, Self::Completed, Self::Failed];

    /// The word on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Backgrounded => "backgrounded",
            Self::Interrupted => "interrupted",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// The status with that word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// How far a step has come, as that application writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum XumStepStatus {
    /// It was started, and nothing later is known.
    Started,
    /// It was stopped with its run, and goes on when the run is resumed.
    Interrupted,
    /// It failed.
    Failed,
    /// It has a result.
    Completed,
}

impl XumStepStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Started, Self::Interrupted, Self::Failed, Self::Completed];

    /// The word on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Completed => "completed",
        }
    }

    /// The status with that word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Whether the step still waits for its child.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Started | Self::Interrupted)
    }
}

/// The latest record of one step and input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XumStep {
    /// The step.
    pub step: String,
    /// Its input.
    pub input_hash: String,
    /// How far it has come.
    pub status: XumStepStatus,
    /// Its child. Steps that are no sub-agents have none.
    pub task: Option<String>,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<String>,
}

/// A workflow run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XumRun {
    /// Its id.
    pub id: String,
    /// The workspace in whose folder it lies.
    pub owner: String,
    /// What its last status event says, else its snapshot. Absent: neither can be read.
    pub status: Option<XumRunStatus>,
    /// The latest record of every step and input, in the order they were first started.
    pub steps: Vec<XumStep>,
    /// When its runner's lease was last renewed, in milliseconds since the epoch.
    pub lease: Sighting<i64>,
    /// The children its journal calls unresolved.
    pub noted: BTreeSet<String>,
    /// Every child that a record of a step or an event ever named.
    pub named: BTreeSet<String>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When it last changed.
    pub updated_at: Option<Timestamp>,
    /// Why its checkpoints cannot be relied on, if they cannot.
    pub unreadable: Option<String>,
}

/// One reading of a root.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// Whether `config.json` carries the mark of the versions that fence attempts.
    pub has_write_id: bool,
    /// How many rows are no tasks.
    pub n_workspaces: usize,
    /// Every task by its id, and every id an open step names without a row.
    pub tasks: BTreeMap<String, TaskFacts>,
    /// The runs, in the order of their owners and ids.
    pub runs: Vec<XumRun>,
    /// What is wrong with the root, sorted.
    pub problems: Vec<Problem>,
}
