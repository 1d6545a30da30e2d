//! Names of files: how an id becomes one, and the fixed names of the layout.
//!
//! Invariant: [`encode`] is injective, and no result is `.`, `..`, hidden, longer than a file name may be, or
//! holds a separator. Temps therefore never collide with the folder or file of an id.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use crate::protocol::ids::{AttemptId, Name};

/// Makes the root recognisable; its rename into place is the commit point of the initialisation.
pub(super) const CONFIG: &str = "config.json";
/// The key that tokens are made with.
pub(super) const SECRET: &str = "secret";
/// One folder a task.
pub(super) const TASKS: &str = "tasks";
/// One folder a workspace, with the evidence of its sub-agents.
pub(super) const SESSIONS: &str = "sessions";
/// A task's row, in its folder.
pub(super) const ROW: &str = "row.json";
/// The runs of a workspace, in its folder.
pub(super) const WORKFLOWS: &str = "workflows";
/// A run's checkpoints, in its folder.
pub(super) const RUN: &str = "run.json";
/// The continuation guard of a session, in the folder of its workspace.
pub(super) const GUARD: &str = "guard";
/// A session's record, in that folder.
pub(super) const SESSION: &str = "session.json";
/// Every temporary file of ours begins so.
pub(super) const TEMP_PREFIX: &str = ".lych-";
/// A document prepared by a commit of several; the transaction's id follows.
pub(super) const PART_PREFIX: &str = ".lych-part-";
/// Receipts, under a workspace.
pub(super) const RECEIPTS: &str = "subagent-attempt-settlements";
/// Reports, under a workspace.
pub(super) const REPORTS: &str = "subagent-reports";
/// Refused reports, under a task's reports.
pub(super) const LATE: &str = "late";

/// What JavaScript's `encodeURIComponent` leaves alone beside letters and digits.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// The longest encoding that is used whole.
const ENCODED_BYTES_MAX: usize = 180;
/// How much of a longer one is kept, for people.
const ENCODED_BYTES_KEPT: usize = 120;

/// What JavaScript's `encodeURIComponent` makes of a text.
pub(super) fn encode_uri_component(text: &str) -> String {
    utf8_percent_encode(text, &ESCAPED).to_string()
}

/// The file name of an id.
pub(super) fn encode(id: &Name) -> String {
    let text = id.as_str();
    let encoded = encode_uri_component(text);
    let mut encoded = match encoded.strip_prefix('.') {
        Some(".") => "%2E%2E".to_owned(),
        Some(rest) => format!("%2E{rest}"),
        None => encoded,
    };
    if encoded.len() <= ENCODED_BYTES_MAX {
        return encoded;
    }
    // `%~` never comes out of percent-encoding, so a shortened name equals no whole one.
    encoded.truncate(ENCODED_BYTES_KEPT);
    let mut digest = hex(&Sha256::digest(text.as_bytes()));
    digest.truncate(32);
    format!("{encoded}%~{digest}")
}

/// Lowercase hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether a text is lowercase hex of this length.
pub(super) fn is_hex(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// The folder of a task's receipts in one workspace, from the root.
pub(super) fn receipts_folder(workspace: &Name, task: &Name) -> [String; 4] {
    [SESSIONS.to_owned(), encode(workspace), RECEIPTS.to_owned(), encode(task)]
}

/// The folder of a task's reports in one workspace, from the root.
pub(super) fn reports_folder(workspace: &Name, task: &Name) -> [String; 4] {
    [SESSIONS.to_owned(), encode(workspace), REPORTS.to_owned(), encode(task)]
}

/// The file of a receipt or a report. A report from before attempts had ids is `unbound`.
pub fn evidence_file(attempt: Option<&AttemptId>) -> String {
    format!("{}.json", attempt.map_or("unbound", AttemptId::as_str))
}

/// The file of a refused report: the same text refused again is the same file.
pub(super) fn late_file(attempt: Option<&AttemptId>, text_sha256: &str) -> String {
    let digest: String = text_sha256.chars().take(16).collect();
    format!("{}-{digest}.json", attempt.map_or("unbound", AttemptId::as_str))
}

/// Whether a name is that of an archive of a document's history.
pub(super) fn is_history_file(name: &str) -> bool {
    name.starts_with("history-")
}

/// The name of an archive of a document's history.
pub(super) fn history_file(number: u64) -> String {
    format!("history-{number}.jsonl")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn enc(text: &str) -> String {
        encode(&Name::parse(text).unwrap())
    }

    #[test]
    fn encodes_as_javascript_does() {
        assert_eq!(enc("aZ09-_.!~*'()"), "aZ09-_.!~*'()");
        assert_eq!(enc("a/b c%ü"), "a%2Fb%20c%25%C3%BC");
        assert_eq!(enc("claude:1"), "claude%3A1");
    }

    #[test]
    fn dots_are_made_safe() {
        assert_eq!(enc("."), "%2E");
        assert_eq!(enc(".."), "%2E%2E");
        assert_eq!(enc(".lych-x"), "%2Elych-x");
        assert_eq!(enc("..."), "%2E..");
        assert_eq!(enc("a."), "a.");
    }

    #[test]
    fn a_long_name_is_cut_and_told_apart_by_its_digest() {
        let (one, two) = ("/".repeat(127) + "a", "/".repeat(127) + "b");
        assert_eq!(enc(&one).len(), 154);
        assert_ne!(enc(&one), enc(&two));
        assert_eq!(enc(&"/".repeat(60)).len(), 180, "180 bytes are used whole");
        assert!(enc(&"/".repeat(61)).contains("%~"));
    }

    proptest! {
        #[test]
        fn is_injective_and_safe(a in "[.%~/a-c漢]{1,40}", b in "[.%~/a-c漢]{1,40}") {
            let (x, y) = (enc(&a), enc(&b));
            prop_assert_eq!(a == b, x == y);
            prop_assert!(!x.starts_with('.') && !x.contains('/') && x.len() <= 180);
            // The whole ones decode to their id, which is what makes them injective.
            if !x.contains("%~") {
                prop_assert_eq!(percent_encoding::percent_decode_str(&x).decode_utf8().unwrap(), a);
            }
        }
    }
}
