//! What Linux says about processes, taken only where it is provably the kernel that speaks.
//!
//! A file below `/proc` counts if `fstatfs` of the opened file says procfs, and `statx` of it proves that it is
//! no mount of its own. Without the second test a bind mount of `random/uuid` over `random/boot_id`, or of one
//! process's `stat` over another's, would pass. Kernels before 5.8 cannot prove it, and so prove nothing.

use std::io::ErrorKind;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, PROC_SUPER_MAGIC, Statx, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

use super::{Presence, Stat, Surroundings, is_machine_id, is_uuid, parse_stat};

/// Processes can be identified here.
pub(super) const SUPPORTED: bool = true;

/// The inode number of the root of every procfs.
const PROC_ROOT_INODE: u64 = 1;

/// More than any file that is read here may hold. `status` lists up to 65536 groups.
const FILE_BYTES_MAX: usize = 1 << 20;

/// The root of a procfs.
#[derive(Debug)]
pub(super) struct Proc {
    root: OwnedFd,
    device: (u32, u32),
}

pub(super) fn surroundings() -> Surroundings {
    let mut found = Surroundings { machine_id: machine_id(), boot_id: boot_id(), ..Surroundings::default() };
    let Some(proc) = Proc::open() else {
        return found;
    };
    let Some(own) = proc.own_folder() else {
        return found;
    };
    found.pid_namespace = proc.namespace(&own, "pid");
    found.time_namespace = proc.time_namespace(&own);
    if proc.has_our_numbers(&own) {
        found.proc = Some(proc);
    }
    found
}

/// Asks the kernel whether something has that pid in our pid namespace.
pub(super) fn presence(pid: u32) -> Presence {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Presence::Unclear(format!("{pid} is not a process id"));
    };
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(_) => Presence::Present,
        // Sandboxes answer ENOSYS or EPERM to system calls they do not know, and a thread that is not its
        // process's first answers EINVAL or ENOENT. The older call decides then; it also confirms an ESRCH.
        Err(_) => presence_by_signal(pid),
    }
}

fn presence_by_signal(pid: Pid) -> Presence {
    match rustix::process::test_kill_process(pid) {
        Ok(()) | Err(Errno::PERM | Errno::ACCESS) => Presence::Present,
        Err(Errno::SRCH) => Presence::Absent,
        Err(error) => Presence::Unclear(format!(
            "the kernel does not say whether process {} exists: {error}",
            pid.as_raw_nonzero()
        )),
    }
}

