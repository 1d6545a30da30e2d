//! Report files: one JSON object whose last member is the text.
//!
//! Invariants: a report file never changes; one that counts is read only if its SHA-256 is the one its row
//! names; one under `late/` only if its text has the SHA-256 it names itself.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Store;
use super::disk::{CHUNK_BYTES, Dir, Kind};
use super::document::Document;
use super::error::{Result, StateError, chain};
use super::evidence::Evidence;
use super::names::{LATE, evidence_file, hex, late_file, reports_folder};
use super::pending::digest_stream;
use super::report_text::{ReportText, Unescape};
use crate::protocol::ids::{AttemptId, Name, Timestamp};
use crate::protocol::row::{ReportRef, Row};

/// The version of the report format this program writes.
const REPORT_VERSION: u64 = 1;
/// What stands before the text.
const OPENING: &[u8] = b",\"reportMarkdown\":\"";

/// What a report file says beside its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportMeta {
    /// The task.
    pub task: Name,
    /// The attempt that published it.
    pub attempt: Option<AttemptId>,
    /// The workspace in whose folder it lies.
    pub parent: Name,
    /// A title, for people.
    pub title: Option<String>,
    /// When it was given.
    pub at: Timestamp,
}

/// A report to be kept.
#[derive(Debug)]
pub struct ReportWrite {
    /// What the file says beside the text.
    pub meta: ReportMeta,
    /// The text.
    pub text: ReportText,
    /// It was refused, and is kept under `late/`.
    pub late: bool,
}

/// A refused report that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateReport {
    /// The name of its file, which [`Store::show_late`] takes.
    pub file: String,
    /// The attempt that published it.
    pub attempt: Option<AttemptId>,
    /// A title, for people.
    pub title: Option<String>,
    /// When it was kept. Absent if the file cannot be read.
    pub at: Option<Timestamp>,
    /// The length of its text.
    pub bytes: u64,
    /// SHA-256 of its text, in hex; empty if the file cannot be read.
    pub text_sha256: String,
    /// Why the file cannot be read, if it cannot.
    pub unreadable: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    version: u64,
    task_id: Name,
    #[serde(default)]
    attempt_id: Option<AttemptId>,
    parent_workspace_id: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    at: Timestamp,
    bytes: u64,
    sha256: String,
    #[serde(rename = "reportMarkdown", skip_serializing)]
    _text: IgnoredAny,
}

impl ReportText {
    /// SHA-256 of the report file this text makes, in hex.
    pub fn file_digest(&mut self, meta: &ReportMeta) -> io::Result<String> {
        let mut sink = HashWriter { inner: io::sink(), digest: Sha256::new() };
        self.encode(meta, &mut sink)?;
        Ok(hex(&sink.digest.finalize()))
    }

    /// Writes the report file, and returns its SHA-256 in hex.
    pub(super) fn encode_hashed(&mut self, meta: &ReportMeta, writer: &mut dyn Write) -> io::Result<String> {
        let mut sink = HashWriter { inner: writer, digest: Sha256::new() };
        self.encode(meta, &mut sink)?;
        Ok(hex(&sink.digest.finalize()))
    }

    fn encode(&mut self, meta: &ReportMeta, writer: &mut dyn Write) -> io::Result<()> {
        let header = Header {
            version: REPORT_VERSION,
            task_id: meta.task.clone(),
            attempt_id: meta.attempt.clone(),
            parent_workspace_id: meta.parent.clone(),
            title: meta.title.clone(),
            at: meta.at.clone(),
            bytes: self.bytes,
            sha256: self.sha256.clone(),
            _text: IgnoredAny,
        };
        let header = serde_json::to_string(&header)?;
        let open = header.strip_suffix('}').ok_or_else(|| io::Error::other("a header is an object"))?;
        writer.write_all(open.as_bytes())?;
        writer.write_all(OPENING)?;
        self.write_escaped(writer)?;
        writer.write_all(b"\"}\n")
    }
}

struct HashWriter<W> {
    inner: W,
    digest: Sha256,
}

impl<W: Write> Write for HashWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.digest.update(bytes.get(..n).unwrap_or_default());
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Writes the text of a report file, and returns the text's SHA-256 in hex.
fn write_text(file: &mut impl Read, writer: &mut dyn Write) -> io::Result<String> {
    let mut sink = HashWriter { inner: writer, digest: Sha256::new() };
    let mut unescape = Unescape::new(OPENING);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => unescape.push(chunk.get(..n).unwrap_or_default(), &mut sink)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    unescape.finish()?;
    sink.flush()?;
    Ok(hex(&sink.digest.finalize()))
}

