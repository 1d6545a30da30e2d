//! `admit`: a send on its way to its turn, and everything that stops it at the gate.

use crate::common::{Outcome, Task, TestRoot, without_tokens};
use crate::owners::Process;

fn admit(task: &Task, more: &[&str]) -> Outcome {
    task.root.json(&[&["admit", &task.id, "--token", &task.token], more].concat())
}

/// Registers a send and gives its id.
fn registered(task: &Task) -> String {
    admit(task, &["--attempt", &task.attempt]).is(0, "registered").get("sendId")
}

fn sends(task: &Task) -> usize {
    task.root.row(&task.id)["sends"].as_array().unwrap().len()
}

#[test]
fn a_send_is_registered_enqueued_admitted_and_discharged() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let said = |more: &[&str]| without_tokens(&admit(&task, more).to_string());
    insta::assert_snapshot!(said(&["--attempt", &task.attempt]), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"admit","code":"registered","root":"[DIR]/root","requestId":"req_983fe5c6f3a3b9e0","taskId":"t1","attemptId":"att_de15204e35ca515e","sendId":"snd_de15204e35ca515e0001","taskStatus":"starting","message":"a send of task `t1` is registered; it may not start a turn yet"}
    "#);
    let send = root.row("t1")["sends"][0]["sendId"].as_str().unwrap().to_owned();
    assert_eq!(root.row("t1")["sends"][0]["state"], "pending");
    insta::assert_snapshot!(said(&["--send", &send, "--queued"]), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"admit","code":"enqueued","root":"[DIR]/root","requestId":"req_fa93608d3808a42c","taskId":"t1","attemptId":"att_de15204e35ca515e","sendId":"snd_de15204e35ca515e0001","taskStatus":"starting","message":"send snd_de15204e35ca515e0001 of task `t1` is enqueued; it asks again before it starts"}
    "#);
    assert_eq!(root.row("t1")["sends"][0]["state"], "enqueued");
    let before = root.bytes();
    insta::assert_snapshot!(said(&["--send", &send, "--queued"]), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"admit","code":"already-enqueued","root":"[DIR]/root","requestId":"req_fa49589d28a678f0","taskId":"t1","attemptId":"att_de15204e35ca515e","sendId":"snd_de15204e35ca515e0001","taskStatus":"starting","message":"send snd_de15204e35ca515e0001 of task `t1` is enqueued; it asks again before it starts"}
    "#);
    assert_eq!(root.bytes(), before, "enqueued once");
    assert_eq!(root.row("t1")["taskStatus"], "starting");
    insta::assert_snapshot!(said(&["--send", &send, "--start", "--label", "fix it"]), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"admit","code":"admitted","root":"[DIR]/root","requestId":"req_1f668cb79ce77109","taskId":"t1","attemptId":"att_de15204e35ca515e","sendId":"snd_de15204e35ca515e0001","taskStatus":"running","turnId":"turn_de15204e35ca515e0001","message":"turn turn_de15204e35ca515e0001 of task `t1` may start, once"}
    "#);
    let row = root.row("t1");
    assert_eq!(row["taskStatus"], "running", "the first admitted turn");
    insta::assert_snapshot!(row["sends"], @r#"[{"sendId":"snd_de15204e35ca515e0001","attemptId":"att_de15204e35ca515e","owned":true,"state":"admitted","turnId":"turn_de15204e35ca515e0001","admittedAt":"2026-01-01T00:00:06.000Z","label":"fix it","since":"2026-01-01T00:00:03.000Z"}]"#);
    let turn = row["sends"][0]["turnId"].as_str().unwrap().to_owned();
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(sends(&task), 0);
}

#[test]
fn a_send_may_be_registered_enqueued_at_once() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let out = admit(&task, &["--attempt", &task.attempt, "--queued"]).is(0, "enqueued");
    assert_eq!(root.row("t1")["sends"][0]["state"], "enqueued");
    let _ = admit(&task, &["--send", &out.get("sendId"), "--start"]).is(0, "admitted");
}

