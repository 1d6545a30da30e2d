//! `hook AGENT`, as the agent sees it: exit status 0 whatever happens, on standard output nothing or one object,
//! and all of it within a second.
//!
//! An agent reads other exit statuses as "block", and waits for every thread of a hook's process. So the process
//! that the agent has started does no work: it reads standard input, has the work done by a second process of this
//! program, and does not wait for it beyond its deadline. A worker that is killed by any signal, aborts, overflows
//! its stack or hangs in a sync that never returns is a worker that has said nothing, and then the agent may stop.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::cli::{HookCall, Worker};
use crate::dialect::{self, Reply};
use crate::stdio::{Stdout, stdout_state};

/// All the time there is.
const DEADLINE: Duration = Duration::from_millis(900);
/// How long the agent may take to close standard input.
const INPUT_DEADLINE: Duration = Duration::from_millis(400);
/// How much of standard input is looked at. The rest is read and forgotten.
const INPUT_BYTES_MAX: u64 = 32 << 20;
/// What every complaint begins with.
const SPEAKER: &str = "lychgate hook: ";

/// What came of the worker.
struct Outcome {
    /// For the agent; absent: the work was not done.
    stdout: Option<Vec<u8>>,
    /// For people.
    complaint: Option<String>,
    /// The worker could not note it itself.
    is_unnoted: bool,
}

/// Answers a hook call, whatever its arguments are.
#[allow(
    clippy::disallowed_methods,
    clippy::exit,
    reason = "this wait is bounded, and a panic may not end with its own exit status"
)]
pub fn run(call: HookCall, args: &[OsString], started_ms: u64) -> ExitCode {
    // Where no thread can be started, for example, this process panics. The agent may stop then, too.
    std::panic::set_hook(Box::new(move |_| {
        let nothing =
            call.agent.map(|agent| dialect::print(agent, None, &Reply::Nothing)).unwrap_or_default();
        drop(std::io::stdout().write_all(nothing.as_bytes()));
        std::process::exit(0);
    }));
    let worker = Worker { started_ms, heard: stdout_state() == Stdout::Usable, trouble: None };
    let deadline = Instant::now() + DEADLINE;
    let input = read_input(INPUT_DEADLINE);
    let outcome = match input {
        Some(input) => work(&worker.args(args), input, deadline),
        None => unnoted("standard input was not closed in time, so the event was not looked at".to_owned()),
    };
    let said = outcome.stdout.filter(|stdout| is_one_object(stdout));
    let stdout = said.unwrap_or_else(|| {
        call.agent.map(|agent| dialect::print(agent, None, &Reply::Nothing)).unwrap_or_default().into_bytes()
    });
    // Gemini reads standard error where standard output is empty. It never is for Gemini, which gets an object.
    if let Some(complaint) = outcome.complaint {
        drop(writeln!(std::io::stderr().lock(), "{SPEAKER}{complaint}"));
        if outcome.is_unnoted {
            note(&Worker { trouble: Some(complaint), ..worker }, args);
        }
    }
    let mut out = std::io::stdout().lock();
    drop(out.write_all(&stdout).and_then(|()| out.flush()));
    ExitCode::SUCCESS
}

/// Reads all of standard input, also what is too much, so that the agent's own write never fails.
fn read_input(wait: Duration) -> Option<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut input = Vec::new();
        // An error, for example a closed descriptor, is an event that says nothing.
        drop((&mut stdin).take(INPUT_BYTES_MAX).read_to_end(&mut input));
        drop(std::io::copy(&mut stdin, &mut std::io::sink()));
        drop(sender.send(input));
    });
    receiver.recv_timeout(wait).ok()
}

/// A worker that said nothing, for a reason that it could not tell anybody.
fn unnoted(complaint: String) -> Outcome {
    Outcome { stdout: None, complaint: Some(complaint), is_unnoted: true }
}

#[allow(clippy::disallowed_methods, reason = "this wait is bounded")]
fn work(args: &[OsString], input: Vec<u8>, deadline: Instant) -> Outcome {
    let mut child = match start(args, Stdio::piped) {
        Ok(child) => child,
        Err(error) => return unnoted(format!("the event could not be worked on: {error}")),
    };
    let pid = child.id();
    feed(&mut child, input);
    let said = listen(&mut child);
    let left = deadline.saturating_duration_since(Instant::now());
    match said.recv_timeout(left) {
        Ok(said) if said.ended_well => {
            Outcome { stdout: Some(said.stdout), complaint: None, is_unnoted: false }
        }
        Ok(said) if said.stderr.is_empty() => unnoted("the process that worked on the event died".to_owned()),
        Ok(said) => {
            let complaint = String::from_utf8_lossy(&said.stderr);
            // The worker says who speaks, as every command does, and so does this process.
            let complaint = complaint.trim_end();
            let complaint = complaint.strip_prefix(SPEAKER).unwrap_or(complaint).to_owned();
            Outcome { stdout: None, complaint: Some(complaint), is_unnoted: false }
        }
        Err(_) => {
            kill(pid);
            unnoted("the event was not worked on in time".to_owned())
        }
    }
}

/// Starts this very program again, which works even while it is being replaced by a newer one.
fn start(args: &[OsString], stream: fn() -> Stdio) -> std::io::Result<Child> {
    let program = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
    Command::new(program).args(args).stdin(stream()).stdout(stream()).stderr(stream()).spawn()
}

/// Has the trouble noted in the root by a process that nobody waits for: the root may be what hangs.
fn note(worker: &Worker, args: &[OsString]) {
    drop(start(&worker.args(args), Stdio::null));
}

fn feed(child: &mut Child, input: Vec<u8>) {
    if let Some(mut stdin) = child.stdin.take() {
        // A worker that does not read its input has said why, or is dead.
        thread::spawn(move || drop(stdin.write_all(&input)));
    }
}

struct SaidByWorker {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    ended_well: bool,
}

fn listen(child: &mut Child) -> Receiver<SaidByWorker> {
    let (sender, receiver) = channel();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let errors = thread::spawn(move || read_all(stderr));
    let pid = child.id();
    thread::spawn(move || {
        let stdout = read_all(stdout);
        let stderr = errors.join().unwrap_or_default();
        let ended_well = wait_for(pid);
        drop(sender.send(SaidByWorker { stdout, stderr, ended_well }));
    });
    receiver
}

fn read_all(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        drop(pipe.read_to_end(&mut bytes));
    }
    bytes
}

fn pid_of(id: u32) -> Option<rustix::process::Pid> {
    i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw)
}

/// Whether the process ended by itself with 0.
fn wait_for(id: u32) -> bool {
    let Some(pid) = pid_of(id) else { return false };
    let ended = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
    matches!(ended, Ok(Some((_, status))) if status.exit_status() == Some(0))
}

/// What hangs in the kernel does not die of it, and nobody waits for that.
fn kill(id: u32) {
    if let Some(pid) = pid_of(id) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

fn is_one_object(bytes: &[u8]) -> bool {
    bytes.is_empty() || serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_empty_or_one_object() {
        for good in ["", "{}", "{\"decision\":\"block\"}\n"] {
            assert!(is_one_object(good.as_bytes()), "{good}");
        }
        for bad in ["{}{}", "[]", "null", "x", "{", "{} x"] {
            assert!(!is_one_object(bad.as_bytes()), "{bad}");
        }
    }
}
