//! The commit record: what a commit of more than one file still has to put in place.
//!
//! It is the `pending` member of the home row's document, so that the rename of the home row is the one commit
//! point. Invariants: everything it names was written and synced beside its place before that rename; putting
//! something in place twice is the same as once; nothing is put over bytes that are newer or that are not what
//! the record says.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::disk::{CHUNK_BYTES, Dir, Kind};
use super::error::{Result, StateError};
use super::names::{SESSIONS, TEMP_PREFIX, hex, is_hex};
use super::place::Key;
use crate::protocol::ids::Name;

/// The text of an evidence file is kept in the record as well up to this size.
pub(super) const BODY_BYTES_MAX: usize = 4096;

/// A commit record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// The transaction: 32 hex digits.
    pub id: String,
    /// Evidence files, in the order they are put in place.
    #[serde(default)]
    pub files: Vec<PendingFile>,
    /// The other rows, the run and the session.
    #[serde(default)]
    pub rows: Vec<PendingRow>,
}

/// One evidence file of a commit record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingFile {
    /// Its place, from the root.
    pub path: String,
    /// The name it was prepared under, in the same folder.
    pub staged: String,
    /// SHA-256 of its content, in hex.
    pub sha256: String,
    /// Its content, where it is small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// One other row of a commit record, its run or its session.
///
/// A program that knows no sessions finds a session's entry malformed, and so leaves alone a record it could only
/// half put in place. So it was with runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingRow {
    /// Of what it is.
    #[serde(flatten)]
    pub of: Key,
    /// A task's folder under `tasks`; any other from the root.
    pub folder: String,
    /// The revision it replaces; 0: there was none.
    pub from: u64,
    /// The name it was prepared under, in that folder.
    pub staged: String,
}

/// What a prepared document says about the commit it is a part of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartOf {
    /// The transaction.
    pub id: String,
    /// The task whose row's rename commits it.
    pub home: Name,
    /// The revision it replaces.
    pub from: u64,
}

impl Pending {
    /// Whether there is nothing to put in place.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.rows.is_empty()
    }

    /// What is wrong with a record that was read. A record never leads out of the root.
    pub(super) fn malformed(&self) -> Option<String> {
        if !is_hex(&self.id, 32) {
            return Some("its id is not 32 hex digits".to_owned());
        }
        let plain =
            |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
        let staged = |name: &str| plain(name) && name.starts_with(TEMP_PREFIX);
        for file in &self.files {
            let mut parts = file.path.split('/');
            let inside =
                parts.next() == Some(SESSIONS) && file.path.split('/').count() >= 4 && parts.all(plain);
            if !inside || !staged(&file.staged) || !is_hex(&file.sha256, 64) {
                return Some(format!("`{}` is not an evidence file", file.path.escape_debug()));
            }
        }
        let fits = |part: &PendingRow| part.of.recorded_folder() == part.folder && staged(&part.staged);
        let bad = self.rows.iter().find(|part| !fits(part));
        bad.map(|part| format!("`{}` is not the folder of {}", part.folder.escape_debug(), part.of))
    }
}

impl PendingFile {
    /// The folders on the way to it, and its name.
    pub(super) fn place(&self) -> (Vec<&str>, &str) {
        let mut parts: Vec<&str> = self.path.split('/').collect();
        let name = parts.pop().unwrap_or_default();
        (parts, name)
    }
}

/// Whether what was prepared has been read back since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// This call wrote and synced it a moment ago.
    Fresh,
    /// Another call did, maybe before a power failure.
    Verify,
}

/// The SHA-256 of a file, streamed. `None`: there is none.
pub(super) fn digest_of(dir: &Dir, name: &str) -> Result<Option<String>> {
    let Some(mut file) = dir.open_file(name)? else { return Ok(None) };
    digest_stream(&mut file).map(Some).map_err(|error| StateError::io("read", dir.at(name), error))
}

