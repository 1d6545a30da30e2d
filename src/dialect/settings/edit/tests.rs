use super::super::look;
use super::*;

fn command(guard: bool) -> HookCommand {
    HookCommand { binary: "/usr/bin/lychgate".to_owned(), root: "/books".to_owned(), guard }
}

fn installed(text: Option<&str>, agent: Agent) -> String {
    install(text, agent, &command(false)).expect("installed")
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_fresh_file_holds_every_registration_and_nothing_else() {
    for agent in Agent::ALL {
        let text = installed(None, agent);
        assert!(text.ends_with("}\n"), "{text}");
        let found = look(&text, agent).expect("readable");
        assert_eq!(found.entries.len(), install_events(agent).len(), "{text}");
        assert!(found.missing(agent).is_empty() && found.outdated(agent).is_empty(), "{text}");
        assert_eq!(uninstall(&text, None, agent), Ok(None), "nothing of the file was there before");
    }
}

#[test]
fn installing_twice_changes_no_byte() {
    for agent in Agent::ALL {
        for text in [None, Some("{}"), Some("{\n    \"hooks\": {}\n}\n"), Some("{\"version\":1,\"x\":[1]}")] {
            let once = installed(text, agent);
            assert_eq!(installed(Some(&once), agent), once);
        }
    }
}

#[test]
fn other_settings_and_hooks_keep_their_place_and_form() {
    let text = r#"{
    "model": "m", "env": {"A":1},
    "hooks": {
        "Stop": [
            { "hooks": [ {"type": "command", "command": "./mine.sh"} ] }
        ],
        "PreToolUse": []
    },
    "z": [1,2]
}
"#;
    let with = installed(Some(text), Agent::Claude);
    for piece in [
        "\"model\": \"m\", \"env\": {\"A\":1},\n",
        "            { \"hooks\": [ {\"type\": \"command\", \"command\": \"./mine.sh\"} ] },\n            {\n                \"hooks\": [",
        "    \"z\": [1,2]\n}\n",
    ] {
        assert!(with.contains(piece), "{piece} is not in {with}");
    }
    let without = uninstall(&with, Some(text), Agent::Claude).expect("uninstalled");
    assert_eq!(without.as_deref(), Some(text));
}

/// What was changed after the installation stays changed, byte for byte.
#[test]
fn taking_out_leaves_what_was_changed_meanwhile() {
    let before = "{\n  \"a\": 1,\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n";
    let with = installed(Some(before), Agent::Claude).replace("\"a\": 1", "\"a\" : 2.50");
    let without = uninstall(&with, Some(before), Agent::Claude).expect("uninstalled");
    assert_eq!(without.as_deref(), Some("{\n  \"a\" : 2.50,\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n"));
    let without = uninstall(&with, None, Agent::Claude).expect("uninstalled");
    assert_eq!(without.as_deref(), Some("{\n  \"a\" : 2.50\n}\n"));
}

#[test]
fn other_flags_replace_the_hooks_where_they_stand() {
    let first =
        installed(Some("{\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": []}]\n  }\n}\n"), Agent::Claude);
    let second = install(Some(&first), Agent::Claude, &command(true)).expect("installed");
    assert_eq!(second, first.replace("hook claude", "hook claude --guard"));
    let moved = HookCommand { root: "/else where".to_owned(), ..command(true) };
    let third = install(Some(&second), Agent::Claude, &moved).expect("installed");
    assert_eq!(third, second.replace("/books", "'/else where'"));
}

#[test]
fn older_and_doubled_hooks_of_ours_make_room_and_nothing_else_does() {
    let ours =
        |line: &str| json!({"hooks": [{"type": "command", "command": line, "timeout": 3, "mine": true}]});
    let both = json!({"hooks": [
        {"type": "command", "command": "lychgate hook claude"},
        {"type": "command", "command": "other"},
    ]});
    let text = json!({"hooks": {
        "Notification": [ours("lychgate hook claude")],
        "Stop": [ours("/old/lychgate hook claude"), both],
        "PostToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "lychgate hook claude"}]}],
    }});
    let with = value(&installed(Some(&text.to_string()), Agent::Claude));
    assert_eq!(with["hooks"].get("Notification"), None);
    assert_eq!(with["hooks"]["Stop"].as_array().map(Vec::len), Some(2));
    assert_eq!(with["hooks"]["Stop"][0]["hooks"][0]["timeout"], 10);
    assert_eq!(with["hooks"]["Stop"][0]["hooks"][0]["mine"], true, "what was added to it stays");
    assert_eq!(with["hooks"]["Stop"][1]["hooks"], json!([{"type": "command", "command": "other"}]));
    assert_eq!(with["hooks"]["PostToolUse"].as_array().map(Vec::len), Some(1));
    assert_ne!(with["hooks"]["PostToolUse"][0]["matcher"], "Bash");
}

