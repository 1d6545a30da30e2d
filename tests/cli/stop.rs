//! `stop`: it shuts admission first, and outlives what is in flight.

use crate::common::{Outcome, TestRoot, without_tokens};
use crate::owners::{NOBODY, Process, alive};

fn receipt_of(root: &TestRoot, task: &str) -> Vec<String> {
    let tree = root.tree();
    let receipts = tree.lines().filter(|line| line.contains(&format!("settlements/{task}/att_")));
    receipts.map(str::to_owned).collect()
}

#[test]
fn an_idle_stop_settles_at_once_whoever_makes_it() {
    let root = TestRoot::new();
    let _task = root.reserve("t1").launched();
    insta::assert_snapshot!(root.run(&["stop", "t1", "--reason", "wrong branch"]), @"
    exit 0
    --- stdout
    task `t1` is stopped
    taskId:        t1
    attemptId:     att_de15204e35ca515e
    taskStatus:    interrupted
    phase:         settled
    stopEpoch:     1
    receipt:       launch-failed
    owed:          none
    canceledSends: 0
    ");
    insta::assert_snapshot!(root.tree(), @"
    config.json
    secret
    sessions/
    sessions/ws/
    sessions/ws/subagent-attempt-settlements/
    sessions/ws/subagent-attempt-settlements/t1/
    sessions/ws/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
    tasks/
    tasks/t1/
    tasks/t1/row.json
    ");
    let settlement = root.row("t1")["settlement"].clone();
    insta::assert_snapshot!(settlement, @r#"{"closedBy":"stop","closedFrom":"launch","at":"2026-01-01T00:00:03.000Z","reason":"wrong branch","settled":{"settledAt":"2026-01-01T00:00:03.000Z","receipt":"launch-failed"}}"#);
    let receipt = std::fs::read_to_string(root.path().join(&receipt_of(&root, "t1")[0])).unwrap();
    insta::assert_snapshot!(receipt, @r#"{"version":1,"taskId":"t1","attemptId":"att_de15204e35ca515e","parentWorkspaceId":"ws","source":"launch-failed","settledAt":"2026-01-01T00:00:03.000Z"}"#);
}

#[test]
fn what_was_going_on_decides_the_source_of_the_receipt() {
    let root = TestRoot::new();
    let _ = root.reserve("queued");
    let _ = root.reserve("launched").launched();
    let idle = root.reserve("idle").launched();
    let _ = idle.settle(&idle.turn()).is(0, "turn-settled");
    for (task, source) in
        [("queued", "reservation-canceled"), ("launched", "launch-failed"), ("idle", "idle-settled")]
    {
        let out = root.json(&["stop", task]).is(0, "stopped");
        assert_eq!((out.get("receipt"), out.get("phase")), (source.to_owned(), "settled".to_owned()));
        assert_eq!((out.get("taskStatus"), receipt_of(&root, task).len()), ("interrupted".to_owned(), 1));
    }
}

#[test]
fn a_turn_in_flight_holds_the_attempt_open_until_it_is_settled() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let turn = task.turn();
    let out = root.json(&["stop", "t1"]);
    insta::assert_snapshot!(without_tokens(&out.to_string()), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"stop","code":"stopping","root":"[DIR]/root","requestId":"req_fa93608d3808a42c","taskId":"t1","attemptId":"att_de15204e35ca515e","taskStatus":"interrupted","phase":"closing","stopEpoch":1,"receipt":null,"owed":[{"kind":"turn","turnId":"turn_de15204e35ca515e0001","sendId":"snd_de15204e35ca515e0001","attemptId":"att_de15204e35ca515e","since":"2026-01-01T00:00:03.000Z"}],"canceledSends":0,"message":"task `t1` is stopping: admission is shut, 1 turn is still owed"}
    "#);
    assert_eq!(root.row("t1")["taskStatus"], "interrupted", "persisted before the turn ends");
    assert_eq!(receipt_of(&root, "t1").len(), 0);
    let settled = task.settle(&turn).is(0, "turn-settled");
    assert_eq!((settled.get("receipt"), receipt_of(&root, "t1").len()), ("execution-settled".to_owned(), 1));
}

#[test]
fn sends_without_a_turn_are_discharged_and_can_never_start() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let register = ["admit", "t1", "--attempt", &task.attempt, "--token", &task.token];
    let pending = root.json(&register).get("sendId");
    let queued = root.json(&[&register[..], &["--queued"]].concat()).get("sendId");
    let out = root.json(&["stop", "t1"]).is(0, "stopped");
    assert_eq!((out.get("canceledSends"), out.get("owed")), ("2".to_owned(), "[]".to_owned()));
    assert_eq!(root.row("t1")["sends"].to_string(), "[]");
    let _ = root.json(&["rotate", "t1", "--as", "reawaken"]).is(0, "rotated");
    for send in [pending, queued] {
        let gate = ["admit", "t1", "--send", &send, "--start", "--token", &task.token];
        let _ = root.json(&gate).is(10, "stale-attempt");
    }
}

#[test]
fn every_stop_raises_the_epoch_and_a_later_one_joins() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let turn = task.turn();
    let stop = |more: &[&str]| root.json(&[&["stop", "t1"], more].concat());
    let first = stop(&["--reason", "first", "--failure", "it broke"]).is(0, "stopping");
    assert_eq!(first.get("stopEpoch"), "1");
    let second = stop(&["--reason", "second", "--failure", "other"]).is(0, "already-stopping");
    assert_eq!(second.get("stopEpoch"), "2");
    let settlement = root.row("t1")["settlement"].clone();
    assert_eq!((&settlement["reason"], &settlement["failure"]), (&"first".into(), &"it broke".into()));
    let _ = task.settle(&turn).is(0, "turn-settled");
    insta::assert_snapshot!(root.run(&["stop", "t1"]), @"
    exit 0
    --- stdout
    task `t1` was stopped or settled before
    taskId:        t1
    attemptId:     att_de15204e35ca515e
    taskStatus:    interrupted
    phase:         settled
    stopEpoch:     3
    receipt:       execution-settled
    owed:          none
    canceledSends: 0
    ");
    assert_eq!(stop(&[]).is(0, "already-stopped").get("stopEpoch"), "4");
    assert_eq!(receipt_of(&root, "t1").len(), 1, "one receipt for one attempt");
}

#[test]
fn a_report_that_counts_stays() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let turn = task.turn();
    let _ = task.report("done").is(0, "report-accepted");
    let stopping = root.json(&["stop", "t1"]).is(0, "stopping");
    assert_eq!(stopping.get("taskStatus"), "reported");
    assert!(stopping.get("message").ends_with("its report stands"), "{stopping}");
    let _ = task.settle(&turn).is(0, "turn-settled");
    let _ = root.json(&["stop", "t1"]).is(0, "already-stopped");
    let row = root.row("t1");
    assert_eq!(
        (&row["taskStatus"], &row["reportAttemptId"]),
        (&"reported".into(), &task.attempt.as_str().into())
    );
    assert_eq!(task.outcome(), "reported");
}

#[test]
fn a_report_may_still_come_while_a_stop_waits_for_its_turn() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let turn = task.turn();
    let _ = root.json(&["stop", "t1"]).is(0, "stopping");
    let _ = task.report("just in time").is(0, "report-accepted");
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(root.row("t1")["taskStatus"], "reported");
}

