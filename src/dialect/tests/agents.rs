//! What an agent says beyond the recorded calls: lists of every shape, machine text, background work, lineage.

use serde_json::{Value, json};

use super::{call, kind, todo, typed};
use crate::dialect::{Agent, Background, Event, Kind, Start, Todo, read};

fn list(todos: &Value) -> Todo {
    Todo::List(json!({"kind": "todo_list", "todos": todos}))
}

fn item(id: &str, content: Option<&str>, status: &str) -> Todo {
    Todo::Item { id: id.to_owned(), content: content.map(str::to_owned), status: status.to_owned() }
}

/// The list that `TodoWrite` leaves when it answers with these items.
fn written(items: &Value) -> Option<Todo> {
    let fields = json!({"tool_name": "TodoWrite", "tool_input": {}, "tool_response": {"newTodos": items}});
    todo(Agent::Claude, "PostToolUse", &fields)
}

/// What a call of a task tool of Claude did.
fn task(tool: &str, input: &Value, response: &Value) -> Option<Todo> {
    let fields = json!({"tool_name": tool, "tool_input": input, "tool_response": response});
    todo(Agent::Claude, "PostToolUse", &fields)
}

#[test]
fn a_list_has_the_tools_own_ids_or_places_and_never_both() {
    let own = json!([{"id": "b", "content": "x", "status": "pending"}, {"id": 7, "content": "y", "status": "completed"}]);
    let same = json!([{"id": "b", "content": "x", "status": "pending"}, {"id": "7", "content": "y", "status": "completed"}]);
    assert_eq!(written(&own), Some(list(&same)));
    let mixed =
        json!([{"id": "2", "content": "x", "status": "pending"}, {"content": "y", "status": "pending"}]);
    let places = json!([{"id": "1", "content": "x", "status": "pending"}, {"id": "2", "content": "y", "status": "pending"}]);
    assert_eq!(written(&mixed), Some(list(&places)));
    assert_eq!(written(&json!([])), Some(list(&json!([]))), "an empty list is a list");
}

#[test]
fn a_list_that_does_not_fold_is_no_list() {
    let broken = [
        json!("[]"),
        json!({"a": 1}),
        json!(["x"]),
        json!([{"content": "x"}]),
        json!([{"status": "pending"}]),
        json!([{"content": 1, "status": "pending"}]),
        json!([{"content": "x", "status": "PENDING"}]),
        json!([{"content": "x", "status": "pending"}, {"content": "y", "status": "later"}]),
    ];
    for items in broken {
        assert_eq!(written(&items), None, "{items}");
    }
}

#[test]
fn what_cannot_be_worked_on_is_not_to_do() {
    let todos = json!([
        {"description": "a", "status": "cancelled"},
        {"description": "b", "status": "blocked"},
        {"description": "c", "status": "pending"},
    ]);
    let fields = json!({"tool_name": "write_todos", "tool_input": {"todos": todos}});
    let left = json!([{"id": "3", "content": "c", "status": "pending"}]);
    assert_eq!(todo(Agent::Gemini, "AfterTool", &fields), Some(list(&left)), "the place stays the same");
}

#[test]
fn a_tools_answer_comes_before_what_was_asked_for() {
    let asked = json!([{"id": "1", "content": "asked", "status": "pending"}]);
    let answered = json!([{"id": "1", "content": "answered", "status": "completed"}]);
    let fields = json!({
        "tool_name": "todo_write",
        "tool_input": {"todos": asked},
        "tool_response": {"returnDisplay": {"type": "todo_list", "todos": answered}},
    });
    assert_eq!(todo(Agent::Qwen, "PostToolUse", &fields), Some(list(&answered)));
}

#[test]
fn a_failed_call_changes_no_list() {
    let input = json!({"todos": [{"content": "x", "description": "x", "status": "pending"}]});
    let failures = [
        json!({"error": "bad"}),
        json!({"error": {"message": "bad"}}),
        json!({"success": false}),
        json!({"is_error": true}),
    ];
    for response in failures {
        for (agent, name, tool) in [
            (Agent::Claude, "PostToolUse", "TodoWrite"),
            (Agent::Gemini, "AfterTool", "write_todos"),
            (Agent::Qwen, "PostToolUse", "todo_write"),
        ] {
            let fields = json!({"tool_name": tool, "tool_input": input, "tool_response": response});
            assert_eq!(todo(agent, name, &fields), None, "{agent} {response}");
        }
        assert_eq!(task("TaskUpdate", &json!({"taskId": "1", "status": "completed"}), &response), None);
    }
    let failed = json!({"tool_name": "TodoWrite", "tool_input": input, "error": "bad"});
    assert_eq!(todo(Agent::Claude, "PostToolUseFailure", &failed), None);
    assert_eq!(todo(Agent::Claude, "PreToolUse", &failed), None, "nor one that has not run");
}

