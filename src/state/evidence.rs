//! Evidence: receipts and reports, prepared by a commit and read strictly.
//!
//! Invariants: only `ENOENT` is "not found", and only where no commit record names the file; a receipt whose
//! schema, task, attempt or parent is not the one asked for is unreadable, never found and never missing; no
//! evidence file is ever written over.

use sha2::{Digest, Sha256};

use super::Store;
use super::commit::{Staged, Writes};
use super::disk::{Dir, Kind};
use super::document::Document;
use super::error::{Result, StateError, chain};
use super::names::{LATE, TEMP_PREFIX, evidence_file, hex, late_file, receipts_folder, reports_folder};
use super::pending::{self, BODY_BYTES_MAX, PendingFile};
use super::place::{Body, Place};
use super::report::{ReportWrite, late_is_kept};
use crate::protocol::history::{Event, History};
use crate::protocol::ids::{AttemptId, Name};
use crate::protocol::receipt::{RECEIPT_VERSION, Receipt};
use crate::protocol::row::Row;

/// A receipt file is never larger.
const RECEIPT_BYTES_MAX: u64 = 256 * 1024;
/// A history archive is never larger.
const ARCHIVE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What was found where a piece of evidence belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence<T> {
    /// It is there, and is what was asked for.
    Found(T),
    /// It is positively not there.
    NotFound,
    /// Something is there, or nobody can tell: the text is for people.
    Unreadable(String),
}

impl<T> Evidence<T> {
    pub(super) fn of(found: Result<Option<T>>) -> Self {
        match found {
            Ok(Some(found)) => Self::Found(found),
            Ok(None) => Self::NotFound,
            Err(error) => Self::Unreadable(chain(&error)),
        }
    }
}

/// Steps 2 and 3 of a commit: prepares every evidence file beside its place.
pub(super) fn stage(root: &Dir, id: &str, writes: &mut Writes, staged: &mut Staged) -> Result<()> {
    for write in &writes.receipts {
        // The parent's copy is put in place last: where it is, all are.
        for workspace in write.workspaces.iter().rev() {
            stage_receipt(root, id, workspace, &write.receipt, staged)?;
        }
    }
    writes.report.as_mut().map_or(Ok(()), |report| stage_report(root, id, report, staged))
}

fn folder_for(root: &Dir, folders: &[&str], staged: &mut Staged) -> Result<Dir> {
    let dir = pending::make_folders(root, folders, &mut staged.synced)?;
    // The task's row is locked and nothing of an earlier commit is left to be put in place, so every temp that
    // this commit did not make is a dead one's.
    let ours: Vec<&str> = staged.files.iter().map(|file| file.staged.as_str()).collect();
    pending::sweep(&dir, |name| ours.contains(&name));
    Ok(dir)
}

fn stage_receipt(
    root: &Dir,
    id: &str,
    workspace: &Name,
    receipt: &Receipt,
    staged: &mut Staged,
) -> Result<()> {
    let folders = receipts_folder(workspace, &receipt.task_id);
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let name = evidence_file(Some(&receipt.attempt_id));
    let path = format!("{}/{name}", folders.join("/"));
    if staged.files.iter().any(|file| file.path == path) {
        return Ok(());
    }
    let dir = folder_for(root, &folders, staged)?;
    let mut body = serde_json::to_string(receipt)
        .map_err(|error| StateError::internal(format!("a receipt cannot be encoded: {error}")))?;
    body.push('\n');
    if let Some(found) = dir.read(&name, RECEIPT_BYTES_MAX)? {
        let same = serde_json::from_slice::<Receipt>(&found).is_ok_and(|found| found == *receipt);
        let existing = String::from_utf8(found).ok().filter(|_| same);
        body = existing.ok_or_else(|| {
            let reason = "it is not the same record".to_owned();
            StateError::ReceiptConflict { path: dir.at(&name), reason }
        })?;
        // It may have been put there by a call that died before the file was proven durable.
        dir.sync_file(&name)?;
        staged.files.push(named(path, existing_name(id), body.as_bytes()));
        return Ok(());
    }
    let temp = dir.temp_with(body.as_bytes())?;
    staged.files.push(named(path, temp.name(), body.as_bytes()));
    staged.prepared.push(temp.prepared());
    if body.len() > BODY_BYTES_MAX { dir.sync() } else { Ok(()) }
}

fn named(path: String, staged: String, content: &[u8]) -> PendingFile {
    let body = Some(content).filter(|content| content.len() <= BODY_BYTES_MAX);
    let body = body.and_then(|content| String::from_utf8(content.to_vec()).ok());
    PendingFile { path, staged, sha256: hex(&Sha256::digest(content)), body }
}

/// The prepared name of a file that was in its place before: nothing has it.
fn existing_name(id: &str) -> String {
    format!("{TEMP_PREFIX}none-{id}")
}