#[test]
fn a_stop_over_the_owners_own_settlement_makes_it_a_stop() {
    let root = TestRoot::new();
    let task = root.reserve("p").launched();
    let _turn = task.turn();
    let _ = root.json(&["settle", "p", "--token", &task.token]).is(12, "obligations-owed");
    let _ = root.json(&["reserve", "c", "--parent", "p"]).is(0, "reserved");
    let _ = root.json(&["stop", "p"]).is(0, "already-stopping");
    let _ = root.json(&["reserve", "d", "--parent", "p"]).is(10, "ancestor-stopped");
}

#[test]
fn an_attempt_without_proof_is_stopped_without_a_receipt() {
    let root = TestRoot::new();
    let _task = root.reserve_unknown("t1").launched();
    let _ = root.json(&["rotate", "t1", "--as", "startup", "--unproven"]).is(0, "rotated");
    let out = root.json(&["stop", "t1"]).is(0, "stopped");
    assert_eq!((out.get("receipt"), out.get("phase")), ("null".to_owned(), "settled".to_owned()));
    assert_eq!(receipt_of(&root, "t1").len(), 0);
}

#[test]
fn the_ancestors_copies_of_a_receipt_can_be_left_out() {
    let root = TestRoot::new();
    let _ = root.reserve_with("t1", &["--ancestor", "org"]);
    let _ = root.reserve_with("t2", &["--ancestor", "org"]);
    let _ = root.json(&["stop", "t1", "--receipt", "parent-only"]).is(0, "stopped");
    let _ = root.json(&["stop", "t2"]).is(0, "stopped");
    assert_eq!((receipt_of(&root, "t1").len(), receipt_of(&root, "t2").len()), (1, 2));
}

