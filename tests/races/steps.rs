//! The children of workflow steps: one for each step and input, under names that nobody gave.

use std::collections::BTreeSet;

use crate::common::{Outcome, TestRoot};
use crate::start::{Race, one_winner, rounds, sound_row, told, with_code};

fn ask<'a>(run: &'a str, input: &'a str) -> Vec<&'a str> {
    vec!["reserve", "--run", run, "--step", "step", "--input-hash", input, "--parent", "ws"]
}

/// Asserts that all were reserved, under different names.
#[track_caller]
fn all_reserved(outcomes: &[Outcome]) {
    assert_eq!(with_code(outcomes, "reserved").len(), outcomes.len(), "{}", told(outcomes));
    let names: BTreeSet<String> = outcomes.iter().map(|outcome| outcome.get("taskId")).collect();
    assert_eq!(names.len(), outcomes.len(), "{}", told(outcomes));
}

/// Rules 10 and 99. Before the first commit of a run there is no file whose lock could be waited for.
#[test]
fn the_first_child_of_the_first_step_of_a_run_is_one_for_all_who_ask() {
    for round in 0..rounds(10) {
        let root = TestRoot::new();
        if round % 2 == 0 {
            let _ = root.reserve("t");
        }
        let mut race = Race::new(&root);
        for _ in 0..6 {
            race.enter(&ask("run", "hash"));
        }
        let outcomes = race.go();
        let winner = one_winner(&outcomes, "reserved", &[(10, "reattach")]);
        for outcome in &outcomes {
            assert_eq!(outcome.get("taskId"), winner.get("taskId"), "{}", told(&outcomes));
        }
        let _ = sound_row(&root, "run.step.1");
        assert!(!root.tree().contains("run.step.2/row.json"));
    }
}

#[test]
fn every_input_of_a_step_gets_a_child_under_a_name_of_its_own() {
    let root = TestRoot::new();
    for round in 0..rounds(10) {
        let run = format!("r{round}");
        let inputs: Vec<String> = (0..6).map(|n| format!("input-{n}")).collect();
        let mut race = Race::new(&root);
        for input in &inputs {
            race.enter(&ask(&run, input));
        }
        all_reserved(&race.go());
    }
}

#[test]
fn replacements_for_several_inputs_of_a_step_get_names_of_their_own() {
    for _ in 0..rounds(5) {
        let root = TestRoot::new();
        let mut nonces = Vec::new();
        for n in 0..4 {
            let task = root.reserve_step_on(&format!("t{n}"), &format!("input-{n}")).launched();
            let _ = root.json(&["stop", &task.id]).is(0, "stopped");
            nonces.push((task.claim(&[]).is(0, "claimed").get("nonce"), task.id));
        }
        let mut race = Race::new(&root);
        for (nonce, old) in &nonces {
            race.enter(&["reserve", "--replaces", old, "--nonce", nonce]);
        }
        all_reserved(&race.go());
    }
}
