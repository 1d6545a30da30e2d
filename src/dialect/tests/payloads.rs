//! What real agents said, and what was understood of it. `tests/payloads/README.md` says where each comes from.

use std::fmt::Write as _;

use insta::assert_snapshot;
use serde_json::Value;

use crate::dialect::{Agent, Event, Kind, Todo, read};

macro_rules! payloads {
    ($name:literal) => {
        include_str!(concat!("../../../tests/payloads/", $name))
    };
}

const RECORDED: [(Agent, &str); 7] = [
    (Agent::Claude, payloads!("claude-2.1.197.jsonl")),
    (Agent::Claude, payloads!("claude-2.1.197-more.jsonl")),
    (Agent::Codex, payloads!("codex-0.171.0.jsonl")),
    (Agent::Codex, payloads!("codex-0.171.0-more.jsonl")),
    (Agent::Gemini, payloads!("gemini-0.61.0.jsonl")),
    (Agent::Qwen, payloads!("qwen-0.24.4.jsonl")),
    (Agent::Cursor, payloads!("cursor-documented.jsonl")),
];

/// A line a call: the agent's name for the event, and what was understood.
fn understood(agent: Agent, payloads: &str) -> String {
    let mut told = String::new();
    for line in payloads.lines() {
        let (name, stdin) = named(line);
        let event = read(agent, name.as_deref(), stdin.as_bytes()).unwrap();
        let said: Value = serde_json::from_str(&stdin).unwrap();
        let name = name.or_else(|| said["hook_event_name"].as_str().map(str::to_owned)).unwrap();
        writeln!(told, "{name}: {}", shown(&event)).unwrap();
    }
    told
}

/// A recorded line, and the event's name where it stands beside the call.
fn named(line: &str) -> (Option<String>, String) {
    let value: Value = serde_json::from_str(line).unwrap();
    match value.get("stdin") {
        Some(stdin) => (Some(value["event"].as_str().unwrap().to_owned()), stdin.to_string()),
        None => (None, line.to_owned()),
    }
}

fn shown(event: &Event) -> String {
    let mut line = match &event.kind {
        Kind::Todo(Todo::List(list)) => format!("list {}", list["todos"]),
        kind => format!("{kind:?}"),
    };
    if let Some(sub_agent) = &event.sub_agent {
        write!(line, ", sub-agent {}", sub_agent.id).unwrap();
    }
    if let Some(plan) = event.plan {
        write!(line, ", plan {plan}").unwrap();
    }
    if event.turn.is_some() {
        line.push_str(", turn");
    }
    line
}

#[test]
fn every_recorded_call_names_its_session_and_its_directory() {
    for (agent, payloads) in RECORDED {
        for line in payloads.lines() {
            let event = read(agent, None, line.as_bytes()).unwrap();
            assert_eq!(event.session.len(), 36, "{line}");
            assert_eq!(event.cwd.as_deref(), Some("/home/u/project"), "{line}");
        }
    }
}

#[test]
fn every_recorded_call_that_is_cut_off_is_of_no_use() {
    for (agent, payloads) in RECORDED {
        for line in payloads.lines() {
            for end in (0..line.len()).step_by(4) {
                read(agent, None, &line.as_bytes()[..end]).unwrap_err();
            }
        }
    }
}

