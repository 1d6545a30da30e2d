//! Whether a recorded process is alive, dead, or neither provably.
//!
//! **Dead is a proof, everything else is treated as alive.** The proof is one of
//!
//! 1. same machine, another boot: nothing outlives its kernel;
//! 2. same machine, boot and pid namespace, and the kernel answers ESRCH for the pid. A missing `/proc` entry
//!    is no such answer: `hidepid` hides living processes, and another `/proc` may be mounted here;
//! 3. same machine, boot, pid namespace and time namespace, and the process of that pid started at another time.
//!
//! What the proof rests on counts only where the kernel vouches for it: containers mount their own files over
//! `/proc/sys/kernel/random/boot_id`, and `/proc` may belong to another pid namespace. `linux.rs` checks that.
//!
//! A zombie is neither: the state is that of the main thread, which may have ended while other threads of the
//! process go on working. So a zombie with the recorded start time stays [`Life::Unknown`] until it is reaped.
//!
//! A pid namespace's number may be given to a later namespace, which is harmless: it is free only after every
//! process of the former one has ended. That is not so for time namespaces, whose number is therefore recorded
//! together with their offset.

use std::sync::OnceLock;

use crate::protocol::row::{Extra, ProcessRef};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as os;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
use elsewhere as os;

/// This process's own surroundings, as far as they can be trusted. They are read on first use, and once.
#[derive(Debug, Default)]
pub struct Here {
    surroundings: OnceLock<Surroundings>,
}

/// What [`Here`] reads.
#[derive(Debug, Default)]
struct Surroundings {
    machine_id: Option<String>,
    boot_id: Option<String>,
    pid_namespace: Option<String>,
    time_namespace: Option<String>,
    /// `/proc`, if its numbers are those of our own pid namespace.
    proc: Option<os::Proc>,
}

impl Here {
    /// Surroundings that are not read yet.
    pub const fn new() -> Self {
        Self { surroundings: OnceLock::new() }
    }

    /// `/etc/machine-id`, if it is one.
    pub fn machine_id(&self) -> Option<&str> {
        self.get().machine_id.as_deref()
    }

    /// The boot id, if it provably comes from the kernel.
    pub fn boot_id(&self) -> Option<&str> {
        self.get().boot_id.as_deref()
    }

    /// The pid namespace of this process.
    pub fn pid_namespace(&self) -> Option<&str> {
        self.get().pid_namespace.as_deref()
    }

    /// The time namespace of this process, with the offset of its boot clock where there is one.
    pub fn time_namespace(&self) -> Option<&str> {
        self.get().time_namespace.as_deref()
    }

    fn get(&self) -> &Surroundings {
        self.surroundings.get_or_init(os::surroundings)
    }
}

/// Why a process cannot be recorded as an owner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProcessUnreadable {
    /// The kernel knows no such process in our pid namespace.
    #[error("there is no process {pid} in this pid namespace")]
    NoSuchProcess {
        /// The pid.
        pid: u32,
    },
    /// It has ended and waits to be reaped.
    #[error("process {pid} has ended and waits to be reaped (zombie)")]
    Ended {
        /// The pid.
        pid: u32,
    },
    /// The number names a thread. Its end would say nothing about its process.
    #[error("{pid} is a thread of process {process}, not a process")]
    Thread {
        /// The number given.
        pid: u32,
        /// The process it belongs to.
        process: u32,
    },
    /// It exists, but what identifies it cannot be read.
    #[error("process {pid} cannot be identified: {why}")]
    Unreadable {
        /// The pid.
        pid: u32,
        /// Why, in one clause.
        why: String,
    },
    /// Processes cannot be identified on this platform.
    #[error("processes cannot be identified on this platform")]
    Unsupported,
}

/// Whether a recorded process lives. The text says why, for people, in one clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Life {
    /// It runs: same machine, boot, pid namespace and start time.
    Alive(String),
    /// It is proven dead.
    Dead(String),
    /// Neither is proven. To be treated as alive.
    Unknown(String),
}

impl Life {
    /// The reason, for people.
    pub fn why(&self) -> &str {
        match self {
            Self::Alive(why) | Self::Dead(why) | Self::Unknown(why) => why,
        }
    }

    /// Whether death is proven.
    pub fn is_dead(&self) -> bool {
        matches!(self, Self::Dead(_))
    }
}

/// The kernel's answer to "is there a process of this pid in our pid namespace".
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
enum Presence {
    /// Something has that pid, perhaps a zombie.
    Present,
    /// ESRCH.
    Absent,
    /// No usable answer.
    Unclear(String),
}

/// What `/proc/<pid>/stat` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    state: char,
    start_ticks: u64,
}