fn machine_id() -> Option<String> {
    // A link is followed: some distributions keep the file elsewhere, and it is the administrator's word anyway.
    let file = open(CWD, "/etc/machine-id", OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    let text = String::from_utf8(read_whole(&file).ok()?).ok()?;
    let id = text.trim();
    is_machine_id(id).then(|| id.to_owned())
}

fn boot_id() -> Option<String> {
    // Only the file itself is tested, not the folders above it: container engines mount `/proc/sys` over
    // itself to make it read-only, and nothing else in any procfs has this name.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW;
    let file = open(CWD, "/proc/sys/kernel/random/boot_id", flags).ok()?;
    kernel_file(&file)?;
    let first = read_start(&file)?;
    let second = read_start(&file)?;
    let id = first.trim_end_matches('\n');
    (first == second && is_uuid(id)).then(|| id.to_owned())
}

impl Proc {
    fn open() -> Option<Self> {
        let root = open(CWD, "/proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW).ok()?;
        if !is_on_procfs(&root) {
            return None;
        }
        let status = status_of(&root)?;
        let device = (status.stx_dev_major, status.stx_dev_minor);
        (status.stx_ino == PROC_ROOT_INODE).then_some(Self { root, device })
    }

    /// Reads state and start time, twice: the process of that pid must not have changed in between.
    pub(super) fn stat(&self, pid: u32) -> Result<Stat, String> {
        let first = self.stat_once(pid)?;
        let second = self.stat_once(pid)?;
        if first.start_ticks == second.start_ticks {
            Ok(second)
        } else {
            Err(format!("process {pid} changed while it was looked at"))
        }
    }

    fn stat_once(&self, pid: u32) -> Result<Stat, String> {
        let bytes = self.read(pid, "stat")?;
        parse_stat(pid, &bytes).ok_or_else(|| format!("/proc/{pid}/stat is not understood"))
    }

    /// Returns the process that a number belongs to: itself, or the process of that thread.
    pub(super) fn thread_group(&self, pid: u32) -> Result<u32, String> {
        let bytes = self.read(pid, "status")?;
        status_numbers(&bytes, "Tgid:")
            .and_then(|numbers| numbers.first().copied())
            .ok_or_else(|| format!("/proc/{pid}/status is not understood"))
    }

    fn read(&self, pid: u32, name: &str) -> Result<Vec<u8>, String> {
        let explain = |error: Errno| match error.kind() {
            ErrorKind::NotFound => format!("/proc does not show process {pid} to this user"),
            _ => format!("/proc/{pid}/{name} cannot be read: {error}"),
        };
        let folder =
            self.child(&self.root, &pid.to_string(), OFlags::PATH | OFlags::DIRECTORY).map_err(explain)?;
        let file = self.child(&folder, name, OFlags::RDONLY).map_err(explain)?;
        read_whole(&file).map_err(explain)
    }

    /// Opens an entry of a folder that was opened the same way, never leaving this procfs.
    fn child(&self, folder: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let entry = open(folder, name, flags | OFlags::NOFOLLOW)?;
        match kernel_file(&entry) {
            Some(status) if (status.stx_dev_major, status.stx_dev_minor) == self.device => Ok(entry),
            _ => Err(Errno::XDEV),
        }
    }

    fn own_folder(&self) -> Option<OwnedFd> {
        let name = rustix::fs::readlinkat(&self.root, "self", Vec::new()).ok()?.into_string().ok()?;
        name.parse::<u32>().ok()?;
        self.child(&self.root, &name, OFlags::PATH | OFlags::DIRECTORY).ok()
    }

    /// Whether the folders of this procfs are named by the pids of our own pid namespace. `NSpid` lists our pid
    /// in the namespace of the procfs first and in our own one last.
    fn has_our_numbers(&self, own: &OwnedFd) -> bool {
        let read = || {
            let file = self.child(own, "status", OFlags::RDONLY).ok()?;
            status_numbers(&read_whole(&file).ok()?, "NSpid:")
        };
        read().is_some_and(|numbers| numbers == [std::process::id()])
    }

    fn namespace(&self, own: &OwnedFd, kind: &str) -> Option<String> {
        let folder = self.child(own, "ns", OFlags::PATH | OFlags::DIRECTORY).ok()?;
        // The link itself is opened, which shows whether something is mounted over it.
        let link = self.child(&folder, kind, OFlags::PATH).ok()?;
        let target = rustix::fs::readlinkat(&link, "", Vec::new()).ok()?.into_string().ok()?;
        let name = kind.strip_suffix("_for_children").unwrap_or(kind);
        target.strip_prefix(name)?.starts_with(":[").then_some(target)
    }

    /// Returns the time namespace with the offset of its boot clock. Its number alone would not do: once the
    /// namespace is gone, another one with another offset may get the number.
    fn time_namespace(&self, own: &OwnedFd) -> Option<String> {
        let name = self.namespace(own, "time")?;
        // The kernel shows the offsets of the namespace that children will get, so it must be the same one.
        if self.namespace(own, "time_for_children")? != name {
            return None;
        }
        let file = self.child(own, "timens_offsets", OFlags::RDONLY).ok()?;
        let text = String::from_utf8(read_whole(&file).ok()?).ok()?;
        let offset = text.lines().find_map(|line| line.strip_prefix("boottime"))?;
        let mut numbers = offset.split_ascii_whitespace().map(str::parse::<i64>);
        let (Some(Ok(seconds)), Some(Ok(nanoseconds)), None) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return None;
        };
        Some(match (seconds, nanoseconds) {
            (0, 0) => name,
            _ => format!("{name} boottime {seconds}s {nanoseconds}ns"),
        })
    }
}

/// Parses the numbers of one line of a `status` file. The command's name stands in it with line breaks
/// escaped, so it cannot counterfeit a line.
fn status_numbers(bytes: &[u8], key: &str) -> Option<Vec<u32>> {
    let line = bytes.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(key.as_bytes()))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
}

fn open(folder: impl AsFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, flags | OFlags::CLOEXEC, Mode::empty())
}

fn is_on_procfs(file: &OwnedFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|status| status.f_type == PROC_SUPER_MAGIC)
}

fn status_of(file: &OwnedFd) -> Option<Statx> {
    rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).ok()
}

/// Returns the status of a file that lies on procfs and is not mounted over its place.
fn kernel_file(file: &OwnedFd) -> Option<Statx> {
    if !is_on_procfs(file) {
        return None;
    }
    let status = status_of(file)?;
    let is_told = status.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT);
    let is_mount = status.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    (is_told && !is_mount).then_some(status)
}

/// Reads a small file of the kernel from its start, which makes the kernel write its text anew.
fn read_start(file: &OwnedFd) -> Option<String> {
    let mut buffer = [0_u8; 128];
    let length = rustix::io::pread(file, &mut buffer, 0).ok()?;
    String::from_utf8(buffer.get(..length)?.to_vec()).ok()
}

fn read_whole(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        let length = match rustix::io::read(file, &mut buffer) {
            Ok(length) => length,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        };
        if length == 0 {
            return Ok(bytes);
        }
        bytes.extend_from_slice(buffer.get(..length).unwrap_or_default());
        if bytes.len() > FILE_BYTES_MAX {
            return Err(Errno::FBIG);
        }
    }
}
