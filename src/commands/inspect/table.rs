//! The text forms of `inspect`: a table of many tasks, and the story of one, readable at 80 columns.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

use crate::answer::{Style, escaped};

use super::owner_word;

/// The narrowest table that still says something.
const WIDTH_MIN: usize = 60;
/// The narrowest column of names.
const TASK_MIN: usize = 7;
/// The narrowest column of reasons.
const WHY_MIN: usize = 8;
/// The longest reason.
const REASON_MAX: usize = 24;

fn text<'a>(fields: &'a Map<String, Value>, path: &str) -> &'a str {
    let mut names = path.split('.');
    let first = names.next().and_then(|name| fields.get(name));
    names
        .fold(first, |value, name| value.and_then(|value| value.get(name)))
        .and_then(Value::as_str)
        .unwrap_or("")
}

fn n(fields: &Map<String, Value>, key: &str) -> usize {
    fields.get(key).and_then(Value::as_array).map_or(0, Vec::len)
}

/// Cuts a cell to `width` characters, and says so.
fn cell(value: &str, width: usize) -> String {
    let value = escaped(value);
    if value.chars().count() <= width {
        return format!("{value:<width$}");
    }
    let cut: String = value.chars().take(width.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// A table, most urgent first.
pub(super) fn many(root: &Path, tasks: &[Value], style: &Style) -> String {
    let mut out = format!("root {}\n", escaped(&root.display().to_string()));
    if tasks.is_empty() {
        out.push_str("no tasks\n");
        return out;
    }
    let width = style.width.max(WIDTH_MIN);
    let widest = |key: &str, most: usize| {
        let longest =
            tasks.iter().filter_map(Value::as_object).map(|task| text(task, key).chars().count()).max();
        longest.unwrap_or(0).clamp(TASK_MIN, most)
    };
    let outcome_w = 18;
    // The other columns, and the gaps between all of them.
    let others_w = outcome_w + 12 + 8 + 4;
    // A reason is a word to look up, so it is not cut for the sake of a long name.
    let reason_w = widest("reasonCode", REASON_MAX);
    let left_w = width.saturating_sub(others_w + reason_w);
    let task_w = widest("taskId", left_w.min(width / 3).max(TASK_MIN));
    let why_w = width.saturating_sub(task_w + others_w).max(WHY_MIN);
    let mut row = |task: &str, outcome: &str, status: &str, owner: &str, why: &str| {
        let line = format!(
            "{} {} {} {} {}",
            cell(task, task_w),
            cell(outcome, outcome_w),
            cell(status, 12),
            cell(owner, 8),
            cell(why, why_w)
        );
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", line.trim_end());
    };
    row("TASK", "OUTCOME", "STATUS", "OWNER", "WHY");
    for task in tasks.iter().filter_map(Value::as_object) {
        let retired = task.get("retiredBy").is_some_and(Value::is_object);
        let outcome = if retired { "retired" } else { text(task, "outcome") };
        let reason = text(task, "reasonCode");
        let replaced = text(task, "retiredBy.replacementTaskId");
        let why = match (retired, replaced, reason) {
            (true, "", _) => "not replaced yet".to_owned(),
            (true, replacement, _) => format!("replaced by {replacement}"),
            (false, _, "") => text(task, "why").to_owned(),
            (false, _, reason) => reason.to_owned(),
        };
        row(
            text(task, "taskId"),
            outcome,
            text(task, "taskStatus"),
            owner_word(text(task, "owner.alive")),
            &why,
        );
    }
    out
}

/// The story of one task.
pub(super) fn one(root: &Path, fields: &Map<String, Value>, _style: &Style) -> String {
    let mut out = format!("root {}\n", escaped(&root.display().to_string()));
    // Writing to a String cannot fail.
    let mut line = |label: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(out, "{label:<10} {}", escaped(value));
        }
    };
    let reason = text(fields, "reasonCode");
    let outcome = text(fields, "outcome");
    line("task", text(fields, "taskId"));
    line("outcome", &if reason.is_empty() { outcome.to_owned() } else { format!("{outcome} ({reason})") });
    line("why", text(fields, "why"));
    if fields.contains_key("taskStatus") {
        line(
            "status",
            &format!("{}, admission {}", text(fields, "taskStatus"), admission(text(fields, "phase"))),
        );
        line("attempt", &format!("{} ({})", text(fields, "identity.attemptId"), text(fields, "origin")));
        line(
            "lineage",
            if fields.get("proven") == Some(&Value::Bool(true)) { "proven" } else { "unproven, for good" },
        );
        let name = match text(fields, "owner.name") {
            "" => "unnamed".to_owned(),
            name => format!("`{name}`"),
        };
        line(
            "owner",
            &format!("{name}, {}: {}", owner_word(text(fields, "owner.alive")), text(fields, "owner.why")),
        );
        line(
            "in flight",
            &format!(
                "{} turn(s), {} send(s); {} owed",
                n(fields, "turns"),
                n(fields, "sends"),
                n(fields, "owed")
            ),
        );
    }
    for owed in
        fields.get("owed").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
    {
        let id = [text(owed, "turnId"), text(owed, "cleanupId")].concat();
        let name = text(owed, "name");
        line("  owed", &format!("{} {id} {name} since {}", text(owed, "kind"), text(owed, "since")));
    }
    line("stopped", text(fields, "closed.reason"));
    line("failure", text(fields, "closed.failure"));
    line("report", text(fields, "report.path"));
    if let Some(late) = fields.get("lateReports").and_then(Value::as_u64).filter(|late| *late > 0) {
        line("late", &format!("{late} refused report(s) kept"));
    }
    if fields.get("retiredBy").is_some_and(Value::is_object) {
        let spent = match text(fields, "retiredBy.replacementTaskId") {
            "" => "not replaced yet".to_owned(),
            task => format!("replaced by `{task}`"),
        };
        line(
            "retired",
            &format!(
                "for run {} step {}, {spent}",
                text(fields, "retiredBy.runId"),
                text(fields, "retiredBy.stepId")
            ),
        );
    }
    line("history", text(fields, "historyError"));
    lists(&mut out, fields);
    out
}

fn admission(phase: &str) -> &str {
    match phase {
        "closing" => "shut, closing",
        "settled" => "shut, settled",
        other => other,
    }
}

fn lists(out: &mut String, fields: &Map<String, Value>) {
    let list = |key: &str| fields.get(key).and_then(Value::as_array).into_iter().flatten();
    // Writing to a String cannot fail.
    if n(fields, "evidence") > 0 {
        out.push_str("evidence\n");
        for piece in list("evidence").filter_map(Value::as_object) {
            let _ = writeln!(out, "  {:<10} {}", text(piece, "evidence"), escaped(text(piece, "says")));
            if text(piece, "from").contains('/') {
                let _ = writeln!(out, "  {:<10} {}", "", escaped(text(piece, "from")));
            }
        }
    }
    if n(fields, "next") > 0 {
        out.push_str("next\n");
        for command in list("next").filter_map(Value::as_str) {
            let _ = writeln!(out, "  {}", escaped(command));
        }
    }
    if n(fields, "history") > 0 {
        out.push_str("history\n");
        for event in list("history").filter_map(Value::as_object) {
            let change = match text(event, "from") {
                "" => text(event, "to").to_owned(),
                from => format!("{from} -> {}", text(event, "to")),
            };
            let subject = [text(event, "subject"), text(event, "note")].join(" ");
            let line = format!(
                "  {} {:<12} {:<18} {} {}",
                text(event, "at"),
                text(event, "command"),
                text(event, "what"),
                escaped(&change),
                escaped(subject.trim())
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
}
