//! Attempt fencing and recovery after a restart, for people who run coding agents.
//!
//! The layers, from the top: `main` parses, runs and prints; [`commands`] turn arguments into requests and
//! judged transactions; [`protocol`] decides, without touching anything; [`state`] is the only part that
//! touches files. [`cli`] and [`answer`] are the two ends of the wire. `docs/ARCHITECTURE.md` is the map.

pub mod answer;
pub mod cli;
pub mod commands;
pub mod dialect;
pub mod protocol;
pub mod seam;
pub mod state;
pub mod stdio;
pub mod supervisor;
