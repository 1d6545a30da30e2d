//! Copilot CLI.
//!
//! An event registered under its `PascalCase` name comes with its name and in `snake_case`, and tools under the names
//! Claude gives them; under its `camelCase` name it comes without its name. The beginning of a sub-agent never says its name.
//! Hooks that run inside a sub-agent carry that sub-agent's own session id.

use super::fields::Fields;
use super::{Event, Kind, Unusable, prompt};

const QUESTION_TOOLS: [&str; 2] = ["AskUserQuestion", "ask_user"];

/// One hook call. Its fields are in `snake_case`.
pub(super) fn read(name: &str, fields: &Fields) -> Result<Event, Unusable> {
    let mut event = fields.shared("turn_id")?;
    let names_sub_agent = event.sub_agent.is_some();
    event.kind = match name {
        "UserPromptSubmit" | "userPromptSubmitted" => prompt::read(fields)?,
        "Stop" | "agentStop" => {
            Kind::Stop { active: fields.flag("stop_hook_active"), background: None, wakeups: None }
        }
        "ErrorOccurred" | "errorOccurred" => error(fields),
        "SessionStart" | "sessionStart" => Kind::SessionStarted(fields.start()?),
        "SessionEnd" | "sessionEnd" => {
            Kind::SessionEnded { reason: fields.text("reason").map(str::to_owned) }
        }
        "SubagentStart" | "subagentStart" if names_sub_agent => Kind::SubAgentStarted,
        "SubagentStop" | "subagentStop" if names_sub_agent => Kind::SubAgentStopped,
        "PreToolUse" | "preToolUse" if asks(fields) => Kind::QuestionAsked { id: None },
        "PostToolUse" | "postToolUse" if asks(fields) => Kind::QuestionAnswered { id: None },
        _ => Kind::Other,
    };
    Ok(event)
}

/// Only errors of the model or of the program end a turn; one of a tool is the model's to deal with.
fn error(fields: &Fields) -> Kind {
    match fields.text("error_context") {
        Some("tool_execution" | "user_input") => Kind::Other,
        _ => Kind::StopFailed,
    }
}

fn asks(fields: &Fields) -> bool {
    fields.tool().is_some_and(|tool| QUESTION_TOOLS.contains(&tool.name))
}
