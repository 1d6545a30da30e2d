//! The automatic queues: background results, timers that have fired, and notices of what had no place.
//!
//! An item is put, taken by somebody who starts a turn for it, and acknowledged when that turn began. Between the
//! two it stays queued, and is offered again if its taker dies. A person's prompt goes before all of it, and while
//! the guard is trusted only what belongs to the chain may start a turn.

mod cron;
mod gaps;
mod notify;

use serde::{Deserialize, Serialize};

pub use gaps::{GAP_IDS_MAX, GAP_TEXT_BYTES_MAX, GAPS_MAX, Gap, Omitted};

use super::Answered;
use super::chain::Cause;
use super::session::{BootTime, PromptState, Session, SessionState};
use super::work::{Work, refused, said};
use crate::facts;
use crate::protocol::codes::Code;
use crate::protocol::ids::{Name, Timestamp};
use crate::protocol::row::{Extra, ProcessRef};
use crate::protocol::verdict::{Facts, OwnerLife, Refusal};

/// Background results that are queued at most (O68).
pub const NOTIFICATIONS_MAX: usize = 20;
/// Unrelated timers that are queued at most while the guard keeps them back (O67).
pub const CRONS_UNRELATED_MAX: usize = 20;
/// Timers that are queued at most, whatever they are.
pub const CRONS_MAX: usize = 100;
/// Ids of delivered items that are remembered in each queue, so that a repeat adds none.
pub const DELIVERED_MAX: usize = 64;

/// A background result that waits for a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// Its id: the same id once more adds nothing.
    pub id: Name,
    /// The background task it comes from.
    pub task_id: Name,
    /// What kind of result, in the sender's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How the task ended, in the sender's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The result, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether it belongs to the chain, decided when it was queued (O54).
    pub related: bool,
    /// When it came.
    pub at: Timestamp,
    /// Its order.
    pub seq: u64,
    /// Set while somebody has taken it and not acknowledged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// How often it was taken.
    #[serde(default)]
    pub times_taken: u64,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Somebody has taken an item, and has not said yet that its turn began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    /// When.
    pub at: Timestamp,
    /// From when on it is offered again.
    pub deadline: BootTime,
    /// Who, if it was said: its death offers it again, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRef>,
}

/// A timer that has fired and waits for a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cron {
    /// Its id.
    pub id: Name,
    /// The timer it comes from: a later firing of the same timer takes an earlier one's place.
    pub task_id: Name,
    /// A wakeup that the chain set for itself; a plain timer is never related (1.8).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wakeup: bool,
    /// What to do, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether it belongs to the chain, decided when it was queued.
    pub related: bool,
    /// When it came.
    pub at: Timestamp,
    /// Its order.
    pub seq: u64,
    /// Set while somebody has taken it and not acknowledged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// How often it was taken.
    #[serde(default)]
    pub times_taken: u64,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What both queues know of an item.
trait Item: Sized {
    /// The queue, as a gap notice names it.
    const QUEUE: &'static str;

    /// The items that wait, and the ids of the latest ones whose turn began.
    fn queue(session: &mut Session) -> (&mut Vec<Self>, &mut Vec<Name>);
    fn id(&self) -> &Name;
    fn task_id(&self) -> &Name;
    fn is_related(&self) -> bool;
    /// It has a place, and its order.
    fn place(&mut self, seq: u64);
    fn taken(&self) -> Option<&Taken>;
    /// Gives it to a taker, and answers whether one had it before.
    fn hand_out(&mut self, taken: Taken) -> bool;
    /// Its taker is gone.
    fn offer_again(&mut self);
    /// What its taker is told.
    fn told(&self) -> Facts;
    /// It has no place.
    fn omission(self) -> Omitted;
}

/// Why nothing may start a turn now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptBack {
    /// In one stable word.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

impl KeptBack {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    fn refusal(self, queued: usize) -> Box<Refusal> {
        let refusal = Refusal::new(Code::KeptBack, self.message);
        Box::new(refusal.fact("reason", self.reason).fact("queued", queued))
    }
}

