//! Rows in every state, made by the rules themselves, and one that no call makes.

use lychgate::protocol::admission::{self, Through};
use lychgate::protocol::classify::ReportEvidence;
use lychgate::protocol::codes::Code;
use lychgate::protocol::history::History;
use lychgate::protocol::ids::{AttemptId, CleanupId, Name, Nonce, RequestId, SendId, Timestamp, TurnId};
use lychgate::protocol::lineage::ReceiptEvidence;
use lychgate::protocol::report::{Publication, Publishing, publish};
use lychgate::protocol::requests::RequestLog;
use lychgate::protocol::reservation::{self, Reserve, Spending};
use lychgate::protocol::retirement::{self, ClaimEvidence, ClaimRequest};
use lychgate::protocol::rotation::{self, Around, Rotate, RotateAs};
use lychgate::protocol::row::{
    Attempt, ClaimMode, Cleanup, Extra, Origin, Owner, Row, Send, SendState, Superseded, TaskStatus,
    WorkflowTask,
};
use lychgate::protocol::stop::{self, Stop};
use lychgate::protocol::verdict::{Call, Judged, OwnerLife, ReceiptDue, Role, Verdict};

use crate::world::{Shown, name};

/// A row from a time before attempts had ids, in one of the states such a row can be in.
pub fn legacy(task: Name, state: u8, call: &Call) -> Row {
    let states = [TaskStatus::Interrupted, TaskStatus::Queued, TaskStatus::Starting, TaskStatus::Running];
    let mut row = Row {
        task_id: task,
        parent_workspace_id: name("ws"),
        ancestors: Vec::new(),
        workflow_task: Some(WorkflowTask {
            run_id: name("run"),
            step_id: name("step"),
            input_hash: name("hash"),
            extra: Extra::new(),
        }),
        task_status: states[usize::from(state) % states.len()],
        task_attempt_id: None,
        past_attempts: Vec::new(),
        task_attempt_unproven: false,
        task_attempt_retired_by: None,
        retirement: None,
        replaces: None,
        attempt: Attempt {
            origin: Origin::Import,
            owned: false,
            receipt_eligible: false,
            reason: "it comes from a time before attempts had ids".to_owned(),
            since: call.now.clone(),
            owner: Owner::default(),
            ever_admitted: false,
            unowned_send_used: false,
            unproven_override: None,
            extra: Extra::new(),
        },
        settlement: None,
        stop_epoch: 0,
        paid_cleanups: Vec::new(),
        sends: Vec::new(),
        sends_minted: 0,
        turns_minted: 0,
        superseded: Vec::new(),
        report_attempt_id: None,
        reports: Vec::new(),
        late_reports: 0,
        created_at: call.now.clone(),
        updated_at: call.now.clone(),
        requests: RequestLog::default(),
        history: History::default(),
        extra: Extra::new(),
    };
    row.record(call, None, Code::Ok, None, None);
    row
}

/// The token of the current attempt, as its owner shows it.
pub fn own_key(row: &Row) -> Shown {
    Shown(row.task_attempt_id.clone().map(|attempt| (attempt, Role::Owner)))
}

pub fn attempt(n: u64) -> AttemptId {
    AttemptId::parse(&format!("att_{n:016x}")).unwrap()
}

pub fn nonce(n: u64) -> Nonce {
    Nonce::parse(&format!("non_{n:032x}")).unwrap()
}

/// A call of that number.
pub fn call(n: u64) -> Call {
    Call {
        command: "test",
        request_id: RequestId::parse(&format!("req_{n:016x}")).unwrap(),
        now: Timestamp::parse("2026-01-01T00:00:00.000Z").unwrap(),
    }
}

/// A verdict that must be a change.
pub fn changed(judged: Judged) -> (Row, Option<ReceiptDue>) {
    match judged {
        Ok(Verdict::Change { row, receipt, .. }) => (*row, receipt.map(|due| *due)),
        other => panic!("{other:?}"),
    }
}

/// A reserved task: under `ws`, for a step of a run.
pub fn queued() -> Row {
    let request = Reserve {
        task: name("t"),
        parent: name("ws"),
        ancestors: vec![name("top")],
        workflow_task: Some(WorkflowTask {
            run_id: name("run"),
            step_id: name("step"),
            input_hash: name("hash"),
            extra: Extra::new(),
        }),
        owner: Owner::default(),
        fresh: attempt(1),
    };
    *reservation::reserve(None, &request, &call(1)).unwrap().row
}

