//! `config.json` of such a root: the rows of all projects, found by id and never by bucket.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::super::disk::Dir;
use super::super::error::{Result, StateError};
use super::{FILE_BYTES_MAX, instant, told, told_json};
use crate::protocol::ids::AttemptId;
use crate::protocol::row::Claim;
use crate::protocol::xum::{Problem, Sighting, XumRow, XumStatus};

const CONFIG: &str = "config.json";
/// Active states of the reactivation of a child.
const EXECUTING: [&str; 3] = ["queued", "starting", "running"];
/// The fields that decide something. Two rows of one id that differ in another field say the same.
const DECIDING: [&str; 11] = [
    "parentWorkspaceId",
    "taskStatus",
    "taskAttemptId",
    "taskAttemptUnproven",
    "taskAttemptRetiredBy",
    "workflowTask",
    "reportedAt",
    "archivedAt",
    "unarchivedAt",
    "taskExecutionId",
    "taskExecutionStatus",
];

/// What `config.json` says about tasks. Its settings are never looked at.
pub(super) struct Config {
    pub(super) has_write_id: bool,
    pub(super) tasks: BTreeMap<String, Sighting<XumRow>>,
    /// Every row's parent.
    pub(super) parents: BTreeMap<String, Option<String>>,
    pub(super) n_workspaces: usize,
    pub(super) problems: Vec<Problem>,
}

/// The members that are read. The others are skipped while parsing, and never held.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    kind: Option<Value>,
    #[serde(default, rename = "writeId")]
    write_id: Option<IgnoredAny>,
    #[serde(default)]
    projects: Option<Value>,
}

pub(super) fn read(root: &Dir) -> Result<Config> {
    let not =
        |reason: &str| StateError::NotXumRoot { path: root.path().to_owned(), reason: reason.to_owned() };
    let unreadable = |reason: String| StateError::XumConfigUnreadable { path: root.at(CONFIG), reason };
    let bytes = match root.read(CONFIG, FILE_BYTES_MAX) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(not("it has no `config.json`")),
        Err(error) => return Err(unreadable(told(&error))),
    };
    let file: File = serde_json::from_slice(&bytes).map_err(|error| unreadable(told_json(&error)))?;
    if file.kind.as_ref().and_then(Value::as_str) == Some("lychgate") {
        return Err(not("it is a root of lychgate's own; `inspect` reads it with --root"));
    }
    let Some(Value::Array(projects)) = file.projects else {
        return Err(not("its `config.json` has no list of projects"));
    };
    let mut config = Config {
        has_write_id: file.write_id.is_some(),
        tasks: BTreeMap::new(),
        parents: BTreeMap::new(),
        n_workspaces: 0,
        problems: Vec::new(),
    };
    let mut found: BTreeMap<String, Vec<Map<String, Value>>> = BTreeMap::new();
    for (index, project) in projects.into_iter().enumerate() {
        collect(index, project, &mut found, &mut config.problems);
    }
    for (id, rows) in found {
        config.add(id, rows);
    }
    Ok(config)
}

/// Takes the rows out of one bucket. A bucket is called by its place, for its path says nothing here.
fn collect(
    index: usize,
    project: Value,
    found: &mut BTreeMap<String, Vec<Map<String, Value>>>,
    problems: &mut Vec<Problem>,
) {
    let mut wrong = |at: &str, says: &str| {
        problems.push(Problem::new("row-unreadable", format!("projects[{index}]{at}"), says));
    };
    let Value::Array(mut pair) = project else {
        return wrong("", "it is not a pair of a path and a project");
    };
    let (Some(Value::Object(mut project)), 2) = (pair.pop(), pair.len() + 1) else {
        return wrong("", "it is not a pair of a path and a project");
    };
    let rows = match project.remove("workspaces") {
        None => return,
        Some(Value::Array(rows)) => rows,
        Some(_) => return wrong(".workspaces", "it is not a list"),
    };
    for (place, row) in rows.into_iter().enumerate() {
        let Value::Object(row) = row else {
            wrong(&format!(".workspaces[{place}]"), "it is not an object");
            continue;
        };
        match row.get("id") {
            Some(Value::String(id)) => found.entry(id.clone()).or_default().push(row),
            None if !row.contains_key("parentWorkspaceId") => {}
            _ => wrong(&format!(".workspaces[{place}]"), "it is a task's row without an id"),
        }
    }
}

