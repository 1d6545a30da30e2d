//! Which agents are installed, and what to do about those that are not.
//!
//! `LYCHGATE_AGENTS` says: nothing: what is installed is driven, the rest is skipped and says so; `require`: a skip
//! is a failure; `install`: what is missing is installed first, and a skip is a failure.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use crate::agents::Agent;

/// Where the packages are.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os("LYCHGATE_AGENTS_DIR") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("agents"),
    }
}

/// The folder of the node that two of the agents need; newer than the one that a distribution has.
pub(crate) fn node_folder() -> Option<PathBuf> {
    find(&folder().join("node"), "node_modules/node-*/bin")
}

/// The version of an agent in `packages.txt`.
pub(crate) fn version(agent: Agent) -> &'static str {
    let line = include_str!("packages.txt").lines().find(|line| line.starts_with(agent.name())).unwrap();
    line.split_whitespace().nth(2).unwrap()
}

/// The command that runs an agent, without arguments.
pub(crate) fn program(agent: Agent) -> Result<Command, String> {
    let own = folder().join(agent.name());
    let (pattern, with_node) = agent.program_pattern();
    let missing = |what: &str| format!("{what} is not installed: run tests/agents/install.sh");
    let wanted = format!("@{}", version(agent));
    let there = std::fs::read_to_string(own.join(".installed")).unwrap_or_default();
    if !there.trim_end().ends_with(&wanted) {
        return Err(missing(&format!("{} {}", agent.name(), version(agent))));
    }
    let program = find(&own, pattern).ok_or_else(|| missing(agent.name()))?;
    if !with_node {
        return Ok(Command::new(program));
    }
    let mut command = Command::new(node_folder().ok_or_else(|| missing("node"))?.join("node"));
    command.arg(program);
    Ok(command)
}

/// The agents that were said not to be driven.
static SAID: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

/// Whether this agent is to be driven. Says so where it is not, past the capture of the test runner.
pub(crate) fn can_drive(agent: Agent) -> bool {
    let wish = wish();
    if wish == "install" {
        static INSTALLED: OnceLock<()> = OnceLock::new();
        INSTALLED.get_or_init(install);
    }
    let Err(why) = program(agent) else { return true };
    assert!(wish.is_empty(), "LYCHGATE_AGENTS={wish}, and {why}");
    if SAID.lock().unwrap().insert(agent.name()) {
        say(&format!("agents: {} is not driven here: {why}", agent.name()));
    }
    false
}

fn wish() -> String {
    let wish = std::env::var("LYCHGATE_AGENTS").unwrap_or_default();
    assert!(["", "install", "require"].contains(&wish.as_str()), "LYCHGATE_AGENTS is install or require");
    wish
}

fn install() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/install.sh");
    let output = Command::new("bash").arg(script).env("LYCHGATE_AGENTS_DIR", folder()).output().unwrap();
    say(String::from_utf8_lossy(&output.stdout).trim_end());
}

/// A line on standard error that is seen although the test passes.
pub(crate) fn say(text: &str) {
    // The test runner leaves its lines open while a test runs.
    drop(writeln!(std::io::stderr(), "\n{text}"));
}

/// A path below `folder` that fits the pattern, whose parts may be `*` or end with one.
fn find(folder: &Path, pattern: &str) -> Option<PathBuf> {
    let (part, rest) = pattern.split_once('/').map_or((pattern, None), |(part, rest)| (part, Some(rest)));
    let Some(stem) = part.strip_suffix('*') else {
        let next = folder.join(part);
        return match rest {
            Some(rest) => find(&next, rest),
            None => next.exists().then_some(next),
        };
    };
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    let fits = |path: &&PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(stem))
    };
    entries.iter().filter(fits).find_map(|path| match rest {
        Some(rest) => find(path, rest),
        None => Some(path.clone()),
    })
}
