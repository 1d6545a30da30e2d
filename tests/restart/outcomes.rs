//! Test 8: every end that a child can come to, against a started and a failed record of its step, as the process
//! that resumes the step finds it.

use serde_json::json;

use crate::actors::Owner;
use crate::builder::{ATTEMPT, MAIN, RUN, Xum, step, step_child, with};
use crate::common::{Outcome, Task, TestRoot};
use crate::kit::{
    ask, ask_as, books, checkpoint, child, cut_short, dead_child, fail, no_replacement, one_replacement,
    owned, rows, unresolved,
};

/// What a resume comes to.
enum Says {
    /// The child is retired in this mode, and replaced once.
    Replaced(&'static str),
    /// Refused with this exit and code, and for this reason if it is unresolved.
    No(i32, &'static str, Option<&'static str>),
}

const ADOPT: Says = Says::No(10, "adopt", None);
const REATTACH: Says = Says::No(10, "reattach", None);
const NO_REPORT: Says = Says::Replaced("no-report");
const REPORTED: Says = Says::Replaced("retire-reported");

const fn open(reason: &'static str) -> Says {
    Says::No(11, "unresolved", Some(reason))
}

/// One end of a child, and what a resume says under a started record and under a failed one.
struct End {
    what: &'static str,
    make: fn(&TestRoot) -> Task<'_>,
    /// What befalls the files after that.
    damage: fn(&Task<'_>),
    started: Says,
    failed: Says,
}

impl End {
    const fn of(what: &'static str, make: fn(&TestRoot) -> Task<'_>, started: Says, failed: Says) -> Self {
        Self { what, make, damage: |_| {}, started, failed }
    }

    /// Nobody can tell what became of it, under either record, for this reason.
    const fn untold(what: &'static str, make: fn(&TestRoot) -> Task<'_>, reason: &'static str) -> Self {
        Self::of(what, make, open(reason), open(reason))
    }

    const fn damaged(mut self, damage: fn(&Task<'_>)) -> Self {
        self.damage = damage;
        self
    }
}

#[track_caller]
fn play(end: &End, failed: bool) {
    let what = format!("{}, the step {}", end.what, if failed { "failed" } else { "started" });
    let root = TestRoot::new();
    let task = (end.make)(&root);
    if failed {
        fail(&root);
    }
    (end.damage)(&task);
    let status = if failed { "failed" } else { "started" };
    match if failed { &end.failed } else { &end.started } {
        Says::No(exit, code, reason) => {
            let said = ask(&root, &[]);
            assert_eq!((said.exit, said.code().as_str()), (*exit, *code), "{what}: {said}");
            let _ = unresolved(&root, *exit, code, *reason);
            assert_eq!(checkpoint(&root), (status.into(), task.id.clone()), "{what}");
            assert!(!root.tree().contains("run.step.2/row.json"), "{what}");
            let seen = root.json(&["inspect", &task.id]);
            assert!(!seen.json()["retiredBy"].is_object(), "{what}: {seen}");
        }
        Says::Replaced(mode) => {
            let next = Owner::start();
            let new = ask_as(&root, &next);
            assert_eq!((new.exit, new.code().as_str()), (0, "reserved"), "{what}: {new}");
            assert_eq!(one_replacement(&root, &task), new.get("taskId"), "{what}");
            assert_eq!(root.row(&task.id)["taskAttemptRetiredBy"]["mode"], *mode, "{what}");
            assert_eq!(claims(&root, &task), 1, "{what}: exactly one claim");
            let told = [
                "run.step.1 none -> started",
                "run.step.1 started -> failed",
                "run.step.2 failed -> started",
            ];
            assert_eq!(root.step_events(), told, "{what}: disposed before it is replaced");
            let again = ask(&root, &[]).is(10, "reattach");
            assert_eq!(again.get("taskId"), new.get("taskId"), "{what}");
            assert_eq!(rows(&root).len(), 2, "{what}");
        }
    }
}

fn claims(root: &TestRoot, task: &Task<'_>) -> usize {
    let row = root.row(&task.id);
    let events = row["history"]["events"].as_array().unwrap();
    events.iter().filter(|event| event["what"] == "claimed").count()
}

/// Reported and its turn ended, by an owner that is dead or that nobody knows.
fn reported(root: &TestRoot, known: bool, close: bool) -> Task<'_> {
    let mut owner = Owner::start();
    let task = child(root, Some(&owner).filter(|_| known));
    let turn = task.turn();
    let _ = task.report("done").is(0, "report-accepted");
    let _ = task.settle(&turn).is(0, "turn-settled");
    if close {
        let _ = task.close().is(0, "settled");
    }
    owner.kill();
    task
}

/// Reported by its first attempt; the second one was stopped without a report.
fn reported_before(root: &TestRoot) -> Task<'_> {
    let mut task = reported(root, false, true);
    let _ = task.rotated("reactivate");
    cut_short(&task);
    task
}

fn alive(root: &TestRoot) -> Task<'_> {
    let task = owned(root, &ask(root, &["--owner-pid", &std::process::id().to_string()]).is(0, "reserved"));
    task.launched()
}

