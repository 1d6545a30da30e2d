//! Publishing the next identity: `rotate` (rules 15, 16, 18, 20 to 25, 41).

use super::codes::Code;
use super::ids::{AttemptId, Name, Timestamp};
use super::lineage::{Proof, ReceiptEvidence, prove};
use super::row::{
    Attempt, Extra, Origin, Owner, PAST_ATTEMPTS_KEPT, Row, Superseded, TaskStatus, UnprovenOverride,
};
use super::state::{Phase, command_line, owed_words, turn_fact};
use super::verdict::{Call, Credentials, Facts, Judged, OwnerLife, Refusal, Role, Said, Verdict};
use crate::facts;

/// Which kind of identity is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RotateAs {
    /// queued -> starting.
    Launch,
    /// interrupted -> running.
    Reawaken,
    /// A reported task goes on; it stays reported.
    Reactivate,
    /// After a restart: nobody's, and unproven for good.
    Startup,
}

impl RotateAs {
    /// The word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Reawaken => "reawaken",
            Self::Reactivate => "reactivate",
            Self::Startup => "startup",
        }
    }
}

/// The compare part of the compare-and-set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    /// The attempt the caller has seen.
    pub attempt: AttemptId,
    /// The stop epoch the caller has seen.
    pub epoch: Option<u64>,
}

/// A request to rotate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotate {
    /// The kind.
    pub kind: RotateAs,
    /// What the caller has seen, if it said so.
    pub expect: Option<Expect>,
    /// The new owner record, if any of it was given.
    pub owner: Option<Owner>,
    /// Who asks, for the record of an override.
    pub by: String,
    /// A person's word to go ahead beside an unknown owner or an undischarged turn.
    pub unproven: bool,
    /// The id to publish.
    pub fresh: AttemptId,
}

/// What the rules see around the row, read under the same locks.
pub struct Around<'a> {
    /// The caller's credentials.
    pub credentials: &'a dyn Credentials,
    /// Whether the current attempt's owner is alive.
    pub owner_life: OwnerLife,
    /// The receipt of the current attempt.
    pub receipt: ReceiptEvidence,
    /// An ancestor whose current attempt is closed by a Stop.
    pub stopped_ancestor: Option<Name>,
}

/// Refuses while an ancestor is stopped (decision on trees).
pub fn refuse_stopped_ancestor(row: &Row, ancestor: Option<&Name>) -> Result<(), Box<Refusal>> {
    let Some(ancestor) = ancestor else { return Ok(()) };
    let message = format!("ancestor `{ancestor}` of task `{}` is stopped", row.task_id);
    let hint = format!("its descendants go on after: {}", command_line("rotate", ancestor, "--as reawaken"));
    Err(Box::new(Refusal::new(Code::AncestorStopped, message).hint(hint).fact("ancestor", ancestor.as_str())))
}

/// Publishes the next identity of a task, or refuses and changes nothing.
pub fn rotate(row: &Row, request: &Rotate, around: &Around<'_>, call: &Call) -> Judged {
    row.refuse_retired()?;
    refuse_unexpected(row, request)?;
    match request.kind {
        RotateAs::Launch => launch(row, request, around, call),
        RotateAs::Reawaken => {
            if row.task_status != TaskStatus::Interrupted {
                return Err(wrong_status(row, Code::NotInterrupted, "interrupted"));
            }
            refuse_stopped_ancestor(row, around.stopped_ancestor.as_ref())?;
            go_on(row, request, around, call)
        }
        RotateAs::Reactivate => {
            if row.task_status != TaskStatus::Reported {
                return Err(wrong_status(row, Code::NotReported, "reported"));
            }
            refuse_stopped_ancestor(row, around.stopped_ancestor.as_ref())?;
            go_on(row, request, around, call)
        }
        RotateAs::Startup => startup(row, request, around, call),
    }
}

