//! The file of a row, of a run or of a session: one JSON object that carries the SHA-256 of the exact bytes of its `document`.
//!
//! ```text
//! {"sha256":"<64 hex>","document":{"version":1,"kind":"task","revision":N,"commit":{..}?,"pending":{..}?,"body":{..}}}\n
//! ```
//!
//! The kinds are `task`, `run` and `session`. Only a row has a commit record: evidence always goes with one.
//!
//! Invariants: a file is read only if encoding what was found gives the same bytes again, so every flipped,
//! missing or added byte is noticed; what is written was decoded and compared first; fields of `document`
//! this version does not know survive a rewrite.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::disk::Dir;
use super::error::{Result, StateError};
use super::names::{hex, is_history_file};
use super::pending::{PartOf, Pending, PendingFile};
use super::place::{Body, Filed, Place};
use crate::protocol::guard::session::Session;
use crate::protocol::row::{Extra, Row};
use crate::protocol::run::Run;

/// The version of the format this program writes.
const VERSION: u64 = 1;
/// A document's file is never larger.
pub(super) const DOCUMENT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// A document as it was read, of whichever kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Doc<B> {
    pub(super) revision: u64,
    pub(super) body: B,
    pub(super) newer: bool,
    pub(super) pending: Option<Pending>,
    pub(super) fingerprint: String,
    version: u64,
    /// Evidence files that count as present although they may still lie beside their places.
    pub(super) files: Vec<PendingFile>,
    pub(super) commit: Option<PartOf>,
    extra: Extra,
}

/// A row as it was read, with what belongs to the file and not to the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// How many commits the row has seen.
    pub revision: u64,
    /// The row.
    pub row: Row,
    /// Written by a newer major version: it is looked at, never changed.
    pub newer: bool,
    /// Evidence and other rows that the row's last commit may not have put in place yet.
    pub pending: Option<Pending>,
    /// SHA-256 of the document's bytes, in hex: two readings are of the same row file if it is equal.
    pub fingerprint: String,
    version: u64,
    pub(super) files: Vec<PendingFile>,
    extra: Extra,
}

/// The checkpoints of a run as they were read, with what belongs to the file and not to the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDocument {
    /// How many commits the run has seen.
    pub revision: u64,
    /// The run.
    pub run: Run,
    /// Written by a newer major version: it is looked at, never changed.
    pub newer: bool,
    /// SHA-256 of the document's bytes, in hex: two readings are of the same file if it is equal.
    pub fingerprint: String,
    version: u64,
    extra: Extra,
}

/// A session as it was read, with what belongs to the file and not to the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDocument {
    /// How many commits the session has seen.
    pub revision: u64,
    /// The session.
    pub session: Session,
    /// Written by a newer major version: it is looked at, never changed.
    pub newer: bool,
    /// SHA-256 of the document's bytes, in hex: two readings are of the same file if it is equal.
    pub fingerprint: String,
    version: u64,
    extra: Extra,
}

impl From<Doc<Row>> for Document {
    fn from(doc: Doc<Row>) -> Self {
        let Doc { revision, body: row, newer, pending, fingerprint, version, files, commit: _, extra } = doc;
        Self { revision, row, newer, pending, fingerprint, version, files, extra }
    }
}

impl From<Doc<Run>> for RunDocument {
    fn from(doc: Doc<Run>) -> Self {
        let Doc { revision, body: run, newer, fingerprint, version, extra, .. } = doc;
        Self { revision, run, newer, fingerprint, version, extra }
    }
}

impl From<Doc<Session>> for SessionDocument {
    fn from(doc: Doc<Session>) -> Self {
        let Doc { revision, body: session, newer, fingerprint, version, extra, .. } = doc;
        Self { revision, session, newer, fingerprint, version, extra }
    }
}

macro_rules! filed {
    ($document:ident) => {
        impl Filed for $document {
            fn revision(&self) -> u64 {
                self.revision
            }

            fn fingerprint(&self) -> &str {
                &self.fingerprint
            }

            fn newer(&self) -> Option<u64> {
                Some(self.version).filter(|_| self.newer)
            }

            fn extra(&self) -> &Extra {
                &self.extra
            }
        }
    };
}

filed!(Document);
filed!(RunDocument);
filed!(SessionDocument);

/// What a document is made of.
pub(super) struct NextDocument<'a, B> {
    pub(super) revision: u64,
    pub(super) commit: Option<&'a PartOf>,
    pub(super) pending: Option<&'a Pending>,
    pub(super) body: &'a B,
    pub(super) extra: &'a Extra,
}

/// Why bytes are not a document of this kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Damage {
    Unreadable(String),
    Newer(u64),
}

