//! The arguments of the commands about attempts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, value_parser};

use super::values::{
    Cleanups, Input, ReceiptCopies, claim_mode, disposal, duration, expect, input, outcome, receipt_source,
    rotate_as, words,
};
use crate::protocol::classify::Outcome;
use crate::protocol::codes::ReceiptSource;
use crate::protocol::ids::{AttemptId, CleanupId, Name, SendId, TurnId};
use crate::protocol::rotation::{Expect, RotateAs};
use crate::protocol::row::ClaimMode;
use crate::protocol::settlement::Disposal;

/// The token of an attempt, given in one of three ways.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[group(id = "token_source", multiple = false)]
pub struct TokenArgs {
    /// Show that the attempt is yours: its token
    // Plain text, because a malformed token is just a wrong one.
    #[arg(long, value_name = "T")]
    pub token: Option<String>,
    /// Read the token from a file
    #[arg(long, value_name = "F")]
    pub token_file: Option<PathBuf>,
    /// Read the token from an open file descriptor
    #[arg(long, value_name = "N", value_parser = value_parser!(i32).range(0..))]
    pub token_fd: Option<i32>,
}

/// Which input a step works on: its hash, or the input itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[group(id = "step_input", multiple = false, requires = "run")]
pub struct InputArgs {
    /// Name the input by its hash
    #[arg(long, value_name = "H", value_parser = Name::parse)]
    pub input_hash: Option<Name>,
    /// Read the input, JSON, from a file or from standard input for -, and hash it
    #[arg(long, value_name = "FILE", value_parser = input)]
    pub input: Option<Input>,
}

/// Who will hold the attempt's token, as far as it is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct OwnerArgs {
    /// Name the owner, for people
    #[arg(long, value_name = "NAME", value_parser = Name::parse)]
    pub owner: Option<Name>,
    /// Name the owner's process, so that its death can be proven later
    #[arg(long, value_name = "PID", value_parser = value_parser!(u32).range(1..))]
    pub owner_pid: Option<u32>,
}

/// `reserve`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ReserveArgs {
    /// The new task's id; may be left out where a run or a claim names the step
    #[arg(value_name = "TASK", value_parser = Name::parse, required_unless_present_any = ["run", "replaces"])]
    pub task: Option<Name>,
    /// Name the parent's workspace, where receipts and reports lie
    // With `--replaces` the claim knows the parent; one that is given must agree with it.
    #[arg(long, value_name = "WS", value_parser = Name::parse, required_unless_present = "replaces")]
    pub parent: Option<Name>,
    /// Name an ancestor of the parent, nearest first (repeatable)
    #[arg(long = "ancestor", value_name = "WS", value_parser = Name::parse)]
    pub ancestors: Vec<Name>,
    /// Who will hold the token.
    #[command(flatten)]
    pub owner: OwnerArgs,
    /// Ask for the child of a workflow step: the run
    #[arg(long, value_name = "R", value_parser = Name::parse, requires_all = ["step", "step_input"])]
    pub run: Option<Name>,
    /// Name the step of the run
    #[arg(long, value_name = "S", value_parser = Name::parse, requires = "run")]
    pub step: Option<Name>,
    /// Which input the step works on.
    #[command(flatten)]
    pub input: InputArgs,
    /// Show that the step's child so far is yours: its owner's token
    #[arg(long, value_name = "T", requires = "run")]
    pub prior_token: Option<String>,
    /// Go on after a Stop of the run, on purpose: its stop epoch
    #[arg(long, value_name = "EPOCH", requires = "run")]
    pub resume: Option<u64>,
    /// Replace a retired task, spending its claim
    #[arg(long, value_name = "OLD", value_parser = Name::parse, requires = "nonce",
          conflicts_with_all = ["run", "step", "step_input"])]
    pub replaces: Option<Name>,
    /// Give the nonce that claim-retire answered
    // Plain text, because a malformed nonce is just a wrong one.
    #[arg(long, value_name = "N", requires = "replaces")]
    pub nonce: Option<String>,
    /// Write the token to this new file instead of the answer
    #[arg(long, value_name = "F")]
    pub token_file: Option<PathBuf>,
}

/// `rotate`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct RotateArgs {
    /// The task
    #[arg(value_name = "TASK", value_parser = Name::parse)]
    pub task: Name,
    /// Say what the new identity is for
    #[arg(long = "as", value_name = "KIND", value_parser = rotate_as())]
    pub kind: RotateAs,
    /// Refuse unless this is still the task's attempt, and its stop epoch
    #[arg(long, value_name = "ATTEMPT[@EPOCH]", value_parser = expect)]
    pub expect: Option<Expect>,
    /// Who will hold the token.
    #[command(flatten)]
    pub owner: OwnerArgs,
    /// Go ahead beside what nobody can prove to be over; it is recorded
    #[arg(long)]
    pub unproven: bool,
    /// The caller's token; the file also receives a new one.
    #[command(flatten)]
    pub token: TokenArgs,
}

