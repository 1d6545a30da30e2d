//! `report`: a result counts once, bound to its attempt, and nothing that was refused is lost.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::common::{BIN, Outcome, Task, TestRoot};
use crate::kit::{history, pinned, receipts, refused, row, untouched};

const LIMIT: usize = 16 * 1024 * 1024;

/// Publishes with a token, or without one.
fn publish(task: &Task<'_>, attempt: &str, token: &str, text: &[u8]) -> Outcome {
    let mut args = vec!["report", task.id.as_str(), "--attempt", attempt];
    if !token.is_empty() {
        args.extend(["--token", token]);
    }
    task.root.json_with_stdin(&args, text)
}

pub fn reports(root: &TestRoot) -> PathBuf {
    root.path().join("sessions/ws/subagent-reports/t1")
}

pub fn report_file(task: &Task<'_>) -> PathBuf {
    reports(task.root).join(format!("{}.json", task.attempt))
}

/// The text of the late reports, as a reader gets them.
pub fn late(root: &TestRoot) -> String {
    root.run(&["report", "t1", "--show", "--late"]).stdout
}

#[test]
fn a_report_counts_and_lies_in_one_file_that_its_row_names() {
    let root = TestRoot::new();
    let task = root.reserve_unknown("t1").launched();
    task.turn();
    let args = ["report", "t1", "--attempt", &task.attempt, "--title", "All done", "--token", &task.token];
    insta::assert_snapshot!(pinned(&root.json_with_stdin(&args, b"It works.\n")), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"report","code":"report-accepted","root":"[DIR]/root","requestId":"req_fa93608d3808a42c","taskId":"t1","attemptId":"att_de15204e35ca515e","taskStatus":"reported","reportAttemptId":"att_de15204e35ca515e","bytes":10,"sha256":"37b93b226dd8e3073afa651d1c3694a21566725cf55790b581603c1d959cfcd2","lateReports":0,"reportPath":"[DIR]/root/sessions/ws/subagent-reports/t1/att_de15204e35ca515e.json","message":"task `t1` is reported"}
    "#);
    insta::assert_snapshot!(std::fs::read_to_string(report_file(&task)).unwrap(), @r#"{"version":1,"taskId":"t1","attemptId":"att_de15204e35ca515e","parentWorkspaceId":"ws","title":"All done","at":"2026-01-01T00:00:04.000Z","bytes":10,"sha256":"37b93b226dd8e3073afa651d1c3694a21566725cf55790b581603c1d959cfcd2","reportMarkdown":"It works.\n"}"#);
    insta::assert_snapshot!(root.tree(), @"
    config.json
    secret
    sessions/
    sessions/ws/
    sessions/ws/subagent-reports/
    sessions/ws/subagent-reports/t1/
    sessions/ws/subagent-reports/t1/att_de15204e35ca515e.json
    tasks/
    tasks/t1/
    tasks/t1/row.json
    ");
    insta::assert_snapshot!(row(&root, "t1"), @r#"
    {
      "taskId": "t1",
      "parentWorkspaceId": "ws",
      "taskStatus": "reported",
      "taskAttemptId": "att_de15204e35ca515e",
      "attempt": {
        "origin": "reserve",
        "owned": true,
        "receiptEligible": true,
        "reason": "a reservation is the first admission of its task",
        "since": "2026-01-01T00:00:01.000Z",
        "owner": {},
        "everAdmitted": true
      },
      "stopEpoch": 0,
      "sends": [
        {
          "sendId": "snd_de15204e35ca515e0001",
          "attemptId": "att_de15204e35ca515e",
          "owned": true,
          "state": "admitted",
          "turnId": "turn_de15204e35ca515e0001",
          "admittedAt": "2026-01-01T00:00:03.000Z",
          "since": "2026-01-01T00:00:03.000Z"
        }
      ],
      "sendsMinted": 1,
      "turnsMinted": 1,
      "reportAttemptId": "att_de15204e35ca515e",
      "reports": [
        {
          "attemptId": "att_de15204e35ca515e",
          "textSha256": "37b93b226dd8e3073afa651d1c3694a21566725cf55790b581603c1d959cfcd2",
          "textBytes": 10,
          "fileSha256": "80bfbcf28ec884aded0ab96efe974a873a15c3e6faa359c55145487014ad5ca7",
          "title": "All done",
          "at": "2026-01-01T00:00:04.000Z"
        }
      ],
      "createdAt": "2026-01-01T00:00:01.000Z",
      "updatedAt": "2026-01-01T00:00:04.000Z"
    }
    "#);
    assert_eq!(receipts(&root), "", "a report alone makes no receipt");
    insta::assert_snapshot!(root.run(&["report", "t1", "--show"]), @"
    exit 0
    --- stdout
    It works.
    ");
    insta::assert_snapshot!(root.json(&["report", "t1", "--show"]), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"report","code":"ok","root":"[DIR]/root","requestId":"req_1f668cb79ce77109","taskId":"t1","taskStatus":"reported","reportAttemptId":"att_de15204e35ca515e","lateReports":0,"text":"It works.\n","message":"the report of task `t1`"}
    "#);
}

#[test]
fn a_report_is_told_in_text_and_for_a_shell() {
    let root = TestRoot::new();
    let file = root.file("report.md");
    std::fs::write(&file, "It works.").unwrap();
    for (id, form) in [("t1", "text"), ("t2", "sh")] {
        let task = root.reserve_unknown(id).launched();
        task.turn();
        let args = [
            "report",
            id,
            "--attempt",
            &task.attempt,
            "--file",
            &file,
            "--token",
            &task.token,
            "--format",
            form,
        ];
        let out = pinned(&root.run(&args));
        match form {
            "text" => insta::assert_snapshot!(out, @"
            exit 0
            --- stdout
            task `t1` is reported
            taskId:          t1
            attemptId:       att_de15204e35ca515e
            taskStatus:      reported
            reportAttemptId: att_de15204e35ca515e
            bytes:           9
            sha256:          b22550984ae425e3ea0ed0fcc3ad554a42c7206bcc9ceef5cc72528463560efd
            lateReports:     0
            reportPath:      [DIR]/root/sessions/ws/subagent-reports/t1/att_de15204e35ca515e.json
            "),
            _ => insta::assert_snapshot!(out, @"
            exit 0
            --- stdout
            unset LYCHGATE_EXIT LYCHGATE_CODE LYCHGATE_ANSWER_ROOT LYCHGATE_REQUEST_ID LYCHGATE_ANSWER_TASK LYCHGATE_ANSWER_ATTEMPT LYCHGATE_MESSAGE LYCHGATE_HINT LYCHGATE_TASK_STATUS LYCHGATE_REASON LYCHGATE_REPORT_PATH LYCHGATE_REPORT_ATTEMPT_ID LYCHGATE_BYTES LYCHGATE_SHA256 LYCHGATE_LATE_REPORTS LYCHGATE_CURRENT_ATTEMPT_ID LYCHGATE_TEXT
            LYCHGATE_EXIT='0'
            LYCHGATE_CODE='report-accepted'
            LYCHGATE_TASK='t2'
            LYCHGATE_ATTEMPT='att_080127a3cb021db9'
            LYCHGATE_TASK_STATUS='reported'
            LYCHGATE_REPORT_PATH='[DIR]/root/sessions/ws/subagent-reports/t2/att_080127a3cb021db9.json'
            LYCHGATE_REPORT_ATTEMPT_ID='att_080127a3cb021db9'
            LYCHGATE_BYTES='9'
            LYCHGATE_SHA256='b22550984ae425e3ea0ed0fcc3ad554a42c7206bcc9ceef5cc72528463560efd'
            LYCHGATE_LATE_REPORTS='0'
            LYCHGATE_ANSWER_TASK='t2'
            LYCHGATE_ANSWER_ATTEMPT='att_080127a3cb021db9'
            LYCHGATE_ANSWER_ROOT='[DIR]/root'
            LYCHGATE_REQUEST_ID='req_0b4057279873b28c'
            LYCHGATE_MESSAGE='task `t2` is reported'
            "),
        }
    }
}

#[test]
fn a_worker_reports_also_while_its_attempt_is_closing_and_the_stop_leaves_the_report() {
    let root = TestRoot::new();
    let task = root.reserve_unknown("t1").launched();
    let turn = task.turn();
    root.json(&["stop", "t1"]).is(0, "stopping");
    let out = publish(&task, &task.attempt, &task.worker, b"just in time").is(0, "report-accepted");
    assert_eq!(out.get("taskStatus"), "reported");
    let out = task.settle(&turn).is(0, "turn-settled");
    assert_eq!((out.get("taskStatus"), out.get("receipt")), ("reported".into(), "execution-settled".into()));
    insta::assert_snapshot!(history(&root, "t1"), @"
    reserve | reserved | - | queued/open | -
    rotate | launched | queued/open | starting/open | -
    admit | admitted | starting/open | running/open | -
    stop | stopping | running/open | interrupted/closing | -
    report | report-accepted | interrupted/closing | reported/closing | -
    settle | turn-settled | reported/closing | reported/settled | -
    ");
}

#[test]
fn the_same_report_again_is_already_there_and_another_one_is_kept_but_does_not_count() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    task.turn();
    task.report("one").is(0, "report-accepted");
    let before = untouched(&root);
    let again = task.report("one").is(0, "already-reported");
    assert_eq!(before.len(), untouched(&root).len());
    assert_eq!(again.get("reportAttemptId"), task.attempt);
    // Whatever state the attempt is in by then, and whoever repeats it.
    root.json(&["settle", "t1", "--token", &task.token]).is(12, "obligations-owed");
    publish(&task, &task.attempt, "", b"one").is(0, "already-reported");
    let out = task.report("two").is(10, "late-report");
    insta::assert_snapshot!(out.get("reasonCode"), @"second-report");
    assert_eq!(root.run(&["report", "t1", "--show"]).stdout, "one");
    assert_eq!(late(&root), "two");
    assert_eq!(root.json(&["inspect", "t1"]).get("lateReports"), "1");
}

#[test]
fn every_refused_report_is_kept_with_its_reason_and_counted() {
    let root = TestRoot::new();
    let mut task = root.reserve_step("t1");
    let first = (task.attempt.clone(), task.token.clone());
    let other = root.reserve("t2");
    let mut n_late = 0;
    let mut refuse = |task: &Task<'_>, attempt: &str, token: &str, reason: &str| {
        n_late += 1;
        let text = format!("{n_late}: {reason}");
        let before = root.row("t1");
        let out = publish(task, attempt, token, text.as_bytes()).is(10, "late-report");
        assert_eq!((out.get("reasonCode"), out.get("lateReports")), (reason.to_owned(), n_late.to_string()));
        assert!(late(&root).contains(&text), "{reason}");
        let mut after = root.row("t1");
        let mut before = before;
        for row in [&mut before, &mut after] {
            for told in ["lateReports", "updatedAt", "history"] {
                row.as_object_mut().unwrap().remove(told);
            }
        }
        assert_eq!(before, after, "{reason}: only the count changes");
    };
    refuse(&task, &first.0, &first.1, "no-turn-running");
    task = task.launched();
    refuse(&task, &first.0, &first.1, "no-turn-running");
    let turn = task.turn();
    refuse(&task, &first.0, "", "not-owner");
    refuse(&task, &first.0, "tok_0", "not-owner");
    refuse(&task, &first.0, &other.token, "not-owner");
    refuse(&task, &other.attempt, &other.token, "stale-attempt");
    task.settle(&turn).is(0, "turn-settled");
    refuse(&task, &first.0, &first.1, "no-turn-running");
    root.json(&["settle", "t1", "--token", &task.token]).is(0, "settled");
    refuse(&task, &first.0, &first.1, "attempt-settled");
    task.rotated("reawaken");
    refuse(&task, &first.0, &first.1, "stale-attempt");
    root.json(&["stop", "t1"]).is(0, "stopped");
    task.claim(&[]).is(0, "claimed");
    refuse(&task, &task.attempt, &task.token, "retired");
    drop(other);
    insta::assert_snapshot!(pinned(&root.run(&["report", "t1", "--show", "--late"])), @"
    exit 0
    --- stdout
    1: no-turn-running
    2: no-turn-running
    3: not-owner
    4: not-owner
    5: not-owner
    6: stale-attempt
    7: no-turn-running
    8: attempt-settled
    9: stale-attempt
    10: retired
    ");
    insta::assert_snapshot!(history(&root, "t1"), @"
    reserve | reserved | - | queued/open | -
    report | late-report | queued/open | queued/open | no-turn-running
    rotate | launched | queued/open | starting/open | -
    report | late-report | starting/open | starting/open | no-turn-running
    admit | admitted | starting/open | running/open | -
    report | late-report | running/open | running/open | not-owner
    report | late-report | running/open | running/open | not-owner
    report | late-report | running/open | running/open | not-owner
    report | late-report | running/open | running/open | stale-attempt
    settle | turn-settled | running/open | running/open | -
    report | late-report | running/open | running/open | no-turn-running
    settle | settled | running/open | interrupted/settled | -
    report | late-report | interrupted/settled | interrupted/settled | attempt-settled
    rotate | rotated | interrupted/settled | running/open | the receipt of att_de15204e35ca515e proves it over
    report | late-report | running/open | running/open | stale-attempt
    stop | stopped | running/open | interrupted/settled | -
    claim-retire | claimed | interrupted/settled | interrupted/settled/retired | no-report
    report | late-report | interrupted/settled/retired | interrupted/settled/retired | retired
    ");
}

#[test]
fn a_refused_report_says_why_and_where_to_read_it() {
    let root = TestRoot::new();
    let task = root.reserve_unknown("t1").launched();
    let file = root.file("report.md");
    std::fs::write(&file, "early").unwrap();
    let args = ["report", "t1", "--attempt", &task.attempt, "--file", &file, "--token", &task.token];
    insta::assert_snapshot!(pinned(&root.run(&args)), @"
    exit 10
    --- stderr
    lychgate report: refused (late-report): attempt att_de15204e35ca515e of task `t1` has no turn in flight that could have made it; the report does not count, and is kept
    hint: read it with `report TASK --show --late`
    ");
    insta::assert_snapshot!(pinned(&root.json(&args)), @r#"
    exit 10
    --- stdout
    {"ok":false,"command":"report","code":"late-report","root":"[DIR]/root","requestId":"req_fa93608d3808a42c","reasonCode":"no-turn-running","taskId":"t1","attemptId":"att_de15204e35ca515e","taskStatus":"starting","reportAttemptId":null,"bytes":5,"sha256":"f408830bcc7fab370819172244aa32e3ba66a848835911c02629d9a4dff77992","lateReports":1,"message":"attempt att_de15204e35ca515e of task `t1` has no turn in flight that could have made it; the report does not count, and is kept","hint":"read it with `report TASK --show --late`"}
    "#);
    insta::assert_snapshot!(root.tree(), @"
    config.json
    secret
    sessions/
    sessions/ws/
    sessions/ws/subagent-reports/
    sessions/ws/subagent-reports/t1/
    sessions/ws/subagent-reports/t1/late/
    sessions/ws/subagent-reports/t1/late/att_de15204e35ca515e-f408830bcc7fab37.json
    tasks/
    tasks/t1/
    tasks/t1/row.json
    ");
    assert_eq!(root.row("t1")["lateReports"], 1, "the same text is kept once");
    let shown = root.json(&["report", "t1", "--show"]).is(10, "no-report");
    assert_eq!(shown.get("taskId"), "t1");
    let settled = root.json(&["settle", "t1", "--token", &task.token]).is(0, "settled");
    assert_eq!(settled.get("lateReports"), "1", "answers about a task count its late reports");
}

#[test]
fn a_report_without_a_word_is_empty() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    task.turn();
    let before = untouched(&root);
    for blank in ["", " ", "\n\n", " \t\r\n\u{b}\u{c}", "\u{3000}\u{2028}\u{a0}"] {
        task.report(blank).is(64, "report-empty");
    }
    insta::assert_snapshot!(pinned(&task.report(" ")), @r#"
    exit 64
    --- stdout
    {"ok":false,"command":"report","code":"report-empty","root":"[DIR]/root","requestId":"req_6de6b0d2c06e665e","message":"the report is blank","hint":"nothing was changed"}
    "#);
    assert_eq!(before, untouched(&root));
}

#[test]
fn a_report_that_is_not_utf_8_is_refused_wherever_it_breaks() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    task.turn();
    let mut late_break = vec![b'x'; 3 * 65_536 - 1];
    late_break.extend(b"\xc3\x28");
    let before = untouched(&root);
    for bytes in [&b"\xff"[..], b"good\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", &late_break] {
        publish(&task, &task.attempt, &task.token, bytes).is(64, "report-not-text");
    }
    assert_eq!(before, untouched(&root));
}

#[test]
fn sixteen_mebibytes_are_a_report_and_one_byte_more_is_too_large() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    task.turn();
    let file = root.file("big");
    let big = "é".repeat(LIMIT / 2);
    std::fs::write(&file, format!("{big}!")).unwrap();
    let args = ["report", "t1", "--attempt", &task.attempt, "--file", &file, "--token", &task.token];
    refused(&root, &args, 64, "report-too-large");
    std::fs::write(&file, &big).unwrap();
    let out = root.json(&args).is(0, "report-accepted");
    assert_eq!(out.get("bytes"), LIMIT.to_string());
    assert!(root.run(&["report", "t1", "--show"]).stdout == big, "shown as it was given");
    let row = std::fs::metadata(root.path().join("tasks/t1/row.json")).unwrap().len();
    assert!(row < 8192, "the text is beside the row, not in it: {row} bytes");
}

#[test]
fn a_terminal_is_not_waited_for() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    task.turn();
    let call = format!("{BIN} report t1 --attempt {} --token {} --print code", task.attempt, task.token);
    let root_path = root.path();
    let mut script = Command::new("script");
    script.args(["-qec", &call, "/dev/null"]).env("LYCHGATE_ROOT", root_path);
    // `script` gives its child a terminal of its own; its own input has ended.
    let out = script.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(64), "{told}");
    assert!(told.contains("report-empty"), "{told}");
    assert_eq!(root.row("t1")["lateReports"], serde_json::Value::Null);
}
