//! The points: every system call of a call, as one undisturbed run makes them, and what is done to it.

use std::collections::HashMap;
use std::fmt;

use super::world::{Bench, Call, Outcome};

/// What happens instead of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The process dies before the call is made.
    Kill,
    /// The call is not made and fails with this error.
    Error(&'static str),
    /// The call is not made and says that it was. Only for the proof that the checker sees something.
    Pretend,
}

/// The n-th call of one system call, counted from the start of the process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Point {
    pub syscall: String,
    pub n: usize,
    pub fault: Fault,
}

impl Point {
    /// A system call that only looks at something fails.
    pub fn blinds(&self) -> bool {
        self.fault != Fault::Kill
            && (LOOKING.contains(&self.syscall.as_str()) || self.syscall.starts_with("open"))
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = match self.fault {
            Fault::Kill => "KILL",
            Fault::Error(error) => error,
            Fault::Pretend => "PRETEND",
        };
        write!(f, "{}:{}:{fault}", self.syscall, self.n)
    }
}

/// One system call of an undisturbed run.
#[derive(Debug, Clone)]
pub struct Traced {
    pub syscall: String,
    pub n: usize,
    pub line: String,
}

/// System calls that change something outside the process, or take a lock.
const CHANGING: [&str; 29] = [
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "sendfile",
    "copy_file_range",
    "fallocate",
    "truncate",
    "ftruncate",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "rmdir",
    "mkdir",
    "mkdirat",
    "fchmod",
    "chmod",
    "flock",
    "fchmodat",
    "fchmodat2",
];

/// System calls about the process's own memory. How many there are hangs on addresses, which differ from run to
/// run, and death there is death at the next call.
const MEMORY: [&str; 6] = ["brk", "mmap", "munmap", "mremap", "mprotect", "madvise"];

/// System calls that only look at something outside the process.
const LOOKING: [&str; 11] = [
    "read",
    "pread64",
    "statx",
    "newfstatat",
    "fstat",
    "fstatfs",
    "statfs",
    "getdents64",
    "readlink",
    "lseek",
    "poll",
];

impl Traced {
    fn creates(&self) -> bool {
        self.syscall.starts_with("open") && self.line.contains("O_CREAT") || self.line.contains("O_TMPFILE")
    }

    /// Whether the call can change something outside the process.
    pub fn changes(&self) -> bool {
        self.creates() || CHANGING.contains(&self.syscall.as_str())
    }

    fn looks(&self) -> bool {
        LOOKING.contains(&self.syscall.as_str()) || self.syscall.starts_with("open") && !self.creates()
    }

    fn needs_space(&self) -> bool {
        self.creates() || self.syscall.contains("write") || self.syscall.starts_with("mkdir")
    }

    fn with(&self, fault: Fault) -> Point {
        Point { syscall: self.syscall.clone(), n: self.n, fault }
    }
}

/// Every system call of an undisturbed run, from the first one that names the scratch folder on.
pub fn trace(bench: &Bench, call: &Call) -> (Outcome, Vec<Traced>) {
    let (outcome, log) = bench.traced(call, &["-s", "256"]);
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut calls = Vec::new();
    let mut reached = false;
    let dir = bench.dir.display().to_string();
    for line in log.lines() {
        let Some((name, _)) = line.split_once('(') else { continue };
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            continue;
        }
        let n = counts.entry(name.to_owned()).or_default();
        *n += 1;
        if MEMORY.contains(&name) {
            continue;
        }
        reached |= line.contains(&dir) && name != "execve";
        if reached {
            calls.push(Traced { syscall: name.to_owned(), n: *n, line: line.to_owned() });
        }
    }
    (outcome, calls)
}

/// Which points of a call are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Death before every system call.
    Kills,
    /// Death before every system call that changes something: what is on disk is the same in between.
    ChangingKills,
    /// Errors: EIO of everything that changes something, ENOSPC where space is asked for, ENOLCK of locks.
    Errors,
    /// Every error of everything that changes something or looks at something.
    EveryError,
}

/// The points of a traced call.
pub fn points(calls: &[Traced], choice: Choice) -> Vec<Point> {
    let faults = |call: &Traced| -> Vec<Fault> {
        match choice {
            Choice::Kills => vec![Fault::Kill],
            Choice::ChangingKills if call.changes() => vec![Fault::Kill],
            Choice::Errors | Choice::EveryError if call.syscall == "flock" => {
                vec![
                    Fault::Error("EIO"),
                    Fault::Error("ENOSPC"),
                    Fault::Error("ENOLCK"),
                    Fault::Error("EINTR"),
                ]
            }
            Choice::Errors if call.needs_space() => vec![Fault::Error("EIO"), Fault::Error("ENOSPC")],
            Choice::Errors if call.changes() => vec![Fault::Error("EIO")],
            Choice::EveryError if call.changes() => {
                vec![
                    Fault::Error("EIO"),
                    Fault::Error("ENOSPC"),
                    Fault::Error("EINTR"),
                    Fault::Error("EACCES"),
                ]
            }
            Choice::EveryError if call.looks() => vec![Fault::Error("EIO"), Fault::Error("EINTR")],
            _ => vec![],
        }
    };
    calls.iter().flat_map(|call| faults(call).into_iter().map(|fault| call.with(fault))).collect()
}

/// Runs a call with one fault, and shows that it happened.
pub fn strike(bench: &Bench, call: &Call, point: &Point) -> Result<Outcome, String> {
    let (name, n) = (&point.syscall, point.n);
    let inject = match point.fault {
        Fault::Kill => format!("inject={name}:signal=SIGKILL:when={n}"),
        Fault::Error(error) => format!("inject={name}:error={error}:when={n}"),
        Fault::Pretend => format!("inject={name}:retval=0:when={n}"),
    };
    // Without the call in the `trace` set nothing is injected, and nothing says so.
    let what = format!("trace={name}");
    let mut options = vec!["-e", &what, "-e", &inject];
    if point.fault != Fault::Kill {
        // Stops the process only at that system call, which is twice as fast. A signal would not be injected.
        options.extend(["-f", "--seccomp-bpf"]);
    }
    let (outcome, log) = bench.traced(call, &options);
    let happened = match point.fault {
        Fault::Kill => outcome.signal == Some(9) && log.contains("+++ killed by SIGKILL"),
        Fault::Error(_) | Fault::Pretend => log.contains("(INJECTED)"),
    };
    if happened { Ok(outcome) } else { Err(format!("{point}: the fault did not happen\n{log}{outcome:?}")) }
}

/// Whether `strace` can do here what the tests need. The error says why not.
pub fn strace_works(bench: &Bench) -> Result<(), String> {
    let call = Call::new(&["inspect"]);
    for fault in [Fault::Kill, Fault::Error("EIO")] {
        if std::process::Command::new("strace").arg("-V").output().is_err() {
            return Err("strace is not installed".to_owned());
        }
        let syscall = if fault == Fault::Kill { "exit_group" } else { "write" };
        strike(bench, &call, &Point { syscall: syscall.to_owned(), n: 1, fault })?;
    }
    Ok(())
}
