//! What is left after everybody who knew of it is gone: A01, A03, A05, A25, A29 and A31.

use serde_json::Value;

use crate::actors::Owner;
use crate::common::{Task, TestRoot};

#[test]
fn a01_a_fresh_process_finds_settles_and_replaces_what_a_vanished_parent_started() {
    let root = TestRoot::new();
    let mut parent = Owner::start();
    let task = root.reserve_step_for("t", &parent).launched();
    let _ = task.settle(&task.turn()).is(0, "turn-settled");
    assert_eq!(task.stands(), "live");
    parent.kill();
    assert_eq!(task.stands(), "indeterminate/owner-dead-unsettled");
    let done = root.json(&["recover"]).is(0, "recovered");
    assert_eq!(done.get("recovered.0.receipt"), "idle-settled");
    assert_eq!(task.stands(), "terminal-no-report");
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    let new = root.json(&["reserve", "t2", "--replaces", "t", "--nonce", &nonce]).is(0, "reserved");
    assert_ne!(new.get("attemptId"), task.attempt);
    assert_eq!(root.json(&["inspect", "t2"]).get("outcome"), "live");
    // The pass again finds nothing more to do.
    let before = root.bytes();
    assert_eq!(root.json(&["recover"]).is(0, "recovered").get("recovered"), "[]");
    assert!(before == root.bytes());
}

/// Brings a task into one of the open states. Gives the turn that is in flight, if there is one.
type State = fn(&Task<'_>) -> Option<String>;

const STATES: [(&str, State); 6] = [
    ("queued", |_| None),
    ("starting", |task| {
        drop(task.launch());
        None
    }),
    ("sending", |task| {
        drop(task.launch());
        drop(task.send());
        None
    }),
    ("running", |task| {
        drop(task.launch());
        Some(task.turn())
    }),
    ("idle", |task| {
        drop(task.launch());
        drop(task.settle(&task.turn()));
        None
    }),
    ("closing", |task| {
        drop(task.launch());
        let turn = task.turn();
        drop(task.close().is(12, "obligations-owed"));
        Some(turn)
    }),
];

#[test]
fn a03_from_every_open_state_a_stop_leads_out_and_none_answers_without_a_change() {
    let root = TestRoot::new();
    for (state, bring) in STATES {
        let task = root.reserve_step(state);
        let turn = bring(&task);
        let before: u64 = task.seen("revision").parse().unwrap();
        let stop = ["stop", state, "--request-id", state];
        let stopped = root.json(&stop);
        assert_eq!(stopped.exit, 0, "{state}: {stopped}");
        assert!(
            task.seen("revision").parse::<u64>().unwrap() > before,
            "{state}: 0, and nothing was written"
        );
        assert_eq!(root.row(state)["taskStatus"], "interrupted", "{state}");
        // The very same call again gives the very same answer, and counts once.
        let epoch = root.row(state)["stopEpoch"].clone();
        assert_eq!(root.json(&stop).stdout, stopped.stdout, "{state}");
        assert_eq!(root.row(state)["stopEpoch"], epoch, "{state}");
        if let Some(turn) = turn {
            let _ = task.settle(&turn).is(0, "turn-settled");
        }
        assert_eq!(task.stands(), "terminal-no-report", "{state}");
        let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
        let new = format!("{state}-2");
        let _ = root.json(&["reserve", &new, "--replaces", state, "--nonce", &nonce]).is(0, "reserved");
    }
}

#[test]
fn a05_a_stop_is_there_for_every_later_process_however_old_it_is() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let task = root.reserve_for("t", &owner).launched();
    let turn = task.turn();
    let _ = root.json(&["stop", "t", "--reason", "the user said so"]).is(0, "stopping");
    owner.kill();
    let mut bare = std::process::Command::new(crate::common::BIN);
    bare.env_clear().args(["--root", &root.path().display().to_string(), "inspect", "t", "--json"]);
    let seen: Value = serde_json::from_slice(&bare.output().unwrap().stdout).unwrap();
    assert_eq!(seen["closed"]["by"], "stop");
    assert_eq!(seen["closed"]["reason"], "the user said so");
    assert_eq!((seen["phase"].as_str(), seen["taskStatus"].as_str()), (Some("closing"), Some("interrupted")));
    let _ = task.begin().is(10, "attempt-closing");
    for kind in ["launch", "startup"] {
        let out = root.json(&["rotate", "t", "--as", kind, "--unproven"]);
        assert_eq!(out.exit, 10, "{kind}: {out}");
    }
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(task.seen("closed.by"), "stop", "and it is remembered after the end");
    assert_eq!(task.seen("closed.reason"), "the user said so");
}

