//! Test 22: two runners that believe both that the step is theirs, over one claim.

use crate::actors::{PATIENT, Parked};
use crate::common::{Outcome, Task, TestRoot};
use crate::kit::{STEP, ask, asking, dead_child, one_replacement, rows};

/// The arguments that claim the old child for the step.
fn claiming<'a>(old: &'a Task<'_>) -> Vec<&'a str> {
    [&["claim-retire", &old.id, "--attempt", &old.attempt][..], &STEP].concat()
}

/// The arguments that publish the replacement.
fn publishing<'a>(old: &'a Task<'_>, nonce: &'a str) -> Vec<&'a str> {
    vec!["reserve", "--replaces", &old.id, "--nonce", nonce]
}

/// Asserts that the step has one child, `new`, and that the claim still is what it was.
#[track_caller]
fn one_child(old: &Task<'_>, new: &Outcome, claim: &serde_json::Value) {
    let root = old.root;
    assert_eq!(one_replacement(root, old), new.get("taskId"));
    assert_eq!(
        root.row(&old.id)["taskAttemptRetiredBy"],
        *claim,
        "no outcome of any runner touches the claim"
    );
    assert_eq!(ask(root, &[]).is(10, "reattach").get("taskId"), new.get("taskId"));
    assert_eq!(rows(root).len(), 2);
    let told = ["run.step.1 none -> started", "run.step.1 started -> failed", "run.step.2 failed -> started"];
    assert_eq!(root.step_events(), told);
}

/// The claim of runner A is durable, and A is held before it looks at the reports once more.
fn a_has_claimed<'a>(old: &Task<'a>) -> (Parked<'a>, serde_json::Value) {
    let a = old.root.park(&claiming(old), "claimed");
    (a, old.root.row(&old.id)["taskAttemptRetiredBy"].clone())
}

/// Test 22; hazard H1 and rules 65 and 72. B reuses the identical claim and publishes; then A goes on, or never does.
#[test]
fn test_22_a_runner_held_after_its_claim_publishes_nothing_once_another_has() {
    for by_resume in [false, true] {
        for a_dies in [false, true] {
            let root = TestRoot::new();
            let old = dead_child(&root);
            let (a, claim) = a_has_claimed(&old);
            let new = if by_resume {
                ask(&root, &[]).is(0, "reserved")
            } else {
                let nonce = old.claim(&[]).is(0, "claimed").get("nonce");
                root.json(&publishing(&old, &nonce)).is(0, "reserved")
            };
            if a_dies {
                a.kill();
            } else {
                // Its claim was granted, so it says so; but the nonce in its hand is worth nothing.
                let nonce = a.go().is(0, "claimed").get("nonce");
                let late = root.json(&publishing(&old, &nonce)).is(10, "claim-spent");
                assert_eq!(late.get("replacementTaskId"), new.get("taskId"));
            }
            let _ = old.claim(&[]).is(10, "claim-spent");
            one_child(&old, &new, &claim);
        }
    }
}

/// Test 22; hazard H1. Both have claimed, and the one that claimed first publishes first: its nonce is stale.
#[test]
fn test_22_of_two_claims_only_the_latest_nonce_publishes() {
    let root = TestRoot::new();
    let old = dead_child(&root);
    let (a, claim) = a_has_claimed(&old);
    let fresh = old.claim(&[]).is(0, "claimed").get("nonce");
    let stale = a.go().is(0, "claimed").get("nonce");
    let _ = root.json(&publishing(&old, &stale)).is(10, "stale-nonce");
    assert_eq!(rows(&root).len(), 1);
    let new = root.json(&publishing(&old, &fresh)).is(0, "reserved");
    let _ = root.json(&publishing(&old, &stale)).is(10, "claim-spent");
    one_child(&old, &new, &claim);
}

/// Test 22; rule 72. A is held in its claim and holds the lock; B waits for it, and claims and publishes then.
#[test]
fn test_22_of_two_claims_at_once_the_one_that_came_last_publishes() {
    for point in ["locked-task", "before-part", "before-rename", "after-rename", "after-commit-point"] {
        let root = TestRoot::new();
        let old = dead_child(&root);
        let a = root.park(&claiming(&old), point);
        let b = root.start(&[&claiming(&old)[..], &PATIENT].concat());
        let stale = a.go().is(0, "claimed").get("nonce");
        let claim = root.row(&old.id)["taskAttemptRetiredBy"].clone();
        let fresh = root.finish(b).is(0, "claimed").get("nonce");
        let _ = root.json(&publishing(&old, &stale)).is(10, "stale-nonce");
        let new = root.json(&publishing(&old, &fresh)).is(0, "reserved");
        one_child(&old, &new, &claim);
    }
}

