//! Real agents, driven without an account or a network: their model is a small server of ours on loopback. What of
//! them cannot be driven is played by `replay`.
//!
//! One command: `LYCHGATE_AGENTS=install cargo test --test agents`. See `packages` for what is skipped when.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test runs programs, looks at the clock, and fails by panicking"
)]

mod agents;
mod alike;
mod call;
mod driven;
mod guard;
mod http;
mod model;
mod packages;
mod played;
mod read;
mod record;
mod replay;
mod settings;
mod stage;
mod wire;
