//! The arguments of the commands about a turn's end, and about what waits for a turn.

use clap::{Args, ValueEnum, value_parser};

use super::guard::Lifetime;
use super::values::{Input, input, prompt_name, reason, task_kind};
use crate::protocol::guard::background::TaskKind;
use crate::protocol::guard::request::{External, PromptName};
use crate::protocol::ids::{GapId, MarkId, Name};

/// `todo`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct TodoArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = Name::parse)]
    pub session: Name,
    /// Read the list from a file, or from standard input for - (the default)
    #[arg(long, value_name = "F", value_parser = input)]
    pub file: Option<Input>,
    /// Name the prompt in whose turn it was written
    #[arg(long, value_name = "P", value_parser = prompt_name)]
    pub prompt: Option<PromptName>,
    /// Say that it is a sub-agent's list; it is not counted
    #[arg(long, value_name = "ID", value_parser = Name::parse)]
    pub agent_id: Option<Name>,
    /// Say that it is a replay of what happened before; it is not counted
    #[arg(long)]
    pub replayed: bool,
}

/// `end-turn`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct EndTurnArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = Name::parse)]
    pub session: Name,
    /// Name the prompt whose turn ends [default: the running one]
    #[arg(long, value_name = "P", value_parser = prompt_name)]
    pub prompt: Option<PromptName>,
    /// Tell what an outer stop hook said
    #[arg(long = "external", id = "external", value_name = "WHAT")]
    pub outer: Option<Outer>,
    /// Give its reason, which the agent is told
    #[arg(long, value_name = "TEXT", value_parser = reason, requires = "external",
          required_if_eq("external", "block"))]
    pub reason: Option<String>,
    /// Name the process that sends a continuation: its death counts as sent
    #[arg(long, value_name = "PID", value_parser = value_parser!(u32).range(1..))]
    pub owner_pid: Option<u32>,
    /// How long the ticket of a continuation lives.
    #[command(flatten)]
    pub lifetime: Lifetime,
}

/// What an outer stop hook said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Outer {
    /// The agent may stop
    Allow,
    /// The agent shall go on
    Block,
}

impl EndTurnArgs {
    /// What an outer stop hook said, with its reason.
    pub fn external(&self) -> Option<External> {
        Some(match (self.outer?, &self.reason) {
            (Outer::Block, Some(reason)) => External::Block(reason.clone()),
            (Outer::Block, None) | (Outer::Allow, _) => External::Allow,
        })
    }
}

/// `background`.
// What a task does is no subcommand, because a session may be called like one.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct BackgroundArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = Name::parse)]
    pub session: Name,
    /// What becomes of the task
    #[arg(value_name = "WHAT")]
    pub act: BackgroundAct,
    /// The task
    #[arg(value_name = "TASK", value_parser = Name::parse)]
    pub task: Name,
    /// With start: say what it is [default: agent]
    #[arg(long, value_name = "KIND", value_parser = task_kind())]
    pub kind: Option<TaskKind>,
    /// With start: name the task that started it
    #[arg(long, value_name = "TASK", value_parser = Name::parse)]
    pub parent: Option<Name>,
    /// With start: name the task it works for
    #[arg(long, value_name = "TASK", value_parser = Name::parse)]
    pub owner: Option<Name>,
    /// With start: name its process, whose death ends it
    #[arg(long, value_name = "PID", value_parser = value_parser!(u32).range(1..))]
    pub owner_pid: Option<u32>,
    /// With commit and rollback: name the mark
    #[arg(long, value_name = "M", value_parser = MarkId::parse)]
    pub mark: Option<MarkId>,
    /// With mark: how long the mark lasts.
    #[command(flatten)]
    pub lifetime: Lifetime,
}

/// What becomes of a task in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackgroundAct {
    /// It begins
    Start,
    /// It has ended
    End,
    /// A tool call is about to talk to it
    Mark,
    /// The tool call succeeded: the task belongs to the work chain now
    Commit,
    /// The tool call failed
    Rollback,
}

impl BackgroundArgs {
    /// What was given that does not belong together.
    pub(super) fn contradiction(&self) -> Option<String> {
        let is_start = self.act == BackgroundAct::Start;
        let ends_mark = matches!(self.act, BackgroundAct::Commit | BackgroundAct::Rollback);
        let for_start = [
            ("--kind", self.kind.is_some()),
            ("--parent", self.parent.is_some()),
            ("--owner", self.owner.is_some()),
            ("--owner-pid", self.owner_pid.is_some()),
        ];
        if self.lifetime.length.is_some() && self.act != BackgroundAct::Mark {
            return Some("--for belongs to `mark`".to_owned());
        }
        if let Some((option, _)) = for_start.iter().find(|(_, given)| *given && !is_start) {
            return Some(format!("{option} belongs to `start`"));
        }
        match (ends_mark, &self.mark) {
            (true, None) => Some("--mark names the mark that is meant".to_owned()),
            (false, Some(_)) => Some("--mark belongs to `commit` and `rollback`".to_owned()),
            _ => None,
        }
    }
}

/// What is done with a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QueueAct {
    /// Put something in
    Put,
    /// Take the next one, to start a turn for it
    Take,
    /// Its turn began: it is forgotten
    Ack,
}

