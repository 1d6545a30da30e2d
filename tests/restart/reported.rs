//! Test 20: the report of a step's child is there and is not what the step wants, so the step is retried.

use crate::actors::{Owner, PATIENT};
use crate::common::{Task, TestRoot};
use crate::kit::{ask, ask_as, asking, child, fail, no_replacement, one_replacement, rows, unresolved};

/// A child that published its report, and whose turn is still open.
fn publishing<'a>(root: &'a TestRoot, owner: Option<&Owner>) -> (Task<'a>, String) {
    let task = child(root, owner);
    let turn = task.turn();
    let _ = task.report("not what was asked for").is(0, "report-accepted");
    (task, turn)
}

/// A child whose report the step refused; its turn has ended, and its attempt is open.
fn refused<'a>(root: &'a TestRoot, owner: Option<&Owner>) -> Task<'a> {
    let (task, turn) = publishing(root, owner);
    let _ = task.settle(&turn).is(0, "turn-settled");
    fail(root);
    task
}

/// Asserts that the old child was retired over its report, which is still there, by this authority.
#[track_caller]
fn retired_over_its_report(old: &Task<'_>, new: &str, authority: Option<&str>) {
    let root = old.root;
    assert_eq!(one_replacement(root, old), new);
    let claim = &root.row(&old.id)["taskAttemptRetiredBy"];
    assert_eq!((claim["mode"].as_str(), claim["authority"].as_str()), (Some("retire-reported"), authority));
    assert_eq!(root.run(&["report", &old.id, "--show"]).stdout, "not what was asked for");
    assert_eq!(ask(root, &[]).is(10, "reattach").get("taskId"), new);
    assert_eq!(rows(root).len(), 2);
}

/// Test 20, the same owner; rules 70 and 90.
#[test]
fn test_20_the_owner_retries_over_a_refused_report_with_its_token_and_without_a_receipt() {
    for by_resume in [true, false] {
        let root = TestRoot::new();
        let owner = Owner::start();
        let old = refused(&root, Some(&owner));
        let new = if by_resume {
            ask(&root, &["--prior-token", &old.token, "--owner-pid", &owner.pid()]).is(0, "reserved")
        } else {
            let grant = old.claim_as_owner(&["--mode", "retire-reported"]).is(0, "claimed");
            assert_eq!(grant.get("authority"), "token");
            root.json(&["reserve", "--replaces", &old.id, "--nonce", &grant.get("nonce")]).is(0, "reserved")
        };
        assert_eq!(old.receipts(), Vec::<String>::new());
        retired_over_its_report(&old, &new.get("taskId"), Some("token"));
        assert_eq!(old.seen("retiredBy.authority"), "token", "outside the guarantee, and shown as such");
    }
}

/// Test 20, across owners; rules 70, 86 and 93.
#[test]
fn test_20_another_owner_never_retries_over_a_report_that_has_no_receipt() {
    for known in [true, false] {
        let root = TestRoot::new();
        let owner = Owner::start();
        let (old, turn) = publishing(&root, Some(&owner).filter(|_| known));
        fail(&root);
        // The publisher is held right before it settles its turn.
        let settle = ["settle", &old.id, "--turn", &turn, "--token", &old.token];
        let held = root.park(&settle, "looked");
        let _ = unresolved(&root, 11, "unresolved", Some("attempt-live"));
        let _ = held.go().is(0, "turn-settled");
        let _ = unresolved(&root, 11, "unresolved", Some("no-settlement-evidence"));
        let _ = old.claim(&["--mode", "retire-reported"]).is(11, "no-settlement-evidence");
        let wrong = root.reserve_unknown("other").token;
        let _ = ask(&root, &["--prior-token", &wrong]).is(11, "unresolved");
        no_replacement(&root, &old, "failed");
        assert_eq!(old.receipts(), Vec::<String>::new(), "the end of a turn leaves none");
    }
}

/// Test 20; decision 7. The Stop that meets the publishing turn is what makes the receipt.
#[test]
fn test_20_a_child_stopped_while_it_published_is_retired_by_another_owner_and_replaced_once() {
    for report_first in [true, false] {
        let root = TestRoot::new();
        let mut owner = Owner::start();
        let old = child(&root, Some(&owner));
        let turn = old.turn();
        let publish = || old.report("not what was asked for").is(0, "report-accepted");
        if report_first {
            let _ = publish();
        }
        let _ = old.stop().is(0, "stopping");
        if !report_first {
            let _ = publish();
        }
        let _ = old.settle(&turn).is(0, "turn-settled");
        fail(&root);
        owner.kill();
        assert_eq!(old.stands(), "reported");
        assert_eq!(old.receipts(), [old.attempt.as_str()]);
        let next = Owner::start();
        let new = ask_as(&root, &next).is(0, "reserved").get("taskId");
        retired_over_its_report(&old, &new, None);
    }
}

/// Reported, refused and settled with a receipt; its owner was killed.
fn settled(root: &TestRoot) -> Task<'_> {
    let mut owner = Owner::start();
    let task = refused(root, Some(&owner));
    let _ = task.close().is(0, "settled");
    owner.kill();
    task
}

/// Test 20; rules 9, 22 and 71. The child is asked to go on while its step is retried: both orders, held.
#[test]
fn test_20_a_reported_child_goes_on_or_is_retired_and_never_both() {
    for (point, committed) in [("locked-task", false), ("before-rename", false), ("after-rename", true)] {
        for dies in [false, true] {
            let root = TestRoot::new();
            let old = settled(&root);
            let (runner, mut waker) = (Owner::start(), Owner::start());
            let goes_on = ["rotate", &old.id, "--as", "reactivate", "--owner-pid", &waker.pid()];
            let held = root.park(&goes_on, point);
            let retry = root.start(&[&asking(&["--owner-pid", &runner.pid()])[..], &PATIENT].concat());
            if dies {
                held.kill();
            } else {
                let _ = held.go().is(0, "rotated");
            }
            let retried = root.finish(retry);
            if dies && !committed {
                let new = retried.is(0, "reserved").get("taskId");
                retired_over_its_report(&old, &new, None);
                let _ = root.json(&goes_on).is(10, "retired");
            } else {
                assert_eq!(retried.is(11, "unresolved").get("reasonCode"), "attempt-live");
                waker.kill();
                let _ = unresolved(&root, 11, "unresolved", Some("report-not-bound"));
                no_replacement(&root, &old, "failed");
            }
        }
    }
    for point in ["locked-step", "before-part", "before-rename", "after-rename", "after-commit-point"] {
        let root = TestRoot::new();
        let old = settled(&root);
        let (runner, waker) = (Owner::start(), Owner::start());
        let held = root.park(&asking(&["--owner-pid", &runner.pid()]), point);
        let goes_on = ["rotate", &old.id, "--as", "reactivate", "--owner-pid", &waker.pid()];
        let goes_on = root.start(&[&goes_on[..], &PATIENT].concat());
        let new = held.go().is(0, "reserved").get("taskId");
        let _ = root.finish(goes_on).is(10, "retired");
        retired_over_its_report(&old, &new, None);
    }
}
