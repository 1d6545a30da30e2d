//! What is taken over of a step and its child, so that no step that had a child there gets a second one here.

use serde_json::{Value, json};

use super::builder::{ATTEMPT, MAIN, RUN, Xum, child, step, step_child, with};
use crate::common::Outcome;

/// Asks our root for the child of a step.
fn ask(xum: &Xum, step: &str) -> Outcome {
    let args = ["reserve", "--run", RUN, "--step", step, "--input-hash", "sha256:ab", "--parent", MAIN];
    xum.root.json(&args)
}

/// Everything that was left: kind, id and why.
fn left(out: &Outcome) -> Vec<String> {
    let json = out.json();
    let word = |left: &Value, field: &str| left[field].as_str().unwrap().to_owned();
    let left = json["left"].as_array().unwrap();
    left.iter().map(|l| format!("{} {} {}", word(l, "kind"), word(l, "id"), word(l, "why"))).collect()
}

#[test]
fn a_row_that_names_a_step_without_a_checkpoint_is_its_prior_child() {
    let xum = Xum::new().row(step_child("lost", "interrupted")).row(step_child("busy", "running"));
    let xum = xum.row(step_child("over", "interrupted")).receipt(MAIN, "over", ATTEMPT);
    let xum = xum.row(step_child("told", "reported")).report(MAIN, "told", Some(ATTEMPT), "done");
    let retried = with(
        step_child("former", "interrupted"),
        json!({ "workflowTask": { "runId": RUN, "stepId": "kept" } }),
    );
    let xum = xum.row(retried).row(step_child("kept", "interrupted"));
    let earlier = with(step("kept", "started"), json!({ "taskId": "former" }));
    let xum = xum.run("interrupted", &[earlier, step("kept", "started")], &[]).write();
    let missing = |id: &str| ("checkpoint-missing".to_owned(), id.to_owned());
    assert_eq!(xum.problems(), ["busy", "lost", "over", "told"].map(missing));
    let _ = xum.import(&[]).is(0, "imported");
    let before = xum.root.bytes();
    for (step, reason) in [("lost", "unowned-no-receipt"), ("busy", "unowned-no-receipt")] {
        let out = ask(&xum, step).is(11, "unresolved");
        assert_eq!((out.get("taskId"), out.get("reasonCode")), (step.into(), reason.into()));
    }
    assert_eq!(ask(&xum, "kept").is(11, "unresolved").get("taskId"), "kept");
    assert_eq!(xum.root.bytes(), before);
    assert_eq!(ask(&xum, "over").is(0, "reserved").get("replaces"), "over");
    assert_eq!(xum.root.row("over")["workflowTask"]["inputHash"], "sha256:ab");
    let _ = ask(&xum, "told").is(10, "adopt");
    let args = ["step", "complete", "--run", RUN, "--step", "told", "--input-hash", "sha256:ab"];
    let done = xum.root.json(&[args.as_slice(), &["--parent", MAIN]].concat()).is(0, "step-completed");
    assert_eq!(done.get("taskId"), "told");
    let _ = ask(&xum, "told").is(10, "completed");
    let _ = ask(&xum, "fresh").is(0, "reserved");
    let run = xum.root.json(&["inspect", "--run", RUN]).is(0, "ok").json();
    let unrecorded = run["steps"].as_array().unwrap().iter().filter(|step| step["status"] == "unrecorded");
    let unrecorded: Vec<_> = unrecorded.map(|step| (&step["taskId"], &step["inputHash"])).collect();
    assert_eq!(unrecorded, [(&json!("busy"), &Value::Null), (&json!("lost"), &Value::Null)]);
}

#[test]
fn a_child_whose_record_got_lost_after_its_predecessors_stands_in_the_way_of_another() {
    let newer =
        with(step_child("newer", "running"), json!({ "workflowTask": { "runId": RUN, "stepId": "t" } }));
    let xum = Xum::new().row(step_child("t", "interrupted")).receipt(MAIN, "t", ATTEMPT).row(newer);
    let torn = format!("{}\n{{\"stepId\":\"t\",", step("t", "failed"));
    let xum = xum.run("interrupted", &[], &[]).in_run("steps.jsonl", torn).write();
    let _ = xum.import(&[]).is(0, "imported");
    let before = xum.root.bytes();
    assert_eq!(ask(&xum, "t").is(11, "unresolved").get("reasonCode"), "checkpoint-mismatch");
    assert_eq!(xum.root.bytes(), before);
    let _ = xum.import(&[]).is(0, "imported");
    assert_eq!(xum.root.bytes(), before);
}

