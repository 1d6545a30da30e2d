//! The arguments of the commands about a session, its prompts, and claims on it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum, value_parser};

use super::values::{
    Input, duration, input, message_kind, prompt_end, prompt_kind, prompt_name, some_words, ticket_end,
};
use crate::protocol::guard::request::PromptName;
use crate::protocol::guard::session::{MessageKind, PromptEnd, PromptKind, TicketEnd};
use crate::protocol::ids::{Name, PromptId, TicketId};

/// How long something lives that the call makes.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Lifetime {
    /// Give it up after this long, if nothing is heard of it: 500ms, 2s or 5m [default: 1m]
    #[arg(long = "for", id = "lifetime", value_name = "DURATION", value_parser = lifetime)]
    pub length: Option<Duration>,
}

impl Lifetime {
    /// In milliseconds.
    pub fn or_ms(&self, default_ms: u64) -> u64 {
        // The longest duration an option takes is a year.
        self.length.map_or(default_ms, |length| u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
    }
}

/// What ends at once would be over before it is answered.
fn lifetime(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length.is_zero() { Err("it would be over at once".to_owned()) } else { Ok(length) }
}

/// `session`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct SessionArgs {
    /// What becomes of the session.
    #[command(subcommand)]
    pub act: SessionAct,
}

/// What becomes of a session.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum SessionAct {
    /// Make a session, or open a closed one as another generation
    Open {
        /// The session
        #[arg(value_name = "SESSION", value_parser = Name::parse)]
        session: Name,
        /// Name its working directory
        #[arg(long, value_name = "D")]
        cwd: Option<PathBuf>,
        /// Let the guard continue it; off unless this is given
        #[arg(long)]
        guard: bool,
        /// Say that its host keeps no queue of prompts, so that claims ask for none
        #[arg(long)]
        no_queue: bool,
    },
    /// Close it: late results are refused from now on
    Close {
        /// The session
        #[arg(value_name = "SESSION", value_parser = Name::parse)]
        session: Name,
    },
    /// Put it together again after a restart: nothing automatic runs in between
    #[command(group = ArgGroup::new("restore_step").args(["begin", "end"]).required(true))]
    Restore {
        /// The session
        #[arg(value_name = "SESSION", value_parser = Name::parse)]
        session: Name,
        /// It is being put together from now on
        #[arg(long)]
        begin: bool,
        /// It is whole again, without trust
        #[arg(long)]
        end: bool,
    },
    /// Say whether the agent plans; while it does, nothing automatic goes on
    Plan {
        /// The session
        #[arg(value_name = "SESSION", value_parser = Name::parse)]
        session: Name,
        /// Whether it plans
        #[arg(value_name = "on|off")]
        plan: OnOff,
    },
    /// Stop everything automatic until a person's next ordinary prompt runs
    Suspend {
        /// The session
        #[arg(value_name = "SESSION", value_parser = Name::parse)]
        session: Name,
        /// Say why, for people
        #[arg(long, value_name = "TEXT", value_parser = some_words)]
        cause: String,
    },
    /// Move it to another directory, step by step
    Relocate(RelocateArgs),
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// It does
    On,
    /// It does not
    Off,
}

/// `session relocate`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option that is typed; `step` is what they mean")]
#[command(group = ArgGroup::new("move_step").args(["begin", "poll", "commit", "abort"]).required(true))]
pub struct RelocateArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = Name::parse)]
    pub session: Name,
    /// Name the folder it moves to
    #[arg(long, value_name = "DIR", required_if_eq("begin", "true"), conflicts_with_all = ["poll", "commit", "abort"])]
    pub to: Option<PathBuf>,
    /// Let no prompt start any more
    #[arg(long, requires = "to")]
    pub begin: bool,
    /// Ask whether everything that began before is over
    #[arg(long)]
    pub poll: bool,
    /// It has moved
    #[arg(long)]
    pub commit: bool,
    /// It stays where it is
    #[arg(long)]
    pub abort: bool,
    /// Give the move up after this long without a call: 500ms, 2s or 5m [default: 1m]
    #[arg(long = "for", id = "lifetime", value_name = "DURATION", value_parser = lifetime,
          conflicts_with_all = ["poll", "commit", "abort"])]
    pub length: Option<Duration>,
    /// Name the process that moves it: its death gives the move up
    #[arg(long, value_name = "PID", value_parser = value_parser!(u32).range(1..),
          conflicts_with_all = ["poll", "commit", "abort"])]
    pub owner_pid: Option<u32>,
}

/// A step of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveStep<'a> {
    /// It begins, to this folder.
    Begin(&'a Path),
    /// Is what began before over?
    Poll,
    /// It is done.
    Commit,
    /// It is given up.
    Abort,
}

impl RelocateArgs {
    /// How long the gate is held without a call.
    pub fn lifetime(&self) -> Lifetime {
        Lifetime { length: self.length }
    }

    /// The step that is asked for.
    pub fn step(&self) -> MoveStep<'_> {
        match &self.to {
            Some(to) => MoveStep::Begin(to),
            None if self.poll => MoveStep::Poll,
            None if self.commit => MoveStep::Commit,
            None => MoveStep::Abort,
        }
    }
}

/// `prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct PromptArgs {
    /// What becomes of the prompt.
    #[command(subcommand)]
    pub act: PromptAct,
}

