//! `hook doctor`: what is told about hooks that work, and about those that do not.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::{AGENTS, CLAUDE, at_home, hook, names, put, text};
use crate::common::{BIN, Outcome, TestRoot};

fn list(out: &Outcome, field: &str) -> Vec<String> {
    let list = out.json()[field].as_array().cloned().unwrap_or_default();
    list.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn problems(root: &TestRoot, line: &str) -> Vec<String> {
    let out = hook(root, line).is(0, "ok");
    let problems = list(&out, "problems");
    assert_eq!(out.get("healthy"), problems.is_empty().to_string());
    problems
}

#[test]
fn hooks_as_they_are_installed_are_healthy() {
    let root = TestRoot::new();
    for (agent, _) in AGENTS {
        hook(&root, &format!("install {agent}")).is(0, "installed");
        let before = names(&root);
        let found = problems(&root, &format!("doctor {agent}"));
        let untrusted: Vec<&String> =
            found.iter().filter(|problem| problem.starts_with("Codex skips ")).collect();
        assert_eq!(
            (found.len(), untrusted.len()),
            if agent == "codex" { (1, 1) } else { (0, 0) },
            "{found:?}"
        );
        assert_eq!(names(&root), before, "looking changes nothing");
    }
    let out = root.run(&["hook", "doctor", "claude"]);
    insta::assert_snapshot!(out.to_string().replace(BIN, "[BIN]"), @"
    exit 0
    --- stdout
    claude calls this program
      project  [DIR]/.claude/settings.json: there is no such file
      local    [DIR]/.claude/settings.local.json: there is no such file
      user     [DIR]/home/.claude/settings.json: calls [BIN] on 10 events, root [DIR]/root (not made yet), guard off
    ");
}

#[test]
fn an_agent_that_does_not_call_us_is_told_how_it_would() {
    let root = TestRoot::new();
    put(
        &at_home(&root, CLAUDE),
        "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"other\"}]}]}}",
    );
    assert_eq!(
        problems(&root, "doctor claude"),
        ["no settings of claude call this program: run `lychgate hook install claude`"]
    );
    put(&at_home(&root, CLAUDE), "{ broken");
    let found = problems(&root, "doctor claude");
    assert!(found[0].contains("cannot be understood: it is not JSON"), "{found:?}");
    put(&at_home(&root, CLAUDE), b"\xff");
    assert!(problems(&root, "doctor claude")[0].contains("it is not UTF-8"));
}

#[test]
fn a_program_that_is_not_there_or_not_to_be_run_is_a_problem() {
    let root = TestRoot::new();
    hook(&root, "install claude").is(0, "installed");
    let path = at_home(&root, CLAUDE);
    let moved = root.file("moved");
    put(&path, text(&path).replace(BIN, &moved));
    assert_eq!(
        problems(&root, "doctor claude"),
        [format!("[DIR]/home/{CLAUDE}: `[DIR]/moved` is missing, so the hooks do nothing")]
    );
    std::fs::write(&moved, "").unwrap();
    std::fs::set_permissions(&moved, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(problems(&root, "doctor claude")[0].contains("is not executable"));
}

#[test]
fn a_root_that_cannot_be_used_is_a_problem_and_another_root_is_a_note() {
    let root = TestRoot::new();
    hook(&root, "install claude").is(0, "installed");
    let other = root.file("other");
    let out = root.json(&["hook", "doctor", "claude", "--root", &other]).is(0, "ok");
    assert_eq!(
        list(&out, "notes"),
        ["the hooks keep their books in `[DIR]/root`, and this call has another root"]
    );
    put(&root.path().join("config.json"), "{\"projects\": []}");
    let found = problems(&root, "doctor claude");
    assert!(found[0].starts_with("the root `[DIR]/root` cannot be used: "), "{found:?}");
    let out = hook(&root, "doctor claude --user").is(0, "ok");
    assert_eq!(out.get("files.0.calls.0.rootState"), "foreign-root");
}

#[test]
fn missing_outdated_and_doubled_hooks_are_problems() {
    let root = TestRoot::new();
    let path = at_home(&root, CLAUDE);
    hook(&root, "install claude").is(0, "installed");
    let whole = text(&path);
    let mut settings: Value = serde_json::from_str(&whole).unwrap();
    settings["hooks"].as_object_mut().unwrap().remove("Stop");
    put(&path, settings.to_string());
    let again = "run `lychgate hook install claude` again";
    assert_eq!(problems(&root, "doctor claude"), [format!("[DIR]/home/{CLAUDE}: no hook for Stop; {again}")]);
    put(&path, whole.replacen("hook claude", "hook claude --external allow", 1));
    assert_eq!(
        problems(&root, "doctor claude"),
        [format!("[DIR]/home/{CLAUDE}: 1 hook(s) of another form, for SessionStart first; {again}")]
    );
    put(&path, &whole);
    hook(&root, "install claude --local").is(0, "installed");
    assert_eq!(
        problems(&root, "doctor claude"),
        ["2 files call this program, so each event arrives 2 times"]
    );
    assert_eq!(problems(&root, "doctor claude --local"), Vec::<String>::new());
    hook(&root, "install claude").is(0, "already-installed");
}

/// In the home folder the settings of the folder and of the user are one file.
#[test]
fn one_file_is_looked_at_once() {
    let root = TestRoot::new();
    hook(&root, "install claude").is(0, "installed");
    let mut command = root.command(&["hook", "doctor", "claude", "--json"]);
    let out = root.finish(command.current_dir(at_home(&root, "")).spawn().unwrap()).is(0, "ok");
    assert_eq!(out.get("healthy"), "true", "{out}");
    assert_eq!(out.json()["files"].as_array().unwrap().len(), 2);
}

#[test]
fn hooks_that_are_switched_off_are_a_problem() {
    let root = TestRoot::new();
    for (agent, path, off, why) in [
        ("claude", CLAUDE, "\"disableAllHooks\": true", "disableAllHooks is true"),
        ("qwen", ".qwen/settings.json", "\"disableAllHooks\": true", "disableAllHooks is true"),
        ("copilot", ".copilot/hooks/lychgate.json", "\"disableAllHooks\": true", "disableAllHooks is true"),
        (
            "gemini",
            ".gemini/settings.json",
            "\"hooksConfig\": {\"enabled\": false}",
            "hooksConfig.enabled is false",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            "\"hooksConfig\": {\"disabled\": [\"lychgate\"]}",
            "hooksConfig.disabled names our hook",
        ),
    ] {
        put(&at_home(&root, path), format!("{{{off}}}"));
        hook(&root, &format!("install {agent}")).is(0, "installed");
        assert_eq!(
            problems(&root, &format!("doctor {agent}")),
            [format!("[DIR]/home/{path}: {why}, so {agent} runs no hook of ours")]
        );
    }
}

#[test]
fn what_keeps_the_guard_off_is_told() {
    let root = TestRoot::new();
    for agent in ["cursor", "copilot"] {
        let said = format!("the guard stays off: {agent} has no to-do list that its hooks tell of");
        let out = hook(&root, &format!("install {agent} --guard")).is(0, "installed");
        assert_eq!(out.get("hint"), said);
        let out = hook(&root, &format!("doctor {agent}")).is(0, "ok");
        assert_eq!((list(&out, "notes"), out.get("files.1.calls.0.guard")), (vec![said], "true".to_owned()));
    }
    hook(&root, "install claude --guard").is(0, "installed");
    assert_eq!(list(&hook(&root, "doctor claude"), "notes"), Vec::<String>::new());
}

#[test]
fn a_command_of_somebodys_own_that_calls_us_is_a_note() {
    let root = TestRoot::new();
    hook(&root, "install claude").is(0, "installed");
    let path = at_home(&root, CLAUDE);
    let line = "cd /x && lychgate hook claude";
    let entry = format!("{{\"hooks\": [{{\"type\": \"command\", \"command\": \"{line}\"}}]}}");
    put(&path, text(&path).replacen("\"Stop\": [", &format!("\"Stop\": [{entry},"), 1));
    let out = hook(&root, "doctor claude").is(0, "ok");
    let said = format!("[DIR]/home/{CLAUDE}: a hook for Stop calls this program within another command");
    assert_eq!((out.get("healthy"), list(&out, "notes")), ("true".to_owned(), vec![said]));
}
