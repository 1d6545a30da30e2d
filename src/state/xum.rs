//! Reading a root of the application xum, strictly and without changing or locking anything.
//!
//! Invariants: only the files named in this module and below it are opened, so never one with credentials; no
//! symbolic link below the root is followed; every file has a bound; only `ENOENT` is "not there"; no text about
//! what is wrong quotes what was read.
//!
//! The application may be at work meanwhile. It replaces whole files and appends to journals, so one reading may
//! mix two states: whoever decides on it reads twice.

mod config;
mod evidence;
mod runs;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::disk::{self, Dir};
use super::error::{Result, StateError};
use super::report_text::{ReportInputError, ReportText};
use crate::protocol::ids::Timestamp;
use crate::protocol::xum::{Problem, Reading, Sighting, TaskFacts, XumReport, XumRow};

/// One folder a workspace.
const SESSIONS: &str = "sessions";
/// A JSON file of such a root is never read past this.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// An open root of that application.
#[derive(Debug)]
pub struct XumRoot {
    path: PathBuf,
    root: Dir,
}

impl XumRoot {
    /// Opens a folder. Whether it is such a root is seen when it is read.
    pub fn open(path: &Path) -> Result<Self> {
        let not = |reason: &str| StateError::NotXumRoot { path: path.to_owned(), reason: reason.to_owned() };
        let found = disk::canonical(path)?.ok_or_else(|| not("there is nothing"))?;
        match Dir::open(&found) {
            Ok(root) => Ok(Self { path: found, root }),
            Err(StateError::Io { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => {
                Err(not("it is not a folder"))
            }
            Err(error) => Err(error),
        }
    }

    /// Where it lies, with every link in the path resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads everything that is known about tasks and runs, once.
    pub fn read(&self) -> Result<Reading> {
        let config = config::read(&self.root)?;
        let mut problems = config.problems;
        let sessions = match self.root.child(SESSIONS) {
            Ok(found) => Ok(found),
            Err(error) => {
                let why = told(&error);
                problems.push(Problem::new("folder-unreadable", SESSIONS, why.clone()));
                Err(why)
            }
        };
        let runs = runs::read_all(sessions.as_ref().ok().and_then(Option::as_ref), &mut problems);
        let mut evidence = evidence::Folders::new(sessions);
        let mut tasks = BTreeMap::new();
        for (id, row) in config.tasks {
            let line = row.found().map(|row| line_up(&id, &row.parent, &config.parents, &mut problems));
            let facts = evidence.of(&id, row, line.unwrap_or_default(), &mut problems);
            tasks.insert(id, facts);
        }
        // The gap between a durable checkpoint and the row it names.
        for run in &runs {
            for id in
                run.steps.iter().filter(|step| step.status.is_open()).filter_map(|step| step.task.as_ref())
            {
                if !tasks.contains_key(id) && !config.parents.contains_key(id) {
                    let facts = evidence.of(id, Sighting::NotFound, vec![run.owner.clone()], &mut problems);
                    tasks.insert(id.clone(), facts);
                }
            }
        }
        let mut reading = Reading {
            has_write_id: config.has_write_id,
            n_workspaces: config.n_workspaces,
            tasks,
            runs,
            problems,
        };
        reading.tell_what_is_lost();
        reading.problems.sort();
        reading.problems.dedup();
        Ok(reading)
    }

    /// Reads the text of a report that was found, fit to be kept. `None`: it is not the one that was found any more.
    pub fn report_text(
        &self,
        task: &str,
        report: &XumReport,
        spool_dir: &Path,
    ) -> std::result::Result<Option<ReportText>, ReportInputError> {
        let sessions = self.root.child(SESSIONS).ok().flatten();
        let text = sessions.and_then(|sessions| evidence::report_text(&sessions, &report.holder, task));
        let Some(text) = text else { return Ok(None) };
        let spooled = ReportText::spool(&mut text.as_bytes(), spool_dir)?;
        Ok(Some(spooled).filter(|spooled| spooled.sha256() == report.text_sha256))
    }
}

/// The workspaces above a task, its parent first. A chain that comes back to itself ends there.
fn line_up(
    id: &str,
    parent: &str,
    parents: &BTreeMap<String, Option<String>>,
    problems: &mut Vec<Problem>,
) -> Vec<String> {
    let mut line = vec![parent.to_owned()];
    let mut seen: BTreeSet<&str> = [id, parent].into();
    let mut above = parent;
    if id == parent {
        problems.push(Problem::new("parent-cycle", id, "it is its own parent"));
        return line;
    }
    loop {
        let Some(next) = parents.get(above) else {
            if above == parent {
                problems.push(Problem::new("parent-missing", id, "there is no row of its parent"));
            }
            return line;
        };
        let Some(next) = next else { return line };
        if !seen.insert(next) {
            problems.push(Problem::new("parent-cycle", id, "the chain of its parents comes back to itself"));
            return line;
        }
        line.push(next.clone());
        above = next;
    }
}

/// An id as the name of one file, if it is one.
fn segment(id: &str) -> Option<&str> {
    let plain = !id.is_empty() && id != "." && id != ".." && id.len() <= 255;
    Some(id).filter(|id| plain && !id.contains(['/', '\0']))
}

/// What is wrong with a file, in words that quote nothing of it.
fn told(error: &StateError) -> String {
    match error {
        StateError::LinkRefused { .. } => "it is a symbolic link, and none is followed".to_owned(),
        StateError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => source.to_string(),
        StateError::Io { action, source, .. } => format!("cannot {action} it: {}", source.kind()),
        _ => "it cannot be read".to_owned(),
    }
}

/// Where JSON is malformed. What `serde_json` says itself may quote a value.
fn told_json(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "it ends in the middle",
        serde_json::error::Category::Data => "it is not of the known form",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => "it is not JSON",
    };
    format!("{what} (line {}, column {})", error.line(), error.column())
}

/// Reads a whole JSON file of a known form.
fn read_json<T: for<'de> Deserialize<'de>>(dir: &Dir, file: &str) -> Sighting<T> {
    match dir.read(file, FILE_BYTES_MAX) {
        Ok(None) => Sighting::NotFound,
        Ok(Some(bytes)) => match serde_json::from_slice(&bytes) {
            Ok(found) => Sighting::Found(found),
            Err(error) => Sighting::Unreadable(told_json(&error)),
        },
        Err(error) => Sighting::Unreadable(told(&error)),
    }
}

/// An instant in the form of ours, if it is one at all.
fn instant(value: Option<&Value>) -> Option<Timestamp> {
    let text = value.and_then(Value::as_str)?;
    let parsed: jiff::Timestamp = text.parse().ok()?;
    Timestamp::parse(&format!("{parsed:.3}")).ok()
}

/// An instant in milliseconds since the epoch, if it is one.
fn instant_ms(value: Option<&Value>) -> Option<Timestamp> {
    let parsed = jiff::Timestamp::from_millisecond(value.and_then(Value::as_i64)?).ok()?;
    Timestamp::parse(&format!("{parsed:.3}")).ok()
}

/// What is known about a task whose evidence cannot even be looked for.
fn nowhere(row: Sighting<XumRow>, line: Vec<String>, why: &str) -> TaskFacts {
    TaskFacts {
        row,
        line,
        report: Sighting::Unreadable(why.to_owned()),
        failure: Sighting::Unreadable(why.to_owned()),
        receipt: Sighting::Unreadable(why.to_owned()),
        receipts: Vec::new(),
    }
}
