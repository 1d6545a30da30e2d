//! One call of one actor, from a handful of random bytes to its commit or its refusal.

use lychgate::protocol::admission::{self, Through, Waits};
use lychgate::protocol::codes::ReceiptSource;
use lychgate::protocol::ids::{AttemptId, Nonce, SendId};
use lychgate::protocol::invariants::Deed;
use lychgate::protocol::recovery::{Recovery, RecoverySight, recover};
use lychgate::protocol::report::{Publication, Publishing, publish};
use lychgate::protocol::reservation::{self, Reserve, Reserved, Spending};
use lychgate::protocol::retirement::{self, ClaimEvidence, ClaimRequest};
use lychgate::protocol::rotation::{self, Around, Expect, Rotate, RotateAs};
use lychgate::protocol::row::{ClaimMode, Extra, Owner, Row, WorkflowTask};
use lychgate::protocol::settlement::{self, ClosingWords, Disposal, SettleAttempt};
use lychgate::protocol::stop::{self, NamedCleanup, Stop};
use lychgate::protocol::verdict::{Call, Credentials as _, Judged, OwnerLife, Role, Said, Verdict};

use crate::op::{Op, Verb, at};
use crate::samples::legacy;
use crate::world::{Asked, Checked, World, name};

/// How many names there are to reserve.
const N_NAMES: u8 = 3;

impl Op {
    pub fn play(self, world: &mut World) -> Checked {
        match self.verb {
            Verb::Reserve => return self.reserve(world),
            Verb::Replace => return self.replace(world),
            Verb::Crash => {
                world.memory[self.actor()].clear();
                return Ok(());
            }
            Verb::Repeat => return world.repeat(self.actor(), usize::from(self.pick)),
            Verb::Legacy => return self.legacy(world),
            _ => {}
        }
        let Some(row) = self.row(world) else { return Ok(()) };
        match self.verb {
            Verb::Launch => self.rotate(world, &row, RotateAs::Launch),
            Verb::Reawaken => self.rotate(world, &row, RotateAs::Reawaken),
            Verb::Reactivate => self.rotate(world, &row, RotateAs::Reactivate),
            Verb::Startup => self.rotate(world, &row, RotateAs::Startup),
            Verb::Register | Verb::Enqueue | Verb::GateSend | Verb::GateAttempt => self.admit(world, &row),
            Verb::Stop => self.stop(world, &row),
            Verb::Report => self.report(world, &row),
            Verb::Claim => self.claim(world, &row),
            Verb::Recover => self.recover(world, &row),
            Verb::Kill => {
                self.kill(world, &row);
                Ok(())
            }
            _ => self.settle(world, &row),
        }
    }

    fn kill(self, world: &mut World, row: &Row) {
        if let Some(attempt) = &row.task_attempt_id
            && let Some(life) = world.lives.get_mut(attempt).filter(|life| **life == OwnerLife::Alive)
        {
            *life = OwnerLife::Dead;
        }
        if self.alt.is_multiple_of(2) {
            let debts = world.cleanups.iter().filter(|(task, _)| *task == row.task_id);
            let debts: Vec<_> = debts.map(|(_, id)| id.clone()).collect();
            world.dead_debts.extend(debts);
        }
    }

    fn legacy(self, world: &mut World) -> Checked {
        let task = name(&format!("old{}", self.task % 2));
        if world.rows.contains_key(&task) {
            return Ok(());
        }
        let call = world.call("import");
        world.commit(legacy(task, self.alt, &call), None, Deed::Other)
    }

    fn reserve(self, world: &mut World) -> Checked {
        let task = name(&format!("t{}", self.task % N_NAMES));
        // The last name is a child of the first one, where there is that one.
        let above = world.rows.get(&name("t0")).filter(|_| self.task % N_NAMES == N_NAMES - 1);
        let ancestors = above.map(|row| vec![row.parent_workspace_id.clone()]).unwrap_or_default();
        let parent = above.map_or_else(|| name("ws"), |row| row.task_id.clone());
        if world.stopped_above(&parent, &ancestors).is_some() {
            return Ok(());
        }
        let request = Reserve {
            task: task.clone(),
            parent,
            ancestors,
            workflow_task: self.step(),
            owner: self.owner().unwrap_or_default(),
            fresh: world.fresh_attempt(),
        };
        let call = world.call("reserve");
        match reservation::reserve(world.rows.get(&task), &request, &call) {
            Err(refusal) => world.refused(&refusal),
            Ok(reserved) => self.reserved(world, reserved, &request.fresh, &call)?,
        }
        Ok(())
    }

