//! The workflow runs of such a root: snapshot, journals and lease.
//!
//! The journals are appended to without a sync, so a last line may be torn for good or only for this moment. Like
//! the application, this skips it and every other malformed line; unlike it, this says so.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::disk::{Dir, Kind};
use super::{FILE_BYTES_MAX, instant, read_json, told, told_json};
use crate::protocol::xum::{Problem, Sighting, XumRun, XumRunStatus, XumStep, XumStepStatus};

const WORKFLOWS: &str = "workflows";
const SNAPSHOT: &str = "run.json";
const STEPS: &str = "steps.jsonl";
const EVENTS: &str = "events.jsonl";
const LEASE: &str = "lease.json";
/// How the folder of a run begins.
const RUN_PREFIX: &str = "wfr_";
/// How the folder of a lock ends.
const LOCK_SUFFIX: &str = ".lock";

/// Every run, in the order of their owners and ids.
pub(super) fn read_all(sessions: Option<&Dir>, problems: &mut Vec<Problem>) -> Vec<XumRun> {
    let mut runs = Vec::new();
    let Some(sessions) = sessions else { return runs };
    let mut failed = |at: String, why: String| problems.push(Problem::new("folder-unreadable", at, why));
    let owners = match sessions.list() {
        Ok(owners) => owners,
        Err(error) => {
            failed("sessions".to_owned(), told(&error));
            return runs;
        }
    };
    let mut found = Vec::new();
    for owner in owners.into_iter().filter(|entry| entry.kind != Kind::File).map(|entry| entry.name) {
        let at = format!("sessions/{owner}/{WORKFLOWS}");
        let workflows =
            sessions.child(&owner).and_then(|dir| dir.map_or(Ok(None), |dir| dir.child(WORKFLOWS)));
        let listed = workflows.and_then(|dir| dir.map(|dir| dir.list().map(|list| (dir, list))).transpose());
        match listed {
            Ok(Some((dir, list))) => found.push((owner, dir, list)),
            Ok(None) => {}
            Err(error) => failed(at, told(&error)),
        }
    }
    for (owner, workflows, list) in found {
        let names = list.into_iter().map(|entry| entry.name);
        for id in names.filter(|name| name.starts_with(RUN_PREFIX) && !name.ends_with(LOCK_SUFFIX)) {
            let at = format!("sessions/{owner}/{WORKFLOWS}/{id}");
            match workflows.child(&id) {
                Ok(Some(dir)) => runs.push(Folder { dir: &dir, at, problems }.run(id, owner.clone())),
                Ok(None) => {}
                Err(error) => problems.push(Problem::new("checkpoints-unreadable", at, told(&error))),
            }
        }
    }
    runs
}

/// The folder of a run.
struct Folder<'a> {
    dir: &'a Dir,
    at: String,
    problems: &'a mut Vec<Problem>,
}

/// The lines of a journal that are whole.
struct Journal {
    lines: Vec<Map<String, Value>>,
    /// How many others there are, without a torn last one: what is torn was never relied on.
    n_lost: usize,
}

