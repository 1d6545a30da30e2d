//! Reading a row without changing anything: through a commit of several rows that is not finished.
//!
//! Invariant: what is returned was the row's current content at an instant between the call and its return,
//! whatever other processes did meanwhile. The order of the steps is what guarantees it: the folder is listed
//! *before* `row.json` is read, so a part that the listing does not show cannot have replaced an older row.

use std::time::Duration;

use super::disk::{Dir, Kind};
use super::document::{self, Document};
use super::error::{Result, StateError};
use super::names::{PART_PREFIX, encode};
use super::pending::{PartOf, Pending};
use crate::protocol::ids::Name;

/// A reading that is overtaken this often in a row gives up.
const ATTEMPTS_MAX: u32 = 256;

/// What the home row of a part says about it.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The part is the row's content: its commit happened.
    Committed {
        /// The whole record.
        record: Pending,
        /// The folder of the home row.
        home: Dir,
    },
    /// Its commit has not happened.
    NotCommitted,
}

/// The names of the parts in a folder.
pub(super) fn parts_in(dir: &Dir) -> Result<Vec<String>> {
    let entries = dir.list()?.into_iter();
    Ok(entries.filter(|entry| entry.name.starts_with(PART_PREFIX)).map(|entry| entry.name).collect())
}

/// Reads a part, and what it says about itself. `None`: it is gone.
pub(super) fn read_part(
    dir: &Dir,
    part: &str,
    folder: &str,
    task: Option<&Name>,
) -> Result<Option<(Document, PartOf)>> {
    let Some(document) = document::read(dir, part, folder, task)? else { return Ok(None) };
    let id = part.strip_prefix(PART_PREFIX);
    let Some(commit) = document.commit.clone().filter(|commit| Some(commit.id.as_str()) == id) else {
        let reason = "it does not say which commit it is a part of".to_owned();
        let task = document.row.task_id.to_string();
        return Err(StateError::RowUnreadable { task, path: dir.at(part), reason });
    };
    Ok(Some((document, commit)))
}

/// Asks the home row whether a part's commit happened.
pub(super) fn verdict(tasks: &Dir, commit: &PartOf) -> Result<Verdict> {
    let folder = encode(&commit.home);
    let Some(home) = tasks.child(&folder)? else { return Ok(Verdict::NotCommitted) };
    let found = document::read_row(&home, &folder, Some(&commit.home))?;
    Ok(match found.and_then(|document| document.pending) {
        Some(record) if record.id == commit.id => Verdict::Committed { record, home },
        _ => Verdict::NotCommitted,
    })
}

/// Reads the row of an open folder. `None`: there is no row.
pub(super) fn read_through(
    tasks: &Dir,
    dir: &Dir,
    folder: &str,
    task: Option<&Name>,
) -> Result<Option<Document>> {
    for attempt in 0..ATTEMPTS_MAX {
        if let Reading::Whole(answer) = read_once(tasks, dir, folder, task)? {
            return Ok(answer.map(|document| *document));
        }
        if attempt > 8 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let what = format!("task `{}`", task.map_or(folder, Name::as_str));
    Err(StateError::Busy { what, waited: Duration::from_millis(u64::from(ATTEMPTS_MAX)) })
}

/// What one reading came to.
enum Reading {
    Whole(Option<Box<Document>>),
    /// Another process changed the folder meanwhile, so that nothing is known.
    Overtaken,
}

/// One reading.
fn read_once(tasks: &Dir, dir: &Dir, folder: &str, task: Option<&Name>) -> Result<Reading> {
    let parts = parts_in(dir)?;
    let current = document::read_row(dir, folder, task)?;
    let revision = current.as_ref().map_or(0, |document| document.revision);
    for part in parts {
        let Some((mut document, commit)) = read_part(dir, &part, folder, task)? else {
            return Ok(Reading::Overtaken);
        };
        if commit.from != revision {
            continue;
        }
        match verdict(tasks, &commit)? {
            Verdict::Committed { record, .. } => {
                document.files = record.files;
                return Ok(Reading::Whole(Some(Box::new(document))));
            }
            // The home row drops its record only after the part was put in place. So a part that is still here
            // was not committed, and one that is gone may have been, before or after `row.json` was read.
            Verdict::NotCommitted if dir.kind(&part)? == Some(Kind::File) => {}
            Verdict::NotCommitted => return Ok(Reading::Overtaken),
        }
    }
    Ok(Reading::Whole(current.map(Box::new)))
}