fn refuse_unexpected(row: &Row, request: &Rotate) -> Result<(), Box<Refusal>> {
    let Some(expect) = &request.expect else { return Ok(()) };
    if row.task_attempt_id.as_ref() != Some(&expect.attempt) {
        if request.kind != RotateAs::Launch {
            return row.refuse_stale(&expect.attempt);
        }
        let current = row.task_attempt_id.as_ref().map_or("none", AttemptId::as_str);
        let message = format!(
            "task `{}` has attempt {current} now, not the reserved {}: this launch is abandoned",
            row.task_id, expect.attempt
        );
        return Err(Box::new(Refusal::new(Code::StaleLaunch, message).fact("currentAttemptId", current)));
    }
    match expect.epoch {
        Some(epoch) if epoch != row.stop_epoch => {
            let message = format!(
                "task `{}` was stopped since: its stop epoch is {}, not {epoch}",
                row.task_id, row.stop_epoch
            );
            Err(Box::new(Refusal::new(Code::StaleEpoch, message).fact("stopEpoch", row.stop_epoch)))
        }
        Some(_) | None => Ok(()),
    }
}

fn wrong_status(row: &Row, code: Code, wanted: &str) -> Box<Refusal> {
    let message = format!("task `{}` is {}, not {wanted}", row.task_id, row.task_status.as_str());
    Box::new(Refusal::new(code, message).fact("taskStatus", row.task_status.as_str()))
}

/// The one exclusive step from queued to starting (rules 20, 23, finding 102).
fn launch(row: &Row, request: &Rotate, around: &Around<'_>, call: &Call) -> Judged {
    if row.task_status != TaskStatus::Queued {
        return Err(wrong_status(row, Code::NotQueued, "queued"));
    }
    refuse_stopped_ancestor(row, around.stopped_ancestor.as_ref())?;
    let role = row.task_attempt_id.as_ref().map_or(Role::Absent, |id| around.credentials.role(id));
    let before = row.state_word();
    let mut next = row.clone();
    next.task_status = TaskStatus::Starting;
    match (role, &row.task_attempt_id) {
        (Role::Owner, Some(_)) => {
            if let Some(owner) = &request.owner {
                next.attempt.owner = owner.clone();
            }
            next.record(call, Some(before), Code::Launched, None, None);
            let facts = published(&next, None, "the reservation's own launch");
            let message = format!("task `{}` is starting under its own attempt", row.task_id);
            Ok(changed(next, Said { code: Code::Launched, message, facts }))
        }
        (Role::Absent, previous) => {
            // A legacy row may have been launched by a program that knew no marker (rule 20).
            next.task_attempt_unproven |= previous.is_none();
            let eligible = !next.task_attempt_unproven;
            let reason = match (previous.is_some(), eligible) {
                (false, _) => "a queued task without an attempt id may have been launched before",
                (true, true) => "a queued task was never admitted, so its launcher is proven",
                (true, false) => "an earlier attempt of this task was never proven over",
            };
            publish(&mut next, Origin::Launch, true, eligible, reason, request, &call.now);
            next.record(call, Some(before), Code::Launched, Some(request.fresh.as_str()), None);
            let mut facts = published(&next, previous.as_ref(), reason);
            facts.entry("previousAttemptId").or_insert(serde_json::Value::Null);
            let message = format!("task `{}` is starting, taken over from its reservation", row.task_id);
            Ok(changed(next, Said { code: Code::Launched, message, facts }))
        }
        (Role::Worker | Role::Wrong | Role::Owner, attempt) => {
            let attempt = attempt.clone().unwrap_or_else(|| request.fresh.clone());
            row.refuse_stranger(around.credentials, &attempt, &[Role::Owner])?;
            Err(wrong_status(row, Code::NotQueued, "queued"))
        }
    }
}