#[test]
fn a_tool_of_another_server_with_the_same_name_is_another_tool() {
    let todos = json!({"todos": [{"content": "x", "status": "pending"}]});
    for tool in ["mcp__x__TodoWrite", "TodoWrite2", "todowrite", "todo_write", "update_plan"] {
        assert_eq!(task(tool, &todos, &json!({})), None, "{tool}");
    }
}

#[test]
fn claudes_tasks_come_one_by_one() {
    let created = json!({"task": {"id": "3", "subject": "x"}});
    assert_eq!(
        task("TaskCreate", &json!({"subject": "asked"}), &created),
        Some(item("3", Some("x"), "pending"))
    );
    assert_eq!(task("TaskCreate", &json!({"subject": "asked"}), &json!({})), None, "without an id");
    let update = |input: Value| task("TaskUpdate", &input, &json!({"success": true}));
    assert_eq!(update(json!({"taskId": "3", "status": "in_progress"})), Some(item("3", None, "in_progress")));
    assert_eq!(
        update(json!({"taskId": 3, "status": "deleted", "subject": "y"})),
        Some(item("3", Some("y"), "deleted"))
    );
    assert_eq!(update(json!({"taskId": "3", "subject": "y"})), None, "no status has changed");
    assert_eq!(update(json!({"taskId": "3", "status": "later"})), None);
    let changed = json!({"success": true, "statusChange": {"from": "pending", "to": "completed"}});
    let asked = json!({"taskId": "3", "status": "in_progress"});
    assert_eq!(task("TaskUpdate", &asked, &changed), Some(item("3", None, "completed")));
}

#[test]
fn a_sub_agents_list_stays_the_sub_agents() {
    let fields = json!({
        "agent_id": "a1",
        "agent_type": "explore",
        "tool_name": "TodoWrite",
        "tool_input": {"todos": [{"content": "x", "status": "pending"}]},
    });
    let event = call(Agent::Claude, "PostToolUse", &fields).unwrap();
    let sub_agent = event.sub_agent.unwrap();
    assert_eq!((sub_agent.id.as_str(), sub_agent.kind.as_deref()), ("a1", Some("explore")));
    let main = call(Agent::Claude, "Stop", &json!({"agent_type": "reviewer"})).unwrap();
    assert_eq!(main.sub_agent, None, "an agent type alone is the main agent's own");
}

#[test]
fn machine_text_is_known_by_its_first_tag() {
    let machine = [
        "<task-notification> x",
        "<task-notification>x</task-notification>",
        " \n\t<system-reminder>\nx",
        "<teammate-message teammate_id=\"a\">x",
        "<system_notification>",
    ];
    for text in machine {
        assert_eq!(typed(Agent::Claude, "UserPromptSubmit", &json!({"prompt": text})), Some(false), "{text}");
        assert_eq!(typed(Agent::Gemini, "BeforeAgent", &json!({"prompt": text})), Some(false), "{text}");
    }
    let person = [
        "hello",
        "what does <task-notification> mean?",
        "<task-notification-bar>",
        "<task-notification",
        "< task-notification>",
        "<div>fix this</div>",
        "",
    ];
    for text in person {
        assert_eq!(typed(Agent::Claude, "UserPromptSubmit", &json!({"prompt": text})), None, "{text}");
    }
}

#[test]
fn an_origin_field_says_who_speaks() {
    let said = |origin: Value| {
        typed(
            Agent::Claude,
            "UserPromptSubmit",
            &json!({"prompt": "<task-notification> x", "origin": origin}),
        )
    };
    assert_eq!(said(json!("human")), Some(true));
    assert_eq!(said(json!({"kind": "user"})), Some(true));
    assert_eq!(said(json!("task-notification")), Some(false));
    assert_eq!(said(json!({"kind": "coordinator"})), Some(false));
    assert_eq!(said(json!(null)), Some(false), "then the text's own form counts");
}

