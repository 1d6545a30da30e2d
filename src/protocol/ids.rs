//! The identifiers of the protocol. A value of one of these types is well formed by construction.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a text is not the identifier it was offered as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not {wanted}")]
pub struct InvalidId {
    /// What was offered, with control characters escaped.
    pub given: String,
    /// What would have been accepted.
    pub wanted: &'static str,
}

/// How much of a refused text an error shows.
const GIVEN_CHARS_MAX: usize = 160;

fn invalid(given: &str, wanted: &'static str) -> InvalidId {
    let mut shown: String = given.escape_debug().take(GIVEN_CHARS_MAX).collect();
    if given.chars().count() > GIVEN_CHARS_MAX {
        shown.push('…');
    }
    InvalidId { given: shown, wanted }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $wanted:literal, $accepts:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Accepts a well-formed text.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                let accepts: fn(&str) -> bool = $accepts;
                if accepts(text) { Ok(Self(text.to_owned())) } else { Err(invalid(text, $wanted)) }
            }

            /// The text as it is written on disk and printed.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }
    };
}

/// The longest name a user may give, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn has_hex_tail(text: &str, prefix: &str, len_min: usize, len_max: usize) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|tail| (len_min..=len_max).contains(&tail.len()) && is_lower_hex(tail))
}

text_id!(
    /// A name the user chose: of a task, a workspace, a run, a step, an input hash.
    /// Task ids and workspace ids are one name space.
    Name,
    "a name of 1 to 128 bytes of UTF-8 without control characters",
    is_name
);

text_id!(
    /// One life of a task (rule 17): `att_` and 16 lowercase hex digits from the operating system.
    AttemptId,
    "an attempt id (`att_` and 16 lowercase hex digits)",
    |text| has_hex_tail(text, "att_", 16, 16)
);

text_id!(
    /// One wish to start a turn: `snd_`, the 16 digits of its attempt, and a counter of its task in hex.
    SendId,
    "a send id (`snd_` and at least 20 lowercase hex digits)",
    |text| has_hex_tail(text, "snd_", 20, 32)
);

text_id!(
    /// One admitted turn: `turn_`, the 16 digits of its attempt, and a counter of its task in hex.
    TurnId,
    "a turn id (`turn_` and at least 20 lowercase hex digits)",
    |text| has_hex_tail(text, "turn_", 20, 32)
);

text_id!(
    /// A named debt of a Stop. It cannot be guessed, because it alone authorises its payment.
    CleanupId,
    "a cleanup id (`cln_` and 32 lowercase hex digits)",
    |text| has_hex_tail(text, "cln_", 32, 32)
);

text_id!(
    /// What a granted claim is spent with (hazard H1). A fresh one voids the older ones.
    Nonce,
    "a nonce (`non_` and 32 lowercase hex digits)",
    |text| has_hex_tail(text, "non_", 32, 32)
);

text_id!(
    /// A prompt of a session (O4): `prm_` and 16 lowercase hex digits.
    PromptId,
    "a prompt id (`prm_` and 16 lowercase hex digits)",
    |text| has_hex_tail(text, "prm_", 16, 16)
);

text_id!(
    /// A granted claim to continue (O22): `tkt_` and 16 lowercase hex digits.
    TicketId,
    "a ticket id (`tkt_` and 16 lowercase hex digits)",
    |text| has_hex_tail(text, "tkt_", 16, 16)
);

text_id!(
    /// A provisional mark on a background task (O51): `mrk_` and 16 lowercase hex digits.
    MarkId,
    "a mark id (`mrk_` and 16 lowercase hex digits)",
    |text| has_hex_tail(text, "mrk_", 16, 16)
);

text_id!(
    /// A notice of what had no place in a queue (O69): `gap_` and 16 lowercase hex digits.
    GapId,
    "a gap id (`gap_` and 16 lowercase hex digits)",
    |text| has_hex_tail(text, "gap_", 16, 16)
);

/// The 16 hex digits that the operating system gave one call, for the ids it may mint: of each kind one at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fresh(String);

