//! The one order of a session: of a person's prompts and of everything that claims to go on by itself (O2, O3).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{Outcome, TestRoot};
use crate::start::{Race, in_order, rounds, told, with_code};

/// A session whose first prompt runs, and that prompt.
fn at_work(root: &TestRoot) -> String {
    let _ = root.json(&["session", "open", "s", "--guard"]).is(0, "opened");
    root.json(&["prompt", "submit", "s", "--alias", "p1"]).is(0, "submitted").get("promptId")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn shown(root: &TestRoot) -> Value {
    root.json(&["inspect", "--session", "s"]).is(0, "ok").json()
}

#[test]
fn of_claims_made_at_once_as_many_are_granted_as_the_stage_has_continuations() {
    for _ in 0..rounds(6) {
        let root = TestRoot::new();
        let p1 = at_work(&root);
        let mut race = Race::new(&root);
        for _ in 0..8 {
            race.enter(&["claim", "s", "--prompt", &p1]);
        }
        let outcomes = race.go();
        let granted = with_code(&outcomes, "granted");
        let attempts: BTreeSet<String> = granted.iter().map(|grant| grant.get("attempt")).collect();
        let tickets: BTreeSet<String> = granted.iter().map(|grant| grant.get("ticket")).collect();
        assert_eq!(granted.len(), 2, "{}", told(&outcomes));
        assert_eq!(
            (attempts, tickets.len()),
            (["1".to_owned(), "2".to_owned()].into(), 2),
            "{}",
            told(&outcomes)
        );
        for refused in with_code(&outcomes, "unavailable") {
            assert_eq!(refused.get("reason"), "budget-spent", "{refused}");
        }
        assert_eq!(with_code(&outcomes, "unavailable").len(), 6, "{}", told(&outcomes));
    }
}

/// The claim and the prompt tell one story, and so does the session.
fn one_story(root: &TestRoot, claim: &Outcome, submit: &Outcome) -> bool {
    let shown = shown(root);
    let p2 = number(&submit.json()["seq"]);
    assert_eq!(submit.get("state"), "queued", "{submit}");
    if claim.code() == "granted" {
        assert!(number(&claim.json()["seq"]) < p2, "{claim}{submit}");
        assert_eq!(shown["tickets"][0]["seq"], claim.json()["seq"], "{shown}");
        let _ = root.json(&["prompt", "finish", "s", "p1", "--as", "completed"]).is(0, "prompt-finished");
        let _ = root.json(&["prompt", "start", "s", "p2"]).is(12, "ticket-open");
        return true;
    }
    let claim = claim.clone().is(10, "prompt-queued");
    assert_eq!(claim.get("queuedPromptId"), submit.get("promptId"), "{claim}");
    assert!(p2 < number(&shown["wait"]["seq"]) && shown["tickets"] == Value::Array(vec![]), "{shown}");
    false
}

#[test]
fn a_prompt_and_a_claim_at_once_have_one_order() {
    let mut granted = 0;
    let n = rounds(12);
    for round in 0..n {
        let root = TestRoot::new();
        let p1 = at_work(&root);
        let claim = ["claim", "s", "--prompt", p1.as_str()];
        let submit = ["prompt", "submit", "s", "--alias", "p2"];
        let (claimed, submitted) = match round % 3 {
            0 => in_order(&root, "locked-session", &claim, &submit),
            1 => {
                let (submitted, claimed) = in_order(&root, "locked-session", &submit, &claim);
                (claimed, submitted)
            }
            _ => {
                let mut race = Race::new(&root);
                race.enter(&claim).enter(&submit);
                let mut outcomes = race.go();
                let submitted = outcomes.pop().unwrap();
                (outcomes.pop().unwrap(), submitted)
            }
        };
        granted += usize::from(one_story(&root, &claimed, &submitted));
    }
    assert!(granted > 0 && granted < n, "both orders: {granted} of {n} were granted");
}

#[test]
fn of_prompts_submitted_at_once_one_runs_and_five_are_held() {
    for _ in 0..rounds(4) {
        let root = TestRoot::new();
        let _ = root.json(&["session", "open", "s", "--guard"]).is(0, "opened");
        let mut race = Race::new(&root);
        let aliases: Vec<String> = (0..6).map(|n| format!("p{n}")).collect();
        for alias in aliases.iter().chain(&aliases[..1]) {
            race.enter(&["prompt", "submit", "s", "--alias", alias]);
        }
        let outcomes = race.go();
        let submitted = with_code(&outcomes, "submitted");
        assert_eq!(submitted.len(), 5, "{}", told(&outcomes));
        let running = submitted.iter().filter(|outcome| outcome.get("state") == "running").count();
        assert_eq!(running, 1, "{}", told(&outcomes));
        let shown = shown(&root);
        let prompts = shown["prompts"].as_array().unwrap();
        let seqs: Vec<u64> = prompts.iter().map(|prompt| number(&prompt["seq"])).collect();
        assert!(seqs.is_sorted() && prompts[0]["state"] == "running" && prompts.len() == 5, "{shown}");
    }
}
