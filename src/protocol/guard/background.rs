//! What lives in the background, and whether it belongs to the work chain (1.8).

use serde::{Deserialize, Serialize};

use super::session::BootTime;
use crate::protocol::ids::{MarkId, Name, Timestamp};
use crate::protocol::row::{Extra, ProcessRef};

/// What kind of thing lives in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskKind {
    /// A sub-agent.
    Agent,
    /// A shell command.
    Shell,
    /// Something that watches.
    Monitor,
    /// A workflow.
    Workflow,
    /// A timer that wakes the chain.
    Wakeup,
}

impl TaskKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Agent, Self::Shell, Self::Monitor, Self::Workflow, Self::Wakeup];

    /// The word on disk, on the command line and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Shell => "shell",
            Self::Monitor => "monitor",
            Self::Workflow => "workflow",
            Self::Wakeup => "wakeup",
        }
    }
}

/// One live thing in the background. What has ended is not here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its id.
    pub task_id: Name,
    /// What it is.
    pub kind: TaskKind,
    /// The task that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Name>,
    /// The task it works for, where that is another one: a monitor belongs to its owner (O53).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Name>,
    /// Since when.
    pub at: Timestamp,
    /// Its process, if it was said: its proven death ends it (O57).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRef>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A task that is over: a result of it that comes later belongs to the chain if it did, and so does what it had
/// started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedTask {
    /// Which.
    pub task_id: Name,
    /// Whether it belonged to the chain when it ended.
    pub related: bool,
    /// When.
    pub at: Timestamp,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A provisional mark: a tool call is about to talk to this task (O50). Several can lie on one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Which.
    pub mark_id: MarkId,
    /// The task it lies on.
    pub task_id: Name,
    /// From when on it counts as rolled back: its maker died (O51).
    pub deadline: BootTime,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}
