//! Standard input as it should not be. Nothing here may panic, overflow the stack, or be taken for something else.

use proptest::prelude::*;
use serde_json::json;

use super::{call, typed};
use crate::dialect::{Agent, Kind, SESSION_BYTES_MAX, Unusable, read};

fn unusable(stdin: impl AsRef<[u8]>) -> Unusable {
    read(Agent::Claude, None, stdin.as_ref()).unwrap_err()
}

/// A prompt event of Claude with this text, written as it stands between the quotes of the JSON.
fn prompt(escaped: &str) -> String {
    format!(r#"{{"session_id":"s1","hook_event_name":"UserPromptSubmit","prompt":"{escaped}"}}"#)
}

fn text_of(stdin: impl AsRef<[u8]>) -> String {
    match read(Agent::Claude, None, stdin.as_ref()).unwrap().kind {
        Kind::Prompt { text, .. } => text,
        other => panic!("not a prompt: {other:?}"),
    }
}

#[test]
fn nothing_is_told_from_something_broken() {
    for stdin in ["", " ", "\r\n\t ", "\u{feff}", "\u{feff} \n"] {
        assert_eq!(unusable(stdin), Unusable::Empty, "{stdin:?}");
    }
}

#[test]
fn json_that_is_no_object_is_refused() {
    for stdin in ["[]", "null", "42", r#""x""#, "true", r#"[{"session_id":"s1"}]"#] {
        assert_eq!(unusable(stdin), Unusable::NotAnObject, "{stdin}");
    }
}

#[test]
fn broken_json_is_refused() {
    let broken = [
        "{",
        "}",
        r#"{"session_id""#,
        r#"{"session_id":"s1""#,
        r#"{"session_id":"s1",}"#,
        "{'session_id':'s1'}",
        r#"{"session_id":"s1"} x"#,
        r#"{"session_id":"s1"}{"session_id":"s1"}"#,
        "{\"session_id\":\"s1\"}\n{\"session_id\":\"s1\"}",
        "hello\n{\"session_id\":\"s1\"}",
        "{\"session_id\":\"a\nb\"}",
        r#"{"session_id":"\x"}"#,
        r#"{"session_id":"\u12"}"#,
        r#"{"n":NaN}"#,
        "\0",
    ];
    for stdin in broken {
        assert!(matches!(unusable(stdin), Unusable::NotJson { .. }), "{stdin}: {:?}", unusable(stdin));
    }
}

#[test]
fn bytes_that_are_no_utf_8_are_refused() {
    let whole = prompt("a");
    let little: Vec<u8> = whole.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = whole.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(unusable([b"\xff\xfe", little.as_slice()].concat()), Unusable::NotUtf8);
    assert_eq!(unusable([b"\xfe\xff", big.as_slice()].concat()), Unusable::NotUtf8);
    assert!(
        matches!(unusable(&little), Unusable::NotJson { .. }),
        "UTF-16 without a mark is text full of NUL"
    );
    assert!(matches!(unusable(&big), Unusable::NotJson { .. }));
    let mut latin: Vec<u8> = whole.into_bytes();
    let at = latin.iter().rposition(|byte| *byte == b'a').unwrap();
    latin[at] = 0xE9;
    assert_eq!(unusable(latin), Unusable::NotUtf8);
}

#[test]
fn a_name_that_occurs_twice_is_refused_at_any_depth() {
    let twice = [
        r#"{"session_id":"s1","session_id":"s1"}"#,
        r#"{"session_id":"s1","session_id":"s2"}"#,
        r#"{"session_id":"s1","\u0073ession_id":"s2"}"#,
        r#"{"session_id":"s1","tool_input":{"todos":[{"id":"1","id":"2"}]}}"#,
    ];
    for stdin in twice {
        assert_eq!(unusable(stdin), Unusable::DuplicateName, "{stdin}");
    }
}

#[test]
fn nesting_is_refused_before_the_stack_ends() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let deep = format!(r#"{{"session_id":"s1","x":{}1{}}}"#, open.repeat(100_000), close.repeat(100_000));
        assert!(matches!(unusable(&deep), Unusable::NotJson { .. }));
        assert!(matches!(unusable(open.repeat(100_000)), Unusable::NotJson { .. }), "nor unclosed");
        let usual = format!(
            r#"{{"session_id":"s1","hook_event_name":"Stop","x":{}1{}}}"#,
            open.repeat(100),
            close.repeat(100)
        );
        read(Agent::Claude, None, usual.as_bytes()).unwrap();
    }
}

