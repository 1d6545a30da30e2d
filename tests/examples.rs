//! Every script in `examples/` runs as a test, against the binary under test, and every agent's settings there are
//! what the program writes.
#![allow(missing_docs, clippy::disallowed_methods, reason = "a test runs scripts")]

use std::path::Path;
use std::process::Command;

use lychgate::dialect::Agent;
use lychgate::dialect::settings::{HookCommand, install};
use serde_json::Value;

/// Runs an example; it fails by itself when one of its checks fails. Gives what it printed.
fn run(name: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    let output = Command::new("bash")
        .arg(&script)
        .env("LYCHGATE", env!("CARGO_BIN_EXE_lychgate"))
        .output()
        .expect("because there is a shell");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{name}: {}\n{told}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    told
}

/// Rule 101.
#[test]
fn restart_sh_recovers_a_killed_sub_agent_exactly_once() {
    assert!(run("restart.sh").contains("16 checks passed"), "every check of the story was made");
}

#[test]
fn workflow_sh_resumes_a_killed_workflow_and_replaces_its_dead_child_once() {
    assert!(run("workflow.sh").contains("7 checks passed"), "every check of the story was made");
}

#[test]
fn every_example_is_run_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let source = include_str!("examples.rs");
    for entry in std::fs::read_dir(folder).expect("because it is part of the checkout") {
        let name = entry.expect("because it can be listed").file_name().to_string_lossy().into_owned();
        assert!(
            name == "hooks" || source.contains(&format!("run(\"{name}\")")),
            "examples/{name} is run by no test"
        );
    }
}

/// The example of an agent's settings.
fn settings(agent: Agent) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/hooks");
    let path = folder.join(format!("{agent}.json"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_settings_of_every_agent_are_what_hook_install_writes() {
    let command = HookCommand {
        binary: "/usr/local/bin/lychgate".to_owned(),
        root: "/home/you/.local/state/lychgate".to_owned(),
        guard: false,
    };
    for agent in Agent::ALL {
        assert_eq!(install(None, agent, &command), Ok(settings(agent)), "{agent}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/hooks");
    let count = std::fs::read_dir(folder).expect("because it is part of the checkout").count();
    assert_eq!(count, Agent::ALL.len(), "one for each agent");
}

/// What an agent's documentation says about its hooks. Names are separated by blanks.
struct Documented {
    /// The keys of the file.
    top: &'static str,
    events: &'static str,
    /// The keys of a group, where hooks stand in groups.
    group: Option<&'static str>,
    /// The keys of a hook that must be there, and those that may be.
    needed: &'static str,
    allowed: &'static str,
    timeout: &'static str,
    /// The shortest and the longest timeout that make sense, in the agent's own unit.
    bounds: (u64, u64),
}

const CLAUDE: Documented = Documented {
    top: "hooks",
    events: "SessionStart SessionEnd UserPromptSubmit PreToolUse PermissionRequest PostToolUse PostToolUseFailure \
        Notification SubagentStart SubagentStop Stop StopFailure TaskCreated TaskCompleted CwdChanged FileChanged \
        ConfigChange PreCompact PostCompact",
    group: Some("matcher hooks"),
    needed: "type command",
    allowed: "timeout async statusMessage shell if",
    timeout: "timeout",
    bounds: (1, 60),
};

const CODEX: Documented = Documented {
    events: "PreToolUse PermissionRequest PostToolUse PreCompact PostCompact SessionStart SessionEnd \
        UserPromptSubmit SubagentStart SubagentStop Stop StopFailure Interrupt",
    allowed: "timeout async statusMessage commandWindows",
    ..CLAUDE
};

const GEMINI: Documented = Documented {
    events: "SessionStart SessionEnd BeforeAgent AfterAgent BeforeModel AfterModel BeforeToolSelection BeforeTool \
        AfterTool PreCompress Notification",
    group: Some("matcher sequential hooks"),
    allowed: "timeout name description",
    bounds: (1000, 60_000),
    ..CLAUDE
};

const QWEN: Documented = Documented {
    events: "PreToolUse PostToolUse PostToolUseFailure UserPromptSubmit SessionStart SessionEnd SessionDelete Stop \
        StopFailure SubagentStart SubagentStop PreCompact PostCompact Notification PermissionRequest TodoCreated \
        TodoCompleted",
    allowed: "timeout name description async env shell statusMessage",
    ..GEMINI
};

const CURSOR: Documented = Documented {
    top: "version hooks",
    events: "sessionStart sessionEnd preToolUse postToolUse postToolUseFailure subagentStart subagentStop \
        beforeShellExecution afterShellExecution beforeMCPExecution afterMCPExecution beforeReadFile afterFileEdit \
        beforeSubmitPrompt preCompact stop afterAgentResponse afterAgentThought",
    group: None,
    needed: "command",
    allowed: "type timeout matcher loop_limit failClosed",
    ..CLAUDE
};

const COPILOT: Documented = Documented {
    top: "version hooks",
    events: "SessionStart SessionEnd UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure PermissionRequest \
        SubagentStart SubagentStop Stop ErrorOccurred PreCompact Notification",
    group: None,
    needed: "type bash",
    allowed: "timeoutSec matcher cwd env powershell",
    timeout: "timeoutSec",
    ..CLAUDE
};

fn documented(agent: Agent) -> Documented {
    match agent {
        Agent::Claude => CLAUDE,
        Agent::Codex => CODEX,
        Agent::Gemini => GEMINI,
        Agent::Qwen => QWEN,
        Agent::Cursor => CURSOR,
        Agent::Copilot => COPILOT,
    }
}

fn is_named(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|found| found == name)
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}

/// The hooks that stand in one item of an event's list.
fn hooks_of<'v>(documented: &Documented, item: &'v Value) -> Vec<&'v Value> {
    let Some(group) = documented.group else { return vec![item] };
    assert!(keys(item).iter().all(|key| is_named(group, key)), "{item}");
    items(&item["hooks"]).collect()
}

fn check_hook(documented: &Documented, hook: &Value) {
    let known = |key: &&str| is_named(documented.needed, key) || is_named(documented.allowed, key);
    assert!(keys(hook).iter().all(known), "{hook}");
    assert!(documented.needed.split_whitespace().all(|key| hook[key].is_string()), "{hook}");
    assert!(hook.get("type").is_none_or(|kind| kind == "command"), "{hook}");
    let timeout = hook[documented.timeout].as_u64().expect("a whole number");
    let (least, most) = documented.bounds;
    assert!((least..=most).contains(&timeout), "{hook}");
}

#[test]
fn the_settings_of_every_agent_have_the_documented_form() {
    for agent in Agent::ALL {
        let documented = documented(agent);
        let settings: Value = serde_json::from_str(&settings(agent)).expect("JSON");
        assert_eq!(keys(&settings).join(" "), documented.top, "{agent}");
        assert!(settings.get("version").is_none_or(|version| version == 1));
        for (event, list) in settings["hooks"].as_object().expect("an object") {
            assert!(is_named(documented.events, event), "{agent} has no event {event}");
            for item in items(list) {
                assert!(item.get("matcher").is_none_or(Value::is_string));
                let hooks = hooks_of(&documented, item);
                assert_eq!(hooks.len(), 1, "{agent}: {item}");
                for hook in hooks {
                    check_hook(&documented, hook);
                }
            }
        }
    }
}
