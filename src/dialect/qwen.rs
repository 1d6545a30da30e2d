//! Qwen Code.
//!
//! Its `UserPromptSubmit` also covers what is sent after a tool call, with an empty text, and a stop hook's own
//! continuation. Only what was submitted comes with `submitted_prompt`.

use super::family::{self, Own};
use super::fields::{Fields, Tool};
use super::todo::{self, Shape};
use super::{Event, Kind, Todo, Unusable};

const OWN: Own = Own { question: "ask_user_question", wakeups: "crons", todo };

const LIST: Shape = Shape { answer: &["returnDisplay", "todos"], argument: "todos", content: "content" };

/// One hook call.
pub(super) fn read(name: &str, fields: &Fields) -> Result<Event, Unusable> {
    let kind = match family::kind(name, fields, &OWN)? {
        Kind::Prompt { text, .. } if fields.value("submitted_prompt").is_some() => {
            Kind::Prompt { text, typed: Some(true) }
        }
        Kind::Prompt { text, .. } if text.trim().is_empty() => Kind::Prompt { text, typed: Some(false) },
        kind => kind,
    };
    Ok(Event { kind, ..fields.shared("prompt_id")? })
}

fn todo(tool: &Tool<'_>) -> Option<Todo> {
    if tool.name == "todo_write" { todo::list(tool, &LIST) } else { None }
}