#[test]
fn qwen_says_what_was_submitted() {
    let said = |fields: Value| typed(Agent::Qwen, "UserPromptSubmit", &fields);
    assert_eq!(said(json!({"prompt": "a", "submitted_prompt": "a"})), Some(true));
    assert_eq!(said(json!({"prompt": "", "submitted_prompt": ""})), Some(true), "only a picture");
    assert_eq!(said(json!({"prompt": "a"})), None);
    assert_eq!(said(json!({"prompt": ""})), Some(false), "what follows a tool call");
    assert_eq!(said(json!({"prompt": "<task-notification> x"})), Some(false));
}

#[test]
fn absent_background_work_is_not_empty_background_work() {
    let lives = |fields: Value| match kind(Agent::Claude, "Stop", &fields) {
        Kind::Stop { background, wakeups, .. } => (background, wakeups),
        other => panic!("{other:?}"),
    };
    assert_eq!(lives(json!({})), (None, None));
    assert_eq!(lives(json!({"background_tasks": null, "session_crons": null})), (None, None));
    assert_eq!(lives(json!({"background_tasks": [], "session_crons": []})), (Some(vec![]), Some(vec![])));
}

#[test]
fn what_lives_in_the_background_is_counted_even_if_it_is_told_badly() {
    let tasks = json!([
        {"id": "b1"},
        {"id": 2, "type": "shell", "status": "running"},
        {"type": "monitor", "status": "paused"},
        "b4",
        {"id": "over", "status": "completed"},
        {"id": "gone", "status": "killed"},
    ]);
    let fields = json!({"background_tasks": tasks});
    let Kind::Stop { background: Some(background), .. } = kind(Agent::Claude, "Stop", &fields) else {
        panic!()
    };
    let task = |id: &str, kind: &str, status: Option<&str>| Background {
        id: id.to_owned(),
        kind: kind.to_owned(),
        status: status.map(str::to_owned),
    };
    let alive = [
        task("b1", "", None),
        task("2", "shell", Some("running")),
        task("#3", "monitor", Some("paused")),
        task("b4", "", None),
    ];
    assert_eq!(background, alive);
}

#[test]
fn a_wakeup_that_is_switched_off_wakes_nobody() {
    let fields =
        json!({"crons": [{"id": "c1", "enabled": false}, {"id": "c2", "enabled": true}, {"id": "c3"}]});
    let Kind::Stop { wakeups, .. } = kind(Agent::Qwen, "Stop", &fields) else { panic!() };
    assert_eq!(wakeups, Some(vec!["c2".to_owned(), "c3".to_owned()]));
}

#[test]
fn plan_mode_is_what_the_agent_says() {
    let plan = |agent, name, fields: Value| call(agent, name, &fields).unwrap().plan;
    for agent in [Agent::Claude, Agent::Codex, Agent::Qwen] {
        assert_eq!(plan(agent, "Stop", json!({"permission_mode": "plan"})), Some(true), "{agent}");
        assert_eq!(plan(agent, "Stop", json!({"permission_mode": "acceptEdits"})), Some(false), "{agent}");
        assert_eq!(plan(agent, "Stop", json!({})), None, "{agent}");
    }
    assert_eq!(plan(Agent::Cursor, "sessionStart", json!({"composer_mode": "plan"})), Some(true));
    let left = |answer: &str| json!({"tool_name": "exit_plan_mode", "tool_response": {"llmContent": answer}});
    assert_eq!(plan(Agent::Gemini, "AfterTool", left("Plan approved. Switching ...")), Some(false));
    assert_eq!(plan(Agent::Gemini, "AfterTool", left("Plan rejected. ...")), None);
    assert_eq!(plan(Agent::Gemini, "BeforeTool", left("Plan approved.")), None);
}

#[test]
fn a_session_begins_in_four_ways() {
    let starts = [
        (json!({}), Start::Startup),
        (json!({"source": "startup"}), Start::Startup),
        (json!({"source": "new"}), Start::Startup),
        (json!({"source": "resume"}), Start::Resume),
        (json!({"source": "branch"}), Start::Resume),
        (json!({"source": "clear"}), Start::Clear),
        (json!({"source": "compact"}), Start::Compact),
    ];
    for (fields, start) in starts {
        assert_eq!(kind(Agent::Qwen, "SessionStart", &fields), Kind::SessionStarted(start), "{fields}");
    }
}

#[test]
fn claude_says_where_it_went() {
    let moved = json!({"cwd": "/a", "old_cwd": "/a", "new_cwd": "/b"});
    assert_eq!(
        kind(Agent::Claude, "CwdChanged", &moved),
        Kind::DirectoryChanged { to: Some("/b".to_owned()) }
    );
    let only = json!({"cwd": "/b"});
    assert_eq!(
        kind(Agent::Claude, "CwdChanged", &only),
        Kind::DirectoryChanged { to: Some("/b".to_owned()) }
    );
}

