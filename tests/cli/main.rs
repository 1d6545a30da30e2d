//! The binary from outside: one file a command, one test a story.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]
#![allow(clippy::disallowed_methods, reason = "tests look at files and the environment from outside")]

#[allow(dead_code, reason = "the harness serves every file")]
mod common;
mod smoke;
