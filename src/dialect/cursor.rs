//! Cursor.
//!
//! A continuation is submitted as the next user message. Which hook its to-do tool would fire is documented
//! nowhere, so there is no to-do list here.

use super::fields::Fields;
use super::{Event, Kind, SubAgent, Unusable, prompt, stand_in};

/// One hook call.
pub(super) fn read(name: &str, fields: &Fields) -> Result<Event, Unusable> {
    let conversation = fields.session(&["conversation_id", "session_id"])?;
    let sub_agent = match name {
        "subagentStart" | "subagentStop" => Some(task(fields)),
        _ => child(fields, &conversation)?,
    };
    Ok(Event {
        session: conversation,
        turn: fields.id("generation_id"),
        sub_agent,
        plan: fields.word("composer_mode")?.map(|mode| mode == "plan"),
        cwd: cwd(fields),
        kind: kind(name, fields)?,
    })
}

fn kind(name: &str, fields: &Fields) -> Result<Kind, Unusable> {
    Ok(match name {
        "beforeSubmitPrompt" => prompt::read(fields)?,
        "stop" => match fields.word("status")? {
            None | Some("completed") => Kind::Stop {
                active: fields.value("loop_count").and_then(serde_json::Value::as_u64).map(|loops| loops > 0),
                background: None,
                wakeups: None,
            },
            Some("aborted") => Kind::Interrupted,
            Some(_) => Kind::StopFailed,
        },
        "sessionStart" => Kind::SessionStarted(fields.start()?),
        "sessionEnd" => Kind::SessionEnded { reason: fields.text("reason").map(str::to_owned) },
        "subagentStart" => Kind::SubAgentStarted,
        "subagentStop" => Kind::SubAgentStopped,
        _ => Kind::Other,
    })
}

/// The end of a sub-agent does not repeat the id its beginning had, but both say its type and its task.
fn task(fields: &Fields) -> SubAgent {
    let kind = fields.text("subagent_type");
    let asked = format!("{}\n{}", kind.unwrap_or_default(), fields.text("task").unwrap_or_default());
    SubAgent { id: stand_in(&asked), kind: kind.map(str::to_owned) }
}

/// A conversation that has a parent is a sub-agent's.
fn child(fields: &Fields, conversation: &str) -> Result<Option<SubAgent>, Unusable> {
    let parent = fields.word("parent_conversation_id")?.filter(|parent| !parent.trim().is_empty());
    let own = parent.filter(|parent| *parent != conversation).map(|_| conversation.to_owned());
    Ok(own.map(|id| SubAgent { id, kind: fields.text("subagent_type").map(str::to_owned) }))
}

fn cwd(fields: &Fields) -> Option<String> {
    let root =
        fields.value("workspace_roots").and_then(|roots| roots.get(0)).and_then(serde_json::Value::as_str);
    fields.text("cwd").or(root).map(str::to_owned)
}
