//! Small inputs that a call names: read whole, with a bound.

use std::io::{self, Read as _};
use std::path::Path;

use fs_err::File;

/// The largest input of a step, in bytes.
pub const INPUT_BYTES_MAX: u64 = 16 << 20;

/// Reads a file, or standard input where no file is named.
pub fn read_input(path: Option<&Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match path {
        Some(path) => File::open(path)?.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?,
        None => io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?,
    };
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {INPUT_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}
