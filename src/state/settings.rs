//! Settings files of agents: somebody else's, outside the root.
//!
//! Invariants: a file is replaced whole, beside its place and by one rename, with its mode and its owner; a link to
//! it stays a link; a file that changed since it was read is not written over; a copy that is kept of it is never
//! written over.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::disk::{self, Dir};
use super::error::{Result, StateError};
use crate::protocol::codes::Code;

/// The largest settings file that is read.
const BYTES_MAX: u64 = 4 << 20;
/// How many links in a row are followed.
const LINKS_MAX: usize = 40;
/// What is put behind a file's name for the copy that is kept of it.
const BACKUP: &str = ".lychgate-backup";
/// The mode of a new file, before the umask.
const NEW_MODE: u32 = 0o666;

/// Why a settings file cannot be worked on. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// It is not what it should be.
    #[error("the settings `{}` cannot be understood: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody may write it.
    #[error("the settings `{}` are read-only", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else wrote it at the same time.
    #[error("the settings `{}` were changed by somebody else at the same time", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl SettingsError {
    pub(super) fn code(&self) -> Code {
        match self {
            Self::Unreadable { .. } => Code::SettingsUnreadable,
            Self::ReadOnly { .. } => Code::Io,
            Self::Changed { .. } => Code::Busy,
        }
    }

    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "put the file right first; nothing was written",
            Self::ReadOnly { .. } => {
                "make the file writable, or have what manages it add the hooks that --dry-run prints"
            }
            Self::Changed { .. } => "repeat the call",
        }
    }
}

/// A settings file as it was when it was read.
#[derive(Debug)]
pub struct SettingsFile {
    path: PathBuf,
    target: PathBuf,
    found: Option<Content>,
}

#[derive(Debug)]
struct Content {
    text: String,
    mode: u32,
    owner: (u32, u32),
}

impl SettingsFile {
    /// Reads a settings file. That there is none is fine.
    pub fn read(path: &Path) -> Result<Self> {
        let path = absolute(path)?;
        let target = followed(&path)?;
        let found = read(&target)?;
        Ok(Self { path, target, found })
    }

    /// The file's path, made absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the file really is, with every link in the place of the file followed.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// What it says, if it is there.
    pub fn text(&self) -> Option<&str> {
        self.found.as_ref().map(|found| found.text.as_str())
    }

    /// Where the copy of it as it was before our first change is kept.
    pub fn backup_path(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(BACKUP);
        self.path.with_file_name(name)
    }

    /// What that copy says, if there is one that can be read.
    pub fn backup(&self) -> Option<String> {
        read(&self.backup_path()).ok().flatten().map(|found| found.text)
    }

    /// Keeps a copy of it, unless there is one.
    pub fn keep_copy(&self) -> Result<()> {
        let Some(found) = &self.found else { return Ok(()) };
        self.check_writable()?;
        let backup = self.backup_path();
        let kept = disk::write_whole(&backup, atomicwrites::DisallowOverwrite, |file| {
            self.fill(file, &found.text, found.mode)
        });
        match kept {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(StateError::io("keep a copy in", &backup, error))
            }
            _ => Ok(()),
        }
    }

    /// Writes it anew. A missing folder is made.
    pub fn replace(&self, text: &str) -> Result<()> {
        crate::seam::pause("settings-read");
        self.check_writable()?;
        if let Some(folder) = self.target.parent() {
            disk::make_folders(folder, None)?;
        }
        let mode = self.found.as_ref().map_or_else(|| NEW_MODE & !disk::umask(), |found| found.mode);
        let written = disk::write_whole(&self.target, atomicwrites::AllowOverwrite, |file| {
            self.fill(file, text, mode)?;
            // As late as it can be, and still not in one step with the rename: agents take no lock.
            self.check_unchanged()
        });
        let Err(error) = written else { return Ok(()) };
        if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<ChangedMeanwhile>) {
            return Err(SettingsError::Changed { path: self.path.clone() }.into());
        }
        let failed = StateError::io("write", &self.target, error);
        // Its error does not tell which side of the rename it is from; looking does.
        let is_there = read(&self.target).is_ok_and(|found| found.is_some_and(|found| found.text == text));
        Err(if is_there { failed.after_visible() } else { failed })
    }

    /// Takes the whole file away.
    pub fn remove(&self) -> Result<()> {
        self.check_writable()?;
        self.check_unchanged().map_err(|_| SettingsError::Changed { path: self.path.clone() })?;
        fs_err::remove_file(&self.target).map_err(|error| StateError::io("remove", &self.target, error))?;
        let folder = self.target.parent().unwrap_or(Path::new("/"));
        Dir::open(folder)?.sync().map_err(StateError::after_visible)
    }

    fn check_writable(&self) -> Result<()> {
        match &self.found {
            Some(found) if found.mode & 0o222 == 0 => {
                Err(SettingsError::ReadOnly { path: self.path.clone() }.into())
            }
            _ => Ok(()),
        }
    }

    fn fill(&self, file: &mut File, text: &str, mode: u32) -> io::Result<()> {
        file.write_all(text.as_bytes())?;
        if let Some(found) = &self.found {
            let owner = file.metadata().map(|made| (made.uid(), made.gid()))?;
            if owner != found.owner {
                std::os::unix::fs::fchown(&*file, Some(found.owner.0), Some(found.owner.1))?;
            }
        }
        file.set_permissions(Permissions::from_mode(mode & 0o7777))
    }

    fn check_unchanged(&self) -> io::Result<()> {
        let now = read(&self.target).ok().flatten();
        if now.map(|now| now.text).as_deref() == self.text() {
            return Ok(());
        }
        Err(io::Error::other(ChangedMeanwhile))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("it was changed meanwhile")]
