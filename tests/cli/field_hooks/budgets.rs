//! Loops and budgets: H01, H03, H05, H07, H09, H11, H13, H21 and H23.

use serde_json::{Value, json};

use super::{ALL, Agent, WITH_LIST};
use crate::common::TestRoot;
use crate::guard::Session;

#[test]
fn h01_a_stop_hook_that_is_asked_for_ever_brings_the_agent_back_twice_and_then_lets_it_stop() {
    for words in ALL {
        let root = TestRoot::new();
        let agent = Agent::new(&root, words, "s");
        agent.work();
        let has_list = WITH_LIST.iter().any(|other| other.agent == words.agent);
        let stops = if words.agent == "claude" { 12 } else { 4 };
        assert_eq!(agent.stops(stops), if has_list { 2 } else { 0 }, "{}", words.agent);
        assert_eq!(agent.attempts(), if has_list { 2 } else { 0 }, "{}", words.agent);
    }
}

#[test]
fn h01_an_outer_hook_that_always_blocks_is_passed_on_so_many_times_and_no_more() {
    let root = TestRoot::new();
    let mut agent = Agent::claude(&root, "s");
    agent.options.extend(["--external", "block", "--reason", "the tests are red"]);
    agent.prompt("build it");
    assert_eq!((0..12).take_while(|_| agent.stop()).count(), 8);
    assert_eq!(agent.books().cause(), "hook-cap");
}

/// What the agents, and versions of them with a fault, say about being in a continuation already.
fn flags(stop: usize) -> [(&'static str, Value); 6] {
    [
        ("by the book", json!({ "stop_hook_active": stop > 0 })),
        ("always false", json!({ "stop_hook_active": false })),
        ("missing", json!({})),
        ("null", json!({ "stop_hook_active": null })),
        ("of another type", json!({ "stop_hook_active": "false" })),
        ("now and then", json!({ "stop_hook_active": stop % 2 == 1 })),
    ]
}

#[test]
fn h03_the_budget_is_counted_on_disk_whatever_the_agents_own_flag_says() {
    for kind in 0..flags(0).len() {
        let root = TestRoot::new();
        let agent = Agent::at_work(&root, "s");
        let told = (0..4).filter(|stop| agent.stop_with(&flags(*stop)[kind].1).goes_on()).count();
        assert_eq!(told, 2, "{}", flags(0)[kind].0);
    }
    // One that is always true says that somebody else forces the turns, and two who do would do so for ever.
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    assert!(!agent.stop_with(&json!({ "stop_hook_active": true })).goes_on());
    assert_eq!(agent.attempts(), 0);
}

#[test]
fn h05_what_is_broken_lets_the_agent_stop_every_time_and_says_so_in_a_line() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    let file = agent.books().file();
    let sound = std::fs::read(&file).unwrap();
    std::fs::write(&file, &sound[..sound.len() / 2]).unwrap();
    for _ in 0..5 {
        agent.stop_with(&json!({})).is_unusable();
    }
    assert_eq!(std::fs::read(&file).unwrap(), &sound[..sound.len() / 2], "nobody repairs it in passing");
    std::fs::write(&file, &sound).unwrap();

    // Somebody holds the lock for ever.
    let held = root.park(&["session", "plan", "claude:s", "off"], "locked-session");
    agent.stop_with(&json!({})).is_unusable();
    held.kill();

    // The root cannot be one, or cannot be made.
    for unusable in [root.file("a-file"), format!("{}/below", root.file("a-file")), "/proc/none".to_owned()] {
        std::fs::write(root.file("a-file"), "no root").unwrap();
        let mut command = agent.command();
        command.env("LYCHGATE_ROOT", &unusable);
        let payload = agent.payload("Stop", &json!({})).to_string();
        agent.run(command, payload.as_bytes()).is_unusable();
    }
    assert!(agent.stop(), "once all is well again");
}

#[test]
fn h07_the_same_reason_is_not_given_again_until_the_agent_has_touched_its_list() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    assert_eq!(agent.stops(4), 2);
    for _ in 0..3 {
        // A short turn in which nothing was done about the list.
        agent.prompt("are you there?");
        assert_eq!(agent.stops(2), 0);
    }
    agent.prompt("go on");
    agent.todo(&["pending"]);
    assert_eq!(agent.stops(4), 2);
}