pub(super) fn digest_stream(reader: &mut dyn io::Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(hex(&digest.finalize())),
            Ok(n) => digest.update(chunk.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Makes the folders of an evidence file, and makes each durable in the one above it, `sessions` included.
///
/// A folder that exists is synced into its parent as well: whoever made it may have died before it was durable.
pub(super) fn make_folders(root: &Dir, names: &[&str], synced: &mut BTreeSet<PathBuf>) -> Result<Dir> {
    let mut folder: Option<Dir> = None;
    for name in names {
        let above = folder.as_ref().unwrap_or(root);
        let made = above.make(name)?;
        if synced.insert(made.path().to_owned()) {
            above.sync()?;
        }
        folder = Some(made);
    }
    folder.ok_or_else(|| StateError::internal("an evidence file without a folder"))
}

/// Puts every evidence file of a record in its place, and makes that durable.
pub(super) fn place_files(root: &Dir, files: &[PendingFile], trust: Trust) -> Result<()> {
    let mut synced = BTreeSet::new();
    for file in files {
        let (folders, name) = file.place();
        let dir = match root.descend(&folders)? {
            Some(dir) => dir,
            None if file.body.is_some() => make_folders(root, &folders, &mut synced)?,
            None => return Err(StateError::damaged(root.at(&file.path), "its folder is missing")),
        };
        place_file(&dir, name, file, trust)?;
        dir.sync()?;
    }
    Ok(())
}

fn place_file(dir: &Dir, name: &str, file: &PendingFile, trust: Trust) -> Result<()> {
    if trust == Trust::Fresh && dir.kind(name)?.is_none() {
        return dir.rename(&file.staged, name);
    }
    if in_place(dir, name, file)? {
        // A file that was there before the commit has no prepared twin, and removing nothing is fine.
        return dir.remove(&file.staged);
    }
    if digest_of(dir, &file.staged)?.is_some_and(|found| found == file.sha256) {
        match dir.rename(&file.staged, name) {
            Ok(()) => return Ok(()),
            // Another process finishes the same record: it put the same bytes there.
            Err(error) => return if in_place(dir, name, file)? { Ok(()) } else { Err(error) },
        }
    }
    match &file.body {
        Some(body) if hex(&Sha256::digest(body.as_bytes())) == file.sha256 => {
            dir.temp_with(body.as_bytes())?.rename_to(name)
        }
        _ if in_place(dir, name, file)? => Ok(()),
        _ => Err(StateError::damaged(dir.at(name), "it is missing, though a row says that it was written")),
    }
}

/// Whether a file has its place. What lies there with other content was damaged after the commit, which refuses
/// to go over another file: it is never written over, whoever reads it finds it unreadable, and it must not
/// keep its task from being stopped.
fn in_place(dir: &Dir, name: &str, file: &PendingFile) -> Result<bool> {
    match dir.kind(name)? {
        None => Ok(false),
        Some(Kind::File) => Ok(true),
        Some(_) => {
            let reason = format!("it is no file, though a row says that {} was written there", file.sha256);
            Err(StateError::damaged(dir.at(name), reason))
        }
    }
}

/// Writes every evidence file of a record anew, after an earlier call may have failed to make it durable.
pub(super) fn rewrite_files(root: &Dir, files: &[PendingFile]) -> Result<()> {
    place_files(root, files, Trust::Verify)?;
    for file in files {
        let (folders, name) = file.place();
        let missing = || StateError::damaged(root.at(&file.path), "it is missing");
        let dir = root.descend(&folders)?.ok_or_else(missing)?;
        if digest_of(&dir, name)?.as_deref() != Some(&file.sha256) {
            // Damaged since; writing it anew would only make the damage durable.
            continue;
        }
        let mut source = dir.open_file(name)?.ok_or_else(missing)?;
        let mut temp = dir.temp()?;
        temp.write(|writer| io::copy(&mut source, writer))?;
        if digest_of(&dir, &temp.name())?.as_deref() != Some(&file.sha256) {
            return Err(StateError::damaged(dir.at(name), "it changed while it was written anew"));
        }
        temp.sync()?;
        temp.rename_to(name)?;
        dir.sync()?;
    }
    Ok(())
}

/// Removes leftover temps of ours from a folder whose only writer this process is, as far as it can.
pub(super) fn sweep(dir: &Dir, keep: impl Fn(&str) -> bool) {
    for entry in dir.list().unwrap_or_default() {
        if entry.kind == Kind::File && entry.name.starts_with(TEMP_PREFIX) && !keep(&entry.name) {
            // A leftover does no harm, so failing to remove it is no reason to fail.
            drop(dir.remove(&entry.name));
        }
    }
}

/// Sweeps the folders of a record's evidence, once all of it is in its place: a call that died while it put the
/// record in place or wrote it anew may have left temps there. Only in folders of the task whose lock is held.
pub(super) fn sweep_beside(root: &Dir, files: &[PendingFile], task_folder: &str) {
    for file in files {
        let (folders, _) = file.place();
        if folders.get(3).is_some_and(|folder| *folder == task_folder)
            && let Ok(Some(dir)) = root.descend(&folders)
        {
            sweep(&dir, |_| false);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;

    fn record(path: &str, staged: &str) -> Pending {
        let file =
            PendingFile { path: path.into(), staged: staged.into(), sha256: "0".repeat(64), body: None };
        Pending { id: "a".repeat(32), files: vec![file], rows: vec![] }
    }

    #[test]
    fn a_part_says_in_its_record_whether_it_is_of_a_task_or_of_a_run() {
        let parse = |of: &str, folder: &str| {
            let part = format!(r#"{{{of},"folder":"{folder}","from":1,"staged":".lych-part-x"}}"#);
            let record = format!(r#"{{"id":"{}","rows":[{part}]}}"#, "a".repeat(32));
            let record: Pending = serde_json::from_str(&record).unwrap();
            assert!(serde_json::to_string(&record).unwrap().contains(&part), "{part}");
            record.malformed()
        };
        assert_eq!(parse(r#""taskId":"t/1""#, "t%2F1"), None);
        let run = r#""parentWorkspaceId":"w/1","runId":"r""#;
        assert_eq!(parse(run, "sessions/w%2F1/workflows/r"), None);
        for (of, folder) in [(run, "r"), (run, "sessions/w%2F1/workflows/s"), (r#""taskId":"t""#, "tasks/t")]
        {
            assert!(parse(of, folder).is_some(), "{of} {folder}");
        }
    }

    #[test]
    fn a_record_never_leads_out_of_the_root() {
        assert_eq!(record("sessions/w/k/t/a.json", ".lych-x").malformed(), None);
        for (path, staged) in [
            ("sessions/../../etc/t/x", ".lych-x"),
            ("/sessions/w/k/x", ".lych-x"),
            ("tasks/a/b/row.json", ".lych-x"),
            ("sessions//k/t", ".lych-x"),
            ("sessions/w/k/t/a.json", "../x"),
            ("sessions/w/k/t/a.json", ".lych-/../x"),
            ("sessions/w/k/t/a.json", "a.json"),
        ] {
            assert!(record(path, staged).malformed().is_some(), "{path} {staged}");
        }
    }
}