/// `admit`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(group = ArgGroup::new("admit_step").args(["queued", "start"]))]
pub struct AdmitArgs {
    /// The task [env: LYCHGATE_TASK]
    #[arg(value_name = "TASK", value_parser = Name::parse)]
    pub task: Option<Name>,
    /// Register a new send of this attempt [env: LYCHGATE_ATTEMPT]
    #[arg(long, value_name = "A", value_parser = AttemptId::parse, conflicts_with = "send")]
    pub attempt: Option<AttemptId>,
    /// Go on with a registered send
    #[arg(long, value_name = "ID", value_parser = SendId::parse, requires = "admit_step")]
    pub send: Option<SendId>,
    /// Record that the send lies in the agent's own queue
    #[arg(long)]
    pub queued: bool,
    /// Pass the gate: only exit 0 allows the turn to start
    #[arg(long)]
    pub start: bool,
    /// Describe the turn, for people
    #[arg(long, value_name = "TEXT", value_parser = words, requires = "start")]
    pub label: Option<String>,
    /// The attempt's token.
    #[command(flatten)]
    pub token: TokenArgs,
}

/// `stop`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct StopArgs {
    /// The tasks [env: LYCHGATE_TASK]
    #[arg(value_name = "TASK", value_parser = Name::parse, conflicts_with_all = ["run", "all"])]
    pub tasks: Vec<Name>,
    /// Stop a workflow run: latch it, then stop every child of it
    #[arg(long, value_name = "R", value_parser = Name::parse, conflicts_with_all = ["all", "attempt", "cleanup"])]
    pub run: Option<Name>,
    /// Say which workspace's run is meant
    #[arg(long, value_name = "WS", value_parser = Name::parse, requires = "run")]
    pub parent: Option<Name>,
    /// Stop every run and every task of the root
    #[arg(long, conflicts_with_all = ["attempt", "cleanup", "tree"])]
    pub all: bool,
    /// Stop the descendants too, root first
    #[arg(long)]
    pub tree: bool,
    /// Refuse unless this is still the task's attempt
    #[arg(long, value_name = "A", value_parser = AttemptId::parse)]
    pub attempt: Option<AttemptId>,
    /// Say why, for people
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub reason: Option<String>,
    /// Record the failure that led to this Stop
    #[arg(long, value_name = "TEXT", value_parser = words)]
    pub failure: Option<String>,
    /// What must be cleaned up before the attempt is over.
    #[command(flatten)]
    pub cleanups: Cleanups,
    /// Wait until nothing is owed any more, else exit 12
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub wait: Option<Duration>,
    /// Choose which copies of the receipt are written
    #[arg(long, value_name = "COPIES", default_value = "full")]
    pub receipt: ReceiptCopies,
}

/// `settle`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(group = ArgGroup::new("debt").args(["turn", "send", "cleanup"]))]
pub struct SettleArgs {
    /// The task [env: LYCHGATE_TASK]
    #[arg(value_name = "TASK", value_parser = Name::parse)]
    pub task: Option<Name>,
    /// Say that this turn has ended
    #[arg(long, value_name = "ID", value_parser = TurnId::parse)]
    pub turn: Option<TurnId>,
    /// Shut the attempt's admission in the same step
    #[arg(long, requires = "turn")]
    pub close: bool,
    /// Say that this send ends without a turn
    #[arg(long, value_name = "ID", value_parser = SendId::parse, requires = "end")]
    pub send: Option<SendId>,
    /// Say how the send ended
    #[arg(long = "as", id = "end", value_name = "HOW", requires = "send", value_parser = disposal())]
    pub end: Option<Disposal>,
    /// Pay a cleanup that a Stop named
    #[arg(long, value_name = "ID", value_parser = CleanupId::parse)]
    pub cleanup: Option<CleanupId>,
    /// Refuse unless this is still the task's attempt [env: LYCHGATE_ATTEMPT]
    #[arg(long, value_name = "A", value_parser = AttemptId::parse)]
    pub attempt: Option<AttemptId>,
    /// Ask for this source in the receipt; refused if it is not what happened
    #[arg(long, value_name = "SOURCE", value_parser = receipt_source(), conflicts_with_all = ["send", "cleanup"])]
    pub source: Option<ReceiptSource>,
    /// Choose which copies of the receipt are written
    #[arg(long, value_name = "COPIES", default_value = "full", conflicts_with = "send")]
    pub receipt: ReceiptCopies,
    /// The attempt's token.
    #[command(flatten)]
    pub token: TokenArgs,
}

