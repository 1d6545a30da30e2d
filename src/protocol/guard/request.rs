//! What can be asked of a session. A command is one request; a hook event is several, in one commit.

use super::background::{Task, TaskKind};
use super::session::{MessageKind, PromptEnd, PromptKind, TicketEnd};
use crate::protocol::ids::{GapId, MarkId, Name, PromptId, TicketId};
use crate::protocol::row::ProcessRef;

/// How long a granted ticket lives when its holder says nothing else.
pub const TICKET_MS: u64 = 60_000;
/// How long a relocation may take when its caller says nothing else.
pub const RELOCATION_MS: u64 = 60_000;
/// How long a provisional mark lasts when its maker says nothing else.
pub const MARK_MS: u64 = 60_000;
/// How long a taken item is not offered again.
pub const TAKEN_MS: u64 = 60_000;

/// One request.
#[allow(clippy::large_enum_variant, reason = "a call has one or a few of them, for a moment")]
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// `session open`: makes the session, or opens a closed one as another generation.
    Open(Open),
    /// `session close`.
    Close,
    /// `session restore --begin` (true) and `--end` (false).
    Restore(bool),
    /// `session plan on|off`.
    Plan(bool),
    /// `session suspend`: a person presses Stop.
    Suspend(String),
    /// `session relocate`.
    Relocate(Relocate),
    /// `prompt submit`.
    Submit(Submit),
    /// `prompt start`.
    Start(PromptName, Option<ProcessRef>),
    /// `prompt finish`.
    Finish(PromptName, PromptEnd),
    /// `prompt remove`.
    Remove(PromptName),
    /// `claim`.
    Claim(Claim),
    /// `claim --ticket --stage`: the holder is still at it.
    Stage(TicketId, String, u64),
    /// `claim --ticket --as`.
    EndTicket(TicketId, TicketEnd, Option<String>),
    /// `release`.
    Release(PromptId),
    /// `say`.
    Say(Say),
    /// `drain`.
    Drain(Drain),
    /// `todo`.
    Todo(TodoList),
    /// One item of a list that an agent tells piece by piece.
    TodoItem(TodoChange),
    /// `end-turn`.
    EndTurn(EndTurn),
    /// `background`.
    Background(Background),
    /// `notify`.
    Notify(Notify),
    /// `cron`.
    Cron(CronRequest),
    /// `gaps`.
    Gaps(Vec<GapId>),
    /// A prompt event of an agent's own hook.
    HookPrompt(HookPrompt),
    /// A stop event of an agent's own hook.
    HookStop(HookStop),
    /// The turn broke (`failed`) or a person interrupted it (`aborted`), as an agent's hook says.
    HookTurnEnded(PromptEnd),
    /// The agent says whether it plans.
    HookPlan(bool),
    /// The agent's process begins or goes on with this session.
    HookStarted,
    /// The agent's conversation was cleared.
    HookCleared,
    /// The working directory is another one already.
    HookMoved(Option<String>),
    /// The agent asks the person something (true), or has the answer (false).
    HookQuestion(bool, Option<String>),
    /// For `hook doctor`: an event came, told at this time of the boot clock, in milliseconds.
    HookSeen(String, u64),
}

/// A prompt as callers name it: by its id, or by the host's name for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptName(pub String);

/// `session open`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Open {
    /// The guard may continue it.
    pub guard: bool,
    /// Its host keeps no queue of prompts (O9).
    pub without_queue: bool,
    /// Its working directory.
    pub cwd: Option<String>,
    /// A hook opens what it does not know in passing: nothing else of an open session changes, and the answer is
    /// not told.
    pub in_passing: bool,
}

/// `session relocate`.
#[allow(clippy::large_enum_variant, reason = "a call has one or a few of them, for a moment")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relocate {
    /// The target is a canonical path of a folder that exists.
    Begin {
        /// Where to.
        to: String,
        /// How long it may take.
        for_ms: u64,
        /// Who moves it.
        process: Option<ProcessRef>,
    },
    /// Is everything that was admitted before it over?
    Poll,
    /// It has moved.
    Commit,
    /// It has not.
    Abort,
}

/// `prompt submit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submit {
    /// The host's name for it.
    pub alias: Option<String>,
    /// How it came to be.
    pub kind: PromptKind,
    /// What the person typed.
    pub text: Option<String>,
    /// The process that will work on it.
    pub process: Option<ProcessRef>,
}

/// `claim`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The prompt it continues; absent: an automatic turn of its own.
    pub prompt: Option<PromptName>,
    /// How long the ticket lives.
    pub for_ms: u64,
    /// Who holds it.
    pub process: Option<ProcessRef>,
    /// The continuation the caller decided on; another one by now is a refusal (O27).
    pub attempt: Option<u32>,
    /// The chain the caller belongs to; another one by now is a refusal (case H23).
    pub chain: Option<u64>,
    /// What woke the caller was cancelled by a person (case H29).
    pub woken_by_cancelled: bool,
}

