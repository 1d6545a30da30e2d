//! Tests 13, 15, 16, 18, 19 and 21 as the resume of a step sees them: the same stories are told about single tasks
//! and claims elsewhere; here the step must get no second child, and no call may change a byte for it.

use serde_json::json;

use crate::actors::{AT_ONCE, Owner, PATIENT};
use crate::common::{Task, TestRoot};
use crate::kit::{
    STEP, ask, asking, books, checkpoint, child, dead_child, fail, no_replacement, one_replacement, owned,
    rows, unresolved,
};

/// Test 13; rules 4 and 25. The receipt is for the attempt that ran before the restart path took the row.
#[test]
fn test_13_a_step_whose_child_was_driven_again_over_a_receipt_stays_unresolved() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let old = dead_child(&root);
    let woken =
        root.json(&["rotate", &old.id, "--as", "reawaken", "--owner-pid", &owner.pid()]).is(0, "rotated");
    let woken = owned(&root, &woken);
    let turn = woken.turn();
    owner.kill();
    let pass = root.json(&["recover", &old.id, "--unproven"]).is(0, "recovered");
    assert_eq!(pass.get("recovered.0.did"), "re-driven");
    let _ = unresolved(&root, 11, "unresolved", Some("owner-unknown"));
    let _ = woken.settle(&turn).is(0, "turn-settled");
    let _ = unresolved(&root, 11, "unresolved", Some("unowned-no-receipt"));
    let _ = old.stop().is(0, "stopped");
    let _ = unresolved(&root, 11, "unresolved", Some("lineage-unproven"));
    assert_eq!(
        old.receipts(),
        [old.attempt.as_str()],
        "the old receipt is still there, and proves nothing now"
    );
    no_replacement(&root, &old, "started");
}

/// Test 15. The publisher is held right before its publication, and the resume waits for it or is killed.
#[test]
fn test_15_a_step_whose_child_is_about_to_publish_adopts_the_report() {
    for known in [true, false] {
        let root = TestRoot::new();
        let owner = Owner::start();
        let task = child(&root, Some(&owner).filter(|_| known));
        let turn = task.turn();
        std::fs::write(root.file("report"), "done").unwrap();
        let report =
            ["report", &task.id, "--attempt", &task.attempt, "--token", &task.token, "--file", "report"];
        let publishing = root.park(&report, "before-rename");
        let _ = ask(&root, &AT_ONCE).is(75, "busy");
        let resume = root.start(&asking(&PATIENT));
        let _ = publishing.go().is(0, "report-accepted");
        let adopt = root.finish(resume).is(10, "adopt");
        assert!(adopt.get("reportPath").ends_with(&format!("{}.json", task.attempt)), "{adopt}");
        let _ = task.settle(&turn).is(0, "turn-settled");
        let _ = unresolved(&root, 10, "adopt", None);
        let _ = root.json(&[&["step", "complete"], &STEP[..]].concat()).is(0, "step-completed");
        let _ = unresolved(&root, 10, "completed", None);
        assert_eq!((task.receipts(), rows(&root).len()), (Vec::<String>::new(), 1));
    }
}

/// Test 16. The last settle is held past every deadline: neither a resume nor a look takes it for done.
#[test]
fn test_16_a_step_whose_childs_settlement_is_held_is_pending_and_then_replaced_once() {
    let root = TestRoot::new();
    let owner = Owner::start();
    let task = child(&root, Some(&owner));
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    let _ = unresolved(&root, 12, "cleanup-pending", None);
    let settle = ["settle", &task.id, "--turn", &turn, "--token", &task.token];
    let held = root.park(&settle, "before-rename");
    let before = books(&root);
    let _ = ask(&root, &AT_ONCE).is(75, "busy");
    let _ = ask(&root, &["--lock-wait", "1ms"]).is(75, "busy");
    assert_eq!(task.stands(), "cleanup-pending");
    assert!(before == books(&root));
    let resume = root.start(&asking(&PATIENT));
    let _ = held.go().is(0, "turn-settled");
    let new = root.finish(resume).is(0, "reserved").get("taskId");
    assert_eq!(one_replacement(&root, &task), new);
    let _ = root.json(&settle).is(0, "already-settled");
    assert_eq!(task.receipts(), [task.attempt.as_str()]);
}

/// Test 18; rule 55. The owner said that it failed and was killed; the stream goes on elsewhere, with the token.
#[test]
fn test_18_a_step_whose_child_failed_with_its_stream_open_waits_for_the_streams_end() {
    for with_report in [true, false] {
        let root = TestRoot::new();
        let mut owner = Owner::start();
        let task = child(&root, Some(&owner));
        let turn = task.turn();
        let _ = root.json(&["stop", &task.id, "--failure", "the model is gone"]).is(0, "stopping");
        let _ = unresolved(&root, 12, "cleanup-pending", None);
        owner.kill();
        let _ = unresolved(&root, 11, "unresolved", Some("owner-dead-unsettled"));
        if with_report {
            let _ = task.report("done after all").is(0, "report-accepted");
            let _ = unresolved(&root, 10, "adopt", None);
            let _ = task.settle(&turn).is(0, "turn-settled");
            let _ = unresolved(&root, 10, "adopt", None);
            no_replacement(&root, &task, "started");
        } else {
            let _ = task.settle(&turn).is(0, "turn-settled");
            let new = ask(&root, &[]).is(0, "reserved").get("taskId");
            assert_eq!(one_replacement(&root, &task), new);
        }
    }
}

