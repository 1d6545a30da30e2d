//! The evidence about one task: reports, failures and receipts, in its parent's folder and in those above it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::super::disk::Dir;
use super::super::error::Result;
use super::super::names::{RECEIPTS, REPORTS, encode_uri_component, hex};
use super::{instant_ms, nowhere, read_json, segment, told, told_json};
use crate::protocol::ids::AttemptId;
use crate::protocol::receipt::{RECEIPT_VERSION, Receipt};
use crate::protocol::xum::{Problem, Sighting, TaskFacts, XumFailure, XumReport, XumRow};

const REPORT_INDEX: &str = "subagent-reports.json";
const FAILURE_INDEX: &str = "subagent-failures.json";
const REPORT: &str = "report.json";
/// A receipt is never larger.
const RECEIPT_BYTES_MAX: u64 = 256 * 1024;

/// An index of a workspace's folder, keyed by task.
type Index = Sighting<Map<String, Value>>;

#[derive(Deserialize)]
struct ReportIndex {
    version: u64,
    #[serde(rename = "artifactsByChildTaskId")]
    entries: Map<String, Value>,
}

#[derive(Deserialize)]
struct FailureIndex {
    version: u64,
    #[serde(rename = "failuresByChildTaskId")]
    entries: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportBody {
    child_task_id: String,
    report_markdown: String,
    #[serde(default)]
    attempt_id: Option<AttemptId>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    updated_at_ms: Option<Value>,
    #[serde(default)]
    created_at_ms: Option<Value>,
    #[serde(default)]
    structured_output: Option<Value>,
}

/// The open folder of one workspace, with its indexes.
struct Workspace {
    dir: Sighting<Dir>,
    reports: Index,
    failures: Index,
}

/// The folders of all workspaces, each opened once.
pub(super) struct Folders {
    sessions: std::result::Result<Option<Dir>, String>,
    opened: BTreeMap<String, Workspace>,
}

fn sighted<T>(found: Result<Option<T>>) -> Sighting<T> {
    match found {
        Ok(Some(found)) => Sighting::Found(found),
        Ok(None) => Sighting::NotFound,
        Err(error) => Sighting::Unreadable(told(&error)),
    }
}

fn index<T>(found: Sighting<T>, parts: impl Fn(T) -> (u64, Map<String, Value>)) -> Index {
    match found {
        Sighting::Found(file) => match parts(file) {
            (1, entries) => Sighting::Found(entries),
            _ => Sighting::Unreadable("it is of another version".to_owned()),
        },
        Sighting::NotFound => Sighting::NotFound,
        Sighting::Unreadable(why) => Sighting::Unreadable(why),
    }
}

impl Workspace {
    fn open(
        sessions: &std::result::Result<Option<Dir>, String>,
        id: &str,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let dir = match (sessions, segment(id)) {
            (Err(why), _) => Sighting::Unreadable(why.clone()),
            (Ok(_), None) => Sighting::Unreadable("its id cannot be a folder's name".to_owned()),
            (Ok(None), _) => Sighting::NotFound,
            (Ok(Some(sessions)), Some(name)) => sighted(sessions.child(name)),
        };
        let (reports, failures) = match &dir {
            Sighting::NotFound => (Sighting::NotFound, Sighting::NotFound),
            Sighting::Unreadable(why) => {
                (Sighting::Unreadable(why.clone()), Sighting::Unreadable(why.clone()))
            }
            Sighting::Found(dir) => (
                index(read_json(dir, REPORT_INDEX), |file: ReportIndex| (file.version, file.entries)),
                index(read_json(dir, FAILURE_INDEX), |file: FailureIndex| (file.version, file.entries)),
            ),
        };
        let mut tell = |what: &'static str, file: &str, index: &Index| {
            if let (Sighting::Unreadable(why), Sighting::Found(_)) = (index, &dir) {
                problems.push(Problem::new(what, format!("sessions/{id}/{file}"), why.clone()));
            }
        };
        tell("report-unreadable", REPORT_INDEX, &reports);
        tell("failure-unreadable", FAILURE_INDEX, &failures);
        if let Sighting::Unreadable(why) = &dir {
            problems.push(Problem::new("folder-unreadable", format!("sessions/{id}"), why.clone()));
        }
        Self { dir, reports, failures }
    }

