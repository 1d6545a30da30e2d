//! What comes along with `import`, and as what.

use serde_json::{Value, json};

use super::builder::{ATTEMPT, MAIN, RUN, Xum, child, step, step_child, with};

const OTHER: &str = "att_00000000000000ff";

#[test]
fn status_identity_and_marker_come_along_and_what_was_active_is_nobodys() {
    let marked = json!({ "taskAttemptUnproven": true });
    for (row, status, proven, attempt) in [
        (child("t", "queued"), "queued", false, ATTEMPT),
        (child("t", "starting"), "starting", false, ATTEMPT),
        (child("t", "running"), "running", false, ATTEMPT),
        (child("t", "awaiting_report"), "running", false, ATTEMPT),
        (with(child("t", "running"), json!({ "taskStatus": null })), "running", false, ATTEMPT),
        (child("t", "interrupted"), "interrupted", true, ATTEMPT),
        (with(child("t", "interrupted"), marked), "interrupted", false, ATTEMPT),
        (with(child("t", "interrupted"), json!({ "taskAttemptId": null })), "interrupted", false, "null"),
    ] {
        let xum = Xum::new().row(row).write();
        assert_eq!(xum.import(&[]).is(0, "imported").get("tasks.taken"), "1");
        let out = xum.root.json(&["inspect", "t"]).is(0, "ok");
        assert_eq!((out.get("taskStatus"), out.get("proven")), (status.into(), proven.to_string()), "{out}");
        assert_eq!((out.get("identity.attemptId"), out.get("origin")), (attempt.into(), "import".into()));
        assert_eq!((out.get("owner.alive"), out.get("receiptEligible")), ("none".into(), "false".into()));
        assert_eq!(xum.root.row("t")["createdAt"], "2025-08-22T08:00:00.000Z");
    }
}

#[test]
fn nothing_is_admitted_without_a_fresh_attempt() {
    let xum = Xum::new().row(child("t", "running")).write();
    let _ = xum.import(&[]).is(0, "imported");
    let out = xum.root.json(&["admit", "t", "--attempt", ATTEMPT, "--start"]);
    out.is(10, "unowned-send-used");
    let out = xum.root.json(&["recover"]).is(0, "recovered");
    assert_eq!(out.get("recovered.0.taskId"), "t", "{out}");
    let row = xum.root.row("t");
    assert_ne!(row["taskAttemptId"], ATTEMPT);
    assert_eq!((&row["taskAttemptUnproven"], &row["pastAttempts"]), (&json!(true), &json!([ATTEMPT])));
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!((out.get("tasks.taken"), out.get("tasks.already")), ("0".into(), "1".into()));
    assert_eq!(xum.root.row("t"), row, "what became of it here stays");
}

#[test]
fn a_strict_receipt_comes_along_and_proves_here_what_it_proved_there() {
    let xum = Xum::new().row(step_child("t", "interrupted")).run("interrupted", &[step("t", "failed")], &[]);
    let xum = xum.receipt(MAIN, "t", ATTEMPT).receipt(MAIN, "t", OTHER).write();
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!((out.get("receipts.taken"), out.get("left")), ("2".into(), "[]".into()), "{out}");
    assert_eq!(xum.root.json(&["inspect", "t"]).get("outcome"), "terminal-no-report");
    let copy = format!("sessions/{MAIN}/subagent-attempt-settlements/t/{ATTEMPT}.json");
    let read = |path: std::path::PathBuf| -> Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    assert_eq!(read(xum.root.path().join(&copy)), read(xum.dir.join(&copy)), "the same record");
    let claim = ["claim-retire", "t", "--attempt", ATTEMPT, "--run", RUN, "--step", "t"];
    let more = ["--input-hash", "sha256:ab", "--parent", MAIN];
    let out = xum.root.json(&[claim.as_slice(), &more].concat()).is(0, "claimed");
    assert_eq!(out.json()["authority"], Value::Null, "on the receipt alone");
}

