//! Who may act, on which answer, and for which turn.

use crate::actors::Owner;
use crate::common::TestRoot;

#[test]
fn a_gate_repeated_under_its_request_id_authorises_nothing() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let send = task.send();
    let by_send = ["admit", "t", "--send", &send, "--start", "--token", &task.token, "--request-id", "one"];
    let both =
        ["admit", "t", "--attempt", &task.attempt, "--start", "--token", &task.token, "--request-id", "two"];
    let later = root.json(&by_send).is(0, "admitted");
    let first = root.json(&both).is(0, "admitted");
    for _ in 0..3 {
        for (call, answer) in [(&by_send[..], &later), (&both[..], &first)] {
            let again = root.json(call).is(10, "already-admitted");
            let ids = ["sendId", "turnId"].map(|key| (again.get(key), answer.get(key)));
            assert!(
                ids.iter().all(|(again, first)| again == first),
                "the same ids, so that it can be settled"
            );
        }
    }
    assert_eq!(root.row("t")["turnsMinted"], 2);
    // Neither after the turn has ended, and after a Stop and a reawakening.
    let _ = task.settle(&first.get("turnId")).is(0, "turn-settled");
    assert_eq!(root.json(&both).exit, 10);
    let _ = task.settle(&later.get("turnId")).is(0, "turn-settled");
    let _ = task.stop().is(0, "stopped");
    assert_eq!(root.json(&both).exit, 10);
    assert_eq!(root.json(&by_send).exit, 10);
    let _ = root.json(&["rotate", "t", "--as", "reawaken"]).is(0, "rotated");
    assert_eq!(root.json(&both).exit, 10);
    assert_eq!(root.json(&by_send).exit, 10);
    assert_eq!(root.row("t")["turnsMinted"], 2);
}

#[test]
fn a_gate_whose_answer_was_lost_authorises_nothing_when_it_is_asked_again() {
    for point in ["before-rename", "after-rename"] {
        let root = TestRoot::new();
        let task = root.reserve("t").launched();
        let send = task.send();
        let gate = ["admit", "t", "--send", &send, "--start", "--token", &task.token, "--request-id", "one"];
        root.park(&gate, point).kill();
        let again = root.json(&gate);
        let expected = if point == "before-rename" { (0, "admitted") } else { (10, "already-admitted") };
        assert_eq!((again.exit, again.code().as_str()), expected, "{point}");
        let _ = root.json(&gate).is(10, "already-admitted");
        assert_eq!(root.row("t")["turnsMinted"], 1, "{point}");
        let _ = task.settle(&again.get("turnId")).is(0, "turn-settled");
    }
}

#[test]
fn a_gate_forgotten_among_many_calls_still_authorises_nothing() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let gate =
        ["admit", "t", "--attempt", &task.attempt, "--start", "--token", &task.token, "--request-id", "one"];
    let turn = root.json(&gate).is(0, "admitted").get("turnId");
    // More calls than a row remembers; that of an unsettled send is kept beyond them.
    for _ in 0..70 {
        let send = task.send();
        let args = ["settle", "t", "--send", &send, "--as", "canceled", "--token", &task.token];
        let _ = root.json(&args).is(0, "send-settled");
    }
    let _ = root.json(&gate).is(10, "already-admitted");
    assert_eq!(root.row("t")["sends"][0]["turnId"], turn);
    assert_eq!(root.row("t")["turnsMinted"], 1);
}