#[test]
fn a_run_that_is_gone_is_stopped_here_and_its_children_are_known() {
    let xum = Xum::new().row(step_child("t", "interrupted")).write();
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!(left(&out), [format!("run {RUN} checkpoints-unreadable")]);
    let _ = ask(&xum, "t").is(10, "run-stopped");
    let args =
        ["reserve", "--run", RUN, "--step", "t", "--input-hash", "x", "--parent", MAIN, "--resume", "1"];
    assert_eq!(xum.root.json(&args).is(11, "unresolved").get("taskId"), "t");
    let _ = xum.import(&[]).is(0, "imported");
    assert_eq!(ask(&xum, "t").is(11, "unresolved").get("taskId"), "t", "what a person decided stays");
}

#[test]
fn a_later_import_adds_what_is_new_and_tells_what_changed() {
    let xum = Xum::new().row(step_child("a", "running")).row(step_child("b", "interrupted"));
    let xum = xum.run("running", &[step("a", "started"), step("b", "started")], &[]).write();
    let _ = xum.import(&[]).is(0, "imported");
    let row = xum.root.row("a");
    let later = Xum::new().row(step_child("a", "reported")).row(step_child("b", "interrupted"));
    let later = later.row(step_child("c", "running")).row(step_child("d", "running")).config();
    std::fs::write(xum.dir.join("config.json"), later).unwrap();
    let steps = [step("a", "completed"), step("b", "started"), step("c", "started")];
    let xum = xum.run("running", &steps, &[]).report(MAIN, "a", Some(ATTEMPT), "done");
    let dry = xum.import(&["--dry-run"]).is(0, "imported");
    let second = xum.import(&["--request-id", "two"]).is(0, "imported");
    for field in ["tasks", "reports", "runs", "steps", "left"] {
        assert_eq!(dry.get(field), second.get(field), "{field}: it did what the dry run said");
    }
    assert_eq!(left(&second), [format!("step {RUN} a changed-since"), "task a changed-since".to_owned()]);
    let counts = |kind: &str| (second.get(&format!("{kind}.taken")), second.get(&format!("{kind}.already")));
    assert_eq!(counts("tasks"), ("2".into(), "1".into()));
    assert_eq!(counts("runs"), ("0".into(), "1".into()));
    assert_eq!(counts("steps"), ("1".into(), "2".into()));
    assert_eq!(xum.import(&["--request-id", "two"]).stdout, second.stdout, "a lost answer is given again");
    assert_eq!(xum.root.row("a"), row, "what is here stays");
    for step in ["c", "d"] {
        assert_eq!(ask(&xum, step).is(11, "unresolved").get("taskId"), step);
    }
    let bytes = xum.root.bytes();
    let third = xum.import(&[]).is(0, "imported");
    assert_eq!((third.get("tasks.taken"), third.get("steps.taken")), ("0".into(), "0".into()));
    assert_eq!(xum.root.bytes(), bytes);
}

#[test]
fn an_import_that_died_leaves_no_step_that_seems_to_have_had_no_child() {
    let xum = Xum::new().row(step_child("t", "interrupted")).receipt(MAIN, "t", ATTEMPT);
    let xum = xum.run("interrupted", &[step("t", "started")], &[]).write();
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
    assert_eq!(ask(&xum, "t").is(11, "unresolved").get("reasonCode"), "no-task-record");
    let _ = xum.import(&[]).is(0, "imported");
    assert_eq!(ask(&xum, "t").is(0, "reserved").get("replaces"), "t");
}

/// A child with a claim for its step, and the checkpoint it is for.
fn claimed(fields: Value, status: &str) -> Xum {
    let claim = json!({
        "runId": RUN, "stepId": "t", "inputHash": "sha256:ab", "childTaskId": "t", "attemptId": ATTEMPT,
        "mode": "no-report", "at": "2025-08-22T09:00:00.000Z", "nonce": "n1",
    });
    let row = with(step_child("t", status), json!({ "taskAttemptRetiredBy": with(claim, fields) }));
    Xum::new().row(row).receipt(MAIN, "t", ATTEMPT).run("interrupted", &[step("t", "failed")], &[])
}

