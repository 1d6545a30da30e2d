//! Locks: one a row, one a run and one a session, on its folder itself, which is never renamed or removed.
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
use super::place::{Key, Place, RunKey};
use crate::protocol::ids::Name;

/// How long to wait for locks, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockWait(pub Duration);

/// Which rows, which run and which session a transaction needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockPlan {
    /// The session it may change. Locked before all others.
    pub session: Option<Name>,
    /// The run it may change. Locked before all rows.
    pub run: Option<RunKey>,
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

/// One document to lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) key: Key,
    pub(super) mode: Mode,
}

/// All locks of a plan, and the folders on the way to them.
pub(super) struct Acquired {
    pub(super) root: Dir,
    /// `None`: the folder does not exist, so there is nothing in it and nothing to lock.
    pub(super) held: Vec<(Wanted, Option<Dir>)>,
}

impl LockPlan {
    /// The session, the run, and then every row once, in the one order every call locks in.
    pub(super) fn in_order(&self) -> Vec<Wanted> {
        let exclusive: BTreeMap<String, &Name> =
            self.exclusive.iter().map(|task| (encode(task), task)).collect();
        let session = self.session.iter().map(Key::session);
        let before_rows = session.chain(self.run.iter().cloned().map(Key::Run));
        let mut wanted: Vec<Wanted> = before_rows.map(|key| Wanted { key, mode: Mode::Exclusive }).collect();
        for task in &self.shared {
            let row = Wanted { key: Key::task(task), mode: Mode::Shared };
            if !exclusive.contains_key(&encode(task)) && !wanted.contains(&row) {
                wanted.push(row);
            }
        }
        let exclusive = exclusive.into_values();
        wanted.extend(exclusive.map(|task| Wanted { key: Key::task(task), mode: Mode::Exclusive }));
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
    let mut held = Vec::with_capacity(wanted.len());
    for one in wanted {
        let busy = || one.key.to_string();
        let Some(mut dir) = Place::of(one.key.clone()).open(&root)? else {
            held.push((one.clone(), None));
            continue;
        };
        let patience = Instant::now() + PATIENCE;
        let locked = loop {
            dir = match try_lock(dir, one.mode)? {
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
        held.push((one.clone(), Some(locked)));
    }
    Ok(Some(Acquired { root, held }))
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
        let run = RunKey { parent: name("z"), run: name("z") };
        let plan = LockPlan {
            session: Some(name("z")),
            run: Some(run.clone()),
            shared: vec![name("root"), name("b"), name("mid"), name("root")],
            exclusive: vec![name("c"), name("b"), name("a"), name("c")],
        };
        let order: Vec<_> = plan.in_order().into_iter().map(|one| (one.key, one.mode)).collect();
        let row = |task: &str, mode| (Key::task(&name(task)), mode);
        let expected = [
            (Key::session(&name("z")), Mode::Exclusive),
            (Key::Run(run), Mode::Exclusive),
            row("root", Mode::Shared),
            row("mid", Mode::Shared),
            row("a", Mode::Exclusive),
            row("b", Mode::Exclusive),
            row("c", Mode::Exclusive),
        ];
        assert_eq!(order, expected);
    }
}