#[test]
fn a_settle_repeated_or_late_never_ends_a_newer_turn() {
    let root = TestRoot::new();
    let mut task = root.reserve("t").launched();
    let old = task.turn();
    let first_token = task.token.clone();
    let args = ["settle", "t", "--turn", &old, "--token", &first_token, "--request-id", "one"];
    let _ = root.json(&args).is(0, "turn-settled");
    let newer = task.turn();
    let late = || {
        let _ = root.json(&args);
        let _ = root.json(&["settle", "t", "--turn", &old, "--token", &first_token]).is(0, "already-settled");
        let _ = root.json(&["settle", "t", "--turn", &old]);
    };
    late();
    assert_eq!(root.row("t")["sends"][0]["turnId"], newer);
    let _ = task.settle(&newer).is(0, "turn-settled");
    let _ = task.stop().is(0, "stopped");
    let _ = task.rotated_as_owner("reawaken", &[]);
    let newest = task.turn();
    late();
    // Closing by an old turn of an old attempt shuts nothing of the new one.
    let close = ["settle", "t", "--turn", &old, "--close", "--token", &first_token];
    let _ = root.json(&close);
    assert_eq!(root.row("t")["sends"][0]["turnId"], newest);
    assert_eq!(task.seen("phase"), "open");
    // Turns that never were end nothing either.
    for forged in ["turn_ffffffffffffffff0001", &format!("{newest}f"), &newest.replace("turn_", "turn_0")] {
        let _ = root.json(&["settle", "t", "--turn", forged, "--token", &task.token]);
    }
    assert_eq!(root.row("t")["sends"][0]["turnId"], newest);
}

#[test]
fn a_turn_is_ended_only_by_the_token_of_its_own_attempt() {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let mut task = root.reserve_for("t", &owner).launched();
    let turn = task.turn();
    let first = task.again();
    let _ = task.stop().is(0, "stopping");
    owner.kill();
    let _ = task.rotated_with("reawaken", &[]);
    let other = root.reserve("other");
    for token in [&task.token, &task.worker, &first.worker, &other.token, "tok_0", ""] {
        let _ = root.refuses(10, "not-owner", &["settle", "t", "--turn", &turn, "--token", token]);
    }
    let _ = root.refuses(10, "not-owner", &["settle", "t", "--turn", &turn]);
    let _ = first.settle(&turn).is(0, "turn-settled");
}

/// A stranger's whole repertoire on the way to a claim, with one choice of flags.
fn stranger_gets_nowhere(stopped_first: bool, unproven: bool, owner_dies: bool) {
    let root = TestRoot::new();
    let mut owner = Owner::start();
    let victim = root.reserve_step_for("t", &owner).launched();
    let turn = victim.turn();
    if owner_dies {
        owner.kill();
    }
    if stopped_first {
        let _ = root.json(&["stop", "t"]);
    }
    let flags: &[&str] = if unproven { &["--unproven"] } else { &[] };
    let mut token = String::new();
    for kind in ["reawaken", "startup", "reawaken"] {
        let out = root.json(&[&["rotate", "t", "--as", kind][..], flags].concat());
        if out.exit == 0 && out.json().get("token").is_some() {
            token = out.get("token");
        }
        let _ = root.json(&["stop", "t"]);
        let _ = root.json(&["settle", "t", "--token", &token]);
        let _ = root.json(&[&["recover", "t"][..], flags].concat());
        let _ = root.json(&["stop", "t"]);
        let attempt = root.row("t")["taskAttemptId"].as_str().unwrap().to_owned();
        for mode in ["no-report", "retire-reported"] {
            for attempt in [&attempt, &victim.attempt] {
                let claim = ["claim-retire", "t", "--attempt", attempt, "--run", "run", "--step", "step"];
                let claim =
                    [&claim[..], &["--input-hash", "hash", "--parent", "ws", "--mode", mode]].concat();
                for call in [claim.clone(), [&claim[..], &["--token", &token]].concat()] {
                    let out = root.json(&call);
                    assert_ne!(out.exit, 0, "{stopped_first} {unproven} {owner_dies} {kind}: {out}");
                }
            }
        }
    }
    assert!(root.row("t")["sends"].as_array().unwrap().iter().any(|send| send["turnId"] == *turn));
    assert_eq!(victim.receipts(), Vec::<String>::new());
    assert_eq!(root.row("t").get("taskAttemptRetiredBy"), None);
}

#[test]
fn a_stranger_gets_nowhere_while_a_turn_of_any_attempt_is_undischarged() {
    for stopped_first in [true, false] {
        for unproven in [true, false] {
            for owner_dies in [true, false] {
                stranger_gets_nowhere(stopped_first, unproven, owner_dies);
            }
        }
    }
}

