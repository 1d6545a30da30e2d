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

#[allow(dead_code, reason = "the stories share them")]
mod actors;
mod admit;
mod bad_input;
mod claim_retire;
mod codes;
#[allow(dead_code, reason = "the harness serves every file")]
mod common;
mod environment;
mod field;
mod field_hooks;
#[allow(dead_code, reason = "the stories share them")]
mod guard;
mod help;
mod hook_settings;
mod inspect;
mod inspect_list;
mod inspect_next;
mod inspect_told;
#[allow(dead_code, reason = "the kit serves several files")]
mod kit;
mod owners;
mod recover;
mod recover_pass;
mod repeats;
mod replace;
mod report;
mod report_show;
mod reserve;
mod rotate;
mod rotate_owner;
mod rotate_tokens;
mod rules;
mod settle;
mod settle_refused;
mod sh;
mod smoke;
mod stop;
mod stop_tree;
mod unsafe_readings;
mod workflow;
mod xum;
