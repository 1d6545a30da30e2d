//! The admission gate: sends, and the one committed step that lets a turn start (rules 26, 27, 37 to 41, 48 to 50).

use super::codes::Code;
use super::ids::{AttemptId, Name, SendId, TurnId};
use super::rotation::refuse_stopped_ancestor;
use super::row::{Extra, Row, Send, SendState, TaskStatus};
use super::state::{command_line, turn_fact};
use super::verdict::{Call, Credentials, Facts, Judged, Refusal, Role, Said, Verdict};
use crate::facts;

/// Where a registered send waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// With its caller.
    Pending,
    /// In the agent's own queue.
    Enqueued,
}

const MAY_ADMIT: [Role; 2] = [Role::Owner, Role::Worker];

/// The common predicate of every gate (rule 40): the attempt is current, not retired, and open, and the
/// caller may send for it.
fn refuse_inadmissible(
    row: &Row,
    attempt: &AttemptId,
    credentials: &dyn Credentials,
) -> Result<(), Box<Refusal>> {
    row.refuse_retired()?;
    row.refuse_stale(attempt)?;
    if row.attempt.owned {
        row.refuse_stranger(credentials, attempt, &MAY_ADMIT)?;
    }
    row.refuse_closed()
}

fn refuse_second_unowned(row: &Row) -> Result<(), Box<Refusal>> {
    if row.attempt.owned || !row.attempt.unowned_send_used {
        return Ok(());
    }
    let message = format!("task `{}` was re-driven and nobody owns it; its one send was used", row.task_id);
    let hint = format!(
        "whoever wants to own it stops it and reawakens it: {} && {}",
        command_line("stop", &row.task_id, ""),
        command_line("rotate", &row.task_id, "--as reawaken")
    );
    Err(Box::new(Refusal::new(Code::UnownedSendUsed, message).hint(hint)))
}

fn push_send(row: &mut Row, attempt: &AttemptId, waits: Waits, label: Option<&str>, call: &Call) -> SendId {
    row.sends_minted += 1;
    let send_id = SendId::mint(attempt, row.sends_minted);
    row.sends.push(Send {
        send_id: send_id.clone(),
        attempt_id: attempt.clone(),
        owned: row.attempt.owned,
        state: match waits {
            Waits::Pending => SendState::Pending,
            Waits::Enqueued => SendState::Enqueued,
        },
        label: label.map(str::to_owned),
        since: call.now.clone(),
        extra: Extra::new(),
    });
    row.attempt.unowned_send_used |= !row.attempt.owned;
    send_id
}

fn about(row: &Row, send_id: &SendId) -> Facts {
    let mut facts = facts! {
        "taskId": row.task_id, "attemptId": row.task_attempt_id, "sendId": send_id,
        "taskStatus": row.task_status.as_str(),
    };
    if row.late_reports > 0 {
        facts.insert("lateReports".to_owned(), row.late_reports.into());
    }
    facts
}

/// `admit TASK --attempt A [--queued]`: registers a send.
pub fn register(
    row: &Row,
    attempt: &AttemptId,
    waits: Waits,
    label: Option<&str>,
    credentials: &dyn Credentials,
    call: &Call,
) -> Judged {
    refuse_inadmissible(row, attempt, credentials)?;
    refuse_second_unowned(row)?;
    let before = row.state_word();
    let mut row = row.clone();
    let send_id = push_send(&mut row, attempt, waits, label, call);
    let (code, what) = match waits {
        Waits::Pending => (Code::Registered, "registered"),
        Waits::Enqueued => (Code::Enqueued, "registered and enqueued"),
    };
    row.record(call, Some(before), code, Some(send_id.as_str()), label);
    let message = format!("a send of task `{}` is {what}; it may not start a turn yet", row.task_id);
    let said = Said { code, message, facts: about(&row, &send_id) };
    Ok(Verdict::Change { row: Box::new(row), receipt: None, said })
}

/// Finds a send by id, or says why it can never be admitted.
fn find_send<'a>(row: &'a Row, send_id: &SendId) -> Result<&'a Send, Box<Refusal>> {
    if let Some(send) = row.sends.iter().find(|send| send.send_id == *send_id) {
        return Ok(send);
    }
    let minted = send_id.minted().filter(|minted| {
        (1..=row.sends_minted).contains(&minted.counter) && row.had_attempt(&minted.attempt)
    });
    let Some(minted) = minted else {
        let message = format!("send {send_id} was never registered for task `{}`", row.task_id);
        return Err(Box::new(Refusal::new(Code::NoSuchSend, message)));
    };
    row.refuse_retired()?;
    row.refuse_stale(&minted.attempt)?;
    row.refuse_closed()?;
    let message = format!("send {send_id} of task `{}` has ended; its id is refused for ever", row.task_id);
    Err(Box::new(Refusal::new(Code::TurnEnded, message).hint("register a new send")))
}

