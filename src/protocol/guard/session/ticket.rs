//! Granted claims, and who has yielded.

use serde::{Deserialize, Serialize};

use super::BootTime;
use crate::protocol::ids::{PromptId, TicketId, Timestamp};
use crate::protocol::row::{Extra, ProcessRef};

/// Why a granted ticket may no longer be ended as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Void {
    /// The queued prompt its owner yielded to is gone (O18).
    Released,
    /// The session was suspended.
    Suspended,
    /// The person typed something meanwhile (O34), or another prompt runs.
    Superseded,
    /// The session was closed, or opened again.
    Closed,
}

impl Void {
    /// The word on disk and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Suspended => "suspended",
            Self::Superseded => "superseded",
            Self::Closed => "closed",
        }
    }
}

/// A granted claim whose fate is not known yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ticket {
    /// Which.
    pub ticket_id: TicketId,
    /// The generation it was granted in.
    pub generation: u64,
    /// The prompt it continues; absent for an automatic turn of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<PromptId>,
    /// The chain it belongs to.
    pub chain: u64,
    /// Which continuation of the stage it would be, from 1.
    pub attempt: u32,
    /// Its order: a prompt with a larger number comes after it.
    pub seq: u64,
    /// When it was granted.
    pub at: Timestamp,
    /// From when on it counts as sent.
    pub deadline: BootTime,
    /// Who holds it, if it was said: the holder's proven death counts as sent, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRef>,
    /// How far its holder has come, in the holder's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Set when a late `sent` is to be refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<Void>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How a ticket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TicketEnd {
    /// The provider returned a stream: charged.
    Sent,
    /// Nothing was sent: free.
    Unsent,
    /// The stream started and broke: charged (O31).
    FailedAfterStart,
    /// Nobody said what became of it, so it counts as sent: charged.
    Lapsed,
    /// It was reported as sent when it was void: charged, and its holder was told to cut the stream.
    SentVoid,
}

impl TicketEnd {
    /// Every end that a caller can report.
    pub const REPORTED: [Self; 3] = [Self::Sent, Self::Unsent, Self::FailedAfterStart];

    /// The word on disk, on the command line and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Unsent => "unsent",
            Self::FailedAfterStart => "failed-after-start",
            Self::Lapsed => "lapsed",
            Self::SentVoid => "sent-void",
        }
    }
}

/// A ticket that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedTicket {
    /// Which.
    pub ticket_id: TicketId,
    /// How.
    pub end: TicketEnd,
    /// When.
    pub at: Timestamp,
    /// It was printed in a continuation's text, and has not come back as a prompt yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub printed: bool,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An automatic turn has yielded to a queued prompt: until that has run, nothing automatic starts (1.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// The prompt that yielded.
    pub prompt_id: PromptId,
    /// Its order.
    pub seq: u64,
    /// Since when.
    pub at: Timestamp,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}
