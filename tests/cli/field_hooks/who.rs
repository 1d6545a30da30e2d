//! Who is who: H41, H43, H45, H75, H77 and H79.

use serde_json::{Value, json};

use super::{Agent, CLAUDE, CODEX, CURSOR, QWEN};
use crate::common::TestRoot;
use crate::guard::Session;

/// What counts of a session: everything but what every event leaves in it.
fn meaning(agent: &Agent<'_>) -> Value {
    let mut record = agent.books().meaning();
    for noise in ["events", "lastStop", "lastPrompt", "tasks", "endedTasks"] {
        record.as_object_mut().unwrap().shift_remove(noise);
    }
    record
}

#[test]
fn h41_a_helper_that_carries_its_parents_session_never_acts_for_it() {
    for words in [&CLAUDE, &CODEX, &QWEN] {
        let root = TestRoot::new();
        let agent = Agent::new(&root, words, "s");
        agent.work();
        let before = meaning(&agent);
        for n in 0..2 {
            let helper = |more: Value| {
                let mut fields = json!({ "agent_id": format!("a{n}"), "agent_type": "helper" });
                fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                fields
            };
            let todos = json!({ "todos": [{ "content": "x", "status": "completed", "activeForm": "x" }] });
            for (event, more) in [
                ("SubagentStart", json!({})),
                ("PreToolUse", json!({ "tool_name": words.question_tool })),
                ("PostToolUse", json!({ "tool_name": "TodoWrite", "tool_input": todos })),
                ("PostToolUse", json!({ "tool_name": "todo_write", "tool_input": todos })),
                ("UserPromptSubmit", json!({ "prompt": "do it" })),
                ("Stop", json!({ "stop_hook_active": false })),
                ("SubagentStop", json!({ "stop_hook_active": false })),
            ] {
                assert!(!agent.event(event, &helper(more)).goes_on(), "{}: {event}", words.agent);
            }
        }
        assert_eq!(meaning(&agent), before, "{}", words.agent);
        assert!(agent.stop(), "{}: the parent itself goes on", words.agent);
    }
}

#[test]
fn h41_what_was_granted_belongs_to_whoever_has_the_ticket_not_to_the_session() {
    let root = TestRoot::new();
    let (s, prompt) = Session::at_work(&root, "s");
    let first = s.call("claim", &["--prompt", &prompt, "--attempt", "1"]).is(0, "granted");
    // The same session, the same prompt, the same continuation: it is another's, whoever asks.
    for _ in 0..3 {
        let held = s.call("claim", &["--prompt", &prompt, "--attempt", "1"]).is(10, "unavailable");
        assert_eq!(held.get("reason"), "other-attempt");
    }
    let _ = s.end("tkt_0123456789abcdef", "sent").is(10, "no-such-ticket");
    let _ = s.end(&first.get("ticket"), "sent").is(0, "ticket-settled");
    let _ = s.end(&first.get("ticket"), "sent").is(10, "ticket-ended");
    assert_eq!(s.attempts(), 1);
}

#[test]
fn h43_a_childs_idleness_is_not_its_parents() {
    let root = TestRoot::new();
    let parent = Agent::new(&root, &CURSOR, "root-conversation");
    parent.prompt("build it");
    let before = meaning(&parent);
    let started = json!({ "subagent_type": "general", "task": "look around",
        "parent_conversation_id": "root-conversation" });
    let _ = parent.event("subagentStart", &started);
    let child = json!({ "conversation_id": "child", "parent_conversation_id": "root-conversation",
        "status": "completed" });
    for event in ["beforeSubmitPrompt", "postToolUse", "stop"] {
        assert!(!parent.event(event, &child).goes_on(), "{event}");
    }
    assert_eq!(meaning(&parent), before);

    // The idleness of a session that nobody has heard of is nobody's.
    let stranger = Agent::claude(&root, "never-seen");
    assert!(!stranger.stop());
    assert!(!Agent::claude(&root, "child").stop());
    assert_eq!(stranger.books().record()["prompts"], json!([]));
}

#[test]
fn h45_a_helpers_event_takes_back_nothing_that_its_parent_has_declared() {
    for words in [&CLAUDE, &CODEX, &QWEN] {
        let root = TestRoot::new();
        let agent = Agent::new(&root, words, "s");
        agent.work();
        agent.question(true);
        let before = meaning(&agent);
        let answered = json!({ "agent_id": "a1", "tool_name": words.question_tool, "tool_use_id": "q1",
            "tool_response": {} });
        let _ = agent.event("PreToolUse", &json!({ "agent_id": "a1", "tool_name": "Bash" }));
        let _ = agent.event("PostToolUse", &answered);
        // The parent's own other tools are no answer either.
        let other =
            json!({ "tool_name": "Bash", "tool_input": {}, "tool_response": {}, "tool_use_id": "t9" });
        let _ = agent.event("PostToolUse", &other);
        assert_eq!(meaning(&agent), before, "{}", words.agent);
        assert!(!agent.stop(), "{}", words.agent);
        assert_eq!(agent.attempts(), 0);
    }
}