/// `admit TASK --send ID --queued`: the send goes into the agent's own queue.
pub fn enqueue(row: &Row, send_id: &SendId, credentials: &dyn Credentials, call: &Call) -> Judged {
    let send = find_send(row, send_id)?;
    if let Some(turn) = send.turn() {
        return Err(already_admitted(row, send, turn));
    }
    refuse_inadmissible(row, &send.attempt_id, credentials)?;
    let message =
        format!("send {send_id} of task `{}` is enqueued; it asks again before it starts", row.task_id);
    if send.state == SendState::Enqueued {
        return Ok(Verdict::Same(Said { code: Code::AlreadyEnqueued, message, facts: about(row, send_id) }));
    }
    let before = row.state_word();
    let mut row = row.clone();
    for send in row.sends.iter_mut().filter(|send| send.send_id == *send_id) {
        send.state = SendState::Enqueued;
    }
    row.record(call, Some(before), Code::Enqueued, Some(send_id.as_str()), None);
    let said = Said { code: Code::Enqueued, message, facts: about(&row, send_id) };
    Ok(Verdict::Change { row: Box::new(row), receipt: None, said })
}

/// The refusal of a send whose turn was allowed before: an authorising answer is given once.
fn already_admitted(row: &Row, send: &Send, turn: &TurnId) -> Box<Refusal> {
    let message =
        format!("send {} of task `{}` was admitted before, as turn {turn}", send.send_id, row.task_id);
    let mut refusal = Refusal::new(Code::AlreadyAdmitted, message).hint(format!(
        "who knows that it never started may settle it: {}",
        command_line("settle", &row.task_id, &format!("--turn {turn}"))
    ));
    refusal.facts = about(row, &send.send_id);
    refusal.facts.insert("turnId".to_owned(), turn.as_str().into());
    Box::new(refusal)
}

/// What goes through the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Through {
    /// A registered send.
    Send(SendId),
    /// A send that is registered and admitted in one commit.
    Attempt(AttemptId),
}

/// **The gate.** A turn becomes allowed here or nowhere: the row is the one read under its lock, and the
/// ancestors are held still while it is committed. A registered send that is refused is discharged.
pub fn gate(
    row: &Row,
    through: &Through,
    label: Option<&str>,
    stopped_ancestor: Option<&Name>,
    credentials: &dyn Credentials,
    call: &Call,
) -> Judged {
    let (attempt, registered) = match through {
        Through::Attempt(attempt) => (attempt.clone(), None),
        Through::Send(send_id) => {
            let send = find_send(row, send_id)?;
            if let Some(turn) = send.turn() {
                return Err(already_admitted(row, send, turn));
            }
            (send.attempt_id.clone(), Some(send_id))
        }
    };
    refuse_inadmissible(row, &attempt, credentials)?;
    if registered.is_none() {
        refuse_second_unowned(row)?;
    }
    if let Err(mut refusal) = refuse_at_gate(row, stopped_ancestor) {
        if let Some(send_id) = registered {
            refusal.leaves = Some(Box::new(without_send(row, send_id, refusal.code, call)));
        }
        return Err(refusal);
    }
    let before = row.state_word();
    let mut row = row.clone();
    let send_id = match registered {
        Some(send_id) => send_id.clone(),
        None => push_send(&mut row, &attempt, Waits::Pending, label, call),
    };
    row.turns_minted += 1;
    let turn_id = TurnId::mint(&attempt, row.turns_minted);
    for send in row.sends.iter_mut().filter(|send| send.send_id == send_id) {
        send.state = SendState::Admitted { turn_id: turn_id.clone(), admitted_at: call.now.clone() };
        if label.is_some() {
            send.label = label.map(str::to_owned);
        }
    }
    row.attempt.ever_admitted = true;
    if row.task_status == TaskStatus::Starting {
        row.task_status = TaskStatus::Running;
    }
    row.record(call, Some(before), Code::Admitted, Some(turn_id.as_str()), label);
    let mut facts = about(&row, &send_id);
    facts.insert("turnId".to_owned(), turn_id.as_str().into());
    let message = format!("turn {turn_id} of task `{}` may start, once", row.task_id);
    Ok(Verdict::Change {
        row: Box::new(row),
        receipt: None,
        said: Said { code: Code::Admitted, message, facts },
    })
}

/// The checks of the gate alone: launched, no stopped ancestor, no turn of an earlier attempt in flight.
fn refuse_at_gate(row: &Row, stopped_ancestor: Option<&Name>) -> Result<(), Box<Refusal>> {
    refuse_stopped_ancestor(row, stopped_ancestor)?;
    if !row.is_launched() {
        let message = format!("task `{}` is {}: it was not launched", row.task_id, row.task_status.as_str());
        let how = if row.task_status == TaskStatus::Reported { "reactivate" } else { "launch" };
        let hint = command_line("rotate", &row.task_id, &format!("--as {how}"));
        return Err(Box::new(Refusal::new(Code::NotLaunched, message).hint(hint)));
    }
    let earlier: Vec<_> = row.earlier_turns().map(turn_fact).collect();
    if earlier.is_empty() || row.attempt.unproven_override.is_some() {
        return Ok(());
    }
    let message =
        format!("{} turn(s) of an earlier attempt of task `{}` are in flight", earlier.len(), row.task_id);
    let refusal = Refusal::new(Code::AttemptLive, message)
        .hint("settle them with their own attempt's token; a person who knows that they are gone may rotate with --unproven")
        .fact("turns", earlier);
    Err(Box::new(refusal))
}

fn without_send(row: &Row, send_id: &SendId, why: Code, call: &Call) -> Row {
    let before = row.state_word();
    let mut row = row.clone();
    row.sends.retain(|send| send.send_id != *send_id);
    row.record(call, Some(before), why, Some(send_id.as_str()), Some("refused at the gate, discharged"));
    row
}
