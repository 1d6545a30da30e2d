//! The command line: definitions only. Nothing here reads a file or the environment.
//!
//! Texts are validated as far as that is possible without looking at the world. What an absent TASK, attempt
//! or token falls back to is decided by the commands.

#[allow(
    clippy::doc_markdown,
    reason = "the comments on the fields are the help texts, where backticks would show"
)]
mod attempt;
#[allow(
    clippy::doc_markdown,
    reason = "the comments on the fields are the help texts, where backticks would show"
)]
mod guard;
mod help;
mod hook;
mod hook_call;
mod turn;
mod values;
mod workflow;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

pub use attempt::{
    AdmitArgs, ClaimRetireArgs, ImportArgs, InputArgs, InspectArgs, OwnerArgs, RecoverArgs, ReportArgs,
    ReserveArgs, RotateArgs, SettleArgs, StopArgs, TokenArgs,
};
pub use guard::{
    ClaimArgs, DrainArgs, Lifetime, MoveStep, OnOff, PromptAct, PromptArgs, ReleaseArgs, RelocateArgs,
    SayArgs, SessionAct, SessionArgs, WokenBy,
};
pub use hook::{
    HookAgentArgs, HookArgs, HookDoctorArgs, HookInstallArgs, HookUninstallArgs, HookVerb, OuterVerdict,
    ScopeArgs,
};
pub use hook_call::{HookCall, Worker, hook_call};
pub use turn::{
    BackgroundAct, BackgroundArgs, CronArgs, EndTurnArgs, GapsArgs, NotifyArgs, Outer, QueueAct, TodoArgs,
};
pub use values::{CleanupArg, Cleanups, DURATION_MAX, Input, ReceiptCopies};

pub use workflow::{StepArgs, StepCheckpointArgs, StepEnd, WaitArgs};

use crate::answer::Format;
use crate::protocol::ids::{Name, RequestId};

/// The whole command line.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "lychgate", bin_name = "lychgate", version)]
#[command(about = help::TOP_ABOUT, long_about = help::TOP, after_help = help::TOP_AFTER)]
#[command(max_term_width = 100, subcommand_required = true, arg_required_else_help = false)]
#[command(disable_help_subcommand = true, subcommand_value_name = "COMMAND")]
pub struct Cli {
    /// The options of every command.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The options of every command. They may stand before or after the command.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Keep the books in this folder
    #[arg(long, value_name = "DIR", global = true)]
    pub root: Option<PathBuf>,
    /// Choose the form of the answer [default: text]
    // No clap default: it has to stay visible whether `--json` contradicts something.
    #[arg(long = "format", value_name = "FORMAT", global = true)]
    pub format_given: Option<Format>,
    /// Answer in JSON; short for --format json
    #[arg(long, global = true)]
    pub json: bool,
    /// Print only these fields, raw, one a line
    #[arg(long, value_name = "FIELD[,FIELD]", value_delimiter = ',', value_parser = values::field, global = true)]
    pub print: Vec<String>,
    /// Wait this long for a lock: 500ms, 2s, 5m or 0
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "2s", global = true)]
    pub lock_wait: Duration,
    /// Name this call, so that repeating it is harmless
    #[arg(long, value_name = "ID", value_parser = RequestId::parse, global = true)]
    pub request_id: Option<RequestId>,
    /// Print tokens in text answers too
    #[arg(long, global = true)]
    pub show_token: bool,
    /// What the process that works on a hook call was told
    #[arg(skip)]
    pub worker: Option<Worker>,
}

impl Global {
    /// The form of the answer.
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format_given.unwrap_or(Format::Text) }
    }
}

