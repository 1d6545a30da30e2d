//! Owners for the tests: real processes that live, and real ones that were killed and reaped.

use std::process::{Child, Command, Stdio};

/// A process that does nothing until it is killed.
pub struct Process(Child);

impl Process {
    /// Starts one.
    pub fn start() -> Self {
        // It waits for its standard input, whose other end lives as long as this value.
        Self(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// Its pid, as an argument.
    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Kills it and reaps it, so that its pid answers "no such process".
    pub fn die(self) {
        drop(self);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The pid of the test itself, which outlives every call it makes.
pub fn alive() -> String {
    std::process::id().to_string()
}

/// A pid that nobody has: no Linux kernel gives one this large.
pub const NOBODY: &str = "4194305";
