//! A transaction: every lock of a plan, every row read under it, and what a dead process left finished.
//!
//! Invariants: a row is looked at only after all locks are held; a part is put over a row only under that row's
//! lock and only over the revision the part names; before anything of a record is put in place, the home row's
//! rename that committed it is made durable; a record is dropped (by the home row's next commit) only after
//! everything it names is in place and durable.

use std::collections::BTreeMap;

use super::disk::{Dir, Kind};
use super::document::{self, Document};
use super::error::{Result, StateError};
use super::lock::{Acquired, Deadline, LockPlan, LockWait, Mode, acquire};
use super::names::{PART_PREFIX, ROW, evidence_file, receipts_folder, reports_folder};
use super::pending::{self, Pending, Trust};
use super::reading::{self, Verdict};
use super::{Access, Store};
use crate::protocol::ids::{AttemptId, Name};
use crate::protocol::row::Row;
use crate::seam;

/// One row of a transaction.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) folder: String,
    pub(super) mode: Mode,
    /// The locked folder. `None`: there was none.
    pub(super) dir: Option<Dir>,
    pub(super) document: Option<Document>,
}

/// All locks of a plan, held until this is dropped or committed.
#[derive(Debug)]
#[must_use = "a transaction holds its locks until it is dropped"]
pub struct Transaction<'a> {
    store: &'a Store,
    pub(super) root: Dir,
    pub(super) tasks: Dir,
    pub(super) rows: BTreeMap<Name, Held>,
}

/// What a round of `begin` came to.
enum Round<'a> {
    Ready(Transaction<'a>),
    /// A record of a locked row names a row that must be locked as well.
    Needs(Name),
}

impl Store {
    /// Takes the locks of a plan, reads its rows, and finishes what a dead process left half done in them.
    pub fn begin(&self, plan: &LockPlan, wait: LockWait) -> Result<Transaction<'_>> {
        if self.access == Access::Read {
            return Err(StateError::internal("the root was opened for reading only"));
        }
        let mut plan = plan.clone();
        let mut deadline = Deadline::new(wait);
        loop {
            let acquired = acquire(&self.root, &plan.in_order(), &mut deadline)?;
            match self.round(acquired)? {
                Round::Ready(transaction) => {
                    seam::pause("locked");
                    return Ok(transaction);
                }
                Round::Needs(task) if plan.exclusive.contains(&task) => {
                    return Err(StateError::internal(format!("the part of `{task}` stayed where it was")));
                }
                Round::Needs(task) => plan.exclusive.push(task),
            }
        }
    }

    fn round(&self, acquired: Acquired) -> Result<Round<'_>> {
        let Acquired { root, tasks, held } = acquired;
        let mut rows = BTreeMap::new();
        for (wanted, dir) in held {
            if let (Some(dir), Mode::Exclusive) = (&dir, wanted.mode) {
                settle_parts(&root, &tasks, dir, &wanted.folder, &wanted.task)?;
            }
            rows.insert(wanted.task, Held { folder: wanted.folder, mode: wanted.mode, dir, document: None });
        }
        for (task, held) in &mut rows {
            let Some(dir) = &held.dir else { continue };
            held.document = match held.mode {
                Mode::Exclusive => document::read_row(dir, &held.folder, Some(task))?,
                Mode::Shared => reading::read_through(&tasks, dir, &held.folder, Some(task))?,
            };
            if let Some(newer) = held.document.as_ref().filter(|document| document.newer) {
                return Err(StateError::NewerVersion { path: dir.at(ROW), found: newer.version });
            }
        }
        for held in rows.values().filter(|held| held.mode == Mode::Exclusive) {
            let record = held.document.as_ref().and_then(|document| document.pending.as_ref());
            let (Some(dir), Some(record)) = (&held.dir, record) else { continue };
            if let Some(task) = finish(&root, &tasks, &held.folder, dir, record)? {
                return Ok(Round::Needs(task));
            }
        }
        Ok(Round::Ready(Transaction { store: self, root, tasks, rows }))
    }
}

/// Sweeps a folder whose lock is held, and applies or removes the parts in it.
fn settle_parts(root: &Dir, tasks: &Dir, dir: &Dir, folder: &str, task: &Name) -> Result<()> {
    for entry in dir.list()? {
        if entry.name.starts_with(PART_PREFIX) {
            settle_part(root, tasks, dir, folder, task, &entry.name)?;
        } else if entry.kind == Kind::File && entry.name.starts_with(super::names::TEMP_PREFIX) {
            // A leftover does no harm, so failing to remove it is no reason to fail.
            drop(dir.remove(&entry.name));
        }
    }
    Ok(())
}

