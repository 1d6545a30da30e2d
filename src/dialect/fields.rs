//! The fields of one hook call, read by name and with the right type.
//!
//! A field that is absent or null says nothing. One whose type is wrong is no less serious than broken JSON where
//! something is decided by it, and says nothing where it is only a hint.

use serde_json::{Map, Value};

use super::{Background, Event, Kind, SESSION_BYTES_MAX, Start, SubAgent, Unusable, json};

/// The longest id of a turn or a sub-agent that is understood.
const ID_BYTES_MAX: usize = 256;

/// The fields of one hook call.
pub(super) struct Fields(Map<String, Value>);

/// A tool call as the hook tells it.
pub(super) struct Tool<'f> {
    /// The tool's name.
    pub(super) name: &'f str,
    /// What the model asked for.
    pub(super) input: Option<&'f Value>,
    /// What the tool answered, if it has run.
    pub(super) response: Option<&'f Value>,
}

impl Fields {
    /// Reads standard input.
    pub(super) fn read(stdin: &[u8]) -> Result<Self, Unusable> {
        json::object(stdin).map(Self)
    }

    /// The same fields with `camelCase` names written as `snake_case`; a field already written so wins.
    pub(super) fn in_snake_case(self) -> Self {
        let mut fields = Map::new();
        let (snake, camel): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(|(name, _)| !name.bytes().any(|byte| byte.is_ascii_uppercase()));
        fields.extend(snake);
        for (name, value) in camel {
            fields.entry(snake_case(&name)).or_insert(value);
        }
        Self(fields)
    }

    /// The field, unless it is absent or null.
    pub(super) fn value(&self, field: &str) -> Option<&Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    /// A text; any other type says nothing.
    pub(super) fn text(&self, field: &str) -> Option<&str> {
        self.value(field)?.as_str()
    }

    /// A text by which something is decided.
    pub(super) fn word(&self, field: &'static str) -> Result<Option<&str>, Unusable> {
        match self.value(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Unusable::WrongType { field }),
        }
    }

    /// Yes or no; any other type says nothing.
    pub(super) fn flag(&self, field: &str) -> Option<bool> {
        self.value(field)?.as_bool()
    }

    /// An id that only serves to tell things apart; one that could not says nothing.
    pub(super) fn id(&self, field: &str) -> Option<String> {
        self.text(field).filter(|id| id_fault(id, ID_BYTES_MAX).is_none()).map(str::to_owned)
    }

    /// The name of the event: as the input says it, else as the caller was told.
    pub(super) fn event<'f>(&'f self, told: Option<&'f str>) -> Result<&'f str, Unusable> {
        self.word("hook_event_name")?.or(told).filter(|name| !name.trim().is_empty()).ok_or(Unusable::NoEvent)
    }

    /// The session id: the first of these fields that is there.
    pub(super) fn session(&self, fields: &[&'static str]) -> Result<String, Unusable> {
        let field = fields.iter().copied().find(|field| self.value(field).is_some());
        let Some(field) = field else {
            return Err(Unusable::NoSession { field: fields.first().copied().unwrap_or("session_id") });
        };
        let Some(id) = self.text(field) else {
            return Err(Unusable::WrongType { field });
        };
        match id_fault(id, SESSION_BYTES_MAX) {
            Some(why) => Err(Unusable::BadSession { field, why }),
            None => Ok(id.to_owned()),
        }
    }

    /// The sub-agent that sent the event, or that it is about.
    pub(super) fn sub_agent(&self) -> Result<Option<SubAgent>, Unusable> {
        let id = self.word("agent_id")?.filter(|id| !id.trim().is_empty());
        Ok(id.map(|id| SubAgent { id: id.to_owned(), kind: self.text("agent_type").map(str::to_owned) }))
    }

    /// Whether the agent is in plan mode.
    pub(super) fn plan(&self) -> Result<Option<bool>, Unusable> {
        Ok(self.word("permission_mode")?.map(|mode| mode == "plan"))
    }

    /// An event with the fields that most agents share.
    pub(super) fn shared(&self, turn: &str) -> Result<Event, Unusable> {
        Ok(Event {
            session: self.session(&["session_id"])?,
            turn: self.id(turn),
            sub_agent: self.sub_agent()?,
            plan: self.plan()?,
            cwd: self.text("cwd").map(str::to_owned),
            kind: Kind::Other,
        })
    }

    /// The tool call the event is about.
    pub(super) fn tool(&self) -> Option<Tool<'_>> {
        Some(Tool {
            name: self.text("tool_name")?,
            input: self.value("tool_input").or_else(|| self.value("tool_args")),
            response: self.value("tool_response").or_else(|| self.value("tool_result")),
        })
    }

    /// The prompt's text; a prompt without text is a prompt all the same.
    pub(super) fn prompt(&self) -> Result<&str, Unusable> {
        Ok(self.word("prompt")?.unwrap_or_default())
    }

    /// How a session begins. An unknown word is taken for a session that goes on, which grants nothing.
    pub(super) fn start(&self) -> Result<Start, Unusable> {
        Ok(match self.word("source")? {
            None | Some("startup" | "new") => Start::Startup,
            Some("clear") => Start::Clear,
            Some("compact") => Start::Compact,
            Some(_) => Start::Resume,
        })
    }

    /// What lives on in the background, without what the agent itself calls over.
    pub(super) fn background(&self, field: &'static str) -> Result<Option<Vec<Background>>, Unusable> {
        let Some(items) = self.list(field)? else { return Ok(None) };
        let tasks = items.iter().enumerate().map(|(place, item)| {
            let said = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
            Background {
                id: named(item, place),
                kind: said("type").or_else(|| said("agent_type")).unwrap_or_default(),
                status: said("status"),
            }
        });
        Ok(Some(tasks.filter(|task| !task.status.as_deref().is_some_and(is_over)).collect()))
    }

    /// The ids of what will wake the session, without what is switched off.
    pub(super) fn wakeups(&self, field: &'static str) -> Result<Option<Vec<String>>, Unusable> {
        let Some(items) = self.list(field)? else { return Ok(None) };
        let on =
            items.iter().enumerate().filter(|(_, item)| item.get("enabled") != Some(&Value::Bool(false)));
        Ok(Some(on.map(|(place, item)| named(item, place)).collect()))
    }

    fn list(&self, field: &'static str) -> Result<Option<&[Value]>, Unusable> {
        match self.value(field) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(Unusable::WrongType { field }),
        }
    }
}

