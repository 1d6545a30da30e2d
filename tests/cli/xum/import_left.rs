//! What `import` does not take over, and that it says so.

use serde_json::{Value, json};

use super::builder::{ATTEMPT, MAIN, RUN, Xum, child, step, step_child, with};
use crate::field::injected;

fn left(out: &crate::common::Outcome) -> Vec<String> {
    let json = out.json();
    let word = |left: &Value, field: &str| left[field].as_str().unwrap().to_owned();
    let left = json["left"].as_array().unwrap();
    left.iter()
        .map(|left| format!("{} {} {}", word(left, "kind"), word(left, "id"), word(left, "why")))
        .collect()
}

#[test]
fn a_task_of_our_own_is_never_touched() {
    let xum = Xum::new().row(child("t", "running")).row(child("u", "running")).write();
    let _ours = xum.root.reserve("t");
    let row = xum.root.row("t");
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!((out.get("tasks.taken"), left(&out)), ("1".into(), vec!["task t task-exists".to_owned()]));
    assert_eq!(left(&xum.import(&["--dry-run"])), ["task t task-exists"]);
    assert_eq!(xum.root.row("t"), row);
}

#[test]
fn a_task_of_another_such_root_is_told_apart() {
    let xum = Xum::new().row(child("t", "running")).write();
    let other = Xum::new().row(child("t", "interrupted")).write();
    let _ = xum.import(&[]).is(0, "imported");
    let dir = other.dir.display().to_string();
    let out = xum.root.json(&["import", "--xum", &dir]).is(0, "imported");
    assert_eq!(left(&out), ["task t imported-from-another-root"]);
}

#[test]
fn a_run_of_our_own_or_of_another_root_is_never_touched() {
    let xum = Xum::new()
        .row(step_child("t", "interrupted"))
        .run("interrupted", &[step("t", "started")], &[])
        .write();
    let other = Xum::new().run("failed", &[step("t", "failed")], &[]).write();
    let _ = xum.import(&[]).is(0, "imported");
    let before = xum.root.bytes();
    let dir = other.dir.display().to_string();
    let out = xum.root.json(&["import", "--xum", &dir]).is(0, "imported");
    assert_eq!(left(&out), [format!("run {RUN} run-exists")]);
    assert_eq!(xum.root.bytes(), before);
}

#[test]
fn ids_that_cannot_be_names_here_are_left() {
    let long = "x".repeat(129);
    let xum = Xum::new().row(child(&long, "running")).row(child("a\nb", "running"));
    let xum = xum.row(with(child("t", "running"), json!({ "parentWorkspaceId": long.clone() })));
    let steps = [
        with(step("s", "started"), json!({ "taskId": long })),
        with(step("s", "started"), json!({ "stepId": "" })),
    ];
    let xum = xum.run("interrupted", &steps, &[]).write();
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!((out.get("tasks.taken"), out.get("steps.taken")), ("0".into(), "1".into()), "{out}");
    let mut whys: Vec<String> =
        left(&out).iter().map(|left| left.rsplit(' ').next().unwrap().to_owned()).collect();
    whys.sort();
    let wanted = ["id-not-usable", "id-not-usable", "id-not-usable", "no-task-record", "parent-not-usable"];
    assert_eq!(whys, wanted);
}

#[test]
fn a_report_that_ours_cannot_be_is_left_and_its_task_is_not_taken_for_one_without() {
    let blank = Xum::new().row(child("t", "reported")).report(MAIN, "t", Some(ATTEMPT), " \n\t").write();
    assert_eq!(left(&blank.import(&["--dry-run"])), ["report t report-empty"]);
    assert_eq!(left(&blank.import(&[]).is(0, "imported")), ["report t report-empty"]);
    assert_eq!(blank.root.json(&["inspect", "t"]).get("reasonCode"), "report-unreadable");
    let large = "x".repeat(16 * 1024 * 1024 + 1);
    let large = Xum::new().row(child("t", "reported")).report(MAIN, "t", Some(ATTEMPT), &large).write();
    assert_eq!(left(&large.import(&[]).is(0, "imported")), ["report t report-too-large"]);
    let claim = ["claim-retire", "t", "--attempt", ATTEMPT, "--run", RUN, "--step", "t"];
    let refused = large.root.json(&[claim.as_slice(), &["--input-hash", "h", "--parent", MAIN]].concat());
    assert_ne!(refused.exit, 0, "{refused}");
}

#[test]
fn a_run_whose_checkpoints_cannot_all_be_read_is_stopped_here() {
    let run =
        || Xum::new().row(step_child("t", "interrupted")).run("interrupted", &[step("t", "started")], &[]);
    let lost = run().in_run("steps.jsonl", format!("garbage\n{}\n", step("t", "started"))).write();
    let missing = run().write();
    std::fs::remove_file(missing.dir.join(format!("sessions/{MAIN}/workflows/{RUN}/run.json"))).unwrap();
    let other =
        run().in_run("run.json", json!({ "id": "wfr_other", "workspaceId": MAIN }).to_string()).write();
    for xum in [lost, missing, other] {
        let out = xum.import(&[]).is(0, "imported");
        assert_eq!(
            (out.get("runs.taken"), left(&out)),
            ("1".into(), vec![format!("run {RUN} checkpoints-unreadable")])
        );
        let path = xum.root.path().join(format!("sessions/{MAIN}/workflows/{RUN}/run.json"));
        let run: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let run = &run["document"]["body"];
        assert!(run["stopped"]["reason"].as_str().unwrap().contains("until a person resumes it"), "{run}");
        assert_eq!((&run["stopEpoch"], &run["steps"][0]["taskId"]), (&json!(1), &json!("t")));
    }
}

#[test]
fn what_lies_in_the_way_of_one_task_keeps_no_other_from_being_taken_over() {
    let xum = Xum::new().row(child("t1", "running")).row(child("t2", "running")).write();
    let _ = xum.root.reserve("ours");
    std::fs::write(xum.root.path().join("tasks").join("t1"), b"in the way").unwrap();
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!((left(&out), out.get("tasks.taken")), (vec!["task t1 row-unreadable".to_owned()], "1".into()));
}

#[test]
fn a_disk_that_fails_ends_the_import_and_the_next_one_goes_on() {
    let xum = ["t1", "t2", "t3"].iter().fold(Xum::new(), |xum, id| xum.row(child(id, "running"))).write();
    let _ = xum.root.reserve("ours");
    let dir = xum.dir.display().to_string();
    let args = ["import", "--xum", &dir];
    // A row's own rename is the last step before it is visible.
    let out = injected(&xum.root, "renameat", "error=ENOSPC:when=2+", &args);
    assert_eq!(out.clone().is(74, "io").get("tasks.taken"), "1", "{out}");
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!((out.get("tasks.already"), out.get("tasks.taken")), ("1".into(), "2".into()), "{out}");
}
