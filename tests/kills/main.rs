//! Kills: a shell that resumes a workflow is killed at random moments, with the call it is just making, while its
//! agents, processes of their own, live on; and it is started anew until the run is completed. Whatever the moment
//! was, every step is done once, and every child that ended without a result was replaced once.
//!
//! The moments are drawn from a seed, which a failure tells. The same draws again, which on a busy machine may still
//! meet other moments:
//!
//! ```text
//! LYCHGATE_KILLS_SEED=17 cargo test --test kills
//! ```
//!
//! `LYCHGATE_KILLS=1000` kills more often.
#![allow(
    missing_docs,
    unreachable_pub,
    let_underscore_drop,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print, and drop an answer once it is checked"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at files, the environment and the clock from outside"
)]

mod books;
#[path = "../cli/common.rs"]
#[allow(dead_code, reason = "the harness serves other tests too")]
mod common;
mod dying;
mod storm;
mod story;
