//! The narrow seam to the file system: every raw file call of the store is in this file.
//!
//! Invariants: nothing inside the root is reached through a symbolic link; folders are 0700 and files 0600,
//! whatever the umask; only `ENOENT` is "not there"; a failed sync is never tried again; a temp that was not
//! renamed is removed when it is dropped.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::error::{Result, StateError};
use super::names::TEMP_PREFIX;

mod temp;

pub(super) use temp::{Prepared, Temp};

/// How much is read or written at a time where a whole file is not held.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// What a name in a folder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    Other,
}

impl From<FileType> for Kind {
    fn from(found: FileType) -> Self {
        match found {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// An open folder. Children are reached from the handle, so a link in the place of one is noticed.
#[derive(Debug)]
pub(super) struct Dir {
    handle: fs_err::File,
}

/// Resolves the root's own path once: the root itself may be a link. `None`: there is nothing, not even a link
/// that leads nowhere.
pub(super) fn canonical(path: &Path) -> Result<Option<PathBuf>> {
    let failed = |error: io::Error| StateError::io("find", path, error);
    match fs_err::canonicalize(path) {
        Ok(path) => Ok(Some(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            crate::seam::pause("no-root-folder");
            if identity_of_path(path)?.is_none() {
                return Ok(None);
            }
            // A link that leads nowhere stays one; a folder that another call has made since is found now.
            fs_err::canonicalize(path).map(Some).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// The device and inode a path leads to, without following a link in its last part.
pub(super) fn identity_of_path(path: &Path) -> Result<Option<(u64, u64)>> {
    match fs_err::symlink_metadata(path) {
        Ok(found) => Ok(Some((found.dev(), found.ino()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StateError::io("look at", path, error)),
    }
}

/// The user id this process acts as.
pub(super) fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Random bytes from the operating system.
#[allow(clippy::disallowed_methods, reason = "the secret and the names of temporary files are drawn here")]
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| StateError::io("read", "/dev/urandom", io::Error::other(error.to_string())))?;
    Ok(bytes)
}

fn open_flags() -> OFlags {
    // Without NONBLOCK, opening a FIFO that lies in the place of a file would hang.
    OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY
}

impl Dir {
    /// Opens a folder by its path, following links: only for the root and what lies above it.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        let handle = opened.map_err(|error| StateError::io("open", path, error))?;
        Ok(Self { handle: fs_err::File::from_parts(File::from(handle), path) })
    }

    /// Puts a handle back that was taken with [`Dir::into_handle`].
    pub(super) fn from_handle(handle: fs_err::File) -> Self {
        Self { handle }
    }

    pub(super) fn into_handle(self) -> fs_err::File {
        self.handle
    }

    pub(super) fn handle(&self) -> &fs_err::File {
        &self.handle
    }

    pub(super) fn path(&self) -> &Path {
        self.handle.path()
    }

    /// The path of a name in this folder, for messages.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn open_at(&self, name: &str, flags: OFlags) -> Result<Option<fs_err::File>> {
        match rustix::fs::openat(self.handle.file(), name, flags, Mode::empty()) {
            Ok(opened) => Ok(Some(fs_err::File::from_parts(File::from(opened), self.at(name)))),
            Err(Errno::NOENT) => Ok(None),
            // Which of the two a link gives depends on the flags and on the system.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) if self.kind(name)? == Some(Kind::Link) => {
                Err(StateError::LinkRefused { path: self.at(name) })
            }
            Err(error) => Err(StateError::io("open", self.at(name), error)),
        }
    }

    /// Opens a folder in this one.
    pub(super) fn child(&self, name: &str) -> Result<Option<Self>> {
        let opened = self.open_at(name, open_flags() | OFlags::DIRECTORY)?;
        Ok(opened.map(|handle| Self { handle }))
    }

    /// Opens a chain of folders below this one.
    pub(super) fn descend(&self, names: &[impl AsRef<str>]) -> Result<Option<Self>> {
        let mut found: Option<Self> = None;
        for name in names {
            let Some(next) = found.as_ref().unwrap_or(self).child(name.as_ref())? else { return Ok(None) };
            found = Some(next);
        }
        found.map_or_else(|| Err(StateError::internal("an empty chain of folders")), |dir| Ok(Some(dir)))
    }

    /// Opens a regular file for reading. Anything else in its place is an error of kind `InvalidData`.
    pub(super) fn open_file(&self, name: &str) -> Result<Option<fs_err::File>> {
        let other = || {
            let reason = io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file");
            StateError::io("read", self.at(name), reason)
        };
        let file = match self.open_at(name, open_flags()) {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(None),
            // A socket, and a device that nothing drives, cannot even be opened.
            Err(StateError::Io { .. }) if self.kind(name)? == Some(Kind::Other) => return Err(other()),
            Err(error) => return Err(error),
        };
        let found = file.metadata().map_err(|error| StateError::io("look at", self.at(name), error))?;
        if found.is_file() { Ok(Some(file)) } else { Err(other()) }
    }

    /// Reads a whole file of at most `bytes_max`; a larger one is an error of kind `InvalidData`.
    pub(super) fn read(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = file.take(bytes_max + 1).read_to_end(&mut bytes);
        read.map_err(|error| StateError::io("read", self.at(name), error))?;
        if bytes.len() as u64 > bytes_max {
            let reason =
                io::Error::new(io::ErrorKind::InvalidData, format!("it is larger than {bytes_max} bytes"));
            return Err(StateError::io("read", self.at(name), reason));
        }
        Ok(Some(bytes))
    }

    /// What a name stands for.
    pub(super) fn kind(&self, name: &str) -> Result<Option<Kind>> {
        match rustix::fs::statat(self.handle.file(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode).into())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(StateError::io("look at", self.at(name), error)),
        }
    }

    /// Every name in this folder, sorted.
    pub(super) fn list(&self) -> Result<Vec<Entry>> {
        let failed = |error: Errno| StateError::io("list", self.path(), error);
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.handle.file()).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match self.kind(&name)? {
                    Some(kind) => kind,
                    None => continue,
                },
                known => known.into(),
            };
            entries.push(Entry { name, kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// The device and inode behind the handle.
    pub(super) fn identity(&self) -> Result<(u64, u64)> {
        let found = self.handle.metadata().map_err(|error| StateError::io("look at", self.path(), error))?;
        Ok((found.dev(), found.ino()))
    }

    /// The user id of the folder's owner.
    pub(super) fn owner(&self) -> Result<u32> {
        let found = self.handle.metadata().map_err(|error| StateError::io("look at", self.path(), error))?;
        Ok(found.uid())
    }

    /// Makes a folder in this one, if it is missing, and opens it. This folder is not synced.
    pub(super) fn make(&self, name: &str) -> Result<Self> {
        let dir = self.handle.file();
        let made = rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(FOLDER_MODE));
        match made {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(StateError::io("make the folder", self.at(name), error)),
        }
        if made.is_ok() {
            // Before it is opened: with a strange umask not even its owner could open it.
            let set = rustix::fs::chmodat(dir, name, Mode::from_raw_mode(FOLDER_MODE), AtFlags::empty());
            set.map_err(|error| StateError::io("set the mode of", self.at(name), error))?;
        }
        let missing = || StateError::io("open", self.at(name), io::Error::from(io::ErrorKind::NotFound));
        self.child(name)?.ok_or_else(missing)
    }

    /// Gives the folder its mode, which the umask may have narrowed.
    pub(super) fn make_private(&self) -> Result<()> {
        let set = self.handle.set_permissions(Permissions::from_mode(FOLDER_MODE));
        set.map_err(|error| StateError::io("set the mode of", self.path(), error))
    }

    /// Makes what happened to the names in this folder durable.
    pub(super) fn sync(&self) -> Result<()> {
        self.handle.sync_all().map_err(|error| StateError::io("sync", self.path(), error))
    }

    /// Renames within this folder, replacing what is there.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<()> {
        let dir = self.handle.file();
        rustix::fs::renameat(dir, from, dir, to)
            .map_err(|error| StateError::io("rename to", self.at(to), error))
    }

    /// Removes a file or a link, never a folder. That it is gone already is fine.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        match rustix::fs::unlinkat(self.handle.file(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(StateError::io("remove", self.at(name), error)),
        }
    }

