//! The latest calls on a row and their answers, so that a lost answer is harmless (hazard H4).

use serde::{Deserialize, Serialize};

use super::ids::{RequestId, SendId};
use super::row::{Extra, Row};

/// How many calls a row remembers. Those of unsettled sends are kept beyond it.
pub const REQUESTS_KEPT: usize = 64;

/// One remembered call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRecord {
    /// The caller's name for it.
    pub request_id: RequestId,
    /// The command.
    pub command: String,
    /// A digest of everything the call asked for: the same id with another one is refused.
    pub digest: String,
    /// The answer without its token. The token is a function of the attempt and is computed again.
    pub answer: Extra,
    /// The send this call registered or admitted: the call is remembered as long as the send is undischarged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_id: Option<SendId>,
    /// Whether the answer authorised an act. It is given once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub authorised: bool,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The remembered calls, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestLog(Vec<RequestRecord>);

/// What is known about a request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen<'a> {
    /// Nothing: the call is new, or forgotten.
    Never,
    /// The same call was answered before.
    Before(&'a RequestRecord),
    /// The id was used for another call.
    ForAnother(&'a RequestRecord),
}

impl RequestLog {
    /// Looks a call up.
    pub fn seen(&self, id: &RequestId, digest: &str) -> Seen<'_> {
        match self.0.iter().rev().find(|record| record.request_id == *id) {
            None => Seen::Never,
            Some(record) if record.digest == digest => Seen::Before(record),
            Some(record) => Seen::ForAnother(record),
        }
    }

    /// The remembered calls, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &RequestRecord> {
        self.0.iter()
    }
}

impl Row {
    /// Remembers a call, and forgets those before the latest ones whose send is discharged or absent.
    pub fn remember(&mut self, record: RequestRecord) {
        self.requests.0.push(record);
        let sends = &self.sends;
        let mut older = self.requests.0.len().saturating_sub(REQUESTS_KEPT);
        self.requests.0.retain(|record| {
            let latest = older == 0;
            older = older.saturating_sub(1);
            latest || record.send_id.as_ref().is_some_and(|id| sends.iter().any(|send| send.send_id == *id))
        });
    }
}
