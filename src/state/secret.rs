//! The root's secret: the key every token is made with. It never leaves this type.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// How many bytes the key has.
const KEY_BYTES: usize = 32;

/// The key. It cannot be printed.
pub struct Secret {
    key: [u8; KEY_BYTES],
}

impl Secret {
    /// Reads the file: 64 lowercase hex digits and a line feed, nothing else.
    pub(super) fn parse(file: &[u8]) -> Option<Self> {
        let digits = file.strip_suffix(b"\n")?;
        if digits.len() != KEY_BYTES * 2 {
            return None;
        }
        let mut key = [0; KEY_BYTES];
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair.iter().try_fold(0u8, |value, digit| match digit {
                b'0'..=b'9' => Some(value << 4 | (digit - b'0')),
                b'a'..=b'f' => Some(value << 4 | (digit - b'a' + 10)),
                _ => None,
            })?;
        }
        Some(Self { key })
    }

    fn keyed(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("works because HMAC takes a key of any length");
        for part in parts {
            // The length in front keeps ("ab", "c") and ("a", "bc") apart.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }

    /// HMAC-SHA-256 of the parts, each with its length in front.
    pub fn mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.keyed(parts).finalize().into_bytes().into()
    }

    /// Whether a code is the one of these parts, compared in constant time.
    pub fn verify(&self, parts: &[&[u8]], code: &[u8]) -> bool {
        self.keyed(parts).verify_slice(code).is_ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn takes_only_the_exact_form() {
        let good = "0123456789abcdef".repeat(4) + "\n";
        assert!(Secret::parse(good.as_bytes()).is_some());
        for bad in
            [good.trim_end().to_owned(), good.to_uppercase(), "00\n".to_owned(), String::new(), good + "\n"]
        {
            assert!(Secret::parse(bad.as_bytes()).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn parts_are_kept_apart() {
        let secret = Secret::parse(("00".repeat(32) + "\n").as_bytes()).unwrap();
        let code = secret.mac(&[b"ab", b"c"]);
        assert_ne!(code, secret.mac(&[b"a", b"bc"]));
        assert!(secret.verify(&[b"ab", b"c"], &code));
        assert!(!secret.verify(&[b"ab", b"c"], &code[..31]));
        assert!(!secret.verify(&[b"ab", b"d"], &code));
    }
}
