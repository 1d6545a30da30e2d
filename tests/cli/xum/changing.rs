//! The application is at work while its root is looked at.

use std::process::Child;

use super::builder::{Xum, child};
use crate::common::Outcome;

/// Starts a look that stops after each of its readings.
fn parked(xum: &Xum, verb: &str, more: &[&str]) -> Child {
    let dir = xum.dir.display().to_string();
    let args = [&[verb, "--xum", &dir], more].concat();
    let mut command = xum.root.command(&args);
    let pause_dir = xum.root.scratch();
    command.arg("--json").env("LYCHGATE_TEST_PAUSE", "between-readings");
    command.env("LYCHGATE_TEST_PAUSE_DIR", pause_dir).env("LYCHGATE_TEST_PAUSE_EACH", "1");
    command.spawn().unwrap()
}

/// Waits for a reading to be done, changes the root, and lets the call go on; once for each change.
fn changing(xum: &Xum, call: Child, changes: impl IntoIterator<Item = String>) -> Outcome {
    for config in changes {
        xum.root.wait_reached("between-readings");
        std::fs::remove_file(xum.root.file("between-readings.reached")).unwrap();
        // As that application does it: a whole file in its place.
        std::fs::write(xum.dir.join("config.json.new"), config).unwrap();
        std::fs::rename(xum.dir.join("config.json.new"), xum.dir.join("config.json")).unwrap();
        xum.root.go("between-readings");
    }
    xum.root.finish(call)
}

fn config(status: &str) -> String {
    Xum::new().row(child("t", status)).config()
}

#[test]
fn a_config_replaced_between_the_readings_is_read_until_two_are_equal() {
    let xum = Xum::new().row(child("t", "running")).write();
    let call = parked(&xum, "inspect", &["t"]);
    let out = changing(&xum, call, [config("interrupted"), config("interrupted")]);
    assert_eq!(out.clone().is(0, "ok").get("taskStatus"), "interrupted", "{out}");
}

#[test]
fn a_task_that_never_stands_still_is_not_judged() {
    let xum = Xum::new().row(child("t", "running")).row(child("calm", "interrupted")).write();
    let two = |status: &str| Xum::new().row(child("t", status)).row(child("calm", "interrupted")).config();
    let changes = || ["interrupted", "running", "interrupted", "running", "interrupted", "running"].map(two);
    let call = parked(&xum, "inspect", &[]);
    let out = changing(&xum, call, changes()).is(11, "identity-changed");
    let json = out.json();
    let told = |id: &str| {
        let tasks = json["tasks"].as_array().unwrap();
        let task = tasks.iter().find(|task| task["taskId"] == id).unwrap();
        (task["outcome"].clone(), task["reasonCode"].clone())
    };
    assert_eq!(told("t"), ("indeterminate".into(), "identity-changed".into()));
    assert_eq!(told("calm"), ("indeterminate".into(), "unowned-no-receipt".into()), "the others are told");
    let call = parked(&xum, "import", &[]);
    let out = changing(&xum, call, changes()).is(11, "identity-changed");
    assert_eq!(xum.root.tree(), "", "nothing is taken from a moving root: {out}");
}

#[test]
fn a_config_that_is_torn_for_a_moment_is_read_again() {
    let xum = Xum::new().row(child("t", "running")).write();
    let whole = config("running");
    std::fs::write(xum.dir.join("config.json"), &whole[..whole.len() / 2]).unwrap();
    let call = parked(&xum, "inspect", &["t"]);
    let out = changing(&xum, call, [whole.clone(), whole]).is(0, "ok");
    assert_eq!(out.get("reasonCode"), "owner-unknown");
}

#[test]
fn a_config_that_stays_torn_is_no_empty_root() {
    let xum = Xum::new().row(child("t", "running")).write();
    let whole = config("running");
    std::fs::write(xum.dir.join("config.json"), &whole[..whole.len() / 2]).unwrap();
    xum.inspect(&[]).is(65, "config-unreadable");
    xum.import(&[]).is(65, "config-unreadable");
    assert_eq!(xum.root.tree(), "");
}

#[test]
fn what_is_no_root_of_that_application_is_refused() {
    let xum = Xum::new();
    xum.inspect(&[]).is(65, "not-xum-root");
    let xum = xum.file("config.json", "{}");
    xum.inspect(&[]).is(65, "not-xum-root");
    let _ = xum.root.reserve("t");
    let ours = xum.root.path().display().to_string();
    let out = xum.root.json(&["inspect", "--xum", &ours]).is(65, "not-xum-root");
    assert!(out.get("message").contains("--root"), "{out}");
    let gone = xum.root.file("gone");
    xum.root.json(&["import", "--xum", &gone]).is(65, "not-xum-root");
    let file = xum.dir.join("config.json").display().to_string();
    xum.root.json(&["inspect", "--xum", &file]).is(65, "not-xum-root");
    // And such a root is never taken for ours.
    let xum = xum.write();
    let dir = xum.dir.display().to_string();
    xum.root.json(&["inspect", "--root", &dir]).is(65, "foreign-root");
    xum.root.json(&["import", "--xum", &dir, "--root", &dir]).is(65, "foreign-root");
}
