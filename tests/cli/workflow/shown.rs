//! `inspect --run`: what it shows is true of one instant, and readable.

use super::{ask, child, edit_run, end};
use crate::common::TestRoot;

#[test]
fn a_run_that_changes_while_it_is_read_is_read_again_and_a_restless_one_is_said() {
    let root = TestRoot::new();
    let _scan = child(&root, "scan").stopped();
    let mut command = root.command(&["inspect", "--run", "run", "--json"]);
    command.envs([("LYCHGATE_TEST_PAUSE", "between-readings"), ("LYCHGATE_TEST_PAUSE_EACH", "1")]);
    command.env("LYCHGATE_TEST_PAUSE_DIR", root.scratch());
    let step = |change: &dyn Fn()| {
        root.wait_reached("between-readings");
        std::fs::remove_file(root.file("between-readings.reached")).unwrap();
        change();
        root.go("between-readings");
    };
    let replace = || drop(ask(&root, "scan", &[]).is(0, "reserved"));
    let call = command.spawn().unwrap();
    [&replace as &dyn Fn(), &|| (), &|| ()].into_iter().for_each(step);
    let out = root.finish(call).is(0, "ok");
    assert_eq!(
        (out.get("steps.0.taskId"), out.get("steps.0.decision")),
        ("run.scan.2".into(), "reattach".into())
    );
    let call = command.spawn().unwrap();
    for n in 0..6 {
        step(&|| drop(ask(&root, &format!("step-{n}"), &[]).is(0, "reserved")));
    }
    let out = root.finish(call).is(11, "identity-changed");
    insta::assert_snapshot!(out.get("message"), @"run `run` changes faster than it can be read; ask again");
}

#[test]
fn a_run_of_a_newer_version_says_so() {
    let root = TestRoot::new();
    let _scan = child(&root, "scan");
    edit_run(&root, |document| document["version"] = 2.into());
    let out = root.json(&["inspect", "--run", "run"]).is(0, "ok");
    assert_eq!(out.get("newerVersion"), "true");
    let _ = ask(&root, "scan", &[]).is(65, "newer-version");
    let _ = end(&root, "fail", "scan", &[]).is(65, "newer-version");
}

#[test]
fn the_table_says_why_for_every_step_and_tells_two_inputs_apart() {
    let root = TestRoot::new();
    let scan = child(&root, "scan").launched();
    let _turn = scan.turn();
    let args = ["reserve", "--run", "run", "--step", "scan", "--input-hash", "other", "--parent", "ws"];
    let _ = root.json(&args).is(0, "reserved");
    let _stopped = child(&root, "plan").stopped();
    insta::assert_snapshot!(root.run(&["inspect", "--run", "run"]), @"
    exit 0
    --- stdout
    root [DIR]/root
    run  run in ws
    STEP               INPUT          STATUS     TASK                   RESERVE SAYS   WHY
    scan               h              started    run.scan.1             reattach       task `run.scan.1` of step `scan` is live
    scan               other          started    run.scan.2             reattach       task `run.scan.2` of step `scan` is queued and waits to be launched by whoever asks
    plan               h              started    run.plan.1             replace        its child is proven over
    ");
}

#[test]
fn a_run_is_not_shown_in_place_of_another_root_or_of_a_task() {
    let root = TestRoot::new();
    let _scan = child(&root, "scan");
    for more in [&["--xum", "/nowhere"][..], &["--explain"], &["run.scan.1"], &["--expect", "live"]] {
        let args = [&["inspect", "--run", "run"], more].concat();
        let _ = root.json(&args).is(64, "usage");
    }
}