/// Test 22. A has looked at the child and holds no lock yet, while B claims and publishes.
#[test]
fn test_22_a_claim_that_looked_before_another_one_was_spent_opens_nothing_again() {
    let root = TestRoot::new();
    let old = dead_child(&root);
    let a = root.park(&claiming(&old), "looked");
    let nonce = old.claim(&[]).is(0, "claimed").get("nonce");
    let claim = root.row(&old.id)["taskAttemptRetiredBy"].clone();
    let new = root.json(&publishing(&old, &nonce)).is(0, "reserved");
    let late = a.go().is(10, "claim-spent");
    assert_eq!(late.get("replacementTaskId"), new.get("taskId"));
    one_child(&old, &new, &claim);
}

/// A child whose claim is granted: the nonce, and the claim.
fn claimed(root: &TestRoot) -> (Task<'_>, String, serde_json::Value) {
    let old = dead_child(root);
    let nonce = old.claim(&[]).is(0, "claimed").get("nonce");
    let claim = root.row(&old.id)["taskAttemptRetiredBy"].clone();
    (old, nonce, claim)
}

/// Test 22; rule 10. A is held in its publication and holds the locks. B publishes by the same nonce, claims anew,
/// or resumes the step.
#[test]
fn test_22_a_publication_that_holds_its_locks_makes_the_one_child_whatever_the_other_tries() {
    for point in ["locked", "before-part", "before-rename", "after-rename", "after-commit-point"] {
        for (way, exit, codes) in [
            // The name that it makes up may be the one that A has taken.
            ("same nonce", 10, &["claim-spent", "task-exists"][..]),
            ("fresh claim", 10, &["claim-spent"]),
            ("resume", 10, &["reattach"]),
        ] {
            let root = TestRoot::new();
            let (old, nonce, claim) = claimed(&root);
            let a = root.park(&publishing(&old, &nonce), point);
            let b = match way {
                "same nonce" => publishing(&old, &nonce),
                "fresh claim" => claiming(&old),
                _ => asking(&[]),
            };
            let b = root.start(&[&b[..], &PATIENT].concat());
            let new = a.go().is(0, "reserved");
            let b = root.finish(b);
            assert!(b.exit == exit && codes.contains(&b.code().as_str()), "{point}, {way}: {b}");
            one_child(&old, &new, &claim);
        }
    }
}

/// Test 22; rule 10. A has looked at its claim and holds no lock yet, and B is through before it goes on.
#[test]
fn test_22_a_publication_that_looked_before_another_one_was_through_makes_no_second_child() {
    for way in ["same nonce", "fresh claim", "resume"] {
        let root = TestRoot::new();
        let (old, nonce, claim) = claimed(&root);
        let a = root.park(&publishing(&old, &nonce), "looked");
        let new = match way {
            "same nonce" => root.json(&publishing(&old, &nonce)),
            "fresh claim" => {
                let fresh = old.claim(&[]).is(0, "claimed").get("nonce");
                root.json(&publishing(&old, &fresh))
            }
            _ => ask(&root, &[]),
        };
        let new = new.is(0, "reserved");
        let late = a.go().is(10, "claim-spent");
        assert_eq!(late.get("replacementTaskId"), new.get("taskId"), "{way}");
        one_child(&old, &new, &claim);
    }
}

/// Test 22; rule 10. B has made the older nonce stale and has not published yet.
#[test]
fn test_22_a_publication_that_looked_before_a_fresh_claim_leaves_the_child_to_it() {
    let root = TestRoot::new();
    let (old, nonce, claim) = claimed(&root);
    let a = root.park(&publishing(&old, &nonce), "looked");
    let fresh = old.claim(&[]).is(0, "claimed").get("nonce");
    let _ = a.go().is(10, "stale-nonce");
    assert_eq!(rows(&root).len(), 1);
    let new = root.json(&publishing(&old, &fresh)).is(0, "reserved");
    one_child(&old, &new, &claim);
}