/// `say`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Say {
    /// Its id, if the caller has one.
    pub id: Option<Name>,
    /// Who wrote it.
    pub kind: MessageKind,
    /// The text; not empty.
    pub text: String,
}

/// `drain`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drain {
    /// These have arrived: they are forgotten but for their ids.
    pub ack: Vec<Name>,
    /// Give again what was taken and not acknowledged.
    pub again: bool,
    /// The caller could not read an earlier drain's answer (O25).
    pub failed: bool,
}

/// `todo`: a list in the strict envelope, read already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoList {
    /// Its items: id, and whether it is done.
    pub items: Vec<(String, bool)>,
    /// The prompt in whose turn it was written, if that is known.
    pub prompt: Option<PromptName>,
    /// It comes from a sub-agent, from a replay or from a call that failed: it is not looked at (O45).
    pub untrusted: Option<String>,
    /// Nobody can tell whose list it is while a sub-agent lives, so it is not looked at then.
    pub only_alone: bool,
}

/// One item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoChange {
    /// Which.
    pub id: String,
    /// Done, not done, or taken off the list.
    pub done: Option<bool>,
    /// The host's name for the turn it was written in.
    pub prompt: Option<PromptName>,
}

/// What an outer stop hook said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum External {
    /// It lets the agent stop.
    Allow,
    /// It wants the agent to go on.
    Block(String),
}

/// `end-turn`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndTurn {
    /// The prompt whose turn it is; absent: the running one.
    pub prompt: Option<PromptName>,
    /// What an outer stop hook said, if it was asked.
    pub external: Option<External>,
    /// How long the ticket of a continuation lives.
    pub for_ms: u64,
    /// Who holds it.
    pub process: Option<ProcessRef>,
}

/// `background`.
#[allow(clippy::large_enum_variant, reason = "a call has one or a few of them, for a moment")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Background {
    /// It begins.
    Start {
        /// Its id.
        task: Name,
        /// What it is.
        kind: TaskKind,
        /// The task that started it.
        parent: Option<Name>,
        /// The task it works for.
        owner: Option<Name>,
        /// Its process.
        process: Option<ProcessRef>,
        /// The agent's own hook tells of it.
        told_by_agent: bool,
    },
    /// It has ended.
    End(Name),
    /// A tool call is about to talk to it.
    Mark(Name, u64),
    /// The tool call succeeded: it belongs to the chain now.
    Commit(Name, MarkId),
    /// The tool call failed.
    Rollback(Name, MarkId),
    /// Everything that lives now, as an agent's hook tells it. What is not in it has ended. What it did not speak of
    /// (absent) stays as it is.
    View {
        /// All but wakeups.
        tasks: Option<Vec<Task>>,
        /// Wakeups.
        wakeups: Option<Vec<Task>>,
    },
}

/// `notify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notify {
    /// A result has come.
    Put {
        /// Its id, if the sender has one.
        id: Option<Name>,
        /// The task it comes from.
        task: Name,
        /// What kind of result.
        kind: Option<String>,
        /// How the task ended.
        status: Option<String>,
        /// The result.
        text: Option<String>,
    },
    /// Somebody wants to start a turn for the next one.
    Take {
        /// How long it is not offered again.
        for_ms: u64,
        /// Who.
        process: Option<ProcessRef>,
    },
    /// Its turn began.
    Ack(Name),
}

/// `cron`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CronRequest {
    /// A timer has fired.
    Put {
        /// Its id, if the sender has one.
        id: Option<Name>,
        /// The timer.
        task: Name,
        /// The chain set it for itself.
        wakeup: bool,
        /// What to do.
        text: Option<String>,
    },
    /// Somebody wants to start a turn for the next one.
    Take {
        /// How long it is not offered again.
        for_ms: u64,
        /// Who.
        process: Option<ProcessRef>,
    },
    /// Its turn began.
    Ack(Name),
}

/// A prompt event of an agent's hook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookPrompt {
    /// The agent's name for the turn.
    pub alias: Option<String>,
    /// A ticket that the text carries.
    pub ticket: Option<TicketId>,
    /// A prompt of ours that the text carries.
    pub prompt: Option<PromptId>,
    /// Whether a person typed it, as far as the agent says.
    pub typed: Option<bool>,
    /// A digest of the event's bytes.
    pub digest: String,
    /// When the process that was told of it began, by the boot clock, in milliseconds.
    pub started_ms: u64,
    /// Whether the guard may continue the session from now on.
    pub guard: bool,
}

/// A stop event of an agent's hook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookStop {
    /// The agent's name for the turn.
    pub alias: Option<String>,
    /// The agent says that a stop hook has already continued this turn.
    pub active: Option<bool>,
    /// What an outer stop hook said, if a wrapper tells.
    pub external: Option<External>,
    /// A digest of the event's bytes.
    pub digest: String,
    /// When the process that was told of it began, by the boot clock, in milliseconds.
    pub started_ms: u64,
    /// The guard may continue the turn; else only the books are kept.
    pub guard: bool,
}
