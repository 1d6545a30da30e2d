//! The work chain: trust, budget and suspension (1.2 and 1.7 of the original's state machine).
//!
//! A chain begins with an ordinary prompt. What it may do by itself is decided here and nowhere else.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::session::BUDGET;
use crate::protocol::ids::Timestamp;
use crate::protocol::row::Extra;

/// Why a chain is suspended (O37). Only a new ordinary prompt lifts it (O41).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A person said so.
    Asked,
    /// The budget is spent, and that was reported.
    Exhausted,
    /// The session was closed.
    Closed,
    /// It moves, or moved, to another directory.
    Relocated,
    /// The queued prompt it had yielded to is gone.
    QueueReleased,
    /// What the person typed could not be taken.
    DrainFailed,
    /// A claim was refused, so nobody knows whether the guard may go on.
    ClaimUnavailable,
    /// The agent plans.
    Plan,
    /// A to-do list came from a turn that is over.
    LateTodo,
    /// A person stopped the turn.
    Aborted,
    /// Nobody works on the prompt any more.
    Abandoned,
    /// An outer hook blocked too many stops in a row.
    HookCap,
    /// Too many sends failed.
    SendsFailed,
    /// An ordinary prompt is about to run.
    OrdinaryPending,
    /// A retry, but there was nothing trusted to go on with.
    RetryWithoutTrust,
    /// The session was opened again.
    Reopened,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 16] = [
        Self::Asked,
        Self::Exhausted,
        Self::Closed,
        Self::Relocated,
        Self::QueueReleased,
        Self::DrainFailed,
        Self::ClaimUnavailable,
        Self::Plan,
        Self::LateTodo,
        Self::Aborted,
        Self::Abandoned,
        Self::HookCap,
        Self::SendsFailed,
        Self::OrdinaryPending,
        Self::RetryWithoutTrust,
        Self::Reopened,
    ];

    /// The word on disk and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Exhausted => "exhausted",
            Self::Closed => "closed",
            Self::Relocated => "relocated",
            Self::QueueReleased => "queue-released",
            Self::DrainFailed => "drain-failed",
            Self::ClaimUnavailable => "claim-unavailable",
            Self::Plan => "plan",
            Self::LateTodo => "late-todo",
            Self::Aborted => "aborted",
            Self::Abandoned => "abandoned",
            Self::HookCap => "hook-cap",
            Self::SendsFailed => "sends-failed",
            Self::OrdinaryPending => "ordinary-pending",
            Self::RetryWithoutTrust => "retry-without-trust",
            Self::Reopened => "reopened",
        }
    }
}

/// A suspension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Suspended {
    /// Why.
    pub cause: Cause,
    /// What the caller said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When.
    pub at: Timestamp,
    /// Its order.
    pub seq: u64,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A work chain.
#[allow(clippy::struct_excessive_bools, reason = "each is an independent fact on disk, not a mode")]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chain {
    /// Its name: the order number of its start.
    pub id: u64,
    /// A trusted to-do list of this chain has unfinished items.
    #[serde(default)]
    pub armed: bool,
    /// How many.
    #[serde(default)]
    pub unfinished: u32,
    /// How many automatic continuations were charged in this stage.
    #[serde(default)]
    pub attempts: u32,
    /// How many tickets of this chain were ended unsent.
    #[serde(default)]
    pub unsent: u32,
    /// The turn broke; a retry goes on, nothing else does.
    #[serde(default)]
    pub retry_paused: bool,
    /// It has yielded to a queued prompt.
    #[serde(default)]
    pub awaiting: bool,
    /// That the budget is spent was said.
    #[serde(default)]
    pub exhaustion_reported: bool,
    /// Set while nothing automatic may go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspended>,
    /// What lived in the background when it began, by id (O47).
    #[serde(default)]
    pub baseline: BTreeSet<String>,
    /// What of that it has taken up since (O49).
    #[serde(default)]
    pub related: BTreeSet<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What the guard would do at a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Inactive,
    /// Wait for related work in the background; nothing is charged (O57).
    Deferred,
    /// The budget is spent.
    Exhausted,
    /// Continue, for the n-th time in this stage.
    Continue(u32),
}

impl Chain {
    /// Armed, not suspended, and something is unfinished. It keeps unrelated automatic work back.
    pub fn is_trusted(&self) -> bool {
        self.armed && self.suspended.is_none() && self.unfinished > 0
    }

    /// Whether a stop is looked at at all.
    pub fn needs_inspection(&self) -> bool {
        self.is_trusted() && !self.retry_paused && !self.awaiting
    }

    /// What to do at a stop. Pure and repeatable. `open` tickets of this chain count as spent, because nobody
    /// knows yet that they are not.
    pub fn decide(&self, open: u32, related_background: bool) -> Decision {
        let spent = self.attempts.saturating_add(open);
        if !self.needs_inspection() {
            Decision::Inactive
        } else if related_background {
            Decision::Deferred
        } else if spent >= BUDGET {
            Decision::Exhausted
        } else {
            Decision::Continue(spent + 1)
        }
    }

    /// Everything that is trusted is forgotten, a suspension too. The budget is not: only a person's prompt
    /// refills it.
    pub fn clear_trust(&mut self) {
        *self = Self {
            id: self.id,
            attempts: self.attempts,
            unsent: self.unsent,
            baseline: std::mem::take(&mut self.baseline),
            related: std::mem::take(&mut self.related),
            extra: std::mem::take(&mut self.extra),
            ..Self::default()
        };
    }

    /// A list of the main agent with so many unfinished items (1.2). A suspended chain counts and does not arm.
    pub fn observe(&mut self, unfinished: u32) {
        self.unfinished = unfinished;
        self.exhaustion_reported = false;
        self.armed = unfinished > 0 && self.suspended.is_none();
    }

    /// The turn broke: only a trusted retry goes on.
    pub fn pause_for_retry(&mut self) {
        if self.armed {
            self.retry_paused = true;
            self.awaiting = false;
        }
    }

    /// A trusted retry, or a granted claim, goes on. A suspension stays (O43).
    pub fn resume_trusted(&mut self) {
        self.awaiting = false;
        self.retry_paused = false;
    }

    /// The person typed in the middle of the turn: a fresh stage (O34). A suspended chain stays as it is.
    pub fn accept_user_input(&mut self) {
        if self.suspended.is_some() || (!self.armed && self.attempts == 0) {
            return;
        }
        self.attempts = 0;
        self.retry_paused = false;
        self.awaiting = false;
        self.exhaustion_reported = false;
    }

    /// It yields to a queued prompt. One that is suspended, or was never armed, orders and does not await.
    pub fn await_queued(&mut self) {
        self.awaiting = self.suspended.is_none() && (self.armed || self.attempts > 0);
    }

    /// A continuation counts.
    pub fn charge(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }
}
