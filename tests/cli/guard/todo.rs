//! The to-do list: only the main agent's own, complete and well-formed list is trusted (O45).

use super::{Session, todo_list, told};
use crate::common::TestRoot;

fn armed(s: &Session<'_>) -> (bool, u64) {
    let chain = s.record()["chain"].clone();
    (chain["armed"].as_bool().unwrap(), chain["unfinished"].as_u64().unwrap())
}

#[test]
fn a_list_with_unfinished_items_arms_and_one_without_disarms() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let p1 = s.submit("p1").get("promptId");
    let list = s.todo(&["completed", "pending", "in_progress"]).is(0, "todo-counted");
    insta::assert_snapshot!(told(&list), @r#"0 {"ok":true,"command":"todo","code":"todo-counted","unfinishedCount":2,"armed":true,"sessionId":"s","message":"2 unfinished"}"#);
    assert_eq!(armed(&s), (true, 2));
    let text = std::fs::read_to_string(root.path().join("sessions/s/guard/session.json")).unwrap();
    assert!(!text.contains("a secret plan"), "O36: no text of a list is kept");
    let of_p1 = ["--prompt", &p1, "--file", "-"];
    let _ = s.tell("todo", &of_p1, &todo_list(&["completed"])).is(0, "todo-counted");
    assert_eq!(armed(&s), (false, 0));
}

#[test]
fn whatever_is_not_the_strict_envelope_is_malformed_and_changes_nothing() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let before = root.bytes();
    let item = r#"{"id":"a","content":"c","status":"pending"}"#;
    for text in [
        "[]".to_owned(),
        "not json".to_owned(),
        format!("{} {}", todo_list(&[]), todo_list(&[])),
        serde_json::Value::from(todo_list(&["pending"])).to_string(),
        r#"{"todos":[]}"#.to_owned(),
        r#"{"kind":"todo_list"}"#.to_owned(),
        r#"{"kind":"todo_list","todos":[{"content":"c","status":"pending"}]}"#.to_owned(),
        r#"{"kind":"todo_list","todos":[{"id":"a","content":"c","status":"done"}]}"#.to_owned(),
        format!(r#"{{"kind":"todo_list","todos":[{item},{item}]}}"#),
    ] {
        let out = s.tell("todo", &[], &text).is(64, "todo-malformed");
        assert!(out.get("message").starts_with("this is no to-do list: "), "{out}");
    }
    assert_eq!(root.bytes(), before);
}

#[test]
fn a_list_that_is_not_the_main_agents_own_is_not_counted() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let _ = s.submit("p1");
    let before = root.bytes();
    for whose in [&["--agent-id", "explorer"][..], &["--replayed"]] {
        let _ = s.tell("todo", whose, &todo_list(&["pending"])).is(0, "todo-ignored");
    }
    assert_eq!(root.bytes(), before);
    assert_eq!(armed(&s), (false, 0));
}

#[test]
fn a_list_from_a_turn_that_is_over_suspends() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let _ = s.submit("p1");
    let _ = s.finish("p1", "completed");
    let _ = s.submit("p2");
    let _ = s.tell("todo", &["--prompt", "p1"], &todo_list(&["pending"])).is(10, "todo-late");
    assert_eq!((s.cause().as_str(), armed(&s)), ("late-todo", (false, 0)));
    let _ = s.todo(&["pending"]).is(0, "todo-counted");
    assert_eq!(armed(&s), (false, 1), "O38: counted, and not armed again");
}
