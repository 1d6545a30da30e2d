//! Tests 4 and 7: what is true of a task, from what lies on disk; and a row that lost its attempt id.

use crate::actors::Owner;
use crate::common::{Task, TestRoot};

/// Stopped, with a receipt, and its owner dead: all that a later process can go by is on disk. A second Stop
/// lets go of the record of the first one's commit, which would put a lost receipt back.
fn terminal<'a>(root: &'a TestRoot, id: &str) -> Task<'a> {
    let mut owner = Owner::start();
    let task = root.reserve_step_for(id, &owner).launched();
    let _ = task.stop().is(0, "stopped");
    let _ = task.stop().is(0, "already-stopped");
    owner.kill();
    task
}

/// What happens to a terminal row, or to what lies beside it.
type Change<'a> = Box<dyn Fn(&Task<'_>) + 'a>;

/// Rules 32 and 101.
#[test]
fn test_4_a_terminal_row_is_judged_by_what_lies_beside_it() {
    let root = TestRoot::new();
    let receipt = |task: &Task<'_>| root.receipt_file("ws", &task.id, &task.attempt);
    let reports = |task: &Task<'_>| {
        let folder = root.path().join("sessions").join("ws").join("subagent-reports").join(&task.id);
        std::fs::create_dir_all(&folder).unwrap();
        folder.join(format!("{}.json", task.attempt))
    };
    let table: Vec<(&str, Change<'_>, &str)> = vec![
        ("whole", Box::new(|_| ()), "terminal-no-report"),
        (
            "older",
            Box::new(|task| root.forge(&task.id, |row| row["taskAttemptId"] = "att_00000000000000ff".into())),
            "indeterminate/unowned-no-receipt",
        ),
        (
            "no-id",
            Box::new(|task| {
                root.forge(&task.id, |row| drop(row.as_object_mut().unwrap().remove("taskAttemptId")));
            }),
            "indeterminate/legacy-no-attempt-id",
        ),
        (
            "no-receipt",
            Box::new(|task| std::fs::remove_file(receipt(task)).unwrap()),
            "indeterminate/unowned-no-receipt",
        ),
        (
            "bad-receipt",
            Box::new(|task| std::fs::write(receipt(task), b"{}").unwrap()),
            "indeterminate/receipt-unreadable",
        ),
        (
            "bad-report",
            Box::new(|task| std::fs::write(reports(task), b"half a rep").unwrap()),
            "indeterminate/report-unreadable",
        ),
        (
            "marked",
            Box::new(|task| root.forge(&task.id, |row| row["taskAttemptUnproven"] = true.into())),
            "indeterminate/lineage-unproven",
        ),
        (
            "archived",
            Box::new(|task| {
                root.forge(&task.id, |row| row["archivedAt"] = "2026-01-01T00:00:00.000Z".into());
            }),
            "terminal-no-report",
        ),
    ];
    for (id, change, expected) in table {
        let task = terminal(&root, id);
        change(&task);
        assert_eq!(task.stands(), expected, "{id}");
        // What is not proven is not claimed either, and reading it changed nothing.
        let before = root.bytes();
        assert_eq!(task.stands(), expected, "{id}");
        assert!(before == root.bytes());
        assert_eq!(task.claim(&[]).exit == 0, expected == "terminal-no-report", "{id}");
    }
}

#[test]
fn test_4_a_report_that_counts_is_reported_and_a_missing_one_is_damage() {
    let root = TestRoot::new();
    let task = root.reserve_step("t").launched();
    let turn = task.turn();
    let _ = task.report("done").is(0, "report-accepted");
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(task.stands(), "reported");
    let path = root.path().join(format!("sessions/ws/subagent-reports/t/{}.json", task.attempt));
    let kept = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(task.stands(), "indeterminate/report-unreadable");
    let _ = task.claim(&["--mode", "retire-reported"]).is(11, "report-unreadable");
    std::fs::write(&path, &kept).unwrap();
    assert_eq!(task.stands(), "reported");
}

#[test]
fn test_4_an_unreadable_row_is_data_that_cannot_be_read_and_has_no_identity() {
    let root = TestRoot::new();
    let task = terminal(&root, "t");
    std::fs::write(root.path().join("tasks/t/row.json"), b"{\"sha256\":").unwrap();
    let seen = root.json(&["inspect", "t"]).is(65, "row-unreadable");
    assert_eq!((seen.get("outcome"), seen.get("identity.kind")), ("indeterminate".into(), "unknown".into()));
    let _ = task.claim(&[]).is(65, "row-unreadable");
    let none = root.json(&["inspect", "never-seen"]).is(0, "ok");
    assert_eq!(none.get("reasonCode"), "no-task-record");
}

#[test]
fn test_4_a_row_that_changes_between_the_readings_is_never_answered_from_both() {
    let root = TestRoot::new();
    let mut task = terminal(&root, "t");
    let reading = root.park(&["inspect", "t"], "between-readings");
    let owner = Owner::start();
    let _ = task.rotated_with("reawaken", &["--owner-pid", &owner.pid()]);
    let answer = reading.go();
    assert_eq!(
        (answer.get("outcome"), answer.get("identity.attemptId")),
        ("live".into(), task.attempt.clone())
    );
    // The receipt that goes away between the readings is no evidence either.
    let gone = terminal(&root, "gone");
    let reading = root.park(&["inspect", "gone"], "between-readings");
    std::fs::remove_file(root.receipt_file("ws", "gone", &gone.attempt)).unwrap();
    assert_eq!(reading.go().get("reasonCode"), "unowned-no-receipt");
}

#[test]
fn test_7_a_row_that_lost_its_attempt_id_is_indeterminate_and_its_old_receipt_never_matches() {
    let root = TestRoot::new();
    let mut task = terminal(&root, "t");
    let old = task.attempt.clone();
    root.forge("t", |row| drop(row.as_object_mut().unwrap().remove("taskAttemptId")));
    assert_eq!(task.stands(), "indeterminate/legacy-no-attempt-id");
    let _ = task.claim(&[]).is(10, "legacy-not-needed");
    let fresh = task.rotated_with("reawaken", &[]);
    assert_eq!(fresh.get("proven"), "false");
    assert_ne!(task.attempt, old);
    let _ = task.stop().is(0, "stopped");
    assert_eq!(task.receipts(), [old], "the old receipt stays, and no other is written");
    assert_eq!(task.stands(), "indeterminate/lineage-unproven");
    let _ = task.claim(&[]).is(11, "lineage-unproven");
}

#[test]
fn test_7_a_row_that_lost_its_mark_is_judged_by_its_receipt_and_has_none() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let mut task = root.reserve_step_for("t", &owner).launched();
    let turn = task.turn();
    let dead = task.again();
    let _ = task.stop().is(0, "stopping");
    owner.kill();
    let _ = task.rotated_with("reawaken", &[]);
    let _ = dead.settle(&turn).is(0, "turn-settled");
    let _ = task.stop().is(0, "stopped");
    root.forge("t", |row| drop(row.as_object_mut().unwrap().remove("taskAttemptUnproven")));
    assert_eq!(task.stands(), "indeterminate/unowned-no-receipt");
    let _ = task.claim(&[]).is(11, "no-settlement-evidence");
}
