//! A call as a handful of random bytes, and what they choose: the task, who calls, the token, the ids.

use lychgate::protocol::classify::ReportEvidence;
use lychgate::protocol::ids::{AttemptId, CleanupId, SendId, TurnId};
use lychgate::protocol::lineage::ReceiptEvidence;
use lychgate::protocol::row::{Extra, Owner, Row, TaskStatus, WorkflowTask};
use lychgate::protocol::state::Phase;
use lychgate::protocol::verdict::{OwnerLife, Role};

use crate::world::{STRANGER, Shown, World, name};

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Reserve,
    Launch,
    Reawaken,
    Reactivate,
    Startup,
    Register,
    Enqueue,
    GateSend,
    GateAttempt,
    Stop,
    SettleTurn,
    SettleTurnAndClose,
    SettleSend,
    SettleCleanup,
    SettleAttempt,
    Report,
    Claim,
    Replace,
    Recover,
    /// A process dies: the owner of a task, or a debtor of its cleanups.
    Kill,
    /// An actor loses its memory.
    Crash,
    /// An earlier call is made again, under the same request id.
    Repeat,
    /// A row from a time before attempts had ids turns up.
    Legacy,
}

/// A call. Small numbers are the ordinary choice, so that a failing story shrinks to an ordinary one.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    pub verb: Verb,
    pub task: u8,
    pub actor: u8,
    /// Which token is shown.
    pub key: u8,
    /// Which id is meant.
    pub pick: u8,
    /// What is chosen beside it.
    pub alt: u8,
    /// Whether evidence is missing or broken this time.
    pub fault: u8,
}

/// An element of the list, whatever the index.
pub fn at<T: Clone>(list: &[T], index: u8) -> Option<T> {
    list.get(usize::from(index) % list.len().max(1)).cloned()
}

impl Op {
    pub fn actor(self) -> usize {
        match self.actor {
            0..180 => 0,
            180..210 => 1,
            210..235 => 2,
            235.. => STRANGER,
        }
    }

    /// Mostly a task on which the call makes sense, so that stories get far; sometimes any.
    pub fn row(self, world: &World) -> Option<Row> {
        let fitting: Vec<_> = world.rows.values().filter(|row| self.fits(row)).collect();
        let wild = self.task >= 200 || fitting.is_empty();
        at(&if wild { world.rows.values().collect() } else { fitting }, self.task).cloned()
    }

    pub fn fits(self, row: &Row) -> bool {
        let (status, open) = (row.task_status, row.phase() == Phase::Open);
        let retired = row.task_attempt_retired_by.is_some();
        match self.verb {
            Verb::Launch => status == TaskStatus::Queued,
            Verb::Reawaken => status == TaskStatus::Interrupted && !retired,
            Verb::Reactivate => status == TaskStatus::Reported && !retired,
            Verb::Startup => open && matches!(status, TaskStatus::Starting | TaskStatus::Running),
            Verb::Register | Verb::GateAttempt => open && row.is_launched(),
            Verb::Enqueue | Verb::GateSend | Verb::SettleSend => row.waiting_sends().next().is_some(),
            Verb::SettleTurn | Verb::SettleTurnAndClose => row.turns().next().is_some(),
            Verb::SettleCleanup => row.n_owed() > row.own_turns().count(),
            Verb::Report => row.own_turns().next().is_some(),
            Verb::Claim => status == TaskStatus::Reported || row.phase() == Phase::Settled,
            Verb::SettleAttempt | Verb::Stop => open,
            _ => true,
        }
    }

    /// The token shown: the best one the actor remembers for this attempt, a stale one, a false one, or none.
    pub fn shown(self, world: &World, attempt: Option<&AttemptId>) -> Shown {
        let key = |(role, attempt): &(String, AttemptId)| {
            (attempt.clone(), if role == "owner" { Role::Owner } else { Role::Worker })
        };
        let memory: Vec<_> = world.memory[self.actor()].iter().map(key).collect();
        match self.key {
            0..190 => Shown(memory.iter().find(|(of, _)| Some(of) == attempt).cloned()),
            190..225 => Shown(at(&memory, self.pick)),
            225..240 => Shown(Some((AttemptId::parse("att_ffffffffffffffff").unwrap(), Role::Owner))),
            240.. => Shown(None),
        }
    }

