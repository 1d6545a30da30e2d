//! A row's bounded history: for people. Nothing decides on it.

use serde::{Deserialize, Serialize};

use super::ids::{RequestId, Timestamp};
use super::row::Extra;

/// A row's history is cut when it grows past this many events.
pub const EVENTS_MAX: usize = 48;
/// How many of the latest events stay in the row when it is cut.
pub const EVENTS_LEFT: usize = 16;

/// One change of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its place in the row's whole history, from 1.
    pub n: u64,
    /// When.
    pub at: Timestamp,
    /// By which command.
    pub command: String,
    /// By which call.
    pub request_id: RequestId,
    /// What happened, a code.
    pub what: String,
    /// The state before it, `status/phase`; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The state after it, `status/phase`.
    pub to: String,
    /// Which attempt, send, turn or cleanup it was about, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Words the caller gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The latest events, and how many older ones lie in files beside the row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// How many events there ever were.
    #[serde(default)]
    pub total: u64,
    /// How many archive files there are beside the row.
    #[serde(default)]
    pub archives: u64,
    /// The latest events, oldest first.
    #[serde(default)]
    pub events: Vec<Event>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Events that move out of the row into an archive file, in the commit that cuts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedEvents {
    /// The number of the archive file, from 1.
    pub number: u64,
    /// The events, oldest first.
    pub events: Vec<Event>,
}

impl History {
    /// Adds an event, numbering it.
    pub fn push(&mut self, mut event: Event) {
        self.total += 1;
        event.n = self.total;
        self.events.push(event);
    }

    /// Cuts the history when it has grown past its bound, and returns what was cut off.
    pub fn cut(&mut self) -> Option<ArchivedEvents> {
        if self.events.len() <= EVENTS_MAX {
            return None;
        }
        let events = self.events.drain(..self.events.len() - EVENTS_LEFT).collect();
        self.archives += 1;
        Some(ArchivedEvents { number: self.archives, events })
    }
}
