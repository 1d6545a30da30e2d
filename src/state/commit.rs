//! The commit. The numbers in the bodies are the steps, the same as in `docs/STATE.md`, which says what is on disk if
//! the process dies or the machine loses power at each:
//!
//! 1. all locks are held ([`super::transaction`]);
//! 2. missing folders are made, each durable in the one above it;
//! 3. every evidence file is written and synced beside its place, and what leaves a history in a file of its own;
//! 4. every row but the first is written, synced and prepared in its own folder, which is synced;
//! 5. the first row, the *home* row, is written, synced, renamed over its predecessor, and its folder is synced:
//!    **the commit point**. With more than one file, the home row carries the record of all others;
//! 6. the others are renamed into place. Whoever locks one of them next does it, if this process dies.
//!
//! Invariants: before the rename of step 5 every failure leaves the old state, and what was prepared is removed;
//! between that rename and its sync every failure is `Uncertain`; after it no failure changes the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::disk::{self, Dir, Prepared};
use super::document::{self, NextDocument};
use super::error::{Result, StateError};
use super::lock::{Mode, try_lock};
use super::names::{PART_PREFIX, ROW, hex, history_file};
use super::pending::{self, PartOf, Pending, PendingFile, PendingRow, Trust};
use super::reading;
use super::report::ReportWrite;
use super::transaction::{Held, Transaction};
use crate::protocol::history::ArchivedEvents;
use crate::protocol::ids::Name;
use crate::protocol::receipt::Receipt;
use crate::protocol::row::{Extra, Row};
use crate::seam;

/// A receipt to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptWrite {
    /// The receipt.
    pub receipt: Receipt,
    /// The workspaces that get a copy. The first is the parent's, which alone is evidence and is put in place
    /// last.
    pub workspaces: Vec<Name>,
}

/// Everything one commit changes.
#[derive(Debug, Default)]
pub struct Writes {
    /// The rows as they shall be. The first is the home row.
    pub rows: Vec<Row>,
    /// Receipts of these rows' attempts.
    pub receipts: Vec<ReceiptWrite>,
    /// A report of one of these rows' tasks.
    pub report: Option<ReportWrite>,
}

/// What a commit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The revision each written row has now.
    pub revisions: BTreeMap<Name, u64>,
}

/// What was prepared. Dropped before the commit point, all of it is removed.
#[derive(Debug, Default)]
pub(super) struct Staged {
    pub(super) files: Vec<PendingFile>,
    pub(super) prepared: Vec<Prepared>,
    pub(super) synced: BTreeSet<PathBuf>,
    parts: Vec<PendingRow>,
}

