//! The sessions of the continuation guard, as the rest of the program is given them.
//!
//! Invariants: only a folder that is not there, or holds nothing of a session, is "no such session"; a session that
//! is asked for and not there leaves nothing behind, for its folder is made by the commit that makes it (O10).

use std::path::PathBuf;

use super::document::SessionDocument;
use super::error::{Result, StateError};
use super::held::Held;
use super::names::{GUARD, SESSION, SESSIONS};
use super::place::{Key, Place};
use super::runs::names_in;
use super::transaction::Transaction;
use super::{Store, evidence, reading, root};
use crate::protocol::guard::session::Session;
use crate::protocol::history::Event;
use crate::protocol::ids::Name;

/// One session of the root, or what is wrong with it.
#[derive(Debug)]
pub struct SessionEntry {
    /// The folder it was found in, from the root.
    pub folder: String,
    /// The session.
    pub doc: Result<SessionDocument>,
}

impl Store {
    /// Reads a session without a lock. `None`: there is no such session.
    pub fn read_session(&self, session: &Name) -> Result<Option<SessionDocument>> {
        reading::read_place::<Session>(&self.open_root()?, &Place::of(Key::session(session)))
    }

    /// Every session, in the order of the folders' names. Workspaces without one are left out.
    pub fn all_sessions(&self) -> Result<Vec<SessionEntry>> {
        let root = self.open_root()?;
        let mut entries = Vec::new();
        for workspace in names_in(&root::top_of(&root, SESSIONS)?)? {
            let place = Place::listed(&[SESSIONS, &workspace, GUARD]);
            let read = reading::read_place::<Session>(&root, &place);
            let folder = place.folders.join("/");
            entries.extend(read.transpose().map(|doc| SessionEntry { folder, doc }));
        }
        Ok(entries)
    }

    /// The file of a session, for people.
    pub fn session_path(&self, session: &Name) -> PathBuf {
        self.below(&Key::session(session).folders()).join(SESSION)
    }

    /// The events that left a session's history, oldest first.
    pub fn session_archives(&self, session: &Session) -> Result<Vec<Event>> {
        evidence::archived(&self.open_root()?, session, &session.history)
    }
}

impl Transaction<'_> {
    /// The session as it stands, if there is one and the plan named it.
    pub fn session(&self) -> Option<&Session> {
        self.session_document().map(|document| &document.session)
    }

    /// The session with what belongs to its file.
    pub fn session_document(&self) -> Option<&SessionDocument> {
        self.session.as_ref().and_then(|held| held.document.as_ref())
    }

    /// Writes the session's bytes again as a whole durable commit: for an answer that rests on what an earlier call
    /// made visible and may have failed to make durable.
    pub fn rewrite_session(&self) -> Result<()> {
        let held = self.session.as_ref();
        held.ok_or_else(|| StateError::internal("the plan named no session"))?.rewrite(&self.root)
    }

    /// Makes sure that the session, which was only read, and its folder are durable.
    pub fn sync_session(&self) -> Result<()> {
        self.session.as_ref().map_or(Ok(()), Held::sync)
    }
}
