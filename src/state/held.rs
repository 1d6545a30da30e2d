//! One document of a transaction: its lock, its document, and the steps of a commit inside its folder.
//!
//! Invariants: a part is put over a document only under its folder's lock and only over the revision the part
//! names; before anything of a record is put in place, the home row's rename that committed it is made durable.

use super::disk::{Dir, Kind};
use super::document::{self, NextDocument};
use super::error::{Result, StateError};
use super::lock::{Mode, still_there, try_lock};
use super::names::{PART_PREFIX, TEMP_PREFIX, history_file};
use super::pending::{self, PartOf, Pending, PendingRow, Trust};
use super::place::{Body, Filed, Key, Place};
use super::reading::{self, Verdict};
use crate::protocol::history::ArchivedEvents;
use crate::protocol::ids::Name;
use crate::protocol::row::Extra;
use crate::seam;

/// One document of a transaction.
#[derive(Debug)]
pub(super) struct Held<B: Body> {
    pub(super) key: Key,
    pub(super) mode: Mode,
    place: Place,
    /// The locked folder. `None`: there was none.
    pub(super) dir: Option<Dir>,
    pub(super) document: Option<B::Document>,
}

impl<B: Body> Held<B> {
    /// Takes over a folder that was locked, and finishes what a dead process left half done in it.
    pub(super) fn settled(root: &Dir, key: Key, mode: Mode, dir: Option<Dir>) -> Result<Self> {
        let held = Self { place: Place::of(key.clone()), key, mode, dir, document: None };
        if let (Some(dir), Mode::Exclusive) = (&held.dir, mode) {
            held.settle_parts(root, dir)?;
        }
        Ok(held)
    }

