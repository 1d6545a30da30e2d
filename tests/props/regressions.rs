//! What the random stories have found, told by hand.

use lychgate::protocol::ids::SendId;
use lychgate::protocol::recovery::{Recovery, RecoverySight, recover};
use lychgate::protocol::requests::{REQUESTS_KEPT, RequestRecord, Seen};
use lychgate::protocol::row::{Extra, Row};
use lychgate::protocol::verdict::OwnerLife;

use crate::samples::{attempt, call, running, with_turn};

fn pass(row: &Row, life: OwnerLife, fresh: u64) -> Recovery {
    let sight = RecoverySight {
        owner_life: life,
        dead_debts: Vec::new(),
        named_unproven: true,
        by: "somebody".to_owned(),
        fresh: attempt(fresh),
    };
    recover(row, &sight, &call(1))
}

#[test]
fn a_second_pass_with_unproven_leaves_what_the_first_one_re_drove() {
    let Recovery::Change { row, did: "re-driven", .. } = pass(&running(), OwnerLife::Dead, 2) else {
        panic!("the first pass re-drives it")
    };
    assert_eq!(row.task_attempt_id, Some(attempt(2)));
    let again = pass(&row, OwnerLife::None, 3);
    assert!(matches!(again, Recovery::Left { .. }), "{again:?}");
}

pub fn record(n: u64, send_id: Option<SendId>) -> RequestRecord {
    RequestRecord {
        request_id: call(n).request_id,
        command: "test".to_owned(),
        digest: "wish".to_owned(),
        answer: Extra::new(),
        send_id,
        authorised: false,
        extra: Extra::new(),
    }
}

#[test]
fn the_latest_calls_are_remembered_beside_any_number_of_turns_in_flight() {
    let mut row = running();
    let n_turns = REQUESTS_KEPT as u64 + 8;
    for n in 1..=n_turns {
        row = with_turn(&row);
        let send = row.sends.last().map(|send| send.send_id.clone());
        row.remember(record(n, send));
    }
    let n_last = n_turns + REQUESTS_KEPT as u64;
    for n in n_turns + 1..=n_last {
        row.remember(record(n, None));
    }
    for n in 1..=n_last {
        assert_ne!(row.requests.seen(&call(n).request_id, "wish"), Seen::Never, "call {n}");
    }
    row.remember(record(n_last + 1, None));
    assert_eq!(row.requests.seen(&call(n_turns + 1).request_id, "wish"), Seen::Never, "the oldest idle one");
}
