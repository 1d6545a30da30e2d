//! The known dead ends of that application, each in the smallest root that has it.

use std::collections::BTreeSet;
use std::path::Path;

use lychgate::protocol::xum::situation::Situation;
use serde_json::{Value, json};

use super::builder::{Xum, child, noted, step, step_child, with};

fn queued() -> Xum {
    Xum::new().row(child("t", "queued"))
}

/// One root a situation, with what `inspect` says of the task `t` in it.
fn roots() -> Vec<(Situation, Xum, &'static str)> {
    let started = || [step("t", "started")];
    let interrupted = || Xum::new().row(step_child("t", "interrupted"));
    let legacy = || with(step_child("t", "interrupted"), json!({ "taskAttemptId": null }));
    vec![
        (
            Situation::UnresolvedChild,
            interrupted().run("interrupted", &started(), &[noted("t")]),
            "unowned-no-receipt",
        ),
        (
            Situation::SecondChild,
            Xum::new().older().row(legacy()).run("interrupted", &started(), &[]),
            "legacy-no-attempt-id",
        ),
        (
            Situation::StaleLease,
            interrupted().run("running", &started(), &[]).lease(31),
            "unowned-no-receipt",
        ),
        (Situation::PendingRun, interrupted().run("pending", &started(), &[]), "unowned-no-receipt"),
        (Situation::FailedRun, interrupted().run("failed", &started(), &[]), "unowned-no-receipt"),
        (Situation::StartingChild, Xum::new().row(child("t", "starting")), "owner-unknown"),
        (Situation::SilentChild, Xum::new().row(child("t", "awaiting_report")), "owner-unknown"),
        (Situation::QueuedChild, queued(), "owner-unknown"),
        (Situation::ReportMissing, Xum::new().row(child("t", "reported")), "report-unreadable"),
        (Situation::StepWithoutRow, Xum::new().run("interrupted", &started(), &[]), "no-task-record"),
        (
            Situation::UnprovenLineage,
            Xum::new().row(with(child("t", "interrupted"), json!({ "taskAttemptUnproven": true }))),
            "lineage-unproven",
        ),
    ]
}

#[test]
fn every_dead_end_is_named_and_says_what_to_do() {
    let roots = roots();
    let covered: BTreeSet<Situation> = roots.iter().map(|(situation, ..)| *situation).collect();
    assert_eq!(covered.len(), Situation::ALL.len(), "each has its root");
    for (situation, xum, reason) in roots {
        let xum = xum.write();
        let before = xum.bytes();
        let out = xum.inspect(&["t"]).is(0, "ok");
        let word = situation.as_str();
        assert_eq!(out.get("situation"), word, "{out}");
        assert_eq!((out.get("outcome"), out.get("reasonCode")), ("indeterminate".into(), reason.into()));
        assert_eq!(out.get("situations.0.what"), situation.what());
        assert_eq!(out.get("situations.0.todo"), situation.todo());
        let list = xum.inspect(&["--stuck"]);
        assert_eq!(list.get(&format!("inSituations.{word}")), "1", "{list}");
        assert_eq!(before, xum.bytes(), "looking changes nothing");
        assert_eq!(xum.root.tree(), "", "and makes no root of ours");
    }
}

#[test]
fn a_marked_child_that_counts_as_at_work_is_in_both_dead_ends() {
    let row = with(child("t", "running"), json!({ "taskAttemptUnproven": true }));
    let out = Xum::new().row(row).write().inspect(&["t"]).is(0, "ok");
    let situations = out.json()["situations"].clone();
    let words: Vec<&str> =
        situations.as_array().unwrap().iter().map(|told| told["situation"].as_str().unwrap()).collect();
    assert_eq!(words, ["unproven-lineage", "silent-child"]);
}

