//! What is written, what is kept, and what is left when it is taken out again.

use serde_json::Value;

use super::{AGENTS, CLAUDE, at_home, backup, command_lines, example, hook, names, put, text};
use crate::common::{BIN, TestRoot};

/// Settings as people write them: in every indentation, with hooks of their own.
const WRITTEN: [&str; 6] = [
    "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [{ \"type\": \"command\", \"command\": \"./mine.sh\" }]\n      }\n    ]\n  },\n  \"z\": 1.0\n}\n",
    "{\n    \"env\": {\"A\": \"1\"},\n    \"permissions\": {\n        \"allow\": [\"Bash(ls:*)\", \"Read\"]\n    }\n}",
    "{\n\t\"hooks\": {\n\t\t\"PostToolUse\": [\n\t\t\t{\n\t\t\t\t\"matcher\": \"Edit\",\n\t\t\t\t\"hooks\": []\n\t\t\t}\n\t\t]\n\t}\n}\n",
    "{\r\n  \"a\": [1, 2],\r\n  \"hooks\": {}\r\n}\r\n",
    "{\"a\":1,\"hooks\":{\"Stop\":[]}}",
    "{}",
];

#[test]
fn a_fresh_file_is_the_example_of_its_agent() {
    let root = TestRoot::new();
    for (agent, path) in AGENTS {
        let out = hook(&root, &format!("install {agent}")).is(0, "installed");
        let path = at_home(&root, path);
        assert_eq!(text(&path), example(&root, agent));
        assert!(!backup(&path).exists(), "there was nothing to keep");
        assert_eq!((out.get("binary"), out.get("scope")), (BIN.to_owned(), "user".to_owned()));
        assert_eq!(
            out.get("settings"),
            format!("[DIR]/home/{}", path.strip_prefix(at_home(&root, "")).unwrap().display())
        );
    }
    assert_eq!(root.tree(), "", "the root is made by the first event");
}

#[test]
fn what_is_there_is_kept_and_comes_back_byte_for_byte() {
    let root = TestRoot::new();
    for (agent, path) in AGENTS {
        for before in WRITTEN {
            let path = at_home(&root, path);
            put(&path, before);
            let out = hook(&root, &format!("install {agent}")).is(0, "installed");
            assert_eq!(text(&backup(&path)), before);
            assert!(out.get("backup").ends_with(".lychgate-backup"));
            let with: Value = serde_json::from_str(&text(&path)).unwrap();
            let was: Value = serde_json::from_str(before).unwrap();
            for (key, value) in was.as_object().unwrap().iter().filter(|(key, _)| *key != "hooks") {
                assert_eq!(&with[key], value);
            }
            for (event, list) in was["hooks"].as_object().into_iter().flatten() {
                let (kept, found) = (list.as_array().unwrap(), with["hooks"][event].as_array().unwrap());
                assert_eq!(found[..kept.len()], kept[..], "others first, and as they were");
            }
            hook(&root, &format!("uninstall {agent}")).is(0, "uninstalled");
            assert_eq!(text(&path), before);
            std::fs::remove_file(backup(&path)).unwrap();
        }
    }
}

#[test]
fn a_file_of_ours_alone_goes_as_it_came() {
    let root = TestRoot::new();
    for (agent, path) in AGENTS {
        hook(&root, &format!("install {agent}")).is(0, "installed");
        hook(&root, &format!("install {agent} --guard")).is(0, "installed");
        hook(&root, &format!("uninstall {agent}")).is(0, "uninstalled");
        assert!(!at_home(&root, path).exists());
        assert!(!backup(&at_home(&root, path)).exists(), "nobody would miss it");
        hook(&root, &format!("uninstall {agent}")).is(0, "not-installed");
    }
}

