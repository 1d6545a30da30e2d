//! What a document is of, and where it lies: the row of a task, the checkpoints of a run, or a session.
//!
//! Invariant: all kinds are read, locked, prepared and replaced by the same code, which knows them by this file
//! alone; a folder is only ever reached from the root through folders that are no links.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::disk::Dir;
use super::document::{Doc, Document, RunDocument, SessionDocument};
use super::error::{Result, StateError};
use super::names::{GUARD, ROW, RUN, SESSION, SESSIONS, TASKS, WORKFLOWS, encode};
use super::root;
use crate::protocol::guard::session::Session;
use crate::protocol::history::History;
use crate::protocol::ids::Name;
use crate::protocol::row::{Extra, Row};
use crate::protocol::run::Run;

/// Which run: a run's name is its own only within one session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// The workspace it lives in.
    #[serde(rename = "parentWorkspaceId")]
    pub parent: Name,
    /// The run.
    #[serde(rename = "runId")]
    pub run: Name,
}

/// What a document, a lock or a part is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Key {
    /// A task.
    Task {
        /// Its name.
        #[serde(rename = "taskId")]
        task: Name,
    },
    /// A run.
    Run(RunKey),
    /// A session.
    Session {
        /// Its name.
        #[serde(rename = "sessionId")]
        session: Name,
    },
}

impl Key {
    pub(super) fn task(task: &Name) -> Self {
        Self::Task { task: task.clone() }
    }

    pub(super) fn session(session: &Name) -> Self {
        Self::Session { session: session.clone() }
    }

    /// The folders on the way to it, from the root. The last one is its own, which is what is locked.
    pub(super) fn folders(&self) -> Vec<String> {
        match self {
            Self::Task { task } => vec![TASKS.to_owned(), encode(task)],
            Self::Run(RunKey { parent, run }) => {
                vec![SESSIONS.to_owned(), encode(parent), WORKFLOWS.to_owned(), encode(run)]
            }
            Self::Session { session } => vec![SESSIONS.to_owned(), encode(session), GUARD.to_owned()],
        }
    }

    /// How a commit record names the folder: a task's by its name below `tasks`, any other from the root.
    pub(super) fn recorded_folder(&self) -> String {
        match self {
            Self::Task { task } => encode(task),
            Self::Run(_) | Self::Session { .. } => self.folders().join("/"),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task { task } => write!(f, "task `{task}`"),
            Self::Run(RunKey { parent, run }) => write!(f, "run `{run}` of `{parent}`"),
            Self::Session { session } => write!(f, "session `{session}`"),
        }
    }
}

/// A kind of document.
pub(super) trait Body: fmt::Debug + Clone + PartialEq + Serialize + DeserializeOwned {
    /// What the rest of the program is given.
    type Document: Filed + From<Doc<Self>>;
    /// The word in the file.
    const KIND: &'static str;
    /// Its file, in its folder.
    const FILE: &'static str;
    /// Whether it may carry the record of a commit of several files.
    const CARRIES_RECORDS: bool;

    /// What it says it is of.
    fn key(&self) -> Key;

    fn history(&mut self) -> &mut History;
}

/// What the store needs of a document, of whichever kind.
pub(super) trait Filed: fmt::Debug {
    fn revision(&self) -> u64;
    fn fingerprint(&self) -> &str;
    /// The version of a document that a newer version wrote.
    fn newer(&self) -> Option<u64>;
    fn extra(&self) -> &Extra;
}

impl Body for Row {
    type Document = Document;
    const KIND: &'static str = "task";
    const FILE: &'static str = ROW;
    const CARRIES_RECORDS: bool = true;

    fn key(&self) -> Key {
        Key::task(&self.task_id)
    }

    fn history(&mut self) -> &mut History {
        &mut self.history
    }
}

impl Body for Run {
    type Document = RunDocument;
    const KIND: &'static str = "run";
    const FILE: &'static str = RUN;
    const CARRIES_RECORDS: bool = false;

