//! An agent's settings file, as far as our hooks are concerned: texts in, texts out.
//!
//! The files belong to somebody else. So what is not ours keeps its bytes, ours is recognised by the form of its
//! command and by nothing else, and what cannot be understood is not touched.

pub mod codex;
mod command;
mod edit;
mod found;
mod json;
mod places;

use std::fmt;

pub use command::{FoundCommand, HookCommand};
pub use edit::{install, is_ours_alone, uninstall};
pub use found::{Entry, Found, look};
pub use places::{Place, Scope, VARIABLES, places};

/// Why a settings file cannot be worked on: a part of a sentence, without the file's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable(pub String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