#[test]
fn h09_stops_that_were_blocked_in_a_row_and_all_that_was_charged_are_two_counts() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let end = |what: &[&str]| {
        let out = s.call("end-turn", what);
        if !out.json()["ticket"].is_null() {
            let _ = s.end(&out.get("ticket"), "sent").is(0, "ticket-settled");
        }
        out
    };
    let block = ["--external", "block", "--reason", "red"];
    let counts = || {
        let told = root.json(&["inspect", "--session", "s"]).json();
        (told["blocks"].as_u64().unwrap(), told["chain"]["attempts"].as_u64().unwrap())
    };
    let _ = end(&block).is(0, "continue");
    assert_eq!(counts(), (1, 1));
    let _ = end(&["--external", "allow"]).is(0, "continue");
    assert_eq!(counts(), (0, 2), "an allowed stop ends the row, and gives nothing back");
    let again = end(&block).is(0, "continue");
    assert_eq!(
        (again.get("by").as_str(), counts()),
        ("hook", (1, 2)),
        "the outer hook's own row is not full"
    );
    for n in 2..=8 {
        let _ = end(&block).is(0, "continue");
        assert_eq!(counts().0, n);
    }
    assert_eq!(end(&block).is(0, "allow").get("reason"), "hook-cap");
}

#[test]
fn h11_an_event_without_a_usable_session_makes_nothing_and_continues_nobody() {
    let ids = ["", "   ", "\t\n", "null", "undefined", "NULL", " null ", "Undefined"].map(Value::from);
    for words in ALL {
        let root = TestRoot::new();
        let agent = Agent::new(&root, words, "s");
        let odd = [Value::Null, json!(7), json!(["s"]), json!({ "id": "s" }), json!(true)];
        // One agent says them all; the others show that theirs is read by the same rule.
        let some = if words.agent == "claude" { usize::MAX } else { 1 };
        for id in ids.iter().take(some).chain(odd.iter().take(some)) {
            for event in [words.prompt, words.stop] {
                agent.event(event, &json!({ words.session: id, "prompt": "hello" })).is_unusable();
            }
        }
        let mut without = agent.payload(words.stop, &json!({}));
        without.as_object_mut().unwrap().shift_remove(words.session);
        agent.bytes(without.to_string().as_bytes()).is_unusable();
        assert!(!root.path().join("sessions").exists(), "{}", words.agent);
    }
    let root = TestRoot::new();
    for id in ["", "a\nb"] {
        assert_eq!(root.json(&["claim", id]).exit, 64);
    }
    // On the command line these are names like others, of sessions that nobody has opened.
    for id in [" ", "null", "undefined"] {
        let _ = root.json(&["claim", id]).is(10, "unavailable");
    }
    assert_eq!(root.tree(), "");
}

#[test]
fn h13_what_is_granted_is_charged_and_a_send_that_worked_gives_nothing_back() {
    let root = TestRoot::new();
    for (how, granted) in [("sent", 2), ("failed-after-start", 1), ("unsent", 8)] {
        let (s, prompt) = Session::at_work(&root, how);
        let mut n = 0;
        for _ in 0..20 {
            let claim = s.claim(&prompt);
            if claim.exit == 0 {
                n += 1;
                let _ = s.end(&claim.get("ticket"), how).is(0, "ticket-settled");
            }
        }
        // A turn that broke after its start is gone on with by a person's retry only.
        assert_eq!(n, granted, "{how}");
    }
    // Nothing that a sender says, and nothing that the agent writes on its list, refills it.
    let (s, prompt) = Session::at_work(&root, "mixed");
    let mut n = 0;
    for round in 0..20 {
        let _ = s.todo(&["pending", if round % 2 == 0 { "completed" } else { "pending" }]);
        let claim = s.claim(&prompt);
        if claim.exit == 0 {
            n += 1;
            let _ = s.end(&claim.get("ticket"), if round % 3 == 0 { "unsent" } else { "sent" });
        }
    }
    assert!(n <= 2 + 8, "{n}");
    assert_eq!(s.attempts(), 2);
}

