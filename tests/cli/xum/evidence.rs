//! What is true of a task there, by its evidence; and damage, which is told and never guessed away.

use serde_json::{Value, json};

use super::builder::{ATTEMPT, MAIN, RUN, Xum, child, noted, receipt, step, step_child, with};

const OTHER: &str = "att_00000000000000ff";

fn pair(outcome: &str, reason: &str) -> (String, String) {
    (outcome.to_owned(), reason.to_owned())
}

#[test]
fn only_an_unmarked_interrupted_task_with_a_strict_receipt_and_no_report_is_over() {
    let over = || Xum::new().row(child("t", "interrupted")).receipt(MAIN, "t", ATTEMPT);
    assert_eq!(over().write().told("t"), pair("terminal-no-report", "null"));
    let marked = Xum::new().row(with(child("t", "interrupted"), json!({ "taskAttemptUnproven": true })));
    assert_eq!(
        marked.receipt(MAIN, "t", ATTEMPT).write().told("t"),
        pair("indeterminate", "lineage-unproven")
    );
    assert_eq!(over().report(MAIN, "t", None, "done").write().told("t"), pair("reported", "null"));
    let running = Xum::new().row(child("t", "running")).receipt(MAIN, "t", ATTEMPT).write();
    assert_eq!(running.told("t"), pair("indeterminate", "owner-unknown"));
    let other = Xum::new().row(child("t", "interrupted")).receipt(MAIN, "t", OTHER).write();
    assert_eq!(other.told("t"), pair("indeterminate", "unowned-no-receipt"));
    let index = r#"{"version":1,"artifactsByChildTaskId":{"t":{}}}"#;
    let named = over().file(&format!("sessions/{MAIN}/subagent-reports.json"), index).write();
    assert_eq!(named.told("t"), pair("indeterminate", "report-unreadable"));
    let again = with(
        child("t", "interrupted"),
        json!({ "taskExecutionId": "wst_1", "taskExecutionStatus": "running" }),
    );
    let again = Xum::new().row(again).receipt(MAIN, "t", ATTEMPT).write();
    assert_eq!(again.told("t"), pair("indeterminate", "owner-unknown"));
}

#[test]
fn a_receipt_that_is_not_exactly_right_is_unreadable() {
    let good = receipt("t", ATTEMPT, MAIN);
    for (field, value) in [
        ("version", json!(2)),
        ("taskId", json!("u")),
        ("attemptId", json!(OTHER)),
        ("attemptId", json!("att_1")),
        ("parentWorkspaceId", json!("bbbbbbbbbb")),
        ("source", json!("because")),
        ("settledAt", json!("yesterday, at a quarter past nineZ")),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        let xum = Xum::new().row(child("t", "interrupted")).receipt(MAIN, "t", ATTEMPT);
        let path = format!("sessions/{MAIN}/subagent-attempt-settlements/t/{ATTEMPT}.json");
        let xum = xum.file(&path, bad.to_string()).write();
        assert_eq!(xum.told("t"), pair("indeterminate", "receipt-unreadable"), "{bad}");
        let out = xum.import(&[]).is(0, "imported");
        assert_eq!((out.get("tasks.taken"), out.get("receipts.taken")), ("1".into(), "0".into()));
        assert_eq!(out.get("left.0.why"), "receipt-unreadable", "{out}");
    }
}

#[test]
fn a_damaged_report_or_index_is_no_absent_report() {
    let over = || Xum::new().row(child("t", "interrupted")).receipt(MAIN, "t", ATTEMPT);
    let body = format!("sessions/{MAIN}/subagent-reports/t/report.json");
    let index = format!("sessions/{MAIN}/subagent-reports.json");
    for (path, content) in [
        (&body, "{\"childTaskId\":\"t\",\"reportMark"),
        (&body, "{\"childTaskId\":\"u\",\"reportMarkdown\":\"x\"}"),
        (&body, "{\"childTaskId\":\"t\",\"reportMarkdown\":\"x\",\"attemptId\":\"att_1\"}"),
        (&index, "{\"version\":2,\"artifactsByChildTaskId\":{}}"),
        (&index, "not json"),
    ] {
        let xum = over().file(path, content).write();
        assert_eq!(xum.told("t"), pair("indeterminate", "report-unreadable"), "{content}");
        assert!(xum.problems().iter().any(|(what, _)| what == "report-unreadable"), "{content}");
    }
}

#[test]
fn a_report_in_the_folder_of_an_ancestor_is_found() {
    let xum = Xum::new().row(child("p", "running"));
    let xum = xum.row(with(child("t", "reported"), json!({ "parentWorkspaceId": "p" })));
    let xum = xum.report(MAIN, "t", Some(ATTEMPT), "done").write();
    let out = xum.inspect(&["t"]);
    assert_eq!((out.get("outcome"), out.get("report.in")), ("reported".into(), MAIN.into()), "{out}");
    assert_eq!(out.json()["ancestors"], json!([MAIN]));
}