#[test]
fn turns_and_sends_get_ids_from_a_counter_that_only_grows() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let digits = task.attempt.trim_start_matches("att_").to_owned();
    for n in 1..=3 {
        let out = admit(&task, &["--attempt", &task.attempt, "--start"]).is(0, "admitted");
        assert_eq!(out.get("turnId"), format!("turn_{digits}{n:04x}"));
        assert_eq!(out.get("sendId"), format!("snd_{digits}{n:04x}"));
        let _ = task.settle(&out.get("turnId")).is(0, "turn-settled");
    }
    assert_eq!((&root.row("t1")["turnsMinted"], &root.row("t1")["sendsMinted"]), (&3.into(), &3.into()));
}

#[test]
fn an_admitted_send_is_admitted_once() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let send = registered(&task);
    let turn = admit(&task, &["--send", &send, "--start"]).is(0, "admitted").get("turnId");
    let before = root.bytes();
    for step in ["--start", "--queued"] {
        let again = admit(&task, &["--send", &send, step]).is(10, "already-admitted");
        assert_eq!((again.get("turnId"), again.get("sendId")), (turn.clone(), send.clone()));
    }
    assert_eq!(root.bytes(), before);
    let _ = task.settle(&turn).is(0, "turn-settled");
    let before = root.bytes();
    for step in ["--start", "--queued"] {
        let _ = admit(&task, &["--send", &send, step]).is(10, "turn-ended");
    }
    insta::assert_snapshot!(root.run(&["admit", "t1", "--send", &send, "--start", "--token", &task.token]), @"
    exit 10
    --- stderr
    lychgate admit: refused (turn-ended): send snd_de15204e35ca515e0001 of task `t1` has ended; its id is refused for ever
    hint: register a new send
    ");
    assert_eq!(root.bytes(), before);
}

#[test]
fn a_canceled_send_has_ended_for_ever() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let send = registered(&task);
    let settle = ["settle", "t1", "--send", &send, "--as", "canceled", "--token", &task.token];
    let _ = root.json(&settle).is(0, "send-settled");
    let _ = admit(&task, &["--send", &send, "--start"]).is(10, "turn-ended");
}

#[test]
fn a_send_that_was_never_registered_is_not_known() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let other = root.reserve("t2").launched();
    let _send = registered(&task);
    let digits = task.attempt.trim_start_matches("att_");
    let before = root.bytes();
    for send in [format!("snd_{digits}0002"), format!("snd_{digits}0000"), format!("snd_{digits}00001")] {
        let _ = admit(&task, &["--send", &send, "--start"]).is(10, "no-such-send");
        let _ = admit(&task, &["--send", &send, "--queued"]).is(10, "no-such-send");
    }
    let foreign = format!("snd_{}0001", other.attempt.trim_start_matches("att_"));
    assert_eq!(admit(&task, &["--send", &foreign, "--start"]).exit, 10);
    assert_eq!(root.bytes(), before);
}

#[test]
fn nothing_is_admitted_before_the_launch_and_a_gated_send_is_discharged() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    let send = registered(&task);
    let _ = admit(&task, &["--attempt", &task.attempt, "--start"]).is(10, "not-launched");
    assert_eq!(sends(&task), 1, "a send that was never registered discharges no other");
    let _ = admit(&task, &["--send", &send, "--start"]).is(10, "not-launched");
    assert_eq!(sends(&task), 0);
    let _ = admit(&task, &["--send", &send, "--start"]).is(10, "turn-ended");
    insta::assert_snapshot!(
        root.run(&["admit", "t1", "--attempt", &task.attempt, "--start", "--token", &task.token]),
        @"
    exit 10
    --- stderr
    lychgate admit: refused (not-launched): task `t1` is queued: it was not launched
    hint: lychgate rotate t1 --as launch
    "
    );
    let task = task.launched();
    let _ = admit(&task, &["--send", &send, "--start"]).is(10, "turn-ended");
    let _turn = task.turn();
}

#[test]
fn a_reported_task_is_admitted_only_after_its_reactivation() {
    let root = TestRoot::new();
    let mut task = root.reserve("t1").launched();
    let turn = task.turn();
    let _ = task.report("done").is(0, "report-accepted");
    let _ = task.settle(&turn).is(0, "turn-settled");
    let refused = admit(&task, &["--attempt", &task.attempt, "--start"]).is(10, "not-launched");
    assert!(refused.get("hint").ends_with("--as reactivate"), "{refused}");
    let _ = task.rotated("reactivate");
    let _turn = task.turn();
}

