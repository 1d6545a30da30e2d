//! The form for people.
//!
//! Nothing a caller chose (an id, a title, a reason) reaches the terminal with a control character in it.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{Answer, Rendered, Style, is_token};
use crate::protocol::codes::Exit;

/// Replaces every character that could disturb or spoof a terminal: C0, DEL, C1, the bidirectional controls
/// and the line separators. The result is one line.
pub fn escaped(text: &str) -> String {
    escaped_except(text, |_| false)
}

fn escaped_except(text: &str, keeps: fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if keeps(c) || !is_unsafe(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_default());
        }
    }
    shown
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(super) fn render(answer: &Answer, style: &Style) -> Rendered {
    let complaint = complaint(answer, style);
    let mut stdout = String::new();
    match (&answer.verbatim, &answer.body) {
        (Some(text), _) if complaint.is_none() => stdout.push_str(text),
        (_, Some(body)) => {
            stdout.push_str(&escaped_except(body, |c| c == '\n' || c == '\t'));
            if !stdout.is_empty() && !stdout.ends_with('\n') {
                stdout.push('\n');
            }
            let tokens = answer.fields.clone().into_iter().filter(|(key, _)| is_token(key)).collect();
            stdout.push_str(&listed(tokens, style));
            if complaint.is_none() {
                push_hint(&mut stdout, answer, style);
            }
        }
        _ if complaint.is_none() => {
            stdout.push_str(&escaped(&answer.message));
            stdout.push('\n');
            stdout.push_str(&listed(answer.fields.clone(), style));
            push_hint(&mut stdout, answer, style);
        }
        _ => {}
    }
    Rendered { stdout: stdout.into_bytes(), stderr: complaint.unwrap_or_default().into_bytes() }
}

/// What goes to standard error: nothing for an answer whose data was asked for.
pub(super) fn complaint(answer: &Answer, style: &Style) -> Option<String> {
    let word = match answer.exit() {
        Exit::Done | Exit::Pending => return None,
        Exit::Refused => "refused",
        Exit::Unresolved => "unresolved",
        Exit::Usage => "usage",
        Exit::Data => "unreadable",
        Exit::Internal => "internal error",
        Exit::Uncertain => "uncertain",
        Exit::Io => "failed",
        Exit::Busy => "busy",
    };
    let mut lines = String::from("lychgate");
    if !answer.command.is_empty() {
        let _: std::fmt::Result = write!(lines, " {}", answer.command);
    }
    let word = paint(word, Paint::Refusal, style);
    let _: std::fmt::Result = writeln!(lines, ": {word} ({}): {}", answer.code, escaped(&answer.message));
    let hint = answer.hint.as_deref().map(escaped).or_else(|| repeat_hint(answer));
    if let Some(hint) = hint {
        push_line(&mut lines, &paint("hint:", Paint::Hint, style), &hint);
    }
    Some(lines)
}

/// An uncertain call can be repeated only by who knows its name.
fn repeat_hint(answer: &Answer) -> Option<String> {
    let id = answer.request_id.as_ref().filter(|_| answer.exit() == Exit::Uncertain)?;
    Some(format!("repeat the call with --request-id {}", escaped(id.as_str())))
}

/// The hint of an answer that is no complaint, which would carry it.
fn push_hint(lines: &mut String, answer: &Answer, style: &Style) {
    if let Some(hint) = &answer.hint {
        push_line(lines, &paint("hint:", Paint::Hint, style), &escaped(hint));
    }
}

fn push_line(lines: &mut String, key: &str, value: &str) {
    let _: std::fmt::Result = writeln!(lines, "{key} {value}");
}

#[derive(Clone, Copy)]
enum Paint {
    Refusal,
    Hint,
}

fn paint(word: &str, paint: Paint, style: &Style) -> String {
    let sequence = match paint {
        _ if !style.colour => return word.to_owned(),
        Paint::Refusal => "1;31",
        Paint::Hint => "36",
    };
    format!("\u{1b}[{sequence}m{word}\u{1b}[0m")
}

/// The generic list of fields: single values first come as they stand, aligned; a list of records as one
/// indented line each. The names are those that `--print` understands.
fn listed(fields: Map<String, Value>, style: &Style) -> String {
    let mut fields = Value::Object(fields);
    let hidden = !style.show_token && without_tokens(&mut fields);
    let mut entries = Vec::new();
    flatten("", &fields, &mut entries);
    let is_single = |value: &Value| !is_list_of_records(value);
    let singles = entries.iter().filter(|(_, value)| is_single(value));
    let width = singles.map(|(key, _)| key.chars().count() + 1).max().unwrap_or(0);
    let mut lines = String::new();
    for (key, value) in &entries {
        if is_single(value) {
            let key = format!("{key}:");
            push_line(&mut lines, &format!("{key:<width$}"), &single(value));
            continue;
        }
        let _: std::fmt::Result = writeln!(lines, "{key}:");
        for item in value.as_array().into_iter().flatten() {
            let mut parts = Vec::new();
            flatten("", item, &mut parts);
            let parts: Vec<String> =
                parts.iter().map(|(key, value)| format!("{key}: {}", single(value))).collect();
            let _: std::fmt::Result = writeln!(lines, "  {}", parts.join("  "));
        }
    }
    if hidden {
        lines.push_str("The token is not shown: use --show-token, --json or --token-file\n");
    }
    lines
}

/// Takes tokens out, at any depth, and tells whether there was one.
fn without_tokens(value: &mut Value) -> bool {
    match value {
        Value::Object(object) => {
            let count = object.len();
            object.retain(|key, value| !is_token(key) || value.is_null());
            let mut found = object.len() < count;
            for value in object.values_mut() {
                found |= without_tokens(value);
            }
            found
        }
        Value::Array(items) => items.iter_mut().fold(false, |found, item| without_tokens(item) | found),
        _ => false,
    }
}

/// Objects become dotted names; null, which says nothing, is left out.
fn flatten<'a>(prefix: &str, value: &'a Value, entries: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Null => {}
        Value::Object(object) => {
            for (key, value) in object {
                let key = escaped(key);
                let path = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
                flatten(&path, value, entries);
            }
        }
        other => entries.push((prefix.to_owned(), other)),
    }
}

fn is_list_of_records(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().any(Value::is_object))
}

fn single(value: &Value) -> String {
    match value {
        Value::String(text) => escaped(text),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) if !is_list_of_records(value) => {
            items.iter().map(single).collect::<Vec<_>>().join(", ")
        }
        other => escaped(&other.to_string()),
    }
}