#[test]
fn a_claim_whose_replacement_is_missing_replaces_nothing_again() {
    let xum = claimed(json!({ "replacementTaskId": "gone" }), "interrupted").write();
    let _ = xum.import(&[]).is(0, "imported");
    let out = ask(&xum, "t").is(11, "unresolved");
    assert_eq!((out.get("taskId"), out.get("reasonCode")), ("gone".into(), "no-task-record".into()));
    // Spent is spent, also for a replacement whose id cannot be a name here.
    let xum = claimed(json!({ "replacementTaskId": "x".repeat(200) }), "interrupted").write();
    let _ = xum.import(&[]).is(0, "imported");
    assert_eq!(ask(&xum, "t").is(11, "unresolved").get("reasonCode"), "no-task-record");
}

#[test]
fn a_claim_that_cannot_be_is_not_taken_over_and_retires_nothing() {
    let itself = claimed(json!({ "replacementTaskId": "t" }), "interrupted");
    let no_name = claimed(json!({ "replacementTaskId": 7 }), "interrupted");
    let empty = claimed(json!({ "replacementTaskId": "" }), "interrupted");
    let at_work = claimed(json!({}), "running");
    for xum in [itself, no_name, empty, at_work].map(Xum::write) {
        let out = xum.import(&[]).is(0, "imported");
        assert_eq!(left(&out), ["task t row-unreadable"]);
        assert_eq!(xum.told("t"), ("indeterminate".into(), "row-unreadable".into()));
        assert_eq!(ask(&xum, "t").is(11, "unresolved").get("reasonCode"), "no-task-record");
    }
}

#[test]
fn replacements_that_come_back_to_each_other_are_unresolved() {
    let claim = |task: &str, next: &str| {
        json!({
            "runId": RUN, "stepId": "t", "inputHash": "sha256:ab", "childTaskId": task, "attemptId": ATTEMPT,
            "mode": "no-report", "at": "2025-08-22T09:00:00.000Z", "replacementTaskId": next,
        })
    };
    let row = |task: &str, next: &str| {
        with(child(task, "interrupted"), json!({ "taskAttemptRetiredBy": claim(task, next) }))
    };
    let xum = Xum::new().row(row("t", "u")).row(row("u", "t"));
    let xum = xum.run("interrupted", &[step("t", "failed")], &[]).write();
    let _ = xum.import(&[]).is(0, "imported");
    let before = xum.root.bytes();
    assert_eq!(ask(&xum, "t").is(11, "unresolved").get("reasonCode"), "checkpoint-mismatch");
    assert_eq!(xum.root.bytes(), before);
    let run = xum.root.json(&["inspect", "--run", RUN]).is(0, "ok");
    assert_eq!(run.get("steps.0.reasonCode"), "checkpoint-mismatch");
}

#[test]
fn a_result_that_does_not_come_along_is_told_and_where_it_stays() {
    let xum = Xum::new().run("interrupted", &[step("gone", "completed")], &[]).write();
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!(left(&out), [format!("report {RUN} gone result-not-here")]);
    let out = ask(&xum, "gone").is(10, "completed");
    assert!(out.get("resultPath").ends_with(&format!("{MAIN}/workflows/{RUN}/steps.jsonl")), "{out}");
}

#[test]
fn a_step_that_failed_only_here_is_no_reason_to_replace_a_legacy_child() {
    let legacy = with(step_child("t", "interrupted"), json!({ "taskAttemptId": null }));
    let xum = Xum::new().run("interrupted", &[step("t", "started")], &[]).write();
    let _ = xum.import(&[]).is(0, "imported");
    // Its row is not there yet, so nothing shows that it is a legacy child.
    let args = ["step", "fail", "--run", RUN, "--step", "t", "--input-hash", "sha256:ab", "--parent", MAIN];
    let _ = xum.root.json(&args).is(0, "step-failed");
    std::fs::write(xum.dir.join("config.json"), Xum::new().row(legacy).config()).unwrap();
    assert_eq!(xum.import(&[]).is(0, "imported").get("tasks.taken"), "1");
    let out = ask(&xum, "t").is(11, "unresolved");
    assert_eq!(out.get("reasonCode"), "legacy-no-attempt-id");
}
