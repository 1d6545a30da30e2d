//! A workflow run's checkpoints: which step, for which input, has which child, and what became of it.

use serde::{Deserialize, Serialize};

use super::history::History;
use super::ids::{AttemptId, Name, Timestamp};
use super::requests::RequestLog;
use super::row::Extra;

/// How far a step has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepStatus {
    /// It has a child.
    Started,
    /// Its child ended without a result, or its result was refused.
    Failed,
    /// It has a result.
    Completed,
}

impl StepStatus {
    /// The word on disk and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Failed => "failed",
            Self::Completed => "completed",
        }
    }
}

/// The latest record of one step and input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The step.
    pub step_id: Name,
    /// Which input it was started with. Step and input name one record.
    pub input_hash: Name,
    /// How far it has come.
    pub status: StepStatus,
    /// Its child.
    pub task_id: Name,
    /// The attempt the child had when the record was written, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why it failed, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The record was taken over from another root, where nothing fenced its child.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A task that says that it works for a step of this run, while no record of the step ever named it: from a root where
/// a checkpoint could get lost. It counts as a child of whatever input of the step is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unrecorded {
    /// The step.
    pub step_id: Name,
    /// Its input, if anything says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<Name>,
    /// The task.
    pub task_id: Name,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Unrecorded {
    /// An input under which it is asked for.
    pub fn asked_hash(&self) -> Name {
        self.input_hash.clone().unwrap_or_else(|| self.step_id.clone())
    }

    /// Whether the task may be the child of this step and input.
    pub fn may_be_of(&self, step: &Name, input_hash: &Name) -> bool {
        self.step_id == *step && self.input_hash.as_ref().is_none_or(|hash| hash == input_hash)
    }
}

/// The latch of a stopped run: until it is lifted, no step gets a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunStop {
    /// When.
    pub at: Timestamp,
    /// Why, as the caller said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A run, as it stands on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The run. One found under another name is unreadable.
    pub run_id: Name,
    /// The workspace it lives in.
    pub parent_workspace_id: Name,
    /// The latest record of every step and input, in the order they were first started.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Children without a record. Each is here until its step gets one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<Unrecorded>,
    /// Set while the run is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<RunStop>,
    /// How often it was stopped.
    #[serde(default)]
    pub stop_epoch: u64,
    /// When its first step was started.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The latest calls and their answers.
    #[serde(default)]
    pub requests: RequestLog,
    /// What happened, numbered: of every step, which child started, failed or completed. Bounded; nothing decides on it.
    #[serde(default)]
    pub history: History,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Run {
    /// The record of a step and input.
    pub fn step(&self, step: &Name, input_hash: &Name) -> Option<&Step> {
        self.steps.iter().find(|record| record.step_id == *step && record.input_hash == *input_hash)
    }
}