    fn reserved(self, world: &mut World, reserved: Reserved, fresh: &AttemptId, call: &Call) -> Checked {
        let Reserved { mut row, old, said } = reserved;
        let record = World::record(call, "reserve", &said, None);
        row.remember(record.clone());
        let asked =
            Asked { task: row.task_id.clone(), record: record.clone(), tokens_of: Some(fresh.clone()) };
        world.commit(*row, None, Deed::Other)?;
        if let Some(mut old) = old {
            old.remember(record);
            world.commit(*old, None, Deed::Other)?;
            world.tally.saw("replacement");
        }
        world.lives.insert(fresh.clone(), self.life());
        world.hand_out(self.actor(), fresh);
        world.asked.push(asked);
        Ok(())
    }

    fn replace(self, world: &mut World) -> Checked {
        let claimed: Vec<_> = world.rows.values().filter(|row| row.retirement.is_some()).cloned().collect();
        let Some(old) = at(&claimed, self.task).or_else(|| self.row(world)) else { return Ok(()) };
        let granted: Vec<_> = world.nonces.iter().filter(|(task, _)| *task == old.task_id).collect();
        let nonce = match self.pick {
            0..200 => granted.last().map(|(_, nonce)| nonce.clone()),
            200..240 => at(&granted, self.alt).map(|(_, nonce)| nonce.clone()),
            240.. => Nonce::parse(&format!("non_{:032x}", 0)).ok(),
        };
        if world.stopped_above(&old.parent_workspace_id, &old.ancestors).is_some() {
            return Ok(());
        }
        let n = world.rows.len();
        let request = Reserve {
            task: if self.alt % 16 == 1 { old.task_id.clone() } else { name(&format!("r{n}")) },
            parent: old.parent_workspace_id.clone(),
            ancestors: old.ancestors.clone(),
            workflow_task: old.task_attempt_retired_by.as_ref().map(|claim| WorkflowTask {
                run_id: claim.run_id.clone(),
                step_id: claim.step_id.clone(),
                input_hash: claim.input_hash.clone(),
                extra: Extra::new(),
            }),
            owner: Owner::default(),
            fresh: world.fresh_attempt(),
        };
        let call = world.call("reserve");
        let existing = world.rows.get(&request.task);
        let reports = self.reports();
        let spending = Spending { nonce: nonce.as_ref(), reports: &reports };
        match reservation::replace(existing, &old, &spending, &request, &call) {
            Err(refusal) => world.refused(&refusal),
            Ok(reserved) => self.reserved(world, reserved, &request.fresh, &call)?,
        }
        Ok(())
    }

    fn rotate(self, world: &mut World, row: &Row, kind: RotateAs) -> Checked {
        let expect = (self.pick % 4 == 3).then(|| Expect {
            attempt: self.attempt(world, row),
            epoch: (self.pick % 8 == 7).then(|| row.stop_epoch.saturating_sub(u64::from(self.alt % 3 == 2))),
        });
        let request = Rotate {
            kind,
            expect,
            owner: self.owner(),
            by: "somebody".to_owned(),
            unproven: self.alt % 8 >= 5,
            fresh: world.fresh_attempt(),
        };
        let shown = self.shown(world, row.task_attempt_id.as_ref());
        let around = Around {
            credentials: &shown,
            owner_life: world.owner_life(row),
            receipt: self.receipt(world, row),
            stopped_ancestor: world.stopped_above(&row.parent_workspace_id, &row.ancestors),
        };
        let call = world.call("rotate");
        let judged = rotation::rotate(row, &request, &around, &call);
        let changed = matches!(judged, Ok(Verdict::Change { .. }));
        self.take(world, row, judged, &call, Deed::Other)?;
        let now = world.rows[&row.task_id].clone();
        if changed && (now.task_attempt_id != row.task_attempt_id || request.owner.is_some()) {
            let attempt = now.task_attempt_id.clone().unwrap();
            world.lives.insert(attempt.clone(), self.life());
            if now.attempt.owned && now.task_attempt_id != row.task_attempt_id {
                world.hand_out(self.actor(), &attempt);
                if let Some(asked) = world.asked.last_mut() {
                    asked.tokens_of = Some(attempt);
                }
            }
        }
        Ok(())
    }

