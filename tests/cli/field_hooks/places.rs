//! Places and paths: H55, H71 and H73.

use std::process::{Command, Stdio};

use serde_json::json;

use super::Agent;
use crate::common::{BIN, TestRoot};
use crate::guard::Session;

/// A hook call by way of another program, which gets the call's words behind its own.
fn by_way_of(agent: &Agent<'_>, program: &str, args: &[&str]) -> Command {
    let hook = agent.command();
    let mut command = Command::new(program);
    command.args(args).arg(BIN).args(hook.get_args()).env_clear();
    command.envs(hook.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.current_dir(hook.get_current_dir().unwrap());
    command
}

#[test]
fn h55_a_replacement_that_the_system_refuses_leaves_the_old_state_and_the_agent_may_stop() {
    // On the systems we support nobody's open file is in the way of a rename, so one that fails is an error that
    // is told, and no call tries it in a loop.
    for error in ["EACCES", "EBUSY", "ENOSPC"] {
        let root = TestRoot::new();
        let agent = Agent::at_work(&root, "s");
        let before = agent.books().record();
        let inject = format!("inject=rename,renameat,renameat2:error={error}");
        let trace = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=rename,renameat,renameat2", "-e", &inject];
        let command = by_way_of(&agent, "strace", &trace);
        let payload = agent.payload("Stop", &json!({})).to_string();
        let heard = agent.run(command, payload.as_bytes());
        // A tracer slows a call down, perhaps beyond its time; that is refused no less.
        assert!(!heard.goes_on(), "{error}");
        assert_ne!(heard.0.stderr, "", "{error}");
        assert_eq!(agent.books().record(), before, "{error}");
        assert_eq!(agent.stops(3), 2, "{error}: the next ones work, and nothing was charged");
    }
}

#[test]
fn h71_the_root_is_one_place_wherever_the_agent_is() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    let gone = root.scratch().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let payload = |n: usize| agent.payload("Stop", &json!({ "n": n })).to_string();
    let from = |dir: &str| {
        let mut command = agent.command();
        command.current_dir(dir);
        command
    };
    let mut n = 0;
    for (stop, dir) in ["/", "/tmp", &root.scratch().display().to_string()].into_iter().enumerate() {
        n += usize::from(agent.run(from(dir), payload(stop).as_bytes()).goes_on());
    }
    assert_eq!(n, 2, "one budget, not one a folder");
    agent.work();
    let delete = format!("cd '{0}' && rmdir '{0}' && exec \"$0\" \"$@\"", gone.display());
    let nowhere = by_way_of(&agent, "sh", &["-c", &delete]);
    assert!(agent.run(nowhere, payload(9).as_bytes()).goes_on(), "a folder that is gone is no hindrance");
    assert_eq!(agent.attempts(), 1);
}

#[test]
fn h71_an_installed_hook_names_its_root_absolutely() {
    let root = TestRoot::new();
    for (name, value) in [("--root", "rel"), ("variable", "rel")] {
        let mut command = root.command(&["hook", "install", "claude", "--dry-run", "--json"]);
        if name == "--root" {
            command.args(["--root", value]);
        } else {
            command.env("LYCHGATE_ROOT", value);
        }
        let out = root.finish(command.spawn().unwrap());
        let absolute = out.stdout.contains("--root [DIR]/rel");
        assert!(out.exit == 64 || (out.exit == 0 && absolute), "{name}: {out}");
    }
}

#[test]
fn h73_a_path_is_told_and_never_a_key() {
    // One folder has several spellings on some systems, which we do not support; where they are two, they are two.
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    for cwd in ["C:\\Repo\\a", "c:/repo/A", "/mnt/c/repo/a", "/r/a", "/r/A", "//r/a/"] {
        let _ = agent.event("PreToolUse", &json!({ "cwd": cwd, "tool_name": "Bash" }));
    }
    assert_eq!(agent.stops(3), 2, "the session is found by its id, wherever it works");
    assert_eq!(std::fs::read_dir(root.path().join("sessions")).unwrap().count(), 1);
    for name in ["/r/a", "/r/A"] {
        let s = Session { root: &root, id: name };
        assert_eq!(s.session("open", &["--guard"]).is(0, "opened").get("generation"), "1", "{name}");
    }
}