#[test]
fn a_queued_row_passes_no_gate() {
    let root = TestRoot::new();
    let task = root.reserve("t");
    let send = task.send();
    for _ in 0..2 {
        let _ = task.begin().is(10, "not-launched");
        let worker = ["admit", "t", "--attempt", &task.attempt, "--start", "--token", &task.worker];
        let _ = root.refuses(10, "not-launched", &worker);
    }
    let _ = task.gate(&send).is(10, "not-launched");
    assert_eq!(root.row("t")["turnsMinted"], 0);
    // The refused send is discharged: the launch does not bring it back.
    let _ = task.launch().is(0, "launched");
    let _ = task.gate(&send).is(10, "turn-ended");
    // A launch that was handed back is queued again, and its gate is shut again.
    let mut owner = Owner::start();
    let back = root.reserve_for("back", &owner).launched();
    let send = back.send();
    owner.kill();
    let _ = root.json(&["recover", "back"]).is(0, "recovered");
    let _ = back.begin().is(10, "not-launched");
    let _ = back.gate(&send).is(10, "turn-ended");
    assert_eq!(root.row("back")["turnsMinted"], 0);
}

#[test]
fn a_launch_by_a_new_owner_leaves_no_trace_of_the_old_ones_process() {
    let with_token = |own: bool, flags: &[&str]| {
        let root = TestRoot::new();
        let mut old = Owner::start();
        let task = root.reserve_with("t", &["--owner", "maker", "--owner-pid", &old.pid()]);
        let token: &[&str] = if own { &["--token", &task.token] } else { &[] };
        let out =
            root.json(&[&["rotate", "t", "--as", "launch"][..], token, flags].concat()).is(0, "launched");
        let row = root.row("t");
        old.kill();
        let told = root.json(&["inspect", "t"]);
        let swept = root.json(&["recover"]).get("recovered");
        (out, row["attempt"]["owner"].clone(), told.get("owner.alive"), swept)
    };
    // Taken over without a token and without a word about the owner: unknown, never inherited, never dead.
    let (_, owner, alive, swept) = with_token(false, &[]);
    assert_eq!((owner.to_string().as_str(), alive.as_str(), swept.as_str()), ("{}", "unknown", "[]"));
    // Handed on with the token to somebody who gives a name only: the process is unknown now.
    let (_, owner, alive, swept) = with_token(true, &["--owner", "worker"]);
    assert_eq!((owner.get("process"), alive.as_str(), swept.as_str()), (None, "unknown", "[]"));
    // Handed on to another process, which lives on.
    let next = Owner::start();
    for own in [true, false] {
        let (_, owner, alive, swept) = with_token(own, &["--owner-pid", &next.pid()]);
        assert_eq!(owner["process"]["pid"].to_string(), next.pid());
        assert_eq!(owner.get("name"), None, "the whole record is replaced");
        assert_eq!((alive.as_str(), swept.as_str()), ("yes", "[]"));
    }
    // Its own launch without a word keeps the record, and then the old process's death counts.
    let (_, owner, alive, _) = with_token(true, &[]);
    assert_eq!((owner["name"].as_str(), alive.as_str()), (Some("maker"), "no"));
}

#[test]
fn a_rotation_by_a_new_owner_leaves_no_trace_of_the_old_ones_process() {
    for kind in ["reawaken", "reactivate"] {
        let root = TestRoot::new();
        let mut old = Owner::start();
        let mut task = root.reserve_with("t", &["--owner", "maker", "--owner-pid", &old.pid()]).launched();
        let turn = task.turn();
        if kind == "reactivate" {
            let _ = task.report("done").is(0, "report-accepted");
        }
        let _ = task.settle(&turn).is(0, "turn-settled");
        let _ = task.close().is(0, "settled");
        let _ = task.rotated_with(kind, &[]);
        old.kill();
        assert_eq!(root.row("t")["attempt"]["owner"].to_string(), "{}");
        assert_eq!(task.seen("owner.alive"), "unknown");
        assert_eq!(root.json(&["recover"]).get("recovered"), "[]");
        let _ = task.begin().is(0, "admitted");
    }
}
