//! Workflows whose processes are killed with SIGKILL: the numbered stories about what the next process may do for a
//! step. The number stands in the name of the test. A restart is an owner that really dies, another owner that
//! acts then, and nothing in common but the root; a barrier is a pause point at which a call is held or killed.
//!
//! - `outcomes`: test 8, every end of a child against every record of its step.
//! - `owners`: tests 9 to 12, owners that are killed, live on, or come one after the other.
//! - `kills`: test 14, every pause point of the calls that give a step its next child.
//! - `reawakened`: tests 12 and 17, a child that is woken again while its step is resumed.
//! - `reported`: test 20, a report that the step refuses.
//! - `runners`: test 22, two runners over one claim.
//! - `resumed`: tests 13, 15, 16, 18, 19 and 21, as the resume of a step sees them.
#![allow(
    missing_docs,
    unreachable_pub,
    let_underscore_drop,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests may panic, and drop an answer once it is checked"
)]
#![allow(clippy::disallowed_methods, reason = "tests look at files and the environment from outside")]

#[path = "../cli/actors.rs"]
#[allow(dead_code, reason = "the people of other stories too")]
mod actors;
#[path = "../cli/xum/builder.rs"]
#[allow(dead_code, reason = "it builds for other tests too")]
mod builder;
#[path = "../cli/common.rs"]
#[allow(dead_code, reason = "the harness serves other tests too")]
mod common;
mod kills;
mod kit;
mod outcomes;
mod owners;
mod reawakened;
mod reported;
mod resumed;
mod runners;