    pub fn attempt(self, world: &World, row: &Row) -> AttemptId {
        let known: Vec<_> = world.published.iter().map(|(_, attempt)| attempt.clone()).collect();
        let chosen = match self.pick {
            0..215 => row.task_attempt_id.clone(),
            215..245 => at(&known, self.alt),
            245.. => None,
        };
        chosen.unwrap_or_else(|| AttemptId::parse("att_eeeeeeeeeeeeeeee").unwrap())
    }

    pub fn send(self, world: &World, row: &Row) -> SendId {
        let open: Vec<_> = row.sends.iter().map(|send| send.send_id.clone()).collect();
        let known: Vec<_> =
            world.sends.iter().filter(|(task, _)| *task == row.task_id).map(|(_, id)| id.clone()).collect();
        let chosen = match self.pick {
            0..190 => at(&open, self.pick).or_else(|| at(&known, self.pick)),
            190..240 => at(&known, self.alt),
            240.. => None,
        };
        chosen.unwrap_or_else(|| SendId::parse("snd_eeeeeeeeeeeeeeee0001").unwrap())
    }

    pub fn turn(self, world: &World, row: &Row) -> TurnId {
        let open: Vec<_> = row.turns().filter_map(|send| send.turn().cloned()).collect();
        let known: Vec<_> = world
            .admitted
            .iter()
            .filter(|(task, _)| *task == row.task_id)
            .map(|(_, id)| id.clone())
            .collect();
        let chosen = match self.pick {
            0..200 => at(&open, self.pick).or_else(|| at(&known, self.pick)),
            200..245 => at(&known, self.alt),
            245.. => None,
        };
        chosen.unwrap_or_else(|| TurnId::parse("turn_eeeeeeeeeeeeeeee0001").unwrap())
    }

    pub fn owner(self) -> Option<Owner> {
        let owner = Owner { name: Some(format!("actor {}", self.actor())), ..Owner::default() };
        (!self.alt.is_multiple_of(4)).then_some(owner)
    }

    /// The new owner's process: recorded and alive, or not known.
    pub fn life(self) -> OwnerLife {
        if self.alt % 4 == 1 { OwnerLife::Unknown } else { OwnerLife::Alive }
    }

    pub fn receipt(self, world: &World, row: &Row) -> ReceiptEvidence {
        match self.fault {
            0..235 => world.receipt(row),
            235..245 => ReceiptEvidence::NotFound,
            245.. => ReceiptEvidence::Unreadable("it is torn".to_owned()),
        }
    }

    pub fn reports(self) -> ReportEvidence {
        if (225..235).contains(&self.fault) {
            ReportEvidence::Broken("a stray file".to_owned())
        } else {
            ReportEvidence::AsTheRowSays
        }
    }

    pub fn cleanup(self, world: &World, row: &Row) -> CleanupId {
        let known = world.cleanups.iter().filter(|(task, _)| *task == row.task_id || self.pick > 200);
        let known: Vec<_> = known.map(|(_, id)| id.clone()).collect();
        let latest = known.last().cloned().filter(|_| self.pick < 128);
        let chosen = latest.or_else(|| at(&known, self.alt)).filter(|_| self.pick < 240);
        chosen.unwrap_or_else(|| CleanupId::parse(&format!("cln_{:032x}", 0)).unwrap())
    }

    pub fn step(self) -> Option<WorkflowTask> {
        let step = WorkflowTask {
            run_id: name("run"),
            step_id: name("step"),
            input_hash: name("hash"),
            extra: Extra::new(),
        };
        (!self.alt.is_multiple_of(8)).then_some(step)
    }
}
