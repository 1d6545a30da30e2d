//! The continuation guard among many processes: a person's prompt, a stop and a claim are in one order, nothing that
//! was said gets lost, and one event that is told many times is one.

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::common::{Outcome, TestRoot};
use crate::start::{Race, in_order, one_winner, rounds, told, with_code};

/// A session with a running prompt `p1` and something on the list.
fn at_work(root: &TestRoot, session: &str) {
    let _ = root.json(&["session", "open", session, "--guard"]).is(0, "opened");
    let _ = root.json(&["prompt", "submit", session, "--alias", "p1"]).is(0, "submitted");
    let list = r#"{"kind":"todo_list","todos":[{"id":"1","content":"x","status":"pending"}]}"#;
    let _ = root.json_with_stdin(&["todo", session], list.as_bytes()).is(0, "todo-counted");
}

fn record(root: &TestRoot, session: &str) -> Value {
    let folder = session.replace(':', "%3A");
    let path = root.path().join("sessions").join(folder).join("guard/session.json");
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    file["document"]["body"].clone()
}

fn seq(outcome: &Outcome) -> u64 {
    outcome.get("seq").parse().unwrap()
}

/// One call against another, in both orders and at once: what each was answered.
fn both(root: &TestRoot, round: usize, one: &[&str], other: &[&str]) -> (Outcome, Outcome) {
    match round % 4 {
        0 => in_order(root, "locked-session", one, other),
        1 => {
            let (other, one) = in_order(root, "locked-session", other, one);
            (one, other)
        }
        n => {
            let mut race = Race::new(root);
            let (first, second) = if n == 2 { (one, other) } else { (other, one) };
            race.enter(first).enter(second);
            let [first, second] = race.go().try_into().unwrap_or_else(|_| panic!("two answers"));
            if n == 2 { (first, second) } else { (second, first) }
        }
    }
}

#[test]
fn h15_a_claim_beside_a_prompt_is_granted_before_it_or_yields_to_it() {
    let (mut granted, mut yielded) = (0, 0);
    for round in 0..rounds(12) {
        let root = TestRoot::new();
        at_work(&root, "s");
        let (queued, claim) = both(
            &root,
            round,
            &["prompt", "submit", "s", "--alias", "p2"],
            &["claim", "s", "--prompt", "p1"],
        );
        let queued = queued.is(0, "submitted");
        if claim.exit == 0 {
            granted += 1;
            let claim = claim.is(0, "granted");
            assert!(seq(&claim) < seq(&queued), "{claim}{queued}");
            // It was first, so the prompt waits for the end of what was granted.
            let _ = root.json(&["prompt", "finish", "s", "p1", "--as", "completed"]).is(0, "prompt-finished");
            let _ = root.json(&["prompt", "start", "s", "p2"]).is(12, "ticket-open");
        } else {
            yielded += 1;
            let claim = claim.is(10, "prompt-queued");
            assert_eq!(claim.get("queuedPromptId"), queued.get("promptId"));
            assert_eq!(record(&root, "s")["tickets"], json!([]));
        }
    }
    assert!(granted > 0 && yielded > 0, "both orders: {granted} granted, {yielded} yielded");
}

#[test]
fn h25_a_stop_beside_a_claim_comes_before_it_or_voids_it() {
    let (mut granted, mut refused) = (0, 0);
    for round in 0..rounds(12) {
        let root = TestRoot::new();
        at_work(&root, "s");
        let (stop, claim) = both(
            &root,
            round,
            &["session", "suspend", "s", "--cause", "enough"],
            &["claim", "s", "--prompt", "p1"],
        );
        let stop = stop.is(0, "suspended");
        if claim.exit == 0 {
            granted += 1;
            let claim = claim.is(0, "granted");
            assert!(seq(&claim) < seq(&stop), "{claim}{stop}");
            let _ = root
                .json(&["claim", "s", "--ticket", &claim.get("ticket"), "--as", "sent"])
                .is(10, "ticket-void");
        } else {
            refused += 1;
            assert_eq!(claim.is(10, "unavailable").get("reason"), "suspended");
        }
        // Whoever asks after the stop has returned is refused.
        let late = root.json(&["claim", "s", "--prompt", "p1"]).is(10, "unavailable");
        assert_eq!(late.get("reason"), "suspended");
    }
    assert!(granted > 0 && refused > 0, "both orders: {granted} granted, {refused} refused");
}

