//! A replacement of several files, killed at every point between them: the step has one child, before and after.

use super::{ask, child, events};
use crate::common::TestRoot;

#[test]
fn a_replacement_killed_anywhere_is_whole_or_not_there() {
    for point in ["locked-step", "before-part", "before-rename", "after-rename", "after-commit-point"] {
        let root = TestRoot::new();
        let old = child(&root, "scan").stopped();
        let args = ["reserve", "--run", "run", "--step", "scan", "--input-hash", "h", "--parent", "ws"];
        let mut dying = root.paused(&args, point);
        root.wait_reached(point);
        dying.kill().unwrap();
        dying.wait().unwrap();
        // Readers of each file alone see the same world.
        let retired = root.json(&["inspect", &old.task]).json()["retiredBy"].is_object();
        let named = root.json(&["inspect", "--run", "run"]).get("steps.0.taskId");
        let there = root.json(&["inspect", "run.scan.2"]).get("outcome") == "live";
        assert_eq!((retired, there), (named == "run.scan.2", named == "run.scan.2"), "{point}");
        let next = ask(&root, "scan", &[]);
        assert!(["reserved", "reattach"].contains(&next.code().as_str()), "{point}: {next}");
        assert_eq!(events(&root).last().unwrap(), "run.scan.2 failed -> started", "{point}");
        assert!(!root.tree().contains("run.scan.3"), "{point}: one replacement");
        assert!(!root.tree().contains(".lych-"), "{point}: nothing is left over\n{}", root.tree());
    }
}

#[test]
fn many_runners_at_once_give_a_step_one_child() {
    let root = TestRoot::new();
    let _old = child(&root, "scan").stopped();
    let args = [
        "reserve",
        "--run",
        "run",
        "--step",
        "scan",
        "--input-hash",
        "h",
        "--parent",
        "ws",
        "--lock-wait",
        "30s",
        "--json",
    ];
    let runners: Vec<_> = (0..12).map(|_| root.command(&args).spawn().unwrap()).collect();
    let codes: Vec<String> = runners.into_iter().map(|runner| root.finish(runner).code()).collect();
    let n = |code: &str| codes.iter().filter(|found| *found == code).count();
    assert_eq!((n("reserved"), n("reattach")), (1, 11), "{codes:?}");
}
