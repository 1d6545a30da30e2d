//! Locks: one a row, on the row's folder itself, which is never renamed or removed.
//!
//! Invariants: nothing is read before every lock of the plan is held; locking makes nothing; a held lock's
//! folder is the one its path leads to; waiting has an end; a process that waits long for one lock lets go of
//! the others, so that two plans in unlike orders cannot hold each other up until both give up.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::path::Path;
use std::time::{Duration, Instant};

use super::disk::{self, Dir};
use super::error::{Result, StateError};
use super::names::encode;
use crate::protocol::ids::Name;

/// How long to wait for locks, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockWait(pub Duration);

/// Which rows a transaction needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockPlan {
    /// Rows it reads only: ancestors, root first. Locked in this order, before the others.
    pub shared: Vec<Name>,
    /// Rows it may change. Locked in the order of their folders' names.
    pub exclusive: Vec<Name>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Shared,
    Exclusive,
}

/// One row to lock.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) task: Name,
    pub(super) folder: String,
    pub(super) mode: Mode,
}

/// All locks of a plan, and the folders on the way to them.
pub(super) struct Acquired {
    pub(super) root: Dir,
    pub(super) tasks: Dir,
    /// `None`: the folder does not exist, so there is no row and nothing to lock.
    pub(super) held: Vec<(Wanted, Option<Dir>)>,
}

impl LockPlan {
    /// Every row once, in the one order every call locks in.
    pub(super) fn in_order(&self) -> Vec<Wanted> {
        let exclusive: BTreeMap<String, &Name> =
            self.exclusive.iter().map(|task| (encode(task), task)).collect();
        let mut wanted: Vec<Wanted> = Vec::new();
        for task in &self.shared {
            let folder = encode(task);
            if !exclusive.contains_key(&folder) && wanted.iter().all(|earlier| earlier.folder != folder) {
                wanted.push(Wanted { task: task.clone(), folder, mode: Mode::Shared });
            }
        }
        let exclusive = exclusive.into_iter();
        wanted.extend(exclusive.map(|(folder, task)| Wanted {
            task: task.clone(),
            folder,
            mode: Mode::Exclusive,
        }));
        wanted
    }
}

/// The end of a wait, and the pauses on the way to it.
pub(super) struct Deadline {
    started: Instant,
    limit: Duration,
    pause_ms: u64,
}

const PAUSE_MS_MAX: u64 = 16;
/// How long a call waits for one lock while it holds others, before it lets go of them.
const PATIENCE: Duration = Duration::from_millis(50);

impl Deadline {
    #[allow(clippy::disallowed_methods, reason = "a wait ends by the clock, and grants nothing")]
    pub(super) fn new(wait: LockWait) -> Self {
        Self { started: Instant::now(), limit: wait.0, pause_ms: 1 }
    }

    /// Sleeps a little, or says that the time is over.
    pub(super) fn pause(&mut self, what: impl FnOnce() -> String) -> Result<()> {
        let waited = self.started.elapsed();
        if waited >= self.limit {
            return Err(StateError::Busy { what: what(), waited });
        }
        // Without jitter, two callers that collided once would go on colliding. A missing random number only
        // costs the jitter.
        let jitter = u64::from(getrandom::u32().unwrap_or(0)) % (self.pause_ms * 1000);
        let pause = Duration::from_micros(self.pause_ms * 500 + jitter);
        std::thread::sleep(pause.min(self.limit.saturating_sub(waited)));
        self.pause_ms = (self.pause_ms * 2).min(PAUSE_MS_MAX);
        Ok(())
    }
}

/// Tries to lock an open folder, once. `Err` gives the folder back: somebody else holds it.
pub(super) fn try_lock(dir: Dir, mode: Mode) -> Result<std::result::Result<Dir, Dir>> {
    let mut lock = fd_lock::RwLock::new(dir.into_handle());
    loop {
        // A guard borrows the lock and unlocks when it is dropped, so it could not be kept beside what it
        // guards. It is forgotten instead: the lock then belongs to the open folder and ends when that is
        // closed, which is when this call or its process ends.
        let outcome = match mode {
            Mode::Shared => lock.try_read().map(mem::forget),
            Mode::Exclusive => lock.try_write().map(mem::forget),
        };
        match outcome {
            Ok(()) => return Ok(Ok(Dir::from_handle(lock.into_inner()))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Err(Dir::from_handle(lock.into_inner())));
            }
            Err(error) => return Err(StateError::io("lock", lock.into_inner().path(), error)),
        }
    }
}

/// Whether the path still leads to the folder that was locked. If it does not, somebody replaced the root, and
/// the lock is on a ghost.
pub(super) fn still_there(dir: &Dir) -> Result<bool> {
    Ok(disk::identity_of_path(dir.path())? == Some(dir.identity()?))
}

/// Takes all locks of a plan.
pub(super) fn acquire(root: &Path, wanted: &[Wanted], deadline: &mut Deadline) -> Result<Acquired> {
    loop {
        if let Some(acquired) = acquire_once(root, wanted, deadline)? {
            return Ok(acquired);
        }
    }
}

/// One round. `None`: everything was let go of, and a pause was made.
#[allow(clippy::disallowed_methods, reason = "a wait ends by the clock, and grants nothing")]
fn acquire_once(root: &Path, wanted: &[Wanted], deadline: &mut Deadline) -> Result<Option<Acquired>> {
    let root = Dir::open(root)?;
    let tasks = super::root::tasks_of(&root)?;
    let mut held = Vec::with_capacity(wanted.len());
    for row in wanted {
        let busy = || format!("task `{}`", row.task);
        let Some(mut dir) = super::open_row_folder(&tasks, &row.folder)? else {
            held.push((row.clone(), None));
            continue;
        };
        let patience = Instant::now() + PATIENCE;
        let locked = loop {
            dir = match try_lock(dir, row.mode)? {
                Ok(locked) => break locked,
                Err(dir) => dir,
            };
            let holds_others = held.iter().any(|(_, lock): &(Wanted, Option<Dir>)| lock.is_some());
            if holds_others && Instant::now() >= patience {
                drop(mem::take(&mut held));
                deadline.pause(busy)?;
                return Ok(None);
            }
            deadline.pause(busy)?;
        };
        if !still_there(&locked)? {
            drop(locked);
            deadline.pause(busy)?;
            return Ok(None);
        }
        held.push((row.clone(), Some(locked)));
    }
    Ok(Some(Acquired { root, tasks, held }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    #[test]
    fn a_plan_names_every_row_once_in_one_order() {
        let plan = LockPlan {
            shared: vec![name("root"), name("b"), name("mid"), name("root")],
            exclusive: vec![name("c"), name("b"), name("a"), name("c")],
        };
        let order: Vec<_> = plan.in_order().into_iter().map(|row| (row.folder, row.mode)).collect();
        let expected = [
            ("root", Mode::Shared),
            ("mid", Mode::Shared),
            ("a", Mode::Exclusive),
            ("b", Mode::Exclusive),
            ("c", Mode::Exclusive),
        ];
        assert_eq!(order, expected.map(|(folder, mode)| (folder.to_owned(), mode)));
    }
}
