//! The rules of the continuation guard, asked one call after the other without a disk.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::unnecessary_wraps,
    reason = "a test says what it does by its name, and may panic"
)]

mod chains;
mod desk;

mod hooks;
mod order;
mod sends;
