//! The receipt: the immutable record that nothing can publish for an attempt any more (rules 1, 30).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::codes::ReceiptSource;
use super::ids::{AttemptId, Name, Timestamp};

/// The version of the receipt format this program writes.
pub const RECEIPT_VERSION: u64 = 1;

/// A receipt. The schema is strict: an unknown field or source makes the file unreadable, never "found".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Receipt {
    /// [`RECEIPT_VERSION`].
    pub version: u64,
    /// The task.
    pub task_id: Name,
    /// The attempt that is over: the captured one, never "the current one" (rule 2).
    pub attempt_id: AttemptId,
    /// The parent in whose folder the authoritative copy lies.
    pub parent_workspace_id: Name,
    /// What ended it.
    pub source: ReceiptSource,
    /// When.
    pub settled_at: Timestamp,
    /// What proved the end, for sources that need a proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Value>,
}
