//! Tests 5 and 21: a claim retires one attempt for one checkpoint, once, and is never taken back.

use crate::actors::{Owner, PATIENT};
use crate::common::{Task, TestRoot};

fn terminal<'a>(root: &'a TestRoot, id: &str) -> Task<'a> {
    let mut owner = Owner::start();
    let task = root.reserve_step_for(id, &owner).launched();
    let _ = task.stop().is(0, "stopped");
    owner.kill();
    task
}

/// A claim with one part of the checkpoint replaced.
fn claim_with<'a>(task: &'a Task<'_>, name: &str, value: &'a str) -> Vec<&'a str> {
    let mut args = vec!["claim-retire", &task.id, "--attempt", &task.attempt, "--run", "run"];
    args.extend(["--step", "step", "--input-hash", "hash", "--parent", "ws"]);
    if let Some(at) = args.iter().position(|arg| *arg == name) {
        args[at + 1] = value;
    }
    args
}

#[test]
fn test_5_a_claim_is_idempotent_for_its_checkpoint_and_refused_for_any_other() {
    let root = TestRoot::new();
    let task = terminal(&root, "t");
    let others = [
        ("--run", "other", "checkpoint-mismatch"),
        ("--step", "other", "checkpoint-mismatch"),
        ("--input-hash", "other", "checkpoint-mismatch"),
        ("--parent", "other", "checkpoint-mismatch"),
        ("--attempt", "att_00000000000000ff", "stale-attempt"),
    ];
    for (name, value, code) in others {
        let _ = root.refuses(10, code, &claim_with(&task, name, value));
    }
    let first = task.claim(&[]).is(0, "claimed");
    let claim = root.row("t")["taskAttemptRetiredBy"].clone();
    let second = task.claim(&[]).is(0, "claimed");
    assert_ne!(first.get("nonce"), second.get("nonce"), "each grant has its own nonce");
    for (name, value, _) in others {
        let code = if name == "--attempt" { "claim-lost" } else { "checkpoint-mismatch" };
        let _ = root.refuses(10, code, &claim_with(&task, name, value));
    }
    assert_eq!(root.row("t")["taskAttemptRetiredBy"], claim, "a claim never changes");
}

#[test]
fn test_5_a_claim_that_exists_satisfies_the_other_mode_without_a_change() {
    let root = TestRoot::new();
    let task = terminal(&root, "no-report");
    let _ = task.claim(&[]).is(0, "claimed");
    let reported = root.reserve_step("reported").launched();
    let turn = reported.turn();
    let _ = reported.report("done").is(0, "report-accepted");
    let _ = reported.settle(&turn).is(0, "turn-settled");
    let _ = reported.close().is(0, "settled");
    let _ = reported.claim(&["--mode", "retire-reported"]).is(0, "claimed");
    for (task, first, other) in
        [(&task, "no-report", "retire-reported"), (&reported, "retire-reported", "no-report")]
    {
        let claim = root.row(&task.id)["taskAttemptRetiredBy"].clone();
        assert_eq!(claim["mode"], first);
        let again = task.claim(&["--mode", other]).is(0, "claimed");
        assert_eq!(again.get("mode"), first);
        assert_eq!(root.row(&task.id)["taskAttemptRetiredBy"], claim);
    }
    assert_eq!(root.run(&["report", "reported", "--show"]).stdout.trim_end(), "done", "the report stays");
}

#[test]
fn test_5_a_claim_is_spent_once() {
    let root = TestRoot::new();
    let task = terminal(&root, "t");
    let stale = task.claim(&[]).is(0, "claimed").get("nonce");
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    let replace =
        |id: &'static str, nonce: &str| root.json(&["reserve", id, "--replaces", "t", "--nonce", nonce]);
    let _ = root.refuses(10, "stale-nonce", &["reserve", "n", "--replaces", "t", "--nonce", &stale]);
    let _ = root.refuses(10, "stale-nonce", &["reserve", "n", "--replaces", "t", "--nonce", "forged"]);
    let new = replace("new", &nonce).is(0, "reserved");
    assert_eq!((new.get("runId"), new.get("stepId")), ("run".into(), "step".into()));
    assert_ne!(new.get("attemptId"), task.attempt);
    let spent = replace("newer", &nonce).is(10, "claim-spent");
    assert_eq!(spent.get("replacementTaskId"), "new");
    let _ = task.claim(&[]).is(10, "claim-spent");
    assert!(!root.path().join("tasks/newer/row.json").exists());
}

