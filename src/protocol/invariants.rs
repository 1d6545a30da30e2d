//! The invariants of the protocol, each written once, with the rules it stands for.
//!
//! Nothing here decides anything: these are the sentences that the rules, taken together, must keep true,
//! whoever calls them in whatever order. The property tests ask them after every step, and a model checker may
//! ask them in every state. Each answers with what it found wrong, or with nothing.
//!
//! - [`RowRule`]: of every row at rest.
//! - [`StepRule`]: of one change of one row, with what the change wrote beside it and on whose word.
//! - [`WorldRule`]: of all rows together, and of everything that was ever published, admitted and written.
//! - [`OutcomeRule`]: of what the classifier says about a row.

use std::fmt;

/// Defines the invariants over one kind of subject: a variant, its rule numbers, its sentence, its check.
macro_rules! invariants {
    ($(#[$doc:meta])* $name:ident over $subject:ty {
        $($variant:ident [$rules:literal] $says:literal => $broken:path;)+
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $(#[doc = $says] $variant,)+ }

        impl $name {
            /// Every invariant of this kind.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)+ }
            }

            /// The rules it stands for.
            pub fn rules(self) -> &'static str {
                match self { $(Self::$variant => $rules,)+ }
            }

            /// What must be true.
            pub fn says(self) -> &'static str {
                match self { $(Self::$variant => $says,)+ }
            }

            /// What breaks it, if anything does.
            pub fn broken(self, subject: &$subject) -> Option<String> {
                match self { $(Self::$variant => $broken(subject),)+ }
            }

            /// Everything that is broken.
            pub fn check(subject: &$subject) -> Vec<$crate::protocol::invariants::Violation> {
                let broken = Self::ALL.iter().filter_map(|rule| Some((rule, rule.broken(subject)?)));
                broken
                    .map(|(rule, found)| $crate::protocol::invariants::Violation {
                        name: rule.name(),
                        rules: rule.rules(),
                        says: rule.says(),
                        found,
                    })
                    .collect()
            }
        }
    };
}

mod outcome;
mod row;
mod step;
mod world;

pub use outcome::{OutcomeRule, Seen};
pub use row::RowRule;
pub use step::{Deed, Step, StepRule};
pub use world::{World, WorldRule};

/// One broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub name: &'static str,
    /// The rules it stands for.
    pub rules: &'static str,
    /// What must be true.
    pub says: &'static str,
    /// What was found instead.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}; found: {}", self.name, self.rules, self.says, self.found)
    }
}

/// Nothing where the sentence holds, else what was found.
fn unless(holds: bool, found: impl FnOnce() -> String) -> Option<String> {
    if holds { None } else { Some(found()) }
}