#[test]
fn a_version_is_said_where_the_format_has_one() {
    for agent in [Agent::Cursor, Agent::Copilot] {
        let before = "{\n  \"hooks\": {\n    \"stop\": [{\"command\": \"x\"}]\n  }\n}\n";
        let with = installed(Some(before), agent);
        assert_eq!(value(&with)["version"], 1);
        assert_eq!(uninstall(&with, Some(before), agent), Ok(Some(before.to_owned())));
        let newer = install(Some("{\"version\": 2}"), agent, &command(false));
        assert_eq!(newer.expect_err("unknown").0, "its `version` is 2, and only 1 is understood");
    }
    assert_eq!(value(&installed(Some("{}"), Agent::Claude)).get("version"), None);
}

#[test]
fn a_file_without_hooks_of_ours_is_not_touched() {
    let text = "{ \"hooks\": { \"Stop\": [] } }";
    for before in [None, Some("{}"), Some(text)] {
        assert_eq!(uninstall(text, before, Agent::Claude), Ok(Some(text.to_owned())));
    }
}

/// Settings as anybody could have written them: any values, in any indentation or on one line.
mod written {
    use proptest::prelude::*;
    use serde::Serialize as _;
    use serde_json::ser::PrettyFormatter;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            Just(json!({"type": "command", "command": "other"})),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|fields| Value::from(fields.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    fn settings() -> impl Strategy<Value = Value> {
        let events = prop::sample::select(vec!["Stop", "stop", "SessionStart", "PreToolUse", "Unknown"]);
        let lists = prop::collection::vec(values(), 0..3).prop_map(Value::from);
        let hooks = prop::collection::btree_map(events, lists, 0..4);
        let others = prop::collection::btree_map("[a-z]{3,5}", values(), 0..4);
        (others, prop::option::of(hooks)).prop_map(|(others, hooks)| {
            let mut fields: Map<String, Value> = others.into_iter().filter(|(key, _)| key != HOOKS).collect();
            if let Some(hooks) = hooks {
                let hooks = hooks.into_iter().map(|(event, list)| (event.to_owned(), list));
                fields.insert(HOOKS.to_owned(), Value::from(hooks.collect::<Map<_, _>>()));
            }
            fields.into()
        })
    }

    fn texts() -> impl Strategy<Value = String> {
        let indent = prop::sample::select(vec![None, Some("  "), Some("\t"), Some("     "), Some("")]);
        let ends = prop::sample::select(vec![("\n", ""), ("\n", "\n"), ("\r\n", "\r\n"), ("\n", "\n\n")]);
        (settings(), indent, ends).prop_map(|(settings, indent, (newline, end))| {
            let Some(indent) = indent else { return settings.to_string() };
            let mut bytes = Vec::new();
            let formatter = PrettyFormatter::with_indent(indent.as_bytes());
            settings
                .serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter))
                .expect("serialized");
            String::from_utf8(bytes).expect("UTF-8").replace('\n', newline) + end
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_stands_there_is_kept_and_comes_back(text in texts(), agent in prop::sample::select(Agent::ALL.to_vec())) {
            let with = installed(Some(&text), agent);
            let (was, is) = (value(&text), value(&with));
            for (key, value) in was.as_object().expect("an object").iter().filter(|(key, _)| *key != HOOKS) {
                prop_assert_eq!(&is[key], value);
            }
            for (event, list) in was.get(HOOKS).and_then(Value::as_object).into_iter().flatten() {
                let kept = list.as_array().expect("a list");
                prop_assert_eq!(&is[HOOKS][event].as_array().expect("a list")[..kept.len()], &kept[..]);
            }
            prop_assert_eq!(&installed(Some(&with), agent), &with);
            prop_assert_eq!(uninstall(&with, Some(&text), agent), Ok(Some(text.clone())));
            // Without a copy only what was empty cannot come back.
            let left = uninstall(&with, None, agent).expect("uninstalled");
            let left = left.map_or_else(|| json!({}), |left| value(&left));
            for (key, value) in was.as_object().expect("an object").iter().filter(|(key, _)| *key != HOOKS) {
                prop_assert_eq!(&left[key], value);
            }
            for (event, list) in was.get(HOOKS).and_then(Value::as_object).into_iter().flatten() {
                prop_assert!(is_empty(list) || left[HOOKS][event] == *list);
            }
        }
    }
}