#[test]
fn test_5_a_claim_is_refused_while_anything_is_in_flight_whoever_asks() {
    let root = TestRoot::new();
    let send = root.reserve_step("send").launched();
    let _ = send.send();
    let queued = root.reserve_step("queued").launched();
    let _ = queued.queued_send();
    let turn = root.reserve_step("turn").launched();
    let _ = turn.turn();
    let open = root.reserve_step_for("open", &Owner::start()).launched();
    for task in [&send, &queued, &turn] {
        let _ = task.claim(&[]).is(10, "attempt-live");
        let _ = task.claim_as_owner(&[]).is(10, "attempt-live");
        let _ = task.claim_as_owner(&["--mode", "retire-reported"]).is(10, "attempt-live");
    }
    let _ = open.claim(&[]).is(10, "not-interrupted");
    let owed = root.reserve_step("owed").launched();
    let _ = root.json(&["stop", "owed", "--cleanup", "worktree"]).is(0, "stopping");
    let _ = owed.claim(&[]).is(12, "cleanup-pending");
    let _ = owed.claim_as_owner(&[]).is(12, "cleanup-pending");
}

/// Rule 89.
#[test]
fn test_5_a_marked_row_is_refused_to_strangers_in_both_modes_and_its_owner_may() {
    for reported in [false, true] {
        let root = TestRoot::new();
        let mut task = terminal(&root, "t");
        root.lose_receipt("ws", "t", &task.attempt);
        let _ = task.rotated_with("reawaken", &[]);
        let turn = task.turn();
        if reported {
            let _ = task.report("done").is(0, "report-accepted");
        }
        let _ = task.settle(&turn).is(0, "turn-settled");
        let _ = task.close().is(0, "settled");
        let mode = ["--mode", if reported { "retire-reported" } else { "no-report" }];
        let stranger = task.claim(&mode);
        let _ = stranger.is(11, "lineage-unproven");
        let other = ["--mode", if reported { "no-report" } else { "retire-reported" }];
        assert_ne!(task.claim(&other).exit, 0);
        let granted = task.claim_as_owner(&mode).is(0, "claimed");
        assert_eq!(granted.get("authority"), "token");
        assert_eq!(task.seen("retiredBy.authority"), "token", "and it is shown as such");
        let why = root.run(&["inspect", &task.id, "--explain"]);
        assert!(why.stdout.contains("on the word of the owner's token alone, not spent"), "{why}");
    }
}

/// Rule 71.
#[test]
fn test_5_a_claim_that_waits_for_the_lock_judges_what_it_finds_there() {
    let root = TestRoot::new();
    let task = terminal(&root, "t");
    // The mark appears while the claim is on its way to the lock.
    let holding = root.park(&["stop", "t"], "before-rename");
    let claim = root.start(&[&claim_with(&task, "", "")[..], &PATIENT].concat());
    std::fs::remove_file(root.receipt_file("ws", "t", &task.attempt)).unwrap();
    let _ = holding.go().is(0, "already-stopped");
    let _ = root.finish(claim).is(11, "no-settlement-evidence");
    assert_eq!(root.row("t").get("taskAttemptRetiredBy"), None);
}

#[test]
fn test_5_no_call_takes_a_claim_back() {
    let root = TestRoot::new();
    let task = terminal(&root, "t");
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    let claim = root.row("t")["taskAttemptRetiredBy"].clone();
    let token = &task.token;
    let calls: Vec<Vec<&str>> = vec![
        vec!["stop", "t"],
        vec!["settle", "t", "--token", token],
        vec!["rotate", "t", "--as", "reawaken", "--unproven", "--token", token],
        vec!["rotate", "t", "--as", "startup", "--unproven"],
        vec!["recover", "t", "--unproven"],
        vec!["recover"],
        vec!["reserve", "t", "--parent", "ws"],
        vec!["admit", "t", "--attempt", &task.attempt, "--start", "--token", token],
        vec!["reserve", "new", "--replaces", "t", "--nonce", &nonce],
        vec!["stop", "t"],
        vec!["recover", "t", "--unproven"],
    ];
    for call in &calls {
        let _ = root.json(call);
        assert_eq!(root.row("t")["taskAttemptRetiredBy"], claim, "{call:?}");
    }
    let _ = task.report("late").is(10, "late-report");
    assert_eq!(root.row("t")["taskAttemptRetiredBy"], claim);
    assert_eq!(root.row("t")["retirement"]["replacementTaskId"], "new");
}