impl Transaction<'_> {
    /// Commits, all or nothing at whatever instant this process or the machine dies.
    pub fn commit(mut self, mut writes: Writes) -> Result<Committed> {
        self.check(&writes)?;
        for row in &writes.rows {
            self.make_row_folder(&row.task_id)?;
        }
        let id = hex(&disk::random::<16>()?);
        let mut staged = Staged::default();
        super::evidence::stage(&self.root, &id, &mut writes, &mut staged)?;
        for row in &mut writes.rows {
            if let Some(archive) = row.history.cut() {
                write_archive(self.held(&row.task_id)?.0, &archive)?;
            }
        }
        let (home, others) =
            writes.rows.split_first().ok_or_else(|| StateError::internal("a commit without a row"))?;
        for row in others {
            self.stage_part(&id, &home.task_id, row, &mut staged)?;
        }
        let revisions =
            writes.rows.iter().map(|row| (row.task_id.clone(), self.revision(&row.task_id) + 1)).collect();
        let record = Pending { id, files: staged.files, rows: staged.parts };
        self.commit_home(home, &record, staged.prepared)?;
        // 6. A failure from here on is repaired by whoever locks one of the rows next.
        drop(self.place_all(&record));
        Ok(Committed { revisions })
    }

    fn check(&self, writes: &Writes) -> Result<()> {
        let mut seen = BTreeSet::new();
        for row in &writes.rows {
            let held = self.rows.get(&row.task_id).is_some_and(|held| held.mode == Mode::Exclusive);
            if !held || !seen.insert(&row.task_id) {
                return Err(StateError::internal(format!(
                    "`{}` is not locked, or written twice",
                    row.task_id
                )));
            }
        }
        let receipts = writes.receipts.iter().map(|write| &write.receipt.task_id);
        for task in receipts.chain(writes.report.iter().map(|report| &report.meta.task)) {
            if !seen.contains(task) {
                return Err(StateError::internal(format!("evidence of `{task}` without its row")));
            }
        }
        for write in &writes.receipts {
            if write.workspaces.first() != Some(&write.receipt.parent_workspace_id) {
                return Err(StateError::internal("a receipt must go to its parent first of all"));
            }
        }
        Ok(())
    }

    fn held(&self, task: &Name) -> Result<(&Dir, &Held)> {
        let held = self.rows.get(task);
        let found = held.and_then(|held| held.dir.as_ref().map(|dir| (dir, held)));
        found.ok_or_else(|| StateError::internal(format!("`{task}` has no folder")))
    }

    /// 2. Makes the folder of a row that does not exist yet, and locks it, once.
    fn make_row_folder(&mut self, task: &Name) -> Result<()> {
        let raced = || StateError::Raced { task: task.to_string() };
        let Some(held) = self.rows.get_mut(task) else { return Ok(()) };
        if held.dir.is_none() {
            let made = self.tasks.make(&held.folder)?;
            // This row's place in the order of locks may be behind us, so waiting for it could deadlock.
            let locked = try_lock(made, Mode::Exclusive)?.map_err(|_| raced())?;
            if !super::lock::still_there(&locked)? {
                return Err(raced());
            }
            if locked.kind(ROW)?.is_some() || !reading::parts_in(&locked)?.is_empty() {
                return Err(raced());
            }
            held.dir = Some(locked);
        }
        if held.document.is_some() {
            return Ok(());
        }
        // The folder may have been left by a call that died before it was durable, and so may the root itself:
        // no row may outlive the `config.json` that says whose it is.
        self.root.sync()?;
        self.tasks.sync()
    }

    fn encode(&self, row: &Row, commit: Option<&PartOf>, pending: Option<&Pending>) -> Result<Vec<u8>> {
        let nothing = Extra::new();
        let extra = self.document(&row.task_id).map_or(&nothing, |document| &document.extra);
        let revision = self.revision(&row.task_id) + 1;
        document::encode(&NextDocument { revision, commit, pending, row, extra })
    }

    /// 4. Prepares one of the other rows.
    fn stage_part(&self, id: &str, home: &Name, row: &Row, staged: &mut Staged) -> Result<()> {
        let (dir, held) = self.held(&row.task_id)?;
        let from = self.revision(&row.task_id);
        let commit = PartOf { id: id.to_owned(), home: home.clone(), from };
        let bytes = self.encode(row, Some(&commit), None)?;
        let name = format!("{PART_PREFIX}{id}");
        seam::pause("before-part");
        // Readers look at parts, so a part gets its name only when it is whole.
        staged.prepared.push(dir.temp_with(&bytes)?.prepare_as(&name)?);
        dir.sync()?;
        let part =
            PendingRow { task_id: row.task_id.clone(), folder: held.folder.clone(), from, staged: name };
        staged.parts.push(part);
        Ok(())
    }

    /// 5. The commit point.
    fn commit_home(&self, home: &Row, record: &Pending, prepared: Vec<Prepared>) -> Result<()> {
        let (dir, _) = self.held(&home.task_id)?;
        let single = record.files.is_empty() && record.rows.is_empty();
        let bytes = self.encode(home, None, Some(record).filter(|_| !single))?;
        // Once the rename may be visible, what was prepared belongs to the record, whatever happens next.
        let visible = || prepared.into_iter().for_each(Prepared::keep);
        replace_row_then(dir, &bytes, visible)
    }

    /// 6. Puts the evidence in place, then the other rows, which may rest on it.
    fn place_all(&self, record: &Pending) -> Result<()> {
        if record.files.is_empty() && record.rows.is_empty() {
            return Ok(());
        }
        seam::pause("after-commit-point");
        pending::place_files(&self.root, &record.files, Trust::Fresh)?;
        for part in &record.rows {
            let (dir, _) = self.held(&part.task_id)?;
            dir.rename(&part.staged, ROW)?;
            dir.sync()?;
        }
        Ok(())
    }
}

/// Writes a row file durably over its predecessor.
pub(super) fn replace_row(dir: &Dir, bytes: &[u8]) -> Result<()> {
    replace_row_then(dir, bytes, || {})
}

fn replace_row_then(dir: &Dir, bytes: &[u8], visible: impl FnOnce()) -> Result<()> {
    let temp = dir.temp_with(bytes)?;
    seam::pause("before-rename");
    if let Err(error) = temp.rename_to(ROW) {
        // A rename that reports a failure may still have happened; only looking tells.
        if dir.read(ROW, document::ROW_BYTES_MAX).is_ok_and(|found| found.as_deref() != Some(bytes)) {
            return Err(error);
        }
        visible();
        return Err(error.after_visible());
    }
    visible();
    seam::pause("after-rename");
    dir.sync().map_err(StateError::after_visible)
}

/// 3. Writes the events that leave a row, durably. A file left by a commit that did not happen is replaced.
fn write_archive(dir: &Dir, archive: &ArchivedEvents) -> Result<()> {
    let mut temp = dir.temp()?;
    temp.write(|writer| {
        for event in &archive.events {
            serde_json::to_writer(&mut *writer, event)?;
            writer.write_all(b"\n")?;
        }
        Ok(())
    })?;
    temp.sync()?;
    temp.rename_to(&history_file(archive.number))?;
    dir.sync()
}
