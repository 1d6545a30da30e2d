//! What lives in the background, and what waits for a turn.

use super::{Session, told};
use crate::common::TestRoot;
use crate::kit::Process;

fn put(s: &Session<'_>, queue: &str, task: &str, id: &str) -> crate::common::Outcome {
    s.call(queue, &["put", "--task", task, "--id", id])
}

#[test]
fn a_result_is_put_taken_and_acknowledged() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let args = ["put", "--task", "b1", "--id", "n1", "--kind", "build", "--status", "failed", "--file", "-"];
    insta::assert_snapshot!(told(&s.tell("notify", &args, "exit 1\n").is(0, "queued")), @r#"0 {"ok":true,"command":"notify","code":"queued","id":"n1","taskId":"b1","related":false,"queued":1,"sessionId":"s","message":"`n1` waits for a turn"}"#);
    let _ = put(&s, "notify", "b1", "n1").is(0, "already-queued");
    insta::assert_snapshot!(told(&s.call("notify", &["take", "--for", "30s"]).is(0, "taken")), @r#"0 {"ok":true,"command":"notify","code":"taken","id":"n1","taskId":"b1","kind":"build","status":"failed","text":"exit 1\n","related":false,"repeat":false,"sessionId":"s","message":"start a turn for `n1`, then acknowledge it"}"#);
    let _ = s.call("notify", &["take"]).is(10, "kept-back");
    root.later(30_000);
    let again = s.call("notify", &["take"]).is(0, "taken");
    assert_eq!(again.get("repeat"), "true", "it was never acknowledged: {again}");
    let _ = s.call("notify", &["ack", "n1"]).is(0, "acknowledged");
    let _ = s.call("notify", &["ack", "n1"]).is(10, "no-such-item");
    let _ = s.call("notify", &["take"]).is(10, "nothing-queued");
    let _ = put(&s, "notify", "b1", "n1").is(0, "already-queued");
}

#[test]
fn the_proven_death_of_a_taker_offers_its_item_again() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let _ = put(&s, "cron", "nightly", "c1").is(0, "queued");
    let mut taker = Process::alive();
    let _ = s.call("cron", &["take", "--for", "5m", "--owner-pid", &taker.pid()]).is(0, "taken");
    let _ = s.call("cron", &["take"]).is(10, "kept-back");
    taker.die();
    let _ = s.call("cron", &["take"]).is(0, "taken");
}

#[test]
fn what_has_no_place_leaves_a_notice_until_it_is_acknowledged() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let _ = s.call("background", &["start", "b1"]).is(0, "background-noted");
    for n in 0..20 {
        let _ = put(&s, "notify", "b1", &format!("n{n}")).is(0, "queued");
    }
    let omitted = s
        .tell("notify", &["put", "--task", "b1", "--id", "n20", "--file", "-"], "the last result")
        .is(0, "omitted");
    assert_eq!(s.record()["notifications"].as_array().unwrap().len(), 20, "O68");
    let gap = omitted.get("gapId");
    let _ = s.finish("p1", "completed");
    let _ = s.submit("p2");
    let told = s.call("gaps", &[]).is(0, "ok");
    assert_eq!(
        (told.get("gaps.0.gapId"), told.get("gaps.0.omitted.0.id").as_str()),
        (gap.clone(), "n20"),
        "O69"
    );
    assert_eq!(told.get("gaps.0.omitted.0.text"), "the last result", "O69");
    let _ = s.call("gaps", &["--ack", "gap_0123456789abcdef"]).is(10, "no-such-item");
    let _ = s.call("gaps", &["--ack", &gap]).is(0, "acknowledged");
    assert_eq!(s.call("gaps", &[]).is(0, "ok").json()["gaps"], serde_json::json!([]));
}

#[test]
fn nothing_automatic_is_taken_while_a_turn_has_yielded_and_only_related_things_while_the_guard_keeps_back() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let _ = s.call("background", &["start", "b1"]).is(0, "background-noted");
    let _ = put(&s, "cron", "nightly", "c1").is(0, "queued");
    let _ = s.call("cron", &["take"]).is(10, "kept-back");
    let _ = put(&s, "notify", "b1", "n1").is(0, "queued");
    let related = s.call("notify", &["take"]).is(0, "taken");
    assert_eq!(related.get("related"), "true", "O70: {related}");
    let _ = put(&s, "notify", "b1", "n2").is(0, "queued");
    let _ = s.submit("p2");
    let _ = s.claim(&p1).is(10, "prompt-queued");
    let _ = s.call("notify", &["take"]).is(10, "kept-back");
    let _ = s.call("cron", &["take"]).is(10, "kept-back");
}

#[test]
fn a_task_from_before_the_prompt_belongs_to_it_once_it_was_spoken_to() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let _ = s.submit("p1");
    let _ = s.call("background", &["start", "old", "--kind", "agent"]).is(0, "background-noted");
    let _ = s.finish("p1", "completed");
    let _ = s.submit("p2");
    let _ = s.todo(&["pending"]).is(0, "todo-counted");
    let related = |task: &str| {
        let told = root.json(&["inspect", "--session", "s"]).json();
        let tasks = told["tasks"].as_array().unwrap().clone();
        tasks.iter().find(|one| one["taskId"] == task).map(|one| one["related"].as_bool().unwrap())
    };
    assert_eq!(related("old"), Some(false), "O47");
    let mark = |mark: &str| s.call("background", &["mark", mark]).is(0, "background-noted").get("markId");
    let (one, two) = (mark("old"), mark("old"));
    assert_eq!(related("old"), Some(true), "O50");
    let _ = s.call("background", &["rollback", "old", "--mark", &one]).is(0, "background-noted");
    assert_eq!(related("old"), Some(true), "O51: the other mark stands");
    let _ = s.call("background", &["rollback", "old", "--mark", &two]).is(0, "background-noted");
    assert_eq!(related("old"), Some(false), "O51");
    let _ = s.call("background", &["commit", "old", "--mark", &two]).is(10, "no-such-mark");
    let three = mark("old");
    let _ = s.call("background", &["commit", "old", "--mark", &three]).is(0, "background-noted");
    assert_eq!(related("old"), Some(true), "O49");
    let _ = s.call("background", &["start", "child", "--parent", "old"]).is(0, "background-noted");
    let _ = s.call("background", &["start", "lost", "--parent", "nobody"]).is(0, "background-noted");
    let _ = s.call("background", &["start", "m", "--kind", "monitor", "--owner", "lost"]);
    assert_eq!(
        (related("child"), related("lost"), related("m")),
        (Some(true), Some(false), Some(false)),
        "O48, O53"
    );
}

#[test]
fn a_mark_whose_maker_is_gone_is_rolled_back() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let _ = s.call("background", &["start", "old"]).is(0, "background-noted");
    let _ = s.submit("p1");
    let mark = s.call("background", &["mark", "old", "--for", "10s"]).is(0, "background-noted").get("markId");
    root.later(10_000);
    let _ = s.call("background", &["commit", "old", "--mark", &mark]).is(10, "no-such-mark");
    assert_eq!(s.record()["marks"], serde_json::json!([]), "O51");
}

#[test]
fn a_task_whose_process_is_proven_dead_defers_nothing() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let mut task = Process::alive();
    let start = ["start", "b1", "--kind", "shell", "--owner-pid", &task.pid()];
    let _ = s.call("background", &start).is(0, "background-noted");
    let _ = s.call("end-turn", &[]).is(0, "deferred");
    task.die();
    let _ = s.call("end-turn", &[]).is(0, "continue");
    assert_eq!(s.record()["tasks"], serde_json::json!([]), "O57");
}
