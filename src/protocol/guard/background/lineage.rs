//! Whether something in the background belongs to the work chain.

use std::collections::BTreeSet;

use super::{ENDED_TASKS_MAX, EndedTask};
use crate::protocol::guard::session::Session;
use crate::protocol::ids::{Name, Timestamp};
use crate::protocol::row::Extra;

/// Ids in a baseline, or in what was taken up, past which those that name nothing any more are dropped.
const IDS_MAX: usize = 400;

impl Session {
    /// Whether a task belongs to the chain: the one rule that live work, priority and overflow go by (O55).
    pub fn is_related_task(&self, task: &Name) -> bool {
        self.descends_from_chain(task, true)
    }

    /// Whether a wakeup belongs to the chain. One that nobody told of before it fired is new.
    pub fn is_related_wakeup(&self, timer: &Name) -> bool {
        let is_known = self.tasks.iter().any(|task| task.task_id == *timer)
            || self.ended_tasks.iter().any(|task| task.task_id == *timer);
        self.is_related_task(timer) || (!is_known && !self.chain.baseline.contains(timer.as_str()))
    }

    /// Whether a stop has to wait: a related result or wakeup is queued, or a related task lives (O57).
    pub fn has_related_background(&self) -> bool {
        self.notifications.iter().any(|item| item.related)
            || self.crons.iter().any(|item| item.related)
            || self.tasks.iter().any(|task| self.is_related_task(&task.task_id))
    }

    /// Goes up from `task` until something is decided. Parents that are missing, and circles, decide "no" (O48).
    fn descends_from_chain(&self, task: &Name, by_marks: bool) -> bool {
        let mut visited = BTreeSet::new();
        let mut at = task;
        loop {
            let is_taken_up = self.chain.related.contains(at.as_str());
            if is_taken_up || (by_marks && self.marks.iter().any(|mark| mark.task_id == *at)) {
                return true;
            }
            if !visited.insert(at) {
                return false;
            }
            let live = self.tasks.iter().find(|task| task.task_id == *at);
            // Who has an owner is what its owner is, whenever it began itself (O53).
            if let Some(owner) = live.and_then(|task| task.owner.as_ref()) {
                at = owner;
                continue;
            }
            if self.chain.baseline.contains(at.as_str()) {
                return false;
            }
            match live.map(|task| task.parent.as_ref()) {
                Some(None) => return true,
                Some(Some(parent)) => at = parent,
                None => return self.ended_tasks.iter().any(|task| task.task_id == *at && task.related),
            }
        }
    }

    /// The chain has talked to the task, so that it is its own now.
    pub(super) fn take_up(&mut self, task: &Name) {
        self.chain.related.insert(task.as_str().to_owned());
        if self.chain.related.len() > IDS_MAX {
            let named = self.named_ids();
            self.chain.related.retain(|id| named.contains(id));
        }
    }

    /// The task belongs to no chain, until one talks to it.
    pub(super) fn add_to_baseline(&mut self, task: &Name) {
        self.chain.baseline.insert(task.as_str().to_owned());
        if self.chain.baseline.len() > IDS_MAX {
            let named = self.named_ids();
            self.chain.baseline.retain(|id| named.contains(id));
        }
    }

    /// Every id that the rule can come by.
    fn named_ids(&self) -> BTreeSet<String> {
        let live = self.tasks.iter().flat_map(|task| {
            [Some(&task.task_id), task.parent.as_ref(), task.owner.as_ref()].into_iter().flatten()
        });
        let ended = self.ended_tasks.iter().map(|task| &task.task_id);
        let marked = self.marks.iter().map(|mark| &mark.task_id);
        let queued = self.notifications.iter().map(|item| &item.task_id);
        let timers = self.crons.iter().map(|item| &item.task_id);
        live.chain(ended).chain(marked).chain(queued).chain(timers).map(|id| id.as_str().to_owned()).collect()
    }

    /// Takes a task out of what lives. What it was to the chain stays known, without what a mark says: a mark may
    /// still be rolled back.
    pub(super) fn end_task(&mut self, task: &Name, at: &Timestamp) -> bool {
        let Some(index) = self.tasks.iter().position(|live| live.task_id == *task) else { return false };
        let related = self.descends_from_chain(task, false);
        self.tasks.remove(index);
        self.ended_tasks.retain(|ended| ended.task_id != *task);
        self.ended_tasks.push(EndedTask {
            task_id: task.clone(),
            related,
            at: at.clone(),
            extra: Extra::new(),
        });
        if self.ended_tasks.len() > ENDED_TASKS_MAX {
            let forgotten = self.ended_tasks.remove(0);
            let is_asked = self.tasks.iter().any(|live| {
                live.parent.as_ref() == Some(&forgotten.task_id)
                    || live.owner.as_ref() == Some(&forgotten.task_id)
            });
            // What it had started lives on, and must not change sides.
            if forgotten.related && is_asked {
                self.take_up(&forgotten.task_id);
            }
        }
        true
    }
}