fn settle_part(root: &Dir, tasks: &Dir, dir: &Dir, folder: &str, task: &Name, part: &str) -> Result<()> {
    let Some((_, commit)) = reading::read_part(dir, part, folder, Some(task))? else { return Ok(()) };
    let Verdict::Committed { record, home } = reading::verdict(tasks, &commit)? else {
        // Its committer held this lock until it was done or dead, so nobody will commit it any more.
        return dir.remove(part);
    };
    let revision = document::read_row(dir, folder, Some(task))?.map_or(0, |document| document.revision);
    if revision != commit.from {
        return dir.remove(part);
    }
    // The committer may have died between the rename of the home row and its sync. What rests on that rename
    // must not outlive it.
    home.sync()?;
    // The home row keeps its record as long as this part is here, so the evidence it names is still its own.
    pending::place_files(root, &record.files, Trust::Verify)?;
    dir.rename(part, ROW)?;
    dir.sync()
}

/// Puts in place everything that the record of a locked home row names. Answers with the task of a part that
/// needs a lock this call does not hold.
fn finish(root: &Dir, tasks: &Dir, folder: &str, home: &Dir, record: &Pending) -> Result<Option<Name>> {
    home.sync()?;
    pending::place_files(root, &record.files, Trust::Verify)?;
    pending::sweep_beside(root, &record.files, folder);
    for row in &record.rows {
        let missing = || StateError::damaged(tasks.at(&row.folder), "a row's folder is missing");
        let dir = tasks.child(&row.folder)?.ok_or_else(missing)?;
        if dir.kind(&row.staged)?.is_some() {
            return Ok(Some(row.task_id.clone()));
        }
        // Whoever put the part in place may have died before that was durable.
        dir.sync()?;
    }
    Ok(None)
}

impl<'a> Transaction<'a> {
    /// The store, for the evidence of the rows.
    pub fn store(&self) -> &'a Store {
        self.store
    }

    /// A row as it stands, if there is one and the plan named it.
    pub fn row(&self, task: &Name) -> Option<&Row> {
        self.document(task).map(|document| &document.row)
    }

    /// A row with what belongs to its file.
    pub fn document(&self, task: &Name) -> Option<&Document> {
        self.rows.get(task).and_then(|held| held.document.as_ref())
    }

    /// How many commits a row has seen; 0 if there is none.
    pub fn revision(&self, task: &Name) -> u64 {
        self.document(task).map_or(0, |document| document.revision)
    }

    /// Writes a row's bytes again as a whole durable commit, and the evidence its record names: for an answer
    /// that rests on what an earlier call made visible and may have failed to make durable.
    pub fn rewrite(&self, task: &Name) -> Result<()> {
        let unlocked = || StateError::internal(format!("`{task}` is not locked for writing, or has no row"));
        let held = self.rows.get(task).filter(|held| held.mode == Mode::Exclusive).ok_or_else(unlocked)?;
        let (Some(dir), Some(document)) = (&held.dir, &held.document) else { return Err(unlocked()) };
        let bytes = dir.read(ROW, document::ROW_BYTES_MAX)?.ok_or_else(unlocked)?;
        let read = document::decode(&bytes).map(|read| read.fingerprint);
        if read.as_ref() != Ok(&document.fingerprint) {
            return Err(StateError::internal(format!("the row of `{task}` changed under its lock")));
        }
        super::commit::replace_row(dir, &bytes)?;
        if document.revision == 1 {
            self.tasks.sync().map_err(StateError::after_visible)?;
        }
        pending::rewrite_files(&self.root, &document.files).map_err(StateError::after_visible)
    }

    /// Makes sure that a row that was only read, and its folder, are durable.
    pub fn sync_row(&self, task: &Name) -> Result<()> {
        let Some(dir) = self.rows.get(task).and_then(|held| held.dir.as_ref()) else { return Ok(()) };
        if dir.kind(ROW)?.is_some() {
            dir.sync_file(ROW)?;
        }
        dir.sync()
    }

    /// Makes sure that a receipt and its folder are durable.
    pub fn sync_receipt(&self, workspace: &Name, task: &Name, attempt: &AttemptId) -> Result<()> {
        self.sync_evidence(&receipts_folder(workspace, task), &evidence_file(Some(attempt)))
    }

    /// Makes sure that a report and its folder are durable.
    pub fn sync_report(&self, workspace: &Name, task: &Name, attempt: Option<&AttemptId>) -> Result<()> {
        self.sync_evidence(&reports_folder(workspace, task), &evidence_file(attempt))
    }

    fn sync_evidence(&self, folders: &[String], file: &str) -> Result<()> {
        let missing = || StateError::damaged(self.root.at(&folders.join("/")).join(file), "it is missing");
        let dir = self.root.descend(folders)?.ok_or_else(missing)?;
        dir.sync_file(file)?;
        dir.sync()
    }
}