/// A child of an owner that lives on, re-driven by somebody else behind that owner's back.
fn redriven(root: &TestRoot) -> (Task<'_>, String) {
    let task = child(root, None);
    let turn = task.turn();
    let _ = root.json(&["rotate", &task.id, "--as", "startup", "--unproven"]).is(0, "rotated");
    (task, turn)
}

/// Test 19a; rules 11, 12 and 81.
#[test]
fn test_19a_a_step_whose_child_was_driven_again_behind_its_owner_stays_unresolved_for_ever() {
    for failed in [false, true] {
        let root = TestRoot::new();
        let (old, turn) = redriven(&root);
        if failed {
            fail(&root);
        }
        let status = if failed { "failed" } else { "started" };
        let _ = unresolved(&root, 11, "unresolved", Some("owner-unknown"));
        let _ = old.settle(&turn).is(0, "turn-settled");
        let _ = old.close().is(10, "not-owner");
        let _ = unresolved(&root, 11, "unresolved", Some("unowned-no-receipt"));
        let _ = old.stop().is(0, "stopped");
        for prior in [None, Some(&old.token)] {
            let _ = unresolved(&root, 11, "unresolved", Some("lineage-unproven"));
            if let Some(token) = prior {
                let told = ask(&root, &["--prior-token", token]).is(11, "unresolved");
                assert_eq!(
                    told.get("reasonCode"),
                    "lineage-unproven",
                    "the owner of before is a stranger now"
                );
            }
        }
        no_replacement(&root, &old, status);
        assert_eq!(old.receipts(), Vec::<String>::new());
    }
}

/// Test 19c, the reported successor; rules 70 and 90. Only the owner that woke the marked child may retire it.
#[test]
fn test_19c_a_marked_child_that_reported_is_replaced_by_its_own_owner_and_by_nobody_else() {
    let root = TestRoot::new();
    let (old, turn) = redriven(&root);
    let _ = old.stop().is(0, "stopping");
    let _ = old.settle(&turn).is(0, "turn-settled");
    let mut owner = Owner::start();
    let woken =
        root.json(&["rotate", &old.id, "--as", "reawaken", "--owner-pid", &owner.pid()]).is(0, "rotated");
    assert_eq!(woken.get("receiptEligible"), "false");
    let woken = owned(&root, &woken);
    let turn = woken.turn();
    let _ = woken.report("done").is(0, "report-accepted");
    let _ = woken.settle(&turn).is(0, "turn-settled");
    let _ = woken.close().is(0, "settled");
    fail(&root);
    owner.kill();
    let _ = unresolved(&root, 11, "unresolved", Some("lineage-unproven"));
    no_replacement(&root, &old, "failed");
    let new = ask(&root, &["--prior-token", &woken.token]).is(0, "reserved").get("taskId");
    assert_eq!(one_replacement(&root, &woken), new);
    assert_eq!(woken.seen("retiredBy.authority"), "token", "outside the guarantee, and shown as such");
    assert_eq!(woken.receipts(), Vec::<String>::new());
}

/// Test 21; rule 72. The report appears behind the claim of another runner; resuming the step finds it too.
#[test]
fn test_21_a_report_found_behind_a_claim_stops_the_resume_and_the_claim_stands() {
    let root = TestRoot::new();
    let old = dead_child(&root);
    let claim = [&["claim-retire", &old.id, "--attempt", &old.attempt][..], &STEP].concat();
    let claiming = root.park(&claim, "claimed");
    let folder = root.path().join("sessions/ws/subagent-reports").join(&old.id);
    std::fs::create_dir_all(&folder).unwrap();
    let report = folder.join(format!("{}.json", old.attempt));
    std::fs::write(&report, b"{\"a\":\"report\"}").unwrap();
    let _ = claiming.go().is(11, "report-after-settlement");
    let retired_by = root.row(&old.id)["taskAttemptRetiredBy"].clone();
    let told = unresolved(&root, 11, "report-after-settlement", None);
    assert!(told.get("message").starts_with("ALARM"), "{told}");
    assert_eq!((root.row(&old.id)["taskAttemptRetiredBy"].clone(), rows(&root).len()), (retired_by, 1));
    assert_eq!(root.row(&old.id)["retirement"].get("replacementTaskId"), None);
    assert_eq!(checkpoint(&root), ("failed".into(), old.id.clone()));
    let _ = root.json(&["rotate", &old.id, "--as", "reawaken"]).is(10, "retired");
    assert_eq!(std::fs::read(&report).unwrap(), b"{\"a\":\"report\"}", "the report is untouched");
    // A person has looked at it and taken it away: the claim is still there, and is spent once.
    std::fs::remove_file(&report).unwrap();
    let new = ask(&root, &[]).is(0, "reserved");
    assert_eq!(json!(one_replacement(&root, &old)), new.json()["taskId"]);
}
