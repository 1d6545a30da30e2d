//! Our answer in the agent's own form: nothing, or exactly one JSON object of fields it knows.

use serde_json::json;

use super::{Agent, Event, Kind, Reply, marker};

/// The longest text that is sent to an agent; Claude Code cuts at about 10,000.
const TEXT_CHARS_MAX: usize = 8_000;

/// The bytes for standard output, without a line end. `event` is what the agent told, if it could be understood.
///
/// Only the end of the main agent's turn is ever answered with a continuation. After any other event the same
/// words would mean something else: after a prompt they would throw the person's text away.
pub fn print(agent: Agent, event: Option<&Event>, reply: &Reply) -> String {
    let ends_turn =
        event.is_some_and(|event| event.sub_agent.is_none() && matches!(event.kind, Kind::Stop { .. }));
    match reply {
        // Codex takes an empty reason for a broken hook.
        Reply::Continue { text } if ends_turn && !text.trim().is_empty() => {
            continuation(agent, &marker::bounded(text, TEXT_CHARS_MAX))
        }
        _ => nothing(agent).to_owned(),
    }
}

fn continuation(agent: Agent, text: &str) -> String {
    let answer = match agent {
        Agent::Claude | Agent::Codex | Agent::Qwen | Agent::Copilot => {
            json!({"decision": "block", "reason": text})
        }
        Agent::Gemini => json!({"decision": "deny", "reason": text}),
        Agent::Cursor => json!({"followup_message": text}),
    };
    answer.to_string()
}

/// No opinion. Gemini reads standard error where standard output is empty, so there it is an empty object.
fn nothing(agent: Agent) -> &'static str {
    match agent {
        Agent::Gemini => "{}",
        Agent::Claude | Agent::Codex | Agent::Qwen | Agent::Cursor | Agent::Copilot => "",
    }
}