/// Published anew.
pub fn rotated(row: &Row, kind: RotateAs, fresh: u64, life: OwnerLife, unproven: bool) -> Row {
    let request = Rotate {
        kind,
        expect: None,
        owner: None,
        by: "somebody".to_owned(),
        unproven,
        fresh: attempt(fresh),
    };
    let around = Around {
        credentials: &own_key(row),
        owner_life: life,
        receipt: ReceiptEvidence::NotFound,
        stopped_ancestor: None,
    };
    changed(rotation::rotate(row, &request, &around, &call(2))).0
}

/// Launched by its own owner.
pub fn starting() -> Row {
    rotated(&queued(), RotateAs::Launch, 2, OwnerLife::Alive, false)
}

/// The row with one more turn in flight.
pub fn with_turn(row: &Row) -> Row {
    let through = Through::Attempt(row.task_attempt_id.clone().unwrap());
    changed(admission::gate(row, &through, None, None, &own_key(row), &call(3))).0
}

/// At work: launched, with one turn in flight.
pub fn running() -> Row {
    with_turn(&starting())
}

/// Stopped.
pub fn stopped(row: &Row) -> (Row, Option<ReceiptDue>) {
    changed(stop::stop(row, &Stop::default(), &call(4)))
}

/// Settled without a report, and the receipt that went with it.
pub fn settled() -> (Row, ReceiptDue) {
    let (row, receipt) = stopped(&starting());
    (row, receipt.unwrap())
}

/// With a report.
pub fn reported() -> Row {
    let row = running();
    let publication = Publication {
        attempt: attempt(1),
        text_sha256: "0".repeat(64),
        text_bytes: 1,
        file_sha256: "0".repeat(64),
        title: None,
        kept_late: false,
    };
    match publish(&row, &publication, &own_key(&row), &call(5)) {
        Publishing::Accept { row, .. } => *row,
        other => panic!("{other:?}"),
    }
}

/// Retired, with a nonce that was not spent.
pub fn claimed() -> Row {
    let (row, _) = settled();
    let request = ClaimRequest {
        attempt: attempt(1),
        run: name("run"),
        step: name("step"),
        input_hash: name("hash"),
        parent: name("ws"),
        mode: ClaimMode::NoReport,
        fresh: nonce(1),
    };
    let evidence = ClaimEvidence {
        credentials: &Shown(None),
        owner_life: OwnerLife::Alive,
        receipt: ReceiptEvidence::Found,
        reports: ReportEvidence::AsTheRowSays,
    };
    changed(retirement::claim(&row, &request, &evidence, &call(6))).0
}

/// The retired task with its claim spent, and its replacement `r`.
pub fn replaced() -> (Row, Row) {
    let old = claimed();
    let request = Reserve {
        task: name("r"),
        parent: old.parent_workspace_id.clone(),
        ancestors: old.ancestors.clone(),
        workflow_task: old.workflow_task.clone(),
        owner: Owner::default(),
        fresh: attempt(9),
    };
    let spending = Spending { nonce: Some(&nonce(1)), reports: &ReportEvidence::AsTheRowSays };
    let done = reservation::replace(None, &old, &spending, &request, &call(7)).unwrap();
    (*done.old.unwrap(), *done.row)
}

/// Re-driven beside a turn of its earlier attempt, on a person's word: unowned, marked, overridden.
pub fn redriven() -> Row {
    rotated(&running(), RotateAs::Startup, 3, OwnerLife::Dead, true)
}

/// The row after one more event, as every change leaves one.
pub fn noted(row: &Row) -> Row {
    let mut row = row.clone();
    row.record(&call(8), None, Code::Ok, None, None);
    row
}

/// A send that was registered as the `n`-th of its task.
pub fn a_send(n: u64, of: u64) -> Send {
    Send {
        send_id: SendId::mint(&attempt(of), n),
        attempt_id: attempt(of),
        owned: true,
        state: SendState::Pending,
        label: None,
        since: call(1).now,
        extra: Extra::new(),
    }
}

/// The same with a turn in flight.
pub fn a_turn(n: u64, of: u64) -> Send {
    let turn_id = TurnId::mint(&attempt(of), n);
    Send { state: SendState::Admitted { turn_id, admitted_at: call(1).now }, ..a_send(n, of) }
}

pub fn debt(n: u64) -> Cleanup {
    Cleanup {
        cleanup_id: CleanupId::parse(&format!("cln_{n:032x}")).unwrap(),
        name: "debt".to_owned(),
        process: None,
        since: call(1).now,
        extra: Extra::new(),
    }
}

pub fn superseded(n: u64) -> Superseded {
    Superseded {
        attempt_id: attempt(n),
        owned: true,
        owner: Owner::default(),
        at: call(1).now,
        extra: Extra::new(),
    }
}
