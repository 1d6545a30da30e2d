//! What the random stories have found, told by hand.

use lychgate::protocol::ids::SendId;
use lychgate::protocol::recovery::{Recovery, RecoverySight, recover};
use lychgate::protocol::requests::RequestRecord;
use lychgate::protocol::row::{Extra, Row};
use lychgate::protocol::verdict::OwnerLife;

use crate::samples::{attempt, call, running};

fn pass(row: &Row, life: OwnerLife, fresh: u64) -> Recovery {
    let sight = RecoverySight {
        owner_life: life,
        dead_debts: Vec::new(),
        named_unproven: true,
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
    }
}
