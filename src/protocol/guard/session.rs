//! The row of a session: everything the continuation guard knows, as it lies on disk.
//!
//! What the original keeps in the memory of two processes (who waits for whom, which claim is in flight) is here.
//! `seq` is the one order of events: whatever is ordered carries the number it was given when it was committed.

mod prompt;
mod ticket;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::background::{EndedTask, Mark, Task};
use super::chain::Chain;
use super::queues::{Cron, Gap, Notification};
use crate::protocol::history::History;
use crate::protocol::ids::{Name, TicketId, Timestamp};
use crate::protocol::requests::RequestLog;
use crate::protocol::row::{Extra, ProcessRef};

pub(super) use prompt::on_disk;
pub use prompt::{EndedPrompt, Prompt, PromptEnd, PromptKind, PromptState};
pub use ticket::{EndedTicket, Ticket, TicketEnd, Void, Wait};

/// Automatic continuations in one stage (O1).
pub const BUDGET: u32 = 2;
/// Prompts a session holds, with the running one and the places of removed ones (O72).
pub const PROMPTS_MAX: usize = 5;
/// Ended prompts and tickets that are remembered, so that a late or second end is told from an unknown one.
pub const ENDED_MAX: usize = 64;
/// Ids of acknowledged messages that are remembered, so that a repeat adds none.
pub const ACKNOWLEDGED_MAX: usize = 200;
/// Messages that one drain takes (O26).
pub const DRAIN_MAX: usize = 10;
/// Unsent tickets after which a chain is suspended: a sender that always fails must not try for ever.
pub const UNSENT_MAX: u32 = 8;
/// Stops in a row that an outer hook may block before its block is no longer passed on.
pub const BLOCKS_MAX: u32 = 8;

/// An instant of the boot clock. It is over when that clock has passed it, or in any other boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootTime {
    /// Which boot. Absent where the kernel does not prove it: such a deadline is over at once in any other call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Milliseconds since that boot, suspended time included.
    pub ms: u64,
}

impl BootTime {
    /// Whether this instant is over at `now`.
    pub fn is_over(&self, now: &Self) -> bool {
        self.boot_id != now.boot_id || now.ms >= self.ms
    }

    /// The instant `ms` milliseconds later.
    #[must_use]
    pub fn after(&self, ms: u64) -> Self {
        Self { boot_id: self.boot_id.clone(), ms: self.ms.saturating_add(ms) }
    }
}

/// Whether a session takes part in anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionState {
    /// It does.
    Open,
    /// It is being put together again: nothing automatic may run yet (O66).
    Restoring,
    /// It is over. Opening it again is another generation (O65).
    Closed,
}

impl SessionState {
    /// The word on disk and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Restoring => "restoring",
            Self::Closed => "closed",
        }
    }
}

/// Who wrote a message (O32).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageKind {
    /// A person.
    User,
    /// A tool.
    Tool,
    /// An outer hook.
    Hook,
    /// The guard.
    Guard,
}

/// A text of the session. It lies in the inbox or in the kept list, never in both (O24).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id: the same id once more adds nothing (O33).
    pub message_id: Name,
    /// Who wrote it.
    pub kind: MessageKind,
    /// The text.
    pub text: String,
    /// When it came.
    pub at: Timestamp,
    /// Its order.
    pub seq: u64,
    /// It was printed for the agent, which says by its next event that it has arrived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub printed: bool,
    /// The ticket whose guard text it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket_id: Option<TicketId>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A to-do item, without its text: nothing decides on that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TodoItem {
    /// Its id in the list.
    pub id: String,
    /// Whether it is done.
    pub done: bool,
}

/// The session moves to another directory; while it does, no prompt is admitted (O58-O63).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// Where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where it goes.
    pub to: String,
    /// Its order: what was admitted before it is waited for.
    pub seq: u64,
    /// Since when.
    pub at: Timestamp,
    /// From when on it is given up.
    pub deadline: BootTime,
    /// How long it is held after its caller was heard of.
    pub lease_ms: u64,
    /// Who moves it, if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRef>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The agent waits for a person's answer: nothing automatic may answer in their place (case H19).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// What tells it from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Since when.
    pub at: Timestamp,
}