impl Fresh {
    /// Accepts 16 lowercase hex digits.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let is_fresh = text.len() == 16 && is_lower_hex(text);
        if is_fresh { Ok(Self(text.to_owned())) } else { Err(invalid(text, "16 lowercase hex digits")) }
    }

    /// The prompt this call may mint.
    pub fn prompt(&self) -> PromptId {
        PromptId(format!("prm_{}", self.0))
    }

    /// The ticket this call may mint.
    pub fn ticket(&self) -> TicketId {
        TicketId(format!("tkt_{}", self.0))
    }

    /// The mark this call may mint.
    pub fn mark(&self) -> MarkId {
        MarkId(format!("mrk_{}", self.0))
    }

    /// The gap notice this call may mint.
    pub fn gap(&self) -> GapId {
        GapId(format!("gap_{}", self.0))
    }

    /// The name of a message, a notification or a timer's firing that came without one.
    pub fn message(&self) -> Name {
        Name(format!("msg_{}", self.0))
    }
}

text_id!(
    /// The caller's name for one call, so that repeating it is harmless (hazard H4).
    RequestId,
    "a request id of 1 to 128 bytes of UTF-8 without control characters",
    is_name
);

text_id!(
    /// An instant for people, RFC 3339 in UTC. Nothing is decided by it.
    Timestamp,
    "a time in RFC 3339",
    |text| text.len() >= 20 && text.ends_with('Z')
);

impl AttemptId {
    fn digits(&self) -> &str {
        self.as_str().trim_start_matches("att_")
    }
}

/// What a minted send id or turn id says about its own origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minted {
    /// The attempt it was minted for.
    pub attempt: AttemptId,
    /// Its place in the task's counter, from 1.
    pub counter: u64,
}

fn mint(prefix: &str, attempt: &AttemptId, counter: u64) -> String {
    format!("{prefix}{}{counter:04x}", attempt.digits())
}

fn minted(text: &str, prefix: &str) -> Option<Minted> {
    let (attempt, counter) = text.strip_prefix(prefix)?.split_at_checked(16)?;
    let attempt = AttemptId::parse(&format!("att_{attempt}")).ok()?;
    let counter = u64::from_str_radix(counter, 16).ok()?;
    Some(Minted { attempt, counter })
}

impl SendId {
    /// The id of the task's `counter`-th send.
    pub fn mint(attempt: &AttemptId, counter: u64) -> Self {
        Self(mint("snd_", attempt, counter))
    }

    /// Where this id came from; `None` for an id we cannot have made.
    pub fn minted(&self) -> Option<Minted> {
        minted(&self.0, "snd_").filter(|m| Self::mint(&m.attempt, m.counter) == *self)
    }
}

impl TurnId {
    /// The id of the task's `counter`-th turn.
    pub fn mint(attempt: &AttemptId, counter: u64) -> Self {
        Self(mint("turn_", attempt, counter))
    }

    /// Where this id came from; `None` for an id we cannot have made.
    pub fn minted(&self) -> Option<Minted> {
        minted(&self.0, "turn_").filter(|m| Self::mint(&m.attempt, m.counter) == *self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_in_bytes_and_free_of_control_characters() {
        assert!(Name::parse("a").is_ok());
        assert!(Name::parse(&"/".repeat(128)).is_ok());
        assert!(Name::parse(&"漢".repeat(42)).is_ok());
        assert!(Name::parse("").is_err());
        assert!(Name::parse(&"漢".repeat(43)).is_err());
        assert!(Name::parse("a\nb").is_err());
        assert!(Name::parse("a\u{85}b").is_err());
    }

    #[test]
    fn an_attempt_id_is_exactly_sixteen_lowercase_hex_digits() {
        assert!(AttemptId::parse("att_0123456789abcdef").is_ok());
        assert!(AttemptId::parse("att_0123456789ABCDEF").is_err());
        assert!(AttemptId::parse("att_0123456789abcde").is_err());
        assert!(AttemptId::parse("0123456789abcdef").is_err());
    }

    #[test]
    fn a_turn_id_names_its_attempt_and_counter() -> Result<(), InvalidId> {
        let attempt = AttemptId::parse("att_0123456789abcdef")?;
        let turn = TurnId::mint(&attempt, 0x1_2345);
        assert_eq!(turn.as_str(), "turn_0123456789abcdef12345");
        assert_eq!(turn.minted(), Some(Minted { attempt: attempt.clone(), counter: 0x1_2345 }));
        assert_eq!(TurnId::parse("turn_0123456789abcdef000012")?.minted(), None, "padding is not ours");
        assert_eq!(TurnId::mint(&attempt, 1).as_str(), "turn_0123456789abcdef0001");
        Ok(())
    }
}