#[test]
fn claude_with_its_tasks() {
    assert_snapshot!(understood(Agent::Claude, payloads!("claude-2.1.197.jsonl")), @r#"
    SessionStart: SessionStarted(Startup)
    UserPromptSubmit: Prompt { text: "hi", typed: None }, plan false, turn
    TaskCreated: Other, turn
    PostToolUse: Todo(Item { id: "1", content: Some("first"), status: "pending" }), plan false, turn
    TaskCreated: Other, turn
    PostToolUse: Todo(Item { id: "2", content: Some("second"), status: "pending" }), plan false, turn
    TaskCompleted: Other, turn
    PostToolUse: Todo(Item { id: "1", content: None, status: "completed" }), plan false, turn
    Stop: Stop { active: Some(false), background: Some([]), wakeups: Some([]) }, plan false, turn
    Stop: Stop { active: Some(true), background: Some([]), wakeups: Some([]) }, plan false, turn
    SessionEnd: SessionEnded { reason: Some("other") }, turn
    "#);
}

#[test]
fn claude_with_a_sub_agent_a_list_and_a_failed_turn() {
    assert_snapshot!(understood(Agent::Claude, payloads!("claude-2.1.197-more.jsonl")), @r#"
    SubagentStart: SubAgentStarted, sub-agent afb48010abec8a062, turn
    TaskCreated: Other, turn
    PostToolUse: Todo(Item { id: "1", content: Some("sub"), status: "pending" }), sub-agent afb48010abec8a062, plan false, turn
    SubagentStop: SubAgentStopped, sub-agent afb48010abec8a062, plan false, turn
    PostToolUse: Other, plan false, turn
    PostToolUse: list [{"id":"1","content":"a","status":"completed"},{"id":"2","content":"b","status":"in_progress"}], plan false, turn
    PostToolUse: list [{"id":"1","content":"a","status":"completed"},{"id":"2","content":"b","status":"completed"}], plan false, turn
    StopFailure: StopFailed, turn
    "#);
}

#[test]
fn codex() {
    assert_snapshot!(understood(Agent::Codex, payloads!("codex-0.171.0.jsonl")), @r#"
    SessionStart: SessionStarted(Startup), plan false
    UserPromptSubmit: Prompt { text: "say hi", typed: None }, plan false, turn
    Stop: Stop { active: Some(false), background: None, wakeups: None }, plan false, turn
    Stop: Stop { active: Some(true), background: None, wakeups: None }, plan false, turn
    Stop: Stop { active: Some(true), background: None, wakeups: None }, plan false, turn
    "#);
}

#[test]
fn codex_with_a_plan_a_question_and_an_interrupt() {
    assert_snapshot!(understood(Agent::Codex, payloads!("codex-0.171.0-more.jsonl")), @r#"
    PreToolUse: Other, plan false, turn
    PostToolUse: list [{"id":"1","content":"first","status":"completed"},{"id":"2","content":"second","status":"in_progress"},{"id":"3","content":"third","status":"pending"}], plan false, turn
    PreToolUse: Other, plan false, turn
    PreToolUse: QuestionAsked { id: Some("call_3") }, plan false, turn
    Interrupt: Interrupted, plan false, turn
    SessionEnd: SessionEnded { reason: Some("other") }
    "#);
}

#[test]
fn gemini_with_a_list_plan_mode_and_a_sub_agent() {
    assert_snapshot!(understood(Agent::Gemini, payloads!("gemini-0.61.0.jsonl")), @r#"
    SessionStart: SessionStarted(Startup)
    BeforeAgent: Prompt { text: "hi", typed: None }
    BeforeTool: Other
    AfterTool: list [{"id":"1","content":"first","status":"completed"},{"id":"2","content":"second","status":"in_progress"}]
    AfterAgent: Stop { active: Some(false), background: Some([]), wakeups: None }
    BeforeAgent: Prompt { text: "go on please", typed: None }
    AfterAgent: Stop { active: Some(true), background: Some([]), wakeups: None }
    BeforeTool: Other
    AfterTool: Other, plan true
    BeforeTool: Other
    AfterTool: Other, plan false
    BeforeTool: SubAgentStarted, sub-agent by_task_9d304a3dc5c067c7
    BeforeTool: Other
    AfterTool: list [{"id":"1","content":"sub","status":"pending"}]
    AfterTool: SubAgentStopped, sub-agent by_task_9d304a3dc5c067c7
    SessionEnd: SessionEnded { reason: Some("exit") }
    "#);
}

#[test]
fn qwen_with_a_list_and_a_sub_agent_in_the_background() {
    assert_snapshot!(understood(Agent::Qwen, payloads!("qwen-0.24.4.jsonl")), @r#"
    SessionStart: SessionStarted(Startup), plan false
    Notification: Other, plan false
    UserPromptSubmit: Prompt { text: "hi", typed: Some(true) }, plan false, turn
    PreToolUse: Other, plan false, turn
    TodoCreated: Other, plan false, turn
    TodoCreated: Other, plan false, turn
    TodoCreated: Other, plan false, turn
    TodoCreated: Other, plan false, turn
    PostToolUse: list [{"id":"1","content":"first","status":"completed"},{"id":"2","content":"second","status":"in_progress"}], plan false, turn
    UserPromptSubmit: Prompt { text: "", typed: Some(false) }, plan false, turn
    UserPromptSubmit: Prompt { text: "", typed: Some(false) }, plan false, turn
    Stop: Stop { active: Some(false), background: Some([]), wakeups: Some([]) }, plan false, turn
    UserPromptSubmit: Prompt { text: "go on please", typed: None }, plan false, turn
    Stop: Stop { active: Some(true), background: Some([]), wakeups: Some([]) }, plan false, turn
    SubagentStart: SubAgentStarted, sub-agent general-purpose-call_4, plan false, turn
    SubagentStop: SubAgentStopped, sub-agent general-purpose-call_4, plan false, turn
    Stop: Stop { active: Some(false), background: Some([Background { id: "general-purpose-call_4", kind: "general-purpose", status: Some("running") }]), wakeups: Some([]) }, plan false, turn
    SubagentStop: SubAgentStopped, sub-agent general-purpose-call_4, plan false, turn
    Stop: Stop { active: Some(false), background: Some([]), wakeups: Some([]) }, plan false, turn
    "#);
}

#[test]
fn cursor_as_documented() {
    assert_snapshot!(understood(Agent::Cursor, payloads!("cursor-documented.jsonl")), @r#"
    sessionStart: SessionStarted(Startup), plan false, turn
    beforeSubmitPrompt: Prompt { text: "hi", typed: None }, turn
    subagentStart: SubAgentStarted, sub-agent by_task_795825906e63bab1, turn
    subagentStop: SubAgentStopped, sub-agent by_task_795825906e63bab1, turn
    postToolUse: Other, turn
    stop: Stop { active: Some(false), background: None, wakeups: None }, turn
    stop: Stop { active: Some(true), background: None, wakeups: None }, turn
    stop: Interrupted, turn
    stop: StopFailed, turn
    sessionEnd: SessionEnded { reason: Some("completed") }, turn
    "#);
}

#[test]
fn copilot_under_both_names_of_each_event() {
    assert_snapshot!(understood(Agent::Copilot, payloads!("copilot-1.0.102.jsonl")), @r#"
    SessionStart: SessionStarted(Startup)
    sessionStart: SessionStarted(Startup)
    UserPromptSubmit: Prompt { text: "hi", typed: None }
    userPromptSubmitted: Prompt { text: "hi", typed: None }
    userPromptTransformed: Other
    PreToolUse: Other
    preToolUse: Other
    PostToolUseFailure: Other
    postToolUseFailure: Other
    PreToolUse: Other
    preToolUse: Other
    PostToolUseFailure: Other
    postToolUseFailure: Other
    PreToolUse: QuestionAsked { id: None }
    preToolUse: QuestionAsked { id: None }
    PostToolUseFailure: Other
    postToolUseFailure: Other
    Stop: Stop { active: Some(false), background: None, wakeups: None }
    agentStop: Stop { active: Some(false), background: None, wakeups: None }
    UserPromptSubmit: Prompt { text: "go on please", typed: None }
    userPromptSubmitted: Prompt { text: "go on please", typed: None }
    userPromptTransformed: Other
    Stop: Stop { active: Some(true), background: None, wakeups: None }
    agentStop: Stop { active: Some(true), background: None, wakeups: None }
    SessionEnd: SessionEnded { reason: Some("complete") }
    sessionEnd: SessionEnded { reason: Some("complete") }
    SubagentStart: SubAgentStarted, sub-agent 4d326983-5351-4960-94d6-205a93a68eed
    subagentStart: SubAgentStarted, sub-agent 4d326983-5351-4960-94d6-205a93a68eed
    UserPromptSubmit: Prompt { text: "p", typed: None }, sub-agent 4d326983-5351-4960-94d6-205a93a68eed
    userPromptSubmitted: Prompt { text: "p", typed: None }, sub-agent 4d326983-5351-4960-94d6-205a93a68eed
    userPromptTransformed: Other, sub-agent 4d326983-5351-4960-94d6-205a93a68eed
    Stop: Stop { active: Some(false), background: None, wakeups: None }, sub-agent 4d326983-5351-4960-94d6-205a93a68eed
    agentStop: Stop { active: Some(false), background: None, wakeups: None }, sub-agent 4d326983-5351-4960-94d6-205a93a68eed
    SubagentStop: SubAgentStopped, sub-agent 4d326983-5351-4960-94d6-205a93a68eed
    subagentStop: SubAgentStopped, sub-agent 4d326983-5351-4960-94d6-205a93a68eed
    ErrorOccurred: StopFailed
    errorOccurred: StopFailed
    "#);
}
