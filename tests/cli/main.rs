//! The binary from outside: one file a command, one test a story.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]
#![allow(clippy::disallowed_methods, reason = "tests look at files and the environment from outside")]
#![allow(let_underscore_drop, reason = "an outcome that was asserted is done with")]

mod admit;
#[allow(dead_code, reason = "the harness serves every file")]
mod common;
mod environment;
mod help;
mod owners;
mod repeats;
mod replace;
mod reserve;
mod rotate;
mod rotate_owner;
mod rotate_tokens;
mod sh;
mod smoke;
mod stop;
mod stop_tree;
