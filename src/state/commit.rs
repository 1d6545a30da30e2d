//! The commit. The numbers in the bodies are the steps, the same as in `docs/STATE.md`, which says what is on disk if
//! the process dies or the machine loses power at each:
//!
//! 1. all locks are held ([`super::transaction`]);
//! 2. missing folders are made, each durable in the one above it;
//! 3. every evidence file is written and synced beside its place, and what leaves a history in a file of its own;
//! 4. every row but the first, the run and the session, is written, synced and prepared in its own folder, which is synced;
//! 5. the first row, the *home* row, is written, synced, renamed over its predecessor, and its folder is synced:
//!    **the commit point**. With more than one file, the home row carries the record of all others;
//! 6. the others are renamed into place. Whoever locks one of them next does it, if this process dies.
//!
//! Without a row, the run or the session is committed by its own rename.
//!
//! Invariants: before the rename of step 5 every failure leaves the old state, and what was prepared is removed;
//! between that rename and its sync every failure is `Uncertain`; after it no failure changes the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::disk::{self, Prepared};
use super::error::{Result, StateError};
use super::held::Held;
use super::lock::Mode;
use super::names::hex;
use super::pending::{self, Pending, PendingFile, PendingRow, Trust};
use super::place::{Body, Key};
use super::report::ReportWrite;
use super::transaction::Transaction;
use crate::protocol::guard::session::Session;
use crate::protocol::ids::Name;
use crate::protocol::receipt::Receipt;
use crate::protocol::row::Row;
use crate::protocol::run::Run;
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
    /// The run as it shall be. There may be one without rows.
    pub run: Option<Run>,
    /// The session as it shall be. There may be one without rows.
    pub session: Option<Session>,
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
    /// The revision the run has now, if it was written.
    pub run: Option<u64>,
    /// The revision the session has now, if it was written.
    pub session: Option<u64>,
}

/// What was prepared. Dropped before the commit point, all of it is removed.
#[derive(Debug, Default)]
pub(super) struct Staged {
    pub(super) files: Vec<PendingFile>,
    pub(super) prepared: Vec<Prepared>,
    pub(super) synced: BTreeSet<PathBuf>,
    pub(super) parts: Vec<PendingRow>,
}

impl Transaction<'_> {
    /// Commits, all or nothing at whatever instant this process or the machine dies.
    pub fn commit(mut self, mut writes: Writes) -> Result<Committed> {
        self.check(&writes)?;
        for row in &writes.rows {
            self.rows.get_mut(&row.task_id).map_or(Ok(()), |held| held.make_folder(&self.root))?;
        }
        if let Some(held) = self.run.as_mut().filter(|_| writes.run.is_some()) {
            held.make_folder(&self.root)?;
        }
        if let Some(held) = self.session.as_mut().filter(|_| writes.session.is_some()) {
            held.make_folder(&self.root)?;
        }
        let id = hex(&disk::random::<16>()?);
        let mut staged = Staged::default();
        super::evidence::stage(&self.root, &id, &mut writes, &mut staged)?;
        for row in &mut writes.rows {
            self.held(&row.task_id)?.write_archive(row)?;
        }
        if let Some(run) = &mut writes.run {
            self.held_run()?.write_archive(run)?;
        }
        if let Some(session) = &mut writes.session {
            self.held_session()?.write_archive(session)?;
        }
        let committed = self.revisions(&writes)?;
        let Some((home, others)) = writes.rows.split_first() else {
            self.commit_alone(&writes)?;
            return Ok(committed);
        };
        for row in others {
            self.held(&row.task_id)?.stage_part(&id, &home.task_id, row, &mut staged)?;
        }
        if let Some(run) = &writes.run {
            self.held_run()?.stage_part(&id, &home.task_id, run, &mut staged)?;
        }
        if let Some(session) = &writes.session {
            self.held_session()?.stage_part(&id, &home.task_id, session, &mut staged)?;
        }
        let record = Pending { id, files: staged.files, rows: staged.parts };
        self.commit_home(home, &record, staged.prepared)?;
        // 6. A failure from here on is repaired by whoever locks one of the others next.
        drop(self.place_all(&record));
        Ok(committed)
    }

    /// What everything that is written will be.
    fn revisions(&self, writes: &Writes) -> Result<Committed> {
        let mut committed = Committed { revisions: BTreeMap::new(), run: None, session: None };
        for row in &writes.rows {
            committed.revisions.insert(row.task_id.clone(), self.held(&row.task_id)?.revision() + 1);
        }
        if writes.run.is_some() {
            committed.run = Some(self.held_run()?.revision() + 1);
        }
        if writes.session.is_some() {
            committed.session = Some(self.held_session()?.revision() + 1);
        }
        Ok(committed)
    }

    /// 5. The commit point of what changes without a row.
    fn commit_alone(&self, writes: &Writes) -> Result<()> {
        match (&writes.run, &writes.session) {
            (Some(run), None) => self.held_run()?.commit(run, None, || {}),
            (None, Some(session)) => self.held_session()?.commit(session, None, || {}),
            _ => Err(StateError::internal("a commit of nothing, or of two files without a home row")),
        }
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
        let locked = self.run.as_ref().map(|held| &held.key);
        if let Some(key) = writes.run.as_ref().map(Body::key).filter(|key| Some(key) != locked) {
            return Err(StateError::internal(format!("{key} is not locked")));
        }
        let locked = self.session.as_ref().map(|held| &held.key);
        if let Some(key) = writes.session.as_ref().map(Body::key).filter(|key| Some(key) != locked) {
            return Err(StateError::internal(format!("{key} is not locked")));
        }
        if writes.rows.is_empty() && writes.run.is_some() == writes.session.is_some() {
            return Err(StateError::internal("a commit of nothing, or of two files without a home row"));
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

    fn held(&self, task: &Name) -> Result<&Held<Row>> {
        self.rows.get(task).ok_or_else(|| StateError::internal(format!("`{task}` is not locked")))
    }

    fn held_run(&self) -> Result<&Held<Run>> {
        self.run.as_ref().ok_or_else(|| StateError::internal("the plan named no run"))
    }

    fn held_session(&self) -> Result<&Held<Session>> {
        self.session.as_ref().ok_or_else(|| StateError::internal("the plan named no session"))
    }

    /// 5. The commit point.
    fn commit_home(&self, home: &Row, record: &Pending, prepared: Vec<Prepared>) -> Result<()> {
        let record = Some(record).filter(|record| !record.is_empty());
        // Once the rename may be visible, what was prepared belongs to the record, whatever happens next.
        let visible = || prepared.into_iter().for_each(Prepared::keep);
        self.held(&home.task_id)?.commit(home, record, visible)
    }

    /// 6. Puts the evidence in place, then the parts, which may rest on it.
    fn place_all(&self, record: &Pending) -> Result<()> {
        if record.is_empty() {
            return Ok(());
        }
        seam::pause("after-commit-point");
        pending::place_files(&self.root, &record.files, Trust::Fresh)?;
        for part in &record.rows {
            match &part.of {
                Key::Task { task } => self.held(task)?.place_part(part)?,
                Key::Run(_) => self.held_run()?.place_part(part)?,
                Key::Session { .. } => self.held_session()?.place_part(part)?,
            }
        }
        Ok(())
    }
}