/// Reawaken and reactivate: the same compare-and-set, with the proof decided from the row under the lock.
fn go_on(row: &Row, request: &Rotate, around: &Around<'_>, call: &Call) -> Judged {
    let in_flight = row.turns().next().is_some();
    if row.phase() == Phase::Closing {
        // With `--unproven` a live owner's turn is named as such below; without it, asking again helps.
        let goes_past = match around.owner_life {
            OwnerLife::Dead => true,
            OwnerLife::Unknown | OwnerLife::None => request.unproven,
            OwnerLife::Alive => request.unproven && in_flight,
        };
        if !goes_past {
            return Ok(Verdict::Same(closing(row, around.owner_life)));
        }
    }
    refuse_live_owner(row, around.owner_life)?;
    let role = row.task_attempt_id.as_ref().map_or(Role::Absent, |id| around.credentials.role(id));
    let mut proof = prove(row, &around.receipt, role);
    if row.phase() == Phase::Closing {
        proof = Proof { proven: false, reason: "the predecessor was never settled".to_owned() };
    }
    let origin = if request.kind == RotateAs::Reawaken { Origin::Reawaken } else { Origin::Reactivate };
    let before = row.state_word();
    let previous = row.task_attempt_id.clone();
    let mut next = row.clone();
    supersede(&mut next, proof.proven, &call.now);
    if origin == Origin::Reawaken {
        next.task_status = TaskStatus::Running;
    }
    let eligible = !next.task_attempt_unproven;
    publish(&mut next, origin, true, eligible, &proof.reason, request, &call.now);
    next.record(call, Some(before), Code::Rotated, Some(request.fresh.as_str()), Some(&proof.reason));
    let facts = published(&next, previous.as_ref(), &proof.reason);
    let lineage = if eligible { "proven" } else { "unproven" };
    let message = format!("task `{}` has a fresh, {lineage} attempt: {}", row.task_id, proof.reason);
    Ok(changed(next, Said { code: Code::Rotated, message, facts }))
}

/// The answer while the predecessor is closing: nothing changes; ask again (rule 15, without a wait inside).
fn closing(row: &Row, life: OwnerLife) -> Said {
    let message = format!(
        "the attempt of task `{}` is closing under an owner that is {}; {} still owed",
        row.task_id,
        match life {
            OwnerLife::Alive => "alive",
            OwnerLife::Dead => "dead",
            OwnerLife::Unknown | OwnerLife::None => "unknown",
        },
        owed_words(row)
    );
    let facts = facts! {
        "taskId": row.task_id, "attemptId": row.task_attempt_id, "taskStatus": row.task_status.as_str(),
        "ownerAlive": life.as_str(), "owed": row.owed(),
    };
    Said { code: Code::CleanupPending, message, facts }
}

fn refuse_live_owner(row: &Row, life: OwnerLife) -> Result<(), Box<Refusal>> {
    let turns: Vec<_> = row.turns().map(turn_fact).collect();
    if life != OwnerLife::Alive || turns.is_empty() {
        return Ok(());
    }
    let name = row.attempt.owner.name.as_deref().unwrap_or("its owner");
    let message =
        format!("`{name}` is alive and {} turn(s) of task `{}` are in flight", turns.len(), row.task_id);
    let hint = if row.phase() == Phase::Open {
        format!("stop it first: {}", command_line("stop", &row.task_id, ""))
    } else {
        "it is stopped; ask again when the owner has settled what is in flight".to_owned()
    };
    Err(Box::new(Refusal::new(Code::OwnerAlive, message).hint(hint).fact("turns", turns)))
}

/// The re-drive after a restart: a fresh id, marked, and nobody's (rule 25).
fn startup(row: &Row, request: &Rotate, around: &Around<'_>, call: &Call) -> Judged {
    row.refuse_closed()?;
    if !matches!(row.task_status, TaskStatus::Starting | TaskStatus::Running) {
        return Err(wrong_status(row, Code::NotRunning, "starting or running"));
    }
    refuse_live_owner(row, around.owner_life)?;
    let in_flight = row.turns().next().is_some();
    let unknown = match around.owner_life {
        OwnerLife::Unknown => true,
        OwnerLife::None => in_flight,
        OwnerLife::Alive | OwnerLife::Dead => false,
    };
    let alive = around.owner_life == OwnerLife::Alive;
    if alive || (unknown && !request.unproven) {
        let (code, what) = if alive {
            (Code::OwnerAlive, "is alive: it can go on by itself")
        } else {
            (Code::OwnerUnknown, "cannot be proven dead, so its work may still be running")
        };
        let name = row.attempt.owner.name.as_deref().unwrap_or("its owner");
        let message = format!("`{name}` of task `{}` {what}", row.task_id);
        let mut refusal = Refusal::new(code, message).fact("ownerAlive", around.owner_life.as_str());
        if !alive {
            refusal = refusal
                .hint("a person who knows that it is gone may pass --unproven; it stays unproven for good");
        }
        return Err(Box::new(refusal));
    }
    let reason = "re-driven after a restart: what ran before was never proven over";
    let previous = row.task_attempt_id.clone();
    let next = redriven(row, request, reason, call);
    let facts = published(&next, previous.as_ref(), reason);
    let message = format!("task `{}` has a fresh attempt that nobody owns; it gets one send", row.task_id);
    Ok(changed(next, Said { code: Code::Rotated, message, facts }))
}

