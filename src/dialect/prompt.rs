//! Who speaks in a prompt: a person, or a machine whose text arrives through the same event.

use serde_json::Value;

use super::fields::Fields;
use super::{Kind, Unusable};

/// The first tags of texts that agents write into a conversation themselves and then send as prompts: results of
/// background work, reminders, other agents' messages.
const MACHINE_TAGS: [&str; 10] = [
    "task-notification",
    "system-reminder",
    "system_notification",
    "subagent_notification",
    "agent_message_board_notification",
    "agent-message",
    "teammate-message",
    "cross-session-message",
    "remote-review",
    "tick",
];

/// The words an origin field uses for a person.
const PERSON_WORDS: [&str; 5] = ["human", "user", "person", "typed", "keyboard"];

/// The prompt of this call.
pub(super) fn read(fields: &Fields) -> Result<Kind, Unusable> {
    let text = fields.prompt()?.to_owned();
    let typed = typed(fields, &text);
    Ok(Kind::Prompt { text, typed })
}

/// Whether a person typed it: as an origin field says, else as the form of the text says, else unknown.
fn typed(fields: &Fields, text: &str) -> Option<bool> {
    let origin = ["prompt_origin", "prompt_source", "origin"].iter().find_map(|field| fields.value(field));
    let word = match origin {
        Some(Value::Object(origin)) => {
            origin.get("kind").or_else(|| origin.get("type")).and_then(Value::as_str)
        }
        Some(origin) => origin.as_str(),
        None => None,
    };
    match word {
        Some(word) => Some(PERSON_WORDS.iter().any(|person| word.eq_ignore_ascii_case(person))),
        None if begins_with_machine_tag(text) => Some(false),
        None => None,
    }
}

/// Whether the text begins with such a tag, after blanks. A person may quote one anywhere else.
fn begins_with_machine_tag(text: &str) -> bool {
    let Some(inside) = text.trim_start().strip_prefix('<') else { return false };
    let name = inside.split(|letter: char| letter == '>' || letter == '/' || letter.is_whitespace()).next();
    // Without an end the tag is only the beginning of some word.
    name.is_some_and(|name| name.len() < inside.len() && MACHINE_TAGS.contains(&name))
}
