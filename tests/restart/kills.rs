//! Test 14: a runner's call is killed with SIGKILL at every pause point, and the step is resumed. Disposition, claim,
//! checkpoint and new row are one commit here, so there is nothing between them to be found half done.

use crate::actors::{Owner, PATIENT};
use crate::common::TestRoot;
use crate::kit::{
    STEP, Scene, ask, ask_as, asking, at_every_pause, checkpoint, child, dead_child, fail, no_replacement,
    one_replacement, owned, rows, unresolved,
};

const REPLACED: [&str; 3] =
    ["run.step.1 none -> started", "run.step.1 started -> failed", "run.step.2 failed -> started"];

/// Whether a call that was killed at this point has happened: its commit is visible from the rename on.
fn happened(point: &str) -> bool {
    ["after-rename", "after-commit-point", "claimed"].contains(&point)
}

/// What three readers say about the replacement of the step's first child: its row, the checkpoint, the new row.
fn seen(root: &TestRoot) -> [bool; 3] {
    let old = root.json(&["inspect", "run.step.1"]);
    let there = root.json(&["inspect", "run.step.2"]).get("reasonCode") != "no-task-record";
    [old.get("retiredBy.replacementTaskId") == "run.step.2", checkpoint(root).1 == "run.step.2", there]
}

/// The end of every story: the one child is launched once, by one of two that try, and the step has no other.
#[track_caller]
fn launched_once(scene: &Scene<'_>, point: &str) {
    let root = scene.task.root;
    let new = one_replacement(root, &scene.task);
    let next = Owner::start();
    let pid = next.pid();
    let launch = [&["rotate", &new, "--as", "launch", "--owner-pid", &pid][..], &PATIENT].concat();
    let mut launches = root.at_once(&[launch.clone(), launch]);
    launches.sort_by_key(|launch| launch.exit);
    let _ = (launches.remove(0).is(0, "launched"), launches.remove(0).is(10, "not-queued"));
    let again = ask_as(root, &next).is(10, "reattach");
    assert_eq!((again.get("taskId"), again.get("ownerAlive")), (new.clone(), "yes".into()), "{point}");
    assert_eq!(root.step_events(), REPLACED, "{point}");
    assert_eq!(rows(root).len(), 2, "{point}");
    assert!(!root.tree().contains("/.lych-"), "{point}: nothing is left over\n{}", root.tree());
}

fn resuming(root: &TestRoot) -> Scene<'_> {
    let (task, runner) = (dead_child(root), Owner::start());
    let args = asking(&["--request-id", "r"]);
    let pid = runner.pid();
    Scene::new(task, runner, &[&args[..], &["--owner-pid", &pid]].concat())
}

const RESUME_PAUSES: [&str; 8] = [
    "looked",
    "locked",
    "locked-step",
    "before-part",
    "before-part",
    "before-rename",
    "after-rename",
    "after-commit-point",
];

/// Test 14; rules 10, 74 and 75. The runner dies with its call.
#[test]
fn test_14_a_resume_killed_at_any_pause_is_whole_or_not_there_and_the_next_runner_ends_it() {
    let points = at_every_pause(resuming, |mut scene, point| {
        let root = scene.task.root;
        scene.runner.kill();
        assert_eq!(seen(root), [happened(point); 3], "{point}");
        let next = Owner::start();
        let (exit, code) = if happened(point) { (10, "reattach") } else { (0, "reserved") };
        let resumed = ask_as(root, &next).is(exit, code);
        assert_eq!(resumed.get("taskId"), "run.step.2", "{point}");
        assert_eq!(seen(root), [true; 3], "{point}");
        launched_once(&scene, point);
    });
    assert_eq!(points, RESUME_PAUSES);
}

/// Test 14; hazard H4. Only the call died: its runner asks again, with the same request id.
#[test]
fn test_14_a_resume_killed_at_any_pause_and_repeated_answers_one_child() {
    let points = at_every_pause(resuming, |scene, point| {
        let first = scene.repeat().is(0, "reserved");
        assert_eq!(
            (first.get("taskId"), first.get("replaces")),
            ("run.step.2".into(), scene.task.id.clone())
        );
        assert_eq!(scene.repeat().stdout, first.stdout, "{point}: byte for byte");
        let new = owned(scene.task.root, &first);
        let row = scene.task.root.row("run.step.2");
        assert_eq!(row["taskAttemptId"], new.attempt, "{point}: the answer is about the row that is there");
        launched_once(&scene, point);
    });
    assert_eq!(points, RESUME_PAUSES);
}

