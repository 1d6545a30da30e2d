//! What lives in the background, and whether it belongs to the work chain.
//!
//! A chain has a baseline: what lived, or waited in a queue, when it began. That is not its own, until it talks to
//! it. What has begun since is its own if what started it is. What nobody has told of belongs to no chain.

mod lineage;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Answered;
use super::request::Background;
use super::session::{BootTime, SessionState};
use super::work::{Work, refused, said};
use crate::facts;
use crate::protocol::codes::Code;
use crate::protocol::ids::{MarkId, Name, Timestamp};
use crate::protocol::row::{Extra, ProcessRef};
use crate::protocol::state::shell_word;
use crate::protocol::verdict::Refusal;

/// Tasks that live at most. Past it the oldest counts as ended, an unrelated one first: nobody ended it in time.
pub const TASKS_MAX: usize = 200;
/// Ended tasks that are remembered.
pub const ENDED_TASKS_MAX: usize = 64;
/// Marks that lie at most. Past it the oldest is rolled back.
pub const MARKS_MAX: usize = 200;

/// What kind of thing lives in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskKind {
    /// A sub-agent.
    Agent,
    /// A shell command.
    Shell,
    /// Something that watches.
    Monitor,
    /// A workflow.
    Workflow,
    /// A timer that wakes the chain.
    Wakeup,
}

impl TaskKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Agent, Self::Shell, Self::Monitor, Self::Workflow, Self::Wakeup];

    /// The word on disk, on the command line and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Shell => "shell",
            Self::Monitor => "monitor",
            Self::Workflow => "workflow",
            Self::Wakeup => "wakeup",
        }
    }
}

/// One live thing in the background. What has ended is not here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its id.
    pub task_id: Name,
    /// What it is.
    pub kind: TaskKind,
    /// The task that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Name>,
    /// The task it works for, where that is another one: a monitor belongs to its owner (O53).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Name>,
    /// Since when.
    pub at: Timestamp,
    /// Its process, if it was said: its proven death ends it (O57).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRef>,
    /// The agent's own hook told of it, so the agent's own view ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told_by_agent: bool,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A task that is over: a result of it that comes later belongs to the chain if it did, and so does what it had
