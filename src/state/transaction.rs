//! A transaction: every lock of a plan, everything read under it, and what a dead process left finished.
//!
//! Invariants: nothing is looked at before all locks are held; a record is dropped (by the home row's next commit)
//! only after everything it names is in place and durable; whoever finds in a record the part of something that it
//! has not locked lets go of every lock before it takes that one.

use std::collections::BTreeMap;

use super::disk::Dir;
use super::document::Document;
use super::error::{Result, StateError};
use super::held::Held;
use super::lock::{Acquired, Deadline, LockPlan, LockWait, Mode, acquire};
use super::names::{evidence_file, receipts_folder, reports_folder};
use super::pending::{self, Pending, Trust};
use super::place::{Key, Place};
use super::{Access, Store};
use crate::protocol::guard::session::Session;
use crate::protocol::ids::{AttemptId, Name};
use crate::protocol::row::Row;
use crate::protocol::run::Run;
use crate::seam;

/// All locks of a plan, held until this is dropped or committed.
#[derive(Debug)]
#[must_use = "a transaction holds its locks until it is dropped"]
pub struct Transaction<'a> {
    store: &'a Store,
    pub(super) root: Dir,
    pub(super) session: Option<Held<Session>>,
    pub(super) run: Option<Held<Run>>,
    pub(super) rows: BTreeMap<Name, Held<Row>>,
}

/// What a round of `begin` came to.
enum Round<'a> {
    Ready(Box<Transaction<'a>>),
    /// A record of a locked row names something that must be locked as well.
    Needs(Key),
}

impl Store {
    /// Takes the locks of a plan, reads what they guard, and finishes what a dead process left half done there.
    pub fn begin(&self, plan: &LockPlan, wait: LockWait) -> Result<Transaction<'_>> {
        if self.access == Access::Read {
            return Err(StateError::internal("the root was opened for reading only"));
        }
        let mut plan = plan.clone();
        let mut deadline = Deadline::new(wait);
        loop {
            match self.round(&plan, &mut deadline)? {
                Round::Ready(transaction) => {
                    seam::pause("locked");
                    return Ok(*transaction);
                }
                Round::Needs(Key::Task { task }) if !plan.exclusive.contains(&task) => {
                    plan.exclusive.push(task);
                }
                Round::Needs(Key::Run(run)) if plan.run.as_ref() != Some(&run) => {
                    self.finish_alone(&LockPlan { run: Some(run), ..LockPlan::default() }, &mut deadline)?;
                }
                Round::Needs(Key::Session { session }) if plan.session.as_ref() != Some(&session) => {
                    let alone = LockPlan { session: Some(session), ..LockPlan::default() };
                    self.finish_alone(&alone, &mut deadline)?;
                }
                Round::Needs(key) => {
                    return Err(StateError::internal(format!("the part of {key} stayed where it was")));
                }
            }
        }
    }

    /// Puts the part of a run or of a session in place, under its lock alone: a call locks one of either at the
    /// most, and this one may be another than that of its plan.
    fn finish_alone(&self, plan: &LockPlan, deadline: &mut Deadline) -> Result<()> {
        self.round(plan, deadline).map(drop)
    }

    fn round(&self, plan: &LockPlan, deadline: &mut Deadline) -> Result<Round<'_>> {
        let Acquired { root, held } = acquire(&self.root, &plan.in_order(), deadline)?;
        let mut rows = BTreeMap::new();
        let (mut session, mut run) = (None, None);
        for (wanted, dir) in held {
            match wanted.key.clone() {
                Key::Task { task } => {
                    rows.insert(task, Held::<Row>::settled(&root, wanted.key, wanted.mode, dir)?);
                }
                Key::Run(_) => run = Some(Held::<Run>::settled(&root, wanted.key, wanted.mode, dir)?),
                Key::Session { .. } => {
                    session = Some(Held::<Session>::settled(&root, wanted.key, wanted.mode, dir)?);
                }
            }
        }
        session.as_mut().map_or(Ok(()), |held| held.load(&root))?;
        run.as_mut().map_or(Ok(()), |held| held.load(&root))?;
        rows.values_mut().try_for_each(|held| held.load(&root))?;
        for held in rows.values().filter(|held| held.mode == Mode::Exclusive) {
            let record = held.document.as_ref().and_then(|document| document.pending.as_ref());
            let (Some(dir), Some(record)) = (&held.dir, record) else { continue };
            if let Some(key) = finish(&root, &held.key.recorded_folder(), dir, record)? {
                return Ok(Round::Needs(key));
            }
        }
        Ok(Round::Ready(Box::new(Transaction { store: self, root, session, run, rows })))
    }
}

/// Puts in place everything that the record of a locked home row names. Answers with the key of a part that needs
/// a lock this call does not hold.
fn finish(root: &Dir, folder: &str, home: &Dir, record: &Pending) -> Result<Option<Key>> {
    home.sync()?;
    pending::place_files(root, &record.files, Trust::Verify)?;
    pending::sweep_beside(root, &record.files, folder);
    for part in &record.rows {
        let place = Place::of(part.of.clone());
        let missing = || StateError::damaged(root.at(&place.folders.join("/")), "the folder is missing");
        let dir = place.open(root)?.ok_or_else(missing)?;
        if dir.kind(&part.staged)?.is_some() {
            return Ok(Some(part.of.clone()));
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
        self.rows.get(task).map_or(0, Held::revision)
    }

    /// Writes a row's bytes again as a whole durable commit, and the evidence its record names: for an answer
    /// that rests on what an earlier call made visible and may have failed to make durable.
    pub fn rewrite(&self, task: &Name) -> Result<()> {
        let held = self.rows.get(task);
        let held = held.ok_or_else(|| StateError::internal(format!("`{task}` is not locked")))?;
        held.rewrite(&self.root)?;
        let files = held.document.iter().flat_map(|document| &document.files);
        let files: Vec<_> = files.cloned().collect();
        pending::rewrite_files(&self.root, &files).map_err(StateError::after_visible)
    }

    /// Makes sure that a row that was only read, and its folder, are durable.
    pub fn sync_row(&self, task: &Name) -> Result<()> {
        self.rows.get(task).map_or(Ok(()), Held::sync)
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