    pub(super) fn load(&mut self, root: &Dir) -> Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        self.document = match self.mode {
            Mode::Exclusive => document::read_current::<B>(dir, &self.place)?.map(Into::into),
            Mode::Shared => reading::read_through::<B>(root, dir, &self.place)?,
        };
        match self.document.as_ref().and_then(Filed::newer) {
            Some(found) => Err(StateError::NewerVersion { path: dir.at(B::FILE), found }),
            None => Ok(()),
        }
    }

    /// Sweeps a folder whose lock is held, and applies or removes the parts in it.
    fn settle_parts(&self, root: &Dir, dir: &Dir) -> Result<()> {
        for entry in dir.list()? {
            if entry.name.starts_with(PART_PREFIX) {
                self.settle_part(root, dir, &entry.name)?;
            } else if entry.kind == Kind::File && entry.name.starts_with(TEMP_PREFIX) {
                // A leftover does no harm, so failing to remove it is no reason to fail.
                drop(dir.remove(&entry.name));
            }
        }
        Ok(())
    }

    fn settle_part(&self, root: &Dir, dir: &Dir, part: &str) -> Result<()> {
        let Some((_, commit)) = reading::read_part::<B>(dir, part, &self.place)? else { return Ok(()) };
        let Verdict::Committed { record, home } = reading::verdict(root, &commit)? else {
            // Its committer held this lock until it was done or dead, so nobody will commit it any more.
            return dir.remove(part);
        };
        let current = document::read_current::<B>(dir, &self.place)?;
        if current.map_or(0, |document| document.revision) != commit.from {
            return dir.remove(part);
        }
        // The committer may have died between the rename of the home row and its sync. What rests on that rename
        // must not outlive it.
        home.sync()?;
        // The home row keeps its record as long as this part is here, so the evidence it names is still its own.
        pending::place_files(root, &record.files, Trust::Verify)?;
        dir.rename(part, B::FILE)?;
        dir.sync()
    }

    /// How many commits it has seen; 0 if there is none.
    pub(super) fn revision(&self) -> u64 {
        self.document.as_ref().map_or(0, Filed::revision)
    }

    pub(super) fn folder(&self) -> Result<&Dir> {
        self.dir.as_ref().ok_or_else(|| StateError::internal(format!("{} has no folder", self.key)))
    }

    /// 2. Makes the folder of what does not exist yet, and locks it, once.
    pub(super) fn make_folder(&mut self, root: &Dir) -> Result<()> {
        let raced = || StateError::Raced { what: self.key.to_string() };
        if self.dir.is_none() {
            let made = self.place.make(root)?;
            // Its place in the order of locks may be behind us, so waiting for it could deadlock.
            let locked = try_lock(made, Mode::Exclusive)?.map_err(|_| raced())?;
            if !still_there(&locked)? {
                return Err(raced());
            }
            if locked.kind(B::FILE)?.is_some() || !reading::parts_in(&locked)?.is_empty() {
                return Err(raced());
            }
            self.dir = Some(locked);
        }
        if self.document.is_some() {
            return Ok(());
        }
        // The folder may have been left by a call that died before it was durable, and so may the root itself:
        // nothing may outlive the `config.json` that says whose it is.
        self.place.sync_above(root)
    }

    fn encode(&self, body: &B, commit: Option<&PartOf>, pending: Option<&Pending>) -> Result<Vec<u8>> {
        let nothing = Extra::new();
        let extra = self.document.as_ref().map_or(&nothing, Filed::extra);
        document::encode(&NextDocument { revision: self.revision() + 1, commit, pending, body, extra })
    }

    /// Writes the events that leave the history, durably. A file left by a commit that did not happen is replaced.
    pub(super) fn write_archive(&self, body: &mut B) -> Result<()> {
        let Some(ArchivedEvents { number, events }) = body.history().cut() else { return Ok(()) };
        let dir = self.folder()?;
        let mut temp = dir.temp()?;
        temp.write(|writer| {
            for event in &events {
                serde_json::to_writer(&mut *writer, event)?;
                writer.write_all(b"\n")?;
            }
            Ok(())
        })?;
        temp.sync()?;
        temp.rename_to(&history_file(number))?;
        dir.sync()
    }

    /// 4. Prepares a part.
    pub(super) fn stage_part(
        &self,
        id: &str,
        home: &Name,
        body: &B,
        staged: &mut super::commit::Staged,
    ) -> Result<()> {
        let dir = self.folder()?;
        let from = self.revision();
        let bytes = self.encode(body, Some(&PartOf { id: id.to_owned(), home: home.clone(), from }), None)?;
        let name = format!("{PART_PREFIX}{id}");
        seam::pause("before-part");
        // Readers look at parts, so a part gets its name only when it is whole.
        staged.prepared.push(dir.temp_with(&bytes)?.prepare_as(&name)?);
        dir.sync()?;
        let (of, folder) = (self.key.clone(), self.key.recorded_folder());
        staged.parts.push(PendingRow { of, folder, from, staged: name });
        Ok(())
    }

    /// 5. The commit point. `visible` is called as soon as the rename may have happened.
    pub(super) fn commit(&self, body: &B, record: Option<&Pending>, visible: impl FnOnce()) -> Result<()> {
        replace::<B>(self.folder()?, &self.encode(body, None, record)?, visible)
    }

    /// 6. Puts a part of a record of this very call in place.
    pub(super) fn place_part(&self, part: &PendingRow) -> Result<()> {
        let dir = self.folder()?;
        dir.rename(&part.staged, B::FILE)?;
        dir.sync()
    }

    /// Writes the document's bytes again as a whole durable commit.
    pub(super) fn rewrite(&self, root: &Dir) -> Result<()> {
        let absent = || StateError::internal(format!("{} is not locked for writing, or not there", self.key));
        let (Some(dir), Some(document), Mode::Exclusive) = (&self.dir, &self.document, self.mode) else {
            return Err(absent());
        };
        let bytes = dir.read(B::FILE, document::DOCUMENT_BYTES_MAX)?.ok_or_else(absent)?;
        let read = document::decode::<B>(&bytes).map(|read| read.fingerprint);
        if read.as_deref() != Ok(document.fingerprint()) {
            return Err(StateError::internal(format!("{} changed under its lock", self.key)));
        }
        replace::<B>(dir, &bytes, || {})?;
        if document.revision() == 1 {
            self.place.sync_above(root).map_err(StateError::after_visible)?;
        }
        Ok(())
    }

    /// Makes sure that what was only read is durable.
    pub(super) fn sync(&self) -> Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        if dir.kind(B::FILE)?.is_some() {
            dir.sync_file(B::FILE)?;
        }
        dir.sync()
    }
}

/// Writes a document durably over its predecessor.
fn replace<B: Body>(dir: &Dir, bytes: &[u8], visible: impl FnOnce()) -> Result<()> {
    let temp = dir.temp_with(bytes)?;
    seam::pause("before-rename");
    if let Err(error) = temp.rename_to(B::FILE) {
        // A rename that reports a failure may still have happened; only looking tells.
        let found = dir.read(B::FILE, document::DOCUMENT_BYTES_MAX);
        if found.is_ok_and(|found| found.as_deref() != Some(bytes)) {
            return Err(error);
        }
        visible();
        return Err(error.after_visible());
    }
    visible();
    seam::pause("after-rename");
    dir.sync().map_err(StateError::after_visible)
}
