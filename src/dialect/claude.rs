//! Claude Code.
//!
//! Its list comes whole from `TodoWrite`, or in increments from `TaskCreate` and `TaskUpdate`. The events
//! `TaskCreated` and `TaskCompleted` say the same a second time, but not who did it: a sub-agent's task would
//! count as the main agent's, so they are not read.

use serde_json::Value;

use super::family::{self, Own};
use super::fields::{Fields, Tool, id_of};
use super::todo::{self, Shape};
use super::{Event, Todo, Unusable};

const OWN: Own = Own { question: "AskUserQuestion", wakeups: "session_crons", todo };

const LIST: Shape = Shape { answer: &["newTodos"], argument: "todos", content: "content" };

/// One hook call.
pub(super) fn read(name: &str, fields: &Fields) -> Result<Event, Unusable> {
    Ok(Event { kind: family::kind(name, fields, &OWN)?, ..fields.shared("prompt_id")? })
}

fn todo(tool: &Tool<'_>) -> Option<Todo> {
    match tool.name {
        "TodoWrite" => todo::list(tool, &LIST),
        "TaskCreate" if !tool.failed() => created(tool),
        "TaskUpdate" if !tool.failed() => updated(tool),
        _ => None,
    }
}

fn created(tool: &Tool<'_>) -> Option<Todo> {
    let task = tool.response?.get("task")?;
    Some(Todo::Item {
        id: id_of(task.get("id")?)?,
        content: text(Some(task), "subject").or_else(|| text(tool.input, "subject")),
        status: "pending".to_owned(),
    })
}

/// An update that changes no status changes nothing here.
fn updated(tool: &Tool<'_>) -> Option<Todo> {
    let changed = tool.response.and_then(|response| response.get("statusChange"));
    let status = text(changed, "to").or_else(|| text(tool.input, "status"))?;
    if !["pending", "in_progress", "completed", "deleted"].contains(&status.as_str()) {
        return None;
    }
    Some(Todo::Item { id: id_of(tool.input?.get("taskId")?)?, content: text(tool.input, "subject"), status })
}

fn text(value: Option<&Value>, field: &str) -> Option<String> {
    value?.get(field)?.as_str().map(str::to_owned)
}
