//! Readings of the contract that would be unsafe, each played to show that it is not the one that holds.

mod authority;
mod files;
mod namespaces;
