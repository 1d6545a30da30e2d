//! Codex CLI.
//!
//! A failed `update_plan` has no hook after it, and the tool's answer does not repeat the list.

use super::family::{self, Own};
use super::fields::{Fields, Tool};
use super::todo::{self, Shape};
use super::{Event, Todo, Unusable};

const OWN: Own = Own { question: "request_user_input", wakeups: "session_crons", todo };

const PLAN: Shape = Shape { answer: &["plan"], argument: "plan", content: "step" };

/// One hook call.
pub(super) fn read(name: &str, fields: &Fields) -> Result<Event, Unusable> {
    Ok(Event { kind: family::kind(name, fields, &OWN)?, ..fields.shared("turn_id")? })
}

fn todo(tool: &Tool<'_>) -> Option<Todo> {
    if tool.name == "update_plan" { todo::list(tool, &PLAN) } else { None }
}
