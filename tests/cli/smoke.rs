//! The shortest whole story: reserved, launched, at work, reported, settled.

use crate::common::TestRoot;

#[test]
fn a_task_goes_from_its_reservation_to_its_receipt() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let turn = task.turn();
    assert_eq!(task.outcome(), "live");
    let _ = task.report("done").is(0, "report-accepted");
    let settled = root
        .json(&["settle", "t1", "--turn", &turn, "--close", "--token", &task.token])
        .is(0, "turn-settled");
    assert_eq!(settled.get("receipt"), "execution-settled");
    assert_eq!(task.outcome(), "reported");
}
