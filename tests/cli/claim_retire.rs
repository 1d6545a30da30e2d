//! `claim-retire`: one attempt is retired for exactly one checkpoint, on evidence, for good.

use crate::common::{Outcome, Task, TestRoot};
use crate::kit::{Process, history, pinned, receipt_file, refused, rewrite_row, row};

/// A task of a step whose attempt was stopped and left a receipt.
fn stopped<'a>(root: &'a TestRoot, id: &str) -> Task<'a> {
    let task = root.reserve_step(id).launched();
    root.json(&["stop", id]).is(0, "stopped");
    task
}

/// A stopped task whose lineage is not proven: an earlier turn was given up, and has ended since.
fn marked<'a>(root: &'a TestRoot, id: &str) -> Task<'a> {
    let (task, turn, token) = marked_beside_a_turn(root, id);
    root.json(&["settle", id, "--turn", &turn, "--token", &token]).is(0, "turn-settled");
    task
}

fn marked_beside_a_turn<'a>(root: &'a TestRoot, id: &str) -> (Task<'a>, String, String) {
    let mut task = root.reserve_step(id).launched();
    let (turn, token) = (task.turn(), task.token.clone());
    root.json(&["stop", id]).is(0, "stopping");
    let out = root.json(&["rotate", id, "--as", "reawaken", "--unproven"]).is(0, "rotated");
    (task.attempt, task.token, task.worker) =
        (out.get("attemptId"), out.get("token"), out.get("workerToken"));
    // The attempt is over; what still runs is a turn of the earlier one.
    root.json(&["stop", id]).is(0, "stopping");
    (task, turn, token)
}

/// A task of a step that reported, with nothing in flight any more.
fn reported<'a>(root: &'a TestRoot, id: &str) -> Task<'a> {
    let task = root.reserve_step(id).launched();
    let turn = task.turn();
    task.report("done").is(0, "report-accepted");
    task.settle(&turn).is(0, "turn-settled");
    task
}

/// A claim that must be refused and leave every byte as it is.
#[track_caller]
fn no_claim(task: &Task<'_>, more: &[&str], exit: i32, code: &str) -> Outcome {
    let before = task.root.bytes();
    let out = task.claim(more).is(exit, code);
    assert_eq!(before, task.root.bytes(), "a refusal changes nothing: {out}");
    out
}

