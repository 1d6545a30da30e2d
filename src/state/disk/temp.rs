//! Temps: files on the way to their places.
//!
//! Invariant: one that was neither renamed nor kept is removed when it is dropped.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::CHUNK_BYTES;
use crate::state::error::{Result, StateError};

/// A file on its way to its place. Dropped before it is renamed or kept, it is removed.
#[derive(Debug)]
pub(in crate::state) struct Temp {
    inner: tempfile::NamedTempFile,
}

impl Temp {
    pub(super) fn new(inner: tempfile::NamedTempFile) -> Self {
        Self { inner }
    }

    pub(in crate::state) fn path(&self) -> &Path {
        self.inner.path()
    }

    /// Its name in its folder.
    pub(in crate::state) fn name(&self) -> String {
        self.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Writes through a buffer; what the closure wrote is in the file when this returns `Ok`, not yet synced.
    pub(in crate::state) fn write<T>(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> Result<T> {
        let path = self.path().to_owned();
        let failed = |error: io::Error| StateError::io("write", &path, error);
        let mut buffer = BufWriter::with_capacity(CHUNK_BYTES, self.inner.as_file_mut());
        let answer = write(&mut buffer).map_err(failed)?;
        buffer.flush().map_err(failed)?;
        Ok(answer)
    }

    pub(in crate::state) fn sync(&self) -> Result<()> {
        self.inner.as_file().sync_all().map_err(|error| StateError::io("sync", self.path(), error))
    }

    /// Renames it over a name in its own folder.
    pub(in crate::state) fn rename_to(self, name: &str) -> Result<()> {
        let target = self.path().with_file_name(name);
        let renamed = self.inner.persist(&target);
        renamed.map(drop).map_err(|error| StateError::io("rename to", &target, error.error))
    }

    /// Renames it, still to be removed when dropped: for what is prepared under a name of its own.
    pub(in crate::state) fn prepare_as(self, name: &str) -> Result<Prepared> {
        let target = self.path().with_file_name(name);
        self.rename_to(name)?;
        let path = tempfile::TempPath::try_from_path(&target);
        Ok(Prepared { path: path.map_err(|error| StateError::io("keep track of", &target, error))? })
    }

    /// Leaves it where it is, under the name it has.
    pub(in crate::state) fn prepared(self) -> Prepared {
        Prepared { path: self.inner.into_temp_path() }
    }
}

/// A closed file beside its place. Dropped before it is kept, it is removed.
#[derive(Debug)]
pub(in crate::state) struct Prepared {
    path: tempfile::TempPath,
}

impl Prepared {
    /// Leaves it for whoever finishes the commit.
    pub(in crate::state) fn keep(mut self) {
        self.path.disable_cleanup(true);
    }
}
