//! The texts a call on a session brings along. They are read in full before any lock is taken: whoever writes them
//! may be slow.

use std::path::Path;

use crate::cli::Input;
use crate::protocol::codes::Code;
use crate::state::{TextInputError, chain, read_text};

use super::super::failure::Failure;

/// The longest text that a session takes, in bytes.
const TEXT_BYTES_MAX: u64 = 64 << 10;
/// The longest to-do list. Only ids and states of it are kept.
const TODO_BYTES_MAX: u64 = 1 << 20;

/// A text that the call must bring: from a file, or from standard input.
pub(super) fn text(file: Option<&Input>) -> Result<String, Failure> {
    read(file, TEXT_BYTES_MAX)
}

/// A text that the call may bring: standard input is only read where that is asked for.
pub(super) fn text_if_given(file: Option<&Input>) -> Result<Option<String>, Failure> {
    file.map(|file| text(Some(file))).transpose()
}

/// A to-do list, as it was written.
pub(super) fn list(file: Option<&Input>) -> Result<String, Failure> {
    read(file, TODO_BYTES_MAX)
}

fn read(file: Option<&Input>, bytes_max: u64) -> Result<String, Failure> {
    let path: Option<&Path> = match file {
        Some(Input::File(path)) => Some(path),
        Some(Input::Stdin) | None => None,
    };
    read_text(path, bytes_max).map_err(|error| {
        let code = match &error {
            TextInputError::Empty | TextInputError::Terminal => Code::TextEmpty,
            TextInputError::TooLarge { .. } => Code::TextTooLarge,
            TextInputError::NotText | TextInputError::Unreadable { .. } => Code::Usage,
        };
        Failure::Call { code, message: chain(&error), hint: Some("nothing was changed".to_owned()) }
    })
}
