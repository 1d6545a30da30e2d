//! The to-do list: only the main agent's own, complete and well-formed list is trusted (O45).

use super::Answered;
use super::background::TaskKind;
use super::chain::Cause;
use super::request::{PromptName, TodoChange, TodoList};
use super::session::TodoItem;
use super::work::{Work, refused, said};
use crate::protocol::codes::Code;
use crate::protocol::verdict::Refusal;

/// Items of a list that are counted. A list has no reason to be longer, and the row has a bound.
const TODOS_MAX: usize = 1000;

impl Work<'_> {
    /// `todo`.
    pub(super) fn todo(&mut self, request: &TodoList) -> Answered {
        self.refuse_unless_open()?;
        if let Some(why) = &request.untrusted {
            return said(Code::TodoIgnored, format!("not looked at: {why}"), crate::facts! { "reason": why });
        }
        let has_sub_agent = self.session.tasks.iter().any(|task| task.kind == TaskKind::Agent);
        if request.only_alone && has_sub_agent {
            let why = "it may be a sub-agent's";
            return said(Code::TodoIgnored, format!("not looked at: {why}"), crate::facts! { "reason": why });
        }
        self.refuse_late(request.prompt.as_ref())?;
        let items = request.items.iter().take(TODOS_MAX);
        self.session.todos = items.map(|(id, done)| TodoItem { id: id.clone(), done: *done }).collect();
        self.count()
    }

    /// One item of a list that the agent tells piece by piece.
    pub(super) fn todo_item(&mut self, change: &TodoChange) -> Answered {
        self.refuse_unless_open()?;
        self.refuse_late(change.prompt.as_ref())?;
        let todos = &mut self.session.todos;
        match (todos.iter().position(|item| item.id == change.id), change.done) {
            (Some(index), None) => drop(todos.remove(index)),
            (Some(index), Some(done)) => {
                if let Some(item) = todos.get_mut(index) {
                    item.done = done;
                }
            }
            (None, Some(done)) if todos.len() < TODOS_MAX => {
                todos.push(TodoItem { id: change.id.clone(), done });
            }
            (None, _) => {}
        }
        self.count()
    }

    /// A list from a turn that is over is nobody's any more.
    fn refuse_late(&mut self, prompt: Option<&PromptName>) -> Result<(), Box<Refusal>> {
        match prompt {
            Some(name) if !self.is_running(name) => {
                self.suspend(Cause::LateTodo, None);
                let message = format!("prompt `{}` is not the running one", name.0);
                refused(Refusal::new(Code::TodoLate, message)).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self) -> Answered {
        let unfinished = self.session.todos.iter().filter(|item| !item.done).count();
        let unfinished = u32::try_from(unfinished).unwrap_or(u32::MAX);
        if self.session.plan {
            self.suspend(Cause::Plan, None);
        }
        self.session.chain.observe(unfinished);
        let chain = &self.session.chain;
        let facts = crate::facts! { "unfinishedCount": unfinished, "armed": chain.armed };
        said(Code::TodoCounted, format!("{unfinished} unfinished"), facts)
    }
}
