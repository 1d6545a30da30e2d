//! `settle`: a turn, a send, a cleanup or the whole attempt is over, and what that leaves behind.

use crate::common::{Task, TestRoot};
use crate::kit::{history, pinned, receipts, refused, row};

/// A launched task of an owner nobody can tell anything about, below two ancestors.
pub fn below_two(root: &TestRoot) -> Task<'_> {
    root.reserve_with("t1", &["--ancestor", "mid", "--ancestor", "top", "--owner", "bob"]).launched()
}

pub fn pending(task: &Task<'_>) -> String {
    let args = ["admit", &task.id, "--attempt", &task.attempt, "--token", &task.token];
    task.root.json(&args).is(0, "registered").get("sendId")
}

/// Puts a task into one of the four states whose end has a source of its own.
fn at(root: &TestRoot, id: &str, state: &str) -> (String, String) {
    let task = root.reserve_unknown(id);
    let token = task.token.clone();
    if state == "reserved" {
        return (token, String::new());
    }
    let task = task.launched();
    if state == "launched" {
        return (token, String::new());
    }
    let turn = task.turn();
    if state == "idle" {
        task.settle(&turn).is(0, "turn-settled");
    }
    (token, turn)
}

#[test]
fn a_turn_ends_and_the_attempt_goes_on() {
    let root = TestRoot::new();
    let task = below_two(&root);
    let turn = task.turn();
    insta::assert_snapshot!(pinned(&task.settle(&turn)), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"settle","code":"turn-settled","root":"[DIR]/root","requestId":"req_fa93608d3808a42c","taskId":"t1","attemptId":"att_de15204e35ca515e","taskStatus":"running","phase":"open","stopEpoch":0,"receipt":null,"owed":[],"turnId":"turn_de15204e35ca515e0001","sendId":"snd_de15204e35ca515e0001","turnAttemptId":"att_de15204e35ca515e","message":"turn turn_de15204e35ca515e0001 of task `t1` has ended"}
    "#);
    insta::assert_snapshot!(row(&root, "t1"), @r#"
    {
      "taskId": "t1",
      "parentWorkspaceId": "ws",
      "ancestors": [
        "mid",
        "top"
      ],
      "taskStatus": "running",
      "taskAttemptId": "att_de15204e35ca515e",
      "attempt": {
        "origin": "reserve",
        "owned": true,
        "receiptEligible": true,
        "reason": "a reservation is the first admission of its task",
        "since": "2026-01-01T00:00:01.000Z",
        "owner": {
          "name": "bob"
        },
        "everAdmitted": true
      },
      "stopEpoch": 0,
      "sends": [],
      "sendsMinted": 1,
      "turnsMinted": 1,
      "createdAt": "2026-01-01T00:00:01.000Z",
      "updatedAt": "2026-01-01T00:00:04.000Z"
    }
    "#);
    assert_eq!(receipts(&root), "", "an end of a turn alone proves nothing about the attempt");
    let next = task.turn();
    assert_ne!(next, turn);
    let args = ["settle", "t1", "--turn", &next, "--token", &task.token];
    insta::assert_snapshot!(pinned(&root.run(&args)), @"
    exit 0
    --- stdout
    turn turn_de15204e35ca515e0002 of task `t1` has ended
    taskId:        t1
    attemptId:     att_de15204e35ca515e
    taskStatus:    running
    phase:         open
    stopEpoch:     0
    owed:          none
    turnId:        turn_de15204e35ca515e0002
    sendId:        snd_de15204e35ca515e0002
    turnAttemptId: att_de15204e35ca515e
    ");
}

#[test]
fn a_closing_end_of_a_turn_leaves_one_receipt_in_the_parent_and_every_ancestor() {
    let root = TestRoot::new();
    let task = below_two(&root);
    let turn = task.turn();
    let args = ["settle", "t1", "--turn", &turn, "--close", "--token", &task.token];
    insta::assert_snapshot!(pinned(&root.json(&args)), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"settle","code":"turn-settled","root":"[DIR]/root","requestId":"req_fa93608d3808a42c","taskId":"t1","attemptId":"att_de15204e35ca515e","taskStatus":"interrupted","phase":"settled","stopEpoch":0,"receipt":"execution-settled","owed":[],"turnId":"turn_de15204e35ca515e0001","sendId":"snd_de15204e35ca515e0001","turnAttemptId":"att_de15204e35ca515e","message":"turn turn_de15204e35ca515e0001 of task `t1` has ended; the attempt is settled and its receipt is written"}
    "#);
    insta::assert_snapshot!(receipts(&root), @r#"
    sessions/mid/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
      {"version":1,"taskId":"t1","attemptId":"att_de15204e35ca515e","parentWorkspaceId":"ws","source":"execution-settled","settledAt":"2026-01-01T00:00:04.000Z"}
    sessions/top/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
      {"version":1,"taskId":"t1","attemptId":"att_de15204e35ca515e","parentWorkspaceId":"ws","source":"execution-settled","settledAt":"2026-01-01T00:00:04.000Z"}
    sessions/ws/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
      {"version":1,"taskId":"t1","attemptId":"att_de15204e35ca515e","parentWorkspaceId":"ws","source":"execution-settled","settledAt":"2026-01-01T00:00:04.000Z"}
    "#);
    insta::assert_snapshot!(root.tree(), @"
    config.json
    secret
    sessions/
    sessions/mid/
    sessions/mid/subagent-attempt-settlements/
    sessions/mid/subagent-attempt-settlements/t1/
    sessions/mid/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
    sessions/top/
    sessions/top/subagent-attempt-settlements/
    sessions/top/subagent-attempt-settlements/t1/
    sessions/top/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
    sessions/ws/
    sessions/ws/subagent-attempt-settlements/
    sessions/ws/subagent-attempt-settlements/t1/
    sessions/ws/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
    tasks/
    tasks/t1/
    tasks/t1/row.json
    ");
    insta::assert_snapshot!(row(&root, "t1"), @r#"
    {
      "taskId": "t1",
      "parentWorkspaceId": "ws",
      "ancestors": [
        "mid",
        "top"
      ],
      "taskStatus": "interrupted",
      "taskAttemptId": "att_de15204e35ca515e",
      "attempt": {
        "origin": "reserve",
        "owned": true,
        "receiptEligible": true,
        "reason": "a reservation is the first admission of its task",
        "since": "2026-01-01T00:00:01.000Z",
        "owner": {
          "name": "bob"
        },
        "everAdmitted": true
      },
      "settlement": {
        "closedBy": "settle",
        "closedFrom": "turn",
        "at": "2026-01-01T00:00:04.000Z",
        "settled": {
          "settledAt": "2026-01-01T00:00:04.000Z",
          "receipt": "execution-settled"
        }
      },
      "stopEpoch": 0,
      "sends": [],
      "sendsMinted": 1,
      "turnsMinted": 1,
      "createdAt": "2026-01-01T00:00:01.000Z",
      "updatedAt": "2026-01-01T00:00:04.000Z"
    }
    "#);
}

#[test]
fn parent_only_leaves_the_copies_of_the_ancestors_out() {
    let root = TestRoot::new();
    let task = below_two(&root);
    let args = ["settle", "t1", "--receipt", "parent-only", "--token", &task.token];
    root.json(&args).is(0, "settled");
    insta::assert_snapshot!(receipts(&root), @r#"
    sessions/ws/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
      {"version":1,"taskId":"t1","attemptId":"att_de15204e35ca515e","parentWorkspaceId":"ws","source":"launch-failed","settledAt":"2026-01-01T00:00:03.000Z"}
    "#);
}

#[test]
fn an_attempt_settled_with_nothing_in_flight_says_what_it_had_come_to() {
    let root = TestRoot::new();
    for (state, source) in
        [("reserved", "reservation-canceled"), ("launched", "launch-failed"), ("idle", "idle-settled")]
    {
        let (token, _) = at(&root, state, state);
        let out = root.json(&["settle", state, "--token", &token]).is(0, "settled");
        assert_eq!((out.get("receipt"), out.get("phase")), (source.to_owned(), "settled".to_owned()));
        assert_eq!(out.get("taskStatus"), "interrupted");
    }
}

#[test]
fn settling_a_working_attempt_shuts_admission_first_and_names_what_is_owed() {
    let root = TestRoot::new();
    let task = below_two(&root);
    let turn = task.turn();
    let send = pending(&task);
    let args = ["settle", "t1", "--token", &task.token];
    insta::assert_snapshot!(pinned(&root.json(&args)), @r#"
    exit 12
    --- stdout
    {"ok":false,"command":"settle","code":"obligations-owed","root":"[DIR]/root","requestId":"req_fa49589d28a678f0","taskId":"t1","attemptId":"att_de15204e35ca515e","taskStatus":"interrupted","phase":"closing","stopEpoch":0,"receipt":null,"owed":[{"kind":"turn","turnId":"turn_de15204e35ca515e0001","sendId":"snd_de15204e35ca515e0001","attemptId":"att_de15204e35ca515e","since":"2026-01-01T00:00:03.000Z","owner":"bob"}],"canceledSends":1,"message":"admission of task `t1` is shut; 1 turn is still owed"}
    "#);
    insta::assert_snapshot!(pinned(&root.run(&args)), @"
    exit 12
    --- stdout
    admission of task `t1` is shut; 1 turn is still owed
    taskId:     t1
    attemptId:  att_de15204e35ca515e
    taskStatus: interrupted
    phase:      closing
    stopEpoch:  0
    owed:
      kind: turn  turnId: turn_de15204e35ca515e0001  sendId: snd_de15204e35ca515e0001  attemptId: att_de15204e35ca515e  since: 2026-01-01T00:00:03.000Z  owner: bob
    ");
    let mut sh = args.to_vec();
    sh.extend(["--format", "sh"]);
    insta::assert_snapshot!(pinned(&root.run(&sh)), @"
    exit 12
    --- stdout
    unset LYCHGATE_EXIT LYCHGATE_CODE LYCHGATE_ANSWER_ROOT LYCHGATE_REQUEST_ID LYCHGATE_ANSWER_TASK LYCHGATE_ANSWER_ATTEMPT LYCHGATE_MESSAGE LYCHGATE_HINT LYCHGATE_TASK_STATUS LYCHGATE_PHASE LYCHGATE_RECEIPT LYCHGATE_TURN_ATTEMPT_ID LYCHGATE_CURRENT_ATTEMPT_ID LYCHGATE_STOP_EPOCH LYCHGATE_OWED_COUNT LYCHGATE_CANCELED_SENDS LYCHGATE_LATE_REPORTS
    LYCHGATE_EXIT='12'
    LYCHGATE_CODE='obligations-owed'
    LYCHGATE_TASK_STATUS='interrupted'
    LYCHGATE_PHASE='closing'
    LYCHGATE_STOP_EPOCH='0'
    LYCHGATE_OWED_COUNT='1'
    LYCHGATE_ANSWER_TASK='t1'
    LYCHGATE_ANSWER_ATTEMPT='att_de15204e35ca515e'
    LYCHGATE_ANSWER_ROOT='[DIR]/root'
    LYCHGATE_REQUEST_ID='req_0b23a835283d1d6d'
    LYCHGATE_MESSAGE='admission of task `t1` is shut; 1 turn is still owed'
    ");
    assert_eq!(receipts(&root), "");
    for gate in [
        vec!["admit", "t1", "--attempt", &task.attempt, "--start", "--token", &task.token],
        vec!["admit", "t1", "--send", &send, "--start", "--token", &task.token],
    ] {
        refused(&root, &gate, 10, "attempt-closing");
    }
    let out = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(out.get("receipt"), "execution-settled");
    insta::assert_snapshot!(history(&root, "t1"), @"
    reserve | reserved | - | queued/open | -
    rotate | launched | queued/open | starting/open | -
    admit | admitted | starting/open | running/open | -
    admit | registered | running/open | running/open | -
    settle | obligations-owed | running/open | interrupted/closing | -
    settle | turn-settled | interrupted/closing | interrupted/settled | -
    ");
}

#[test]
fn the_source_of_a_receipt_may_only_narrow_to_one_that_is_true() {
    let root = TestRoot::new();
    let all =
        ["execution-settled", "idle-settled", "launch-failed", "reservation-canceled", "reservation-failed"];
    let truth = |state: &str| -> &[&str] {
        match state {
            "reserved" => &["reservation-canceled", "reservation-failed"],
            "launched" => &["launch-failed", "idle-settled"],
            "idle" => &["idle-settled", "execution-settled"],
            _ => &["execution-settled"],
        }
    };
    for state in ["reserved", "launched", "idle", "working"] {
        for source in all {
            let id = format!("{state}.{source}");
            let (token, turn) = at(&root, &id, state);
            let mut args = vec!["settle", id.as_str(), "--source", source, "--token", &token];
            if state == "working" {
                args.extend(["--turn", &turn, "--close"]);
            }
            if truth(state).contains(&source) {
                let out = root.json(&args);
                assert_eq!((out.exit, out.get("receipt").as_str()), (0, source), "{state}: {out}");
            } else {
                let out = refused(&root, &args, 10, "source-not-true");
                assert_eq!(out.json()["trueSources"], serde_json::json!(truth(state)), "{state}");
            }
        }
    }
    let (token, _) = at(&root, "told", "launched");
    let args = ["settle", "told", "--source", "execution-settled", "--token", &token];
    insta::assert_snapshot!(pinned(&root.run(&args)), @"
    exit 10
    --- stderr
    lychgate settle: refused (source-not-true): `execution-settled` is not what happened to task `told`; true would be: launch-failed, idle-settled
    ");
}

#[test]
fn what_a_call_cannot_say_is_usage() {
    let root = TestRoot::new();
    let (token, turn) = at(&root, "t1", "working");
    let send = "snd_00000000000000000001";
    for wrong in [
        vec!["settle"],
        vec!["settle", "t1", "--close"],
        vec!["settle", "t1", "--send", send],
        vec!["settle", "t1", "--as", "refused"],
        vec!["settle", "t1", "--turn", &turn, "--send", send, "--as", "refused"],
        vec!["settle", "t1", "--turn", "turn_1"],
        vec!["settle", "t1", "--source", "done"],
        vec!["settle", "t1", "--turn", &turn, "--source", "execution-settled", "--token", &token],
        vec!["settle", "t1", "--token", &token, "--token-file", "f"],
        vec!["settle", "t1", "--token-file", "no-such-file"],
    ] {
        refused(&root, &wrong, 64, "usage");
    }
    refused(&root, &["settle", "t2", "--token", &token], 10, "no-task-record");
}