impl Folder<'_> {
    fn tell(&mut self, what: &'static str, file: &str, says: impl Into<String>) {
        self.problems.push(Problem::new(what, format!("{}/{file}", self.at), says));
    }

    fn run(mut self, id: String, owner: String) -> XumRun {
        let mut unreadable = None;
        let snapshot: Map<String, Value> = match read_json(self.dir, SNAPSHOT) {
            Sighting::Found(snapshot) => snapshot,
            Sighting::NotFound => {
                unreadable = Some("its `run.json` is missing".to_owned());
                Map::new()
            }
            Sighting::Unreadable(why) => {
                unreadable = Some(format!("its `run.json`: {why}"));
                Map::new()
            }
        };
        let says = |field: &str, wanted: &str| {
            snapshot.get(field).and_then(Value::as_str).is_none_or(|found| found == wanted)
        };
        if unreadable.is_none() && !(says("id", &id) && says("workspaceId", &owner)) {
            unreadable = Some("its `run.json` is another run's".to_owned());
        }
        let mut named = BTreeSet::new();
        let steps = match self.journal(STEPS) {
            Ok(journal) => {
                named.extend(journal.lines.iter().filter_map(named_by));
                let (steps, n_lost) = self.steps(snapshot.get("steps"), &journal);
                if n_lost > 0 {
                    let why = format!("{n_lost} record(s) of its steps cannot be read");
                    unreadable = unreadable.or(Some(why));
                }
                steps
            }
            Err(why) => {
                unreadable = unreadable.or(Some(format!("its `steps.jsonl`: {why}")));
                Vec::new()
            }
        };
        let (last, noted) = match self.journal(EVENTS) {
            Ok(journal) => {
                named.extend(journal.lines.iter().filter_map(named_by));
                (last_status(&journal), noted(&journal))
            }
            Err(why) => {
                unreadable = unreadable.or(Some(format!("its `events.jsonl`: {why}")));
                (None, BTreeSet::new())
            }
        };
        if let Some(why) = &unreadable {
            self.tell("checkpoints-unreadable", "", why.clone());
        }
        let word = last.or_else(|| snapshot.get("status").and_then(Value::as_str).map(str::to_owned));
        let status = word.as_deref().and_then(XumRunStatus::parse);
        if word.is_some() && status.is_none() {
            self.tell("unknown-word", "", "the status of the run is not a known one");
        }
        named.extend(steps.iter().filter_map(|step| step.task.clone()));
        XumRun {
            id,
            owner,
            status,
            steps,
            named,
            lease: self.lease(),
            noted,
            created_at: instant(snapshot.get("createdAt")),
            updated_at: instant(snapshot.get("updatedAt")),
            unreadable,
        }
    }

    fn lease(&mut self) -> Sighting<i64> {
        let sighting = match read_json::<Map<String, Value>>(self.dir, LEASE) {
            Sighting::Found(lease) => match lease.get("acquiredAtMs").and_then(Value::as_i64) {
                Some(at) => Sighting::Found(at),
                None => Sighting::Unreadable("it is not of the known form".to_owned()),
            },
            Sighting::NotFound => Sighting::NotFound,
            Sighting::Unreadable(why) => Sighting::Unreadable(why),
        };
        if let Sighting::Unreadable(why) = &sighting {
            self.tell("lease-unreadable", LEASE, why.clone());
        }
        sighting
    }

    /// Reads the whole lines of a journal. A missing one is empty.
    fn journal(&mut self, file: &str) -> std::result::Result<Journal, String> {
        let bytes = self.dir.read(file, FILE_BYTES_MAX).map_err(|error| told(&error))?.unwrap_or_default();
        let mut lines = Vec::new();
        let mut n_lost = 0;
        let parts: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let last = parts.len().saturating_sub(1);
        for (index, line) in parts.into_iter().enumerate() {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(fields) => lines.push(fields),
                Err(_) if index == last => self.tell("torn-line", file, "its last line is torn"),
                Err(error) => {
                    n_lost += 1;
                    let why = told_json(&error);
                    self.tell("line-unreadable", file, format!("line {}: {why}", index + 1));
                }
            }
        }
        Ok(Journal { lines, n_lost })
    }

    /// The latest record of every step and input: the journal's, and where it has none, the snapshot's. And how
    /// many records cannot be read.
    fn steps(&mut self, snapshot: Option<&Value>, journal: &Journal) -> (Vec<XumStep>, usize) {
        let mut n_lost = journal.n_lost;
        let mut steps: Vec<XumStep> = Vec::new();
        let mut place = std::collections::HashMap::new();
        let copies = snapshot.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
        for line in copies.chain(&journal.lines) {
            let Some(mut record) = step(line) else {
                n_lost += 1;
                self.tell("step-unreadable", STEPS, "a record of a step is not of the known form");
                continue;
            };
            let key = (record.step.clone(), record.input_hash.clone());
            let before = place.get(&key).and_then(|index: &usize| steps.get_mut(*index));
            if let Some(before) = before {
                record.started_at = record.started_at.or_else(|| before.started_at.clone());
                *before = record;
            } else {
                place.insert(key, steps.len());
                steps.push(record);
            }
        }
        (steps, n_lost)
    }
}

fn step(line: &Map<String, Value>) -> Option<XumStep> {
    let text = |field: &str| line.get(field).and_then(Value::as_str).map(str::to_owned);
    let task = match line.get("taskId") {
        None => None,
        Some(Value::String(task)) => Some(task.clone()),
        Some(_) => return None,
    };
    Some(XumStep {
        step: text("stepId")?,
        input_hash: text("inputHash")?,
        status: XumStepStatus::parse(&text("status")?)?,
        task,
        started_at: instant(line.get("startedAt")),
        ended_at: instant(line.get("completedAt")),
        error: text("error"),
    })
}

/// The word of the last event about the status of the run.
fn last_status(journal: &Journal) -> Option<String> {
    let is_status = |line: &&Map<String, Value>| line.get("type").and_then(Value::as_str) == Some("status");
    let last = journal.lines.iter().rev().find(is_status)?;
    last.get("status").and_then(Value::as_str).map(str::to_owned)
}

/// The child that a line of a journal names.
fn named_by(line: &Map<String, Value>) -> Option<String> {
    line.get("taskId").and_then(Value::as_str).map(str::to_owned)
}

/// The children that the journal calls unresolved.
fn noted(journal: &Journal) -> BTreeSet<String> {
    let details = journal.lines.iter().filter_map(|line| line.get("details"));
    let unresolved =
        details.filter(|details| details.get("disposition").and_then(Value::as_str) == Some("indeterminate"));
    unresolved
        .filter_map(|details| details.get("taskId").and_then(Value::as_str))
        .map(str::to_owned)
        .collect()
}
