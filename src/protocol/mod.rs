//! The rules, pure: state and request in, new state and effects or a typed refusal out.
//!
//! Nothing here touches files, clocks, randomness or the environment; time and fresh ids come in as values.

pub mod codes;
pub mod history;
pub mod ids;
pub mod receipt;
pub mod requests;
pub mod row;
