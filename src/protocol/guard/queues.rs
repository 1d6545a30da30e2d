//! The automatic queues: background results, timers, and notices of what had no place (1.9).

use serde::{Deserialize, Serialize};

use super::session::BootTime;
use crate::protocol::ids::{GapId, Name, Timestamp};
use crate::protocol::row::{Extra, ProcessRef};

/// Background results that are queued at most (O68).
pub const NOTIFICATIONS_MAX: usize = 20;
/// Unrelated timers that are queued at most while the guard keeps them back (O67).
pub const CRONS_UNRELATED_MAX: usize = 20;

/// A background result that waits for a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// Its id: the same id once more adds nothing.
    pub id: Name,
    /// The background task it comes from.
    pub task_id: Name,
    /// What kind of result, in the sender's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How the task ended, in the sender's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The result, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether it belongs to the chain, decided when it was queued (O54).
    pub related: bool,
    /// When it came.
    pub at: Timestamp,
    /// Its order.
    pub seq: u64,
    /// Set while somebody has taken it and not acknowledged it: from then on it is offered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Somebody has taken an item, and has not said yet that its turn began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    /// When.
    pub at: Timestamp,
    /// From when on it is offered again.
    pub deadline: BootTime,
    /// Who, if it was said: its death offers it again, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRef>,
    /// How often it was taken.
    pub times: u64,
}

/// A timer that has fired and waits for a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cron {
    /// Its id.
    pub id: Name,
    /// The timer it comes from: a later firing of the same timer takes an earlier one's place.
    pub task_id: Name,
    /// A wakeup that the chain set for itself; a plain timer is never related (1.8).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wakeup: bool,
    /// What to do, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether it belongs to the chain, decided when it was queued.
    pub related: bool,
    /// When it came.
    pub at: Timestamp,
    /// Its order.
    pub seq: u64,
    /// Set while somebody has taken it and not acknowledged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What had no place in a queue. It survives everything but its acknowledgement (O69).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// Which.
    pub gap_id: GapId,
    /// Which queue: `notifications` or `crons`.
    pub queue: String,
    /// The ids of what was left out, all of one arrival.
    pub omitted: Vec<Name>,
    /// The tasks they come from.
    pub task_ids: Vec<Name>,
    /// Whether it belonged to the chain.
    pub related: bool,
    /// What was left out, whole, as long as there is room for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<String>,
    /// When.
    pub at: Timestamp,
    /// Its order.
    pub seq: u64,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}