fn claiming(root: &TestRoot) -> Scene<'_> {
    let (task, runner) = (dead_child(root), Owner::start());
    let attempt = task.attempt.clone();
    let claim = ["claim-retire", "run.step.1", "--attempt", &attempt];
    let claim = [&claim[..], &STEP, &["--request-id", "r"]].concat();
    Scene::new(task, runner, &claim)
}

/// The state between a claim and its spending: the claim and the disposition of the checkpoint stand or fall
/// together, and there is no new child.
fn claimed_or_not(scene: &Scene<'_>, point: &str) {
    let root = scene.task.root;
    let claimed = root.json(&["inspect", "run.step.1"]).json()["retiredBy"].is_object();
    assert_eq!(claimed, happened(point), "{point}");
    let status = if claimed { "failed" } else { "started" };
    assert_eq!(checkpoint(root), (status.into(), "run.step.1".into()), "{point}");
    assert_eq!(rows(root).len(), 1, "{point}");
}

const CLAIM_PAUSES: [&str; 8] = [
    "looked",
    "locked",
    "locked-task",
    "before-part",
    "before-rename",
    "after-rename",
    "after-commit-point",
    "claimed",
];

/// Test 14; rules 65 and 74.
#[test]
fn test_14_a_claim_killed_at_any_pause_is_made_again_and_spent_once() {
    let points = at_every_pause(claiming, |mut scene, point| {
        let root = scene.task.root;
        scene.runner.kill();
        claimed_or_not(&scene, point);
        let before = root.row("run.step.1").get("taskAttemptRetiredBy").cloned();
        // The request id of the dead, or another: the claim is the same one.
        let again = if happened(point) { scene.task.claim(&[]) } else { scene.repeat() };
        let nonce = again.is(0, "claimed").get("nonce");
        let claim = root.row("run.step.1")["taskAttemptRetiredBy"].clone();
        assert!(before.is_none_or(|before| before == claim), "{point}: a claim never changes");
        let replace = ["reserve", "--replaces", "run.step.1", "--nonce", &nonce];
        let _ = root.json(&replace).is(0, "reserved");
        let _ = root.json(&replace).is(10, "claim-spent");
        launched_once(&scene, point);
    });
    assert_eq!(points, CLAIM_PAUSES);
}

/// Test 14: the step is failed or not by then, and the resume takes either path to the same end.
#[test]
fn test_14_a_claim_killed_at_any_pause_is_spent_by_the_resume() {
    let points = at_every_pause(claiming, |mut scene, point| {
        scene.runner.kill();
        claimed_or_not(&scene, point);
        let resumed = ask(scene.task.root, &[]).is(0, "reserved");
        assert_eq!(resumed.get("replaces"), "run.step.1", "{point}");
        let late = scene.task.claim(&[]).is(10, "claim-spent");
        assert_eq!(late.get("replacementTaskId"), "run.step.2", "{point}");
        launched_once(&scene, point);
    });
    assert_eq!(points, CLAIM_PAUSES);
}

fn spending(root: &TestRoot) -> Scene<'_> {
    let (task, runner) = (dead_child(root), Owner::start());
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    let pid = runner.pid();
    let replace = ["reserve", "--replaces", "run.step.1", "--nonce", &nonce, "--owner-pid", &pid];
    Scene::new(task, runner, &[&replace[..], &["--request-id", "r"]].concat())
}

const SPEND_PAUSES: [&str; 7] =
    ["looked", "locked", "before-part", "before-part", "before-rename", "after-rename", "after-commit-point"];

/// Test 14; hazards H1 and H4.
#[test]
fn test_14_a_spending_killed_at_any_pause_and_repeated_answers_one_child() {
    let points = at_every_pause(spending, |scene, point| {
        assert_eq!(seen(scene.task.root), [happened(point); 3], "{point}");
        let first = scene.repeat().is(0, "reserved");
        assert_eq!(first.get("taskId"), "run.step.2", "{point}");
        assert_eq!(scene.repeat().stdout, first.stdout, "{point}: byte for byte");
        launched_once(&scene, point);
    });
    assert_eq!(points, SPEND_PAUSES);
}