impl Tool<'_> {
    /// Whether the tool's own answer says that it failed.
    pub(super) fn failed(&self) -> bool {
        let said = |field: &str| self.response.and_then(|response| response.get(field));
        let result = said("result_type").or_else(|| said("resultType")).and_then(Value::as_str);
        said("error").is_some_and(|error| !error.is_null())
            || said("success") == Some(&Value::Bool(false))
            || said("is_error") == Some(&Value::Bool(true))
            || result.is_some_and(|result| result != "success")
    }
}

/// A text or a number as an id.
pub(super) fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::String(id) if !id.trim().is_empty() => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// The item's id, or its place in the list: an item without an id is there all the same.
fn named(item: &Value, place: usize) -> String {
    item.get("id").or(Some(item)).and_then(id_of).unwrap_or_else(|| format!("#{}", place + 1))
}

/// Words that agents use for a task that is over. Any other word may mean that it lives.
fn is_over(status: &str) -> bool {
    let words = [
        "completed",
        "complete",
        "done",
        "finished",
        "success",
        "succeeded",
        "failed",
        "error",
        "errored",
        "cancelled",
        "canceled",
        "killed",
        "stopped",
        "aborted",
        "terminated",
    ];
    words.contains(&status)
}

/// Why this id cannot tell one thing from others.
fn id_fault(id: &str, bytes_max: usize) -> Option<&'static str> {
    let shown = id.trim();
    if shown.is_empty() {
        Some("it is empty")
    } else if shown.eq_ignore_ascii_case("null") || shown.eq_ignore_ascii_case("undefined") {
        Some("it is the word for nothing")
    } else if id.len() > bytes_max {
        Some("it is too long")
    } else if id.chars().any(char::is_control) {
        Some("it holds control characters")
    } else if id.contains('\u{fffd}') {
        // What stood there is lost, and two ids that differ only there would become one.
        Some("it is not text")
    } else {
        None
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