#[test]
fn installing_twice_changes_nothing_and_other_flags_replace_in_place() {
    let root = TestRoot::new();
    let path = at_home(&root, CLAUDE);
    put(&path, WRITTEN[0]);
    hook(&root, "install claude").is(0, "installed");
    let once = (text(&path), std::fs::metadata(&path).unwrap().modified().unwrap());
    hook(&root, "install claude").is(0, "already-installed");
    assert_eq!((text(&path), std::fs::metadata(&path).unwrap().modified().unwrap()), once);
    let out = hook(&root, "install claude --guard").is(0, "installed");
    assert_eq!(out.get("guard"), "true");
    assert_eq!(text(&path), once.0.replace("hook claude", "hook claude --guard"));
    let other = root.file("other root");
    root.json(&["hook", "install", "claude", "--root", &other]).is(0, "installed");
    assert_eq!(text(&path), once.0.replace(&root.path().display().to_string(), &format!("'{other}'")));
    assert_eq!(text(&backup(&path)), WRITTEN[0], "the copy is from before the first change");
    hook(&root, "uninstall claude").is(0, "uninstalled");
    assert_eq!(text(&path), WRITTEN[0]);
}

#[test]
fn a_dry_run_shows_the_change_and_makes_none() {
    let root = TestRoot::new();
    let before = names(&root);
    let out = hook(&root, "install gemini --dry-run").is(0, "installed");
    assert!(out.get("diff").starts_with("--- [DIR]/home/.gemini/settings.json\n+++ "));
    assert_eq!(names(&root), before);
    let path = at_home(&root, CLAUDE);
    put(&path, "{\n  \"model\": \"opus\"\n}\n");
    let before = names(&root);
    let out = root.run(&["hook", "install", "claude", "--dry-run"]);
    let head: Vec<&str> = out.stdout.lines().take(9).collect();
    insta::assert_snapshot!(head.join("\n"), @r#"
    --- [DIR]/home/.claude/settings.json
    +++ [DIR]/home/.claude/settings.json
    @@ -1,3 +1,117 @@
     {
    -  "model": "opus"
    +  "model": "opus",
    +  "hooks": {
    +    "SessionStart": [
    +      {
    "#);
    assert_eq!((names(&root), text(&path).as_str()), (before.clone(), "{\n  \"model\": \"opus\"\n}\n"));
    let out = hook(&root, "uninstall claude --dry-run").is(0, "not-installed");
    assert_eq!(out.get("diff"), "");
    hook(&root, "install claude").is(0, "installed");
    let with = text(&path);
    let out = hook(&root, "uninstall claude --dry-run").is(0, "uninstalled");
    assert!(out.get("diff").contains("\n-  \"hooks\": {\n"), "{out}");
    assert_eq!(text(&path), with);
}

#[test]
fn only_hooks_of_ours_are_taken_out() {
    let root = TestRoot::new();
    let path = at_home(&root, CLAUDE);
    let others = [
        "lychgate hook claude | tee /tmp/log",
        "/opt/other hook claude",
        "lychgate hook codex",
        "cd /x && lychgate hook claude",
        "lychgate inspect --stuck",
    ];
    let ours = ["lychgate hook claude", "/old/place/lychgate --root /r hook claude --guard"];
    let entry = |line: &str| serde_json::json!({"hooks": [{"type": "command", "command": line}]});
    let stop: Vec<Value> = others.iter().chain(&ours).map(|line| entry(line)).collect();
    let notice = [entry(ours[0])];
    let settings = serde_json::json!({"hooks": {"Stop": stop, "Notification": notice}});
    put(&path, settings.to_string());
    let out = hook(&root, "uninstall claude").is(0, "uninstalled");
    let left: Vec<String> = command_lines(&text(&path)).into_iter().map(|(_, line)| line).collect();
    assert_eq!(left, others);
    assert!(!text(&path).contains("Notification"), "what was emptied goes too: {out}");
    assert_eq!(text(&backup(&path)), settings.to_string());
}

#[test]
fn each_scope_has_its_own_file_and_a_missing_scope_is_told() {
    let root = TestRoot::new();
    for (agent, scope, path) in [
        ("claude", "project", ".claude/settings.json"),
        ("claude", "local", ".claude/settings.local.json"),
        ("codex", "project", ".codex/hooks.json"),
        ("gemini", "project", ".gemini/settings.json"),
        ("qwen", "project", ".qwen/settings.json"),
        ("cursor", "project", ".cursor/hooks.json"),
        ("copilot", "project", ".github/hooks/lychgate.json"),
    ] {
        let out = hook(&root, &format!("install {agent} --{scope}")).is(0, "installed");
        assert_eq!(out.get("settings"), format!("[DIR]/{path}"), "absolute, whatever the folder");
        assert_eq!(text(&root.scratch().join(path)), example(&root, agent));
    }
    let before = names(&root);
    for agent in ["codex", "gemini", "qwen", "cursor", "copilot"] {
        for verb in ["install", "uninstall", "doctor"] {
            let out = hook(&root, &format!("{verb} {agent} --local")).is(64, "usage");
            let said = format!("{agent} has no --local settings with hooks: use --project or --user");
            assert_eq!(out.get("message"), said);
        }
    }
    hook(&root, "install claude --project --user").is(64, "usage");
    hook(&root, "install emacs").is(64, "usage");
    assert_eq!(names(&root), before);
}

#[test]
fn the_variables_that_move_an_agents_settings_are_followed() {
    let root = TestRoot::new();
    for (agent, variable, path) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("qwen", "QWEN_HOME", "settings.json"),
        ("copilot", "COPILOT_HOME", "hooks/lychgate.json"),
    ] {
        let folder = root.scratch().join(format!("moved {agent}"));
        let mut command = root.command(&["hook", "install", agent, "--json"]);
        root.finish(command.env(variable, &folder).spawn().unwrap()).is(0, "installed");
        assert_eq!(text(&folder.join(path)), example(&root, agent));
    }
    assert!(!at_home(&root, "").exists());
    let mut homeless = root.command(&["hook", "install", "claude", "--json"]);
    let out = root.finish(homeless.env_remove("HOME").spawn().unwrap()).is(64, "usage");
    assert!(out.get("message").contains("HOME is not set"), "{out}");
}

/// Hazard: a root relative to the folder of the moment would be another root in every folder the agent works in.
#[test]
fn a_relative_root_is_written_as_the_absolute_one_it_is() {
    let root = TestRoot::new();
    root.json(&["hook", "install", "claude", "--root", "some/where"]).is(0, "installed");
    let wanted = format!("--root {} hook claude", root.scratch().join("some/where").display());
    let lines = command_lines(&text(&at_home(&root, CLAUDE)));
    assert!(lines.iter().all(|(_, line)| line.ends_with(&wanted)), "{lines:?}");
}

#[test]
fn a_root_that_cannot_be_used_is_not_written_into_settings() {
    let root = TestRoot::new();
    put(&root.path().join("config.json"), "{\"projects\": []}");
    hook(&root, "install claude").is(65, "foreign-root");
    assert!(!at_home(&root, CLAUDE).exists());
}

#[test]
fn a_person_is_told_what_else_has_to_be_done() {
    let root = TestRoot::new();
    let told = |line: &str| root.run(&line.split(' ').collect::<Vec<_>>()).to_string().replace(BIN, "[BIN]");
    insta::assert_snapshot!(told("hook install codex"), @"
    exit 0
    --- stdout
    codex calls [BIN] on 9 events
    settings: [DIR]/home/.codex/hooks.json
    root: [DIR]/root
    hint: Codex runs each of them only after you trusted it: open /hooks in Codex
    ");
    insta::assert_snapshot!(told("hook install cursor --guard"), @"
    exit 0
    --- stdout
    cursor calls [BIN] on 6 events
    settings: [DIR]/home/.cursor/hooks.json
    root: [DIR]/root
    hint: the guard stays off: cursor has no to-do list that its hooks tell of
    ");
    insta::assert_snapshot!(told("hook uninstall cursor"), @"
    exit 0
    --- stdout
    cursor no longer calls this program by its user settings
    settings: [DIR]/home/.cursor/hooks.json
    ");
    insta::assert_snapshot!(told("hook uninstall cursor"), @"
    exit 0
    --- stdout
    the user settings of cursor do not call this program
    settings: [DIR]/home/.cursor/hooks.json
    ");
}