#[test]
fn every_dead_end_can_be_taken_over_and_stays_unresolved_here() {
    for (situation, xum, _) in roots() {
        let xum = xum.write();
        let out = xum.import(&[]).is(0, "imported");
        if situation == Situation::StepWithoutRow {
            assert_eq!(out.get("left.0.why"), "no-task-record", "{out}");
            continue;
        }
        assert_eq!(out.get("tasks.taken"), "1", "{out}");
        let found = xum.root.json(&["inspect", "t"]).is(0, "ok");
        let outcome = found.get("outcome");
        let queued = situation == Situation::QueuedChild;
        assert_eq!(outcome, if queued { "live" } else { "indeterminate" }, "{situation:?}: {found}");
        let claim = ["claim-retire", "t", "--attempt", super::builder::ATTEMPT, "--run", super::builder::RUN];
        let more = ["--step", "t", "--input-hash", "sha256:ab", "--parent", super::builder::MAIN];
        let refused = xum.root.json(&[claim.as_slice(), &more].concat());
        assert_ne!(refused.exit, 0, "{situation:?}: {refused}");
    }
}

#[test]
fn what_is_over_or_at_work_is_in_no_dead_end() {
    let none = |xum: &Xum| {
        let json = xum.inspect(&["t"]).json();
        assert_eq!(json["situation"], Value::Null, "{json}");
    };
    let started = [step("t", "started")];
    none(&Xum::new().row(step_child("t", "interrupted")).run("running", &started, &[]).lease(5).write());
    none(&Xum::new().row(child("t", "interrupted")).write());
    let over = Xum::new().row(step_child("t", "interrupted")).run("interrupted", &started, &[]);
    none(&over.receipt(super::builder::MAIN, "t", super::builder::ATTEMPT).write());
    let failed = [step("t", "started"), step("t", "failed")];
    none(&Xum::new().row(step_child("t", "interrupted")).run("failed", &failed, &[]).write());
}

#[test]
fn a_lease_that_cannot_be_read_is_not_taken_for_a_stale_one() {
    let xum = Xum::new().row(step_child("t", "interrupted")).run("running", &[step("t", "started")], &[]);
    let xum = xum.in_run("lease.json", "{\"ownerId\":1}").write();
    assert_eq!(xum.inspect(&["t"]).json()["situation"], Value::Null);
    assert_eq!(xum.problems()[0].0, "lease-unreadable");
}

#[test]
fn the_page_about_such_roots_explains_every_word() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/XUM.md");
    let page = std::fs::read_to_string(page).unwrap();
    for situation in Situation::ALL {
        let row = format!("| `{}` | {} | {} |", situation.as_str(), situation.what(), situation.todo());
        assert!(page.contains(&row), "docs/XUM.md lacks {row}");
    }
}

#[test]
fn people_see_each_dead_end_once_with_what_to_do() {
    let xum = Xum::new().row(child("t1", "starting")).row(child("t2", "starting")).write();
    let dir = xum.dir.display().to_string();
    let out = xum.root.run(&["inspect", "--xum", &dir]);
    insta::assert_snapshot!(out, @"
    exit 0
    --- stdout
    root [DIR]/xum
    TASK    OUTCOME            SITUATION        WHY
    t1      indeterminate      starting-child   owner-unknown
    t2      indeterminate      starting-child   owner-unknown

    starting-child
      The child is being launched, or the application died launching it; only its
      next start repairs that.
      Restart the application once you are sure that nothing launches the child any
      more.
    ");
    let out = xum.root.run(&["inspect", "--xum", &dir, "t1"]);
    insta::assert_snapshot!(out, @"
    exit 0
    --- stdout
    root [DIR]/xum
    task       t1
    outcome    indeterminate (owner-unknown)
    why        it is `starting`, and no process is on record whose life could prove anything
    parent     aaaaaaaaaa
    status     starting
    attempt    att_00000000000000c1
    report     not-found
    failure    not-found
    receipt    not-found
    situation  starting-child
               The child is being launched, or the application died launching it;
               only its next start repairs that.
               Restart the application once you are sure that nothing launches the
               child any more.
    ");
}