#[test]
fn h75_a_fork_that_begins_under_its_parents_name_takes_nothing_from_the_parent() {
    let root = TestRoot::new();
    let parent = Agent::at_work(&root, "parent");
    assert!(parent.stop());
    let running = parent.books().record()["prompts"][0]["promptId"].as_str().unwrap().to_owned();
    let ticket = parent.books().ticket(&running);
    let queued = parent.books().submit("waits").get("promptId");
    for source in ["resume", "startup", "some-new-word"] {
        let _ = parent.event("SessionStart", &json!({ "source": source }));
        let record = parent.books().record();
        // A list that the forked conversation may not remember is not trusted; nothing else has changed.
        assert_eq!(record["chain"]["armed"], false, "{source}");
        assert_eq!(record["chain"]["attempts"], 1, "{source}: nothing is refilled");
        assert_eq!(record["tickets"][0]["ticketId"], ticket.as_str(), "{source}");
        assert_eq!(record["prompts"][1]["promptId"], queued.as_str(), "{source}");
        assert_eq!((&record["generation"], &record["state"]), (&json!(1), &json!("open")), "{source}");
    }
    let fork = Agent::at_work(&root, "fork");
    assert_eq!(fork.stops(3), 2, "a budget of its own");
    assert_eq!(parent.attempts(), 1);
    let _ = parent.books().end(&ticket, "sent").is(0, "ticket-settled");
}

#[test]
fn h77_a_session_is_continued_by_its_own_work_and_by_nobody_elses() {
    let root = TestRoot::new();
    let a = Agent::at_work(&root, "a");
    let others = [
        Agent::claude(&root, "b"),
        Agent::new(&root, &CODEX, "a"),
        // Not the same name, though it may look so.
        Agent::claude(&root, "A"),
        Agent::claude(&root, "a "),
    ];
    let before = a.books().record();
    for other in &others {
        for _ in 0..2 {
            assert!(!other.stop());
        }
        other.prompt("hello");
        assert!(!other.stop(), "it has no list of its own");
    }
    assert_eq!(a.books().record(), before);
    // What has no owner can be neither made nor asked for.
    for args in [["session", "open", ""], ["prompt", "submit", ""], ["prompt", "start", ""]] {
        assert_eq!(root.json(&args).exit, 64, "{args:?}");
    }
    for name in ["", "null"] {
        let exit = root.json(&["claim", "claude:a", "--prompt", name]).exit;
        assert_eq!(exit, if name.is_empty() { 64 } else { 10 }, "an empty name is nobody, not everybody");
        assert_ne!(root.json(&["release", "claude:a", "--prompt", name]).exit, 0);
    }
    assert_eq!(a.books().record()["tickets"], json!([]));
    assert!(a.stop());
}

#[test]
fn h79_an_id_is_a_name_and_never_a_path() {
    let root = TestRoot::new();
    let outside = |root: &TestRoot| {
        let names = std::fs::read_dir(root.scratch()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    let _ = Agent::claude(&root, "first").stop();
    let before = outside(&root);
    let absolute = root.file("abs");
    let long = "x".repeat(112);
    let longer = format!("{}y", &long[1..]);
    let ids = [
        "../esc",
        "../../esc",
        "x/../../esc",
        &absolute,
        "a/b",
        "a\\b",
        ".",
        "..",
        "CON",
        "nul.txt",
        "a:b",
        "a%3Ab",
        "%2e%2e",
        "\u{e9}",
        "e\u{301}",
        "Case",
        "case",
        " lead",
        "a b",
        "-x",
        "~",
        &long,
        &longer,
    ];
    for id in ids {
        let payload = json!({ "session_id": id, "hook_event_name": "UserPromptSubmit", "prompt": "hi" });
        let heard = Agent::claude(&root, "first").bytes(payload.to_string().as_bytes());
        assert_eq!(heard.0.stderr, "", "{id}");
    }
    // Line breaks and other control characters forge nothing, for they are refused; so is what is too long.
    for id in ["a\nb", "a\u{0}b", "a\u{1b}[2Jb", &"x".repeat(5000)] {
        let payload = json!({ "session_id": id, "hook_event_name": "Stop" });
        Agent::claude(&root, "first").bytes(payload.to_string().as_bytes()).is_unusable();
    }
    assert_eq!(outside(&root), before, "nothing beside the root");
    let folders = std::fs::read_dir(root.path().join("sessions")).unwrap().count();
    assert_eq!(folders, ids.len() + 1, "each has a folder of its own, just below the sessions");
    for id in ids {
        let told = root.json(&["inspect", "--session", &format!("claude:{id}")]).is(0, "ok");
        assert_eq!(
            told.get("sessionId").replace("[DIR]", &root.scratch().display().to_string()),
            format!("claude:{id}")
        );
    }
}
