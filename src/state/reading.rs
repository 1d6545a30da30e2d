//! Reading a document without changing anything: through a commit of several that is not finished.
//!
//! Invariant: what is returned was the document's current content at an instant between the call and its return,
//! whatever other processes did meanwhile. The order of the steps is what guarantees it: the folder is listed
//! *before* the document is read, so a part that the listing does not show cannot have replaced an older one.

use std::time::Duration;

use super::disk::{Dir, Kind};
use super::document::{self, Doc};
use super::error::{Result, StateError};
use super::names::PART_PREFIX;
use super::pending::{PartOf, Pending};
use super::place::{Body, Key, Place};
use crate::protocol::row::Row;

/// A reading that is overtaken this often in a row gives up.
const ATTEMPTS_MAX: u32 = 256;

/// What the home row of a part says about it.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The part is the content: its commit happened.
    Committed {
        /// The whole record.
        record: Pending,
        /// The folder of the home row.
        home: Dir,
    },
    /// Its commit has not happened.
    NotCommitted,
}

/// The names of the parts in a folder.
pub(super) fn parts_in(dir: &Dir) -> Result<Vec<String>> {
    let entries = dir.list()?.into_iter();
    Ok(entries.filter(|entry| entry.name.starts_with(PART_PREFIX)).map(|entry| entry.name).collect())
}

/// Reads a part, and what it says about itself. `None`: it is gone.
pub(super) fn read_part<B: Body>(dir: &Dir, part: &str, place: &Place) -> Result<Option<(Doc<B>, PartOf)>> {
    let Some(document) = document::read::<B>(dir, part, place)? else { return Ok(None) };
    let id = part.strip_prefix(PART_PREFIX);
    let Some(commit) = document.commit.clone().filter(|commit| Some(commit.id.as_str()) == id) else {
        return Err(place.unreadable(dir.at(part), "it does not say which commit it is a part of"));
    };
    Ok(Some((document, commit)))
}

/// Asks the home row whether a part's commit happened.
pub(super) fn verdict(root: &Dir, commit: &PartOf) -> Result<Verdict> {
    let place = Place::of(Key::task(&commit.home));
    let Some(home) = place.open(root)? else { return Ok(Verdict::NotCommitted) };
    let found = document::read_current::<Row>(&home, &place)?;
    Ok(match found.and_then(|document| document.pending) {
        Some(record) if record.id == commit.id => Verdict::Committed { record, home },
        _ => Verdict::NotCommitted,
    })
}

/// Reads the document of a place. `None`: there is none.
pub(super) fn read_place<B: Body>(root: &Dir, place: &Place) -> Result<Option<B::Document>> {
    place.open(root)?.map_or(Ok(None), |dir| read_through::<B>(root, &dir, place))
}

/// Reads the document of an open folder. `None`: there is none.
pub(super) fn read_through<B: Body>(root: &Dir, dir: &Dir, place: &Place) -> Result<Option<B::Document>> {
    for attempt in 0..ATTEMPTS_MAX {
        if let Reading::Whole(answer) = read_once::<B>(root, dir, place)? {
            return Ok(answer.map(|document| (*document).into()));
        }
        if attempt > 8 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let waited = Duration::from_millis(u64::from(ATTEMPTS_MAX));
    Err(StateError::Busy { what: place.shown(), waited })
}

/// What one reading came to.
enum Reading<B> {
    Whole(Option<Box<Doc<B>>>),
    /// Another process changed the folder meanwhile, so that nothing is known.
    Overtaken,
}

/// One reading.
fn read_once<B: Body>(root: &Dir, dir: &Dir, place: &Place) -> Result<Reading<B>> {
    let parts = parts_in(dir)?;
    let current = document::read_current::<B>(dir, place)?;
    let revision = current.as_ref().map_or(0, |document| document.revision);
    for part in parts {
        let Some((mut document, commit)) = read_part::<B>(dir, &part, place)? else {
            return Ok(Reading::Overtaken);
        };
        if commit.from != revision {
            continue;
        }
        match verdict(root, &commit)? {
            Verdict::Committed { record, .. } => {
                document.files = record.files;
                return Ok(Reading::Whole(Some(Box::new(document))));
            }
            // The home row drops its record only after the part was put in place. So a part that is still here
            // was not committed, and one that is gone may have been, before or after the document was read.
            Verdict::NotCommitted if dir.kind(&part)? == Some(Kind::File) => {}
            Verdict::NotCommitted => return Ok(Reading::Overtaken),
        }
    }
    Ok(Reading::Whole(current.map(Box::new)))
}
