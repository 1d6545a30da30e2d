//! The rules against their invariants: random people and programs, with stale, wrong and repeated arguments,
//! whose memory is lost now and then, on tasks whose owners die at random.
//!
//! `PROPTEST_CASES` sets how many stories are played, `LYCHGATE_PROPS_SEED` which ones. The same seed plays the
//! same stories, so that what the run must have seen is not a matter of luck.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test program"
)]
#![allow(clippy::disallowed_methods, reason = "the number of cases and the seed come from the environment")]

mod broken_rows;
mod broken_steps;
mod broken_worlds;
mod calls;
mod machine;
mod op;
mod regressions;
mod samples;
mod world;