/// The row after a re-drive: also what `recover` does.
pub(super) fn redriven(row: &Row, request: &Rotate, reason: &str, call: &Call) -> Row {
    let before = row.state_word();
    let mut next = row.clone();
    supersede(&mut next, false, &call.now);
    next.task_status = TaskStatus::Running;
    publish(&mut next, Origin::Startup, false, false, reason, request, &call.now);
    next.record(call, Some(before), Code::Rotated, Some(request.fresh.as_str()), Some(reason));
    next
}

/// Puts the current attempt behind the row. The marker is only ever added (rule 16); undischarged turns stay.
fn supersede(row: &mut Row, proven: bool, now: &Timestamp) {
    if proven {
        row.superseded.clear();
    } else {
        row.task_attempt_unproven = true;
        if let (Some(attempt_id), true) = (&row.task_attempt_id, row.phase() != Phase::Settled) {
            row.superseded.push(Superseded {
                attempt_id: attempt_id.clone(),
                owned: row.attempt.owned,
                owner: row.attempt.owner.clone(),
                at: now.clone(),
                extra: Extra::new(),
            });
        }
    }
}

/// Publishes the fresh id. Owner record and overrides are replaced whole: what is not given is unknown.
fn publish(
    row: &mut Row,
    origin: Origin,
    owned: bool,
    eligible: bool,
    reason: &str,
    request: &Rotate,
    now: &Timestamp,
) {
    let holder = request.owner.clone().unwrap_or_default();
    let beside_turns: Vec<_> = row.turns().filter_map(|send| send.turn().cloned()).collect();
    let unproven_override = (request.unproven && !beside_turns.is_empty()).then(|| UnprovenOverride {
        by: Some(request.by.clone()),
        at: now.clone(),
        beside_turns,
        extra: Extra::new(),
    });
    // A send of an earlier id can never be admitted (rule 40), so it is discharged here.
    row.discharge_waiting();
    row.settlement = None;
    row.past_attempts.extend(row.task_attempt_id.take());
    let surplus = row.past_attempts.len().saturating_sub(PAST_ATTEMPTS_KEPT);
    row.past_attempts.drain(..surplus);
    row.task_attempt_id = Some(request.fresh.clone());
    row.attempt = Attempt {
        origin,
        owned,
        receipt_eligible: eligible,
        reason: reason.to_owned(),
        since: now.clone(),
        owner: if owned { holder } else { Owner::default() },
        ever_admitted: false,
        unowned_send_used: false,
        unproven_override,
        extra: Extra::new(),
    };
}

fn published(row: &Row, previous: Option<&AttemptId>, reason: &str) -> Facts {
    let mut facts = facts! {
        "taskId": row.task_id,
        "attemptId": row.task_attempt_id,
        "taskStatus": row.task_status.as_str(),
        "proven": !row.task_attempt_unproven,
        "receiptEligible": row.attempt.receipt_eligible,
        "owned": row.attempt.owned,
        "ownerPid": row.attempt.owner.process.as_ref().map(|process| process.pid),
        "reason": reason,
        "stopEpoch": row.stop_epoch,
    };
    if let Some(previous) = previous {
        facts.insert("previousAttemptId".to_owned(), previous.as_str().into());
    }
    if row.late_reports > 0 {
        facts.insert("lateReports".to_owned(), row.late_reports.into());
    }
    let turns: Vec<_> = row.earlier_turns().map(turn_fact).collect();
    if !turns.is_empty() {
        facts.insert("turnsOfEarlierAttempts".to_owned(), turns.into());
    }
    facts
}

fn changed(row: Row, said: Said) -> Verdict {
    Verdict::Change { row: Box::new(row), receipt: None, said }
}