/// `notify`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct NotifyArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = Name::parse)]
    pub session: Name,
    /// What is done
    #[arg(value_name = "WHAT")]
    pub act: QueueAct,
    /// With ack: the result, by its id
    #[arg(value_name = "ID", value_parser = Name::parse)]
    pub item: Option<Name>,
    /// With put: name the result; the same name once more adds nothing
    #[arg(long, value_name = "ID", value_parser = Name::parse)]
    pub id: Option<Name>,
    /// With put: name the background task it comes from
    #[arg(long, value_name = "TASK", value_parser = Name::parse)]
    pub task: Option<Name>,
    /// With put: say what kind of result it is
    #[arg(long, value_name = "KIND", value_parser = Name::parse)]
    pub kind: Option<Name>,
    /// With put: say how the task ended
    #[arg(long, value_name = "STATUS", value_parser = Name::parse)]
    pub status: Option<Name>,
    /// With put: read the result from a file, or from standard input for -
    #[arg(long, value_name = "F", value_parser = input)]
    pub file: Option<Input>,
    /// With take: name the process that starts the turn, whose death offers the result again
    #[arg(long, value_name = "PID", value_parser = value_parser!(u32).range(1..))]
    pub owner_pid: Option<u32>,
    /// With take: how long it is not offered again.
    #[command(flatten)]
    pub lifetime: Lifetime,
}

/// `cron`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct CronArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = Name::parse)]
    pub session: Name,
    /// What is done
    #[arg(value_name = "WHAT")]
    pub act: QueueAct,
    /// With ack: the timer's firing, by its id
    #[arg(value_name = "ID", value_parser = Name::parse)]
    pub item: Option<Name>,
    /// With put: name the firing; the same name once more adds nothing
    #[arg(long, value_name = "ID", value_parser = Name::parse)]
    pub id: Option<Name>,
    /// With put: name the timer that has fired
    #[arg(long, value_name = "TIMER", value_parser = Name::parse)]
    pub task: Option<Name>,
    /// With put: say that the agent set it to wake itself
    #[arg(long)]
    pub wakeup: bool,
    /// With put: read what to do from a file, or from standard input for -
    #[arg(long, value_name = "F", value_parser = input)]
    pub file: Option<Input>,
    /// With take: name the process that starts the turn, whose death offers the firing again
    #[arg(long, value_name = "PID", value_parser = value_parser!(u32).range(1..))]
    pub owner_pid: Option<u32>,
    /// With take: how long it is not offered again.
    #[command(flatten)]
    pub lifetime: Lifetime,
}

/// What the two queues' arguments have in common.
struct Queue<'a> {
    act: QueueAct,
    item: Option<&'a Name>,
    task: Option<&'a Name>,
    for_put: &'a [(&'static str, bool)],
    for_take: [(&'static str, bool); 2],
}

impl Queue<'_> {
    fn contradiction(&self) -> Option<String> {
        let stray = |act: QueueAct, options: &[(&'static str, bool)]| {
            let stray = options.iter().find(|(_, given)| *given && self.act != act);
            stray.map(|(option, _)| *option)
        };
        if let Some(option) = stray(QueueAct::Put, self.for_put) {
            return Some(format!("{option} belongs to `put`"));
        }
        if let Some(option) = stray(QueueAct::Take, &self.for_take) {
            return Some(format!("{option} belongs to `take`"));
        }
        match (self.act, self.task, self.item) {
            (QueueAct::Put, None, _) => Some("--task names where it comes from".to_owned()),
            (QueueAct::Ack, _, None) => Some("the ID to acknowledge is missing".to_owned()),
            (QueueAct::Put | QueueAct::Take, _, Some(item)) => {
                Some(format!("`{item}` is one argument too many; only `ack` names an ID"))
            }
            _ => None,
        }
    }
}

impl NotifyArgs {
    /// What was given that does not belong together.
    pub(super) fn contradiction(&self) -> Option<String> {
        let for_put = [
            ("--id", self.id.is_some()),
            ("--task", self.task.is_some()),
            ("--kind", self.kind.is_some()),
            ("--status", self.status.is_some()),
            ("--file", self.file.is_some()),
        ];
        let for_take = [("--for", self.lifetime.length.is_some()), ("--owner-pid", self.owner_pid.is_some())];
        let (item, task) = (self.item.as_ref(), self.task.as_ref());
        Queue { act: self.act, item, task, for_put: &for_put, for_take }.contradiction()
    }
}

impl CronArgs {
    /// What was given that does not belong together.
    pub(super) fn contradiction(&self) -> Option<String> {
        let for_put = [
            ("--id", self.id.is_some()),
            ("--task", self.task.is_some()),
            ("--wakeup", self.wakeup),
            ("--file", self.file.is_some()),
        ];
        let for_take = [("--for", self.lifetime.length.is_some()), ("--owner-pid", self.owner_pid.is_some())];
        let (item, task) = (self.item.as_ref(), self.task.as_ref());
        Queue { act: self.act, item, task, for_put: &for_put, for_take }.contradiction()
    }
}

/// `gaps`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct GapsArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = Name::parse)]
    pub session: Name,
    /// Say that this notice was seen; it is forgotten (repeatable)
    #[arg(long, value_name = "ID", value_parser = GapId::parse)]
    pub ack: Vec<GapId>,
}