#[test]
fn a_report_comes_along_with_its_text_bound_or_not() {
    let text = "line one\n\u{1F600} \"quoted\" \\ \u{7}\ttab\n";
    for (attempt, file) in [(Some(ATTEMPT), ATTEMPT), (None, "unbound"), (Some(OTHER), OTHER)] {
        for status in ["reported", "interrupted"] {
            let xum = Xum::new().row(child("t", status)).report(MAIN, "t", attempt, text).write();
            let out = xum.import(&[]).is(0, "imported");
            assert_eq!((out.get("reports.taken"), out.get("left")), ("1".into(), "[]".into()), "{out}");
            let out = xum.root.json(&["inspect", "t"]).is(0, "ok");
            assert_eq!(
                (out.get("outcome"), out.get("report.title")),
                ("reported".into(), "Scan".into()),
                "{out}"
            );
            assert!(out.get("report.path").ends_with(&format!("/t/{file}.json")), "{out}");
            let shown = xum.root.run(&["report", "t", "--show"]);
            assert_eq!(shown.stdout, text, "{shown}");
            let row = xum.root.row("t");
            assert_eq!(row["reportAttemptId"], attempt.map_or(Value::Null, Value::from));
            assert_eq!(row["xum"]["structuredOutput"], json!({ "n": 1 }));
        }
    }
}

#[test]
fn a_claim_comes_along_unchanged_and_is_spent_where_it_was_spent() {
    let claim = |more: Value| {
        let claim = json!({
            "runId": RUN, "stepId": "t", "inputHash": "sha256:ab", "childTaskId": "t", "attemptId": ATTEMPT,
            "mode": "no-report", "at": "2025-08-22T09:00:00.000Z",
        });
        let row = with(step_child("t", "interrupted"), json!({ "taskAttemptRetiredBy": with(claim, more) }));
        Xum::new().row(row).receipt(MAIN, "t", ATTEMPT)
    };
    let ask = |xum: &Xum| {
        let claim = ["claim-retire", "t", "--attempt", ATTEMPT, "--run", RUN, "--step", "t"];
        xum.root.json(&[claim.as_slice(), &["--input-hash", "sha256:ab", "--parent", MAIN]].concat())
    };
    let spent = claim(json!({ "nonce": "n1", "replacementTaskId": "new" })).write();
    let _ = spent.import(&[]).is(0, "imported");
    let kept = &spent.root.row("t")["taskAttemptRetiredBy"];
    assert_eq!((&kept["at"], &kept["nonce"]), (&json!("2025-08-22T09:00:00.000Z"), &json!("n1")));
    assert_eq!(ask(&spent).is(10, "claim-spent").get("replacementTaskId"), "new");
    // An older version does not say what replaced the child; the checkpoint does.
    let by_step = json!({ "stepId": "t", "inputHash": "sha256:ab", "status": "started", "taskId": "new" });
    let silent = claim(json!({})).run("interrupted", &[step("t", "started"), by_step], &[]).write();
    let _ = silent.import(&[]).is(0, "imported");
    assert_eq!(ask(&silent).is(10, "claim-spent").get("replacementTaskId"), "new");
    let open = claim(json!({})).run("interrupted", &[step("t", "failed")], &[]).write();
    let _ = open.import(&[]).is(0, "imported");
    let _ = ask(&open).is(0, "claimed");
}

