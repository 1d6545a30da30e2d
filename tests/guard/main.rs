//! The rules of the continuation guard, asked one call after the other without a disk.
#![allow(missing_docs, unreachable_pub, reason = "a test says what it does by its name")]

mod chains;
mod desk;

mod hooks;
mod order;
mod sends;
