//! The store: the only part of the program that touches files. It knows no rules.
//!
//! ```text
//! config.json  secret
//! tasks/<task>/row.json  history-<n>.jsonl            the folder is what is locked
//! sessions/<workspace>/subagent-attempt-settlements/<task>/<attempt>.json
//! sessions/<workspace>/subagent-reports/<task>/<attempt>.json  late/
//! sessions/<workspace>/workflows/<run>/run.json  history-<n>.jsonl    this folder, too
//! sessions/<session>/guard/session.json  history-<n>.jsonl            and this one
//! ```
//!
//! Invariants: a commit, of one file or of several, is all or nothing at whatever instant the process or the
//! machine dies; readers take no lock and see whole commits only; no lock is ever on something that is renamed
//! or removed; a failed sync is never tried again; there is no daemon and no repair step.
//!
//! `docs/STATE.md` has every file and every step. Where to start reading: `commit.rs` for the steps of a commit,
//! and `held.rs` for those in one folder; `transaction.rs` for what the next call does about a dead one;
//! `reading.rs` for what a reader sees meanwhile.

mod commit;
mod disk;
mod document;
mod error;
mod evidence;
mod filesystem;
mod held;
mod input;
mod lock;
mod names;
mod pending;
mod place;
mod places;
pub mod process;
mod reading;
mod report;
mod report_text;
mod root;
mod runs;
mod secret;
mod sessions;
mod settings;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod testing;
mod token_file;
mod transaction;
mod trouble;
mod xum;

use std::path::PathBuf;

pub use commit::{Committed, ReceiptWrite, Writes};
pub use document::{Document, RunDocument, SessionDocument};
pub use error::{StateError, chain};
pub use evidence::Evidence;
pub use filesystem::Locality;
pub use input::{INPUT_BYTES_MAX, TextInputError, read_input, read_text, real_folder};
pub use lock::{LockPlan, LockWait};
pub use names::{evidence_file, hex};
pub use pending::{Pending, PendingFile, PendingRow};
pub use place::{Key, RunKey};
pub use places::{canonical, user};
pub use report::{LateReport, ReportMeta, ReportWrite};
pub use report_text::{REPORT_BYTES_MAX, ReportInputError, ReportText};
pub use runs::RunEntry;
pub use secret::Secret;
pub use sessions::SessionEntry;
pub use settings::{Runnable, SettingsError, SettingsFile, absolute, program, runnable};
pub use token_file::TokenFile;
pub use transaction::Transaction;
pub use trouble::Trouble;
pub use xum::XumRoot;

use crate::protocol::ids::Name;
use crate::protocol::row::Row;
use place::Place;

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
    checkpoints: bool,
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
        reading::read_place::<Row>(&self.open_root()?, &Place::of(Key::task(task)))
    }

    /// Every row, in the order of the folders' names. Folders without a row are left out.
    pub fn tasks(&self) -> Result<Vec<TaskEntry>, StateError> {
        let root = self.open_root()?;
        let mut entries = Vec::new();
        for entry in root::top_of(&root, names::TASKS)?.list()? {
            let folder = entry.name;
            let read = reading::read_place::<Row>(&root, &Place::listed(&[names::TASKS, &folder]));
            if let Some(doc) = read.transpose() {
                entries.push(TaskEntry { folder, doc });
            }
        }
        Ok(entries)
    }
}
