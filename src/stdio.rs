//! Whether standard output was usable when the process started.
//!
//! Rust's runtime opens `/dev/null` for a standard descriptor that is closed, before `main` runs. An answer
//! would then be lost without an error, so the look is taken earlier: by a function that the loader calls.

// Placing a function where the loader calls it before `main` has no safe form. The function itself is safe: it
// makes two system calls, needs nothing that `main` sets up, and stores one byte.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, OFlags};

const USABLE: u8 = 0;
const CLOSED: u8 = 1;
const READ_ONLY: u8 = 2;

/// What was found before `main`. Where nothing looks that early, output is taken to be usable.
static AT_START: AtomicU8 = AtomicU8::new(USABLE);

#[cfg(any(target_os = "linux", target_os = "macos"))]
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static LOOK_BEFORE_MAIN: extern "C" fn() = look;

#[cfg(any(target_os = "linux", target_os = "macos"))]
extern "C" fn look() {
    let stdout = rustix::stdio::stdout();
    let found = match (rustix::io::fcntl_getfd(stdout), rustix::fs::fcntl_getfl(stdout)) {
        (Ok(_), Ok(flags)) if is_writable(flags) => USABLE,
        (Ok(_), Ok(_)) => READ_ONLY,
        _ => CLOSED,
    };
    AT_START.store(found, Ordering::Relaxed);
}

fn is_writable(flags: OFlags) -> bool {
    let mode = flags & OFlags::RWMODE;
    #[cfg(target_os = "linux")]
    if flags.contains(OFlags::PATH) {
        return false;
    }
    mode == OFlags::WRONLY || mode == OFlags::RDWR
}

/// Whether an answer can be written to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdout {
    /// Nothing speaks against it. A write may still fail.
    Usable,
    /// It was closed when the process started.
    Closed,
    /// It was open when the process started, but not for writing.
    ReadOnly,
    /// It is a pipe or a socket whose reader is gone.
    NoReader,
}

/// Returns the state of standard output: as it was at the start, and whether its reader is there now.
pub fn stdout_state() -> Stdout {
    match AT_START.load(Ordering::Relaxed) {
        CLOSED => Stdout::Closed,
        READ_ONLY => Stdout::ReadOnly,
        _ if has_lost_its_reader() => Stdout::NoReader,
        _ => Stdout::Usable,
    }
}

fn has_lost_its_reader() -> bool {
    let stdout = rustix::stdio::stdout();
    let is_stream = rustix::fs::fstat(stdout)
        .is_ok_and(|stat| matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket));
    if !is_stream {
        return false;
    }
    // A pipe that has room is reported writable although nobody reads it, so only the errors count.
    let mut polled = [PollFd::new(&stdout, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match rustix::event::poll(&mut polled, Some(&at_once)) {
        Ok(_) => polled.iter().any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP)),
        Err(_) => false,
    }
}
