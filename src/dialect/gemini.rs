//! Gemini CLI.
//!
//! Events of its sub-agents look like the main agent's and carry the same session id. But a sub-agent lives only
//! inside the tool call `invoke_agent`, so the hooks around that call say when one lives.

use serde_json::Value;

use super::fields::{Fields, Tool};
use super::todo::{self, Shape};
use super::{Event, Kind, SubAgent, Unusable, prompt, stand_in};

const LIST: Shape = Shape { answer: &["returnDisplay", "todos"], argument: "todos", content: "description" };

const SUB_AGENT_TOOL: &str = "invoke_agent";

/// One hook call.
pub(super) fn read(name: &str, fields: &Fields) -> Result<Event, Unusable> {
    let mut event = fields.shared("turn_id")?;
    let tool = fields.tool();
    event.kind = match (name, &tool) {
        ("BeforeAgent", _) => prompt::read(fields)?,
        ("AfterAgent", _) => Kind::Stop {
            active: fields.flag("stop_hook_active"),
            // The turn is over, and with it every tool call in which a sub-agent could live.
            background: Some(Vec::new()),
            wakeups: None,
        },
        ("SessionStart", _) => Kind::SessionStarted(fields.start()?),
        ("SessionEnd", _) => Kind::SessionEnded { reason: fields.text("reason").map(str::to_owned) },
        ("BeforeTool", Some(tool)) => before(tool, &mut event),
        ("AfterTool", Some(tool)) => after(tool, &mut event),
        _ => Kind::Other,
    };
    Ok(event)
}

fn before(tool: &Tool<'_>, event: &mut Event) -> Kind {
    match tool.name {
        "ask_user" => Kind::QuestionAsked { id: None },
        SUB_AGENT_TOOL => {
            event.sub_agent = Some(sub_agent(tool));
            Kind::SubAgentStarted
        }
        _ => Kind::Other,
    }
}

fn after(tool: &Tool<'_>, event: &mut Event) -> Kind {
    match tool.name {
        "ask_user" => Kind::QuestionAnswered { id: None },
        SUB_AGENT_TOOL => {
            event.sub_agent = Some(sub_agent(tool));
            Kind::SubAgentStopped
        }
        "write_todos" => todo::list(tool, &LIST).map_or(Kind::Other, Kind::Todo),
        "enter_plan_mode" if !tool.failed() => {
            event.plan = Some(true);
            Kind::Other
        }
        "exit_plan_mode" if approved(tool) => {
            event.plan = Some(false);
            Kind::Other
        }
        _ => Kind::Other,
    }
}

/// The call has no id, so what it asks for tells it from others.
fn sub_agent(tool: &Tool<'_>) -> SubAgent {
    let kind = tool.input.and_then(|input| input.get("agent_name")).and_then(Value::as_str);
    let asked = tool.input.map(Value::to_string).unwrap_or_default();
    SubAgent { id: stand_in(&asked), kind: kind.map(str::to_owned) }
}

/// Whether the person let the agent leave plan mode: the tool also runs when the plan was turned down.
fn approved(tool: &Tool<'_>) -> bool {
    let answer = tool.response.and_then(|response| response.get("llmContent")).and_then(Value::as_str);
    !tool.failed() && answer.is_some_and(|answer| answer.starts_with("Plan approved"))
}
