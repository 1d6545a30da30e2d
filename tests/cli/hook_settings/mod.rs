//! `hook install`, `hook uninstall` and `hook doctor`: what becomes of an agent's settings.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{BIN, Outcome, TestRoot};

mod doctor;
mod files;
mod install;
mod lines;
mod trust;

/// The agents, and where the user's own settings of each are below the home folder.
pub const AGENTS: [(&str, &str); 6] = [
    ("claude", ".claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("gemini", ".gemini/settings.json"),
    ("qwen", ".qwen/settings.json"),
    ("cursor", ".cursor/hooks.json"),
    ("copilot", ".copilot/hooks/lychgate.json"),
];

/// The settings of Claude Code that most tests write to.
pub const CLAUDE: &str = ".claude/settings.json";

/// A path below the home folder of the test.
pub fn at_home(root: &TestRoot, path: &str) -> PathBuf {
    root.scratch().join("home").join(path)
}

pub fn put(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn backup(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.lychgate-backup", path.display()))
}

pub fn hook(root: &TestRoot, line: &str) -> Outcome {
    let args: Vec<&str> = std::iter::once("hook").chain(line.split(' ')).collect();
    root.json(&args)
}

/// The example of an agent, for this program and this root.
pub fn example(root: &TestRoot, agent: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/hooks/{agent}.json"));
    text(&path)
        .replace("/usr/local/bin/lychgate", BIN)
        .replace("/home/you/.local/state/lychgate", &root.path().display().to_string())
}

/// The command lines in settings, with the events they stand for.
pub fn command_lines(text: &str) -> Vec<(String, String)> {
    fn collect(event: &str, value: &Value, found: &mut Vec<(String, String)>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| collect(event, item, found)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    match value.as_str().filter(|_| key == "command" || key == "bash") {
                        Some(line) => found.push((event.to_owned(), line.to_owned())),
                        None => collect(event, value, found),
                    }
                }
            }
            _ => {}
        }
    }
    let settings: Value = serde_json::from_str(text).unwrap();
    let mut found = Vec::new();
    for (event, list) in settings["hooks"].as_object().into_iter().flatten() {
        collect(event, list, &mut found);
    }
    found
}

/// Every file below the scratch folder, to show that nothing came or went.
pub fn names(root: &TestRoot) -> Vec<String> {
    fn walk(dir: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            found.push(entry.path().display().to_string());
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), found);
            }
        }
    }
    let mut found = Vec::new();
    walk(root.scratch(), &mut found);
    found.sort();
    found
}