#[derive(Serialize)]
struct Wire<'a, B> {
    version: u64,
    kind: &'static str,
    revision: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a PartOf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<&'a Pending>,
    body: &'a B,
    #[serde(flatten)]
    extra: &'a Extra,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    sha256: String,
    #[serde(borrow)]
    document: &'a RawValue,
}

fn envelope(document: &str) -> Vec<u8> {
    let digest = hex(&Sha256::digest(document.as_bytes()));
    format!("{{\"sha256\":\"{digest}\",\"document\":{document}}}\n").into_bytes()
}

/// Encodes a document, and reads it back before anybody relies on it.
pub(super) fn encode<B: Body>(next: &NextDocument<'_, B>) -> Result<Vec<u8>> {
    let wire = Wire {
        version: VERSION,
        kind: B::KIND,
        revision: next.revision,
        commit: next.commit,
        pending: next.pending,
        body: next.body,
        extra: next.extra,
    };
    let key = next.body.key();
    let document = serde_json::to_string(&wire)
        .map_err(|error| StateError::internal(format!("{key} cannot be encoded: {error}")))?;
    let bytes = envelope(&document);
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        let source =
            io::Error::new(io::ErrorKind::FileTooLarge, format!("it would have {} bytes", bytes.len()));
        return Err(StateError::io("write", format!("{}/{}", key.folders().join("/"), B::FILE), source));
    }
    let same = decode::<B>(&bytes).is_ok_and(|read| {
        read.revision == next.revision
            && read.body == *next.body
            && read.commit.as_ref() == next.commit
            && read.pending.as_ref() == next.pending
            && read.extra == *next.extra
            && !read.newer
    });
    if !same {
        return Err(StateError::internal(format!("{key} would not read back as it was written")));
    }
    Ok(bytes)
}

/// Decodes a document of one kind.
pub(super) fn decode<B: Body>(bytes: &[u8]) -> std::result::Result<Doc<B>, Damage> {
    let unreadable = |reason: &str| Damage::Unreadable(reason.to_owned());
    if bytes.iter().all(|byte| *byte == 0) {
        return Err(unreadable(if bytes.is_empty() { "it is empty" } else { "it holds nothing but zeros" }));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8"))?;
    let found: Envelope<'_> = serde_json::from_str(text)
        .map_err(|error| Damage::Unreadable(format!("it is not a file of ours: {error}")))?;
    let digest = hex(&Sha256::digest(found.document.get().as_bytes()));
    if digest != found.sha256 {
        return Err(unreadable("its checksum does not match"));
    }
    if envelope(found.document.get()) != bytes {
        return Err(unreadable("it is not exactly what was written"));
    }
    decode_document(found.document.get(), digest)
}

fn decode_document<B: Body>(text: &str, fingerprint: String) -> std::result::Result<Doc<B>, Damage> {
    let malformed = |what: &str, why: &dyn std::fmt::Display| {
        Damage::Unreadable(format!("its {what} is malformed: {why}"))
    };
    let mut fields: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| malformed("document", &error))?;
    let mut take = |name: &str| fields.shift_remove(name);
    let version =
        take("version").and_then(|value| value.as_u64()).ok_or_else(|| malformed("version", &"no number"))?;
    let newer = version > VERSION;
    // What a newer version wrote may be malformed only in our eyes.
    let damage = |what: &str, why: &dyn std::fmt::Display| {
        if newer { Damage::Newer(version) } else { malformed(what, why) }
    };
    if version == 0 {
        return Err(malformed("version", &"it is 0"));
    }
    if take("kind").as_ref().and_then(Value::as_str) != Some(B::KIND) {
        return Err(damage("kind", &format_args!("it is not `{}`", B::KIND)));
    }
    let revision = take("revision").and_then(|value| value.as_u64()).filter(|revision| *revision > 0);
    let revision = revision.ok_or_else(|| damage("revision", &"no number above 0"))?;
    let commit: Option<PartOf> =
        take("commit").map(serde_json::from_value).transpose().map_err(|error| damage("commit", &error))?;
    let pending: Option<Pending> =
        take("pending").map(serde_json::from_value).transpose().map_err(|error| damage("pending", &error))?;
    if pending.is_some() && !B::CARRIES_RECORDS {
        return Err(damage("pending", &"only a row carries the record of a commit"));
    }
    if let Some(reason) = pending.as_ref().and_then(Pending::malformed) {
        return Err(damage("pending", &reason));
    }
    let body = take("body").ok_or_else(|| damage("body", &"it is missing"))?;
    let body: B = serde_json::from_value(body).map_err(|error| damage("body", &error))?;
    let files = pending.as_ref().map(|pending| pending.files.clone()).unwrap_or_default();
    Ok(Doc { version, revision, body, newer, pending, fingerprint, files, commit, extra: fields })
}