#[test]
fn runs_come_along_with_their_checkpoints() {
    let steps = [
        step("a", "started"),
        with(
            step("b", "failed"),
            json!({ "error": "ended without a report", "completedAt": "2025-08-22T09:00:00.000Z" }),
        ),
        step("c", "completed"),
        step("d", "started"),
        step("d", "interrupted"),
        json!({ "stepId": "shell", "inputHash": "sha256:cd", "status": "completed" }),
    ];
    let xum = ["a", "b", "c"].iter().fold(Xum::new(), |xum, id| xum.row(step_child(id, "interrupted")));
    let xum = xum.run("interrupted", &steps, &[]).write();
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!((out.get("runs.taken"), out.get("steps.taken")), ("1".into(), "4".into()), "{out}");
    let path = xum.root.path().join(format!("sessions/{MAIN}/workflows/{RUN}/run.json"));
    let run: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let run = &run["document"]["body"];
    let told: Vec<String> = run["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| format!("{} {} {} {}", step["stepId"], step["status"], step["taskId"], step["imported"]))
        .map(|text| text.replace('"', ""))
        .collect();
    assert_eq!(told, ["a started a true", "b failed b true", "c completed c true", "d started d true"]);
    assert_eq!((&run["parentWorkspaceId"], &run["stopped"]), (&json!(MAIN), &Value::Null));
    assert_eq!(
        (&run["steps"][0]["attemptId"], &run["steps"][3]["attemptId"]),
        (&json!(ATTEMPT), &Value::Null)
    );
    assert_eq!(run["steps"][1]["error"], "ended without a report");
    let left: Vec<String> =
        out.json()["left"].as_array().unwrap().iter().map(|left| left["why"].to_string()).collect();
    assert_eq!(left, ["\"result-not-here\"", "\"step-without-task\"", "\"no-task-record\""]);
}

#[test]
fn the_line_of_parents_comes_along() {
    let under =
        |id: &str, parent: &str| with(child(id, "interrupted"), json!({ "parentWorkspaceId": parent }));
    let xum = Xum::new().row(under("c", "b")).row(under("b", "a")).row(child("a", "interrupted")).write();
    let _ = xum.import(&[]).is(0, "imported");
    let row = xum.root.row("c");
    assert_eq!((&row["parentWorkspaceId"], &row["ancestors"]), (&json!("b"), &json!(["a", MAIN])));
    assert_eq!(xum.root.row("a")["ancestors"], Value::Null);
}

#[test]
fn twice_adds_nothing_and_a_dry_run_writes_nothing() {
    let xum = || {
        let xum = Xum::new().row(step_child("t", "interrupted")).row(child("u", "reported"));
        let xum = xum.run("interrupted", &[step("t", "started")], &[]).report(MAIN, "u", None, "done");
        xum.receipt(MAIN, "t", ATTEMPT).write()
    };
    let xum = xum();
    let counts = |out: &crate::common::Outcome, word: &str| {
        ["tasks", "reports", "receipts", "runs", "steps"]
            .map(|kind| out.get(&format!("{kind}.{word}")))
            .join(" ")
    };
    let before = xum.bytes();
    let dry = xum.import(&["--dry-run"]).is(0, "imported");
    assert_eq!((counts(&dry, "taken"), xum.root.tree()), ("2 1 1 1 1".into(), String::new()));
    let first = xum.import(&["--request-id", "r1"]).is(0, "imported");
    assert_eq!(counts(&first, "taken"), counts(&dry, "taken"), "it did what the dry run said");
    let tree = xum.root.tree();
    let again = xum.import(&["--request-id", "r1"]);
    assert_eq!(again.to_string(), first.to_string(), "the same call answers the same");
    let bytes = xum.root.bytes();
    let second = xum.import(&[]).is(0, "imported");
    assert_eq!(
        (counts(&second, "taken"), counts(&second, "already")),
        ("0 0 0 0 0".into(), "2 1 1 1 1".into())
    );
    let dry = xum.import(&["--dry-run"]).is(0, "imported");
    assert_eq!(counts(&dry, "already"), "2 1 1 1 1");
    assert_eq!((xum.root.tree(), xum.root.bytes()), (tree, bytes));
    assert_eq!(before, xum.bytes(), "the other root is only read");
}

#[test]
fn an_import_that_died_is_finished_by_the_next() {
    let xum = Xum::new().row(child("t1", "running")).row(child("t2", "running")).write();
    let dir = xum.dir.display().to_string();
    let mut command = xum.root.command(&["import", "--xum", &dir, "--json"]);
    command.env("LYCHGATE_TEST_PAUSE", "locked").env("LYCHGATE_TEST_PAUSE_DIR", xum.root.scratch());
    let mut call = command.env("LYCHGATE_TEST_PAUSE_EACH", "1").spawn().unwrap();
    xum.root.wait_reached("locked");
    std::fs::remove_file(xum.root.file("locked.reached")).unwrap();
    xum.root.go("locked");
    xum.root.wait_reached("locked");
    call.kill().unwrap();
    call.wait().unwrap();
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!((out.get("tasks.already"), out.get("tasks.taken")), ("1".into(), "1".into()), "{out}");
}

#[test]
fn what_the_application_did_meanwhile_is_told() {
    let xum = Xum::new().row(child("t", "running")).write();
    let dir = xum.dir.display().to_string();
    let call = xum.root.paused(&["import", "--xum", &dir], "locked");
    xum.root.wait_reached("locked");
    let later = Xum::new().row(child("t", "interrupted")).config();
    std::fs::write(xum.dir.join("config.json"), later).unwrap();
    xum.root.go("locked");
    let out = xum.root.finish(call).is(0, "imported");
    assert_eq!(out.get("changedMeanwhile"), "true");
    assert!(out.get("hint").contains("stop the application"), "{out}");
    assert_eq!(xum.root.row("t")["taskStatus"], "running", "as it was when it was read twice");
}