#[test]
fn a25_no_restart_wakes_what_was_stopped_and_an_unreadable_row_is_not_started() {
    let root = TestRoot::new();
    for (state, bring) in STATES {
        let mut owner = Owner::start();
        let task = root.reserve_for(state, &owner);
        let _ = bring(&task);
        let _ = task.stop();
        owner.kill();
        let attempt = root.row(state)["taskAttemptId"].clone();
        let _ = root.json(&["rotate", state, "--as", "startup"]).exit;
        let _ = root.json(&["recover"]);
        let _ = root.json(&["recover", state, "--unproven"]);
        assert_eq!(root.row(state)["taskAttemptId"], attempt, "{state}: a stopped task was woken");
        assert_eq!(root.row(state)["taskStatus"], "interrupted", "{state}");
        let code = if task.seen("phase") == "closing" { "attempt-closing" } else { "attempt-settled" };
        let _ = task.begin().is(10, code);
    }
    let mut owner = Owner::start();
    let task = root.reserve_for("unreadable", &owner).launched();
    owner.kill();
    let file = root.path().join("tasks/unreadable/row.json");
    let kept = std::fs::read(&file).unwrap();
    std::fs::write(&file, b"").unwrap();
    let _ = root.refuses(65, "row-unreadable", &["rotate", "unreadable", "--as", "startup"]);
    let swept = root.json(&["recover"]).is(0, "recovered");
    assert_eq!(swept.get("left.0.reasonCode"), root.json(&["recover"]).get("left.0.reasonCode"));
    assert!(swept.stdout.contains("row-unreadable"), "{swept}");
    std::fs::write(&file, kept).unwrap();
    assert_eq!(task.seen("taskStatus"), "starting");
}

#[test]
fn a29_the_whole_sequence_repeated_converges_on_one_replacement() {
    let root = TestRoot::new();
    let task = root.reserve_step("t").launched();
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    let _ = task.settle(&turn).is(0, "turn-settled");
    let mut replacements = Vec::new();
    for round in 0..5 {
        let claim = task.claim(&["--request-id", "resume-claim"]);
        let nonce = if claim.exit == 0 { claim.get("nonce") } else { "void".to_owned() };
        let args = ["reserve", "t2", "--replaces", "t", "--nonce", &nonce, "--request-id", "resume-reserve"];
        let new = root.json(&args).is(0, "reserved");
        assert_eq!(claim.is(0, "claimed").get("nonce"), nonce, "round {round}");
        replacements.push(new.get("attemptId"));
    }
    replacements.dedup();
    assert_eq!(replacements.len(), 1);
    assert_eq!(root.json(&["inspect"]).json()["tasks"].as_array().unwrap().len(), 2);
    let receipt = std::fs::read_to_string(root.receipt_file("ws", "t", &task.attempt)).unwrap();
    assert!(receipt.contains("execution-settled"), "the retired attempt's end stays readable: {receipt}");
    // And a retry that lost its request ids is told which replacement there is.
    assert_eq!(task.claim(&[]).is(10, "claim-spent").get("replacementTaskId"), "t2");
}

#[test]
fn a31_an_owner_whose_start_failed_settles_and_leaves_no_mark() {
    let root = TestRoot::new();
    let task = root.reserve_step("t");
    let args = ["settle", "t", "--source", "reservation-failed", "--token", &task.token];
    let _ = root.json(&args).is(0, "settled");
    let _ = task.begin().is(10, "attempt-settled");
    let _ = task.launch().is(10, "not-queued");
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    let new = root.json(&["reserve", "t2", "--replaces", "t", "--nonce", &nonce]).is(0, "reserved");
    assert_eq!(new.get("receiptEligible"), "true");

    // Over a predecessor that was never proven over, the same settlement proves nothing to strangers.
    let mut owner = Owner::start();
    let mut marked = root.reserve_step_for("v", &owner).launched();
    let _ = marked.turn();
    let _ = marked.stop().is(0, "stopping");
    owner.kill();
    let _ = marked.rotated_with("reawaken", &[]);
    let args = ["settle", "v", "--source", "launch-failed", "--token", &marked.token];
    let _ = root.json(&args).is(0, "settled");
    assert_ne!(marked.claim(&[]).exit, 0, "the predecessor's end is not proven");
    assert_eq!(marked.receipts(), Vec::<String>::new());
}
