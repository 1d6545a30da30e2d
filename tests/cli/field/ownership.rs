//! Who owns what, and who only believes it: A07 to A17.

use crate::actors::{Owner, PATIENT};
use crate::common::{Task, TestRoot};

#[test]
fn a07_whoever_can_name_an_attempt_can_inspect_it() {
    let root = TestRoot::new();
    let names: Vec<String> = (0..24).map(|n| format!("s{n}")).collect();
    let children: Vec<_> =
        names.iter().map(|name| root.start(&["reserve", name, "--parent", "ws"])).collect();
    for (name, child) in names.iter().zip(children) {
        let attempt = root.finish(child).is(0, "reserved").get("attemptId");
        assert_eq!(root.json(&["inspect", name]).is(0, "ok").get("identity.attemptId"), attempt);
    }
    let absent = root.json(&["inspect", "never-seen"]).is(0, "ok");
    assert_eq!(absent.get("reasonCode"), "no-task-record", "a true absence has its own word");
}

#[test]
fn a07_a_reservation_that_answers_nothing_has_not_happened_or_can_be_inspected() {
    for point in ["before-rename", "after-rename"] {
        let root = TestRoot::new();
        let args = ["reserve", "t", "--parent", "ws", "--request-id", "r"];
        root.park(&args, point).kill();
        let absent = root.json(&["inspect", "t"]).get("reasonCode") == "no-task-record";
        assert_eq!(absent, point == "before-rename");
        let attempt = root.json(&args).is(0, "reserved").get("attemptId");
        assert_eq!(root.json(&["inspect", "t"]).get("identity.attemptId"), attempt);
    }
}

#[test]
fn a09_a_stop_request_is_not_an_end_and_replaces_nothing() {
    let root = TestRoot::new();
    let owner = Owner::start();
    let task = root.reserve_step_for("t", &owner).launched();
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    for _ in 0..20 {
        let _ = task.claim(&[]).is(10, "attempt-live");
    }
    let _ = root.json(&["reserve", "t2", "--replaces", "t", "--nonce", "non_0"]).is(10, "not-claimed");
    let _ = root.json(&["reserve", "t", "--parent", "ws"]).is(10, "task-exists");
    // The owner's end is not the end of its turn either.
    drop(owner);
    let _ = root.json(&["recover"]).is(0, "recovered");
    let _ = task.claim(&[]).is(10, "attempt-live");
    assert_eq!(root.json(&["inspect"]).json()["tasks"].as_array().unwrap().len(), 1);
    let _ = task.settle(&turn).is(0, "turn-settled");
    let _ = task.claim(&[]).is(0, "claimed");
}

#[test]
fn a11_of_many_dispatchers_one_reserves_one_launches_and_one_admits() {
    let root = TestRoot::new();
    let reserve = [&["reserve", "t", "--parent", "ws"][..], &PATIENT].concat();
    let outcomes = root.at_once(&vec![reserve; 16]);
    let won: Vec<_> = outcomes.iter().filter(|outcome| outcome.exit == 0).collect();
    assert_eq!(won.len(), 1);
    for lost in outcomes.iter().filter(|outcome| outcome.exit != 0) {
        let lost = lost.clone().is(10, "task-exists");
        assert_eq!(lost.json().get("token"), None);
    }
    let attempt = won[0].get("attemptId");
    let token = won[0].get("token");
    let launch =
        [&["rotate", "t", "--as", "launch", "--expect", &attempt, "--token", &token][..], &PATIENT].concat();
    let outcomes = root.at_once(&vec![launch; 8]);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.exit == 0).count(), 1);
    let task = Task { root: &root, id: "t".into(), attempt, token, worker: String::new() };
    let send = task.send();
    let gate = [&["admit", "t", "--send", &send, "--start", "--token", &task.token][..], &PATIENT].concat();
    let outcomes = root.at_once(&vec![gate; 8]);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.exit == 0).count(), 1);
    assert_eq!(root.row("t")["turnsMinted"], 1);
}

#[test]
fn a11_one_name_is_never_given_twice_whatever_became_of_its_task() {
    let root = TestRoot::new();
    let task = root.reserve_step("t").launched();
    let taken = || root.refuses(10, "task-exists", &["reserve", "t", "--parent", "ws"]);
    let _ = taken();
    let _ = task.stop().is(0, "stopped");
    let _ = taken();
    let nonce = task.claim(&[]).is(0, "claimed").get("nonce");
    let _ = taken();
    let _ = root.refuses(10, "task-exists", &["reserve", "t", "--replaces", "t", "--nonce", &nonce]);
    let _ = root.json(&["reserve", "t2", "--replaces", "t", "--nonce", &nonce]).is(0, "reserved");
    let _ = taken();
}

