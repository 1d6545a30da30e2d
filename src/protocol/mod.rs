//! The rules, pure: state and request in, new state and effects or a typed refusal out.
//!
//! Nothing here touches files, clocks, randomness or the environment; time and fresh ids come in as values.

pub mod admission;
pub mod advice;
pub mod checkpoint;
pub mod classify;
pub mod codes;
pub mod guard;
pub mod history;
pub mod ids;
pub mod input_hash;
pub mod invariants;
pub mod lineage;
pub mod receipt;
pub mod recovery;
pub mod report;
pub mod requests;
pub mod reservation;
pub mod retirement;
pub mod rotation;
pub mod row;
pub mod run;
pub mod settlement;
pub mod state;
pub mod stop;
pub mod verdict;
pub mod workflow;
pub mod xum;
