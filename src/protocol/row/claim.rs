//! How an attempt is retired, and what replaced it (rules 65, 66; hazard H1).

use serde::{Deserialize, Serialize};

use super::Extra;
use crate::protocol::ids::{AttemptId, Name, Nonce, Timestamp};

/// The permanent mark that one attempt is retired for exactly one checkpoint (rules 65, 66).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The run of the checkpoint.
    pub run_id: Name,
    /// Its step.
    pub step_id: Name,
    /// Its input.
    pub input_hash: Name,
    /// The retired task.
    pub child_task_id: Name,
    /// The retired attempt.
    pub attempt_id: AttemptId,
    /// The evidence it was granted on.
    pub mode: ClaimMode,
    /// Whose word carried it: absent for a receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<ClaimAuthority>,
    /// When.
    pub at: Timestamp,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The two kinds of evidence a claim can be granted on (rule 67).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimMode {
    /// Interrupted, and positively without a report.
    NoReport,
    /// Reported, with a report bound to the attempt.
    RetireReported,
}

impl ClaimMode {
    /// The word on disk and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoReport => "no-report",
            Self::RetireReported => "retire-reported",
        }
    }
}

/// Whose word carried a claim that no receipt carried (decision: the owner's own authority).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimAuthority {
    /// The caller held the owner's token.
    Token,
}

/// The changing part of a retirement, beside the claim that never changes (hazard H1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retirement {
    /// What the claim is spent with; the latest grant's.
    pub nonce: Nonce,
    /// The replacement that spent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement_task_id: Option<Name>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Which retired attempt this task replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replaces {
    /// The retired task.
    pub task_id: Name,
    /// The retired attempt.
    pub attempt_id: AttemptId,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}
