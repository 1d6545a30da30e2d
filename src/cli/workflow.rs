//! The arguments of the commands about workflow runs.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::attempt::{InputArgs, TokenArgs};
use super::values::{duration, outcome, words};
use crate::protocol::classify::Outcome;
use crate::protocol::ids::Name;

/// `step`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct StepArgs {
    /// How the step ended.
    #[command(subcommand)]
    pub end: StepEnd,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum StepEnd {
    /// Take the child's report as the step's result
    Complete(StepCheckpointArgs),
    /// Record that the step's child gave no result that counts
    Fail {
        /// Which checkpoint.
        #[command(flatten)]
        at: StepCheckpointArgs,
        /// Say why, for people
        #[arg(long, value_name = "TEXT", value_parser = words)]
        error: Option<String>,
    },
}

/// Which checkpoint a step command is about.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(group = clap::ArgGroup::new("needs_input").args(["input_hash", "input"]).required(true))]
pub struct StepCheckpointArgs {
    /// Name the workspace of the run
    #[arg(long, value_name = "WS", value_parser = Name::parse)]
    pub parent: Name,
    /// Name the run
    #[arg(long, value_name = "R", value_parser = Name::parse)]
    pub run: Name,
    /// Name the step
    #[arg(long, value_name = "S", value_parser = Name::parse)]
    pub step: Name,
    /// Which input it was started with.
    #[command(flatten)]
    pub input: InputArgs,
}

/// `wait`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct WaitArgs {
    /// The task
    #[arg(value_name = "TASK", value_parser = Name::parse, required_unless_present = "run", conflicts_with = "run")]
    pub task: Option<Name>,
    /// Wait for the child of a step: the run
    #[arg(long, value_name = "R", value_parser = Name::parse, requires = "step")]
    pub run: Option<Name>,
    /// Name the step of the run
    #[arg(long, value_name = "S", value_parser = Name::parse, requires = "run")]
    pub step: Option<Name>,
    /// Say which workspace's run is meant
    #[arg(long, value_name = "WS", value_parser = Name::parse, requires = "run")]
    pub parent: Option<Name>,
    /// Wait for this outcome
    #[arg(long = "for", value_name = "OUTCOME", default_value = "reported", value_parser = outcome())]
    pub outcome: Outcome,
    /// Give up after this long: 500ms, 2s, 5m or 0
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub timeout: Duration,
    /// The attempt's token: its holder counts as an owner who is alive.
    #[command(flatten)]
    pub token: TokenArgs,
}