#[test]
fn test_5_of_many_replacements_at_once_exactly_one_exists() {
    let root = TestRoot::new();
    let task = terminal(&root, "t");
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    let names: Vec<String> = (0..8).map(|n| format!("new-{n}")).collect();
    let calls: Vec<Vec<&str>> = names
        .iter()
        .map(|name| {
            [&["reserve", name.as_str(), "--replaces", "t", "--nonce", &nonce][..], &PATIENT].concat()
        })
        .collect();
    let outcomes = root.at_once(&calls);
    let won: Vec<usize> = (0..8).filter(|n| outcomes[*n].exit == 0).collect();
    assert_eq!(won.len(), 1, "{}", outcomes.iter().map(ToString::to_string).collect::<String>());
    for (n, lost) in outcomes.iter().enumerate().filter(|(n, _)| *n != won[0]) {
        let lost = lost.clone().is(10, "claim-spent");
        assert_eq!(lost.get("replacementTaskId"), names[won[0]]);
        assert!(!root.path().join("tasks").join(&names[n]).join("row.json").exists());
    }
}

#[test]
fn test_21_a_report_that_appears_during_the_claim_raises_the_alarm_and_the_claim_stands() {
    let root = TestRoot::new();
    let task = terminal(&root, "t");
    let claiming = root.park(&claim_with(&task, "", ""), "claimed");
    let folder = root.path().join("sessions/ws/subagent-reports/t");
    std::fs::create_dir_all(&folder).unwrap();
    let report = folder.join(format!("{}.json", task.attempt));
    std::fs::write(&report, b"{\"a\":\"report\"}").unwrap();
    let alarm = claiming.go().is(11, "report-after-settlement");
    assert!(alarm.get("message").starts_with("ALARM"), "{alarm}");
    assert_eq!(alarm.json().get("nonce"), None, "nothing that could be spent is handed out");
    assert_eq!(root.row("t")["taskAttemptRetiredBy"]["attemptId"], task.attempt);
    let _ = root.json(&["rotate", "t", "--as", "reawaken"]).is(10, "retired");
    assert_eq!(std::fs::read(&report).unwrap(), b"{\"a\":\"report\"}");
    assert_eq!(task.stands(), "indeterminate/report-unreadable");
    // Asking again hands out nothing either, and neither does the repeat of the very call.
    let again = task.claim(&[]);
    assert_eq!((again.exit, again.code().as_str()), (11, "report-after-settlement"), "{again}");
}

#[test]
fn test_21_a_report_that_appears_after_the_grant_stands_against_the_replacement_too() {
    let root = TestRoot::new();
    let task = terminal(&root, "t");
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    // The next commit of the row lets go of the record of the one before.
    let _ = task.stop().is(0, "already-stopped");
    let folder = root.path().join("sessions/ws/subagent-reports/t");
    std::fs::create_dir_all(&folder).unwrap();
    let report = folder.join(format!("{}.json", task.attempt));
    std::fs::write(&report, b"{\"a\":\"report\"}").unwrap();
    let _ = root
        .json(&["reserve", "new", "--replaces", "t", "--nonce", &nonce])
        .is(11, "report-after-settlement");
    assert!(!root.path().join("tasks/new/row.json").exists());
    assert_eq!(root.row("t")["retirement"].get("replacementTaskId"), None);
    // A person has looked at it and taken it away: the claim still stands, unspent.
    std::fs::remove_file(&report).unwrap();
    let _ = root.json(&["reserve", "new", "--replaces", "t", "--nonce", &nonce]).is(0, "reserved");
}
