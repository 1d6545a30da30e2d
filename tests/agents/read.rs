//! The recorded payloads, read by the readers of the agents' wire.

use std::path::Path;

use lychgate::dialect::{self, Agent, Event, Kind, Todo};

/// What a call means, in a few words.
fn in_words(event: &Event) -> String {
    let what = match &event.kind {
        Kind::Prompt { text, typed } => {
            let text: String = text.lines().next().unwrap_or_default().chars().take(30).collect();
            format!("prompt {text:?} typed={typed:?}")
        }
        Kind::Stop { active, background, .. } => {
            let living = background.as_ref().map(|all| {
                let living =
                    all.iter().map(|one| format!("{} {:?}", one.kind, one.status.as_deref().unwrap_or("?")));
                living.collect::<Vec<_>>()
            });
            format!("stop active={active:?} background={living:?}")
        }
        Kind::Todo(Todo::List(list)) => format!("to-dos {}", list["todos"]),
        Kind::Todo(Todo::Item { id, status, .. }) => format!("to-do {id} {status}"),
        other => format!("{other:?}"),
    };
    let sub_agent = if event.sub_agent.is_some() { "sub-agent: " } else { "" };
    format!("{sub_agent}{what}")
}

/// What the calls of this recording mean, without those that mean nothing.
fn meanings(agent: Agent, name: &str) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/payloads/driven/{agent}-{name}.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    let read = |line: &str| {
        // The one event that comes without its name, whatever it was registered under.
        let told = (!line.contains("\"hook_event_name\"")).then_some("SubagentStart");
        dialect::read(agent, told, line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let events = text.lines().map(read).filter(|event| event.kind != Kind::Other);
    events.map(|event| in_words(&event) + "\n").collect()
}

#[test]
fn a_continuation_of_claude_code_and_codex_is_no_prompt() {
    insta::assert_snapshot!(meanings(Agent::Claude, "blocked-twice"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    to-do 1 pending
    to-do 2 pending
    stop active=Some(false) background=Some([])
    stop active=Some(true) background=Some([])
    stop active=Some(true) background=Some([])
    SessionEnded { reason: Some("other") }
    SessionStarted(Resume)
    prompt "more" typed=None
    stop active=Some(false) background=Some([])
    SessionEnded { reason: Some("other") }
    "#);
    insta::assert_snapshot!(meanings(Agent::Codex, "blocked-twice"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    to-dos [{"id":"1","content":"first","status":"in_progress"},{"id":"2","content":"second","status":"pending"}]
    stop active=Some(false) background=None
    stop active=Some(true) background=None
    stop active=Some(true) background=None
    SessionEnded { reason: Some("other") }
    SessionStarted(Resume)
    prompt "more" typed=None
    stop active=Some(false) background=None
    SessionEnded { reason: Some("other") }
    "#);
}

#[test]
fn a_continuation_of_the_others_is_a_prompt_that_nobody_is_known_to_have_typed() {
    insta::assert_snapshot!(meanings(Agent::Gemini, "blocked-twice"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    to-dos [{"id":"1","content":"first","status":"in_progress"},{"id":"2","content":"second","status":"pending"}]
    stop active=Some(false) background=Some([])
    prompt "go on, one" typed=None
    stop active=Some(true) background=Some([])
    prompt "go on, two" typed=None
    stop active=Some(true) background=Some([])
    SessionEnded { reason: Some("exit") }
    SessionStarted(Resume)
    prompt "more" typed=None
    stop active=Some(false) background=Some([])
    SessionEnded { reason: Some("exit") }
    "#);
    insta::assert_snapshot!(meanings(Agent::Qwen, "blocked-twice"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=Some(true)
    to-dos [{"id":"1","content":"first","status":"in_progress"},{"id":"2","content":"second","status":"pending"}]
    prompt "" typed=Some(false)
    stop active=Some(false) background=Some([])
    prompt "go on, one" typed=None
    stop active=Some(true) background=Some([])
    prompt "go on, two" typed=None
    stop active=Some(true) background=Some([])
    SessionStarted(Resume)
    prompt "more" typed=Some(true)
    stop active=Some(false) background=Some([])
    "#);
    insta::assert_snapshot!(meanings(Agent::Copilot, "blocked-twice"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    stop active=Some(false) background=None
    prompt "go on, one" typed=None
    stop active=Some(true) background=None
    prompt "go on, two" typed=None
    stop active=Some(true) background=None
    SessionEnded { reason: Some("complete") }
    SessionStarted(Resume)
    prompt "more" typed=None
    stop active=Some(false) background=None
    SessionEnded { reason: Some("complete") }
    "#);
}

#[test]
fn a_sub_agents_prompts_to_dos_and_stops_are_its_own() {
    insta::assert_snapshot!(meanings(Agent::Claude, "sub-agent"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    sub-agent: SubAgentStarted
    sub-agent: to-do 1 pending
    sub-agent: to-do 2 pending
    sub-agent: SubAgentStopped
    stop active=Some(false) background=Some([])
    SessionEnded { reason: Some("other") }
    "#);
    insta::assert_snapshot!(meanings(Agent::Codex, "sub-agent"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    sub-agent: SubAgentStarted
    sub-agent: prompt "do it" typed=None
    sub-agent: to-dos [{"id":"1","content":"first","status":"in_progress"},{"id":"2","content":"second","status":"pending"}]
    sub-agent: SubAgentStopped
    stop active=Some(false) background=None
    SessionEnded { reason: Some("other") }
    "#);
    insta::assert_snapshot!(meanings(Agent::Qwen, "sub-agent"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=Some(true)
    sub-agent: SubAgentStarted
    prompt "" typed=Some(false)
    stop active=Some(false) background=Some(["general-purpose \"running\""])
    sub-agent: SubAgentStopped
    stop active=Some(false) background=Some([])
    "#);
    insta::assert_snapshot!(meanings(Agent::Copilot, "sub-agent"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    sub-agent: SubAgentStarted
    sub-agent: prompt "do it" typed=None
    sub-agent: stop active=Some(false) background=None
    sub-agent: SubAgentStopped
    stop active=Some(false) background=None
    SessionEnded { reason: Some("complete") }
    "#);
}

#[test]
fn what_ends_in_the_background_is_a_prompt_that_nobody_typed() {
    insta::assert_snapshot!(meanings(Agent::Claude, "background"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    stop active=Some(false) background=Some(["shell \"running\""])
    prompt "<task-notification>" typed=Some(false)
    stop active=Some(false) background=Some([])
    SessionEnded { reason: Some("other") }
    "#);
}

#[test]
fn a_list_without_ids_is_numbered() {
    insta::assert_snapshot!(meanings(Agent::Claude, "todo-write"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    to-dos [{"id":"1","content":"first","status":"in_progress"},{"id":"2","content":"second","status":"pending"}]
    stop active=Some(false) background=Some([])
    SessionEnded { reason: Some("other") }
    "#);
}

#[test]
fn a_turn_that_fails_or_is_interrupted_says_so_where_the_agent_does() {
    insta::assert_snapshot!(meanings(Agent::Claude, "failure"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    StopFailed
    SessionEnded { reason: Some("other") }
    "#);
    insta::assert_snapshot!(meanings(Agent::Qwen, "failure"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=Some(true)
    "#);
    insta::assert_snapshot!(meanings(Agent::Copilot, "failure"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    StopFailed
    SessionEnded { reason: Some("error") }
    "#);
    insta::assert_snapshot!(meanings(Agent::Codex, "interrupt"), @r#"
    SessionStarted(Startup)
    prompt "hello" typed=None
    Interrupted
    SessionEnded { reason: Some("other") }
    "#);
}

#[test]
fn a_cleared_conversation_ends_one_session_and_starts_another() {
    insta::assert_snapshot!(meanings(Agent::Claude, "typed-and-cleared"), @r#"
    SessionStarted(Startup)
    prompt "alpha" typed=None
    stop active=Some(false) background=Some([])
    prompt "while the model answers" typed=None
    stop active=Some(false) background=Some([])
    SessionEnded { reason: Some("clear") }
    SessionStarted(Clear)
    prompt "omega" typed=None
    stop active=Some(false) background=Some([])
    SessionEnded { reason: Some("other") }
    "#);
}

#[test]
fn every_recording_is_read_here() {
    let source = include_str!("read.rs");
    for entry in
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/payloads/driven")).unwrap()
    {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let (agent, name) = file.trim_end_matches(".jsonl").split_once('-').unwrap();
        let agent = Agent::ALL.into_iter().find(|known| known.as_str() == agent).unwrap();
        assert!(
            source.contains(&format!("meanings(Agent::{agent:?}, \"{name}\")")),
            "{file} is read by no test"
        );
    }
}