#[test]
fn a_question_is_open_from_its_call_to_its_answer() {
    let asked = json!({"tool_name": "AskUserQuestion", "tool_use_id": "t1"});
    assert_eq!(kind(Agent::Claude, "PreToolUse", &asked), Kind::QuestionAsked { id: Some("t1".to_owned()) });
    assert_eq!(
        kind(Agent::Claude, "PostToolUse", &asked),
        Kind::QuestionAnswered { id: Some("t1".to_owned()) }
    );
    let asked = json!({"tool_name": "ask_user"});
    assert_eq!(kind(Agent::Gemini, "BeforeTool", &asked), Kind::QuestionAsked { id: None });
    assert_eq!(kind(Agent::Gemini, "AfterTool", &asked), Kind::QuestionAnswered { id: None });
    assert_eq!(
        kind(Agent::Copilot, "preToolUse", &json!({"toolName": "ask_user"})),
        Kind::QuestionAsked { id: None }
    );
    assert_eq!(kind(Agent::Claude, "PreToolUse", &asked), Kind::Other, "another agent's tool");
}

#[test]
fn a_sub_agent_without_a_name_is_not_followed() {
    for name in ["SubagentStart", "SubagentStop"] {
        assert_eq!(kind(Agent::Claude, name, &json!({})), Kind::Other);
        assert_eq!(kind(Agent::Claude, name, &json!({"agent_id": " "})), Kind::Other);
        assert_eq!(kind(Agent::Copilot, name, &json!({"agentName": "explore"})), Kind::Other);
    }
}

#[test]
fn geminis_sub_agents_are_told_apart_by_what_they_were_asked() {
    let asked = |name, prompt: &str| -> Event {
        let input = json!({"agent_name": "generalist", "prompt": prompt});
        call(Agent::Gemini, name, &json!({"tool_name": "invoke_agent", "tool_input": input})).unwrap()
    };
    let id = |event: &Event| event.sub_agent.clone().unwrap().id;
    let (first, second) = (asked("BeforeTool", "a"), asked("BeforeTool", "b"));
    assert_ne!(id(&first), id(&second));
    assert_eq!(id(&first), id(&asked("AfterTool", "a")));
    assert_eq!(first.sub_agent.unwrap().kind.as_deref(), Some("generalist"));
}

#[test]
fn cursors_sub_conversations_are_sub_agents() {
    let child = call(Agent::Cursor, "stop", &json!({"parent_conversation_id": "p"})).unwrap();
    assert_eq!(child.sub_agent.unwrap().id, "s1");
    let root = call(Agent::Cursor, "stop", &json!({"parent_conversation_id": "s1"})).unwrap();
    assert_eq!(root.sub_agent, None);
    let older =
        read(Agent::Cursor, None, br#"{"hook_event_name":"sessionStart","session_id":"s2"}"#).unwrap();
    assert_eq!(older.session, "s2");
}

#[test]
fn a_stop_of_cursor_that_it_calls_no_completion_is_none() {
    for status in ["error", "ERROR", "timeout"] {
        assert_eq!(kind(Agent::Cursor, "stop", &json!({"status": status})), Kind::StopFailed, "{status}");
    }
    assert_eq!(kind(Agent::Cursor, "stop", &json!({"status": "aborted"})), Kind::Interrupted);
    assert!(matches!(kind(Agent::Cursor, "stop", &json!({})), Kind::Stop { active: None, .. }));
}

#[test]
fn an_error_of_a_tool_does_not_end_copilots_turn() {
    for context in ["tool_execution", "user_input"] {
        assert_eq!(kind(Agent::Copilot, "errorOccurred", &json!({"errorContext": context})), Kind::Other);
    }
    for fields in [json!({"errorContext": "model_call"}), json!({"error_context": "system"}), json!({})] {
        assert_eq!(kind(Agent::Copilot, "ErrorOccurred", &fields), Kind::StopFailed, "{fields}");
    }
}

#[test]
fn a_field_in_copilots_own_spelling_never_overrides_the_other() {
    let fields = json!({"sessionId": "camel", "cwd": "/a"});
    assert_eq!(call(Agent::Copilot, "Stop", &fields).unwrap().session, "s1");
    let camel = br#"{"sessionId":"camel"}"#;
    assert_eq!(read(Agent::Copilot, Some("agentStop"), camel).unwrap().session, "camel");
}