    fn report(&self, holder: &str, task: &str) -> Sighting<XumReport> {
        let body = match &self.dir {
            Sighting::NotFound => return Sighting::NotFound,
            Sighting::Unreadable(why) => return Sighting::Unreadable(why.clone()),
            Sighting::Found(dir) => body(dir, holder, task),
        };
        let listed = match &self.reports {
            Sighting::Found(entries) => entries.contains_key(task),
            Sighting::NotFound => false,
            // Without a body only the index can say that there never was one.
            Sighting::Unreadable(why) if body == Sighting::NotFound => {
                return Sighting::Unreadable(format!("the index of reports: {why}"));
            }
            Sighting::Unreadable(_) => true,
        };
        if listed && body == Sighting::NotFound {
            return Sighting::Unreadable("the index names a report whose file is not there".to_owned());
        }
        body
    }

    fn failure(&self, task: &str) -> Sighting<XumFailure> {
        let entries = match &self.failures {
            Sighting::Found(entries) => entries,
            Sighting::NotFound => return Sighting::NotFound,
            Sighting::Unreadable(why) => return Sighting::Unreadable(why.clone()),
        };
        let Some(entry) = entries.get(task) else { return Sighting::NotFound };
        let text = |field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
        match (text("errorType"), text("errorMessage")) {
            (Some(kind), Some(message)) => Sighting::Found(XumFailure { kind, message }),
            _ => Sighting::Unreadable("it is not of the known form".to_owned()),
        }
    }
}

fn read_body(dir: &Dir, task: &str) -> Sighting<ReportBody> {
    let Some(name) = segment(task) else { return Sighting::NotFound };
    match dir.descend(&[REPORTS, name]) {
        Ok(None) => Sighting::NotFound,
        Ok(Some(dir)) => read_json(&dir, REPORT),
        Err(error) => Sighting::Unreadable(told(&error)),
    }
}

fn body(dir: &Dir, holder: &str, task: &str) -> Sighting<XumReport> {
    let body = match read_body(dir, task) {
        Sighting::Found(body) => body,
        Sighting::NotFound => return Sighting::NotFound,
        Sighting::Unreadable(why) => return Sighting::Unreadable(format!("the report: {why}")),
    };
    if body.child_task_id != task {
        return Sighting::Unreadable("the report is another task's".to_owned());
    }
    let at = instant_ms(body.updated_at_ms.as_ref()).or_else(|| instant_ms(body.created_at_ms.as_ref()));
    Sighting::Found(XumReport {
        holder: holder.to_owned(),
        attempt: body.attempt_id,
        title: body.title,
        text_sha256: hex(&Sha256::digest(body.report_markdown.as_bytes())),
        text_bytes: body.report_markdown.len() as u64,
        is_blank: body.report_markdown.trim().is_empty(),
        at,
        structured: body.structured_output,
    })
}

/// The text of a report.
pub(super) fn report_text(sessions: &Dir, holder: &str, task: &str) -> Option<String> {
    let dir = sessions.child(segment(holder)?).ok().flatten()?;
    match read_body(&dir, task) {
        Sighting::Found(body) if body.child_task_id == task => Some(body.report_markdown),
        _ => None,
    }
}

/// The nearest sighting that says something: what is found or cannot be read nearer to the task goes first.
fn nearest<T>(found: impl Iterator<Item = Sighting<T>>) -> Sighting<T> {
    let mut unreadable = None;
    for (index, sighting) in found.enumerate() {
        match sighting {
            Sighting::Found(found) => return Sighting::Found(found),
            // The parent's own copy is the one that counts, so a damaged one is not outvoted by another.
            Sighting::Unreadable(why) if index == 0 => return Sighting::Unreadable(why),
            Sighting::Unreadable(why) => unreadable = unreadable.or(Some(why)),
            Sighting::NotFound => {}
        }
    }
    unreadable.map_or(Sighting::NotFound, Sighting::Unreadable)
}

impl Folders {
    pub(super) fn new(sessions: std::result::Result<Option<Dir>, String>) -> Self {
        Self { sessions, opened: BTreeMap::new() }
    }

