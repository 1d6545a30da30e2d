//! The text of a report on its way in and out: streamed, never held whole.
//!
//! Invariants: a spooled text is UTF-8, not blank and within its bound; encoding and decoding its JSON string
//! are exact inverses, wherever a chunk ends.

use std::io::{self, IsTerminal as _, Read, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use tempfile::SpooledTempFile;

use super::disk::CHUNK_BYTES;
use super::names::hex;

/// The largest report.
pub const REPORT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Why a text is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportInputError {
    /// Nothing, or nothing but white space.
    #[error("the report is blank")]
    Empty,
    /// More than [`REPORT_BYTES_MAX`].
    #[error("the report is larger than {REPORT_BYTES_MAX} bytes")]
    TooLarge,
    /// Not UTF-8.
    #[error("the report is not UTF-8")]
    NotText,
    /// Standard input is a terminal: nobody meant to type a report.
    #[error("standard input is a terminal")]
    Terminal,
    /// It could not be read.
    #[error("cannot read the report")]
    Unreadable {
        /// What the system said.
        source: io::Error,
    },
    /// It could not be kept while it was read.
    #[error("cannot keep the report in a temporary file")]
    Spool {
        /// What the system said.
        source: io::Error,
    },
}

/// A text that was read to its end and is fit to be a report.
#[derive(Debug)]
pub struct ReportText {
    file: SpooledTempFile,
    /// SHA-256 of the text, in hex.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
}

impl ReportText {
    /// Reads a text to its end. A large one is kept in an unnamed file in `spool_dir`, which is gone when this
    /// process is.
    pub fn spool(reader: &mut dyn Read, spool_dir: &Path) -> Result<Self, ReportInputError> {
        let mut file = tempfile::spooled_tempfile_in(CHUNK_BYTES, spool_dir);
        let mut digest = Sha256::new();
        let mut check = Utf8Check::default();
        let mut bytes = 0u64;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let n = match reader.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(ReportInputError::Unreadable { source }),
            };
            let read = chunk.get(..n).unwrap_or_default();
            bytes += read.len() as u64;
            if bytes > REPORT_BYTES_MAX {
                return Err(ReportInputError::TooLarge);
            }
            check.push(read).ok_or(ReportInputError::NotText)?;
            digest.update(read);
            file.write_all(read).map_err(|source| ReportInputError::Spool { source })?;
        }
        if !check.carried.is_empty() {
            return Err(ReportInputError::NotText);
        }
        if !check.seen_ink {
            return Err(ReportInputError::Empty);
        }
        Ok(Self { file, sha256: hex(&digest.finalize()), bytes })
    }

    /// [`ReportText::spool`] of a file the caller named, which may be a link or lie anywhere.
    pub fn spool_file(path: &Path, spool_dir: &Path) -> Result<Self, ReportInputError> {
        let mut file = fs_err::File::open(path).map_err(|source| ReportInputError::Unreadable { source })?;
        Self::spool(&mut file, spool_dir)
    }

    /// [`ReportText::spool`] of standard input, unless that is a terminal.
    pub fn spool_stdin(spool_dir: &Path) -> Result<Self, ReportInputError> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Err(ReportInputError::Terminal);
        }
        Self::spool(&mut stdin.lock(), spool_dir)
    }

    /// SHA-256 of the text, in hex.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the text as the inside of a JSON string.
    pub(super) fn write_escaped(&mut self, writer: &mut dyn Write) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match self.file.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(n) => escape(chunk.get(..n).unwrap_or_default(), writer)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Checks UTF-8 chunk by chunk.
#[derive(Default)]
struct Utf8Check {
    /// The beginning of a character whose rest is in the next chunk: at most three bytes.
    carried: Vec<u8>,
    /// Whether anything but white space was seen.
    seen_ink: bool,
}

impl Utf8Check {
    fn push(&mut self, chunk: &[u8]) -> Option<()> {
        let mut rest = chunk;
        while !self.carried.is_empty() {
            let Some((first, tail)) = rest.split_first() else { return Some(()) };
            self.carried.push(*first);
            rest = tail;
            let carried = std::mem::take(&mut self.carried);
            self.whole(&carried)?;
        }
        self.whole(rest)
    }