fn closing(root: &TestRoot) -> Task<'_> {
    let task = alive(root);
    let _ = task.turn();
    let _ = task.stop().is(0, "stopping");
    task
}

fn queued_by_the_dead(root: &TestRoot) -> Task<'_> {
    let mut owner = Owner::start();
    let task = owned(root, &ask_as(root, &owner).is(0, "reserved"));
    owner.kill();
    task
}

fn died_at_work(root: &TestRoot) -> Task<'_> {
    let mut owner = Owner::start();
    let task = child(root, Some(&owner));
    let _ = task.turn();
    owner.kill();
    task
}

fn unknown_at_work(root: &TestRoot) -> Task<'_> {
    let task = child(root, None);
    let _ = task.turn();
    task
}

/// Re-driven over a turn that nobody ever proved over; that turn has ended by now.
fn marked(root: &TestRoot) -> Task<'_> {
    let mut task = child(root, None);
    let turn = task.turn();
    let fresh = root.json(&["rotate", &task.id, "--as", "startup", "--unproven"]).is(0, "rotated");
    let _ = task.settle(&turn).is(0, "turn-settled");
    let _ = task.stop().is(0, "stopped");
    task.attempt = fresh.get("attemptId");
    task
}

fn reported_and_settled(root: &TestRoot) -> Task<'_> {
    reported(root, true, true)
}

fn ends() -> Vec<End> {
    let pending = || Says::No(12, "cleanup-pending", None);
    let unreadable = || Says::No(65, "row-unreadable", None);
    vec![
        End::of("a receipt and no report", dead_child, NO_REPORT, NO_REPORT),
        End::of("reported, settled", reported_and_settled, ADOPT, REPORTED),
        End::of("reported, its owner died", |root| reported(root, true, false), ADOPT, REPORTED),
        End::of("reported", |root| reported(root, false, false), ADOPT, open("no-settlement-evidence")),
        End::of("reported by an earlier attempt", reported_before, ADOPT, open("report-not-bound")),
        End::of("live", alive, REATTACH, REATTACH),
        End::of("queued by a process that died", queued_by_the_dead, REATTACH, REATTACH),
        End::of("closing", closing, pending(), pending()),
        End::untold("died in its turn", died_at_work, "owner-dead-unsettled"),
        End::untold("at work for nobody knows whom", unknown_at_work, "owner-unknown"),
        End::untold("re-driven", marked, "lineage-unproven"),
        End::untold("no receipt", dead_child, "unowned-no-receipt").damaged(lose_receipt),
        End::untold("a torn receipt", dead_child, "receipt-unreadable").damaged(tear_receipt),
        End::untold("a lost report", reported_and_settled, "report-unreadable").damaged(lose_report),
        End::untold("no row", dead_child, "no-task-record").damaged(lose_row),
        End::of("a torn row", dead_child, unreadable(), unreadable()).damaged(tear_row),
        End::untold("its attempt id was taken out", dead_child, "legacy-no-attempt-id").damaged(lose_id),
    ]
}

fn lose_receipt(task: &Task<'_>) {
    task.root.lose_receipt("ws", &task.id, &task.attempt);
}

fn tear_receipt(task: &Task<'_>) {
    lose_receipt(task);
    std::fs::write(task.root.receipt_file("ws", &task.id, &task.attempt), b"{\"version\":1").unwrap();
}

fn lose_report(task: &Task<'_>) {
    let folder = task.root.path().join("sessions/ws/subagent-reports").join(&task.id);
    std::fs::remove_file(folder.join(format!("{}.json", task.attempt))).unwrap();
}

fn lose_row(task: &Task<'_>) {
    std::fs::remove_dir_all(task.root.path().join("tasks").join(&task.id)).unwrap();
}

