//! The program under test, called as a script would.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::model::PATIENCE;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_lychgate");

fn command(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["--root", root.to_str().unwrap(), "--json"]).args(args).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A call that must be granted. Gives its answer.
#[track_caller]
pub(crate) fn call(root: &Path, args: &[&str], stdin: &str) -> Value {
    let mut child = command(root, args).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["ok"], true, "{args:?}: {answer}");
    answer
}

/// A call that has its locks and goes no further. It is killed when this is dropped.
pub(crate) struct Holder(Child);

impl Holder {
    /// Starts this call, and waits until it has its locks.
    pub(crate) fn of(root: &Path, args: &[&str], scratch: &Path) -> Self {
        let mut held = command(root, args);
        held.env("LYCHGATE_TEST_PAUSE", "locked").env("LYCHGATE_TEST_PAUSE_DIR", scratch);
        let holder = Self(held.spawn().unwrap());
        let deadline = Instant::now() + PATIENCE;
        while !scratch.join("locked.reached").exists() {
            assert!(Instant::now() < deadline, "the call never had its locks");
            std::thread::sleep(Duration::from_millis(2));
        }
        holder
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