    /// Commits what was judged, with the call remembered as the commands remember it.
    fn take(self, world: &mut World, row: &Row, judged: Judged, call: &Call, deed: Deed<'_>) -> Checked {
        match judged {
            Err(mut refusal) => {
                world.refused(&refusal);
                if let Some(leaves) = refusal.leaves.take() {
                    world.tally.saw("refusal that discharges");
                    world.commit(*leaves, None, deed)?;
                }
            }
            Ok(Verdict::Same(said)) => world.tally.saw(said.code.as_str()),
            Ok(Verdict::Change { row: mut after, receipt, said }) => {
                world.tally.saw(said.code.as_str());
                let record = World::record(call, &format!("{:?}", self.verb), &said, send_of(&said));
                after.remember(record.clone());
                world.commit(*after, receipt.as_deref(), deed)?;
                world.asked.push(Asked { task: row.task_id.clone(), record, tokens_of: None });
            }
        }
        Ok(())
    }

    fn admit(self, world: &mut World, row: &Row) -> Checked {
        let attempt = self.attempt(world, row);
        let send = self.send(world, row);
        let shown = self.shown(world, row.task_attempt_id.as_ref());
        let waits = if self.alt.is_multiple_of(2) { Waits::Pending } else { Waits::Enqueued };
        let stopped = world.stopped_above(&row.parent_workspace_id, &row.ancestors);
        let call = world.call("admit");
        let gate = |through| admission::gate(row, &through, None, stopped.as_ref(), &shown, &call);
        let judged = match self.verb {
            Verb::Register => admission::register(row, &attempt, waits, None, &shown, &call),
            Verb::Enqueue => admission::enqueue(row, &send, &shown, &call),
            Verb::GateSend => gate(Through::Send(send)),
            _ => gate(Through::Attempt(attempt)),
        };
        self.take(world, row, judged, &call, Deed::Other)
    }

    fn stop(self, world: &mut World, row: &Row) -> Checked {
        let cleanups: Vec<_> = (0..self.alt % 5 / 3)
            .map(|n| NamedCleanup { id: world.fresh_cleanup(), name: format!("debt {n}"), process: None })
            .collect();
        let request = Stop {
            attempt: (self.pick % 4 == 3).then(|| self.attempt(world, row)),
            words: ClosingWords { parent_only: self.alt % 7 == 6, ..ClosingWords::default() },
            cleanups: cleanups.clone(),
        };
        let call = world.call("stop");
        let judged = stop::stop(row, &request, &call);
        world.cleanups.extend(cleanups.into_iter().map(|debt| (row.task_id.clone(), debt.id)));
        self.take(world, row, judged, &call, Deed::Stop)
    }

    fn settle(self, world: &mut World, row: &Row) -> Checked {
        let request = SettleAttempt {
            attempt: (self.alt % 4 == 3).then(|| self.attempt(world, row)),
            source: if self.alt.is_multiple_of(6) { at(&ReceiptSource::ALL, self.alt / 6) } else { None },
            parent_only: self.alt % 7 == 6,
        };
        let turn = self.turn(world, row);
        let call = world.call("settle");
        if let Verb::SettleTurn | Verb::SettleTurnAndClose = self.verb {
            let of = turn.minted().map(|minted| minted.attempt);
            let shown = self.shown(world, of.as_ref());
            let close = (self.verb == Verb::SettleTurnAndClose).then_some(&request);
            let judged = settlement::settle_turn(row, &turn, close, &shown, &call);
            let role = of.map_or(Role::Absent, |of| shown.role(&of));
            return self.take(world, row, judged, &call, Deed::EndOfTurn { turn: &turn, role });
        }
        let shown = self.shown(world, row.task_attempt_id.as_ref());
        let judged = match self.verb {
            Verb::SettleSend => {
                let ends = [Disposal::Canceled, Disposal::NoWork, Disposal::Refused];
                let end = ends[usize::from(self.alt) % ends.len()];
                settlement::settle_send(row, &self.send(world, row), end, &shown, &call)
            }
            Verb::SettleCleanup => settlement::settle_cleanup(row, &self.cleanup(world, row), &call),
            _ => settlement::settle_attempt(row, &request, &shown, &call),
        };
        self.take(world, row, judged, &call, Deed::Other)
    }