/// What becomes of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum PromptAct {
    /// Put a person's prompt into the queue; it runs at once if nothing else does
    Submit {
        /// The session
        #[arg(value_name = "SESSION", value_parser = Name::parse)]
        session: Name,
        /// Give the host's name for it
        #[arg(long, value_name = "ID", value_parser = Name::parse)]
        alias: Option<Name>,
        /// Say how it came to be
        #[arg(long, value_name = "KIND", value_parser = prompt_kind(), default_value = "ordinary")]
        kind: PromptKind,
        /// Keep its text, from a file or from standard input for -, to be handed on
        #[arg(long, value_name = "F", value_parser = input)]
        file: Option<Input>,
        /// Name the process that works on it: its death ends the prompt
        #[arg(long, value_name = "PID", value_parser = value_parser!(u32).range(1..))]
        owner_pid: Option<u32>,
    },
    /// Start the first prompt of the queue
    Start {
        /// The session
        #[arg(value_name = "SESSION", value_parser = Name::parse)]
        session: Name,
        /// The prompt, or the host's name for it
        #[arg(value_name = "PROMPT", value_parser = prompt_name)]
        prompt: PromptName,
        /// Name the process that works on it: its death ends the prompt
        #[arg(long, value_name = "PID", value_parser = value_parser!(u32).range(1..))]
        owner_pid: Option<u32>,
    },
    /// Say how a prompt ended
    Finish {
        /// The session
        #[arg(value_name = "SESSION", value_parser = Name::parse)]
        session: Name,
        /// The prompt, or the host's name for it
        #[arg(value_name = "PROMPT", value_parser = prompt_name)]
        prompt: PromptName,
        /// Say how
        #[arg(long = "as", value_name = "HOW", value_parser = prompt_end())]
        end: PromptEnd,
    },
    /// Take a prompt out of the queue before it runs
    Remove {
        /// The session
        #[arg(value_name = "SESSION", value_parser = Name::parse)]
        session: Name,
        /// The prompt, or the host's name for it
        #[arg(value_name = "PROMPT", value_parser = prompt_name)]
        prompt: PromptName,
    },
}

/// `claim`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(group = ArgGroup::new("ticket_step").args(["end", "stage"]))]
pub struct ClaimArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = Name::parse)]
    pub session: Name,
    /// Name the running prompt that is continued; without it an automatic turn of its own asks
    #[arg(long, value_name = "P", value_parser = prompt_name, conflicts_with = "ticket")]
    pub prompt: Option<PromptName>,
    /// Refuse unless it is this continuation of the stage
    #[arg(long, value_name = "N", conflicts_with = "ticket")]
    pub attempt: Option<u32>,
    /// Refuse unless this is still the work chain
    #[arg(long, value_name = "N", conflicts_with = "ticket")]
    pub chain: Option<u64>,
    /// Say how what woke the caller had ended
    #[arg(long, value_name = "HOW", conflicts_with = "ticket")]
    pub woken_by: Option<WokenBy>,
    /// Name the process that sends: its death counts as sent
    #[arg(long, value_name = "PID", value_parser = value_parser!(u32).range(1..), conflicts_with = "ticket")]
    pub owner_pid: Option<u32>,
    /// Speak of a ticket that was granted
    #[arg(long, value_name = "T", value_parser = TicketId::parse, requires = "ticket_step")]
    pub ticket: Option<TicketId>,
    /// Say what became of it, once
    #[arg(long = "as", id = "end", value_name = "HOW", value_parser = ticket_end(), requires = "ticket",
          conflicts_with = "lifetime")]
    pub end: Option<TicketEnd>,
    /// Say how far the send has come; the ticket lives on for the time of --for
    #[arg(long, value_name = "NAME", value_parser = Name::parse, requires = "ticket")]
    pub stage: Option<Name>,
    /// Keep what the person typed meanwhile, from a file or from standard input for -
    #[arg(long, value_name = "F", value_parser = input, requires = "end")]
    pub text_kept: Option<Input>,
    /// How long the ticket lives.
    #[command(flatten)]
    pub lifetime: Lifetime,
}

/// How what woke a caller had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WokenBy {
    /// It was done
    Completed,
    /// It broke
    Failed,
    /// A person stopped it, so nothing goes on because of it
    Cancelled,
}

/// `release`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ReleaseArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = Name::parse)]
    pub session: Name,
    /// Name the prompt that had yielded, by the id that submit gave it
    #[arg(long, value_name = "P", value_parser = PromptId::parse)]
    pub prompt: PromptId,
}

/// `say`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct SayArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = Name::parse)]
    pub session: Name,
    /// Name the text: the same name once more adds nothing
    #[arg(long, value_name = "ID", value_parser = Name::parse)]
    pub id: Option<Name>,
    /// Say who wrote it
    #[arg(long, value_name = "KIND", value_parser = message_kind(), default_value = "user")]
    pub kind: MessageKind,
    /// Read the text from a file, or from standard input for - (the default)
    #[arg(long, value_name = "F", value_parser = input)]
    pub file: Option<Input>,
}

/// `drain`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DrainArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = Name::parse)]
    pub session: Name,
    /// Say that this text has arrived; it is forgotten (repeatable)
    #[arg(long, value_name = "ID", value_parser = Name::parse, conflicts_with_all = ["again", "failed"])]
    pub ack: Vec<Name>,
    /// Give again what was taken and not acknowledged
    #[arg(long, conflicts_with = "failed")]
    pub again: bool,
    /// Say that an earlier answer could not be read
    #[arg(long)]
    pub failed: bool,
}
