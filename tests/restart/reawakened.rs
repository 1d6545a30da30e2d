//! Tests 12 and 17: the old child of a step is woken again while its step is resumed. Either it lives on or it is
//! replaced, and never both.

use crate::actors::{Owner, PATIENT};
use crate::common::{Outcome, Task, TestRoot};
use crate::kit::{
    ask, ask_as, asking, checkpoint, child, cut_short, dead_child, fail, no_replacement, one_replacement,
    owned, rows, unresolved,
};

/// The arguments that wake a task again as the owner's process.
fn waking<'a>(task: &'a str, pid: &'a str) -> Vec<&'a str> {
    vec!["rotate", task, "--as", "reawaken", "--owner-pid", pid]
}

/// Asserts that the old child was replaced, and not woken.
#[track_caller]
fn replaced(old: &Task<'_>, woken: Outcome, what: &str) {
    // What can never become a grant is refused without the locks, so it may be the next call that puts the parts of
    // a dead commit in place.
    let _ = woken.is(10, "retired");
    let again = ask(old.root, &[]).is(10, "reattach");
    assert_eq!(again.get("taskId"), one_replacement(old.root, old), "{what}");
    assert_eq!(rows(old.root).len(), 2, "{what}");
}

/// Asserts that the old child was woken, and not replaced: the step is its again.
#[track_caller]
fn woken_only(old: &Task<'_>, woken: &str, what: &str) {
    no_replacement(old.root, old, "started");
    assert_eq!(old.root.row(&old.id)["taskAttemptId"], woken, "{what}");
    let again = ask(old.root, &[]).is(10, "reattach");
    assert_eq!((again.get("taskId"), again.get("attemptId")), (old.id.clone(), woken.to_owned()), "{what}");
    assert_eq!(rows(old.root).len(), 1, "{what}");
}

/// Every pause of a resume after it has all its locks, and whether its commit is visible there.
const RESUME: [(&str, bool); 5] = [
    ("locked-step", false),
    ("before-part", false),
    ("before-rename", false),
    ("after-rename", true),
    ("after-commit-point", true),
];

/// Test 12; rules 5, 9 and 21. The reawakening comes while the resume holds its locks.
#[test]
fn test_12_a_child_is_not_woken_once_its_resume_has_begun_unless_that_dies_before_its_commit() {
    for (point, committed) in RESUME {
        for dies in [false, true] {
            let root = TestRoot::new();
            let old = dead_child(&root);
            let (runner, waker) = (Owner::start(), Owner::start());
            let resume = root.park(&asking(&["--owner-pid", &runner.pid()]), point);
            let waking = root.start(&[&waking(&old.id, &waker.pid())[..], &PATIENT].concat());
            let what = format!("{point}, dies: {dies}");
            if dies {
                resume.kill();
            } else {
                let _ = resume.go().is(0, "reserved");
            }
            let woken = root.finish(waking);
            if dies && !committed {
                let attempt = woken.is(0, "rotated").get("attemptId");
                woken_only(&old, &attempt, &what);
            } else {
                replaced(&old, woken, &what);
            }
        }
    }
}

/// Test 12; rules 5, 9 and 21. The resume comes while the reawakening holds the lock, and has looked before that.
#[test]
fn test_12_a_child_is_not_replaced_once_its_reawakening_has_begun_unless_that_dies_before_its_commit() {
    for (point, committed) in [("locked-task", false), ("before-rename", false), ("after-rename", true)] {
        for dies in [false, true] {
            let root = TestRoot::new();
            let old = dead_child(&root);
            let (runner, waker) = (Owner::start(), Owner::start());
            let pid = waker.pid();
            let held = root.park(&waking(&old.id, &pid), point);
            let resume = root.start(&[&asking(&["--owner-pid", &runner.pid()])[..], &PATIENT].concat());
            let what = format!("{point}, dies: {dies}");
            let woken = if dies {
                held.kill();
                None
            } else {
                Some(held.go().is(0, "rotated"))
            };
            let resumed = root.finish(resume);
            if dies && !committed {
                let _ = resumed.is(0, "reserved");
                replaced(&old, root.json(&waking(&old.id, &pid)), &what);
            } else {
                let resumed = resumed.is(10, "reattach");
                let attempt = woken.map_or(resumed.get("attemptId"), |woken| woken.get("attemptId"));
                assert_ne!(attempt, old.attempt, "{what}");
                woken_only(&old, &attempt, &what);
            }
        }
    }
}