/// started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedTask {
    /// Which.
    pub task_id: Name,
    /// Whether it belonged to the chain when it ended.
    pub related: bool,
    /// When.
    pub at: Timestamp,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A provisional mark: a tool call is about to talk to this task (O50). Several can lie on one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Which.
    pub mark_id: MarkId,
    /// The task it lies on.
    pub task_id: Name,
    /// From when on it counts as rolled back: its maker died (O51).
    pub deadline: BootTime,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Work<'_> {
    /// `background`.
    pub(crate) fn background(&mut self, request: &Background) -> Answered {
        self.must_not_be_over()?;
        match request {
            Background::Start { task, kind, parent, owner, process, told_by_agent } => {
                let is_new = self.task_started(&Task {
                    task_id: task.clone(),
                    kind: *kind,
                    parent: parent.clone(),
                    owner: owner.clone(),
                    at: self.moment.call.now.clone(),
                    process: process.clone(),
                    told_by_agent: *told_by_agent,
                    extra: Extra::new(),
                });
                let how = if is_new { "lives in the background now" } else { "was known to live already" };
                self.noted(task, how)
            }
            Background::End(task) => {
                let is_known = self.task_ended(task, None);
                self.noted(task, if is_known { "has ended" } else { "does not live in the background" })
            }
            Background::Mark(task, for_ms) => self.mark(task, *for_ms),
            Background::Commit(task, mark) => {
                self.take_mark(task, mark)?;
                self.session.take_up(task);
                self.log("mark-committed", Some(task.as_str()), None);
                self.noted(task, "belongs to the chain now")
            }
            Background::Rollback(task, mark) => {
                self.take_mark(task, mark)?;
                self.log("mark-rolled-back", Some(task.as_str()), None);
                self.noted(task, "has lost that mark")
            }
            Background::View { tasks, wakeups } => self.view(tasks.as_deref(), wakeups.as_deref()),
        }
    }

    /// A new chain starts: what lives and what is queued now is its baseline, and nothing of it is its own
    /// (O47, O56).
    pub(crate) fn at_boundary(&mut self) {
        let session = &mut self.session;
        let mut baseline: BTreeSet<String> =
            session.tasks.iter().map(|task| task.task_id.as_str().to_owned()).collect();
        for item in &mut session.notifications {
            item.related = false;
            baseline.extend([item.id.as_str().to_owned(), item.task_id.as_str().to_owned()]);
        }
        for item in session.crons.iter_mut().filter(|item| item.wakeup) {
            item.related = false;
            baseline.extend([item.id.as_str().to_owned(), item.task_id.as_str().to_owned()]);
        }
        session.chain.baseline = baseline;
        session.chain.related.clear();
        session.marks.clear();
        session.ended_tasks.clear();
    }

    /// What time and death change in the background, in the queues and in a move.
    pub(crate) fn sweep_background(&mut self) {
        let boot = self.moment.boot;
        let lapsed: Vec<Mark> =
            self.session.marks.extract_if(.., |mark| mark.deadline.is_over(boot)).collect();
        for mark in lapsed {
            self.log("mark-rolled-back", Some(mark.task_id.as_str()), Some("its deadline is over"));
        }
        let dead: Vec<Name> = self
            .session
            .tasks
            .iter()
            .filter(|task| self.is_dead(task.process.as_ref()))
            .map(|task| task.task_id.clone())
            .collect();
        for task in dead {
            self.task_ended(&task, Some("its process is dead"));
        }
        self.sweep_queues();
        self.sweep_gate();
    }

    /// A closed session takes nothing new (O64).
    pub(super) fn must_not_be_over(&self) -> Result<(), Box<Refusal>> {
        if self.session.state != SessionState::Closed {
            return Ok(());
        }
        let id = &self.session.session_id;
        let hint = format!("open it again: lychgate session open {}", shell_word(id.as_str()));
        Err(Box::new(Refusal::new(Code::SessionOver, format!("session `{id}` is closed")).hint(hint)))
    }

    /// A task lives. What is restored belonged to no chain (O66). Answers whether it was unknown.
    fn task_started(&mut self, task: &Task) -> bool {
        let id = &task.task_id;
        if let Some(known) = self.session.tasks.iter_mut().find(|known| known.task_id == *id) {
            known.parent = task.parent.clone().or(known.parent.take());
            known.owner = task.owner.clone().or(known.owner.take());
            known.process = task.process.clone().or(known.process.take());
            return false;
        }
        if self.session.tasks.len() >= TASKS_MAX {
            self.forget_a_task();
        }
        self.session.ended_tasks.retain(|ended| ended.task_id != *id);
        if self.session.state == SessionState::Restoring {
            self.session.add_to_baseline(id);
        }
        self.session.tasks.push(task.clone());
        self.log("task-started", Some(id.as_str()), Some(task.kind.as_str()));
        true
    }

    fn forget_a_task(&mut self) {
        let session = &self.session;
        let oldest_unrelated = session.tasks.iter().find(|task| !session.is_related_task(&task.task_id));
        if let Some(oldest) = oldest_unrelated.or(session.tasks.first()).map(|task| task.task_id.clone()) {
            self.task_ended(&oldest, Some("too many live"));
        }
    }

    fn task_ended(&mut self, task: &Name, why: Option<&str>) -> bool {
        let is_known = self.session.end_task(task, &self.moment.call.now);
        if is_known {
            self.log("task-ended", Some(task.as_str()), why);
        }
        is_known
    }

    /// Everything that lives, as the agent tells it: the rest has ended, but for what it did not speak of.
    fn view(&mut self, tasks: Option<&[Task]>, wakeups: Option<&[Task]>) -> Answered {
        let seen: Vec<&Task> = tasks.into_iter().chain(wakeups).flatten().collect();
        let gone: Vec<Name> = self
            .session
            .tasks
            .iter()
            .filter(|task| task.told_by_agent)
            .filter(|task| if task.kind == TaskKind::Wakeup { wakeups.is_some() } else { tasks.is_some() })
            .map(|task| &task.task_id)
            .filter(|id| seen.iter().all(|task| task.task_id != **id))
            .cloned()
            .collect();
        for task in &gone {
            self.task_ended(task, Some("the agent no longer tells of it"));
        }
        for task in seen {
            self.task_started(task);
        }
        let live = self.session.tasks.len();
        said(Code::BackgroundNoted, format!("{live} tasks live in the background"), facts! { "live": live })
    }

    /// A tool call is about to talk to the task: until it says how that went, the task counts as taken up (O50).
    fn mark(&mut self, task: &Name, for_ms: u64) -> Answered {
        if self.session.marks.len() >= MARKS_MAX {
            let oldest = self.session.marks.remove(0);
            self.log("mark-rolled-back", Some(oldest.task_id.as_str()), Some("too many lie"));
        }
        let mark_id = self.fresh_mark_id();
        self.session.marks.push(Mark {
            mark_id: mark_id.clone(),
            task_id: task.clone(),
            deadline: self.moment.boot.after(for_ms),
            extra: Extra::new(),
        });
        self.log("marked", Some(task.as_str()), Some(mark_id.as_str()));
        let facts = facts! { "taskId": task, "markId": mark_id, "related": true };
        said(
            Code::BackgroundNoted,
            format!("task `{task}` counts as the chain's own until the call is over"),
            facts,
        )
    }

    /// A call mints one mark from its own digits; a hook's event may need more.
    fn fresh_mark_id(&mut self) -> MarkId {
        let fresh = self.moment.fresh.mark();
        if self.session.marks.iter().all(|mark| mark.mark_id != fresh) {
            return fresh;
        }
        let seq = self.next_seq();
        MarkId::parse(&format!("mrk_{seq:016x}")).unwrap_or(fresh)
    }

    /// Takes off one mark, and no other (O51).
    fn take_mark(&mut self, task: &Name, mark: &MarkId) -> Result<(), Box<Refusal>> {
        let is_it = |lying: &Mark| lying.mark_id == *mark && lying.task_id == *task;
        if let Some(index) = self.session.marks.iter().position(is_it) {
            self.session.marks.remove(index);
            return Ok(());
        }
        let refusal = Refusal::new(Code::NoSuchMark, format!("no mark `{mark}` lies on task `{task}`"))
            .hint("it was committed, rolled back, past its deadline, or made before the last prompt; make another")
            .fact("taskId", task.as_str())
            .fact("related", self.session.is_related_task(task));
        refused(refusal).map(|_| ())
    }

    fn noted(&self, task: &Name, what: &str) -> Answered {
        let related = self.session.is_related_task(task);
        let facts = facts! { "taskId": task, "related": related, "live": self.session.tasks.len() };
        said(Code::BackgroundNoted, format!("task `{task}` {what}"), facts)
    }
}

#[cfg(test)]
mod tests;