impl Session {
    /// Why nothing automatic at all may start a turn now (O66, O70): a person goes first.
    pub fn keeps_all_back(&self) -> Option<KeptBack> {
        let name = &self.session_id;
        match self.state {
            SessionState::Open => {}
            SessionState::Restoring => {
                let message = format!("session `{name}` is being restored");
                return Some(KeptBack::new("session-restoring", message));
            }
            SessionState::Closed => {
                return Some(KeptBack::new("session-closed", format!("session `{name}` is closed")));
            }
        }
        if let Some(gate) = &self.gate {
            return Some(KeptBack::new("relocating", format!("the session moves to `{}`", gate.to)));
        }
        if let Some(prompt) = self.prompts.iter().find(|prompt| prompt.state == PromptState::Queued) {
            let message = format!("the prompt `{}` waits and goes first", prompt.prompt_id);
            return Some(KeptBack::new("prompt-queued", message));
        }
        if let Some(wait) = &self.wait {
            let message = format!("the prompt `{}` has yielded to a prompt that was queued", wait.prompt_id);
            return Some(KeptBack::new("wait-held", message));
        }
        self.question
            .as_ref()
            .map(|_| KeptBack::new("question-open", "the agent waits for a person's answer"))
    }

    /// Whether only what belongs to the chain may start a turn.
    pub fn keeps_unrelated_back(&self) -> bool {
        self.guard && self.chain.is_trusted()
    }

    /// Whether what comes in has to wait, so that it is kept with more care.
    fn defers(&self) -> bool {
        self.keeps_unrelated_back() || self.wait.is_some()
    }
}

/// The item that may start a turn now.
fn next_of<T: Item>(
    items: &mut [T],
    kept_back: Option<KeptBack>,
    only_related: bool,
) -> Result<&mut T, Box<Refusal>> {
    let queued = items.len();
    if queued == 0 {
        return Err(Box::new(Refusal::new(Code::NothingQueued, "nothing waits for a turn")));
    }
    if let Some(kept_back) = kept_back {
        return Err(kept_back.refusal(queued));
    }
    let are_all_taken = items.iter().all(|item| item.taken().is_some());
    let may_start = |item: &&mut T| item.taken().is_none() && (item.is_related() || !only_related);
    items.iter_mut().find(may_start).ok_or_else(|| {
        let why = if are_all_taken {
            KeptBack::new("taken", "everything that waits was taken, and its turn has not begun yet")
        } else {
            KeptBack::new("unrelated", "what waits does not belong to the work that is not finished")
        };
        why.refusal(queued)
    })
}

/// Takes the first item out that `may_go`. What was taken stays: its turn is about to begin.
fn evict<T: Item>(items: &mut Vec<T>, may_go: impl Fn(&T) -> bool) -> Option<T> {
    let index = items.iter().position(|item| item.taken().is_none() && may_go(item))?;
    Some(items.remove(index))
}

/// Remembers that an item was delivered, and forgets the oldest ones.
fn remember(delivered: &mut Vec<Name>, id: &Name) {
    delivered.push(id.clone());
    let surplus = delivered.len().saturating_sub(DELIVERED_MAX);
    delivered.drain(..surplus);
}