/// The commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Reserve a new task with its first attempt
    #[command(long_about = help::RESERVE, after_help = help::RESERVE_AFTER)]
    Reserve(ReserveArgs),
    /// Publish the next attempt of a task
    #[command(long_about = help::ROTATE, after_help = help::ROTATE_AFTER)]
    #[command(mut_arg("token_file", |arg| arg.help("Read the token from a file, if it exists, and write a new one to it")))]
    Rotate(RotateArgs),
    /// Ask whether a send may start a turn
    #[command(long_about = help::ADMIT, after_help = help::ADMIT_AFTER)]
    Admit(AdmitArgs),
    /// Shut the admission of tasks
    #[command(long_about = help::STOP, after_help = help::STOP_AFTER)]
    Stop(StopArgs),
    /// Say that a turn, a send, a cleanup or the whole attempt is over
    #[command(long_about = help::SETTLE, after_help = help::SETTLE_AFTER)]
    Settle(SettleArgs),
    /// Publish the report of an attempt, or print it
    #[command(long_about = help::REPORT, after_help = help::REPORT_AFTER)]
    Report(ReportArgs),
    /// Retire an attempt for exactly one checkpoint
    #[command(long_about = help::CLAIM_RETIRE, after_help = help::CLAIM_RETIRE_AFTER)]
    ClaimRetire(ClaimRetireArgs),
    /// Record the end of a workflow step
    #[command(long_about = help::STEP, after_help = help::STEP_AFTER)]
    Step(StepArgs),
    /// Tell what has become of tasks
    #[command(long_about = help::INSPECT, after_help = help::INSPECT_AFTER)]
    Inspect(InspectArgs),
    /// Wait until a task has an outcome
    #[command(long_about = help::WAIT, after_help = help::WAIT_AFTER)]
    Wait(WaitArgs),
    /// Do after a restart what may be done without guessing
    #[command(long_about = help::RECOVER, after_help = help::RECOVER_AFTER)]
    Recover(RecoverArgs),
    /// Take over the tasks of a root of the application xum
    #[command(long_about = help::IMPORT, after_help = help::IMPORT_AFTER)]
    Import(ImportArgs),
    /// Open, close, suspend or move a session
    #[command(long_about = help::SESSION, after_help = help::SESSION_AFTER)]
    Session(SessionArgs),
    /// Keep the queue of a session's prompts
    #[command(long_about = help::PROMPT, after_help = help::PROMPT_AFTER)]
    Prompt(PromptArgs),
    /// Ask whether the agent may go on by itself now
    #[command(long_about = help::CLAIM, after_help = help::CLAIM_AFTER)]
    #[command(mut_arg("lifetime", |arg| arg.help("Count the ticket as sent after this long, if nothing is heard of it: 500ms, 2s or 5m [default: 1m]")))]
    Claim(ClaimArgs),
    /// Say that the queued prompt which a prompt yielded to is gone
    #[command(long_about = help::RELEASE, after_help = help::RELEASE_AFTER)]
    Release(ReleaseArgs),
    /// Keep what a person typed in the middle of a turn
    #[command(long_about = help::SAY, after_help = help::SAY_AFTER)]
    Say(SayArgs),
    /// Take what was typed in the middle of a turn
    #[command(long_about = help::DRAIN, after_help = help::DRAIN_AFTER)]
    Drain(DrainArgs),
    /// Tell the main agent's to-do list
    #[command(long_about = help::TODO, after_help = help::TODO_AFTER)]
    Todo(TodoArgs),
    /// Ask what happens at the end of a turn
    #[command(long_about = help::END_TURN, after_help = help::END_TURN_AFTER)]
    EndTurn(EndTurnArgs),
    /// Tell what lives in the background
    #[command(long_about = help::BACKGROUND, after_help = help::BACKGROUND_AFTER)]
    Background(BackgroundArgs),
    /// Queue a background result, or take the next one
    #[command(long_about = help::NOTIFY, after_help = help::NOTIFY_AFTER)]
    Notify(NotifyArgs),
    /// Queue a timer that has fired, or take the next one
    #[command(long_about = help::CRON, after_help = help::CRON_AFTER)]
    Cron(CronArgs),
    /// Show what had no place in a queue
    #[command(long_about = help::GAPS, after_help = help::GAPS_AFTER)]
    Gaps(GapsArgs),
    /// Have agents call this program, or no more
    #[command(long_about = help::HOOK, after_help = help::HOOK_AFTER)]
    Hook(HookArgs),
}