impl Store {
    /// Opens a file of a task's report folder, wherever a commit that is not finished has it.
    fn open_kept(&self, document: &Document, folders: &[String], file: &str) -> Result<Option<fs_err::File>> {
        let path = format!("{}/{file}", folders.join("/"));
        let pending = document.files.iter().find(|pending| pending.path == path);
        let root = self.open_root()?;
        // Twice, because the file may be put in place between the two looks.
        for _ in 0..2 {
            let Some(dir) = root.descend(folders)? else { return Ok(None) };
            if let Some(found) = dir.open_file(file)? {
                return Ok(Some(found));
            }
            let Some(pending) = pending else { return Ok(None) };
            if let Some(found) = dir.open_file(&pending.staged)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn open_report(&self, document: &Document, report: &ReportRef) -> Result<Option<fs_err::File>> {
        let folders = reports_folder(&document.row.parent_workspace_id, &document.row.task_id);
        self.open_kept(document, &folders, &evidence_file(report.attempt_id.as_ref()))
    }

    fn open_late(&self, document: &Document, file: &str) -> Result<Option<fs_err::File>> {
        self.open_kept(document, &late_folders(&document.row), file)
    }

    /// Whether a report's file is there and exactly what its row says.
    pub fn read_report(&self, document: &Document, report: &ReportRef) -> Evidence<()> {
        Evidence::of(self.open_verified(document, report).map(|found| found.map(drop)))
    }

    fn open_verified(&self, document: &Document, report: &ReportRef) -> Result<Option<fs_err::File>> {
        let Some(mut file) = self.open_report(document, report)? else { return Ok(None) };
        let path = file.path().to_owned();
        let failed = |error| StateError::io("read", &path, error);
        if digest_stream(&mut file).map_err(failed)? != report.file_sha256 {
            return Err(StateError::damaged(&path, "it is not the report that the row names"));
        }
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(Some(file))
    }

    /// Writes the text of a report that counts, after its file was found to be what its row says.
    pub fn show_report(&self, document: &Document, report: &ReportRef, out: &mut dyn Write) -> Evidence<()> {
        let mut show = || -> Result<Option<()>> {
            let Some(mut file) = self.open_verified(document, report)? else { return Ok(None) };
            let path = file.path().to_owned();
            let shown = write_text(&mut file, out);
            shown.map(|_| Some(())).map_err(|error| StateError::io("print the text of", path, error))
        };
        Evidence::of(show())
    }

    /// Where the file of a report that counts lies, for people.
    pub fn report_path(&self, workspace: &Name, task: &Name, attempt: Option<&AttemptId>) -> PathBuf {
        let folders = reports_folder(workspace, task);
        folders.iter().fold(self.root.clone(), |path, folder| path.join(folder)).join(evidence_file(attempt))
    }

    /// The names of the report files of a task, sorted. The error is for people.
    pub fn report_files(&self, workspace: &Name, task: &Name) -> std::result::Result<Vec<String>, String> {
        let find = || -> Result<Vec<String>> {
            let Some(dir) = self.open_root()?.descend(&reports_folder(workspace, task))? else {
                return Ok(vec![]);
            };
            let names = dir.list()?.into_iter().map(|entry| entry.name);
            Ok(names.filter(|name| !name.starts_with('.') && has_json_ending(name)).collect())
        };
        find().map_err(|error| chain(&error))
    }

    fn late_folder(&self, workspace: &Name, task: &Name) -> Result<Option<Dir>> {
        let dir = self.open_root()?.descend(&reports_folder(workspace, task))?;
        dir.map_or(Ok(None), |dir| dir.child(LATE))
    }

    /// The refused reports of a task, in the order they were kept in, with those that a commit has not put in place
    /// yet. One that cannot be read says so. The error is for people.
    pub fn late_reports(&self, document: &Document) -> std::result::Result<Vec<LateReport>, String> {
        let row = &document.row;
        let find = || -> Result<Vec<LateReport>> {
            let folder = self.late_folder(&row.parent_workspace_id, &row.task_id)?;
            let listed = folder.map_or(Ok(Vec::new()), |dir| dir.list())?;
            let prefix = format!("{}/", late_folders(row).join("/"));
            let mut names: BTreeSet<String> = listed.into_iter().map(|entry| entry.name).collect();
            for name in document.files.iter().filter_map(|file| file.path.strip_prefix(&prefix)) {
                if self.open_late(document, name)?.is_some() {
                    names.insert(name.to_owned());
                }
            }
            names.retain(|name| !name.starts_with('.') && has_json_ending(name));
            let mut found: Vec<_> = names.into_iter().map(|file| self.late_report(document, file)).collect();
            found.sort_by(|a, b| (&a.at, &a.file).cmp(&(&b.at, &b.file)));
            Ok(found)
        };
        find().map_err(|error| chain(&error))
    }

    fn late_report(&self, document: &Document, file: String) -> LateReport {
        let nothing = |unreadable: String| LateReport {
            file: file.clone(),
            attempt: None,
            title: None,
            at: None,
            bytes: 0,
            text_sha256: String::new(),
            unreadable: Some(unreadable),
        };
        let header = self
            .open_late(document, &file)
            .and_then(|found| found.map(|found| header_of(found, &document.row.task_id)).transpose());
        match header {
            Ok(Some(header)) => LateReport {
                attempt: header.attempt_id,
                title: header.title,
                at: Some(header.at),
                bytes: header.bytes,
                text_sha256: header.sha256,
                unreadable: None,
                file,
            },
            Ok(None) => nothing("it is gone".to_owned()),
            Err(error) => nothing(chain(&error)),
        }
    }

    /// Writes the text of a refused report, after it was found to be what its file says.
    pub fn show_late(&self, document: &Document, report: &LateReport, out: &mut dyn Write) -> Evidence<()> {
        let mut show = || -> Result<Option<()>> {
            let Some(found) = self.open_late(document, &report.file)? else { return Ok(None) };
            let header = header_of(found, &document.row.task_id)?;
            let Some(mut found) = self.open_late(document, &report.file)? else { return Ok(None) };
            let path = found.path().to_owned();
            let failed = |error| StateError::io("print the text of", &path, error);
            if write_text(&mut found, &mut io::sink()).map_err(failed)? != header.sha256 {
                return Err(StateError::damaged(&path, "its text is not the one it names"));
            }
            found.seek(SeekFrom::Start(0)).map_err(failed)?;
            write_text(&mut found, out).map(|_| Some(())).map_err(failed)
        };
        Evidence::of(show())
    }

    /// Whether this very text was refused and kept before.
    pub fn late_exists(&self, workspace: &Name, task: &Name, attempt: &AttemptId, text_sha256: &str) -> bool {
        let file = late_file(Some(attempt), text_sha256);
        let found = self.late_folder(workspace, task).ok().flatten();
        found.is_some_and(|dir| late_is_kept(&dir, task, &file, text_sha256).is_ok_and(|kept| kept))
    }
}

fn has_json_ending(name: &str) -> bool {
    name.strip_suffix(".json").is_some()
}

/// Whether a late file holds a text with this SHA-256. Its text is read, so that a damaged one is not taken for it.
pub(super) fn late_is_kept(dir: &Dir, task: &Name, file: &str, text_sha256: &str) -> Result<bool> {
    if dir.kind(file)? != Some(Kind::File) {
        return Ok(false);
    }
    let Some(found) = dir.open_file(file)? else { return Ok(false) };
    let header = header_of(found, task)?;
    let Some(mut found) = dir.open_file(file)? else { return Ok(false) };
    let actual = write_text(&mut found, &mut io::sink());
    Ok(header.sha256 == text_sha256 && actual.is_ok_and(|actual| actual == text_sha256))
}

fn late_folders(row: &Row) -> Vec<String> {
    let mut folders = reports_folder(&row.parent_workspace_id, &row.task_id).to_vec();
    folders.push(LATE.to_owned());
    folders
}

fn header_of(found: fs_err::File, task: &Name) -> Result<Header> {
    let path = found.path().to_owned();
    let header: Header = serde_json::from_reader(io::BufReader::with_capacity(CHUNK_BYTES, found))
        .map_err(|error| StateError::damaged(&path, format!("it is not a report: {error}")))?;
    if header.version != REPORT_VERSION || header.task_id != *task {
        return Err(StateError::damaged(&path, "it is another task's report, or of another version"));
    }
    Ok(header)
}
