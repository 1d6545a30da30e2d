//! The store from outside: what is on disk after each step, and what the next call makes of it.
//!
//! `root` making and recognising a root; `rows` locks, reading and single commits; `commits` several files in
//! one commit; `crash` what a dead process leaves, made by killing one; `inject` the same and errors, at every
//! system call; `reports` reports and evidence; `runs` the checkpoints of runs, and `runs_crash` what a dead process
//! leaves of them; `sessions` the records of sessions, and what a dead process leaves of them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic, and touches files to see what the store did"
)]

mod commits;
mod common;
mod crash;
mod inject;
mod reports;
mod root;
mod rows;
mod runs;
mod runs_crash;
mod sessions;
