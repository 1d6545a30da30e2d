//! Token files: outside the root, 0600, and never written over by a reservation.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use fs_err::{File, OpenOptions};

/// A token is short; anything longer is not one.
const TOKEN_BYTES_MAX: u64 = 4096;

/// A token that is on disk beside its place, synced, and takes it when the commit stands.
#[must_use = "a staged token is dropped unless it is put in place"]
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    staged: tempfile::NamedTempFile,
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
    pub fn create(path: &Path, token: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let written =
            writeln!(file, "{token}").and_then(|()| file.sync_all()).and_then(|()| sync_folder(path));
        if written.is_err() {
            // The name is ours and holds no token anybody was given.
            drop(fs_err::remove_file(path));
        }
        written
    }

    /// Takes back a token file whose attempt was never committed.
    pub fn take_back(path: &Path) {
        drop(fs_err::remove_file(path));
    }

    /// Writes a token beside its place and syncs it.
    pub fn stage(path: &Path, token: &str) -> io::Result<Self> {
        let mut staged = tempfile::Builder::new().prefix(".lych-token-").tempfile_in(folder_of(path))?;
        writeln!(staged, "{token}")?;
        staged.as_file().sync_all()?;
        Ok(Self { path: path.to_owned(), staged })
    }

    /// Whether the staged token is `token`.
    pub fn holds(&self, token: &str) -> bool {
        fs_err::read_to_string(self.staged.path()).is_ok_and(|text| text.trim() == token)
    }

    /// Puts a staged token in its place, over an older one.
    pub fn put_in_place(self) -> io::Result<()> {
        let Self { path, staged } = self;
        staged.persist(&path).map_err(|error| error.error)?;
        sync_folder(&path)
    }
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
