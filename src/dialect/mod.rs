//! The agents' wire: what an agent's hook says on standard input, and what it understands as an answer.
//!
//! Pure: bytes in, an [`Event`] out; a [`Reply`] in, bytes out. Nothing here decides anything, and nothing here
//! touches files, clocks or the environment. The words of the agents end here: behind this module there are only
//! events.

use std::fmt;

use sha2::{Digest, Sha256};

mod claude;
mod codex;
mod copilot;
mod cursor;
mod family;
mod fields;
mod gemini;
mod install;
mod json;
mod marker;
mod print;
mod prompt;
mod qwen;
pub mod settings;
mod todo;
mod unusable;

pub use install::{Registration, TimeoutUnit, install_events, must_name_event, timeout_unit};
pub use marker::{prompt_in, ticket_in, with_prompt, with_ticket};
pub use print::print;
pub use todo::{has_todo_list, todo_list_needs};
pub use unusable::Unusable;

use fields::Fields;

/// An agent whose hooks are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// Cursor.
    Cursor,
    /// Copilot CLI.
    Copilot,
}

impl Agent {
    /// Every agent.
    pub const ALL: [Self; 6] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Qwen, Self::Cursor, Self::Copilot];

    /// The word on the command line, and before the colon of a session's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
        }
    }
}

impl Agent {
    /// Whether a to-do list says when it is a sub-agent's. Gemini's does not.
    pub fn tells_whose_list(self) -> bool {
        self != Self::Gemini
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One hook call of an agent, in our words.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The agent's own session id: not empty, not blank, not `null` or `undefined`, at most
    /// [`SESSION_BYTES_MAX`] bytes, without control characters.
    pub session: String,
    /// The agent's name for the turn, where it has one.
    pub turn: Option<String>,
    /// The sub-agent the event is about, or that sent it. Such an event never acts for the main prompt.
    pub sub_agent: Option<SubAgent>,
    /// Whether the agent is in plan mode; absent: it did not say.
    pub plan: Option<bool>,
    /// The agent's working directory.
    pub cwd: Option<String>,
    /// What happened.
    pub kind: Kind,
}

/// Reads one hook call: what the agent wrote on our standard input.
///
/// `told` is the event's name as the command line gives it. It counts only where the input itself has none.
pub fn read(agent: Agent, told: Option<&str>, stdin: &[u8]) -> Result<Event, Unusable> {
    let mut fields = Fields::read(stdin)?;
    if agent == Agent::Copilot {
        fields = fields.in_snake_case();
    }
    let name = fields.event(told)?;
    match agent {
        Agent::Claude => claude::read(name, &fields),
        Agent::Codex => codex::read(name, &fields),
        Agent::Gemini => gemini::read(name, &fields),
        Agent::Qwen => qwen::read(name, &fields),
        Agent::Cursor => cursor::read(name, &fields),
        Agent::Copilot => copilot::read(name, &fields),
    }
}

/// An id made of what tells one thing from others, where the agent gives it none.
fn stand_in(told_apart_by: &str) -> String {
    let hash = Sha256::digest(told_apart_by.as_bytes());
    hash.iter().take(8).fold("by_task_".to_owned(), |id, byte| format!("{id}{byte:02x}"))
}

/// The longest session id that is understood.
pub const SESSION_BYTES_MAX: usize = 112;

/// A sub-agent of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubAgent {
    /// The agent's id for it.
    pub id: String,
    /// Its type, for people.
    pub kind: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A prompt goes to the model.
    Prompt {
        /// Its text.
        text: String,
        /// Whether a person typed it, as far as the agent or the text's own form says. Absent: unknown.
        typed: Option<bool>,
    },
    /// The model has stopped by itself.
    Stop {
        /// The agent says that a stop hook has already continued this turn. A hint only.
        active: Option<bool>,
        /// What lives on in the background. Absent: the agent did not say.
        background: Option<Vec<Background>>,
        /// Wakeups and crons of the session that will fire. Absent: the agent did not say.
        wakeups: Option<Vec<String>>,
    },
    /// The turn ended by an error of the model or its provider.
    StopFailed,
    /// The person interrupted the turn.
    Interrupted,
    /// A session begins, or goes on.
    SessionStarted(Start),
    /// A session ends.
    SessionEnded {
        /// Why, in the agent's word.
        reason: Option<String>,
    },
    /// The working directory is another one now.
    DirectoryChanged {
        /// The new one.
        to: Option<String>,
    },
    /// The agent changed its to-do list.
    Todo(Todo),
    /// The agent waits for a person's answer.
    QuestionAsked {
        /// What tells this question from others.
        id: Option<String>,
    },
    /// A person answered.
    QuestionAnswered {
        /// Which question.
        id: Option<String>,
    },
    /// A sub-agent begins. `Event::sub_agent` names it.
    SubAgentStarted,
    /// A sub-agent has ended. `Event::sub_agent` names it.
    SubAgentStopped,
    /// An event that changes nothing here.
    Other,
}

/// How a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Afresh.
    Startup,
    /// An earlier session goes on in a new process.
    Resume,
    /// The conversation was cleared.
    Clear,
    /// The conversation was compacted in the middle of a turn: nothing has changed.
    Compact,
}

/// Something that lives on in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Background {
    /// The agent's id for it.
    pub id: String,
    /// Its kind, in the agent's word: `subagent`, `shell`, `monitor`, `workflow`, ...
    pub kind: String,
    /// Its status, in the agent's word.
    pub status: Option<String>,
}

/// A change of a to-do list.
#[derive(Debug, Clone, PartialEq)]
pub enum Todo {
    /// The whole list, as the strict envelope `{"kind":"todo_list","todos":[{"id","content","status"}]}`.
    List(serde_json::Value),
    /// One item was added or changed.
    Item {
        /// Its id.
        id: String,
        /// Its text, if the event says it.
        content: Option<String>,
        /// Its status: `pending`, `in_progress`, `completed` or `deleted`.
        status: String,
    },
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing to say: the agent goes on as it would.
    Nothing,
    /// The agent shall go on instead of stopping, with this text.
    Continue {
        /// What the model is told; not empty.
        text: String,
    },
}

#[cfg(test)]
mod tests;