#[test]
fn a_stopped_ancestor_shuts_the_gate_and_discharges_the_send() {
    let root = TestRoot::new();
    let _parent = root.reserve("p").launched();
    let made = root.json(&["reserve", "c", "--parent", "p"]).is(0, "reserved");
    let (attempt, token) = (made.get("attemptId"), made.get("token"));
    let task = Task { root: &root, id: "c".to_owned(), attempt, token, worker: String::new() }.launched();
    let (first, second) = (registered(&task), registered(&task));
    let _ = root.json(&["stop", "p"]).is(0, "stopped");
    let refused = admit(&task, &["--send", &first, "--start"]).is(10, "ancestor-stopped");
    assert_eq!(refused.get("ancestor"), "p");
    assert_eq!(sends(&task), 1, "only the gated one");
    let _ = admit(&task, &["--attempt", &task.attempt, "--start"]).is(10, "ancestor-stopped");
    let _ = admit(&task, &["--send", &second, "--queued"]).is(0, "enqueued");
    let _ = root.json(&["rotate", "p", "--as", "reawaken"]).is(0, "rotated");
    let _ = admit(&task, &["--send", &first, "--start"]).is(10, "turn-ended");
    let _ = admit(&task, &["--send", &second, "--start"]).is(0, "admitted");
}

#[test]
fn a_turn_of_an_earlier_attempt_shuts_the_gate_until_it_ends() {
    let root = TestRoot::new();
    let owner = Process::start();
    let old = root.reserve_with("t1", &["--owner-pid", &owner.pid()]).launched();
    let turn = old.turn();
    let _ = root.json(&["stop", "t1"]).is(0, "stopping");
    owner.die();
    let out = root.json(&["rotate", "t1", "--as", "reawaken"]).is(0, "rotated");
    let (attempt, token) = (out.get("attemptId"), out.get("token"));
    let new = Task { root: &root, id: "t1".to_owned(), attempt, token, worker: String::new() };
    let send = registered(&new);
    let refused = admit(&new, &["--send", &send, "--start"]).is(10, "attempt-live");
    assert_eq!(refused.get("turns.0.turnId"), turn);
    let _ = admit(&new, &["--send", &send, "--start"]).is(10, "turn-ended");
    let fresh = ["admit", "t1", "--attempt", &new.attempt, "--start", "--token", &new.token];
    insta::assert_snapshot!(root.run(&fresh), @"
    exit 10
    --- stderr
    lychgate admit: refused (attempt-live): 1 turn(s) of an earlier attempt of task `t1` are in flight
    hint: settle them with their own attempt's token; a person who knows that they are gone may rotate with --unproven
    ");
    let _ = old.settle(&turn).is(0, "turn-settled");
    let _ = new.turn();
}

#[test]
fn a_closed_or_superseded_or_retired_attempt_admits_nothing() {
    let root = TestRoot::new();
    let mut task = root.reserve_step("t1").launched();
    let gate_and_queue = |task: &Task, send: &str, code: &str| {
        let before = root.bytes();
        for more in [
            ["--send", send, "--start"],
            ["--send", send, "--queued"],
            ["--attempt", &task.attempt, "--start"],
        ] {
            let _ = admit(task, &more).is(10, code);
        }
        let _ = admit(task, &["--attempt", &task.attempt]).is(10, code);
        assert_eq!(root.bytes(), before);
    };
    let (send, turn) = (registered(&task), task.turn());
    let stopping = root.json(&["stop", "t1"]).is(0, "stopping");
    assert_eq!(stopping.get("canceledSends"), "1");
    gate_and_queue(&task, &send, "attempt-closing");
    let _ = task.settle(&turn).is(0, "turn-settled");
    gate_and_queue(&task, &send, "attempt-settled");
    let old = (task.attempt.clone(), task.token.clone());
    let _ = task.rotated("reawaken");
    let new = (task.attempt.clone(), task.token.clone());
    (task.attempt, task.token) = old;
    gate_and_queue(&task, &send, "stale-attempt");
    (task.attempt, task.token) = new;
    let send = registered(&task);
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    let _ = task.claim(&[]).is(0, "claimed");
    gate_and_queue(&task, &send, "retired");
}

#[test]
fn owned_attempts_admit_only_with_their_own_token_a_workers_too() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let other = root.reserve("t2").launched();
    let send = registered(&task);
    let before = root.bytes();
    for token in [&other.token, &other.worker, "", "tok_00", "nonsense"] {
        for more in [["--send", &send, "--start"], ["--attempt", &task.attempt, "--start"]] {
            let _ = root.json(&[&["admit", "t1", "--token", token], &more[..]].concat()).is(10, "not-owner");
        }
    }
    let _ = root.json(&["admit", "t1", "--send", &send, "--start"]).is(10, "not-owner");
    assert_eq!(root.bytes(), before, "a stranger discharges nothing");
    let worker = ["admit", "t1", "--send", &send, "--start", "--token", &task.worker];
    let turn = root.json(&worker).is(0, "admitted").get("turnId");
    let settle = ["settle", "t1", "--turn", &turn, "--token", &task.worker];
    let _ = root.json(&settle).is(10, "not-owner");
}

