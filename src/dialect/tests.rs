mod agents;
mod answers;
mod odd;
mod payloads;

use serde_json::{Value, json};

use super::{Agent, Event, Kind, Todo, Unusable, read};

/// A call of this agent: its session's field, and these on top.
fn call(agent: Agent, name: &str, fields: &Value) -> Result<Event, Unusable> {
    let session = if agent == Agent::Cursor { "conversation_id" } else { "session_id" };
    let mut object = json!({session: "s1", "hook_event_name": name});
    let given = fields.as_object().unwrap().clone();
    object.as_object_mut().unwrap().extend(given);
    read(agent, None, object.to_string().as_bytes())
}

/// What happened, as this call says.
fn kind(agent: Agent, name: &str, fields: &Value) -> Kind {
    call(agent, name, fields).unwrap().kind
}

/// The to-do list or item of this call.
fn todo(agent: Agent, name: &str, fields: &Value) -> Option<Todo> {
    match kind(agent, name, fields) {
        Kind::Todo(todo) => Some(todo),
        Kind::Other => None,
        other => panic!("not about a to-do list: {other:?}"),
    }
}

/// Whether a person typed the prompt with these fields.
fn typed(agent: Agent, name: &str, fields: &Value) -> Option<bool> {
    match kind(agent, name, fields) {
        Kind::Prompt { typed, .. } => typed,
        other => panic!("not a prompt: {other:?}"),
    }
}