fn stage_report(root: &Dir, id: &str, report: &mut ReportWrite, staged: &mut Staged) -> Result<()> {
    let meta = &report.meta;
    let folders = reports_folder(&meta.parent, &meta.task);
    let mut folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let attempt = meta.attempt.as_ref();
    let name = if report.late { late_file(attempt, &report.text.sha256) } else { evidence_file(attempt) };
    if report.late {
        folders.push(LATE);
    }
    let dir = folder_for(root, &folders, staged)?;
    if report.late && late_is_kept(&dir, &meta.task, &name, &report.text.sha256)? {
        dir.sync_file(&name)?;
        return dir.sync();
    }
    let path = format!("{}/{name}", folders.join("/"));
    let mut temp = dir.temp()?;
    let sha256 = temp.write(|writer| report.text.encode_hashed(&report.meta, writer))?;
    if dir.kind(&name)?.is_some() {
        if pending::digest_of(&dir, &name)?.as_deref() != Some(&sha256) {
            let reason = "it is not the same report".to_owned();
            return Err(StateError::ReportConflict { path: dir.at(&name), reason });
        }
        dir.sync_file(&name)?;
        staged.files.push(PendingFile { path, staged: existing_name(id), sha256, body: None });
        return Ok(());
    }
    temp.sync()?;
    staged.files.push(PendingFile { path, staged: temp.name(), sha256, body: None });
    staged.prepared.push(temp.prepared());
    dir.sync()
}

impl Store {
    /// The parent's copy of the receipt of one of a task's attempts.
    pub fn read_receipt(&self, document: &Document, attempt: &AttemptId) -> Evidence<Receipt> {
        match self.find_receipt(document, attempt) {
            Ok(None) => Evidence::NotFound,
            Ok(Some(bytes)) => match parse_receipt(&bytes, &document.row, attempt) {
                Ok(receipt) => Evidence::Found(receipt),
                Err(reason) => Evidence::Unreadable(reason),
            },
            Err(error) => Evidence::Unreadable(chain(&error)),
        }
    }

    fn find_receipt(&self, document: &Document, attempt: &AttemptId) -> Result<Option<Vec<u8>>> {
        let folders = receipts_folder(&document.row.parent_workspace_id, &document.row.task_id);
        let name = evidence_file(Some(attempt));
        let path = format!("{}/{name}", folders.join("/"));
        let dir = self.open_root()?.descend(&folders)?;
        if let Some(found) = dir.as_ref().map_or(Ok(None), |dir| dir.read(&name, RECEIPT_BYTES_MAX))? {
            return Ok(Some(found));
        }
        let Some(pending) = document.files.iter().find(|file| file.path == path) else { return Ok(None) };
        if let Some(body) = &pending.body {
            return Ok(Some(body.clone().into_bytes()));
        }
        let missing = || {
            StateError::damaged(self.root.join(&path), "it is missing, though a row says that it was written")
        };
        let dir = dir.ok_or_else(missing)?;
        let staged = dir.read(&pending.staged, RECEIPT_BYTES_MAX)?;
        // It may have been put in place between the two looks.
        let found = staged.map_or_else(|| dir.read(&name, RECEIPT_BYTES_MAX), |found| Ok(Some(found)))?;
        let whole = found.filter(|found| hex(&Sha256::digest(found)) == pending.sha256);
        whole.map(Some).ok_or_else(missing)
    }

    /// The events that left a row's history, oldest first.
    pub fn archives(&self, row: &Row) -> Result<Vec<Event>> {
        archived(&self.open_root()?, row, &row.history)
    }
}

/// The events that left a history, from the archives beside the row or run it is of.
pub(super) fn archived<B: Body>(root: &Dir, body: &B, history: &History) -> Result<Vec<Event>> {
    let Some(dir) = Place::of(body.key()).open(root)? else { return Ok(vec![]) };
    let mut events = Vec::new();
    for number in 1..=history.archives {
        let file = super::names::history_file(number);
        let damaged = |reason: String| StateError::damaged(dir.at(&file), reason);
        let bytes = dir.read(&file, ARCHIVE_BYTES_MAX)?.ok_or_else(|| damaged("it is missing".to_owned()))?;
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event: Event = serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
            events.push(event);
        }
        // Events are numbered without a gap, so lost ones are noticed.
        let next = events.last().map_or(0, |event| event.n) + 1;
        let whole = (1..next).eq(events.iter().map(|event| event.n));
        let follows = history.events.first().is_none_or(|event| event.n == next);
        if !whole || (number == history.archives && !follows) {
            return Err(damaged("events are missing from it".to_owned()));
        }
    }
    Ok(events)
}

fn parse_receipt(bytes: &[u8], row: &Row, attempt: &AttemptId) -> std::result::Result<Receipt, String> {
    let receipt: Receipt =
        serde_json::from_slice(bytes).map_err(|error| format!("the receipt is malformed: {error}"))?;
    let wrong = |what: &str| Err(format!("the receipt is of another {what}"));
    if receipt.version != RECEIPT_VERSION {
        return wrong("version");
    }
    if receipt.task_id != row.task_id {
        return wrong("task");
    }
    if receipt.attempt_id != *attempt {
        return wrong("attempt");
    }
    if receipt.parent_workspace_id != row.parent_workspace_id {
        return wrong("parent");
    }
    Ok(receipt)
}

/// Whether a folder holds anything at all.
pub(super) fn is_empty(dir: &Dir) -> Result<bool> {
    Ok(dir.list()?.is_empty())
}

/// Whether a name is a regular file.
pub(super) fn is_file(dir: &Dir, name: &str) -> Result<bool> {
    Ok(dir.kind(name)? == Some(Kind::File))
}
