//! The store: what is on disk, and what this machine says about who wrote it.

pub mod process;