#[test]
fn a_number_of_a_million_digits_is_refused() {
    let stdin = format!(r#"{{"session_id":"s1","hook_event_name":"Stop","n":{}}}"#, "7".repeat(1_000_000));
    assert!(matches!(unusable(&stdin), Unusable::NotJson { .. }));
    let small = format!(r#"{{"session_id":"s1","hook_event_name":"Stop","n":0.{}}}"#, "7".repeat(1_000_000));
    read(Agent::Claude, None, small.as_bytes()).unwrap();
}

#[test]
fn a_mark_of_byte_order_and_any_line_ends_are_accepted() {
    assert_eq!(text_of(format!("\u{feff}{}", prompt("a"))), "a");
    assert_eq!(text_of(format!("{}\r\n", prompt("a"))), "a");
    assert_eq!(text_of(prompt("a").replace(',', ",\r\n\t")), "a");
    assert_eq!(text_of(prompt(r"a\r\nb")), "a\r\nb");
}

#[test]
fn a_prompt_with_half_an_emoji_counts() {
    let cases = [
        (r"a\ud83d", "a\u{fffd}"),
        (r"\ude00", "\u{fffd}"),
        (r"\uD83D\uDE00", "😀"),
        (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
        (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
        (r"\ud83d\u0041", "\u{fffd}A"),
        (r"\ud83d\\ude00", "\u{fffd}\\ude00"),
        (r"\\ud83d", r"\ud83d"),
        (r"\\\ud83d", "\\\u{fffd}"),
        ("😀\\ud83d😀", "😀\u{fffd}😀"),
        ("\\ud83d\u{fffd}", "\u{fffd}\u{fffd}"),
    ];
    for (escaped, text) in cases {
        assert_eq!(text_of(prompt(escaped)), text, "{escaped}");
    }
}

#[test]
fn a_session_id_must_tell_one_session_from_others() {
    for id in ["", " ", "\t", "null", "NULL", " undefined ", "a\nb", "a\u{0}b", "a\u{85}b", "a\u{fffd}"] {
        let refused = call(Agent::Claude, "Stop", &json!({"session_id": id})).unwrap_err();
        assert!(matches!(refused, Unusable::BadSession { field: "session_id", .. }), "{id:?}: {refused:?}");
    }
    let longest = "é".repeat(SESSION_BYTES_MAX / 2);
    assert_eq!(call(Agent::Claude, "Stop", &json!({"session_id": longest})).unwrap().session, longest);
    let longer = format!("{longest}a");
    assert!(matches!(
        call(Agent::Claude, "Stop", &json!({"session_id": longer})).unwrap_err(),
        Unusable::BadSession { .. }
    ));
    for id in ["../esc", "/", "a/b", "CON", ".", "nullx", "a b"] {
        assert_eq!(call(Agent::Claude, "Stop", &json!({"session_id": id})).unwrap().session, id);
    }
}

#[test]
fn half_an_emoji_in_a_session_id_is_no_name_for_two_sessions() {
    let stdin = r#"{"session_id":"a\ud83d","hook_event_name":"Stop"}"#;
    assert!(matches!(unusable(stdin), Unusable::BadSession { why: "it is not text", .. }));
}

#[test]
fn a_session_id_of_another_type_is_refused() {
    for id in [json!(7), json!(true), json!(["s1"]), json!({"id": "s1"})] {
        for agent in Agent::ALL {
            let field = if agent == Agent::Cursor { "conversation_id" } else { "session_id" };
            let refused = call(agent, "Stop", &json!({field: id})).unwrap_err();
            assert_eq!(refused, Unusable::WrongType { field }, "{agent}");
        }
    }
    for agent in Agent::ALL {
        let refused = read(agent, None, br#"{"hook_event_name":"Stop","session_id":null}"#).unwrap_err();
        assert!(matches!(refused, Unusable::NoSession { .. }), "{agent}: {refused:?}");
    }
}

#[test]
fn a_wrong_type_is_refused_where_something_is_decided_by_it() {
    let refused = [
        ("UserPromptSubmit", json!({"prompt": ["a"]}), "prompt"),
        ("UserPromptSubmit", json!({"agent_id": 7}), "agent_id"),
        ("Stop", json!({"permission_mode": 1}), "permission_mode"),
        ("Stop", json!({"background_tasks": {"b1": 1}}), "background_tasks"),
        ("Stop", json!({"session_crons": "c1"}), "session_crons"),
        ("SessionStart", json!({"source": 1}), "source"),
        ("Stop", json!({"hook_event_name": 1}), "hook_event_name"),
    ];
    for (name, fields, field) in refused {
        assert_eq!(
            call(Agent::Claude, name, &fields).unwrap_err(),
            Unusable::WrongType { field },
            "{fields}"
        );
    }
}

#[test]
fn a_wrong_type_of_a_hint_says_nothing() {
    let event =
        call(Agent::Claude, "Stop", &json!({"stop_hook_active": "yes", "cwd": 1, "prompt_id": 2})).unwrap();
    assert!(matches!(event.kind, Kind::Stop { active: None, .. }));
    assert_eq!((event.cwd, event.turn), (None, None));
}

#[test]
fn a_prompt_without_text_is_a_prompt() {
    for prompt in [json!({}), json!({"prompt": null}), json!({"prompt": ""})] {
        assert_eq!(typed(Agent::Claude, "UserPromptSubmit", &prompt), None, "{prompt}");
    }
}

#[test]
fn an_event_without_a_name_is_refused_unless_the_caller_names_it() {
    let stdin = br#"{"session_id":"s1","prompt":"a"}"#;
    assert_eq!(read(Agent::Claude, None, stdin), Err(Unusable::NoEvent));
    assert_eq!(read(Agent::Claude, Some(" "), stdin), Err(Unusable::NoEvent));
    let named = read(Agent::Claude, Some("UserPromptSubmit"), stdin).unwrap();
    assert!(matches!(named.kind, Kind::Prompt { .. }));
    let said = br#"{"session_id":"s1","hook_event_name":"Stop"}"#;
    let event = read(Agent::Claude, Some("UserPromptSubmit"), said).unwrap();
    assert!(matches!(event.kind, Kind::Stop { .. }), "the agent knows better");
}

#[test]
fn unknown_events_and_fields_change_nothing() {
    for agent in Agent::ALL {
        for name in ["PreCompact", "FutureEvent", "stop ", "STOP", "ストップ"] {
            assert_eq!(
                call(agent, name, &json!({"new": {"a": [1]}})).unwrap().kind,
                Kind::Other,
                "{agent} {name}"
            );
        }
    }
}

#[test]
fn reasons_are_words_for_people() {
    let reasons = [
        unusable(""),
        unusable("{"),
        unusable("[]"),
        unusable("{}"),
        unusable([0xE9]),
        unusable(r#"{"session_id":"s1"}"#),
        call(Agent::Claude, "Stop", &json!({"session_id": "null"})).unwrap_err(),
    ];
    let told: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    standard input is empty
    standard input is not one JSON document (line 1, column 1)
    standard input is JSON, but not an object
    neither standard input nor the command line names the hook event
    standard input is not UTF-8 text
    neither standard input nor the command line names the hook event
    the session id (`session_id`) is of no use: it is the word for nothing
    ");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(stdin: Vec<u8>, agent in proptest::sample::select(&Agent::ALL[..])) {
        drop(read(agent, None, &stdin));
    }

    #[test]
    fn any_text_a_person_types_arrives_as_it_was(text: String) {
        let stdin = json!({"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": text}).to_string();
        prop_assert_eq!(text_of(stdin), text);
    }

    #[test]
    fn a_call_with_one_changed_byte_is_read_or_refused(at: prop::sample::Index, byte: u8) {
        let mut stdin = prompt(r"a\ud83d\\ \u00e9 é").into_bytes();
        let at = at.index(stdin.len());
        stdin[at] = byte;
        drop(read(Agent::Claude, None, &stdin));
    }
}
