//! `inspect`: everything that is known of one task, in every form.

use crate::common::TestRoot;
use crate::inspect::register;
use crate::kit::pinned;

const STEP: [&str; 6] = ["--run", "run", "--step", "step", "--input-hash", "hash"];

#[test]
#[allow(clippy::too_many_lines, reason = "the answers are pinned whole")]
fn one_task_is_told_whole() {
    let root = TestRoot::new();
    let args = ["--ancestor", "top", "--owner", "bob"];
    let mut more = args.to_vec();
    more.extend(STEP);
    let task = root.reserve_with("t1", &more).launched();
    let start = ["admit", "t1", "--attempt", &task.attempt, "--start", "--label", "write tests"];
    let mut start = start.to_vec();
    start.extend(["--token", &task.token]);
    root.json(&start).is(0, "admitted");
    register(&task);
    task.report("late").is(0, "report-accepted");
    task.report("later").is(10, "late-report");
    root.json(&["stop", "t1", "--reason", "lunch", "--failure", "too hot", "--cleanup", "worktree"])
        .is(0, "stopping");
    let out = root.json(&["inspect", "t1", "--explain", "--history"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&out.json()).unwrap(), @r#"
    {
      "ok": true,
      "command": "inspect",
      "code": "ok",
      "root": "[DIR]/root",
      "requestId": "req_0b4057279873b28c",
      "taskId": "t1",
      "outcome": "reported",
      "reasonCode": null,
      "why": "its report counts",
      "identity": {
        "kind": "id",
        "attemptId": "att_de15204e35ca515e"
      },
      "taskStatus": "reported",
      "phase": "closing",
      "proven": true,
      "receiptEligible": true,
      "origin": "reserve",
      "since": "2026-01-01T00:00:01.000Z",
      "owner": {
        "name": "bob",
        "alive": "unknown",
        "why": "no --owner-pid was given, so nobody can tell",
        "pid": null,
        "startTicks": null,
        "host": null,
        "bootId": null
      },
      "live": true,
      "turns": [
        {
          "kind": "turn",
          "turnId": "turn_de15204e35ca515e0001",
          "sendId": "snd_de15204e35ca515e0001",
          "attemptId": "att_de15204e35ca515e",
          "since": "2026-01-01T00:00:03.000Z",
          "label": "write tests",
          "ageSeconds": 5
        }
      ],
      "sends": [],
      "owed": [
        {
          "kind": "turn",
          "turnId": "turn_de15204e35ca515e0001",
          "sendId": "snd_de15204e35ca515e0001",
          "attemptId": "att_de15204e35ca515e",
          "since": "2026-01-01T00:00:03.000Z",
          "label": "write tests",
          "owner": "bob",
          "ageSeconds": 5
        },
        {
          "kind": "cleanup",
          "cleanupId": "cln_f908fb94e17cee91ee613f96b00129e5",
          "name": "worktree",
          "ownerPid": null,
          "since": "2026-01-01T00:00:07.000Z",
          "ageSeconds": 1
        }
      ],
      "stopEpoch": 1,
      "closed": {
        "by": "stop",
        "while": "turn",
        "at": "2026-01-01T00:00:07.000Z",
        "reason": "lunch",
        "failure": "too hot",
        "settledAt": null,
        "receipt": null
      },
      "retiredBy": null,
      "report": {
        "attemptId": "att_de15204e35ca515e",
        "title": null,
        "bytes": 4,
        "at": "2026-01-01T00:00:05.000Z",
        "path": "[DIR]/root/sessions/ws/subagent-reports/t1/att_de15204e35ca515e.json"
      },
      "lateReports": 1,
      "parentWorkspaceId": "ws",
      "ancestors": [
        "top"
      ],
      "revision": 7,
      "createdAt": "2026-01-01T00:00:01.000Z",
      "updatedAt": "2026-01-01T00:00:07.000Z",
      "workflowTask": {
        "runId": "run",
        "stepId": "step",
        "inputHash": "hash"
      },
      "next": [
        "lychgate report t1 --show",
        "lychgate settle t1 --turn turn_de15204e35ca515e0001 --token-file FILE",
        "lychgate settle t1 --cleanup cln_f908fb94e17cee91ee613f96b00129e5"
      ],
      "evidence": [
        {
          "evidence": "row",
          "from": "[DIR]/root/tasks/t1/row.json",
          "says": "reported/closing"
        },
        {
          "evidence": "reports",
          "from": "[DIR]/root/sessions/ws/subagent-reports/t1",
          "says": "1, whole, as the row says"
        },
        {
          "evidence": "in flight",
          "from": "row",
          "says": "1 turn(s) of this attempt, 0 of earlier ones, 0 send(s) not admitted"
        },
        {
          "evidence": "settlement",
          "from": "row",
          "says": "admission is shut, 1 turn and 1 cleanup are still owed"
        },
        {
          "evidence": "owner",
          "from": "process",
          "says": "unknown: no --owner-pid was given, so nobody can tell"
        },
        {
          "evidence": "token",
          "from": "caller",
          "says": "none was shown"
        },
        {
          "evidence": "lineage",
          "from": "row",
          "says": "proven (a reservation is the first admission of its task); its settlement may leave a receipt"
        },
        {
          "evidence": "receipt",
          "from": "[DIR]/root/sessions/ws/subagent-attempt-settlements/t1/att_de15204e35ca515e.json",
          "says": "there is none"
        }
      ],
      "history": [
        {
          "n": 1,
          "at": "2026-01-01T00:00:01.000Z",
          "command": "reserve",
          "requestId": "req_f0d5b1efa390b1eb",
          "what": "reserved",
          "to": "queued/open",
          "subject": "att_de15204e35ca515e"
        },
        {
          "n": 2,
          "at": "2026-01-01T00:00:02.000Z",
          "command": "rotate",
          "requestId": "req_b0599e694c170d04",
          "what": "launched",
          "from": "queued/open",
          "to": "starting/open"
        },
        {
          "n": 3,
          "at": "2026-01-01T00:00:03.000Z",
          "command": "admit",
          "requestId": "req_983fe5c6f3a3b9e0",
          "what": "admitted",
          "from": "starting/open",
          "to": "running/open",
          "subject": "turn_de15204e35ca515e0001",
          "note": "write tests"
        },
        {
          "n": 4,
          "at": "2026-01-01T00:00:04.000Z",
          "command": "admit",
          "requestId": "req_fa93608d3808a42c",
          "what": "registered",
          "from": "running/open",
          "to": "running/open",
          "subject": "snd_de15204e35ca515e0002"
        },
        {
          "n": 5,
          "at": "2026-01-01T00:00:05.000Z",
          "command": "report",
          "requestId": "req_fa49589d28a678f0",
          "what": "report-accepted",
          "from": "running/open",
          "to": "reported/open",
          "subject": "att_de15204e35ca515e"
        },
        {
          "n": 6,
          "at": "2026-01-01T00:00:06.000Z",
          "command": "report",
          "requestId": "req_1f668cb79ce77109",
          "what": "late-report",
          "from": "reported/open",
          "to": "reported/open",
          "subject": "att_de15204e35ca515e",
          "note": "second-report"
        },
        {
          "n": 7,
          "at": "2026-01-01T00:00:07.000Z",
          "command": "stop",
          "requestId": "req_0b23a835283d1d6d",
          "what": "stopping",
          "from": "reported/open",
          "to": "reported/closing",
          "note": "lunch"
        }
      ],
      "message": "task `t1` is reported: its report counts"
    }
    "#);
    insta::assert_snapshot!(root.run(&["inspect", "t1", "--explain", "--history"]), @"
    exit 0
    --- stdout
    root [DIR]/root
    task       t1
    outcome    reported
    why        its report counts
    status     reported, admission shut, closing
    attempt    att_de15204e35ca515e (reserve)
    lineage    proven
    owner      `bob`, unknown: no --owner-pid was given, so nobody can tell
    in flight  1 turn(s), 0 send(s); 2 owed
      owed     turn turn_de15204e35ca515e0001  since 2026-01-01T00:00:03.000Z
      owed     cleanup cln_f908fb94e17cee91ee613f96b00129e5 worktree since 2026-01-01T00:00:07.000Z
    stopped    lunch
    failure    too hot
    report     [DIR]/root/sessions/ws/subagent-reports/t1/att_de15204e35ca515e.json
    late       1 refused report(s) kept
    evidence
      row        reported/closing
                 [DIR]/root/tasks/t1/row.json
      reports    1, whole, as the row says
                 [DIR]/root/sessions/ws/subagent-reports/t1
      in flight  1 turn(s) of this attempt, 0 of earlier ones, 0 send(s) not admitted
      settlement admission is shut, 1 turn and 1 cleanup are still owed
      owner      unknown: no --owner-pid was given, so nobody can tell
      token      none was shown
      lineage    proven (a reservation is the first admission of its task); its settlement may leave a receipt
      receipt    there is none
                 [DIR]/root/sessions/ws/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
    next
      lychgate report t1 --show
      lychgate settle t1 --turn turn_de15204e35ca515e0001 --token-file FILE
      lychgate settle t1 --cleanup cln_f908fb94e17cee91ee613f96b00129e5
    history
      2026-01-01T00:00:01.000Z reserve      reserved           queued/open att_de15204e35ca515e
      2026-01-01T00:00:02.000Z rotate       launched           queued/open -> starting/open
      2026-01-01T00:00:03.000Z admit        admitted           starting/open -> running/open turn_de15204e35ca515e0001 write tests
      2026-01-01T00:00:04.000Z admit        registered         running/open -> running/open snd_de15204e35ca515e0002
      2026-01-01T00:00:05.000Z report       report-accepted    running/open -> reported/open att_de15204e35ca515e
      2026-01-01T00:00:06.000Z report       late-report        reported/open -> reported/open att_de15204e35ca515e second-report
      2026-01-01T00:00:07.000Z stop         stopping           reported/open -> reported/closing lunch
    ");
    insta::assert_snapshot!(root.run(&["inspect", "t1", "--format", "sh"]), @"
    exit 0
    --- stdout
    unset LYCHGATE_EXIT LYCHGATE_CODE LYCHGATE_ANSWER_ROOT LYCHGATE_REQUEST_ID LYCHGATE_ANSWER_TASK LYCHGATE_ANSWER_ATTEMPT LYCHGATE_MESSAGE LYCHGATE_HINT LYCHGATE_OUTCOME LYCHGATE_REASON LYCHGATE_WHY LYCHGATE_TASK_STATUS LYCHGATE_PHASE LYCHGATE_PROVEN LYCHGATE_RECEIPT_ELIGIBLE LYCHGATE_RECEIPT LYCHGATE_OWNER_ALIVE LYCHGATE_LIVE LYCHGATE_TURNS_COUNT LYCHGATE_STEPS_COUNT LYCHGATE_OWED_COUNT LYCHGATE_REPORT_PATH LYCHGATE_REPORT_ATTEMPT_ID LYCHGATE_LATE_REPORTS LYCHGATE_PARENT_WORKSPACE_ID LYCHGATE_RUN_ID LYCHGATE_STEP_ID LYCHGATE_INPUT_HASH LYCHGATE_REPLACEMENT_TASK_ID LYCHGATE_STOP_EPOCH LYCHGATE_SINCE LYCHGATE_TASKS_COUNT LYCHGATE_SITUATION LYCHGATE_SESSION LYCHGATE_GENERATION LYCHGATE_STATE LYCHGATE_GUARD
    LYCHGATE_EXIT='0'
    LYCHGATE_CODE='ok'
    LYCHGATE_OUTCOME='reported'
    LYCHGATE_WHY='its report counts'
    LYCHGATE_TASK_STATUS='reported'
    LYCHGATE_PHASE='closing'
    LYCHGATE_PROVEN='true'
    LYCHGATE_RECEIPT_ELIGIBLE='true'
    LYCHGATE_OWNER_ALIVE='unknown'
    LYCHGATE_LIVE='true'
    LYCHGATE_TURNS_COUNT='1'
    LYCHGATE_OWED_COUNT='2'
    LYCHGATE_REPORT_PATH='[DIR]/root/sessions/ws/subagent-reports/t1/att_de15204e35ca515e.json'
    LYCHGATE_REPORT_ATTEMPT_ID='att_de15204e35ca515e'
    LYCHGATE_LATE_REPORTS='1'
    LYCHGATE_PARENT_WORKSPACE_ID='ws'
    LYCHGATE_RUN_ID='run'
    LYCHGATE_STEP_ID='step'
    LYCHGATE_INPUT_HASH='hash'
    LYCHGATE_STOP_EPOCH='1'
    LYCHGATE_SINCE='2026-01-01T00:00:01.000Z'
    LYCHGATE_ANSWER_TASK='t1'
    LYCHGATE_ANSWER_ATTEMPT='att_de15204e35ca515e'
    LYCHGATE_ANSWER_ROOT='[DIR]/root'
    LYCHGATE_REQUEST_ID='req_d41ffaecb32de191'
    LYCHGATE_MESSAGE='task `t1` is reported: its report counts'
    ");
    let print =
        ["inspect", "t1", "--print", "outcome,owner.name,turns.0.label,owed.1.ageSeconds,none,closed.reason"];
    insta::assert_snapshot!(root.run(&print).stdout, @"
    reported
    bob
    write tests
    4

    lunch
    ");
}

#[test]
fn a_retired_task_is_shown_with_its_claim_and_its_replacement() {
    let root = TestRoot::new();
    let task = root.reserve_step("t1").launched();
    root.json(&["stop", "t1"]).is(0, "stopped");
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    let out = root.run(&["inspect", "t1"]);
    insta::assert_snapshot!(pinned(&out), @"
    exit 0
    --- stdout
    root [DIR]/root
    task       t1
    outcome    terminal-no-report
    why        the receipt of att_de15204e35ca515e proves it over
    status     interrupted, admission shut, settled
    attempt    att_de15204e35ca515e (reserve)
    lineage    proven
    owner      unnamed, unknown: no --owner-pid was given, so nobody can tell
    in flight  0 turn(s), 0 send(s); 0 owed
    retired    for run run step step, not replaced yet
    next
      lychgate claim-retire t1 --attempt att_de15204e35ca515e --run run --step step --input-hash hash --parent ws
      lychgate reserve --replaces t1 --nonce NONCE
    ");
    assert!(
        !root.json(&["inspect", "t1", "--explain"]).stdout.contains(&nonce),
        "a nonce is not for everybody"
    );
    root.json(&["reserve", "t2", "--replaces", "t1", "--nonce", &nonce]).is(0, "reserved");
    insta::assert_snapshot!(root.json(&["inspect", "t1"]).json()["retiredBy"], @r#"{"runId":"run","stepId":"step","inputHash":"hash","attemptId":"att_de15204e35ca515e","mode":"no-report","authority":null,"at":"2026-01-01T00:00:04.000Z","replacementTaskId":"t2"}"#);
    assert_eq!(root.json(&["inspect", "t1"]).json()["next"].to_string(), r#"["lychgate inspect t2"]"#);
    assert_eq!(root.json(&["inspect", "t2"]).json()["replaces"]["taskId"], "t1");
    insta::assert_snapshot!(root.run(&["inspect"]), @"
    exit 0
    --- stdout
    root [DIR]/root
    TASK    OUTCOME            STATUS       OWNER    WHY
    t2      live               queued       unknown  it is queued and waits to be l…
    t1      retired            interrupted  unknown  replaced by t2
    ");
}
