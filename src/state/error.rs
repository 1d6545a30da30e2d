//! What can go wrong in the store, and on which side of a commit it went wrong.
//!
//! Invariant: [`StateError::Uncertain`] is the only variant that can follow a visible change. Every other one
//! means that the old state stands. No text repeats its source, and no hint suggests removing a file or
//! taking over what somebody else holds.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::settings::SettingsError;
use crate::protocol::codes::Code;

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A reader found no root.
    #[error("there is no root at `{}`", path.display())]
    NoRoot {
        /// The root.
        path: PathBuf,
    },
    /// The folder is something else's, or no folder.
    #[error("`{}` is not a lychgate root: {reason}", path.display())]
    ForeignRoot {
        /// The root.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// The folder to read from is no root of the application xum.
    #[error("`{}` is not a root of xum: {reason}", path.display())]
    NotXumRoot {
        /// The folder.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// The `config.json` of such a root cannot be read whole.
    #[error("`{}` cannot be read: {reason}", path.display())]
    XumConfigUnreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it. It quotes nothing.
        reason: String,
    },
    /// A part of the root that must exist is missing or damaged.
    #[error("the root is damaged at `{}`: {reason}", path.display())]
    RootDamaged {
        /// The part.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The root belongs to a user this one does not trust with it.
    #[error("the root `{}` belongs to user {owner}", path.display())]
    RootNotYours {
        /// The root.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
    },
    /// The root is where locks cannot be trusted.
    #[error("the root `{}` is on a {kind} file system, where locks cannot be trusted", path.display())]
    NetworkFilesystem {
        /// The root, or where it would be made.
        path: PathBuf,
        /// Which file system.
        kind: &'static str,
    },
    /// A symbolic link inside the root.
    #[error("`{}` is a symbolic link", path.display())]
    LinkRefused {
        /// The link.
        path: PathBuf,
    },
    /// A row is damaged, or is another task's.
    #[error("the row of `{task}` at `{}` cannot be read: {reason}", path.display())]
    RowUnreadable {
        /// The task that was asked for, or the folder's name where no task was.
        task: String,
        /// The row file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The checkpoints of a run are damaged, or are another run's.
    #[error("the checkpoints of run `{run}` at `{}` cannot be read: {reason}", path.display())]
    RunUnreadable {
        /// The run that was asked for, or the folder's name where no run was.
        run: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The record of a session is damaged, or is another session's.
    #[error("the record of session `{session}` at `{}` cannot be read: {reason}", path.display())]
    SessionUnreadable {
        /// The session that was asked for, or the folder's name where no session was.
        session: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A newer version wrote this.
    #[error("`{}` has format version {found}, and this program knows version 1", path.display())]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// Another receipt lies where this one belongs. A receipt is never written over.
    #[error("`{}` is in the way of a receipt: {reason}", path.display())]
    ReceiptConflict {
        /// The existing file.
        path: PathBuf,
        /// How it differs.
        reason: String,
    },
    /// Another report lies where this one belongs. A report is never written over.
    #[error("`{}` is in the way of a report: {reason}", path.display())]
    ReportConflict {
        /// The existing file.
        path: PathBuf,
        /// How it differs.
        reason: String,
    },
    /// An I/O error; the old state stands.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The change is visible, and could not be proven durable.
    #[error("the change is visible, but its durability is not proven: cannot {action} `{}`", path.display())]
    Uncertain {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A lock was not free in time; nothing was changed.
    #[error("{what} was busy for {} ms", waited.as_millis())]
    Busy {
        /// What is held.
        what: String,
        /// How long this call waited.
        waited: Duration,
    },
    /// Another call made the document first; start over.
    #[error("another call made {what} at the same time")]
    Raced {
        /// The task, the run or the session.
        what: String,
    },
    /// An agent's settings file cannot be worked on; nothing was written.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A bug of this program, caught before anything was written.
    #[error("internal error: {reason}")]
    Internal {
        /// What did not hold.
        reason: String,
    },
}

/// The result of everything in the store.
pub(super) type Result<T> = std::result::Result<T, StateError>;

impl StateError {
    pub(super) fn io(action: &'static str, path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Self::Io { action, path: path.as_ref().to_owned(), source: source.into() }
    }

    pub(super) fn damaged(path: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self::RootDamaged { path: path.as_ref().to_owned(), reason: reason.into() }
    }

    pub(super) fn internal(reason: impl Into<String>) -> Self {
        Self::Internal { reason: reason.into() }
    }

    /// The same failure, once the change was made visible.
    pub(super) fn after_visible(self) -> Self {
        match self {
            Self::Io { action, path, source } => Self::Uncertain { action, path, source },
            other => other,
        }
    }

    /// The code an answer carries for this.
    pub fn code(&self) -> Code {
        match self {
            Self::NoRoot { .. } => Code::NoTaskRecord,
            Self::ForeignRoot { .. } => Code::ForeignRoot,
            Self::NotXumRoot { .. } => Code::NotXumRoot,
            Self::XumConfigUnreadable { .. } => Code::ConfigUnreadable,
            Self::RootDamaged { .. } => Code::RootDamaged,
            Self::RootNotYours { .. } => Code::RootNotYours,
            Self::NetworkFilesystem { .. } => Code::NetworkFilesystem,
            Self::LinkRefused { .. } => Code::LinkRefused,
            Self::RowUnreadable { .. } => Code::RowUnreadable,
            Self::RunUnreadable { .. } => Code::RunUnreadable,
            Self::SessionUnreadable { .. } => Code::SessionUnreadable,
            Self::NewerVersion { .. } => Code::NewerVersion,
            Self::ReceiptConflict { .. } => Code::ReceiptUnreadable,
            Self::ReportConflict { .. } => Code::ReportUnreadable,
            Self::Io { .. } => Code::Io,
            Self::Uncertain { .. } => Code::Uncertain,
            Self::Busy { .. } | Self::Raced { .. } => Code::Busy,
            Self::Settings(error) => error.code(),
            Self::Internal { .. } => Code::Internal,
        }
    }

    /// What a person can do, where there is something.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoRoot { .. } => "the first `reserve` makes it; check `--root` and LYCHGATE_ROOT",
            Self::ForeignRoot { .. } => {
                "set LYCHGATE_ROOT, or give `--root`, to a folder that is lychgate's own"
            }
            Self::NotXumRoot { .. } => "name the folder that holds its `config.json` and its `sessions`",
            Self::XumConfigUnreadable { .. } => {
                "ask again; if it stays so, the application keeps a copy of a broken one beside it"
            }
            Self::RootDamaged { .. } => "restore the root from a backup; nothing was written",
            Self::RootNotYours { .. } => {
                "run as that user, or if you trust that user, have its user id listed as `trustUid` in `config.json`"
            }
            Self::NetworkFilesystem { .. } => {
                "set LYCHGATE_ROOT to a folder on a local disk, or set `\"networkFilesystem\": \"allow\"` in the root's `config.json`"
            }
            Self::LinkRefused { .. } => {
                "put the folder itself in the place of the link; the root as a whole may be a link"
            }
            Self::RowUnreadable { .. } => "restore the row from a backup; nothing was written",
            Self::RunUnreadable { .. } => "restore the run's folder from a backup; nothing was written",
            Self::SessionUnreadable { .. } => {
                "restore the session's `guard` folder from a backup; nothing was written"
            }
            Self::NewerVersion { .. } => "use the newer lychgate that wrote it",
            Self::ReceiptConflict { .. } | Self::ReportConflict { .. } => {
                "keep both files and find out who wrote the existing one; nothing was written"
            }
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "make room on the disk and repeat the call"
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    "mount the file system for writing, or set LYCHGATE_ROOT"
                }
                io::ErrorKind::PermissionDenied => "check who owns the root and its folders",
                _ => return None,
            },
            Self::Uncertain { .. } => "repeat the call with the same `--request-id`",
            Self::Busy { .. } => "repeat the call, or give it more time with `--lock-wait`",
            Self::Raced { .. } => "repeat the call",
            Self::Settings(error) => error.hint(),
            Self::Internal { .. } => return None,
        };
        Some(text.to_owned())
    }
}

/// An error and its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