#[test]
fn h47_what_many_say_at_once_is_all_there() {
    let root = TestRoot::new();
    at_work(&root, "s");
    for round in 0..rounds(1) {
        let files: Vec<String> = (0..16).map(|n| root.file(&format!("text-{n}"))).collect();
        let mut race = Race::new(&root);
        for (n, file) in files.iter().enumerate() {
            std::fs::write(file, format!("text {n}")).unwrap();
            race.enter(&["say", "s", "--id", &format!("m{round}.{n}"), "--file", file]);
        }
        let answers = race.go();
        assert_eq!(with_code(&answers, "said").len(), files.len(), "{}", told(&answers));
        let record = record(&root, "s");
        let inbox = record["inbox"].as_array().unwrap();
        let mut seqs: Vec<u64> = inbox.iter().map(|message| message["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs.len(), files.len() * (round + 1), "not one is lost");
        seqs.dedup();
        assert_eq!(seqs.len(), inbox.len(), "each has a place of its own");
    }
}

#[test]
fn h47_of_claims_at_once_as_many_are_granted_as_the_budget_has() {
    for round in 0..rounds(4) {
        let root = TestRoot::new();
        at_work(&root, "s");
        let mut race = Race::new(&root);
        for _ in 0..8 {
            // One that names its continuation is beaten to it; one that takes any is refused when none is left.
            race.enter(if round % 2 == 0 {
                &["claim", "s", "--prompt", "p1"]
            } else {
                &["claim", "s", "--prompt", "p1", "--attempt", "1"]
            });
        }
        let answers = race.go();
        let granted = with_code(&answers, "granted");
        if round % 2 == 0 {
            assert_eq!(granted.len(), 2, "{}", told(&answers));
            assert_ne!(granted[0].get("ticket"), granted[1].get("ticket"));
        } else {
            let _ = one_winner(&answers, "granted", &[(10, "unavailable")]);
        }
        assert_eq!(record(&root, "s")["tickets"].as_array().unwrap().len(), granted.len());
    }
}

#[test]
fn h47_prompts_at_once_are_each_admitted_once_and_never_more_than_the_queue_holds() {
    for _ in 0..rounds(2) {
        let root = TestRoot::new();
        let _ = root.json(&["session", "open", "s", "--guard"]).is(0, "opened");
        let mut race = Race::new(&root);
        for n in 0..8 {
            race.enter(&["prompt", "submit", "s", "--alias", &format!("p{n}")]);
        }
        let answers = race.go();
        let admitted = with_code(&answers, "submitted");
        assert_eq!((admitted.len(), with_code(&answers, "queue-full").len()), (5, 3), "{}", told(&answers));
        assert_eq!(admitted.iter().filter(|answer| answer.get("state") == "running").count(), 1);
        let record = record(&root, "s");
        let prompts = record["prompts"].as_array().unwrap();
        let seqs: Vec<u64> = prompts.iter().map(|prompt| prompt["seq"].as_u64().unwrap()).collect();
        assert!(prompts.len() == 5 && seqs.is_sorted(), "{seqs:?}");
        assert_eq!(prompts[0]["state"], "running", "the first one runs");
    }
}

/// How long after one another an agent starts the hooks that are registered for one event.
const APART_MS: u64 = 15;

fn payload(event: &str, more: &Value) -> Vec<u8> {
    let mut payload = json!({ "session_id": "s", "prompt_id": "turn-1", "hook_event_name": event });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    payload.to_string().into_bytes()
}

/// The same event, told by so many hooks, each started a moment after the one before: what each printed.
fn tell(root: &TestRoot, stdin: &[u8], n: u64) -> Vec<Outcome> {
    let first = root.command(&["hook", "claude", "--guard"]);
    let clock = |(name, value): (&OsStr, Option<&OsStr>)| {
        (name == "LYCHGATE_TEST_BOOT_MS").then(|| value?.to_str()?.parse::<u64>().ok())
    };
    let started_ms = first.get_envs().find_map(clock).flatten().unwrap();
    let mut children: Vec<_> = (0..n)
        .map(|n| {
            let mut hook = root.command(&["hook", "claude", "--guard"]);
            hook.env("LYCHGATE_TEST_BOOT_MS", (started_ms + n * APART_MS).to_string());
            hook.env_remove("LYCHGATE_TEST_SEED").stdin(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    // All of them wait for the end of their standard input.
    let inputs: Vec<_> = children
        .iter_mut()
        .map(|child| {
            let mut input = child.stdin.take().unwrap();
            input.write_all(stdin).unwrap();
            input
        })
        .collect();
    drop(inputs);
    let outcomes: Vec<Outcome> = children.into_iter().map(|child| root.finish(child)).collect();
    assert!(
        outcomes.iter().all(|outcome| outcome.exit == 0 && outcome.stderr.is_empty()),
        "{}",
        told(&outcomes)
    );
    outcomes
}

#[test]
fn h49_a_stop_that_is_told_by_many_hooks_at_once_is_answered_and_charged_once() {
    for _ in 0..rounds(2) {
        let root = TestRoot::new();
        let list = json!({ "tool_name": "TodoWrite", "tool_input": { "todos": [
            { "content": "x", "status": "pending", "activeForm": "x" },
        ] } });
        // Several hooks tell of the prompt, too.
        let prompts = tell(&root, &payload("UserPromptSubmit", &json!({ "prompt": "hello" })), 3);
        assert!(prompts.iter().all(|outcome| outcome.stdout.is_empty()));
        let _ = tell(&root, &payload("PostToolUse", &list), 1);
        let before = record(&root, "claude:s");
        assert_eq!(before["prompts"].as_array().unwrap().len(), 1);
        assert_eq!(before["endedPrompts"], json!([]));
        let outcomes = tell(&root, &payload("Stop", &json!({ "stop_hook_active": false })), 12);
        let blocks = outcomes.iter().filter(|outcome| outcome.stdout.contains("block")).count();
        assert_eq!(blocks, 1, "{}", told(&outcomes));
        // The others are silent: two answers would be two continuations.
        assert_eq!(outcomes.iter().filter(|outcome| outcome.stdout.is_empty()).count(), outcomes.len() - 1);
        let after = record(&root, "claude:s");
        assert_eq!(after["chain"]["attempts"], 1);
        assert_eq!(after["prompts"], before["prompts"], "the silent ones have not ended the turn");
        // The next stop of the same turn, a while later, is another event.
        let next = tell(&root, &payload("Stop", &json!({ "stop_hook_active": false })), 1);
        assert!(next[0].stdout.contains("block"), "{}", next[0]);
    }
}
