//! The events as Claude Code names them. Codex and Qwen Code took the names over, and most of the fields.

use super::fields::{Fields, Tool};
use super::{Kind, Todo, Unusable, prompt};

/// What the agents of the family do not share.
pub(super) struct Own {
    /// The tool that asks a person.
    pub(super) question: &'static str,
    /// The field that holds what will wake the session.
    pub(super) wakeups: &'static str,
    /// What a call of a tool did to the to-do list.
    pub(super) todo: fn(&Tool<'_>) -> Option<Todo>,
}

/// What happened.
pub(super) fn kind(name: &str, fields: &Fields, own: &Own) -> Result<Kind, Unusable> {
    let names_sub_agent = fields.sub_agent()?.is_some();
    Ok(match name {
        "UserPromptSubmit" => prompt::read(fields)?,
        "Stop" => Kind::Stop {
            active: fields.flag("stop_hook_active"),
            background: fields.background("background_tasks")?,
            wakeups: fields.wakeups(own.wakeups)?,
        },
        "StopFailure" => Kind::StopFailed,
        "Interrupt" => Kind::Interrupted,
        "SessionStart" => Kind::SessionStarted(fields.start()?),
        "SessionEnd" => Kind::SessionEnded { reason: fields.text("reason").map(str::to_owned) },
        "CwdChanged" => Kind::DirectoryChanged {
            to: fields.text("new_cwd").or_else(|| fields.text("cwd")).map(str::to_owned),
        },
        // Without a name nobody could tell which one ends later.
        "SubagentStart" if names_sub_agent => Kind::SubAgentStarted,
        "SubagentStop" if names_sub_agent => Kind::SubAgentStopped,
        "PreToolUse" => before(fields, own),
        "PostToolUse" => after(fields, own),
        _ => Kind::Other,
    })
}

fn before(fields: &Fields, own: &Own) -> Kind {
    match fields.tool() {
        Some(tool) if tool.name == own.question => Kind::QuestionAsked { id: fields.id("tool_use_id") },
        _ => Kind::Other,
    }
}

fn after(fields: &Fields, own: &Own) -> Kind {
    match fields.tool() {
        Some(tool) if tool.name == own.question => Kind::QuestionAnswered { id: fields.id("tool_use_id") },
        Some(tool) => (own.todo)(&tool).map_or(Kind::Other, Kind::Todo),
        None => Kind::Other,
    }
}
