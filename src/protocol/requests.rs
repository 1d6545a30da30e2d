//! The latest calls on a row and their answers, so that a lost answer is harmless (hazard H4).

use serde::{Deserialize, Serialize};

use super::guard::session::Session;
use super::ids::{RequestId, SendId};
use super::row::{Extra, Row};

/// How many calls a row remembers. Those of unsettled sends are kept beyond it.
pub const REQUESTS_KEPT: usize = 64;
/// How many bytes of answers a session remembers. The texts that a person typed are in some of them.
pub const ANSWER_BYTES_KEPT: usize = 1 << 20;

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

    /// Remembers a call, and forgets the oldest ones beyond the bound.
    pub fn push_bounded(&mut self, record: RequestRecord) {
        self.0.push(record);
        let surplus = self.0.len().saturating_sub(REQUESTS_KEPT);
        self.0.drain(..surplus);
    }

    /// Forgets the oldest calls beyond the bounds. Never the latest, and none that `is_needed`.
    fn bound(&mut self, is_needed: impl Fn(&RequestRecord) -> bool) {
        let (mut count, mut bytes) = (0, 0_usize);
        let mut kept: Vec<RequestRecord> = Vec::with_capacity(self.0.len());
        for record in self.0.drain(..).rev() {
            count += 1;
            bytes = bytes.saturating_add(record.answer_bytes());
            let fits = count <= REQUESTS_KEPT && bytes <= ANSWER_BYTES_KEPT;
            if count == 1 || fits || is_needed(&record) {
                kept.push(record);
            }
        }
        kept.reverse();
        self.0 = kept;
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

impl RequestRecord {
    /// About how long its answer is on disk.
    fn answer_bytes(&self) -> usize {
        serde_json::to_string(&self.answer).map_or(0, |text| text.len())
    }

    /// The ticket that its answer granted.
    fn ticket(&self) -> Option<&str> {
        self.answer.get("facts")?.get("ticket")?.as_str().filter(|_| self.authorised)
    }
}

impl Session {
    /// Remembers a call. Beyond the bounds the oldest are forgotten, but none that granted a ticket which is open.
    pub fn remember(&mut self, record: RequestRecord) {
        self.requests.0.push(record);
        let tickets = &self.tickets;
        let is_open = |id: &str| tickets.iter().any(|ticket| ticket.ticket_id.as_str() == id);
        self.requests.bound(|record| record.ticket().is_some_and(is_open));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn session() -> Session {
        serde_json::from_value(json!({
            "sessionId": "s", "generation": 1, "state": "open", "guard": true, "seq": 0, "chain": { "id": 0 },
            "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
            "tickets": [{
                "ticketId": "tkt_0000000000000001", "generation": 1, "chain": 0, "attempt": 1, "seq": 1,
                "at": "2026-01-01T00:00:00Z", "deadline": { "ms": 1 }
            }]
        }))
        .expect("a session")
    }

    fn record(id: &str, facts: &serde_json::Value, authorised: bool) -> RequestRecord {
        serde_json::from_value(json!({
            "requestId": id, "command": "claim", "digest": "d", "answer": { "facts": facts },
            "authorised": authorised
        }))
        .expect("a record")
    }

    fn ids(session: &Session) -> Vec<&str> {
        session.requests.iter().map(|record| record.request_id.as_str()).collect()
    }

    #[test]
    fn a_call_that_granted_an_open_ticket_outlives_the_bounds_and_others_do_not() {
        let mut session = session();
        session.remember(record("open", &json!({ "ticket": "tkt_0000000000000001" }), true));
        session.remember(record("ended", &json!({ "ticket": "tkt_0000000000000002" }), true));
        session.remember(record("told", &json!({ "ticket": "tkt_0000000000000001" }), false));
        for n in 0..REQUESTS_KEPT {
            session.remember(record(&format!("r{n}"), &json!({}), false));
        }
        let kept = ids(&session);
        assert_eq!((kept.len(), &kept[..2]), (REQUESTS_KEPT + 1, &["open", "r0"][..]));
        session.tickets.clear();
        session.remember(record("last", &json!({}), false));
        assert_eq!(ids(&session)[..2], ["r1", "r2"]);
    }

    #[test]
    fn answers_with_texts_are_forgotten_before_they_fill_the_record() {
        let mut session = session();
        for n in 0..4 {
            let text = "x".repeat(ANSWER_BYTES_KEPT * 2 / 5);
            session.remember(record(&format!("r{n}"), &json!({ "text": text }), false));
        }
        assert_eq!(ids(&session), ["r2", "r3"]);
        let text = "x".repeat(ANSWER_BYTES_KEPT + 1);
        session.remember(record("large", &json!({ "text": text }), false));
        assert_eq!(ids(&session), ["large"], "the latest is remembered, however long its answer is");
    }
}
