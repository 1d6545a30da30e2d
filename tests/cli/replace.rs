//! `reserve --replaces`: a claim is spent once, by its replacement.

use crate::common::{Outcome, Task, TestRoot};

/// A task of the step, settled without a report, so that it can be retired.
fn ended(root: &TestRoot) -> Task<'_> {
    let task = root.reserve_with(
        "old",
        &["--run", "run", "--step", "step", "--input-hash", "hash", "--ancestor", "org"],
    );
    let _ = root.json(&["stop", "old"]).is(0, "stopped");
    task
}

fn replace(root: &TestRoot, nonce: &str, more: &[&str]) -> Outcome {
    root.json(&[&["reserve", "--replaces", "old", "--nonce", nonce], more].concat())
}

#[test]
fn the_replacement_takes_its_place_from_the_claim() {
    let root = TestRoot::new();
    let old = ended(&root);
    let nonce = old.claim(&[]).is(0, "claimed").get("nonce");
    let new = replace(&root, &nonce, &["--owner", "next"]).is(0, "reserved");
    assert_eq!(new.get("taskId"), "run.step.1");
    assert_eq!((new.get("replaces"), new.get("replacesAttemptId")), ("old".to_owned(), old.attempt.clone()));
    let row = root.row("run.step.1");
    assert_eq!(row["workflowTask"], root.row("old")["workflowTask"]);
    assert_eq!((&row["parentWorkspaceId"], &row["ancestors"]), (&"ws".into(), &serde_json::json!(["org"])));
    assert_eq!(row["replaces"]["attemptId"], old.attempt);
    assert_ne!(row["taskAttemptId"], old.attempt);
    assert_eq!(root.row("old")["retirement"]["replacementTaskId"], "run.step.1");
    assert_eq!(root.row("old")["taskAttemptRetiredBy"]["attemptId"], old.attempt, "the claim itself stands");
    let _ = root.json(&["rotate", "run.step.1", "--as", "launch"]).is(0, "launched");
}

#[test]
fn a_claim_is_spent_once() {
    let root = TestRoot::new();
    let old = ended(&root);
    let nonce = old.claim(&[]).is(0, "claimed").get("nonce");
    let _ = replace(&root, &nonce, &["new", "--parent", "ws"]).is(0, "reserved");
    let before = root.bytes();
    for more in [&["other"][..], &["new"], &[]] {
        let refused = replace(&root, &nonce, more).is(10, "claim-spent");
        assert_eq!(refused.get("replacementTaskId"), "new");
    }
    let _ = old.claim(&[]).is(10, "claim-spent");
    assert_eq!(root.bytes(), before, "not even a folder for the second one");
}

#[test]
fn only_the_latest_nonce_spends_a_claim() {
    let root = TestRoot::new();
    let old = ended(&root);
    let first = old.claim(&[]).is(0, "claimed").get("nonce");
    let second = old.claim(&[]).is(0, "claimed").get("nonce");
    assert_ne!(first, second);
    let before = root.bytes();
    for nonce in [first.as_str(), "non_00000000000000000000000000000000", "nonsense", ""] {
        let _ = replace(&root, nonce, &["new"]).is(10, "stale-nonce");
    }
    assert_eq!(root.bytes(), before);
    let _ = replace(&root, &second, &["new"]).is(0, "reserved");
}

/// Rule 91.
#[test]
fn a_task_without_a_claim_is_not_replaced() {
    let root = TestRoot::new();
    let _old = ended(&root);
    let before = root.bytes();
    for more in [&["new"][..], &[]] {
        let _ = replace(&root, "non_00000000000000000000000000000000", more).is(10, "not-claimed");
    }
    let missing = root.json(&["reserve", "new", "--replaces", "nobody", "--nonce", "n"]);
    let _ = missing.is(10, "no-task-record");
    assert_eq!(root.bytes(), before);
}

#[test]
fn what_the_claim_knows_may_be_left_out_but_not_contradicted() {
    let root = TestRoot::new();
    let old = ended(&root);
    let nonce = old.claim(&[]).is(0, "claimed").get("nonce");
    let before = root.bytes();
    let _ = replace(&root, &nonce, &["new", "--parent", "elsewhere"]).is(64, "usage");
    let _ = replace(&root, &nonce, &["new", "--ancestor", "elsewhere"]).is(64, "usage");
    let step = ["new", "--run", "run", "--step", "step", "--input-hash", "hash"];
    let _ = replace(&root, &nonce, &step).is(64, "usage");
    let _ = replace(&root, &nonce, &["old"]).is(10, "task-exists");
    assert_eq!(root.bytes(), before);
    let same = ["new", "--parent", "ws", "--ancestor", "org"];
    let _ = replace(&root, &nonce, &same).is(0, "reserved");
}

#[test]
fn a_replacement_waits_for_a_stopped_parent_like_any_reservation() {
    let root = TestRoot::new();
    let parent = root.reserve("p").launched();
    let mut args = vec!["reserve", "old", "--parent", "p", "--run", "run", "--step", "step"];
    args.extend(["--input-hash", "hash"]);
    let attempt = root.json(&args).is(0, "reserved").get("attemptId");
    let _ = root.json(&["stop", &parent.id, "--tree"]).is(0, "stopped");
    let mut claim = vec!["claim-retire", "old", "--attempt", &attempt, "--run", "run", "--step", "step"];
    claim.extend(["--input-hash", "hash", "--parent", "p"]);
    let nonce = root.json(&claim).is(0, "claimed").get("nonce");
    let before = root.bytes();
    let _ = replace(&root, &nonce, &["new"]).is(10, "ancestor-stopped");
    assert_eq!(root.bytes(), before, "the claim is not spent by a refusal");
    let _ = root.json(&["rotate", "p", "--as", "reawaken"]).is(0, "rotated");
    let _ = replace(&root, &nonce, &["new"]).is(0, "reserved");
}

#[test]
fn a_repeated_replacement_is_the_same_one() {
    let root = TestRoot::new();
    let old = ended(&root);
    let nonce = old.claim(&[]).is(0, "claimed").get("nonce");
    let first = replace(&root, &nonce, &["--request-id", "r1"]).is(0, "reserved");
    let before = root.bytes();
    assert_eq!(replace(&root, &nonce, &["--request-id", "r1"]).stdout, first.stdout);
    let _ = replace(&root, &nonce, &["other", "--request-id", "r1"]).is(10, "request-id-reused");
    assert_eq!(root.bytes(), before);
}
