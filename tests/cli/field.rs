//! What happened to people with other tools, played here: each test carries the number of the report whose kind
//! of failure it covers. The reports say "stop", "settle" and "retire" in many words; here they are ours.
//!
//! What of these reports belongs to a feature that is tested elsewhere, once it exists:
//! - A05, A21, A25: a whole run that was stopped stays stopped (`stop --run`, `reserve --resume`);
//! - A29: a workflow step gets its one replacement by asking for it (`reserve --run`);
//! - A37: what holds a task, in one sentence (`wait`);
//! - A51: litter in the folders of evidence (`prune`, `fsck`);
//! - A53, A67: a copy of a root beside its original (`backup`, `restore`);
//! - A69: a message that is delivered many times (the continuation guard's `notify`).

mod data;
mod ends;
mod faults;
mod locks;
mod ownership;
mod restarts;
mod storage;

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use crate::common::{BIN, Outcome, TestRoot};

/// Starts a call under `strace` with one injection, and gives what it did.
pub(super) fn injected(root: &TestRoot, call: &str, what: &str, args: &[&str]) -> Outcome {
    let plain = root.command(args);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={call}:{what}"), BIN]).args(args).arg("--json").env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(root.scratch()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    root.finish(command.spawn().unwrap())
}

/// Starts a call and kills it at its `n`th system call of that name. Says whether it got that far.
pub(super) fn crashed(root: &TestRoot, call: &str, n: u32, args: &[&str]) -> bool {
    let plain = root.command(args);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={call}:signal=KILL:when={n}"), BIN]).args(args).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(root.scratch()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap().signal() == Some(9)
}
