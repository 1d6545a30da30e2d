//! The prompts of a session, waiting, running and over.

use serde::{Deserialize, Serialize};

use super::Session;
use crate::protocol::guard::request::PromptName;
use crate::protocol::ids::{PromptId, Timestamp};
use crate::protocol::row::{Extra, ProcessRef};

/// How a prompt came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptKind {
    /// A person said something new: the only thing that lifts a suspension (O41).
    Ordinary,
    /// The last prompt once more.
    Retry,
    /// Go on where it stopped.
    Continue,
}

impl PromptKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Ordinary, Self::Retry, Self::Continue];

    /// The word on disk, on the command line and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::Retry => "retry",
            Self::Continue => "continue",
        }
    }
}

/// Where a prompt stands in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptState {
    /// It waits for its turn.
    Queued,
    /// The agent works on it. At most one does.
    Running,
    /// It was removed and only keeps its place until it is the first (O72).
    Removed,
}

impl PromptState {
    /// The word on disk and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Removed => "removed",
        }
    }
}

/// A prompt in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// Minted by us: the only name that owns anything (O4).
    pub prompt_id: PromptId,
    /// The host's name for it. Never an owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// How it came to be.
    pub kind: PromptKind,
    /// Where it stands.
    pub state: PromptState,
    /// What the person typed, where we were given it to hand on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// It came through the agent's own hook, so the agent has its text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_hook: bool,
    /// A script was given the marker, and will hand the text to the agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub handed_on: bool,
    /// Its order.
    pub seq: u64,
    /// When it was submitted.
    pub at: Timestamp,
    /// When it began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The process that works on it, if it was said: its death ends the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRef>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How a prompt ended. Each has one end (O73).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptEnd {
    /// The agent was done with it.
    Completed,
    /// The turn broke.
    Failed,
    /// A person stopped it.
    Aborted,
    /// Nobody works on it any more.
    Abandoned,
    /// It was taken out of the queue before it ran.
    Removed,
}

impl PromptEnd {
    /// Every end that a caller can report.
    pub const REPORTED: [Self; 4] = [Self::Completed, Self::Failed, Self::Aborted, Self::Abandoned];

    /// The word on disk, on the command line and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::Abandoned => "abandoned",
            Self::Removed => "removed",
        }
    }
}

/// A prompt that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedPrompt {
    /// Which.
    pub prompt_id: PromptId,
    /// The host's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// How.
    pub end: PromptEnd,
    /// When.
    pub at: Timestamp,
    /// Its end's order.
    pub seq: u64,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Session {
    /// The prompt the agent works on.
    pub fn running(&self) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.state == PromptState::Running)
    }

    /// The first prompt that waits for its turn.
    pub fn first_queued(&self) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.state == PromptState::Queued)
    }

    /// The prompt of this name in the queue.
    pub fn prompt(&self, name: &PromptName) -> Option<&Prompt> {
        let is_it = |prompt: &&Prompt| {
            prompt.prompt_id.as_str() == name.0 || prompt.alias.as_deref() == Some(name.0.as_str())
        };
        self.prompts.iter().find(is_it)
    }

    /// The prompt of this name that is over.
    pub fn ended_prompt(&self, name: &PromptName) -> Option<&EndedPrompt> {
        let is_it = |ended: &&EndedPrompt| {
            ended.prompt_id.as_str() == name.0 || ended.alias.as_deref() == Some(name.0.as_str())
        };
        self.ended_prompts.iter().rev().find(is_it)
    }

    /// How many bytes of text it keeps, as they lie on disk: there a line feed has two and a control character six.
    pub(in crate::protocol::guard) fn text_bytes(&self) -> usize {
        let prompts = self.prompts.iter().filter_map(|prompt| prompt.text.as_ref());
        let messages = self.inbox.iter().chain(&self.kept).map(|message| &message.text);
        let results = self.notifications.iter().filter_map(|item| item.text.as_ref());
        let timers = self.crons.iter().filter_map(|item| item.text.as_ref());
        let left_out = self.gaps.iter().flat_map(|gap| &gap.omitted).filter_map(|item| item.text.as_ref());
        prompts.chain(messages).chain(results).chain(timers).chain(left_out).map(|text| on_disk(text)).sum()
    }
}

/// The bytes of a text in the session's record.
pub(in crate::protocol::guard) fn on_disk(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |text| text.len())
}
