//! Races between real processes: many calls start at the same instant on the same tasks, and whoever comes
//! first, the answers and the rows must tell one and the same story.
//!
//! A round is one such start. CI plays a few dozen of each; a thousand are played by
//! `LYCHGATE_RACE_ROUNDS=1000 cargo test --release --test races`.
#![allow(
    missing_docs,
    unreachable_pub,
    let_underscore_drop,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests may panic, and drop an answer once it is checked"
)]
#![allow(clippy::disallowed_methods, reason = "tests look at files and the environment from outside")]

mod claims;
#[path = "../cli/common.rs"]
#[allow(dead_code, reason = "the harness serves other tests too")]
mod common;
mod endings;
mod gate;
mod guard;
mod identities;
mod pending;
mod repeats;
mod sessions;
mod start;
mod steps;
