//! Token files: outside the root, 0600, and never written over by a reservation.
//!
//! Invariants: whatever a call that dies leaves beside the caller's file, its repeat with the same request id
//! removes; a token file of a reservation that was never committed does not keep its repeat from reserving.

use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err::File;
use sha2::{Digest as _, Sha256};

use super::names::hex;

/// A token is short; anything longer is not one.
const TOKEN_BYTES_MAX: u64 = 4096;
/// How every file of ours beside a token file begins.
const PREFIX: &str = ".lych-token-";

/// A token that is on disk beside its place, synced, and takes it when the commit stands.
#[must_use = "a staged token is dropped unless it is put in place"]
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    token: String,
    staged: Staged,
}

#[derive(Debug)]
enum Staged {
    Unnamed(std::fs::File),
    Named(tempfile::NamedTempFile),
}

impl TokenFile {
    /// Whether there is anything at `path`, a dangling link included, or nobody can tell.
    pub fn exists(path: &Path) -> bool {
        !matches!(fs_err::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Reads a token.
    pub fn read(path: &Path) -> io::Result<String> {
        read_bounded(File::open(path)?)
    }

    /// Reads a token from a descriptor the caller was started with.
    pub fn read_descriptor(fd: i32) -> io::Result<String> {
        read_bounded(File::open(format!("/dev/fd/{fd}"))?)
    }

    /// Writes a new token file, synced, and refuses an existing one with [`io::ErrorKind::AlreadyExists`].
    ///
    /// Until [`TokenFile::keep`], a second name of the same file marks it as the doing of this request: a call
    /// that dies before its commit leaves both, and its repeat may take back what nobody was given.
    pub fn create(path: &Path, token: &str, request: &str) -> io::Result<()> {
        let mark = mark_of(path, request);
        if let (Ok(ours), Ok(there)) = (fs_err::symlink_metadata(&mark), fs_err::symlink_metadata(path))
            && (ours.dev(), ours.ino()) == (there.dev(), there.ino())
        {
            remove_if_there(path)?;
        }
        remove_if_there(&mark)?;
        let staged = Self::stage(path, token)?;
        if let Err(error) = staged.name_new(&mark) {
            drop(fs_err::remove_file(&mark));
            return Err(error);
        }
        sync_folder(path).inspect_err(|_| Self::take_back(path, request))
    }

    /// Leaves a token file to its owner: its attempt is committed.
    pub fn keep(path: &Path, request: &str) {
        // The mark is another name of the caller's own file, and does no harm if it cannot be removed.
        drop(remove_if_there(&mark_of(path, request)));
    }

    /// Takes back a token file whose attempt was never committed.
    pub fn take_back(path: &Path, request: &str) {
        // The mark goes last: as long as it is there, the repeat can take the file back.
        if fs_err::remove_file(path).is_ok() {
            Self::keep(path, request);
        }
    }

    /// Writes a token beside its place and syncs it. Where the system can, it has no name yet, so that nothing
    /// is left of it if the call dies.
    pub fn stage(path: &Path, token: &str) -> io::Result<Self> {
        let mut staged = match unnamed(folder_of(path)) {
            Some(file) => Staged::Unnamed(file),
            None => Staged::Named(tempfile::Builder::new().prefix(PREFIX).tempfile_in(folder_of(path))?),
        };
        let file = match &mut staged {
            Staged::Unnamed(file) => file,
            Staged::Named(file) => file.as_file_mut(),
        };
        writeln!(file, "{token}")?;
        file.sync_all()?;
        Ok(Self { path: path.to_owned(), token: token.to_owned(), staged })
    }

    /// Whether the staged token is `token`.
    pub fn holds(&self, token: &str) -> bool {
        self.token == token
    }

    /// Puts a staged token in its place, over an older one.
    pub fn put_in_place(self) -> io::Result<()> {
        let Self { path, token, staged } = self;
        match staged {
            Staged::Named(file) => drop(file.persist(&path).map_err(|error| error.error)?),
            Staged::Unnamed(file) => {
                // No call can give an unnamed file the name of another one. The name on the way is the token's
                // own, so that a repeat of a call that died there takes the same one.
                let on_the_way = beside(&path, &token);
                remove_if_there(&on_the_way)?;
                link(&file, &on_the_way)?;
                if let Err(error) = fs_err::rename(&on_the_way, &path) {
                    drop(fs_err::remove_file(&on_the_way));
                    return Err(error);
                }
            }
        }
        sync_folder(&path)
    }

    /// Gives it its place and the mark, over nothing.
    fn name_new(self, mark: &Path) -> io::Result<()> {
        match self.staged {
            Staged::Unnamed(file) => link(&file, mark).and_then(|()| link(&file, &self.path)),
            Staged::Named(file) => {
                file.persist_noclobber(&self.path).map_err(|error| error.error)?;
                // On a file system without second names there is no mark, and the repeat is refused.
                drop(fs_err::hard_link(&self.path, mark));
                Ok(())
            }
        }
    }
}

/// The mark of a request beside a token file.
fn mark_of(path: &Path, request: &str) -> PathBuf {
    beside(path, &format!("{request}/{}", path.file_name().unwrap_or_default().display()))
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let mut digest = hex(&Sha256::digest(what.as_bytes()));
    digest.truncate(16);
    folder_of(path).join(format!("{PREFIX}{digest}"))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A file without a name in a folder; `None` where the system has no such thing.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<std::fs::File> {
    use rustix::fs::{Mode, OFlags};
    // Without `/proc`, it could never be given a name.
    fs_err::symlink_metadata("/proc/self/fd").ok()?;
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).ok().map(std::fs::File::from)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_folder: &Path) -> Option<std::fs::File> {
    None
}

/// Gives a file without a name one, over nothing.
fn link(file: &std::fs::File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd as _;
    let from = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

fn read_bounded(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(TOKEN_BYTES_MAX).read_to_end(&mut bytes)?;
    // What is no text is no token, and that is for the check of the token to say.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