/// Reads a document, or a prepared one, of the place whose folder this is.
pub(super) fn read<B: Body>(dir: &Dir, file: &str, place: &Place) -> Result<Option<Doc<B>>> {
    let unreadable = |reason: String| place.unreadable(dir.at(file), reason);
    let bytes = match dir.read(file, DOCUMENT_BYTES_MAX) {
        Ok(None) => return Ok(None),
        Ok(Some(bytes)) => bytes,
        Err(StateError::Io { source, .. }) if source.kind() == io::ErrorKind::InvalidData => {
            return Err(unreadable(source.to_string()));
        }
        Err(error) => return Err(error),
    };
    let document = decode::<B>(&bytes).map_err(|damage| match damage {
        Damage::Unreadable(reason) => unreadable(reason),
        Damage::Newer(found) => StateError::NewerVersion { path: dir.at(file), found },
    })?;
    let found = document.body.key();
    if !place.is_of(&found) {
        return Err(unreadable(format!("it is of {found}")));
    }
    Ok(Some(document))
}

/// Reads the document itself, without looking for a prepared successor.
pub(super) fn read_current<B: Body>(dir: &Dir, place: &Place) -> Result<Option<Doc<B>>> {
    let found = read(dir, B::FILE, place)?;
    if found.is_none() && dir.list()?.iter().any(|entry| is_history_file(&entry.name)) {
        // Only what was committed often leaves an archive, and no document is ever removed.
        return Err(place.unreadable(dir.at(B::FILE), "it is missing, though its history is there"));
    }
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::super::testing::row;
    use super::*;

    fn encoded(extra: &Extra) -> Vec<u8> {
        let row = row("t", "ws");
        encode(&NextDocument { revision: 7, commit: None, pending: None, body: &row, extra }).unwrap()
    }

    fn with_document(document: &str) -> Vec<u8> {
        envelope(document)
    }

    #[test]
    fn reads_back_what_it_wrote_with_unknown_fields() {
        let extra: Extra = serde_json::from_str(r#"{"later":{"a":[1,2.5]}}"#).unwrap();
        let read = decode::<Row>(&encoded(&extra)).unwrap();
        assert_eq!((read.revision, read.body.task_id.as_str(), read.newer), (7, "t", false));
        assert_eq!(read.extra, extra);
    }

    #[test]
    fn every_flipped_and_every_missing_byte_is_noticed() {
        let good = encoded(&Extra::new());
        for at in 0..good.len() {
            for bit in [0x01, 0x20, 0x80] {
                let mut bad = good.clone();
                bad[at] ^= bit;
                assert!(decode::<Row>(&bad).is_err(), "byte {at}, bit {bit}");
            }
            assert!(decode::<Row>(&good[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn what_is_not_one_row_is_unreadable() {
        let good = encoded(&Extra::new());
        let twice = [good.clone(), good.clone()].concat();
        let spaced = [b" ".as_slice(), &good].concat();
        for bad in [b"".as_slice(), &[0; 512], b"null\n", b"[]\n", b"{}\n", &twice, &spaced, b"\xff\xfe"] {
            assert!(matches!(decode::<Row>(bad), Err(Damage::Unreadable(_))), "{bad:?}");
        }
        for document in ["null", "{}", r#"{"version":1}"#, r#"{"version":1,"kind":"run","revision":1}"#] {
            assert!(
                matches!(decode::<Row>(&with_document(document)), Err(Damage::Unreadable(_))),
                "{document}"
            );
        }
    }

    #[test]
    fn a_newer_version_is_looked_at_where_its_body_allows() {
        let body = serde_json::to_string(&row("t", "ws")).unwrap();
        let newer = with_document(&format!(r#"{{"version":2,"kind":"task","revision":1,"body":{body}}}"#));
        assert!(decode::<Row>(&newer).unwrap().newer);
        let strange = with_document(r#"{"version":2,"kind":"task","revision":1,"body":{"other":1}}"#);
        assert_eq!(decode::<Row>(&strange), Err(Damage::Newer(2)));
    }

    #[test]
    fn a_row_that_would_not_read_back_is_not_written() {
        let mut row = row("t", "ws");
        row.extra.insert("taskId".to_owned(), Value::from("other"));
        let extra = Extra::new();
        let next = NextDocument { revision: 1, commit: None, pending: None, body: &row, extra: &extra };
        assert!(matches!(encode(&next), Err(StateError::Internal { .. })));
    }
}