#[test]
fn an_attempt_that_nobody_owns_gets_one_send() {
    let root = TestRoot::new();
    let _task = root.reserve_unknown("t1").launched();
    let startup = || {
        let _ = root.json(&["rotate", "t1", "--as", "startup", "--unproven"]).is(0, "rotated");
        root.row("t1")["taskAttemptId"].as_str().unwrap().to_owned()
    };
    let attempt = startup();
    let send = root.json(&["admit", "t1", "--attempt", &attempt]).is(0, "registered").get("sendId");
    let _ = root.json(&["admit", "t1", "--attempt", &attempt]).is(10, "unowned-send-used");
    let _ = root.json(&["admit", "t1", "--attempt", &attempt, "--start"]).is(10, "unowned-send-used");
    let turn = root.json(&["admit", "t1", "--send", &send, "--start"]).is(0, "admitted").get("turnId");
    let _ = root.json(&["settle", "t1", "--turn", &turn]).is(0, "turn-settled");
    insta::assert_snapshot!(root.run(&["admit", "t1", "--attempt", &attempt, "--start"]), @"
    exit 10
    --- stderr
    lychgate admit: refused (unowned-send-used): task `t1` was re-driven and nobody owns it; its one send was used
    hint: whoever wants to own it stops it and reawakens it: lychgate stop t1 && lychgate rotate t1 --as reawaken
    ");
    let attempt = startup();
    let _ = root.json(&["admit", "t1", "--attempt", &attempt, "--start"]).is(0, "admitted");
}

#[test]
fn a_refusal_that_can_never_become_a_grant_does_not_wait_for_the_lock() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    let holder = root.paused(&["stop", "t1"], "locked-task");
    root.wait_reached("locked-task");
    let more = ["--attempt", &task.attempt, "--start", "--lock-wait", "0"];
    let _ = admit(&task, &more).is(10, "attempt-settled");
    let _ = root.json(&["rotate", "t1", "--as", "reawaken", "--lock-wait", "0"]).is(75, "busy");
    root.go("locked-task");
    let _ = root.finish(holder).is(0, "already-stopped");
}

#[test]
fn an_admission_that_is_not_said_completely_is_usage() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let send = registered(&task);
    let before = root.bytes();
    let calls: [&[&str]; 9] = [
        &["t1"],
        &["t1", "--start"],
        &["t1", "--send", &send],
        &["t1", "--send", &send, "--queued", "--start"],
        &["t1", "--send", &send, "--attempt", &task.attempt, "--start"],
        &["t1", "--attempt", &task.attempt, "--label", "x"],
        &["t1", "--attempt", "att_1", "--start"],
        &["t1", "--send", "turn_0000000000000000", "--start"],
        &["--attempt", &task.attempt, "--start"],
    ];
    for call in calls {
        let _ = root.json(&[&["admit", "--token", &task.token], call].concat()).is(64, "usage");
    }
    assert_eq!(root.bytes(), before);
    let _ = root.json(&["admit", "nobody", "--attempt", &task.attempt]).is(10, "no-task-record");
}
