//! Sends: wishes to start a turn, and how far they have come (rules 37 to 39).

use serde::{Deserialize, Serialize};

use super::Extra;
use crate::protocol::ids::{AttemptId, SendId, Timestamp, TurnId};

/// How far a send has come. A discharged send is not kept: its id is refused for ever by its counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendState {
    /// Registered.
    Pending,
    /// Lies in an agent's own queue.
    Enqueued,
    /// Its turn was allowed to start, and has not ended.
    Admitted {
        /// The turn.
        turn_id: TurnId,
        /// When it was admitted.
        admitted_at: Timestamp,
    },
}

impl SendState {
    /// The word on disk and in answers.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Enqueued => "enqueued",
            Self::Admitted { .. } => "admitted",
        }
    }
}

/// One undischarged send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SendRecord", into = "SendRecord")]
pub struct Send {
    /// Its id.
    pub send_id: SendId,
    /// The attempt it was registered under; never another one (rule 37).
    pub attempt_id: AttemptId,
    /// Whether that attempt has a token.
    pub owned: bool,
    /// How far it has come.
    pub state: SendState,
    /// The caller's word for it, for people.
    pub label: Option<String>,
    /// When it was registered.
    pub since: Timestamp,
    /// Unknown fields.
    pub extra: Extra,
}

/// A send as it lies on disk: flat, so that unknown fields can be told from known ones.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendRecord {
    send_id: SendId,
    attempt_id: AttemptId,
    owned: bool,
    state: SendWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn_id: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    admitted_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    since: Timestamp,
    #[serde(flatten)]
    extra: Extra,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SendWord {
    Pending,
    Enqueued,
    Admitted,
}

impl TryFrom<SendRecord> for Send {
    type Error = &'static str;

    fn try_from(record: SendRecord) -> Result<Self, Self::Error> {
        let state = match (record.state, record.turn_id, record.admitted_at) {
            (SendWord::Pending, None, None) => SendState::Pending,
            (SendWord::Enqueued, None, None) => SendState::Enqueued,
            (SendWord::Admitted, Some(turn_id), Some(admitted_at)) => {
                SendState::Admitted { turn_id, admitted_at }
            }
            _ => return Err("a send has a turn exactly when it is admitted"),
        };
        let SendRecord { send_id, attempt_id, owned, label, since, extra, .. } = record;
        Ok(Self { send_id, attempt_id, owned, state, label, since, extra })
    }
}

impl From<Send> for SendRecord {
    fn from(send: Send) -> Self {
        let (state, turn_id, admitted_at) = match send.state {
            SendState::Pending => (SendWord::Pending, None, None),
            SendState::Enqueued => (SendWord::Enqueued, None, None),
            SendState::Admitted { turn_id, admitted_at } => {
                (SendWord::Admitted, Some(turn_id), Some(admitted_at))
            }
        };
        let Send { send_id, attempt_id, owned, label, since, extra, .. } = send;
        Self { send_id, attempt_id, owned, state, turn_id, admitted_at, label, since, extra }
    }
}

impl Send {
    /// Its turn, if one was admitted.
    pub fn turn(&self) -> Option<&TurnId> {
        match &self.state {
            SendState::Admitted { turn_id, .. } => Some(turn_id),
            SendState::Pending | SendState::Enqueued => None,
        }
    }
}
