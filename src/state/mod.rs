//! The store: the only part of the program that touches files. It knows no rules.
//!
//! ```text
//! config.json  secret
//! tasks/<task>/row.json  history-<n>.jsonl            the folder is what is locked
//! sessions/<workspace>/subagent-attempt-settlements/<task>/<attempt>.json
//! sessions/<workspace>/subagent-reports/<task>/<attempt>.json  late/
//! ```
//!
//! Invariants: a commit, of one file or of several, is all or nothing at whatever instant the process or the
//! machine dies; readers take no lock and see whole commits only; no lock is ever on something that is renamed
//! or removed; a failed sync is never tried again; there is no daemon and no repair step.
//!
//! `docs/STATE.md` has every file and every step. Where to start reading: `commit.rs` for the steps of a commit,
//! `transaction.rs` for what the next call does about a dead one, `reading.rs` for what a reader sees meanwhile.

mod commit;
mod disk;
mod document;
mod error;
mod evidence;
mod filesystem;
mod lock;
mod names;
mod pending;
mod places;
pub mod process;
mod reading;
mod report;
mod report_text;
mod root;
mod secret;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod testing;
mod token_file;
mod transaction;

use std::path::PathBuf;

pub use commit::{Committed, ReceiptWrite, Writes};
pub use document::Document;
pub use error::{StateError, chain};
pub use evidence::Evidence;
pub use filesystem::Locality;
pub use lock::{LockPlan, LockWait};
pub use names::{evidence_file, hex};
pub use pending::{Pending, PendingFile, PendingRow};
pub use places::{canonical, user};
pub use report::{LateReport, ReportMeta, ReportWrite};
pub use report_text::{REPORT_BYTES_MAX, ReportInputError, ReportText};
pub use secret::Secret;
pub use token_file::TokenFile;
pub use transaction::Transaction;

use crate::protocol::ids::Name;

/// What a root is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Looking: nothing is made, locked or changed.
    Read,
    /// Changing what is there: a missing root is not made, for it holds nothing that could be changed.
    Change,
    /// Adding to it: a missing root is made.
    Write,
}

/// An open root.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    access: Access,
    locality: Locality,
}

/// One row of the root, or what is wrong with it.
#[derive(Debug)]
pub struct TaskEntry {
    /// The name of its folder.
    pub folder: String,
    /// The row.
    pub doc: Result<Document, StateError>,
}

impl Store {
    /// Reads a row without a lock, through a commit that is not finished. `None`: there is no such task.
    pub fn read_task(&self, task: &Name) -> Result<Option<Document>, StateError> {
        let tasks = self.open_tasks()?;
        let folder = names::encode(task);
        let Some(dir) = open_row_folder(&tasks, &folder)? else { return Ok(None) };
        reading::read_through(&tasks, &dir, &folder, Some(task))
    }

    /// Every row, in the order of the folders' names. Folders without a row are left out.
    pub fn tasks(&self) -> Result<Vec<TaskEntry>, StateError> {
        let tasks = self.open_tasks()?;
        let mut entries = Vec::new();
        for entry in tasks.list()? {
            let folder = entry.name;
            let read = open_row_folder(&tasks, &folder).and_then(|dir| {
                dir.map_or(Ok(None), |dir| reading::read_through(&tasks, &dir, &folder, None))
            });
            if let Some(doc) = read.transpose() {
                entries.push(TaskEntry { folder, doc });
            }
        }
        Ok(entries)
    }
}

/// Opens a row's folder; something else in its place is an unreadable row.
fn open_row_folder(tasks: &disk::Dir, folder: &str) -> Result<Option<disk::Dir>, StateError> {
    tasks.child(folder).map_err(|error| match error {
        StateError::Io { source, path, .. } if source.kind() == std::io::ErrorKind::NotADirectory => {
            StateError::RowUnreadable {
                task: folder.to_owned(),
                path,
                reason: "it is not a folder".to_owned(),
            }
        }
        error => error,
    })
}