    /// Removes an empty folder.
    pub(super) fn remove_folder(&self, name: &str) -> Result<()> {
        match rustix::fs::unlinkat(self.handle.file(), name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(StateError::io("remove", self.at(name), error)),
        }
    }

    /// Makes a temp in this folder.
    pub(super) fn temp(&self) -> Result<Temp> {
        let failed = |error: io::Error| StateError::io("make a temporary file in", self.path(), error);
        let inner = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(self.path()).map_err(failed)?;
        inner.as_file().set_permissions(Permissions::from_mode(FILE_MODE)).map_err(failed)?;
        Ok(Temp::new(inner))
    }

    /// Makes a temp that holds these bytes and is synced.
    pub(super) fn temp_with(&self, bytes: &[u8]) -> Result<Temp> {
        let mut temp = self.temp()?;
        temp.write(|writer| writer.write_all(bytes))?;
        temp.sync()?;
        Ok(temp)
    }

    /// Syncs a file's own content.
    pub(super) fn sync_file(&self, name: &str) -> Result<()> {
        let file = self
            .open_file(name)?
            .ok_or_else(|| StateError::io("sync", self.at(name), io::Error::from(io::ErrorKind::NotFound)))?;
        file.sync_all().map_err(|error| StateError::io("sync", self.at(name), error))
    }
}