    fn key(&self) -> Key {
        Key::Run(RunKey { parent: self.parent_workspace_id.clone(), run: self.run_id.clone() })
    }

    fn history(&mut self) -> &mut History {
        &mut self.history
    }
}

impl Body for Session {
    type Document = SessionDocument;
    const KIND: &'static str = "session";
    const FILE: &'static str = SESSION;
    const CARRIES_RECORDS: bool = false;

    fn key(&self) -> Key {
        Key::session(&self.session_id)
    }

    fn history(&mut self) -> &mut History {
        &mut self.history
    }
}

/// Where a document lies, and of what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// From the root; the last one is the document's own.
    pub(super) folders: Vec<String>,
    /// `None`: the folder was found in a listing, and the document says itself what it is of.
    key: Option<Key>,
}

impl Place {
    pub(super) fn of(key: Key) -> Self {
        Self { folders: key.folders(), key: Some(key) }
    }

    pub(super) fn listed(folders: &[&str]) -> Self {
        Self { folders: folders.iter().map(|&name| name.to_owned()).collect(), key: None }
    }

    /// Whether a document that was found here may be here. On a file system that folds case, two ids can lead to
    /// one folder.
    pub(super) fn is_of(&self, found: &Key) -> bool {
        found.folders() == self.folders && self.key.as_ref().is_none_or(|key| key == found)
    }

    /// For messages.
    pub(super) fn shown(&self) -> String {
        let folder = || format!("`{}`", self.folders.join("/"));
        self.key.as_ref().map_or_else(folder, ToString::to_string)
    }

    /// The error for a document of this place that is damaged, or of something else.
    pub(super) fn unreadable(&self, path: PathBuf, reason: impl Into<String>) -> StateError {
        let reason = reason.into();
        let folder = |nth: usize| self.folders.get(nth).cloned().unwrap_or_default();
        match &self.key {
            Some(Key::Run(key)) => StateError::RunUnreadable { run: key.run.to_string(), path, reason },
            Some(Key::Task { task }) => StateError::RowUnreadable { task: task.to_string(), path, reason },
            Some(Key::Session { session }) => {
                StateError::SessionUnreadable { session: session.to_string(), path, reason }
            }
            None if folder(0) != SESSIONS => StateError::RowUnreadable { task: folder(1), path, reason },
            None if folder(2) == GUARD => StateError::SessionUnreadable { session: folder(1), path, reason },
            None => StateError::RunUnreadable {
                run: self.folders.last().cloned().unwrap_or_default(),
                path,
                reason,
            },
        }
    }

    /// Opens the folder; something else in the place of one on the way is an unreadable document.
    pub(super) fn open(&self, root: &Dir) -> Result<Option<Dir>> {
        let mut dir = self.top(root)?;
        for name in self.folders.iter().skip(1) {
            let opened = dir.child(name).map_err(|error| match error {
                StateError::Io { source, path, .. } if source.kind() == io::ErrorKind::NotADirectory => {
                    self.unreadable(path, "it is not a folder")
                }
                error => error,
            });
            let Some(next) = opened? else { return Ok(None) };
            dir = next;
        }
        Ok(Some(dir))
    }

    /// Makes the folder and those on the way to it. Nothing is synced.
    pub(super) fn make(&self, root: &Dir) -> Result<Dir> {
        let names = self.folders.iter().skip(1);
        names.into_iter().try_fold(self.top(root)?, |dir, name| dir.make(name))
    }

    /// Makes the folder durable in the one above it, and so on up to the root, whose own names are synced too.
    pub(super) fn sync_above(&self, root: &Dir) -> Result<()> {
        root.sync()?;
        for count in 1..self.folders.len() {
            let above = self.folders.get(..count).unwrap_or_default();
            let missing = || StateError::damaged(root.at(&above.join("/")), "the folder is missing");
            root.descend(above)?.ok_or_else(missing)?.sync()?;
        }
        Ok(())
    }

    fn top(&self, root: &Dir) -> Result<Dir> {
        root::top_of(root, self.folders.first().map_or(TASKS, String::as_str))
    }
}
