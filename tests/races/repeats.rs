//! The same call under the same request id, many times at once: one effect, and one answer for all.

use crate::common::{Outcome, TestRoot};
use crate::start::{Race, one_winner, rounds, sound_row, told};

/// Makes the call six times at once under one request id.
fn at_once(root: &TestRoot, id: &str, args: &[&str]) -> Vec<Outcome> {
    let mut race = Race::new(root);
    for _ in 0..6 {
        race.enter(&[args, &["--request-id", id]].concat());
    }
    race.go()
}

/// Asserts that all were granted with the same bytes, and gives the one answer.
#[track_caller]
fn the_same(outcomes: &[Outcome], code: &str) -> Outcome {
    let first = outcomes[0].clone().is(0, code);
    for outcome in outcomes {
        assert_eq!(outcome.stdout, first.stdout, "{}", told(outcomes));
    }
    first
}

#[test]
fn every_changing_command_has_one_effect_and_one_answer() {
    let root = TestRoot::new();
    for round in 0..rounds(6) {
        let id = format!("t{round}");
        let request = |what: &str| format!("{what}-{round}");
        let mut events = 0;
        let mut once = |what: &str, args: &[&str], code: &str| {
            let out = the_same(&at_once(&root, &request(what), args), code);
            events += 1;
            assert_eq!(sound_row(&root, &id).history.total, events, "{what} had one effect: {out}");
            out
        };
        let step = format!("step-{round}");
        let step = ["--run", "run", "--step", &step, "--input-hash", "hash", "--parent", "ws"];
        let reserved = once("reserve", &[&["reserve", id.as_str()][..], &step].concat(), "reserved");
        let (attempt, token) = (reserved.get("attemptId"), reserved.get("token"));
        let own = ["--token", token.as_str()];
        let launch = ["rotate", id.as_str(), "--as", "launch"];
        let _ = once("launch", &[&launch[..], &own].concat(), "launched");
        let register = ["admit", id.as_str(), "--attempt", &attempt];
        let send = once("register", &[&register[..], &own].concat(), "registered").get("sendId");
        let enqueue = ["admit", id.as_str(), "--send", &send, "--queued"];
        let _ = once("enqueue", &[&enqueue[..], &own].concat(), "enqueued");
        let _ = once("stop", &["stop", id.as_str()], "stopped");
        let woken = once("reawaken", &["rotate", id.as_str(), "--as", "reawaken"], "rotated");
        let (attempt, token) = (woken.get("attemptId"), woken.get("token"));
        let own = ["--token", token.as_str()];
        let _ = once("settle", &[&["settle", id.as_str()][..], &own].concat(), "settled");
        let retire = ["claim-retire", id.as_str(), "--attempt", &attempt];
        let nonce = once("claim", &[&retire[..], &step].concat(), "claimed").get("nonce");
        let name = format!("r{round}");
        let replace = ["reserve", name.as_str(), "--replaces", &id, "--nonce", &nonce];
        let _ = once("replace", &replace, "reserved");
        assert_eq!(sound_row(&root, &name).history.total, 1);
    }
}

#[test]
fn the_gate_authorises_one_of_the_repeats_and_tells_the_others_so() {
    let root = TestRoot::new();
    for round in 0..rounds(25) {
        let task = root.reserve(&format!("t{round}")).launched();
        let gate = ["admit", &task.id, "--attempt", &task.attempt, "--start", "--token", &task.token];
        let outcomes = at_once(&root, &format!("gate-{round}"), &gate);
        let winner = one_winner(&outcomes, "admitted", &[(10, "already-admitted")]);
        for outcome in &outcomes {
            assert_eq!(outcome.get("turnId"), winner.get("turnId"), "{outcome}");
            assert_eq!(outcome.get("sendId"), winner.get("sendId"), "{outcome}");
        }
        let turn = winner.get("turnId");
        let settle = ["settle", &task.id, "--turn", &turn, "--token", &task.token];
        let _ = the_same(&at_once(&root, &format!("turn-{round}"), &settle), "turn-settled");
        let row = sound_row(&root, &task.id);
        assert_eq!((row.turns_minted, row.sends_minted, row.sends.len()), (1, 1, 0));
    }
}

#[test]
fn a_repeated_report_is_one_report() {
    let root = TestRoot::new();
    for round in 0..rounds(15) {
        let task = root.reserve(&format!("t{round}")).launched();
        let _ = task.turn();
        let file = root.file("report");
        std::fs::write(&file, "done\n").unwrap();
        let report =
            ["report", &task.id, "--attempt", &task.attempt, "--file", &file, "--token", &task.token];
        let _ = the_same(&at_once(&root, &format!("report-{round}"), &report), "report-accepted");
        let row = sound_row(&root, &task.id);
        assert_eq!((row.reports.len(), row.late_reports), (1, 0));
    }
}

#[test]
fn one_request_id_serves_one_wish() {
    let root = TestRoot::new();
    for round in 0..rounds(20) {
        let task = root.reserve(&format!("t{round}")).launched();
        let id = format!("wish-{round}");
        let mut race = Race::new(&root);
        for reason in ["one", "another", "one", "another"] {
            race.enter(&["stop", &task.id, "--reason", reason, "--request-id", &id]);
        }
        let outcomes = race.go();
        let (granted, refused): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| outcome.exit == 0);
        assert_eq!((granted.len(), refused.len()), (2, 2), "{}", told(&outcomes));
        assert_eq!(granted[0].stdout, granted[1].stdout);
        assert!(refused.iter().all(|outcome| outcome.code() == "request-id-reused"), "{}", told(&outcomes));
        assert_eq!(sound_row(&root, &task.id).stop_epoch, 1);
    }
}
