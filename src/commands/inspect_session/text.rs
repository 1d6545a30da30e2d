//! The story of a session for people, readable at 80 columns.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::answer::escaped;

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    path.split('.').try_fold(value, |value, name| value.get(name)).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, path: &str) -> u64 {
    path.split('.').try_fold(value, |value, name| value.get(name)).and_then(Value::as_u64).unwrap_or_default()
}

fn is(value: &Value, path: &str) -> bool {
    path.split('.').try_fold(value, |value, name| value.get(name)) == Some(&Value::Bool(true))
}

/// The first of these that says something.
fn or<'a>(one: &'a str, other: &'a str) -> &'a str {
    if one.is_empty() { other } else { one }
}

fn list<'a>(fields: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    fields.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Lines of a label and a text.
struct Lines(String);

impl Lines {
    fn add(&mut self, label: &str, what: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{label:<10} {}", escaped(what));
    }
}

pub(super) fn one(root: &str, fields: &Map<String, Value>) -> String {
    let whole = Value::Object(fields.clone());
    let mut lines = Lines(String::new());
    lines.add("root", root);
    lines.add("session", text(&whole, "sessionId"));
    let guard = if is(&whole, "guard") { "on" } else { "off" };
    let plan = if is(&whole, "plan") { ", plans" } else { "" };
    lines.add(
        "state",
        &format!(
            "{}, generation {}, guard {guard}{plan}",
            text(&whole, "state"),
            number(&whole, "generation")
        ),
    );
    if !text(&whole, "cwd").is_empty() {
        lines.add("cwd", text(&whole, "cwd"));
    }
    queue(&mut lines, fields);
    chain(&mut lines, &whole);
    beside(&mut lines, fields);
    for (label, path) in [("claim", "claim.running"), ("ownerless", "claim.ownerless")] {
        let code = text(&whole, &format!("{path}.code"));
        if !code.is_empty() {
            lines.add(label, &format!("{code}: {}", text(&whole, &format!("{path}.why"))));
        }
    }
    for obstacle in list(fields, "obstacles") {
        lines.add("obstacle", text(obstacle, "what"));
        lines.add("  lifted by", text(obstacle, "lifts"));
    }
    history(&mut lines, fields);
    lines.0
}

fn queue(lines: &mut Lines, fields: &Map<String, Value>) {
    if list(fields, "prompts").is_empty() {
        lines.add("prompts", "none");
    }
    for prompt in list(fields, "prompts") {
        let alias = text(prompt, "alias");
        let alias = if alias.is_empty() { String::new() } else { format!(" `{alias}`") };
        lines.add(
            "prompt",
            &format!(
                "{} {}{alias}, {}, seq {}, {} s old",
                text(prompt, "promptId"),
                text(prompt, "state"),
                text(prompt, "kind"),
                number(prompt, "seq"),
                number(prompt, "ageSeconds")
            ),
        );
    }
    if let Some(wait) = fields.get("wait").filter(|wait| wait.is_object()) {
        let what =
            format!("{} has yielded to {}", text(wait, "promptId"), or(text(wait, "waitsFor"), "nobody"));
        lines.add("wait", &format!("{what} since {}", text(wait, "since")));
    }
    for ticket in list(fields, "tickets") {
        let void = text(ticket, "void");
        let void = if void.is_empty() { String::new() } else { format!(", void: {void}") };
        let stage = text(ticket, "stage");
        let stage = if stage.is_empty() { String::new() } else { format!(", {stage}") };
        lines.add(
            "ticket",
            &format!(
                "{} of {}, continuation {}, {} ms left{stage}{void}",
                text(ticket, "ticket"),
                or(text(ticket, "promptId"), "an automatic turn"),
                number(ticket, "attempt"),
                number(ticket, "leftMs")
            ),
        );
    }
}

fn chain(lines: &mut Lines, whole: &Value) {
    let flags =
        [("armed", "armed"), ("retryPaused", "paused for a retry"), ("awaiting", "awaiting a prompt")];
    let flags: String = flags
        .iter()
        .filter(|(flag, _)| is(whole, &format!("chain.{flag}")))
        .fold(String::new(), |told, (_, words)| told + ", " + words);
    lines.add(
        "chain",
        &format!(
            "{} unfinished, {} of {} continuations charged{flags}",
            number(whole, "chain.unfinishedCount"),
            number(whole, "chain.attempts"),
            number(whole, "chain.maxAttempts")
        ),
    );
    let cause = text(whole, "chain.suspended.cause");
    if !cause.is_empty() {
        let note = text(whole, "chain.suspended.note");
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        lines.add("suspended", &format!("{cause}{note} since {}", text(whole, "chain.suspended.since")));
    }
}

fn beside(lines: &mut Lines, fields: &Map<String, Value>) {
    let count = |key: &str| list(fields, key).len();
    if count("inbox") + count("kept") > 0 {
        lines.add("texts", &format!("{} typed, {} not acknowledged", count("inbox"), count("kept")));
    }
    if count("tasks") + count("notifications") + count("crons") + count("gaps") > 0 {
        lines.add(
            "beside",
            &format!(
                "{} task(s), {} result(s), {} timer(s), {} gap(s)",
                count("tasks"),
                count("notifications"),
                count("crons"),
                count("gaps")
            ),
        );
    }
    for (cause, refused) in fields.get("refused").and_then(Value::as_object).into_iter().flatten() {
        lines.add("refused", &format!("{} time(s): {cause}", number(refused, "count")));
    }
}

fn history(lines: &mut Lines, fields: &Map<String, Value>) {
    if let Some(error) = fields.get("historyError").and_then(Value::as_str) {
        lines.add("history", error);
    }
    for event in list(fields, "history") {
        let subject = [text(event, "subject"), text(event, "note")].join(" ");
        let line = format!(
            "{} {:<10} {:<18} {} {}",
            text(event, "at"),
            text(event, "command"),
            text(event, "what"),
            text(event, "to"),
            subject.trim()
        );
        lines.add("history", line.trim_end());
    }
}