#[test]
fn an_attempt_with_a_receipt_is_retired_for_its_step() {
    let root = TestRoot::new();
    let task = stopped(&root, "t1");
    insta::assert_snapshot!(pinned(&task.claim(&[])), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"claim-retire","code":"claimed","root":"[DIR]/root","requestId":"req_fa93608d3808a42c","taskId":"t1","attemptId":"att_de15204e35ca515e","nonce":"non_f689a3a85894f1ed8b2a4a2e23e88eb3","runId":"run","stepId":"step","inputHash":"hash","mode":"no-report","authority":null,"claimedAt":"2026-01-01T00:00:04.000Z","lateReports":0,"message":"attempt att_de15204e35ca515e of task `t1` is retired for good"}
    "#);
    insta::assert_snapshot!(row(&root, "t1"), @r#"
    {
      "taskId": "t1",
      "parentWorkspaceId": "ws",
      "workflowTask": {
        "runId": "run",
        "stepId": "step",
        "inputHash": "hash"
      },
      "taskStatus": "interrupted",
      "taskAttemptId": "att_de15204e35ca515e",
      "taskAttemptRetiredBy": {
        "runId": "run",
        "stepId": "step",
        "inputHash": "hash",
        "childTaskId": "t1",
        "attemptId": "att_de15204e35ca515e",
        "mode": "no-report",
        "at": "2026-01-01T00:00:04.000Z"
      },
      "retirement": {
        "nonce": "non_f689a3a85894f1ed8b2a4a2e23e88eb3"
      },
      "attempt": {
        "origin": "reserve",
        "owned": true,
        "receiptEligible": true,
        "reason": "a reservation is the first admission of its task",
        "since": "2026-01-01T00:00:01.000Z",
        "owner": {},
        "everAdmitted": false
      },
      "settlement": {
        "closedBy": "stop",
        "closedFrom": "launch",
        "at": "2026-01-01T00:00:03.000Z",
        "settled": {
          "settledAt": "2026-01-01T00:00:03.000Z",
          "receipt": "launch-failed"
        }
      },
      "stopEpoch": 1,
      "sends": [],
      "sendsMinted": 0,
      "turnsMinted": 0,
      "createdAt": "2026-01-01T00:00:01.000Z",
      "updatedAt": "2026-01-01T00:00:04.000Z"
    }
    "#);
    let text = ["claim-retire", "t1", "--attempt", &task.attempt, "--run", "run", "--step", "step"];
    let mut text = text.to_vec();
    text.extend(["--input-hash", "hash", "--parent", "ws"]);
    insta::assert_snapshot!(pinned(&root.run(&text)), @"
    exit 0
    --- stdout
    attempt att_de15204e35ca515e of task `t1` was retired before; the nonce is fresh
    taskId:      t1
    attemptId:   att_de15204e35ca515e
    nonce:       non_080127a3cb021db9c7dfa68afac6c343
    runId:       run
    stepId:      step
    inputHash:   hash
    mode:        no-report
    claimedAt:   2026-01-01T00:00:04.000Z
    lateReports: 0
    ");
    text.extend(["--format", "sh"]);
    insta::assert_snapshot!(pinned(&root.run(&text)), @"
    exit 0
    --- stdout
    unset LYCHGATE_EXIT LYCHGATE_CODE LYCHGATE_ANSWER_ROOT LYCHGATE_REQUEST_ID LYCHGATE_ANSWER_TASK LYCHGATE_ANSWER_ATTEMPT LYCHGATE_MESSAGE LYCHGATE_HINT LYCHGATE_NONCE LYCHGATE_MODE LYCHGATE_AUTHORITY LYCHGATE_CLAIMED_AT LYCHGATE_LATE_REPORTS LYCHGATE_CURRENT_TASK_ID LYCHGATE_REPLACEMENT_TASK_ID LYCHGATE_TASK_STATUS LYCHGATE_CURRENT_ATTEMPT_ID LYCHGATE_OWED_COUNT LYCHGATE_IN_FLIGHT_COUNT
    LYCHGATE_EXIT='0'
    LYCHGATE_CODE='claimed'
    LYCHGATE_NONCE='non_fbcbbbda26e59496df7e3dc31108315a'
    LYCHGATE_MODE='no-report'
    LYCHGATE_CLAIMED_AT='2026-01-01T00:00:04.000Z'
    LYCHGATE_LATE_REPORTS='0'
    LYCHGATE_ANSWER_TASK='t1'
    LYCHGATE_ANSWER_ATTEMPT='att_de15204e35ca515e'
    LYCHGATE_ANSWER_ROOT='[DIR]/root'
    LYCHGATE_REQUEST_ID='req_1f668cb79ce77109'
    LYCHGATE_MESSAGE='attempt att_de15204e35ca515e of task `t1` was retired before; the nonce is fresh'
    ");
    insta::assert_snapshot!(history(&root, "t1"), @"
    reserve | reserved | - | queued/open | -
    rotate | launched | queued/open | starting/open | -
    stop | stopped | starting/open | interrupted/settled | -
    claim-retire | claimed | interrupted/settled | interrupted/settled/retired | no-report
    claim-retire | claimed | interrupted/settled/retired | interrupted/settled/retired | granted again
    claim-retire | claimed | interrupted/settled/retired | interrupted/settled/retired | granted again
    ");
}

#[test]
fn the_same_claim_again_stands_and_only_the_latest_nonce_is_worth_something() {
    let root = TestRoot::new();
    let task = stopped(&root, "t1");
    let first = task.claim(&[]).is(0, "claimed").get("nonce");
    let claim = root.row("t1")["taskAttemptRetiredBy"].clone();
    let second = task.claim(&["--mode", "retire-reported"]).is(0, "claimed");
    assert_eq!(second.get("mode"), "no-report", "the claim never changes");
    assert_eq!(root.row("t1")["taskAttemptRetiredBy"], claim);
    assert_ne!(second.get("nonce"), first);
    refused(&root, &["reserve", "t2", "--replaces", "t1", "--nonce", &first], 10, "stale-nonce");
    let nonce = second.get("nonce");
    root.json(&["reserve", "t2", "--replaces", "t1", "--nonce", &nonce]).is(0, "reserved");
    let out = no_claim(&task, &[], 10, "claim-spent");
    assert_eq!(out.get("replacementTaskId"), "t2");
    insta::assert_snapshot!(out.get("message"), @"task `t1` was replaced by `t2`; a claim is spent once");
    refused(&root, &["reserve", "t3", "--replaces", "t1", "--nonce", &nonce], 10, "claim-spent");
    assert_eq!(root.row("t1")["taskAttemptRetiredBy"], claim);
}

#[test]
fn the_same_request_again_gets_the_same_nonce() {
    let root = TestRoot::new();
    let task = stopped(&root, "t1");
    let first = task.claim(&["--request-id", "r1"]).is(0, "claimed");
    assert_eq!(first.stdout, task.claim(&["--request-id", "r1"]).stdout);
    no_claim(&task, &["--request-id", "r1", "--mode", "retire-reported"], 10, "request-id-reused");
}

#[test]
fn a_claim_for_any_other_checkpoint_is_refused_before_and_after() {
    let root = TestRoot::new();
    let task = stopped(&root, "t1");
    let good = ["t1", task.attempt.as_str(), "run", "step", "hash", "ws"];
    let claim = |given: [&str; 6], exit, code: &str| {
        let names = ["", "--attempt", "--run", "--step", "--input-hash", "--parent"];
        let mut args = vec!["claim-retire", given[0]];
        for (name, value) in names.iter().zip(given).skip(1) {
            args.extend([name, value]);
        }
        refused(&root, &args, exit, code)
    };
    let other = "att_0000000000000000";
    for attempt_code in ["stale-attempt", "claim-lost"] {
        for field in 2..6 {
            let mut given = good;
            given[field] = "other";
            claim(given, 10, "checkpoint-mismatch");
        }
        let mut given = good;
        given[1] = other;
        claim(given, 10, attempt_code);
        let mut given = good;
        given[0] = "t2";
        claim(given, 10, "no-task-record");
        task.claim(&[]).is(0, "claimed");
    }
    let mut given = good;
    given[4] = "hush";
    insta::assert_snapshot!(claim(given, 10, "checkpoint-mismatch").get("message"), @"the input hash of task `t1` is `hash`, not `hush`");
    let stepless = root.reserve_unknown("t3");
    root.json(&["stop", "t3"]).is(0, "stopped");
    insta::assert_snapshot!(no_claim(&stepless, &[], 10, "checkpoint-mismatch").get("message"), @"the run of task `t3` is `none`, not `run`");
}

#[test]
fn without_a_report_only_an_interrupted_task_is_retired() {
    // A step has one child at a time, so each of these works in a root of its own.
    no_claim(&TestRoot::new().reserve_step("queued"), &[], 10, "not-interrupted");
    no_claim(&TestRoot::new().reserve_step("starting").launched(), &[], 10, "not-interrupted");
    let root = TestRoot::new();
    let task = reported(&root, "reported");
    no_claim(&task, &[], 10, "report-published");
    root.json(&["stop", "reported"]).is(0, "stopped");
    no_claim(&task, &[], 10, "report-published");
    no_claim(&stopped(&TestRoot::new(), "stopped"), &["--mode", "retire-reported"], 10, "not-reported");
}

/// Rule 93.
#[test]
fn a_reported_task_is_retired_with_its_report_once_its_attempt_is_over() {
    let root = TestRoot::new();
    let task = reported(&root, "t1");
    let mode = ["--mode", "retire-reported"];
    let out = no_claim(&task, &mode, 11, "no-settlement-evidence");
    insta::assert_snapshot!(out.get("hint"), @"its owner settles it, or anyone stops it");
    root.json(&["stop", "t1"]).is(0, "stopped");
    let file = root.path().join(format!("sessions/ws/subagent-reports/t1/{}.json", task.attempt));
    let report = std::fs::read(&file).unwrap();
    let out = task.claim(&mode).is(0, "claimed");
    assert_eq!((out.get("mode"), out.get("authority")), ("retire-reported".into(), "null".into()));
    assert_eq!(std::fs::read(&file).unwrap(), report, "the report is untouched");
    let own = reported(&root, "t2");
    let out = own.claim(&["--mode", "retire-reported", "--token", &own.token]).is(0, "claimed");
    assert_eq!(out.get("authority"), "token");
}

#[test]
fn a_report_of_an_earlier_attempt_is_not_the_current_ones() {
    let root = TestRoot::new();
    let mut task = reported(&root, "t1");
    root.json(&["stop", "t1"]).is(0, "stopped");
    task.rotated("reactivate");
    root.json(&["stop", "t1"]).is(0, "stopped");
    no_claim(&task, &["--mode", "retire-reported"], 10, "report-not-bound");
    no_claim(&task, &["--mode", "retire-reported", "--token", &task.token], 10, "report-not-bound");
    no_claim(&task, &[], 10, "report-published");
}

/// Rule 77.
#[test]
fn anything_in_flight_is_a_veto_for_the_token_holder_too() {
    let root = TestRoot::new();
    let veto = |task: &Task<'_>, exit, code: &str| {
        no_claim(task, &[], exit, code);
        no_claim(task, &["--token", &task.token], exit, code);
        no_claim(task, &["--mode", "retire-reported", "--token", &task.token], exit, code)
    };
    let pending = root.reserve_step("pending").launched();
    let register = ["admit", "pending", "--attempt", &pending.attempt, "--token", &pending.token];
    root.json(&register).is(0, "registered");
    veto(&pending, 10, "attempt-live");
    let root = TestRoot::new();
    let enqueued = root.reserve_step("enqueued").launched();
    let enqueue =
        ["admit", "enqueued", "--attempt", &enqueued.attempt, "--queued", "--token", &enqueued.token];
    root.json(&enqueue).is(0, "enqueued");
    veto(&enqueued, 10, "attempt-live");
    let root = TestRoot::new();
    let running = root.reserve_step("running").launched();
    running.turn();
    veto(&running, 10, "attempt-live");
    root.json(&["stop", "running"]).is(0, "stopping");
    insta::assert_snapshot!(pinned(&veto(&running, 10, "attempt-live")), @r#"
    exit 10
    --- stdout
    {"ok":false,"command":"claim-retire","code":"attempt-live","root":"[DIR]/root","requestId":"req_d41ffaecb32de191","inFlight":[{"kind":"turn","turnId":"turn_de15204e35ca515e0001","sendId":"snd_de15204e35ca515e0001","attemptId":"att_de15204e35ca515e","since":"2026-01-01T00:00:03.000Z"}],"taskId":"running","message":"attempt is live: 1 turn(s) or send(s) of task `running` are in flight","hint":"stop it, and have the owner settle what runs"}
    "#);
    let root = TestRoot::new();
    let (earlier, turn, token) = marked_beside_a_turn(&root, "earlier");
    veto(&earlier, 10, "attempt-live");
    root.json(&["settle", "earlier", "--turn", &turn, "--token", &token]).is(0, "turn-settled");
    earlier.claim(&["--token", &earlier.token]).is(0, "claimed");
    let root = TestRoot::new();
    let owing = root.reserve_step("owing").launched();
    root.json(&["stop", "owing", "--cleanup", "worktree"]).is(0, "stopping");
    veto(&owing, 12, "cleanup-pending");
    let root = TestRoot::new();
    let alive = Process::alive();
    let args = ["--run", "run", "--step", "step", "--input-hash", "hash", "--owner-pid", &alive.pid()];
    veto(&root.reserve_with("alive", &args).launched(), 10, "attempt-live");
}

#[test]
fn a_receipt_that_is_missing_or_not_this_attempts_is_no_evidence_but_the_owners_word_is() {
    let root = TestRoot::new();
    let task = stopped(&root, "t1");
    // A later commit, so that no record of the settling one puts the receipt back.
    root.json(&["stop", "t1"]).is(0, "already-stopped");
    let file = receipt_file(&task);
    let whole = std::fs::read_to_string(&file).unwrap();
    for damage in [
        String::new(),
        "{}".to_owned(),
        whole.replace("\"t1\"", "\"t2\""),
        whole.replace("\"ws\"", "\"other\""),
        whole.replace(&task.attempt, "att_0000000000000000"),
        whole.replace("launch-failed", "lost-interest"),
        whole.replace("\"version\":1", "\"version\":2"),
    ] {
        std::fs::write(&file, damage).unwrap();
        no_claim(&task, &[], 11, "receipt-unreadable");
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    no_claim(&task, &[], 11, "receipt-unreadable");
    std::fs::remove_dir(&file).unwrap();
    let out = no_claim(&task, &[], 11, "no-settlement-evidence");
    insta::assert_snapshot!(pinned(&out), @r#"
    exit 11
    --- stdout
    {"ok":false,"command":"claim-retire","code":"no-settlement-evidence","root":"[DIR]/root","requestId":"req_17d236eb1270881d","taskId":"t1","message":"nothing proves attempt att_de15204e35ca515e of task `t1` over: it has no receipt","hint":"its receipt is missing from the parent's folder; look for a copy in a backup"}
    "#);
    no_claim(&task, &["--token", &task.worker], 11, "no-settlement-evidence");
    no_claim(&task, &["--token", "tok_0"], 11, "no-settlement-evidence");
    let out = task.claim(&["--token", &task.token]).is(0, "claimed");
    assert_eq!(out.get("authority"), "token");
    assert_eq!(root.json(&["inspect", "t1"]).get("retiredBy.authority"), "token");
}

/// Rule 90.
#[test]
fn an_unproven_lineage_is_retired_on_the_token_of_the_settled_attempt_alone() {
    let root = TestRoot::new();
    let task = marked(&root, "t1");
    let out = no_claim(&task, &[], 11, "lineage-unproven");
    insta::assert_snapshot!(out.get("hint"), @"the owner of the current attempt may settle it and claim with its own token");
    no_claim(&task, &["--token", &task.worker], 11, "lineage-unproven");
    // The environment of a worker is not read by this command.
    let mut args = vec!["claim-retire", "t1", "--attempt", &task.attempt, "--run", "run", "--step", "step"];
    args.extend(["--input-hash", "hash", "--parent", "ws", "--json"]);
    let mut command = root.command(&args);
    command.envs([("LYCHGATE_TASK", "t1"), ("LYCHGATE_TOKEN", &task.token)]);
    root.finish(command.spawn().unwrap()).is(11, "lineage-unproven");
    let out = task.claim(&["--token", &task.token]).is(0, "claimed");
    assert_eq!(out.get("authority"), "token");
    insta::assert_snapshot!(root.row("t1")["taskAttemptRetiredBy"], @r#"{"runId":"run","stepId":"step","inputHash":"hash","childTaskId":"t1","attemptId":"att_080127a3cb021db9","mode":"no-report","authority":"token","at":"2026-01-01T00:00:11.000Z"}"#);
}

#[test]
fn reports_that_are_not_what_the_row_says_are_no_evidence_for_anybody() {
    let root = TestRoot::new();
    let task = stopped(&root, "t1");
    let folder = root.path().join("sessions/ws/subagent-reports/t1");
    std::fs::create_dir_all(&folder).unwrap();
    let stray = folder.join("att_0123456789abcdef.json");
    std::fs::write(&stray, b"{}").unwrap();
    no_claim(&task, &[], 11, "report-unreadable");
    no_claim(&task, &["--token", &task.token], 11, "report-unreadable");
    std::fs::remove_file(&stray).unwrap();
    let elsewhere = TestRoot::new();
    let other = reported(&elsewhere, "t2");
    elsewhere.json(&["stop", "t2"]).is(0, "stopped");
    std::fs::remove_dir_all(elsewhere.path().join("sessions/ws/subagent-reports/t2")).unwrap();
    no_claim(&other, &["--mode", "retire-reported"], 11, "report-unreadable");
    task.claim(&[]).is(0, "claimed");
}

#[test]
fn a_retired_attempt_is_refused_by_every_verb_that_would_go_on_with_one_sentence() {
    let root = TestRoot::new();
    let task = stopped(&root, "t1");
    task.claim(&[]).is(0, "claimed");
    let (attempt, token) = (task.attempt.as_str(), task.token.as_str());
    let mut sentences = std::collections::BTreeSet::new();
    for args in [
        vec!["rotate", "t1", "--as", "reawaken"],
        vec!["rotate", "t1", "--as", "reawaken", "--unproven"],
        vec!["rotate", "t1", "--as", "reactivate"],
        vec!["rotate", "t1", "--as", "launch", "--token", token],
        vec!["rotate", "t1", "--as", "startup", "--unproven"],
        vec!["admit", "t1", "--attempt", attempt, "--token", token],
        vec!["admit", "t1", "--attempt", attempt, "--start", "--token", token],
    ] {
        let out = refused(&root, &args, 10, "retired");
        assert_eq!((out.get("runId"), out.get("stepId")), ("run".to_owned(), "step".to_owned()));
        sentences.insert(out.get("message"));
    }
    insta::assert_debug_snapshot!(sentences, @r#"
    {
        "This sub-agent's attempt was retired by workflow run run (step step); start a new task instead.",
    }
    "#);
}

#[test]
fn no_sequence_of_commands_removes_or_changes_a_claim() {
    let root = TestRoot::new();
    let task = stopped(&root, "t1");
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    let claim = root.row("t1")["taskAttemptRetiredBy"].clone();
    root.json(&["stop", "t1"]).is(0, "already-stopped");
    root.json(&["settle", "t1", "--token", &task.token]).is(0, "already-settled");
    task.report("too late").is(10, "late-report");
    root.json(&["recover"]).is(0, "recovered");
    root.json(&["recover", "t1", "--unproven"]).is(0, "recovered");
    root.json(&["rotate", "t1", "--as", "reawaken", "--unproven"]).is(10, "retired");
    task.claim(&[]).is(0, "claimed");
    root.json(&["reserve", "t2", "--replaces", "t1", "--nonce", &nonce]).is(10, "stale-nonce");
    assert_eq!(root.row("t1")["taskAttemptRetiredBy"], claim);
}

#[test]
fn a_report_that_appears_after_the_settlement_is_an_alarm_and_the_claim_stands() {
    let root = TestRoot::new();
    let task = stopped(&root, "t1");
    let mut args = vec!["claim-retire", "t1", "--attempt", &task.attempt, "--run", "run", "--step", "step"];
    args.extend(["--input-hash", "hash", "--parent", "ws", "--request-id", "r1"]);
    let call = root.paused(&args, "claimed");
    root.wait_reached("claimed");
    let folder = root.path().join("sessions/ws/subagent-reports/t1");
    std::fs::create_dir_all(&folder).unwrap();
    let injected = folder.join(format!("{}.json", task.attempt));
    std::fs::write(&injected, b"{\"reportMarkdown\":\"surprise\"}").unwrap();
    root.go("claimed");
    let out = root.finish(call).is(11, "report-after-settlement");
    insta::assert_snapshot!(pinned(&out), @r#"
    exit 11
    --- stdout
    {"ok":false,"command":"claim-retire","code":"report-after-settlement","root":"[DIR]/root","requestId":"r1","taskId":"t1","message":"ALARM: the attempt of task `t1` was settled without a report, and now there is one: `att_de15204e35ca515e.json` lies among its reports, and the row does not know it","hint":"the claim stands and nothing is replaced; a person must look at the report"}
    "#);
    assert_eq!(root.row("t1")["taskAttemptRetiredBy"]["attemptId"], task.attempt, "the claim is kept");
    assert_eq!(
        std::fs::read(&injected).unwrap(),
        b"{\"reportMarkdown\":\"surprise\"}",
        "and so is the report"
    );
    root.json(&args).is(11, "report-after-settlement");
    let out = task.claim(&[]).is(11, "report-after-settlement");
    assert!(!out.stdout.contains("non_"), "no nonce is handed out: {out}");
    assert_eq!(root.json(&["inspect", "t1"]).get("reasonCode"), "report-unreadable");
}

/// Rule 76.
#[test]
fn a_task_from_before_attempts_had_ids_is_not_claimed() {
    let root = TestRoot::new();
    let task = stopped(&root, "t1");
    rewrite_row(&root, "t1", |row| {
        row.as_object_mut().unwrap().remove("taskAttemptId");
    });
    let out = no_claim(&task, &[], 10, "legacy-not-needed");
    insta::assert_snapshot!(out.get("message"), @"task `t1` has no attempt id: it is replaced without a claim, or not at all");
}

#[test]
fn a_claim_says_everything_or_is_usage() {
    let root = TestRoot::new();
    let task = stopped(&root, "t1");
    let whole = ["--attempt", &task.attempt, "--run", "run", "--step", "step", "--input-hash", "hash"];
    for left_out in 0..whole.len() / 2 {
        let mut args = vec!["claim-retire", "t1", "--parent", "ws"];
        args.extend(whole.chunks(2).enumerate().filter(|(n, _)| *n != left_out).flat_map(|(_, pair)| pair));
        refused(&root, &args, 64, "usage");
    }
    no_claim(&task, &["--mode", "any"], 64, "usage");
    no_claim(&task, &["--token-file", "no-such-file"], 64, "usage");
}
