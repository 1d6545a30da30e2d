//! The gate against everything that shuts it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{Outcome, Task, TestRoot};
use crate::start::{Race, in_order, rounds, sound_row, told, with_code};

/// The turns that a Stop says are still owed.
fn owed(stop: &Outcome) -> BTreeSet<String> {
    let owed = stop.json()["owed"].as_array().unwrap().clone();
    owed.iter().filter_map(|fact| fact["turnId"].as_str().map(str::to_owned)).collect()
}

fn admitted(outcomes: &[Outcome]) -> BTreeSet<String> {
    with_code(outcomes, "admitted").iter().map(|outcome| outcome.get("turnId")).collect()
}

/// Ends every turn. The last of them settles the stopped attempt, and it has its receipt then.
fn settle_all(task: &Task<'_>, turns: &BTreeSet<String>) {
    for (n, turn) in turns.iter().enumerate() {
        let settled = task.settle(turn).is(0, "turn-settled");
        let receipt = if n + 1 == turns.len() { "execution-settled" } else { "null" };
        assert_eq!(settled.get("receipt"), receipt, "{settled}");
    }
}

#[test]
fn every_turn_admitted_beside_a_stop_is_owed_by_it() {
    let root = TestRoot::new();
    let (mut before, mut after) = (0, 0);
    for round in 0..rounds(50) {
        let task = root.reserve(&format!("t{round}")).launched();
        let register = ["admit", &task.id, "--attempt", &task.attempt, "--token", &task.token];
        let sends: Vec<_> = (0..3).map(|_| root.json(&register).is(0, "registered").get("sendId")).collect();
        let direct = ["admit", &task.id, "--attempt", &task.attempt, "--start", "--token", &task.token];
        let stop = ["stop", task.id.as_str()];
        let (stops, gates) = match round % 5 {
            0 => {
                let (gate, stop) = in_order(&root, "locked-task", &direct, &stop);
                (vec![stop], vec![gate])
            }
            1 => {
                let (stop, gate) = in_order(&root, "locked-task", &stop, &direct);
                (vec![stop], vec![gate])
            }
            _ => {
                let mut race = Race::new(&root);
                for send in &sends {
                    race.enter(&["admit", &task.id, "--send", send, "--start", "--token", &task.worker]);
                    race.enter(&direct);
                    if race_has_stop_here(round, send, &sends) {
                        race.enter(&stop);
                    }
                }
                race.go().into_iter().partition(|outcome| outcome.json()["command"] == "stop")
            }
        };
        let turns = admitted(&gates);
        for gate in gates.iter().filter(|gate| gate.code() != "admitted") {
            let code = gate.code();
            assert!(["attempt-closing", "attempt-settled"].contains(&code.as_str()), "{gate}");
            assert_eq!(gate.exit, 10, "{gate}");
        }
        assert_eq!(owed(&stops[0]), turns, "{}{}", told(&stops), told(&gates));
        assert_eq!(stops[0].code(), if turns.is_empty() { "stopped" } else { "stopping" });
        before += turns.len();
        after += gates.len() - turns.len();
        settle_all(&task, &turns);
        let row = sound_row(&root, &task.id);
        assert_eq!((row.turns_minted, row.sends.len()), (turns.len() as u64, 0));
        assert!(row.settlement.unwrap().settled.unwrap().receipt.is_some());
    }
    assert!(before > 0 && after > 0, "both orders: {before} admitted, {after} refused");
}

/// The Stop stands among the gates at another place in each round.
fn race_has_stop_here(round: usize, send: &str, sends: &[String]) -> bool {
    sends[round % sends.len()] == send
}

#[test]
fn every_turn_admitted_beside_the_owners_settle_is_owed_by_it() {
    let root = TestRoot::new();
    for round in 0..rounds(25) {
        let task = root.reserve(&format!("t{round}")).launched();
        let direct = ["admit", &task.id, "--attempt", &task.attempt, "--start", "--token", &task.token];
        let mut race = Race::new(&root);
        race.enter(&direct)
            .enter(&["settle", &task.id, "--token", &task.token])
            .enter(&direct)
            .enter(&direct);
        let mut outcomes = race.go();
        let settle = outcomes.remove(1);
        let turns = admitted(&outcomes);
        assert_eq!(owed(&settle), turns, "{settle}{}", told(&outcomes));
        let expected = if turns.is_empty() { (0, "settled") } else { (12, "obligations-owed") };
        assert_eq!((settle.exit, settle.code().as_str()), expected, "{settle}");
        settle_all(&task, &turns);
        let _ = sound_row(&root, &task.id);
    }
}

#[test]
fn a_send_goes_through_the_gate_once() {
    let root = TestRoot::new();
    for round in 0..rounds(30) {
        let task = root.reserve(&format!("t{round}")).launched();
        let register = ["admit", &task.id, "--attempt", &task.attempt, "--token", &task.token];
        let send = root.json(&register).is(0, "registered").get("sendId");
        let mut race = Race::new(&root);
        for n in 0..6 {
            let token = if n % 2 == 0 { &task.token } else { &task.worker };
            race.enter(&["admit", &task.id, "--send", &send, "--start", "--token", token]);
        }
        let outcomes = race.go();
        let winner = crate::start::one_winner(&outcomes, "admitted", &[(10, "already-admitted")]);
        for outcome in &outcomes {
            assert_eq!(outcome.get("turnId"), winner.get("turnId"), "{outcome}");
        }
        assert_eq!(sound_row(&root, &task.id).turns_minted, 1);
    }
}

#[test]
fn nothing_is_admitted_under_an_ancestor_that_was_stopped_before() {
    let root = TestRoot::new();
    for round in 0..rounds(20) {
        let parent = root.reserve(&format!("p{round}")).launched();
        let id = format!("c{round}");
        let out = root.json(&["reserve", &id, "--parent", &parent.id]).is(0, "reserved");
        let (attempt, token) = (out.get("attemptId"), out.get("token"));
        let _ = root.json(&["rotate", &id, "--as", "launch", "--token", &token]).is(0, "launched");
        let gate = ["admit", id.as_str(), "--attempt", &attempt, "--start", "--token", &token];
        let stop = ["stop", parent.id.as_str()];
        let outcomes = match round % 3 {
            0 => {
                let (gate, stop) = in_order(&root, "locked-task", &gate, &stop);
                assert_eq!(gate.code(), "admitted", "{gate}");
                vec![stop, gate]
            }
            1 => {
                let (stop, gate) = in_order(&root, "locked-task", &stop, &gate);
                assert_eq!(gate.code(), "ancestor-stopped", "{gate}");
                vec![stop, gate]
            }
            _ => {
                let mut race = Race::new(&root);
                race.enter(&stop).enter(&gate).enter(&gate).enter(&gate);
                race.go()
            }
        };
        let _ = outcomes[0].clone().is(0, "stopped");
        for gate in &outcomes[1..] {
            assert!(["admitted", "ancestor-stopped"].contains(&gate.code().as_str()), "{gate}");
        }
        // What was admitted was admitted before the Stop: from now on nothing is.
        let _ = root.json(&gate).is(10, "ancestor-stopped");
        let minted = sound_row(&root, &id).turns_minted;
        assert_eq!(minted, admitted(&outcomes).len() as u64);
        let tree = root.json(&["stop", &parent.id, "--tree"]);
        assert_eq!(tree.json()["tasks"].as_array().map(Vec::len), Some(2), "{tree}");
        let child: Value = tree.json()["tasks"][1].clone();
        assert_eq!(child["owed"].as_array().map(|owed| owed.len() as u64), Some(minted), "{child}");
    }
}
