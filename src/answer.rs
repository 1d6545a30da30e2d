//! What a call says, and the three forms it can say it in.
//!
//! A command builds one [`Answer`]; [`Answer::render`] turns it into bytes; [`deliver`] writes them. Nothing
//! here decides anything: the exit status follows from the code.

mod sh;
mod text;
mod usage;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Map, Value};

pub use sh::sh_fields;
pub use text::escaped;
pub use usage::{scanned_style, usage_answer};

use crate::protocol::codes::{Code, Exit};
use crate::protocol::ids::RequestId;

/// The outcome of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The command that was called; empty if the call named none.
    pub command: &'static str,
    /// What happened, in one stable word.
    pub code: Code,
    /// The exit status, where it is not the one of the code.
    pub exit: Option<Exit>,
    /// The root the call worked on, if it came that far.
    pub root: Option<PathBuf>,
    /// The name of the call, if it came that far.
    pub request_id: Option<RequestId>,
    /// Whether the call changed something, a refusal too.
    pub changed: bool,
    /// The command's own fields, in camelCase, in the order they are printed.
    pub fields: Map<String, Value>,
    /// What happened, for people: one sentence without a full stop.
    pub message: String,
    /// What would help.
    pub hint: Option<String>,
    /// Text for people in place of the message and the generic list of fields. It goes to standard output,
    /// for a refusal too, whose message still goes to standard error. Control characters other than line
    /// feeds and tabs are escaped.
    pub body: Option<String>,
    /// A text that a successful answer in text form consists of, byte for byte (`report --show`).
    pub verbatim: Option<String>,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: data on standard output, refusals on standard error
    #[default]
    Text,
    /// For programs: one object on one line of standard output, for refusals too
    Json,
    /// For shells: assignments to evaluate, for refusals too
    Sh,
}

/// How an answer is to look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Style {
    /// The form.
    pub format: Format,
    /// Print only these fields. The form `sh` has no use for it.
    pub print: Vec<String>,
    /// Print tokens in text form too.
    pub show_token: bool,
    /// Colour the first word of a refusal.
    pub colour: bool,
    /// The columns there are, for commands that lay out a body. Nothing is wrapped here.
    pub width: usize,
}

/// An answer as bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// For standard output.
    pub stdout: Vec<u8>,
    /// For standard error.
    pub stderr: Vec<u8>,
}

impl Answer {
    /// An answer without fields.
    pub fn new(command: &'static str, code: Code, message: impl Into<String>) -> Self {
        Self {
            command,
            code,
            exit: None,
            root: None,
            request_id: None,
            changed: false,
            fields: Map::new(),
            message: message.into(),
            hint: None,
            body: None,
            verbatim: None,
        }
    }

    /// Adds a field, in camelCase.
    #[must_use]
    pub fn field(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(key.to_owned(), value.into());
        self
    }

    /// Says what would help.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Gives the text that people see in place of the message and the list of fields.
    #[must_use]
    pub fn body(mut self, body: impl Into<String>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Gives the text that the answer consists of in text form.
    #[must_use]
    pub fn verbatim(mut self, text: impl Into<String>) -> Self {
        self.verbatim = Some(text.into());
        self
    }

    /// The exit status.
    pub fn exit(&self) -> Exit {
        self.exit.unwrap_or_else(|| self.code.exit())
    }

    /// The answer as bytes.
    pub fn render(&self, style: &Style) -> Rendered {
        let prints = !style.print.is_empty();
        match style.format {
            Format::Sh => Rendered { stdout: sh::script(self).into_bytes(), stderr: Vec::new() },
            Format::Json if prints => Rendered { stdout: self.printed(&style.print), stderr: Vec::new() },
            Format::Json => {
                let mut line = Value::Object(self.object()).to_string();
                line.push('\n');
                Rendered { stdout: line.into_bytes(), stderr: Vec::new() }
            }
            Format::Text if prints => {
                let complaint = text::complaint(self, style).unwrap_or_default();
                Rendered { stdout: self.printed(&style.print), stderr: complaint.into_bytes() }
            }
            Format::Text => text::render(self, style),
        }
    }

    /// The whole answer as the object that JSON form prints.
    fn object(&self) -> Map<String, Value> {
        let root = self.root.as_ref().map(|root| root.to_string_lossy().into_owned());
        let request_id = self.request_id.as_ref().map(|id| id.as_str().to_owned());
        let command = Some(self.command).filter(|command| !command.is_empty());
        let mut object = Map::new();
        object.insert("ok".to_owned(), (self.exit() == Exit::Done).into());
        object.insert("command".to_owned(), command.into());
        object.insert("code".to_owned(), self.code.as_str().into());
        object.insert("root".to_owned(), root.into());
        object.insert("requestId".to_owned(), request_id.into());
        object.extend(self.fields.clone());
        object.insert("message".to_owned(), self.message.clone().into());
        if let Some(hint) = &self.hint {
            object.insert("hint".to_owned(), hint.clone().into());
        }
        object
    }

    /// The named fields, one a line. What is missing or null is an empty line, so that lines can be counted.
    fn printed(&self, fields: &[String]) -> Vec<u8> {
        let object = Value::Object(self.object());
        let mut lines = String::new();
        for field in fields {
            match look_up(&object, field) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => lines.push_str(text),
                Some(other) => lines.push_str(&other.to_string()),
            }
            lines.push('\n');
        }
        lines.into_bytes()
    }
}

/// Follows a dotted path through objects and, by number, arrays.
fn look_up<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, step| match value {
        Value::Object(object) => object.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Whether a field holds a token, which people are shown on request only.
fn is_token(key: &str) -> bool {
    key.ends_with("oken")
}

/// Writes an answer. An error means that standard output did not take all of it; what happens to standard
/// error is nobody's concern, since the exit status says the same.
pub fn deliver(rendered: &Rendered, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
    let delivered = out.write_all(&rendered.stdout).and_then(|()| out.flush());
    let told = err.write_all(&rendered.stderr).and_then(|()| err.flush());
    drop(told);
    delivered
}

#[cfg(test)]
mod tests;