impl Config {
    /// Adds the rows of one id: several are one if they agree in everything that decides.
    fn add(&mut self, id: String, mut rows: Vec<Map<String, Value>>) {
        let n = rows.len();
        let Some(row) = rows.pop() else { return };
        let agrees =
            |other: &Map<String, Value>| DECIDING.iter().all(|field| other.get(*field) == row.get(*field));
        let agree = rows.iter().all(agrees);
        if n > 1 {
            let says = if agree {
                "it has several rows that agree"
            } else {
                "it has rows that contradict each other"
            };
            self.problems.push(Problem::new("duplicate-id", &*id, says));
        }
        let parent = row.get("parentWorkspaceId").and_then(Value::as_str).map(str::to_owned);
        let is_task = rows.iter().chain([&row]).any(|row| row.contains_key("parentWorkspaceId"));
        self.parents.insert(id.clone(), parent.filter(|_| agree));
        if !is_task {
            self.n_workspaces += 1;
            return;
        }
        let judged =
            if agree { parse(row) } else { Err(format!("it has {n} rows that contradict each other")) };
        let sighting = judged.map_or_else(
            |why| {
                self.problems.push(Problem::new("row-unreadable", &*id, why.clone()));
                Sighting::Unreadable(why)
            },
            Sighting::Found,
        );
        self.tasks.insert(id, sighting);
    }
}

/// Reads what a row says about its task. Whatever decides and is not of the known form makes it unreadable.
fn parse(fields: Map<String, Value>) -> std::result::Result<XumRow, String> {
    let wrong = |field: &str| format!("its `{field}` is not of the known form");
    let text = |field: &'static str| match fields.get(field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(wrong(field)),
    };
    let parent = text("parentWorkspaceId")?.filter(|id| !id.is_empty());
    let parent = parent.ok_or_else(|| wrong("parentWorkspaceId"))?.to_owned();
    let status = text("taskStatus")?;
    let names_status = status.is_some();
    let status = match status {
        None => XumStatus::Running,
        Some(word) => XumStatus::parse(word).ok_or_else(|| "its status is not a known one".to_owned())?,
    };
    let attempt = text("taskAttemptId")?.map(AttemptId::parse).transpose();
    let attempt = attempt.map_err(|_| wrong("taskAttemptId"))?;
    let unproven = match fields.get("taskAttemptUnproven") {
        None => false,
        Some(Value::Bool(true)) => true,
        Some(_) => return Err(wrong("taskAttemptUnproven")),
    };
    let executing = text("taskExecutionStatus")?;
    let reactivated = executing.is_some_and(|word| EXECUTING.contains(&word));
    let claim = claim(&fields, attempt.as_ref())?;
    if claim.is_some() && (status.is_active() || reactivated) {
        return Err("it is retired, and at work".to_owned());
    }
    Ok(XumRow {
        parent,
        status,
        names_status,
        attempt,
        unproven,
        claim: claim.map(Box::new),
        step: step(fields.get("workflowTask")).map_err(|()| wrong("workflowTask"))?,
        reported_at: text("reportedAt")?.is_some(),
        archived: archived(text("archivedAt")?, text("unarchivedAt")?),
        reactivated,
        created_at: instant(fields.get("createdAt")),
        fields,
    })
}

/// Reads the mark that retires an attempt: this one's, and for a replacement that can be one, if it names any.
fn claim(
    fields: &Map<String, Value>,
    attempt: Option<&AttemptId>,
) -> std::result::Result<Option<Claim>, String> {
    let Some(found) = fields.get("taskAttemptRetiredBy") else { return Ok(None) };
    let wrong = || "its `taskAttemptRetiredBy` is not of the known form".to_owned();
    let claim: Claim = serde_json::from_value(found.clone()).map_err(|_| wrong())?;
    let id = fields.get("id").and_then(Value::as_str);
    if Some(claim.child_task_id.as_str()) != id || Some(&claim.attempt_id) != attempt {
        return Err("its claim is another attempt's".to_owned());
    }
    match claim.extra.get("replacementTaskId") {
        None => {}
        Some(Value::String(named)) if Some(named.as_str()) == id => {
            return Err("its claim names it as its own replacement".to_owned());
        }
        Some(Value::String(named)) if !named.is_empty() => {}
        Some(_) => return Err(wrong()),
    }
    Ok(Some(claim))
}

fn step(found: Option<&Value>) -> std::result::Result<Option<(String, String)>, ()> {
    let Some(found) = found else { return Ok(None) };
    let name = |field: &str| found.get(field).and_then(Value::as_str).map(str::to_owned).ok_or(());
    Ok(Some((name("runId")?, name("stepId")?)))
}

/// Archived if that came later; the instants are all in UTC and of one form.
fn archived(at: Option<&str>, back: Option<&str>) -> bool {
    match (at, back) {
        (Some(at), Some(back)) => at > back,
        (at, _) => at.is_some(),
    }
}
