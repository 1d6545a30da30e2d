//! The checkpoints of runs, as the rest of the program is given them.
//!
//! Invariants: only a folder that is not there, or holds nothing of a run, is "no such run"; whoever looks for a
//! run in every session learns of each one that cannot be read.

use std::path::PathBuf;

use super::disk::Dir;
use super::document::RunDocument;
use super::error::{Result, StateError};
use super::names::{RUN, SESSIONS, WORKFLOWS, encode};
use super::place::{Key, Place, RunKey};
use super::transaction::Transaction;
use super::{Store, evidence, reading, root};
use crate::protocol::history::Event;
use crate::protocol::ids::Name;
use crate::protocol::run::Run;

/// One run of the root, or what is wrong with it.
#[derive(Debug)]
pub struct RunEntry {
    /// The folder it was found in, from the root.
    pub folder: String,
    /// The run.
    pub doc: Result<RunDocument>,
}

impl Store {
    /// Reads a run without a lock, through a commit that is not finished. `None`: there is no such run.
    pub fn read_run(&self, key: &RunKey) -> Result<Option<RunDocument>> {
        reading::read_place::<Run>(&self.open_root()?, &Place::of(Key::Run(key.clone())))
    }

    /// Every session's run of this name. One that cannot be read is an error: nobody could tell whether it is the
    /// one that is meant.
    pub fn find_runs(&self, run: &Name) -> Result<Vec<RunKey>> {
        let root = self.open_root()?;
        let mut found = Vec::new();
        for session in names_in(&root::top_of(&root, SESSIONS)?)? {
            let place = Place::listed(&[SESSIONS, &session, WORKFLOWS, &encode(run)]);
            if let Some(document) = reading::read_place::<Run>(&root, &place)? {
                found.push(RunKey { parent: document.run.parent_workspace_id, run: document.run.run_id });
            }
        }
        Ok(found)
    }

    /// Every run, in the order of the folders' names. Folders without a run are left out.
    pub fn all_runs(&self) -> Result<Vec<RunEntry>> {
        let root = self.open_root()?;
        let mut entries = Vec::new();
        for session in names_in(&root::top_of(&root, SESSIONS)?)? {
            let runs = Place::listed(&[SESSIONS, &session, WORKFLOWS]);
            let listed = runs.open(&root).and_then(|dir| dir.map_or(Ok(vec![]), |dir| names_in(&dir)));
            let listed = match listed {
                Ok(listed) => listed,
                Err(error) => {
                    entries.push(RunEntry { folder: runs.folders.join("/"), doc: Err(error) });
                    continue;
                }
            };
            for run in listed {
                let place = Place::listed(&[SESSIONS, &session, WORKFLOWS, &run]);
                let read = reading::read_place::<Run>(&root, &place);
                let folder = place.folders.join("/");
                entries.extend(read.transpose().map(|doc| RunEntry { folder, doc }));
            }
        }
        Ok(entries)
    }

    /// The file of a run, for people.
    pub fn run_path(&self, key: &RunKey) -> PathBuf {
        self.below(&Key::Run(key.clone()).folders()).join(RUN)
    }

    /// The events that left a run's history, oldest first.
    pub fn run_archives(&self, run: &Run) -> Result<Vec<Event>> {
        evidence::archived(&self.open_root()?, run, &run.history)
    }
}

/// What may be the folder of a session or of a run. No id's folder is hidden.
pub(super) fn names_in(dir: &Dir) -> Result<Vec<String>> {
    let names = dir.list()?.into_iter().map(|entry| entry.name);
    Ok(names.filter(|name| !name.starts_with('.')).collect())
}

impl Transaction<'_> {
    /// The run as it stands, if there is one and the plan named it.
    pub fn run(&self) -> Option<&Run> {
        self.run_document().map(|document| &document.run)
    }

    /// The run with what belongs to its file.
    pub fn run_document(&self) -> Option<&RunDocument> {
        self.run.as_ref().and_then(|held| held.document.as_ref())
    }

    /// Writes the run's bytes again as a whole durable commit: for an answer that rests on what an earlier call
    /// made visible and may have failed to make durable.
    pub fn rewrite_run(&self) -> Result<()> {
        let held = self.run.as_ref();
        held.ok_or_else(|| StateError::internal("the plan named no run"))?.rewrite(&self.root)
    }

    /// Makes sure that the run, which was only read, and its folder are durable.
    pub fn sync_run(&self) -> Result<()> {
        self.run.as_ref().map_or(Ok(()), super::held::Held::sync)
    }
}
