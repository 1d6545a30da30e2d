//! Attempt fencing, recovery after a restart and a continuation guard for people who run coding agents.

pub mod answer;
pub mod cli;
pub mod protocol;
pub mod seam;
pub mod state;
pub mod stdio;
