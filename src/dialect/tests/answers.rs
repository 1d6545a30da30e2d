//! What is printed for each agent, what our command is registered for, and the marks in texts.

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{call, kind};
use crate::dialect::{
    Agent, Event, Kind, Reply, TimeoutUnit, has_todo_list, install_events, must_name_event, print, prompt_in,
    ticket_in, timeout_unit, todo_list_needs, with_prompt, with_ticket,
};

const TICKET: &str = "tkt_0123456789abcdef";

fn go_on(text: &str) -> Reply {
    Reply::Continue { text: text.to_owned() }
}

/// The end of the main agent's turn.
fn stop(agent: Agent) -> Event {
    let name = match agent {
        Agent::Gemini => "AfterAgent",
        Agent::Cursor => "stop",
        _ => "Stop",
    };
    call(agent, name, &json!({})).unwrap()
}

/// The field that carries the text.
fn text_of(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer.get("reason").or_else(|| answer.get("followup_message")).unwrap().as_str().unwrap().to_owned()
}

#[test]
fn a_continuation_in_each_agents_words() {
    let answers = Agent::ALL
        .map(|agent| format!("{agent}: {}", print(agent, Some(&stop(agent)), &go_on("go \"on\"\n"))));
    assert_snapshot!(answers.join("\n"), @r#"
    claude: {"decision":"block","reason":"go \"on\"\n"}
    codex: {"decision":"block","reason":"go \"on\"\n"}
    gemini: {"decision":"deny","reason":"go \"on\"\n"}
    qwen: {"decision":"block","reason":"go \"on\"\n"}
    cursor: {"followup_message":"go \"on\"\n"}
    copilot: {"decision":"block","reason":"go \"on\"\n"}
    "#);
}

#[test]
fn nothing_is_printed_for_nothing_except_where_an_object_is_demanded() {
    for agent in Agent::ALL {
        let nothing = if agent == Agent::Gemini { "{}" } else { "" };
        assert_eq!(print(agent, Some(&stop(agent)), &Reply::Nothing), nothing, "{agent}");
        assert_eq!(print(agent, None, &Reply::Nothing), nothing, "{agent}");
        assert_eq!(print(agent, None, &go_on("x")), nothing, "{agent}: nothing was understood");
        assert_eq!(print(agent, Some(&stop(agent)), &go_on(" \n")), nothing, "{agent}: without a text");
    }
}

#[test]
fn only_the_end_of_the_main_agents_turn_is_continued() {
    let fields = json!({"prompt": "a", "agent_id": "a1", "tool_name": "TodoWrite"});
    for name in
        ["UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStop", "StopFailure", "SessionEnd", "Stop"]
    {
        let event = call(Agent::Claude, name, &fields).unwrap();
        assert_eq!(print(Agent::Claude, Some(&event), &go_on("x")), "", "{name} of a sub-agent");
    }
    let prompt = call(Agent::Claude, "UserPromptSubmit", &json!({"prompt": "a"})).unwrap();
    assert_eq!(print(Agent::Claude, Some(&prompt), &go_on("x")), "", "it would throw the prompt away");
}

#[test]
fn a_long_text_loses_its_end_but_never_its_ticket() {
    for agent in Agent::ALL {
        let long = with_ticket(&"é".repeat(20_000), TICKET);
        let sent = text_of(&print(agent, Some(&stop(agent)), &go_on(&long)));
        assert_eq!(sent.chars().count(), 8_000, "{agent}");
        assert!(sent.starts_with("ééé") && sent.ends_with("é ...\n\n[lychgate tkt_0123456789abcdef]"));
        assert_eq!(ticket_in(&sent), Some(TICKET));
        let plain = text_of(&print(agent, Some(&stop(agent)), &go_on(&"é".repeat(8_001))));
        assert_eq!(plain.chars().count(), 8_000);
        let fits = "é".repeat(8_000);
        assert_eq!(text_of(&print(agent, Some(&stop(agent)), &go_on(&fits))), fits);
    }
}

#[test]
fn a_ticket_goes_with_a_text_and_is_found_again() {
    let text = with_ticket("Two items are open. Go on.\n", TICKET);
    assert_eq!(text, "Two items are open. Go on.\n\n[lychgate tkt_0123456789abcdef]");
    assert_eq!(ticket_in(&text), Some(TICKET));
    assert_eq!(ticket_in(&format!("Stop hook feedback:\n{text}\n\n(end)")), Some(TICKET));
    assert_eq!(with_ticket("", TICKET), "[lychgate tkt_0123456789abcdef]");
    let handed_on = with_prompt("deploy", "prm_00ff");
    assert_eq!(handed_on, "deploy\n\n[lychgate prm_00ff]");
    assert_eq!(prompt_in(&handed_on), Some("prm_00ff"));
    assert_eq!((prompt_in(&text), ticket_in(&handed_on)), (None, None), "each finds only its own");
}

#[test]
fn the_last_mark_counts() {
    let quoted = with_ticket("you said [lychgate tkt_ffffffffffffffff], and [lychgate prm_1]", TICKET);
    assert_eq!(ticket_in(&quoted), Some(TICKET));
    assert_eq!(prompt_in(&quoted), Some("prm_1"));
    assert_eq!(ticket_in(&format!("{quoted} [lychgate tkt_")), Some(TICKET), "a broken one is none");
}

#[test]
fn what_is_no_mark_is_not_found() {
    let none = [
        "",
        "tkt_0123456789abcdef",
        "[lychgate tkt_0123456789abcde]",
        "[lychgate tkt_0123456789abcdef0]",
        "[lychgate tkt_0123456789ABCDEF]",
        "[lychgate tkt_0123456789abcdeg]",
        "[lychgate  tkt_0123456789abcdef]",
        "[lychgate tkt_0123456789abcdef ]",
        "[lychgate tkt_0123456789abcdef",
        "[Lychgate tkt_0123456789abcdef]",
        "[lychgate prm_]",
        "[lychgate snd_0123456789abcdef]",
    ];
    for text in none {
        assert_eq!((ticket_in(text), prompt_in(text)), (None, None), "{text}");
    }
}

/// Everything an event could be read from.
fn anything(tool: Option<&str>) -> Value {
    json!({
        "prompt": "a", "agent_id": "a1", "agent_type": "t", "subagent_type": "t", "task": "x", "new_cwd": "/b",
        "tool_name": tool,
        "tool_use_id": "t1",
        "tool_input": {
            "todos": [{"content": "x", "description": "x", "status": "pending"}],
            "plan": [{"step": "x", "status": "pending"}],
            "taskId": "1", "status": "completed",
        },
        "tool_response": {"task": {"id": "1"}, "llmContent": "Plan approved"},
    })
}

#[test]
fn all_that_is_registered_is_understood() {
    for agent in Agent::ALL {
        for registered in install_events(agent) {
            match registered.matcher {
                None => {
                    let read = kind(agent, registered.event, &anything(None));
                    assert_ne!(read, Kind::Other, "{agent} {}", registered.event);
                }
                Some(matcher) => {
                    for tool in matcher.split('|') {
                        let event = call(agent, registered.event, &anything(Some(tool))).unwrap();
                        let says = event.kind != Kind::Other || event.plan.is_some();
                        assert!(says, "{agent} {} of {tool}", registered.event);
                    }
                }
            }
        }
    }
}

#[test]
fn every_agent_tells_us_of_prompts_stops_and_beginnings() {
    for agent in Agent::ALL {
        let read: Vec<Kind> = install_events(agent)
            .iter()
            .filter(|registered| registered.matcher.is_none())
            .map(|registered| kind(agent, registered.event, &anything(None)))
            .collect();
        assert!(read.iter().any(|kind| matches!(kind, Kind::Prompt { .. })), "{agent}");
        assert!(read.iter().any(|kind| matches!(kind, Kind::Stop { .. })), "{agent}");
        assert!(read.iter().any(|kind| matches!(kind, Kind::SessionStarted(_))), "{agent}");
        let todo = install_events(agent).iter().any(|registered| {
            registered.matcher.is_some_and(|matcher| {
                matcher
                    .split('|')
                    .any(|tool| matches!(kind(agent, registered.event, &anything(Some(tool))), Kind::Todo(_)))
            })
        });
        assert_eq!(todo, has_todo_list(agent), "{agent}");
        assert!(has_todo_list(agent) || todo_list_needs(agent).is_none(), "{agent}");
    }
}

#[test]
fn an_agent_waits_for_us_some_seconds_in_its_own_unit() {
    for agent in Agent::ALL {
        for registered in install_events(agent) {
            let seconds = match timeout_unit(agent) {
                TimeoutUnit::Seconds => registered.timeout,
                TimeoutUnit::Milliseconds => registered.timeout / 1000,
            };
            assert!((3..=10).contains(&seconds), "{agent} {}", registered.event);
        }
    }
}

#[test]
fn only_copilot_leaves_the_name_of_an_event_out() {
    assert_eq!(
        Agent::ALL.into_iter().filter(|agent| must_name_event(*agent)).collect::<Vec<_>>(),
        [Agent::Copilot]
    );
}

proptest! {
    #[test]
    fn any_text_is_printed_as_one_object_or_not_at_all(text: String, agent in prop::sample::select(&Agent::ALL[..])) {
        let answer = print(agent, Some(&stop(agent)), &go_on(&text));
        if text.trim().is_empty() {
            prop_assert!(["", "{}"].contains(&answer.as_str()), "{answer}");
        } else {
            prop_assert_eq!(text_of(&answer), text);
        }
    }

    #[test]
    fn any_text_gives_its_ticket_back(text: String, id in "[0-9a-f]{16}") {
        let ticket = format!("tkt_{id}");
        let marked = with_ticket(&text, &ticket);
        prop_assert_eq!(ticket_in(&marked), Some(ticket.as_str()));
    }
}
