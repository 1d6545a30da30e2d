//! How the current attempt ends: admission is shut, debts are named and paid, and it is settled.

use serde::{Deserialize, Serialize};

use super::{Extra, ProcessRef};
use crate::protocol::codes::ReceiptSource;
use crate::protocol::ids::{CleanupId, Timestamp};

/// A named debt of a Stop: something that must be cleaned up before the attempt is settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cleanup {
    /// What pays it.
    pub cleanup_id: CleanupId,
    /// What is being cleaned up, for people.
    pub name: String,
    /// The process that owes it, if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRef>,
    /// Since when it is owed.
    pub since: Timestamp,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Who shut the admission of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClosedBy {
    /// A Stop: it shuts the descendants too.
    Stop,
    /// Its owner's `settle`.
    Settle,
    /// `recover`, over a dead owner's idle attempt.
    Recover,
}

/// What the attempt was doing when its admission was shut. It decides the source of the receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClosedFrom {
    /// Reserved, never launched.
    Reservation,
    /// Launched, and no turn was ever admitted.
    Launch,
    /// Turns were admitted, and all had ended.
    Idle,
    /// A turn was running.
    Turn,
}

/// The closing of an attempt's admission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Closure {
    /// Who shut it. A Stop over an owner's `settle` makes it a Stop.
    pub closed_by: ClosedBy,
    /// What was going on then.
    pub closed_from: ClosedFrom,
    /// When.
    pub at: Timestamp,
    /// Why, as the caller said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The failure the caller reported with the Stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Named debts still owed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleanups: Vec<Cleanup>,
    /// The source the owner asked the receipt to name, if it narrowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_wanted: Option<ReceiptSource>,
    /// Leave out the ancestors' copies of the receipt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parent_only: bool,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What became of a settled attempt's receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settled {
    /// When it settled.
    pub settled_at: Timestamp,
    /// The source its receipt names; absent when no receipt was due (rule 58).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<ReceiptSource>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How far the end of the current attempt has come. Absent on a row: admission is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settlement {
    /// The closing of admission.
    #[serde(flatten)]
    pub closure: Closure,
    /// Present once nothing is owed any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
}