fn tear_row(task: &Task<'_>) {
    std::fs::write(task.root.path().join("tasks").join(&task.id).join("row.json"), b"{").unwrap();
}

fn lose_id(task: &Task<'_>) {
    task.root.forge(&task.id, |row| drop(row.as_object_mut().unwrap().remove("taskAttemptId")));
}

/// Test 8; rules 5, 67, 75 and 77.
#[test]
fn test_8_every_end_of_a_child_gives_a_started_step_what_its_evidence_says() {
    for end in ends() {
        play(&end, false);
    }
}

/// Test 8; rules 5, 67, 75 and 77.
#[test]
fn test_8_every_end_of_a_child_gives_a_failed_step_what_its_evidence_says() {
    for end in ends() {
        play(&end, true);
    }
}

/// A child of another application's run, from a time before attempts had ids.
fn legacy(status: &str, record: &str) -> Xum {
    let row = with(step_child("t", status), json!({ "taskAttemptId": null }));
    let xum = Xum::new().row(row).run("interrupted", &[step("t", record)], &[]);
    let xum = if status == "reported" { xum.report(MAIN, "t", None, "done") } else { xum };
    let xum = xum.receipt(MAIN, "t", ATTEMPT).write();
    let _ = xum.import(&[]).is(0, "imported");
    xum
}

fn legacy_call(xum: &Xum, call: &[&str]) -> Outcome {
    let at = ["--run", RUN, "--step", "t", "--input-hash", "sha256:ab", "--parent", MAIN];
    xum.root.json(&[call, &at].concat())
}

/// Test 8 and the last case of test 20; rules 76 and 91, decision 10.
#[test]
fn test_8_a_legacy_child_of_a_step_that_failed_before_its_import_is_replaced_once_without_a_claim() {
    for status in ["interrupted", "reported"] {
        let xum = legacy(status, "failed");
        let new = legacy_call(&xum, &["reserve"]).is(0, "reserved");
        assert_eq!((new.get("replaces"), new.get("replacesAttemptId")), ("t".into(), "null".into()));
        let old = xum.root.row("t");
        assert_eq!((old.get("taskAttemptRetiredBy"), &old["taskStatus"]), (None, &json!(status)));
        let last = old["history"]["events"].as_array().unwrap().last().unwrap();
        let note = "replaced without a claim: it has no attempt id";
        assert_eq!(
            (&last["note"], &last["subject"]),
            (&json!(note), &json!(new.get("taskId"))),
            "it is logged"
        );
        assert_eq!(legacy_call(&xum, &["reserve"]).is(10, "reattach").get("taskId"), new.get("taskId"));
        if status == "reported" {
            assert_eq!(xum.root.run(&["report", "t", "--show"]).stdout, "done", "the report stays");
        }
    }
}

/// Test 8; rule 76.
#[test]
fn test_8_a_legacy_child_of_a_started_step_is_adopted_or_unresolved_and_never_replaced() {
    for (status, exit, code) in [("interrupted", 11, "unresolved"), ("reported", 10, "adopt")] {
        let xum = legacy(status, "started");
        let before = books(&xum.root);
        for _ in 0..2 {
            let out = legacy_call(&xum, &["reserve"]).is(exit, code);
            if code == "unresolved" {
                assert_eq!(out.get("reasonCode"), "legacy-no-attempt-id");
            }
        }
        // Nor is it made replaceable by failing the step here, where nothing could fence it any more.
        let _ = legacy_call(&xum, &["step", "fail"]).is(11, "legacy-no-attempt-id");
        assert!(before == books(&xum.root), "bytes unchanged");
    }
}

/// Test 8: what the claim says no to at the last moment leaves the disposed step as it was. Rules 5, 21 and 77.
#[test]
fn test_8_a_claim_that_is_refused_leaves_the_failed_step_and_its_child_as_they_were() {
    let root = TestRoot::new();
    let old = dead_child(&root);
    fail(&root);
    let next = Owner::start();
    let woken =
        root.json(&["rotate", &old.id, "--as", "reawaken", "--owner-pid", &next.pid()]).is(0, "rotated");
    let _ = old.claim(&[]).is(10, "stale-attempt");
    let now = owned(&root, &woken);
    let _ = now.claim(&[]).is(10, "attempt-live");
    let _ = ask(&root, &[]).is(10, "reattach");
    no_replacement(&root, &old, "failed");
    assert_eq!(root.step_events(), ["run.step.1 none -> started", "run.step.1 started -> failed"]);
}
