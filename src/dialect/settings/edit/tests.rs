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
