//! What a call reads beside the root: a small input, a text, a folder that it names.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use fs_err::File;

/// The largest input of a step, in bytes.
pub const INPUT_BYTES_MAX: u64 = 16 << 20;

/// Reads a file, or standard input where no file is named.
pub fn read_input(path: Option<&Path>) -> io::Result<Vec<u8>> {
    let bytes = read_up_to(path, INPUT_BYTES_MAX)?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {INPUT_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// Reads one byte more than the most, so that the caller sees if there are more.
fn read_up_to(path: Option<&Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match path {
        Some(path) => File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?,
        None => io::stdin().lock().take(bytes_max + 1).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

/// Why a text cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TextInputError {
    /// Nothing, or nothing but white space.
    #[error("the text is blank")]
    Empty,
    /// Standard input is a terminal: nobody meant to type it there.
    #[error("standard input is a terminal")]
    Terminal,
    /// More than there may be.
    #[error("the text is larger than {bytes_max} bytes")]
    TooLarge {
        /// How many there may be.
        bytes_max: u64,
    },
    /// Not UTF-8.
    #[error("the text is not UTF-8")]
    NotText,
    /// It could not be read.
    #[error("the text cannot be read")]
    Unreadable {
        /// What the system said.
        source: io::Error,
    },
}

/// Reads a text from a file, or from standard input where no file is named.
pub fn read_text(path: Option<&Path>, bytes_max: u64) -> Result<String, TextInputError> {
    if path.is_none() && io::stdin().is_terminal() {
        return Err(TextInputError::Terminal);
    }
    let bytes = read_up_to(path, bytes_max).map_err(|source| TextInputError::Unreadable { source })?;
    if bytes.len() as u64 > bytes_max {
        return Err(TextInputError::TooLarge { bytes_max });
    }
    let text = String::from_utf8(bytes).map_err(|_| TextInputError::NotText)?;
    if text.trim().is_empty() { Err(TextInputError::Empty) } else { Ok(text) }
}

/// The real path of a folder that exists.
pub fn real_folder(path: &Path) -> io::Result<PathBuf> {
    let real = fs_err::canonicalize(path)?;
    if fs_err::metadata(&real)?.is_dir() {
        return Ok(real);
    }
    Err(io::Error::new(io::ErrorKind::NotADirectory, format!("`{}` is not a folder", real.display())))
}