/// Test 12: each of the two has looked before the other was through, and none of what it saw counts any more.
#[test]
fn test_12_what_a_resume_or_a_reawakening_saw_before_its_locks_decides_nothing() {
    let root = TestRoot::new();
    let old = dead_child(&root);
    let (runner, waker) = (Owner::start(), Owner::start());
    let resume = root.park(&asking(&["--owner-pid", &runner.pid()]), "looked");
    let woken = root.json(&waking(&old.id, &waker.pid())).is(0, "rotated").get("attemptId");
    let told = resume.go().is(10, "reattach");
    assert_eq!(told.get("attemptId"), woken, "it answers about the child as it is now");
    woken_only(&old, &woken, "the resume looked first");

    let root = TestRoot::new();
    let old = dead_child(&root);
    let held = root.park(&waking(&old.id, &waker.pid()), "looked");
    let _ = ask_as(&root, &runner).is(0, "reserved");
    replaced(&old, held.go(), "the reawakening looked first");
}

/// A step that was drained by a Stop and recorded as failed, with nothing claimed; its runner was killed.
fn drained(root: &TestRoot) -> Task<'_> {
    let mut owner = Owner::start();
    let task = child(root, Some(&owner));
    cut_short(&task);
    fail(root);
    owner.kill();
    no_replacement(root, &task, "failed");
    task
}

/// Woken by another owner, at work again.
fn at_work_again<'a>(old: &Task<'a>, owner: Option<&Owner>) -> (Task<'a>, String) {
    let pid = owner.map(Owner::pid);
    let mut args = vec!["rotate", &old.id, "--as", "reawaken"];
    if let Some(pid) = &pid {
        args.extend(["--owner-pid", pid]);
    }
    let task = owned(old.root, &old.root.json(&args).is(0, "rotated"));
    let turn = task.turn();
    (task, turn)
}

/// The retry while the woken child is at work: no claim, no second child, the failed record stays.
#[track_caller]
fn retry_is_refused(old: &Task<'_>, known: bool) {
    if known {
        let _ = unresolved(old.root, 10, "reattach", None);
    } else {
        let _ = unresolved(old.root, 11, "unresolved", Some("owner-unknown"));
    }
    no_replacement(old.root, old, "failed");
}

/// Test 17; rules 5, 69 and 75.
#[test]
fn test_17_a_failed_step_whose_child_was_woken_is_retried_only_after_that_child_is_stopped() {
    for known in [true, false] {
        let root = TestRoot::new();
        let old = drained(&root);
        let mut waker = Owner::start();
        let (woken, turn) = at_work_again(&old, Some(&waker).filter(|_| known));
        retry_is_refused(&old, known);
        let _ = woken.stop().is(0, "stopping");
        let (exit, code) = if known { (12, "cleanup-pending") } else { (11, "unresolved") };
        let _ = unresolved(&root, exit, code, None);
        let _ = woken.settle(&turn).is(0, "turn-settled");
        waker.kill();
        let new = ask(&root, &[]).is(0, "reserved").get("taskId");
        assert_eq!(one_replacement(&root, &woken), new, "the claim is about the attempt that was woken");
        assert_eq!(root.row(&old.id)["taskAttemptRetiredBy"]["mode"], "no-report");
        let mut both = vec![old.attempt.clone(), woken.attempt.clone()];
        both.sort();
        assert_eq!(woken.receipts(), both);
        let _ = unresolved(&root, 10, "reattach", None);
        assert_eq!(rows(&root).len(), 2);
    }
}

/// Test 17, its variant; rules 67, 68 and 92.
#[test]
fn test_17_a_failed_step_whose_woken_child_reported_is_retried_over_the_report_which_stays() {
    for ending in ["stop", "close", "death"] {
        let root = TestRoot::new();
        let old = drained(&root);
        let mut waker = Owner::start();
        let (woken, turn) = at_work_again(&old, Some(&waker));
        let _ = woken.report("another result").is(0, "report-accepted");
        let _ = unresolved(&root, 11, "unresolved", Some("attempt-live"));
        let _ = woken.settle(&turn).is(0, "turn-settled");
        let _ = unresolved(&root, 11, "unresolved", Some("no-settlement-evidence"));
        no_replacement(&root, &old, "failed");
        match ending {
            "stop" => drop(woken.stop().is(0, "stopped")),
            "close" => drop(woken.close().is(0, "settled")),
            _ => waker.kill(),
        }
        let report = format!("sessions/ws/subagent-reports/{}/{}.json", woken.id, woken.attempt);
        let before = std::fs::read(root.path().join(&report)).unwrap();
        let new = ask(&root, &[]).is(0, "reserved").get("taskId");
        assert_eq!(one_replacement(&root, &woken), new, "{ending}");
        assert_eq!(root.row(&old.id)["taskAttemptRetiredBy"]["mode"], "retire-reported", "{ending}");
        assert_eq!(checkpoint(&root), ("started".into(), new), "{ending}");
        assert_eq!(std::fs::read(root.path().join(&report)).unwrap(), before, "{ending}: the report stays");
        assert_eq!(root.run(&["report", &old.id, "--show"]).stdout, "another result", "{ending}");
        let _ = unresolved(&root, 10, "reattach", None);
        assert_eq!(rows(&root).len(), 2, "{ending}");
    }
}