/// The commands' names, in the order of the help.
pub const COMMAND_NAMES: [&str; 25] = [
    "reserve",
    "rotate",
    "admit",
    "stop",
    "settle",
    "report",
    "claim-retire",
    "step",
    "inspect",
    "wait",
    "recover",
    "import",
    "session",
    "prompt",
    "claim",
    "release",
    "say",
    "drain",
    "todo",
    "end-turn",
    "background",
    "notify",
    "cron",
    "gaps",
    "hook",
];

impl Command {
    /// The command as it is typed.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reserve(_) => "reserve",
            Self::Rotate(_) => "rotate",
            Self::Admit(_) => "admit",
            Self::Stop(_) => "stop",
            Self::Settle(_) => "settle",
            Self::Report(_) => "report",
            Self::ClaimRetire(_) => "claim-retire",
            Self::Step(_) => "step",
            Self::Inspect(_) => "inspect",
            Self::Wait(_) => "wait",
            Self::Recover(_) => "recover",
            Self::Import(_) => "import",
            Self::Session(_) => "session",
            Self::Prompt(_) => "prompt",
            Self::Claim(_) => "claim",
            Self::Release(_) => "release",
            Self::Say(_) => "say",
            Self::Drain(_) => "drain",
            Self::Todo(_) => "todo",
            Self::EndTurn(_) => "end-turn",
            Self::Background(_) => "background",
            Self::Notify(_) => "notify",
            Self::Cron(_) => "cron",
            Self::Gaps(_) => "gaps",
            Self::Hook(_) => "hook",
        }
    }
}

/// Reads a command line, the program's name first.
///
/// An argument that is not UTF-8 is an error wherever it stands: a path that no JSON answer can carry back
/// would be another path in the answer.
pub fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    for (index, arg) in args.iter().enumerate().skip(1) {
        if arg.to_str().is_none() {
            let shown = values::shown(arg);
            return Err(wrong(ErrorKind::InvalidUtf8, format!("argument {index} (`{shown}`) is not UTF-8")));
        }
    }
    let cli = Cli::try_parse_from(args)?;
    check_global(&cli.global)?;
    check_tasks(&cli.command)?;
    check_acts(&cli.command)?;
    Ok(cli)
}

/// The conflicts of global options, which clap does not see when one stands before the command and one after.
fn check_global(global: &Global) -> Result<(), clap::Error> {
    if global.json && global.format_given.is_some_and(|format| format != Format::Json) {
        return Err(wrong(
            ErrorKind::ArgumentConflict,
            "--json and another --format exclude each other".to_owned(),
        ));
    }
    if !global.print.is_empty() && global.format() == Format::Sh {
        return Err(wrong(
            ErrorKind::ArgumentConflict,
            "--print and --format sh exclude each other".to_owned(),
        ));
    }
    Ok(())
}

/// Each task is locked once, so it is named once; and an attempt guards one task.
fn check_tasks(command: &Command) -> Result<(), clap::Error> {
    let tasks: &[Name] = match command {
        Command::Stop(args) => &args.tasks,
        Command::Inspect(args) => &args.tasks,
        Command::Recover(args) => &args.tasks,
        _ => return Ok(()),
    };
    let mut seen = HashSet::new();
    if let Some(twice) = tasks.iter().find(|task| !seen.insert(*task)) {
        return Err(wrong(ErrorKind::ValueValidation, format!("the task `{twice}` is named twice")));
    }
    match command {
        Command::Stop(args) if args.attempt.is_some() && tasks.len() > 1 => Err(wrong(
            ErrorKind::ArgumentConflict,
            "--attempt guards one task, and several are named".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Options that belong to one of the acts of a command only.
fn check_acts(command: &Command) -> Result<(), clap::Error> {
    let contradiction = match command {
        Command::Background(args) => args.contradiction(),
        Command::Notify(args) => args.contradiction(),
        Command::Cron(args) => args.contradiction(),
        _ => None,
    };
    contradiction.map_or(Ok(()), |what| Err(wrong(ErrorKind::ArgumentConflict, what)))
}

fn wrong(kind: ErrorKind, message: String) -> clap::Error {
    Cli::command().error(kind, message)
}

#[cfg(test)]
mod tests;