#[test]
fn a13_the_loser_of_a_race_gets_nothing_it_could_use_for_a_token() {
    let root = TestRoot::new();
    let task = root.reserve_step("t").launched();
    let _ = task.stop().is(0, "stopped");
    let _ = task.claim(&[]).is(0, "claimed");
    let claim = ["claim-retire", "t", "--attempt", &task.attempt, "--run", "other", "--step", "step"];
    let claim = [&claim[..], &["--input-hash", "hash", "--parent", "ws"]].concat();
    let lost = root.run(&claim);
    assert_eq!((lost.exit, lost.stdout.as_str()), (10, ""), "nothing on standard output");
    let shown = root.run(&[&claim[..], &["--print", "nonce"]].concat());
    assert_eq!((shown.exit, shown.stdout.trim()), (10, ""));
    for nonce in ["forged", "", "non_00000000000000000000000000000000", &task.token] {
        let lost = root.run(&["reserve", "n", "--replaces", "t", "--nonce", nonce]);
        assert_eq!((lost.exit, lost.stdout.as_str()), (10, ""), "{nonce}");
    }
    let late = root.run(&["rotate", "t", "--as", "reawaken", "--print", "attemptId,token"]);
    assert_eq!((late.exit, late.stdout.trim()), (10, ""));
}

#[test]
fn a15_an_owner_that_sleeps_any_length_of_time_keeps_what_nobody_took() {
    let root = TestRoot::new();
    let owner = Owner::start();
    let task = root.reserve_for("t", &owner).launched();
    let turn = task.turn();
    owner.suspend();
    // A day passes on every clock, and every file grows old.
    let mut later = root.command(&["recover", "--json"]);
    later.env("LYCHGATE_TEST_NOW", "2027-06-01T00:00:00.000Z");
    let swept = root.finish(later.spawn().unwrap()).is(0, "recovered");
    assert_eq!((swept.get("recovered"), swept.get("atWork")), ("[]".into(), "1".into()));
    let mut seen = root.command(&["inspect", "t", "--json"]);
    seen.env("LYCHGATE_TEST_NOW", "2027-06-01T00:00:00.000Z");
    assert_eq!(root.finish(seen.spawn().unwrap()).get("outcome"), "live");
    let _ = root.json(&["rotate", "t", "--as", "startup", "--unproven"]).is(10, "owner-alive");
    owner.resume();
    let _ = task.report("slept, and done").is(0, "report-accepted");
    let _ = task.settle(&turn).is(0, "turn-settled");
}

#[test]
fn a15_an_owner_that_was_replaced_while_it_slept_is_refused_in_every_call() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let _ = task.stop().is(0, "stopped");
    let _ = root.json(&["rotate", "t", "--as", "reawaken"]).is(0, "rotated");
    let late = task.report("slept, and done").is(10, "late-report");
    assert_eq!(late.get("reasonCode"), "stale-attempt");
    let _ = task.begin().is(10, "stale-attempt");
    let _ = task.close().is(10, "not-owner");
    assert_eq!(root.run(&["report", "t", "--show", "--late"]).stdout.trim_end(), "slept, and done");
}

#[test]
fn a17_the_same_owner_name_gives_no_authority_over_a_later_attempt() {
    let root = TestRoot::new();
    let same = ["--owner", "host-1-0", "--owner-pid", &std::process::id().to_string()];
    let mut task = root.reserve_with(
        "t",
        &[&same[..], &["--run", "run", "--step", "step", "--input-hash", "hash"]].concat(),
    );
    let _ = task.launch().is(0, "launched");
    let old = task.again();
    let _ = task.stop().is(0, "stopped");
    let _ = task.rotated_with("reawaken", &same);
    let turn = task.turn();
    let before = (root.row("t")["taskAttemptId"].clone(), root.row("t")["sends"].clone());
    let _ = old.report("stale").is(10, "late-report");
    let _ = root.refuses(10, "stale-attempt", &["stop", "t", "--attempt", &old.attempt]);
    let _ = old.begin().is(10, "stale-attempt");
    let _ = old.close().is(10, "not-owner");
    let _ = old.settle(&turn).is(10, "not-owner");
    let _ = old.claim(&[]).is(10, "stale-attempt");
    let args = ["rotate", "t", "--as", "reawaken", "--expect", &old.attempt, "--owner", "host-1-0"];
    let _ = root.refuses(10, "stale-attempt", &args);
    assert_eq!((root.row("t")["taskAttemptId"].clone(), root.row("t")["sends"].clone()), before);
    assert_eq!(task.stands(), "live");
    let _ = task.report("fresh").is(0, "report-accepted");
    assert_eq!(root.run(&["report", "t", "--show"]).stdout.trim_end(), "fresh");
}