    /// Everything that lies there about a task.
    pub(super) fn of(
        &mut self,
        id: &str,
        row: Sighting<XumRow>,
        line: Vec<String>,
        problems: &mut Vec<Problem>,
    ) -> TaskFacts {
        if segment(id).is_none() {
            let why = "its id cannot be a file's name";
            problems.push(Problem::new("id-no-file-name", id, why));
            return nowhere(row, line, why);
        }
        for workspace in &line {
            if !self.opened.contains_key(workspace) {
                let opened = Workspace::open(&self.sessions, workspace, problems);
                self.opened.insert(workspace.clone(), opened);
            }
        }
        let above: Vec<(&String, &Workspace)> =
            line.iter().filter_map(|id| self.opened.get_key_value(id)).collect();
        let copies: Vec<_> = above.iter().map(|(holder, workspace)| workspace.report(holder, id)).collect();
        let texts: BTreeSet<_> = copies
            .iter()
            .filter_map(Sighting::found)
            .map(|copy| (&copy.attempt, &copy.text_sha256))
            .collect();
        if texts.len() > 1 {
            let says = "the copies of its report differ; the one nearest to it counts";
            problems.push(Problem::new("report-copies-differ", id, says));
        }
        let report = nearest(copies.into_iter());
        let failure = nearest(above.iter().map(|(_, workspace)| workspace.failure(id)));
        if let Sighting::Unreadable(why) = &report {
            problems.push(Problem::new("report-unreadable", id, why.clone()));
        }
        let attempt = row.found().and_then(|row| row.attempt.clone());
        let (receipt, receipts) = receipts(&above, id, attempt.as_ref(), problems);
        TaskFacts { row, line, report, failure, receipt, receipts }
    }
}

/// The receipt of the current attempt, and every strict one, from the parent's folder.
fn receipts(
    above: &[(&String, &Workspace)],
    task: &str,
    attempt: Option<&AttemptId>,
    problems: &mut Vec<Problem>,
) -> (Sighting<Receipt>, Vec<(Receipt, Vec<String>)>) {
    let Some(((parent, workspace), others)) = above.split_first() else {
        return (Sighting::NotFound, Vec::new());
    };
    let folder = match receipts_folder(workspace, task) {
        Sighting::Found(folder) => folder,
        Sighting::NotFound => return (Sighting::NotFound, Vec::new()),
        Sighting::Unreadable(why) => return (Sighting::Unreadable(why), Vec::new()),
    };
    let listed = match folder.list() {
        Ok(listed) => listed,
        Err(error) => return (Sighting::Unreadable(told(&error)), Vec::new()),
    };
    let mut current = Sighting::NotFound;
    let mut found = Vec::new();
    for name in listed.into_iter().map(|entry| entry.name) {
        let Some(named) = name.strip_suffix(".json") else { continue };
        let is_current = attempt.is_some_and(|attempt| attempt.as_str() == named);
        match read_receipt(&folder, &name, task, parent) {
            Sighting::Found(receipt) => {
                if is_current {
                    current = Sighting::Found(receipt.clone());
                }
                let same = |(holder, workspace): &&(&String, &Workspace)| {
                    let copy = receipts_folder(workspace, task);
                    copy.found()
                        .is_some_and(|dir| read_receipt(dir, &name, task, parent).found() == Some(&receipt))
                        && *holder != *parent
                };
                let holders = others.iter().filter(same).map(|(holder, _)| (*holder).clone()).collect();
                found.push((receipt, holders));
            }
            Sighting::NotFound => {}
            Sighting::Unreadable(why) => {
                problems.push(Problem::new("receipt-unreadable", format!("{task} {named}"), why.clone()));
                if is_current {
                    current = Sighting::Unreadable(format!("the receipt: {why}"));
                }
            }
        }
    }
    (current, found)
}

fn receipts_folder(workspace: &Workspace, task: &str) -> Sighting<Dir> {
    match &workspace.dir {
        Sighting::NotFound => Sighting::NotFound,
        Sighting::Unreadable(why) => Sighting::Unreadable(why.clone()),
        Sighting::Found(dir) => match segment(&encode_uri_component(task)) {
            Some(name) => sighted(dir.descend(&[RECEIPTS, name])),
            None => Sighting::Unreadable("its id cannot be a file's name".to_owned()),
        },
    }
}

/// Reads a receipt strictly: its name, its form, and whose it says that it is.
fn read_receipt(folder: &Dir, name: &str, task: &str, parent: &str) -> Sighting<Receipt> {
    let bytes = match folder.read(name, RECEIPT_BYTES_MAX) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Sighting::NotFound,
        Err(error) => return Sighting::Unreadable(told(&error)),
    };
    let receipt: Receipt = match serde_json::from_slice(&bytes) {
        Ok(receipt) => receipt,
        Err(error) => return Sighting::Unreadable(told_json(&error)),
    };
    let wrong = if receipt.version != RECEIPT_VERSION {
        "it is of another version"
    } else if name.strip_suffix(".json") != Some(receipt.attempt_id.as_str()) {
        "it is another attempt's"
    } else if receipt.task_id.as_str() != task {
        "it is another task's"
    } else if receipt.parent_workspace_id.as_str() != parent {
        "it names another parent"
    } else if receipt.settled_at.as_str().parse::<jiff::Timestamp>().is_err() {
        "its date is no date"
    } else {
        return Sighting::Found(receipt);
    };
    Sighting::Unreadable(wrong.to_owned())
}