impl Stat {
    /// Whether the main thread has ended: zombie, or about to be gone.
    fn has_ended(self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// Returns what is recorded of a process, so that a later call can tell whether it is gone.
///
/// The process must exist now, in our own pid namespace, and its start time must be readable. What else cannot
/// be trusted here is left out of the record, and will prove nothing.
pub fn describe(pid: u32, here: &Here) -> Result<ProcessRef, ProcessUnreadable> {
    if !os::SUPPORTED {
        return Err(ProcessUnreadable::Unsupported);
    }
    let unreadable = |why: String| ProcessUnreadable::Unreadable { pid, why };
    match os::presence(pid) {
        Presence::Present => {}
        Presence::Absent => return Err(ProcessUnreadable::NoSuchProcess { pid }),
        Presence::Unclear(why) => return Err(unreadable(why)),
    }
    let surroundings = here.get();
    let Some(proc) = &surroundings.proc else {
        return Err(unreadable("/proc is not the one of this pid namespace".to_owned()));
    };
    let process = proc.thread_group(pid).map_err(unreadable)?;
    if process != pid {
        return Err(ProcessUnreadable::Thread { pid, process });
    }
    let stat = proc.stat(pid).map_err(unreadable)?;
    if stat.has_ended() {
        return Err(ProcessUnreadable::Ended { pid });
    }
    Ok(ProcessRef {
        pid,
        start_ticks: Some(stat.start_ticks),
        machine_id: surroundings.machine_id.clone(),
        boot_id: surroundings.boot_id.clone(),
        pid_namespace: surroundings.pid_namespace.clone(),
        time_namespace: surroundings.time_namespace.clone(),
        extra: Extra::new(),
    })
}

/// Returns whether a recorded process lives, seen from here.
///
/// Nobody is ever proven dead for a root that is not on a local file system: other machines may use it too,
/// and a machine id is easily copied.
pub fn observe(process: &ProcessRef, here: &Here, root_is_local: bool) -> Life {
    match judge(process, here.get(), os::presence) {
        Life::Dead(why) if !root_is_local => Life::Unknown(format!(
            "{why}, which proves nothing because the root is not on a local file system"
        )),
        life => life,
    }
}

/// What a recorded fact and its present counterpart say together.
enum Comparison {
    Same,
    Different,
    /// One of them is absent, or is no value of its kind.
    Missing,
}

fn compare(recorded: Option<&String>, here: Option<&String>, is_valid: fn(&str) -> bool) -> Comparison {
    match (recorded, here) {
        (Some(recorded), Some(here)) if is_valid(recorded) && is_valid(here) => {
            if recorded == here {
                Comparison::Same
            } else {
                Comparison::Different
            }
        }
        _ => Comparison::Missing,
    }
}

/// The rule of the module's documentation, in its order.
fn judge(process: &ProcessRef, here: &Surroundings, presence: impl Fn(u32) -> Presence) -> Life {
    let pid = process.pid;
    let unknown = |why: &str| Life::Unknown(why.to_owned());
    match compare(process.machine_id.as_ref(), here.machine_id.as_ref(), is_machine_id) {
        Comparison::Same => {}
        Comparison::Different => return unknown("it was recorded on another machine"),
        Comparison::Missing => return unknown("the machine id is not known, now or when it was recorded"),
    }
    match compare(process.boot_id.as_ref(), here.boot_id.as_ref(), is_uuid) {
        Comparison::Same => {}
        Comparison::Different => return Life::Dead("the machine was restarted since".to_owned()),
        Comparison::Missing => return unknown("the boot id is not known, now or when it was recorded"),
    }
    match compare(process.pid_namespace.as_ref(), here.pid_namespace.as_ref(), is_some_text) {
        Comparison::Same => {}
        Comparison::Different => return unknown("it was recorded in another pid namespace"),
        Comparison::Missing => return unknown("the pid namespace is not known, now or when it was recorded"),
    }
    match presence(pid) {
        Presence::Present => judge_start(process, here),
        Presence::Absent => Life::Dead(format!("there is no process {pid} any more")),
        Presence::Unclear(why) => Life::Unknown(why),
    }
}

/// The part of the rule for a pid that somebody has: the recorded process, or a later one.
fn judge_start(process: &ProcessRef, here: &Surroundings) -> Life {
    let pid = process.pid;
    let unknown = |why: &str| Life::Unknown(why.to_owned());
    let Some(recorded) = process.start_ticks else {
        return unknown("its start time was not recorded");
    };
    let clock = compare(process.time_namespace.as_ref(), here.time_namespace.as_ref(), is_some_text);
    if matches!(clock, Comparison::Different) {
        return unknown("its start time was recorded in another time namespace");
    }
    let Some(proc) = &here.proc else {
        return unknown("/proc is not the one of this pid namespace");
    };
    let stat = match proc.stat(pid) {
        Ok(stat) => stat,
        Err(why) => return Life::Unknown(why),
    };
    if stat.start_ticks != recorded {
        return match clock {
            Comparison::Same => {
                Life::Dead(format!("pid {pid} belongs to a process that started at another time"))
            }
            _ => unknown("start times differ, but the time namespace is not known"),
        };
    }
    if stat.has_ended() {
        return Life::Unknown(format!("process {pid} is a zombie: it has not been reaped"));
    }
    Life::Alive(format!("process {pid} is there, with the start time that was recorded"))
}

/// Parses `/proc/<pid>/stat`. The command's name stands in parentheses and may itself contain parentheses,
/// spaces and line breaks, so the fields are counted from the last `)`.
#[cfg_attr(not(any(target_os = "linux", test)), allow(dead_code))]
fn parse_stat(pid: u32, bytes: &[u8]) -> Option<Stat> {
    let name_end = bytes.iter().rposition(|byte| *byte == b')')?;
    let (head, tail) = bytes.split_at_checked(name_end)?;
    let number = head.split(|byte| *byte == b' ').next()?;
    if std::str::from_utf8(number).ok()?.parse::<u32>().ok()? != pid {
        return None;
    }
    // Field 3 is the first one after the name, so field 22 is the twentieth.
    let mut fields = std::str::from_utf8(tail).ok()?.strip_prefix(") ")?.split_ascii_whitespace();
    let mut state = fields.next()?.chars();
    let (Some(state), None) = (state.next(), state.next()) else {
        return None;
    };
    let start_ticks = fields.nth(18)?.parse().ok()?;
    Some(Stat { state, start_ticks })
}

/// Whether a text is a machine id. All zeros is not: it stands for "none".
fn is_machine_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(is_lower_hex) && text.bytes().any(|byte| byte != b'0')
}

/// Whether a text is a UUID as the kernel writes it.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => is_lower_hex(byte),
        })
}

fn is_lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

fn is_some_text(text: &str) -> bool {
    !text.is_empty()
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