/// Makes the folder of the root with all that is missing above it, each durable in its parent.
pub(super) fn make_root_folder(path: &Path) -> Result<()> {
    make_folders(path, Some(FOLDER_MODE))
}

/// Makes a folder with all that is missing above it, each durable in its parent, with the mode of the root's folders
/// or with the mode new folders have here.
pub(super) fn make_folders(path: &Path, mode: Option<u32>) -> Result<()> {
    let absolute = std::path::absolute(path).map_err(|error| StateError::io("find", path, error))?;
    let mut missing = Vec::new();
    let mut above = absolute.as_path();
    while !exists(above)? {
        missing.push(above);
        match above.parent() {
            Some(parent) => above = parent,
            None => break,
        }
    }
    for folder in missing.into_iter().rev() {
        match fs_err::create_dir(folder) {
            Ok(()) => {
                if let Some(mode) = mode {
                    fs_err::set_permissions(folder, Permissions::from_mode(mode))
                        .map_err(|error| StateError::io("set the mode of", folder, error))?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StateError::io("make the folder", folder, error)),
        }
        if let Some(parent) = folder.parent() {
            Dir::open(parent)?.sync()?;
        }
    }
    Ok(())
}

/// The nearest folder at or above a path that exists.
pub(super) fn nearest_existing(path: &Path) -> Result<Dir> {
    let absolute = std::path::absolute(path).map_err(|error| StateError::io("find", path, error))?;
    let mut above = absolute.as_path();
    while !exists(above)? {
        above = above.parent().unwrap_or(Path::new("/"));
    }
    Dir::open(above)
}

fn exists(path: &Path) -> Result<bool> {
    fs_err::metadata(path).map(|_| true).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(false),
        _ => Err(StateError::io("look at", path, error)),
    })
}

/// Writes a file that is written once, whole or not at all.
pub(super) fn write_once(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = write_whole(path, atomicwrites::AllowOverwrite, |temp| {
        temp.set_permissions(Permissions::from_mode(FILE_MODE))?;
        temp.write_all(bytes)
    });
    written.map_err(|error| StateError::io("write", path, error))
}

/// Writes a file whole or not at all: what `fill` makes of a file beside it takes its place.
pub(super) fn write_whole(
    path: &Path,
    overwrite: atomicwrites::OverwriteBehavior,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let whole = atomicwrites::AtomicFile::new(path, overwrite);
    // The crate makes a folder for its temp, and with a strange umask nobody could enter that. Every other file
    // of ours gets its mode explicitly, so that a narrower umask for a moment changes nothing.
    let umask = rustix::process::umask(Mode::from_raw_mode(0o077));
    let written = whole.write(fill);
    rustix::process::umask(umask);
    written.map_err(io::Error::from)
}

/// The umask of this process.
pub(super) fn umask() -> u32 {
    let umask = rustix::process::umask(Mode::from_raw_mode(0o077));
    rustix::process::umask(umask);
    umask.as_raw_mode()
}
