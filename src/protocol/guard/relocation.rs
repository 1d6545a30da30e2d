//! Moving a session to another directory.
//!
//! The move has a gate: while it is held no prompt is admitted and nothing automatic starts a turn. It opens the
//! way when all that was admitted before it is over, and it is given up when its holder dies or its time is over.
//! The guard is suspended from the beginning, however the move ends.

use serde_json::{Value, json};

use super::Answered;
use super::chain::Cause;
use super::request::Relocate;
use super::session::{Gate, PromptState, Session, SessionState};
use super::work::{Work, refused, said};
use crate::facts;
use crate::protocol::codes::Code;
use crate::protocol::row::{Extra, ProcessRef};
use crate::protocol::verdict::Refusal;

impl Session {
    /// What has to be over before the session moves (O60, O63): every prompt that was admitted before the gate,
    /// also one that still waits for its predecessor; what is being sent; and what was taken for a turn.
    fn blocks_move(&self, gate: &Gate) -> Vec<Value> {
        let prompts = self.prompts.iter().filter(|prompt| match prompt.state {
            PromptState::Running => true,
            PromptState::Queued => prompt.seq < gate.seq,
            PromptState::Removed => false,
        });
        let prompts = prompts
            .map(|prompt| json!({"kind": "prompt", "id": prompt.prompt_id, "state": prompt.state.as_str()}));
        let tickets = self
            .tickets
            .iter()
            .map(|ticket| json!({"kind": "ticket", "id": ticket.ticket_id, "promptId": ticket.prompt_id}));
        let notifications = self.notifications.iter().filter(|item| item.taken.is_some());
        let notifications = notifications.map(|item| json!({"kind": "notification", "id": item.id}));
        let crons = self.crons.iter().filter(|item| item.taken.is_some());
        let crons = crons.map(|item| json!({"kind": "cron", "id": item.id}));
        prompts.chain(tickets).chain(notifications).chain(crons).collect()
    }
}

impl Work<'_> {
    /// `session relocate`.
    pub(crate) fn relocate(&mut self, request: &Relocate) -> Answered {
        self.must_not_be_over()?;
        match request {
            Relocate::Begin { to, for_ms, process } => self.begin_move(to, *for_ms, process.as_ref()),
            Relocate::Poll => {
                let gate = self.held_gate()?;
                self.keep_gate();
                self.answer_move(&gate)
            }
            Relocate::Commit => {
                let gate = self.held_gate()?;
                if !self.session.blocks_move(&gate).is_empty() {
                    return self.answer_move(&gate);
                }
                self.session.gate = None;
                self.session.cwd = Some(gate.to.clone());
                // A prompt that was admitted before the gate may have lifted the suspension.
                self.suspend(Cause::Relocated, Some(&gate.to));
                self.log("relocated", Some(&gate.to), gate.from.as_deref());
                let facts = facts! { "from": gate.from, "to": gate.to };
                said(Code::Relocated, format!("the session lives in `{}`", gate.to), facts)
            }
            Relocate::Abort => {
                let gate = self.held_gate()?;
                self.give_up_move("the caller said so");
                let facts = facts! { "from": gate.from, "to": gate.to };
                said(Code::RelocationAborted, format!("the session does not move to `{}`", gate.to), facts)
            }
        }
    }

    /// The target is canonical (O58). That it is another one than now is judged here, under the lock: a move to
    /// the same directory waits for no one, and still cannot overtake another move (O59).
    fn begin_move(&mut self, to: &str, for_ms: u64, process: Option<&ProcessRef>) -> Answered {
        if let Some(gate) = self.session.gate.clone() {
            if gate.to == to {
                self.keep_gate();
                return self.answer_move(&gate);
            }
            let mut refusal = Refusal::new(Code::Relocating, format!("the session moves to `{}`", gate.to))
                .hint("ask again when that move was committed, aborted or given up")
                .fact("from", gate.from)
                .fact("to", gate.to)
                .fact("since", gate.at.as_str());
            if let Some(holder) = gate.process {
                refusal = refusal.fact("ownerPid", holder.pid);
            }
            return refused(refusal);
        }
        if self.session.state == SessionState::Restoring {
            let message = format!("session `{}` is being restored", self.session.session_id);
            return refused(
                Refusal::new(Code::SessionRestoring, message).hint("ask again after `session restore --end`"),
            );
        }
        let from = self.session.cwd.clone();
        if from.as_deref() == Some(to) {
            return said(Code::NoMove, format!("the session is in `{to}`"), facts! { "to": to });
        }
        self.suspend(Cause::Relocated, Some(to));
        let gate = Gate {
            from,
            to: to.to_owned(),
            seq: self.next_seq(),
            at: self.moment.call.now.clone(),
            deadline: self.moment.boot.after(for_ms),
            lease_ms: for_ms,
            process: process.cloned(),
            extra: Extra::new(),
        };
        self.session.gate = Some(gate.clone());
        self.log("relocation-began", Some(to), gate.from.as_deref());
        self.answer_move(&gate)
    }

    fn held_gate(&self) -> Result<Gate, Box<Refusal>> {
        self.session.gate.clone().ok_or_else(|| {
            let message = format!("session `{}` does not move", self.session.session_id);
            let mut refusal = Refusal::new(Code::NoRelocation, message)
                .hint("a move whose time was over, or whose caller died, was given up; begin it again");
            if let Some(cwd) = &self.session.cwd {
                refusal = refusal.fact("cwd", cwd.as_str());
            }
            Box::new(refusal)
        })
    }

    /// Whoever asks is still there: the gate is not given up for its time alone. It is written only when its time
    /// grows short, so that asking again and again costs little.
    fn keep_gate(&mut self) {
        let boot = self.moment.boot;
        if let Some(gate) = &mut self.session.gate
            && gate.deadline.is_over(&boot.after(gate.lease_ms / 2))
        {
            gate.deadline = boot.after(gate.lease_ms);
        }
    }

    fn answer_move(&self, gate: &Gate) -> Answered {
        let blockers = self.session.blocks_move(gate);
        if blockers.is_empty() {
            let facts = facts! { "from": gate.from, "to": gate.to, "blockers": blockers };
            return said(Code::RelocationReady, format!("move to `{}`, then `--commit`", gate.to), facts);
        }
        let message =
            format!("{} things that began before the move to `{}` are not over", blockers.len(), gate.to);
        let refusal = Refusal::new(Code::Relocating, message)
            .hint("ask again with `session relocate --poll`, or give up with `--abort`")
            .fact("from", gate.from.clone())
            .fact("to", gate.to.as_str())
            .fact("blockers", blockers);
        refused(refusal)
    }

    /// The gate never stays; the suspension does (O61).
    fn give_up_move(&mut self, why: &str) {
        if let Some(gate) = self.session.gate.take() {
            self.suspend(Cause::Relocated, Some(&gate.to));
            self.log("relocation-given-up", Some(&gate.to), Some(why));
        }
    }

    /// A holder that died, or whose time is over.
    pub(super) fn sweep_gate(&mut self) {
        let Some(gate) = &self.session.gate else { return };
        if self.is_dead(gate.process.as_ref()) {
            self.give_up_move("its caller is dead");
        } else if gate.deadline.is_over(self.moment.boot) {
            self.give_up_move("its time was over");
        }
    }
}

#[cfg(test)]
mod tests;