/// `report`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ReportArgs {
    /// The task [env: LYCHGATE_TASK]
    #[arg(value_name = "TASK", value_parser = Name::parse)]
    pub task: Option<Name>,
    /// Name the attempt that reports [env: LYCHGATE_ATTEMPT]
    #[arg(long, value_name = "A", value_parser = AttemptId::parse, conflicts_with = "show")]
    pub attempt: Option<AttemptId>,
    /// Read the report from a file, or from standard input for - (the default)
    #[arg(long, value_name = "F", value_parser = input, conflicts_with = "show")]
    pub file: Option<Input>,
    /// Give the report a title
    #[arg(long, value_name = "T", value_parser = words, conflicts_with = "show")]
    pub title: Option<String>,
    /// Print the report that counts, as it was given
    #[arg(long)]
    pub show: bool,
    /// Print the reports that were refused and kept
    #[arg(long, requires = "show")]
    pub late: bool,
    /// The attempt's token.
    #[command(flatten)]
    pub token: TokenArgs,
}

/// `claim-retire`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(group = ArgGroup::new("needs_input").args(["input_hash", "input"]).required(true))]
pub struct ClaimRetireArgs {
    /// The task to retire
    #[arg(value_name = "TASK", value_parser = Name::parse)]
    pub task: Name,
    /// Name the attempt to retire
    #[arg(long, value_name = "A", value_parser = AttemptId::parse)]
    pub attempt: AttemptId,
    /// Name the run of the checkpoint
    #[arg(long, value_name = "R", value_parser = Name::parse)]
    pub run: Name,
    /// Name its step
    #[arg(long, value_name = "S", value_parser = Name::parse)]
    pub step: Name,
    /// Which input it was started with.
    #[command(flatten)]
    pub input: InputArgs,
    /// Name the parent's workspace
    #[arg(long, value_name = "WS", value_parser = Name::parse)]
    pub parent: Name,
    /// Choose the evidence the claim rests on
    #[arg(long, value_name = "MODE", value_parser = claim_mode(), default_value = "no-report")]
    pub mode: ClaimMode,
    /// The attempt's token.
    #[command(flatten)]
    pub token: TokenArgs,
}

/// `inspect`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct InspectArgs {
    /// The tasks; every task if none is named
    #[arg(value_name = "TASK", value_parser = Name::parse)]
    pub tasks: Vec<Name>,
    /// Show a workflow run: every step, its child, and what `reserve` would decide now
    #[arg(long, value_name = "R", value_parser = Name::parse, conflicts_with_all = ["tasks", "stuck", "expect", "explain"])]
    pub run: Option<Name>,
    /// Say which workspace's run is meant
    #[arg(long, value_name = "WS", value_parser = Name::parse, requires = "run")]
    pub parent: Option<Name>,
    /// Show a session: its prompts, what is under way, and what a claim would be answered now
    #[arg(long, value_name = "S", value_parser = Name::parse,
          conflicts_with_all = ["tasks", "run", "stuck", "expect", "xum", "token", "token_file", "token_fd"])]
    pub session: Option<Name>,
    /// Show only what is indeterminate, or unsettled without an event for 10 minutes
    #[arg(long)]
    pub stuck: bool,
    /// Show every piece of evidence looked at, and what a person can do next
    #[arg(long)]
    pub explain: bool,
    /// Show what happened
    #[arg(long)]
    pub history: bool,
    /// Exit 10 unless this is the outcome
    #[arg(long, value_name = "OUTCOME", value_parser = outcome())]
    pub expect: Option<Outcome>,
    /// Look at this root of the application xum instead; nothing in it is changed
    #[arg(long, value_name = "DIR", conflicts_with_all = ["run", "explain", "history", "token", "token_file", "token_fd"])]
    pub xum: Option<PathBuf>,
    /// The attempt's token: its holder counts as an owner who is alive.
    #[command(flatten)]
    pub token: TokenArgs,
}

/// `recover`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct RecoverArgs {
    /// The tasks; every task if none is named
    #[arg(value_name = "TASK", value_parser = Name::parse)]
    pub tasks: Vec<Name>,
    /// Also take up the named tasks whose owner or turns nobody can prove to be gone; it is recorded
    #[arg(long, requires = "tasks")]
    pub unproven: bool,
    /// Exit 11 if something had to be left alone
    #[arg(long)]
    pub strict: bool,
}

/// `import`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ImportArgs {
    /// Take over from this root of the application xum; nothing in it is changed
    #[arg(long, value_name = "DIR")]
    pub xum: PathBuf,
    /// Only say what would be taken over; write nothing, and make no root
    #[arg(long)]
    pub dry_run: bool,
}