#[test]
fn a_guarded_stop_is_about_one_attempt() {
    let root = TestRoot::new();
    let mut task = root.reserve("t1").launched();
    let old = task.attempt.clone();
    let _ = root.json(&["stop", "t1", "--attempt", &old]).is(0, "stopped");
    let _ = task.rotated("reawaken");
    let before = root.bytes();
    let refused = root.json(&["stop", "t1", "--attempt", &old]).is(10, "stale-attempt");
    assert_eq!(refused.get("currentAttemptId"), task.attempt);
    insta::assert_snapshot!(root.run(&["stop", "t1", "--attempt", &old]), @"
    exit 10
    --- stderr
    lychgate stop: refused (stale-attempt): task `t1` has attempt att_f689a3a85894f1ed now, not att_de15204e35ca515e
    hint: what was started under the earlier attempt may only be settled
    ");
    let _ = root.json(&["stop", "t1", "t2", "--attempt", &old]).is(64, "usage");
    assert_eq!(root.bytes(), before);
    let _ = root.json(&["stop", "t1", "--attempt", &task.attempt]).is(0, "stopped");
}

#[test]
fn several_tasks_are_stopped_each_for_itself() {
    let root = TestRoot::new();
    let _ = root.reserve("a");
    let busy = root.reserve("b").launched();
    let _turn = busy.turn();
    let both = root.json(&["stop", "a", "b"]).is(0, "stopping");
    let codes = |out: &Outcome| -> Vec<String> {
        let tasks = out.json()["tasks"].as_array().unwrap().clone();
        tasks.iter().map(|task| format!("{} {}", task["taskId"], task["code"])).collect()
    };
    assert_eq!(codes(&both), [r#""a" "stopped""#, r#""b" "stopping""#]);
    let missing = root.json(&["stop", "a", "nobody", "b"]).is(10, "no-task-record");
    assert_eq!(
        codes(&missing),
        [r#""a" "already-stopped""#, r#""nobody" "no-task-record""#, r#""b" "already-stopping""#]
    );
    assert_eq!(root.row("b")["stopEpoch"], 2, "the others are stopped all the same");
    insta::assert_snapshot!(root.run(&["stop", "a", "nobody", "b"]), @"
    exit 10
    --- stdout
    1 of 3 task(s) could not be stopped: `nobody` (no-task-record)
      a: already-stopped (task `a` was stopped or settled before)
      nobody: no-task-record (there is no task `nobody` in this root)
      b: already-stopping (task `b` is stopping: admission is shut, 1 turn is still owed)
    --- stderr
    lychgate stop: refused (no-task-record): 1 of 3 task(s) could not be stopped: `nobody` (no-task-record)
    ");
    let _ = root.json(&["stop", "nobody"]).is(10, "no-task-record");
    let before = root.bytes();
    let _ = root.json(&["stop", "a", "b", "a"]).is(64, "usage");
    let _ = root.json(&["stop"]).is(64, "usage");
    assert_eq!(root.bytes(), before);
}

mod cleanups {
    use super::*;

    #[test]
    fn a_cleanup_holds_the_attempt_open_until_its_id_pays_it() {
        let root = TestRoot::new();
        let debtor = Process::start();
        let _task = root.reserve("t1").launched();
        let stop = [
            "stop",
            "t1",
            "--cleanup",
            "one",
            "--cleanup",
            "two",
            "--owner-pid",
            &debtor.pid(),
            "--cleanup",
            "three",
        ];
        let out = root.json(&stop).is(0, "stopping");
        let ids: Vec<String> = out.json()["cleanupIds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(ids.len(), 3);
        let owed = root.row("t1")["settlement"]["cleanups"].clone();
        let pids: Vec<_> = (0..3).map(|n| owed[n]["process"]["pid"].to_string()).collect();
        assert_eq!(pids, ["null", &debtor.pid(), "null"], "each pid belongs to the cleanup before it");
        assert_eq!((&owed[0]["name"], &owed[2]["name"]), (&"one".into(), &"three".into()));

        let joined = root.json(&["stop", "t1", "--cleanup", "four"]).is(0, "already-stopping");
        let mut ids = ids;
        ids.push(joined.get("cleanupId"));
        assert_eq!(joined.json()["owed"].as_array().unwrap().len(), 4);
        for (n, id) in ids.iter().enumerate() {
            let paid = root.json(&["settle", "t1", "--cleanup", id]).is(0, "cleanup-paid");
            assert_eq!(paid.get("phase"), if n == 3 { "settled" } else { "closing" });
            assert_eq!(receipt_of(&root, "t1").len(), usize::from(n == 3));
        }
        let _ = root.json(&["settle", "t1", "--cleanup", &ids[0]]).is(0, "already-settled");
    }

    #[test]
    fn a_turn_and_a_cleanup_are_owed_together() {
        let root = TestRoot::new();
        let task = root.reserve("t1").launched();
        let turn = task.turn();
        let out = root.json(&["stop", "t1", "--cleanup", "worktree"]).is(0, "stopping");
        assert_eq!(task.settle(&turn).is(0, "turn-settled").get("phase"), "closing");
        let paid = root.json(&["settle", "t1", "--cleanup", &out.get("cleanupId")]).is(0, "cleanup-paid");
        assert_eq!(paid.get("receipt"), "execution-settled");
    }

    #[test]
    fn a_settled_attempt_owes_nothing_any_more() {
        let root = TestRoot::new();
        let _task = root.reserve("t1");
        let _ = root.json(&["stop", "t1"]).is(0, "stopped");
        let before = root.bytes();
        let _ = root.json(&["stop", "t1", "--cleanup", "late"]).is(10, "attempt-settled");
        insta::assert_snapshot!(root.run(&["stop", "t1", "--cleanup", "late"]), @"
        exit 10
        --- stderr
        lychgate stop: refused (attempt-settled): the attempt of task `t1` is settled; it can owe no cleanup any more
        hint: stop it without --cleanup
        ");
        assert_eq!(root.bytes(), before);
    }

    #[test]
    fn a_debtor_is_a_process_that_can_be_read_and_follows_its_cleanup() {
        let root = TestRoot::new();
        let _task = root.reserve("t1");
        let before = root.bytes();
        let with = |more: &[&str]| root.json(&[&["stop", "t1"], more].concat());
        let _ = with(&["--cleanup", "x", "--owner-pid", NOBODY]).is(10, "owner-pid-unreadable");
        let _ = with(&["--owner-pid", &alive()]).is(64, "usage");
        let _ = with(&["--owner-pid", &alive(), "--cleanup", "x"]).is(64, "usage");
        let _ = with(&["--cleanup", "x", "--owner-pid", &alive(), "--owner-pid", &alive()]).is(64, "usage");
        let _ = with(&["--cleanup", ""]).is(64, "usage");
        assert_eq!(root.bytes(), before);
    }
}

mod waiting {
    use super::*;

    #[test]
    fn a_wait_that_runs_out_is_pending_and_the_stop_stands() {
        let root = TestRoot::new();
        let task = root.reserve("t1").launched();
        let turn = task.turn();
        let out = root.json(&["stop", "t1", "--wait", "0"]).is(12, "stopping");
        assert_eq!((out.get("ok"), out.get("owed.0.turnId")), ("false".to_owned(), turn.clone()));
        insta::assert_snapshot!(root.run(&["stop", "t1", "--wait", "1ms"]), @"
        exit 12
        --- stdout
        task `t1` is stopping: admission is shut, 1 turn is still owed
        taskId:        t1
        attemptId:     att_de15204e35ca515e
        taskStatus:    interrupted
        phase:         closing
        stopEpoch:     2
        owed:
          kind: turn  turnId: turn_de15204e35ca515e0001  sendId: snd_de15204e35ca515e0001  attemptId: att_de15204e35ca515e  since: 2026-01-01T00:00:03.000Z
        canceledSends: 0
        ");
        assert_eq!(root.row("t1")["stopEpoch"], 2);
        let _ = task.settle(&turn).is(0, "turn-settled");
        let _ = root.json(&["stop", "t1", "--wait", "0"]).is(0, "already-stopped");
        for wrong in ["", "10", "-1s", "1h"] {
            let _ = root.json(&["stop", "t1", "--wait", wrong]).is(64, "usage");
        }
    }

    #[test]
    fn a_wait_ends_when_the_last_debt_is_paid() {
        let root = TestRoot::new();
        let task = root.reserve("t1").launched();
        let turn = task.turn();
        let stop = root.paused(&["stop", "t1", "--wait", "60s"], "locked-task");
        root.wait_reached("locked-task");
        // It gets the lock only after the Stop has let go of it.
        let settle =
            ["settle", "t1", "--turn", &turn, "--token", &task.token, "--lock-wait", "60s", "--json"];
        let settle = root.command(&settle).spawn().unwrap();
        root.go("locked-task");
        let _ = root.finish(settle).is(0, "turn-settled");
        let out = root.finish(stop).is(0, "stopped");
        assert_eq!((out.get("phase"), out.get("owed")), ("settled".to_owned(), "[]".to_owned()));
        assert_eq!(out.get("receipt"), "execution-settled");
    }

    #[test]
    fn a_turn_of_an_earlier_attempt_is_waited_for_too() {
        let root = TestRoot::new();
        let old = root.reserve_unknown("t1").launched();
        let turn = old.turn();
        let _ = root.json(&["rotate", "t1", "--as", "startup", "--unproven"]).is(0, "rotated");
        let out = root.json(&["stop", "t1", "--wait", "0"]).is(12, "stopping");
        assert_eq!((out.get("owed.0.turnId"), out.get("phase")), (turn.clone(), "settled".to_owned()));
        let _ = old.settle(&turn).is(0, "turn-settled");
        let _ = root.json(&["stop", "t1", "--wait", "0"]).is(0, "already-stopped");
    }

    #[test]
    fn a_wait_for_several_is_pending_while_one_is() {
        let root = TestRoot::new();
        let _idle = root.reserve("a");
        let task = root.reserve("b").launched();
        let _turn = task.turn();
        let out = root.json(&["stop", "a", "b", "--wait", "0"]).is(12, "stopping");
        assert_eq!((out.get("tasks.0.ok"), out.get("tasks.1.ok")), ("true".to_owned(), "false".to_owned()));
    }
}