#[test]
fn h21_a_machines_text_that_comes_as_a_prompt_refills_nothing() {
    let machine = [
        "<task-notification> x</task-notification>",
        "\n \t<task-notification>\nx",
        "<system-reminder>the list has changed</system-reminder>",
        "<teammate-message from=\"b\">hello</teammate-message>",
        "<cross-session-message>hello</cross-session-message>",
        "<tick>",
    ];
    for words in WITH_LIST {
        let root = TestRoot::new();
        let agent = Agent::new(&root, words, "s");
        agent.work();
        let all = if words.agent == "claude" { usize::MAX } else { 1 };
        let mut n = agent.stops(3);
        for text in machine.iter().take(all) {
            agent.prompt(text);
            agent.todo(&["pending"]);
            n += agent.stops(1);
        }
        assert_eq!(n, 2, "{}", words.agent);
        // A person's prompt refills it each time, also one that quotes such a text.
        for text in ["what does <task-notification> x mean?", "task-notification: look", "<b>now</b>"]
            .iter()
            .take(all)
        {
            agent.prompt(text);
            agent.todo(&["pending"]);
            assert_eq!(agent.stops(3), 2, "{}: {text}", words.agent);
        }
    }
}

#[test]
fn h21_an_origin_that_is_told_counts_more_than_the_form_of_the_text() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    let mut n = agent.stops(3);
    for (field, origin) in [
        ("prompt_source", json!("task-notification")),
        ("prompt_origin", json!({ "kind": "peer" })),
        ("origin", json!({ "type": "channel" })),
    ] {
        agent.turn.set(agent.turn.get() + 1);
        let _ = agent.event("UserPromptSubmit", &json!({ "prompt": "hello", field: origin }));
        agent.todo(&["pending"]);
        n += agent.stops(2);
    }
    assert_eq!(n, 2);
    agent.turn.set(agent.turn.get() + 1);
    let typed = json!({ "prompt": "<tick> is a tag", "prompt_source": "typed" });
    let _ = agent.event("UserPromptSubmit", &typed);
    agent.todo(&["pending"]);
    assert_eq!(agent.stops(4), 2);
}

#[test]
fn h23_a_timer_of_a_turn_that_is_over_wakes_nobody() {
    let root = TestRoot::new();
    let (s, prompt) = Session::at_work(&root, "s");
    let chain = s.record()["chain"]["id"].to_string();
    let _ = s.call("cron", &["put", "--id", "w1", "--task", "in-ten-minutes", "--wakeup"]).is(0, "queued");
    let told = root.json(&["inspect", "--session", "s"]).json();
    assert!(told["crons"].to_string().contains("w1"), "what is outstanding is listed: {told}");
    let _ = s.todo(&["completed"]);
    let _ = s.finish("p1", "completed").is(0, "prompt-finished");
    root.later(600_000);
    // It says whose it was, and that one is over.
    let late = s.claim(&prompt).is(10, "unavailable");
    assert_eq!(late.get("reason"), "not-the-owner");
    let _ = s.submit("p2");
    let _ = s.todo(&["pending"]);
    let late = s.call("claim", &["--prompt", "p2", "--chain", &chain]).is(10, "unavailable");
    assert_eq!(late.get("reason"), "other-chain");
    let _ = s.call("cron", &["take"]).is(10, "kept-back");
    assert_eq!(s.attempts(), 0);
}

#[test]
fn h49_a_stop_that_is_told_twelve_times_in_a_row_is_one_stop() {
    for words in WITH_LIST {
        let root = TestRoot::new();
        let agent = Agent::new(&root, words, "s");
        agent.work();
        let payload = agent.payload(words.stop, &json!({ "stop_hook_active": false })).to_string();
        let told_at = |ms: u64| {
            let mut hook = agent.command();
            hook.env("LYCHGATE_TEST_BOOT_MS", ms.to_string());
            agent.run(hook, payload.as_bytes()).goes_on()
        };
        // One after the other, each a moment after the one before, as from several registrations.
        assert!(told_at(1_000_000));
        for n in 1..12 {
            assert!(!told_at(1_000_000 + n * 30), "{}: {n}", words.agent);
        }
        assert_eq!(agent.attempts(), 1);
        // The turn is not over by it, and a model's next stop comes later than that.
        assert!(told_at(1_002_000), "{}", words.agent);
        assert_eq!(agent.attempts(), 2);
    }
}