/// Test 14; hazard H1. The nonce lies in the ruins, and somebody else finds it.
#[test]
fn test_14_a_spending_killed_at_any_pause_is_ended_by_the_resume_or_by_the_same_nonce() {
    for by_nonce in [true, false] {
        let points = at_every_pause(spending, |mut scene, point| {
            let root = scene.task.root;
            scene.runner.kill();
            assert_eq!(seen(root), [happened(point); 3], "{point}");
            let (exit, code) = match (happened(point), by_nonce) {
                (false, _) => (0, "reserved"),
                (true, false) => (10, "reattach"),
                (true, true) => (10, "claim-spent"),
            };
            let nonce = scene.args[4].clone();
            let spend = ["reserve", "--replaces", "run.step.1", "--nonce", &nonce];
            let ended = if by_nonce { root.json(&spend) } else { ask(root, &[]) };
            let _ = ended.is(exit, code);
            launched_once(&scene, point);
        });
        assert_eq!(points, SPEND_PAUSES);
    }
}

fn failing(root: &TestRoot) -> Scene<'_> {
    let args = [&["step", "fail"], &STEP[..]].concat();
    Scene::new(dead_child(root), Owner::start(), &args)
}

/// Test 14: killed after the disposition, before any claim; and at every pause of the disposition itself.
#[test]
fn test_14_a_disposition_killed_at_any_pause_is_followed_by_one_claim_and_one_child() {
    let points = at_every_pause(failing, |mut scene, point| {
        let root = scene.task.root;
        scene.runner.kill();
        no_replacement(root, &scene.task, if happened(point) { "failed" } else { "started" });
        let resumed = ask(root, &[]).is(0, "reserved");
        assert_eq!(resumed.get("taskId"), "run.step.2", "{point}");
        launched_once(&scene, point);
    });
    assert_eq!(points, ["looked", "locked", "before-rename", "after-rename"]);
}

fn first(root: &TestRoot) -> Scene<'_> {
    let (bystander, runner) = (root.reserve("bystander"), Owner::start());
    let pid = runner.pid();
    Scene::new(bystander, runner, &[&asking(&["--owner-pid", &pid])[..], &["--request-id", "r"]].concat())
}

/// Test 14: a checkpoint never names a child that has no row, and a child whose maker died is launched by the next.
#[test]
fn test_14_the_first_child_of_a_step_killed_at_any_pause_is_there_with_its_checkpoint_or_not_at_all() {
    let points = at_every_pause(first, |mut scene, point| {
        let root = scene.task.root;
        scene.runner.kill();
        let run = root.json(&["inspect", "--run", "run"]);
        let there = root.json(&["inspect", "run.step.1"]).get("reasonCode") != "no-task-record";
        assert_eq!((run.exit == 0, there), (happened(point), happened(point)), "{point}: {run}");
        let (exit, code) = if there { (10, "reattach") } else { (0, "reserved") };
        let _ = ask(root, &[]).is(exit, code);
        assert_eq!(checkpoint(root), ("started".into(), "run.step.1".into()), "{point}");
        let next = Owner::start();
        let launch = ["rotate", "run.step.1", "--as", "launch", "--owner-pid", &next.pid()];
        let _ = root.json(&launch).is(0, "launched");
        let _ = ask(root, &[]).is(10, "reattach");
        assert_eq!(rows(root).len(), 2, "{point}: the child and the bystander");
        assert_eq!(root.step_events(), ["run.step.1 none -> started"], "{point}");
    });
    let wanted = ["looked", "locked", "locked-step", "before-part", "before-rename", "after-rename"];
    assert_eq!(points, [&wanted[..], &["after-commit-point"]].concat());
}

/// Test 14: the gap itself, as only another program could leave it. Rule 85.
#[test]
fn test_14_a_checkpoint_whose_child_has_no_row_is_unresolved_and_gets_no_second_child() {
    for failed in [false, true] {
        let root = TestRoot::new();
        let mut owner = Owner::start();
        let task = child(&root, Some(&owner));
        if failed {
            fail(&root);
        }
        owner.kill();
        std::fs::remove_dir_all(root.path().join("tasks").join(&task.id)).unwrap();
        let _ = unresolved(&root, 11, "unresolved", Some("no-task-record"));
        let status = if failed { "failed" } else { "started" };
        assert_eq!(checkpoint(&root), (status.into(), task.id.clone()));
        assert!(rows(&root).is_empty());
    }
}