/// How often a cause has refused something automatic since the last ordinary prompt, so that a loop of refusals
/// is seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// How often.
    pub count: u64,
    /// The last time.
    pub at: Timestamp,
}

/// When a hook event was last seen, and how long our part took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventSeen {
    /// How often.
    pub count: u64,
    /// The last time.
    pub at: Timestamp,
    /// From the start of the hook to the judgement, in milliseconds.
    pub took_ms: u64,
}

/// The last stop or prompt event that came through a hook, so that the same event is not counted twice (case H49).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastEvent {
    /// A digest of the bytes.
    pub digest: String,
    /// When it was answered.
    pub at: BootTime,
}

/// A session, as it stands on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The session. One found under another name is unreadable.
    pub session_id: Name,
    /// Which life of this name it is, from 1.
    pub generation: u64,
    /// Whether it takes part in anything.
    pub state: SessionState,
    /// Whether the guard may continue it at all (O1).
    pub guard: bool,
    /// Its host keeps no queue of prompts, so a claim asks for none (O9).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_queue: bool,
    /// Its working directory, if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The agent plans and does nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plan: bool,
    /// The order number that was given last.
    pub seq: u64,
    /// The prompts, in their order.
    #[serde(default)]
    pub prompts: Vec<Prompt>,
    /// The latest prompts that are over, oldest first.
    #[serde(default)]
    pub ended_prompts: Vec<EndedPrompt>,
    /// The work chain.
    pub chain: Chain,
    /// Who yielded to a queued prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// The granted claims whose fate is not known.
    #[serde(default)]
    pub tickets: Vec<Ticket>,
    /// The latest claims that are over, oldest first.
    #[serde(default)]
    pub ended_tickets: Vec<EndedTicket>,
    /// Prompts that were released while a ticket of theirs was open (O18-O20).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub released: BTreeSet<String>,
    /// The to-do list.
    #[serde(default)]
    pub todos: Vec<TodoItem>,
    /// What was typed in the middle of a turn and not taken yet.
    #[serde(default)]
    pub inbox: Vec<Message>,
    /// What was taken, or has lost its place, until somebody acknowledges it.
    #[serde(default)]
    pub kept: Vec<Message>,
    /// The ids acknowledged last.
    #[serde(default)]
    pub acknowledged: Vec<Name>,
    /// What lives in the background.
    #[serde(default)]
    pub tasks: Vec<Task>,
    /// What ended there lately, oldest first, with what it was to the chain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_tasks: Vec<EndedTask>,
    /// Marks that a running tool call has made, until it ends.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// Background results that wait for a turn.
    #[serde(default)]
    pub notifications: Vec<Notification>,
    /// The ids of the latest background results whose turn began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notified: Vec<Name>,
    /// Timers that have fired and wait for a turn.
    #[serde(default)]
    pub crons: Vec<Cron>,
    /// The ids of the latest firings whose turn began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fired: Vec<Name>,
    /// What had no place, until somebody acknowledges it.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// Set while it moves to another directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// Set while the agent waits for a person's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Stops in a row that an outer hook has blocked (O35).
    #[serde(default)]
    pub blocks: u32,
    /// Refusals since the last ordinary prompt, by cause.
    #[serde(default)]
    pub refused: BTreeMap<String, Refused>,
    /// Hook events by name.
    #[serde(default)]
    pub events: BTreeMap<String, EventSeen>,
    /// The last stop event that came through a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_stop: Option<LastEvent>,
    /// The last prompt event that came through a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_prompt: Option<LastEvent>,
    /// When it was first opened.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The latest calls and their answers.
    #[serde(default)]
    pub requests: RequestLog,
    /// What happened. Bounded; nothing decides on it.
    #[serde(default)]
    pub history: History,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}
