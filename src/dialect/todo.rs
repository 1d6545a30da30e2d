//! The agents' to-do tools, folded into the strict envelope
//! `{"kind":"todo_list","todos":[{"id","content","status"}]}`.
//!
//! What a tool answered comes before what the model asked for. A list that does not fold without a guess is no
//! list, and a failed call changed nothing. What cannot be worked on (cancelled, blocked) is not to do.

use serde_json::{Value, json};

use super::fields::{Tool, id_of};
use super::{Agent, Todo};

/// Whether this agent has a to-do list that its hooks show. Where there is none, nothing ever asks it to go on.
pub fn has_todo_list(agent: Agent) -> bool {
    match agent {
        Agent::Claude | Agent::Codex | Agent::Gemini | Agent::Qwen => true,
        // Cursor documents no hook for its list; Copilot keeps its list in a database of its own.
        Agent::Cursor | Agent::Copilot => false,
    }
}

/// What a person must see to before the agent's model has a to-do tool at all, for people.
pub fn todo_list_needs(agent: Agent) -> Option<&'static str> {
    match agent {
        Agent::Codex => {
            Some("since Codex 0.152: `enabled = true` below `[tools.update_plan]` in `config.toml`")
        }
        Agent::Qwen => Some("newer Qwen Code: `tools.todoWrite.enabled` set to true in `settings.json`"),
        Agent::Gemini => Some("a Gemini 2 model: Gemini CLI offers its to-do tool to no other"),
        Agent::Claude | Agent::Cursor | Agent::Copilot => None,
    }
}

/// How an agent names the parts of its list.
pub(super) struct Shape {
    /// Where the tool's answer holds the list, from the outside in.
    pub(super) answer: &'static [&'static str],
    /// The argument that holds it.
    pub(super) argument: &'static str,
    /// The field of an item that holds its text.
    pub(super) content: &'static str,
}

/// The whole list after this call.
pub(super) fn list(tool: &Tool<'_>, shape: &Shape) -> Option<Todo> {
    if tool.failed() {
        return None;
    }
    let answered = tool.response.and_then(|response| {
        shape.answer.iter().try_fold(response, |inside, field| inside.get(field)).and_then(Value::as_array)
    });
    let asked = || tool.input?.get(shape.argument)?.as_array();
    let items = answered.or_else(asked)?;
    // Ids beside places could collide, so it is one or the other.
    let ids: Option<Vec<String>> = items.iter().map(|item| item.get("id").and_then(id_of)).collect();
    let mut todos = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let content = item.get(shape.content)?.as_str()?;
        let status = match item.get("status")?.as_str()? {
            status @ ("pending" | "in_progress" | "completed") => status,
            "cancelled" | "blocked" => continue,
            _ => return None,
        };
        let id =
            ids.as_ref().and_then(|ids| ids.get(place).cloned()).unwrap_or_else(|| (place + 1).to_string());
        todos.push(json!({"id": id, "content": content, "status": status}));
    }
    Some(Todo::List(json!({"kind": "todo_list", "todos": todos})))
}