#[test]
fn a_row_that_says_something_unknown_is_not_judged() {
    for fields in [
        json!({ "taskStatus": "sleeping" }),
        json!({ "taskStatus": 1 }),
        json!({ "taskAttemptId": "att_1" }),
        json!({ "taskAttemptUnproven": "yes" }),
        json!({ "taskAttemptRetiredBy": { "runId": RUN } }),
        json!({ "workflowTask": "scan" }),
        json!({ "parentWorkspaceId": 7 }),
    ] {
        let xum = Xum::new().row(with(child("t", "interrupted"), fields.clone()));
        let xum = xum.receipt(MAIN, "t", ATTEMPT).write();
        assert_eq!(xum.told("t"), pair("indeterminate", "row-unreadable"), "{fields}");
        assert_eq!(xum.problems(), [("row-unreadable".to_owned(), "t".to_owned())], "{fields}");
        let out = xum.import(&[]).is(0, "imported");
        assert_eq!((out.get("tasks.taken"), out.get("left.0.why")), ("0".into(), "row-unreadable".into()));
    }
}

#[test]
fn rows_of_one_id_in_two_projects_are_one_only_if_they_agree() {
    let moved = with(child("t", "interrupted"), json!({ "subProjectPath": "sub", "title": "other" }));
    let agree = || Xum::new().row(child("t", "interrupted")).project("/home/u/demo/sub");
    let xum = agree().row(moved).receipt(MAIN, "t", ATTEMPT).write();
    assert_eq!(xum.told("t"), pair("terminal-no-report", "null"));
    assert_eq!(xum.problems(), [("duplicate-id".to_owned(), "t".to_owned())]);
    let xum = agree().row(child("t", "running")).receipt(MAIN, "t", ATTEMPT).write();
    assert_eq!(xum.told("t"), pair("indeterminate", "row-unreadable"));
    assert_eq!(xum.import(&[]).get("tasks.taken"), "0");
}

#[test]
fn missing_and_circular_parents_are_told_and_end_the_chain() {
    let orphan = with(child("t", "running"), json!({ "parentWorkspaceId": "gone" }));
    let a = with(child("a", "running"), json!({ "parentWorkspaceId": "b" }));
    let b = with(child("b", "running"), json!({ "parentWorkspaceId": "a" }));
    let own = with(child("c", "running"), json!({ "parentWorkspaceId": "c" }));
    let xum = Xum::new().row(orphan).row(a).row(b).row(own).write();
    let mut problems = xum.problems();
    problems.sort();
    let told: Vec<String> = problems.into_iter().map(|(what, at)| format!("{what} {at}")).collect();
    assert_eq!(told, ["parent-cycle a", "parent-cycle b", "parent-cycle c", "parent-missing t"]);
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!(out.get("tasks.taken"), "4", "{out}");
    assert_eq!(xum.root.row("a")["parentWorkspaceId"], "b");
    let _ = xum.root.json(&["stop", "a", "--tree"]);
}

#[test]
fn torn_and_malformed_lines_of_journals_are_skipped_and_told() {
    let xum = Xum::new().row(step_child("t", "interrupted"));
    let xum = xum.run("interrupted", &[step("t", "started")], &[noted("t")]);
    let line = step("t", "started");
    let xum = xum.in_run("steps.jsonl", format!("{line}\nnot json\n{{\"stepId\":\"t\",\"inputHa")).write();
    assert_eq!(xum.inspect(&["t"]).get("situation"), "unresolved-child");
    let problems: Vec<String> = xum.problems().into_iter().map(|(what, _)| what).collect();
    assert_eq!(problems, ["checkpoints-unreadable", "line-unreadable", "torn-line"]);
}

#[test]
fn the_four_children_that_had_no_attempt_ids_are_told_for_what_they_are() {
    let ids = ["1111111111", "2222222222", "3333333333", "4444444444"];
    let archived = json!({
        "taskAttemptId": null, "archivedAt": "2025-08-23T00:00:00.000Z", "taskLaunchError": "Task interrupted",
    });
    let xum =
        ids.iter().fold(Xum::new(), |xum, id| xum.row(with(step_child(id, "interrupted"), archived.clone())));
    let steps: Vec<Value> = ids.iter().map(|id| step(id, "started")).collect();
    let events: Vec<Value> = ids.iter().map(|id| noted(id)).collect();
    let failures: Value = ids
        .iter()
        .map(|id| {
            ((*id).to_owned(), json!({ "errorType": "task_recovery_limit", "errorMessage": "gave up" }))
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let failures = json!({ "version": 1, "failuresByChildTaskId": failures });
    let xum = xum.run("interrupted", &steps, &events);
    let xum = xum.file(&format!("sessions/{MAIN}/subagent-failures.json"), failures.to_string()).write();
    for id in ids {
        let out = xum.inspect(&[id]);
        assert_eq!(
            (out.get("outcome"), out.get("reasonCode")),
            pair("indeterminate", "legacy-no-attempt-id")
        );
        assert_eq!((out.get("situation"), out.get("archived")), ("unresolved-child".into(), "true".into()));
        assert_eq!(out.get("failure.type"), "task_recovery_limit");
        assert_eq!(out.get("identity.kind"), "legacy");
    }
    assert_eq!(xum.import(&[]).get("tasks.taken"), "4");
    for id in ids {
        let row = xum.root.row(id);
        assert_eq!((&row["taskAttemptId"], &row["taskAttemptUnproven"]), (&Value::Null, &json!(true)));
        assert_eq!(row["workflowTask"]["inputHash"], "sha256:ab");
        assert_eq!(row["xum"]["failure"]["kind"], "task_recovery_limit");
        assert_eq!(xum.root.json(&["inspect", id]).get("reasonCode"), "legacy-no-attempt-id");
    }
}