impl Work<'_> {
    /// The turn of an automatic item begins. What is not the chain's own starts an independent one, which is
    /// not armed; nothing automatic lifts a suspension (O41, O43).
    pub(crate) fn automatic_turn_starts(&mut self, related: bool) {
        if !self.session.guard {
            return;
        }
        if self.session.running().is_some() {
            // It came into a person's turn, which keeps its chain and its baseline.
            if related {
                self.session.chain.resume_trusted();
            }
            return;
        }
        if self.session.plan {
            self.suspend(Cause::Plan, None);
        } else if related && (self.session.chain.is_trusted() || self.session.chain.suspended.is_some()) {
            self.session.chain.resume_trusted();
        } else if self.session.chain.suspended.is_none() {
            self.session.chain.clear_trust();
            self.session.chain.id = self.next_seq();
            self.at_boundary();
        }
    }

    /// Somebody wants to start a turn for the next item.
    fn take<T: Item>(&mut self, for_ms: u64, process: Option<&ProcessRef>) -> Answered {
        let taken = Taken {
            at: self.moment.call.now.clone(),
            deadline: self.moment.boot.after(for_ms),
            process: process.cloned(),
        };
        let (kept_back, only_related) = (self.session.keeps_all_back(), self.session.keeps_unrelated_back());
        let (items, _) = T::queue(&mut self.session);
        let item = next_of(items, kept_back, only_related)?;
        let repeat = item.hand_out(taken);
        let id = item.id().clone();
        let mut facts = item.told();
        facts.insert("repeat".to_owned(), repeat.into());
        self.authorises = true;
        self.log("taken", Some(id.as_str()), repeat.then_some("once more"));
        said(Code::Taken, format!("start a turn for `{id}`, then acknowledge it"), facts)
    }

    /// The turn of an item began. Whoever acknowledges what does not wait starts none: somebody else may have.
    fn acknowledge<T: Item>(&mut self, id: &Name) -> Answered {
        self.must_not_be_over()?;
        let (items, delivered) = T::queue(&mut self.session);
        let Some(index) = items.iter().position(|item| item.id() == id) else {
            let began = delivered.contains(id);
            let why = if began { "has had its turn already" } else { "does not wait for a turn" };
            let refusal = Refusal::new(Code::NoSuchItem, format!("`{id}` {why}"));
            return refused(refusal.fact("id", id.as_str()).fact("began", began));
        };
        let item = items.remove(index);
        remember(delivered, id);
        self.log("turn-began", Some(id.as_str()), Some(item.task_id().as_str()));
        self.automatic_turn_starts(item.is_related());
        let facts = facts! { "id": id, "taskId": item.task_id(), "related": item.is_related() };
        said(Code::Acknowledged, format!("the turn of `{id}` began"), facts)
    }

    /// An item with this id came before.
    fn came_before<T: Item>(&mut self, id: &Name) -> Option<Answered> {
        let (items, delivered) = T::queue(&mut self.session);
        let is_queued = items.iter().any(|item| item.id() == id);
        let facts = facts! { "id": id, "queued": items.len(), "began": !is_queued };
        let has_come = is_queued || delivered.contains(id);
        has_come.then(|| said(Code::AlreadyQueued, format!("`{id}` came before"), facts))
    }

    /// An item found a place at the end, where others may have lost theirs.
    fn append<T: Item>(&mut self, mut item: T, omitted: Vec<Omitted>, mut facts: Facts) -> Answered {
        let (id, task) = (item.id().clone(), item.task_id().clone());
        item.place(self.next_seq());
        let (items, _) = T::queue(&mut self.session);
        items.push(item);
        facts.insert("queued".to_owned(), items.len().into());
        self.log("queued", Some(id.as_str()), Some(task.as_str()));
        self.omit(T::QUEUE, omitted, &mut facts);
        said(Code::Queued, format!("`{id}` waits for a turn"), facts)
    }

    /// An item found no place. Sent once more, it is named by the notice that names it already.
    fn leave_out<T: Item>(&mut self, item: T, mut omitted: Vec<Omitted>, mut facts: Facts) -> Answered {
        let id = item.id().clone();
        let (items, _) = T::queue(&mut self.session);
        facts.insert("queued".to_owned(), items.len().into());
        match self.session.gap_of(T::QUEUE, &id) {
            Some(gap) if omitted.is_empty() => facts.extend(facts! { "omitted": [&id], "gapId": gap.gap_id }),
            _ => {
                omitted.push(item.omission());
                self.omit(T::QUEUE, omitted, &mut facts);
            }
        }
        said(
            Code::Omitted,
            format!("there is no place for `{id}`: `gaps` tells of it until it is acknowledged"),
            facts,
        )
    }

    /// A name for an item that came without one. A call mints one from its own digits; a hook's event may need
    /// more.
    fn fresh_item_id<T: Item>(&mut self) -> Name {
        let fresh = self.moment.fresh.message();
        let (items, delivered) = T::queue(&mut self.session);
        if items.iter().all(|item| *item.id() != fresh) && !delivered.contains(&fresh) {
            return fresh;
        }
        let seq = self.next_seq();
        Name::parse(&format!("msg_{seq:016x}")).unwrap_or(fresh)
    }

    /// Offers again what somebody took and never acknowledged.
    pub(super) fn sweep_queues(&mut self) {
        self.sweep_queue::<Notification>();
        self.sweep_queue::<Cron>();
    }

    fn sweep_queue<T: Item>(&mut self) {
        let moment = self.moment;
        let is_dead = |process: &ProcessRef| (moment.life)(process) == OwnerLife::Dead;
        let is_gone = |taken: &Taken| {
            taken.deadline.is_over(moment.boot) || taken.process.as_ref().is_some_and(is_dead)
        };
        let (items, _) = T::queue(&mut self.session);
        let mut again = Vec::new();
        for item in items.iter_mut().filter(|item| item.taken().is_some_and(is_gone)) {
            item.offer_again();
            again.push(item.id().clone());
        }
        for id in again {
            self.log("offered-again", Some(id.as_str()), None);
        }
    }
}

#[cfg(test)]
mod tests;
