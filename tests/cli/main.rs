//! The binary from outside: one file a command, one test a story.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod common;
mod smoke;
