//! The text forms of `inspect --xum`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

use crate::answer::{Style, escaped};

use super::{WIDTH_MIN, cell, text};

/// How many problems a table shows.
const PROBLEMS_SHOWN: usize = 20;

/// A table, most urgent first; below it each situation once, with what to do, the runs in one, and the problems.
pub(in crate::commands::inspect) fn many(
    root: &Path,
    tasks: &[Value],
    runs: &[Value],
    problems: &[Value],
    style: &Style,
) -> String {
    let mut out = format!("root {}\n", escaped(&root.display().to_string()));
    let tasks: Vec<&Map<String, Value>> = tasks.iter().filter_map(Value::as_object).collect();
    let width = style.width.max(WIDTH_MIN);
    if tasks.is_empty() {
        out.push_str("no tasks\n");
    } else {
        let longest = tasks.iter().map(|task| text(task, "taskId").chars().count()).max().unwrap_or(0);
        let task_w = longest.clamp(7, width / 3);
        let mut row = |task: &str, outcome: &str, situation: &str, why: &str| {
            let line = format!(
                "{} {} {} {}",
                cell(task, task_w),
                cell(outcome, 18),
                cell(situation, 16),
                cell(why, width.saturating_sub(task_w + 37).max(8))
            );
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", line.trim_end());
        };
        row("TASK", "OUTCOME", "SITUATION", "WHY");
        for task in &tasks {
            let why = match text(task, "reasonCode") {
                "" => text(task, "why"),
                reason => reason,
            };
            row(text(task, "taskId"), text(task, "outcome"), text(task, "situation"), why);
        }
    }
    for run in runs.iter().filter_map(Value::as_object).filter(|run| !text(run, "situation").is_empty()) {
        let (id, status, word) = (text(run, "runId"), text(run, "status"), text(run, "situation"));
        let _ = writeln!(out, "run {} {} {}", escaped(id), escaped(status), word);
    }
    let mut met = BTreeMap::new();
    for told in tasks.iter().filter_map(|task| task.get("situations")).filter_map(Value::as_array).flatten() {
        met.extend(
            told.as_object().map(|told| (text(told, "situation"), (text(told, "what"), text(told, "todo")))),
        );
    }
    for run in runs.iter().filter_map(Value::as_object).filter(|run| !text(run, "situation").is_empty()) {
        met.insert(text(run, "situation"), (text(run, "what"), text(run, "todo")));
    }
    for (word, (what, todo)) in met {
        let _ = writeln!(out, "\n{word}");
        for sentence in [what, todo] {
            wrapped(sentence, width.saturating_sub(2)).for_each(|line| {
                let _ = writeln!(out, "  {line}");
            });
        }
    }
    push_problems(&mut out, problems);
    out
}

/// The story of one task.
pub(in crate::commands::inspect) fn one(root: &Path, fields: &Map<String, Value>, style: &Style) -> String {
    let width = style.width.max(WIDTH_MIN);
    let mut out = format!("root {}\n", escaped(&root.display().to_string()));
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
    line("parent", text(fields, "parentWorkspaceId"));
    line("status", text(fields, "taskStatus"));
    line("attempt", text(fields, "identity.attemptId"));
    if fields.get("proven") == Some(&Value::Bool(false)) {
        line("lineage", "unproven, for good");
    }
    if !text(fields, "step.runId").is_empty() {
        let (run, step) = (text(fields, "step.runId"), text(fields, "step.stepId"));
        let status = text(fields, "step.status");
        line("step", &format!("{run} {step}, {status}, run {}", text(fields, "step.runStatus")));
    }
    if !text(fields, "retiredBy.runId").is_empty() {
        let (run, step) = (text(fields, "retiredBy.runId"), text(fields, "retiredBy.stepId"));
        line("retired", &format!("for run {run} step {step}"));
    }
    for (label, piece) in [("report", "report"), ("failure", "failure"), ("receipt", "receiptFile")] {
        let (sighting, says) =
            (text(fields, &format!("{piece}.sighting")), text(fields, &format!("{piece}.says")));
        let told = ["type", "source", "message"].map(|part| text(fields, &format!("{piece}.{part}")));
        let told: Vec<&str> = told.into_iter().chain([says]).filter(|part| !part.is_empty()).collect();
        let more = told.join(": ");
        line(label, &if more.is_empty() { sighting.to_owned() } else { format!("{sighting}: {more}") });
    }
    line("launch", text(fields, "launchError"));
    for told in fields.get("situations").and_then(Value::as_array).into_iter().flatten() {
        let Some(told) = told.as_object() else { continue };
        line("situation", text(told, "situation"));
        for sentence in [text(told, "what"), text(told, "todo")] {
            wrapped(sentence, width.saturating_sub(11)).for_each(|part| line("", &part));
        }
    }
    let problems = fields.get("problems").and_then(Value::as_array).map(Vec::as_slice);
    push_problems(&mut out, problems.unwrap_or_default());
    out
}

/// A sentence in lines of at most `width` columns.
fn wrapped(sentence: &str, width: usize) -> impl Iterator<Item = String> {
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let Some(last) = lines.last_mut() else { continue };
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.into_iter()
}

fn push_problems(out: &mut String, problems: &[Value]) {
    if problems.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{} problem(s)", problems.len());
    for problem in problems.iter().take(PROBLEMS_SHOWN).filter_map(Value::as_object) {
        let (what, at, says) = (text(problem, "problem"), text(problem, "at"), text(problem, "says"));
        let _ = writeln!(out, "  {} {}: {}", escaped(what), escaped(at), escaped(says));
    }
    if let Some(more) = problems.len().checked_sub(PROBLEMS_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(out, "  and {more} more; --json has all");
    }
}