struct ChangedMeanwhile;

/// A path that means the same in every folder. Nothing is looked up.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| StateError::io("find", path, error))
}

/// Whether a file can be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runnable {
    /// `[ -x FILE ]` lets a call through.
    Yes,
    /// There is something, and it is no program, or not this user's to call.
    No,
    /// There is nothing.
    Missing,
}

/// Whether a file can be executed, as a shell sees it.
pub fn runnable(path: &Path) -> Runnable {
    match fs_err::metadata(path) {
        Err(_) => Runnable::Missing,
        Ok(found) if found.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() => {
            Runnable::Yes
        }
        Ok(_) => Runnable::No,
    }
}

/// The path this program was called by, made absolute: a link that is kept pointing at the newest version is worth
/// more in settings than the version it points at now.
pub fn program(called_as: Option<&OsStr>, search_path: Option<&OsStr>) -> io::Result<PathBuf> {
    let itself = std::env::current_exe()?;
    let Some(called_as) = called_as.map(Path::new) else { return Ok(itself) };
    let is_itself = |path: &PathBuf| {
        let identity = |path: &Path| fs_err::metadata(path).map(|found| (found.dev(), found.ino())).ok();
        identity(path).is_some_and(|found| Some(found) == identity(&itself))
    };
    let found = if called_as.components().count() > 1 {
        absolute(called_as).ok().filter(is_itself)
    } else {
        let folders =
            std::env::split_paths(search_path.unwrap_or_default()).filter(|folder| folder.is_absolute());
        folders.map(|folder| folder.join(called_as)).find(|path| is_itself(path))
    };
    Ok(found.unwrap_or(itself))
}

/// Follows the links in the place of a file. Where the last one leads, there need not be anything.
fn followed(path: &Path) -> Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..LINKS_MAX {
        let failed = |error| StateError::io("look at", &target, error);
        match fs_err::symlink_metadata(&target) {
            Ok(found) if found.is_symlink() => {
                let next = fs_err::read_link(&target).map_err(failed)?;
                target = target.parent().unwrap_or(Path::new("/")).join(next);
            }
            Ok(_) => return Ok(target),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(target),
            Err(error) => return Err(failed(error)),
        }
    }
    Err(unreadable(path, "it is a link that leads to itself"))
}

fn read(path: &Path) -> Result<Option<Content>> {
    let failed = |error: io::Error| StateError::io("read", path, error);
    let before = match fs_err::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !before.is_file() {
        return Err(unreadable(path, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = fs_err::File::open(path).map_err(failed)?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(unreadable(path, &format!("it is larger than {BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable(path, "it is not UTF-8"))?;
    Ok(Some(Content { text, mode: before.mode(), owner: (before.uid(), before.gid()) }))
}

fn unreadable(path: &Path, reason: &str) -> StateError {
    SettingsError::Unreadable { path: path.to_owned(), reason: reason.to_owned() }.into()
}