    fn report(self, world: &mut World, row: &Row) -> Checked {
        let attempt = self.attempt(world, row);
        let text = format!("{:064x}", self.alt % 3);
        let key = (row.task_id.clone(), attempt.clone(), text.clone());
        let publication = Publication {
            attempt: attempt.clone(),
            text_sha256: text.clone(),
            text_bytes: 1,
            file_sha256: text,
            title: None,
            kept_late: world.late.contains(&key),
        };
        let shown = self.shown(world, row.task_attempt_id.as_ref());
        let call = world.call("report");
        match publish(row, &publication, &shown, &call) {
            Publishing::Accept { mut row, said } => {
                world.tally.saw(said.code.as_str());
                let record = World::record(&call, "report", &said, None);
                row.remember(record.clone());
                let task = row.task_id.clone();
                if !world.reports.insert((task.clone(), attempt)) {
                    return Err(format!("`{task}` has a second report of one attempt"));
                }
                world.commit(*row, None, Deed::Other)?;
                world.asked.push(Asked { task, record, tokens_of: None });
            }
            Publishing::Already(said) => world.tally.saw(said.code.as_str()),
            Publishing::Late { row, refusal } => {
                world.refused(&refusal);
                world.tally.saw(refusal.facts["reasonCode"].as_str().unwrap_or_default());
                if let Some(row) = row {
                    world.late.insert(key);
                    world.commit(*row, None, Deed::Other)?;
                }
            }
        }
        Ok(())
    }

    fn claim(self, world: &mut World, row: &Row) -> Checked {
        let wrong = |n: u8| if self.alt == n { name("wrong") } else { name("run") };
        let mode = match (row.reports.is_empty(), self.alt % 5) {
            (true, 4) | (false, 0..4) => ClaimMode::RetireReported,
            _ => ClaimMode::NoReport,
        };
        let request = ClaimRequest {
            attempt: self.attempt(world, row),
            run: wrong(250),
            step: if self.alt == 251 { name("wrong") } else { name("step") },
            input_hash: if self.alt == 252 { name("wrong") } else { name("hash") },
            parent: if self.alt == 253 { name("wrong") } else { row.parent_workspace_id.clone() },
            mode,
            fresh: world.fresh_nonce(),
        };
        let shown = self.shown(world, row.task_attempt_id.as_ref());
        let evidence = ClaimEvidence {
            credentials: &shown,
            owner_life: world.owner_life(row),
            receipt: self.receipt(world, row),
            reports: self.reports(),
        };
        let call = world.call("claim-retire");
        let judged = retirement::claim(row, &request, &evidence, &call);
        if matches!(judged, Ok(Verdict::Change { .. })) {
            world.nonces.push((row.task_id.clone(), request.fresh));
        }
        self.take(world, row, judged, &call, Deed::Other)?;
        let now = world.rows[&row.task_id].clone();
        if now.task_attempt_retired_by.is_some()
            && let Err(alarm) = retirement::alarm(&now, &self.reports())
        {
            world.refused(&alarm);
        }
        Ok(())
    }

    fn sight(self, world: &mut World, row: &Row) -> RecoverySight {
        let owed = row.settlement.iter().flat_map(|settlement| &settlement.closure.cleanups);
        let dead = owed.filter(|cleanup| world.dead_debts.contains(&cleanup.cleanup_id));
        RecoverySight {
            dead_debts: dead.map(|cleanup| cleanup.cleanup_id.clone()).collect(),
            owner_life: world.owner_life(row),
            named_unproven: self.alt % 4 == 3,
            by: "somebody".to_owned(),
            fresh: world.fresh_attempt(),
        }
    }

    /// The pass after a restart. A second pass changes nothing more.
    fn recover(self, world: &mut World, row: &Row) -> Checked {
        let sight = self.sight(world, row);
        let call = world.call("recover");
        match recover(row, &sight, &call) {
            Recovery::Fine => world.tally.saw("recover: fine"),
            Recovery::AtWork => world.tally.saw("recover: at work"),
            Recovery::Left { why, .. } => world.tally.saw(why.as_str()),
            Recovery::Change { row: after, receipt, did, .. } => {
                world.tally.saw(did);
                world.commit(*after.clone(), receipt.as_deref(), Deed::Other)?;
                let again = self.sight(world, &after);
                if let Recovery::Change { did, row: twice, .. } = recover(&after, &again, &call) {
                    return Err(format!("a second pass {did} it again: {}", twice.state_word()));
                }
            }
        }
        Ok(())
    }
}

fn send_of(said: &Said) -> Option<SendId> {
    SendId::parse(said.facts.get("sendId")?.as_str()?).ok()
}
