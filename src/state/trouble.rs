//! What kept a hook from its work, told as well as it can be: one small file an agent, the latest trouble over the
//! one before. Nothing decides on it, and failing to write it is no reason to fail.

use serde::{Deserialize, Serialize};

use super::{Store, disk};
use crate::protocol::ids::Timestamp;

/// The latest trouble of an agent's hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// When.
    pub at: Timestamp,
    /// What it was, for people.
    pub why: String,
    /// How often there was any.
    pub count: u64,
}

/// How much of a text is kept.
const WHY_CHARS_MAX: usize = 2_000;

impl Store {
    /// Keeps what went wrong with a hook of this agent.
    pub fn note_trouble(&self, agent: &str, at: &Timestamp, why: &str) {
        let count = self.trouble(agent).map_or(0, |before| before.count) + 1;
        let why = why.chars().take(WHY_CHARS_MAX).collect();
        if let Ok(bytes) = serde_json::to_vec(&Trouble { at: at.clone(), why, count }) {
            drop(disk::write_once(&self.trouble_path(agent), &bytes));
        }
    }

    /// The latest trouble with the hooks of this agent, if there was any that could be noted.
    pub fn trouble(&self, agent: &str) -> Option<Trouble> {
        let bytes = fs_err::read(self.trouble_path(agent)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn trouble_path(&self, agent: &str) -> std::path::PathBuf {
        self.root().join(format!("hook-trouble.{agent}.json"))
    }
}