    /// Takes the whole characters, and carries what may be the beginning of one.
    fn whole(&mut self, bytes: &[u8]) -> Option<()> {
        let (text, rest) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, Default::default()),
            Err(error) if error.error_len().is_none() => {
                let (whole, rest) = bytes.split_at_checked(error.valid_up_to())?;
                (std::str::from_utf8(whole).ok()?, rest)
            }
            Err(_) => return None,
        };
        self.seen_ink |= text.chars().any(|c| !c.is_whitespace());
        self.carried = rest.to_vec();
        Some(())
    }
}

/// Escapes bytes of a text for a JSON string, as `serde_json` does. No multi-byte character holds a byte that is
/// escaped, so the bytes may be cut anywhere.
fn escape(bytes: &[u8], writer: &mut dyn Write) -> io::Result<()> {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\') {
        let Some((plain, [special, tail @ ..])) = rest.split_at_checked(at) else { break };
        writer.write_all(plain)?;
        match special {
            b'"' => writer.write_all(b"\\\"")?,
            b'\\' => writer.write_all(b"\\\\")?,
            b'\n' => writer.write_all(b"\\n")?,
            b'\r' => writer.write_all(b"\\r")?,
            b'\t' => writer.write_all(b"\\t")?,
            0x08 => writer.write_all(b"\\b")?,
            0x0c => writer.write_all(b"\\f")?,
            control => write!(writer, "\\u{control:04x}")?,
        }
        rest = tail;
    }
    writer.write_all(rest)
}

/// Takes the last member of a JSON object, a string, apart: fed with the file's bytes, it writes the text.
pub(super) struct Unescape {
    /// What the member begins with, after the comma in front of it.
    opening: &'static [u8],
    state: State,
    /// The first half of a surrogate pair.
    high: Option<u32>,
}

#[derive(Clone, Copy)]
enum State {
    /// Before the text, with so many bytes of the opening matched.
    Before(usize),
    Plain,
    Escape,
    Unicode(u32, u8),
    After,
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the report file is malformed")
}

impl Unescape {
    /// `opening` begins with a comma and holds no other, and an unescaped quote: so it cannot occur in a string
    /// before the member, where every quote is escaped.
    pub(super) fn new(opening: &'static [u8]) -> Self {
        Self { opening, state: State::Before(0), high: None }
    }

    pub(super) fn push(&mut self, bytes: &[u8], writer: &mut dyn Write) -> io::Result<()> {
        let mut rest = bytes;
        while let Some((byte, tail)) = rest.split_first() {
            if matches!(self.state, State::Plain) {
                let stop = rest.iter().position(|byte| *byte == b'"' || *byte == b'\\').unwrap_or(rest.len());
                if let Some((plain, after)) =
                    rest.split_at_checked(stop).filter(|(plain, _)| !plain.is_empty())
                {
                    self.no_half_pair()?;
                    writer.write_all(plain)?;
                    rest = after;
                    continue;
                }
            }
            self.step(*byte, writer)?;
            rest = tail;
        }
        Ok(())
    }

    /// Whether the text has ended.
    pub(super) fn finish(&self) -> io::Result<()> {
        if matches!(self.state, State::After) { Ok(()) } else { Err(malformed()) }
    }

    fn no_half_pair(&self) -> io::Result<()> {
        if self.high.is_none() { Ok(()) } else { Err(malformed()) }
    }

    fn step(&mut self, byte: u8, writer: &mut dyn Write) -> io::Result<()> {
        self.state = match self.state {
            State::Before(matched) => self.before(matched, byte),
            State::Plain if byte == b'\\' => State::Escape,
            State::Plain => {
                self.no_half_pair()?;
                State::After
            }
            State::Escape if byte == b'u' => State::Unicode(0, 0),
            State::Escape => {
                self.no_half_pair()?;
                writer.write_all(&[unescaped(byte)?])?;
                State::Plain
            }
            State::Unicode(value, digits) => {
                let digit = char::from(byte).to_digit(16).ok_or_else(malformed)?;
                let value = value << 4 | digit;
                if digits == 3 {
                    self.unit(value, writer)?;
                    State::Plain
                } else {
                    State::Unicode(value, digits + 1)
                }
            }
            State::After if byte == b'}' || byte == b'\n' => State::After,
            State::After => return Err(malformed()),
        };
        Ok(())
    }

    fn before(&self, matched: usize, byte: u8) -> State {
        if self.opening.get(matched) == Some(&byte) {
            if matched + 1 == self.opening.len() { State::Plain } else { State::Before(matched + 1) }
        } else {
            State::Before(usize::from(self.opening.first() == Some(&byte)))
        }
    }

