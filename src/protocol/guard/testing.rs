//! Sessions, and a small world of clock and processes, for the tests of the rules.

use serde_json::json;

use super::Moment;
use super::session::{BootTime, Prompt, PromptKind, PromptState, Session};
use super::work::Work;
use crate::protocol::ids::{Fresh, Name, PromptId, RequestId, Timestamp};
use crate::protocol::row::{Extra, ProcessRef};
use crate::protocol::verdict::{Call, OwnerLife};

/// The instant every test happens at: nothing is decided by it.
pub(crate) const NOW: &str = "2026-01-02T03:04:05Z";

/// An open session with the guard on, in `/work/a`, with nothing in it.
pub(crate) fn session() -> Session {
    serde_json::from_value(json!({
        "sessionId": "s", "generation": 1, "state": "open", "guard": true, "cwd": "/work/a", "seq": 0,
        "chain": {"id": 0}, "createdAt": NOW, "updatedAt": NOW,
    }))
    .unwrap()
}

/// The same, with two unfinished to-do items that are trusted: unrelated automatic work is kept back.
pub(crate) fn trusted() -> Session {
    let mut session = session();
    session.chain.observe(2);
    session
}

/// A name.
pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// A process on this machine.
pub(crate) fn process(pid: u32) -> ProcessRef {
    serde_json::from_value(json!({"pid": pid, "startTicks": 1})).unwrap()
}

/// An ordinary prompt, admitted as number `seq`.
pub(crate) fn prompt(seq: u64, state: PromptState) -> Prompt {
    Prompt {
        prompt_id: PromptId::parse(&format!("prm_{seq:016x}")).unwrap(),
        alias: None,
        kind: PromptKind::Ordinary,
        state,
        text: None,
        from_hook: false,
        handed_on: false,
        seq,
        at: Timestamp::parse(NOW).unwrap(),
        started_at: None,
        process: None,
        extra: Extra::new(),
    }
}

/// A clock, living and dead processes, and fresh digits for every call.
pub(crate) struct World {
    calls: u64,
    boot: BootTime,
    dead: Vec<u32>,
}

impl World {
    /// A machine that has been up for a second.
    pub(crate) fn new() -> Self {
        Self { calls: 0, boot: BootTime { boot_id: Some("boot-1".to_owned()), ms: 1_000 }, dead: Vec::new() }
    }

    /// Time passes.
    pub(crate) fn passes(&mut self, ms: u64) {
        self.boot = self.boot.after(ms);
    }

    /// The machine starts anew.
    pub(crate) fn reboots(&mut self) {
        self.boot = BootTime { boot_id: Some("boot-2".to_owned()), ms: 1 };
    }

    /// The process is gone, provably.
    pub(crate) fn dies(&mut self, pid: u32) {
        self.dead.push(pid);
    }

    /// One call, as it sees the world.
    pub(crate) fn call<T>(&mut self, act: impl FnOnce(&Moment<'_>) -> T) -> T {
        self.calls += 1;
        let call = Call {
            command: "test",
            request_id: RequestId::parse(&format!("r{}", self.calls)).unwrap(),
            now: Timestamp::parse(NOW).unwrap(),
        };
        let fresh = Fresh::parse(&format!("{:016x}", 0xf000 + self.calls)).unwrap();
        let life = |process: &ProcessRef| {
            if self.dead.contains(&process.pid) { OwnerLife::Dead } else { OwnerLife::Alive }
        };
        act(&Moment { call: &call, boot: &self.boot, fresh: &fresh, life: &life })
    }

    /// One call that works on `session`. As in the store, older history moves away.
    pub(crate) fn work<T>(&mut self, session: &mut Session, act: impl FnOnce(&mut Work<'_>) -> T) -> T {
        self.call(|moment| {
            let mut work = Work { session: session.clone(), moment, authorises: false };
            let answer = act(&mut work);
            work.session.history.cut();
            *session = work.session;
            answer
        })
    }
}