    /// One UTF-16 unit.
    fn unit(&mut self, unit: u32, writer: &mut dyn Write) -> io::Result<()> {
        let code = match (self.high.take(), unit) {
            (None, 0xD800..=0xDBFF) => {
                self.high = Some(unit);
                return Ok(());
            }
            (Some(high), 0xDC00..=0xDFFF) => 0x1_0000 + ((high - 0xD800) << 10) + (unit - 0xDC00),
            (None, unit) => unit,
            (Some(_), _) => return Err(malformed()),
        };
        let c = char::from_u32(code).ok_or_else(malformed)?;
        writer.write_all(c.encode_utf8(&mut [0; 4]).as_bytes())
    }
}

fn unescaped(byte: u8) -> io::Result<u8> {
    Ok(match byte {
        b'"' | b'\\' | b'/' => byte,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'f' => 0x0c,
        _ => return Err(malformed()),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its bytes out in pieces of one size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(buffer.len()).min(self.0.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn spool(bytes: &[u8], piece: usize) -> Result<ReportText, ReportInputError> {
        ReportText::spool(&mut Pieces(bytes, piece), &std::env::temp_dir())
    }

    fn unescape(file: &[u8], piece: usize) -> io::Result<Vec<u8>> {
        let mut unescape = Unescape::new(b",\"x\":\"");
        let mut text = Vec::new();
        for chunk in file.chunks(piece) {
            unescape.push(chunk, &mut text)?;
        }
        unescape.finish().map(|()| text)
    }

    #[test]
    fn characters_may_be_cut_by_any_chunk_border() {
        let text = "aß漢😀\u{85}\0\"\\\n".repeat(7);
        for piece in 1..9 {
            assert_eq!(spool(text.as_bytes(), piece).unwrap().bytes, text.len() as u64);
        }
        for cut in 1..4 {
            assert!(matches!(spool(&"😀".as_bytes()[..cut], 1), Err(ReportInputError::NotText)));
        }
        for bad in [b"a\xc0\x80".as_slice(), b"\xed\xa0\x80", b"\xf5a", b"\xe6\xbcx", b"\x80"] {
            for piece in 1..4 {
                assert!(matches!(spool(bad, piece), Err(ReportInputError::NotText)), "{bad:?}");
            }
        }
    }

    #[test]
    fn blank_and_too_large_texts_are_refused() {
        assert!(matches!(spool(b"", 1), Err(ReportInputError::Empty)));
        assert!(matches!(spool(" \n\t\u{3000}".as_bytes(), 1), Err(ReportInputError::Empty)));
        let whole = vec![b'a'; 16 * 1024 * 1024];
        assert_eq!(spool(&whole, usize::MAX).unwrap().bytes, REPORT_BYTES_MAX);
        assert!(matches!(spool(&[whole, vec![b'a']].concat(), usize::MAX), Err(ReportInputError::TooLarge)));
    }

    #[test]
    fn surrogates_are_put_together_across_chunk_borders() {
        let file = br#"{"t":",\"x\":\"no","x":"a\ud83d\ude00\u00e9\/\b\f"}"#;
        for piece in 1..20 {
            assert_eq!(unescape(file, piece).unwrap(), "a😀é/\u{8}\u{c}".as_bytes(), "pieces of {piece}");
        }
        for bad in [r"\ud83d", r"\ude00", r"\ud83dx", r"\ud83d\n", r"\q", r"\u12g4"] {
            assert!(unescape(format!(r#"{{"t":1,"x":"{bad}"}}"#).as_bytes(), 3).is_err(), "{bad}");
        }
        assert!(unescape(br#"{"t":1,"x":"open"#, 3).is_err());
        assert!(unescape(br#"{"t":1,"y":""}"#, 3).is_err());
    }

    proptest! {
        #[test]
        fn escapes_as_serde_does_and_back(text in "[\\PC\\x00-\\x20\"\\\\😀]{0,60}x", piece in 1usize..7) {
            let mut spooled = spool(text.as_bytes(), piece).unwrap();
            let mut inside = Vec::new();
            spooled.write_escaped(&mut inside).unwrap();
            let inside = String::from_utf8(inside).unwrap();
            prop_assert_eq!(format!("\"{inside}\""), serde_json::to_string(&text).unwrap());
            let file = format!("{{\"t\":1,\"x\":\"{inside}\"}}\n");
            prop_assert_eq!(unescape(file.as_bytes(), piece).unwrap(), text.into_bytes());
        }
    }
}
