//! Codex runs a hook only after its user trusted it, and says nothing about the others.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{at_home, hook, put, text};
use crate::common::TestRoot;

/// What Codex writes into its `config.toml` when its user trusts the hooks of a file. The digest is Codex's own.
fn trusted(hooks: &Value, file: &str) -> String {
    let mut config = String::from("model = \"m\"\n\n[hooks.state]\n");
    for (event, groups) in hooks.as_object().unwrap() {
        let mut label = String::new();
        for c in event.chars() {
            if c.is_uppercase() && !label.is_empty() {
                label.push('_');
            }
            label.extend(c.to_lowercase());
        }
        for (index, group) in groups.as_array().unwrap().iter().enumerate() {
            let handler = &group["hooks"][0];
            let mut identity = json!({"event_name": label, "hooks": [{
                "async": false, "command": handler["command"], "timeout": handler["timeout"], "type": "command",
            }]});
            if let Some(matcher) = group.get("matcher") {
                identity["matcher"] = matcher.clone();
            }
            let digest = Sha256::digest(identity.to_string());
            write!(config, "[hooks.state.\"{file}:{label}:{index}:0\"]\ntrusted_hash = \"sha256:").unwrap();
            for byte in digest {
                write!(config, "{byte:02x}").unwrap();
            }
            config.push_str("\"\n\n");
        }
    }
    config
}

#[test]
fn trust_is_told_as_codex_has_recorded_it() {
    let root = TestRoot::new();
    let path = at_home(&root, ".codex/hooks.json");
    let config = at_home(&root, ".codex/config.toml");
    hook(&root, "install codex").is(0, "installed");
    let trust = |line: &str| {
        let out = hook(&root, line).is(0, "ok");
        (out.get("healthy") == "true", out.json()["files"][1]["trust"].clone(), out)
    };
    let (healthy, counts, _) = trust("doctor codex");
    let total = counts["missing"].as_u64().unwrap();
    assert!(!healthy && total > 5 && counts["trusted"] == 0, "{counts}");

    let settings: Value = serde_json::from_str(&text(&path)).unwrap();
    put(&config, trusted(&settings["hooks"], &path.canonicalize().unwrap().display().to_string()));
    let (healthy, counts, out) = trust("doctor codex");
    assert!(healthy, "{out}");
    assert_eq!(counts["trusted"], total);

    // An older Codex does not list the hooks of an event it does not know, and has none of them to trust.
    let mut older = settings["hooks"].clone();
    older.as_object_mut().unwrap().remove("StopFailure").unwrap();
    put(&config, trusted(&older, &path.canonicalize().unwrap().display().to_string()));
    let (healthy, counts, out) = trust("doctor codex");
    assert!(healthy && counts["missing"] == 1, "{out}");
    put(&config, trusted(&settings["hooks"], &path.canonicalize().unwrap().display().to_string()));

    hook(&root, "install codex --guard").is(0, "installed");
    let (healthy, counts, out) = trust("doctor codex");
    assert!(!healthy && counts["changed"] == total, "{counts}");
    let said = out.get("problems.0");
    assert!(said.starts_with(&format!("Codex skips {total} of {total} hooks without a word")), "{said}");
    assert!(said.contains("--dangerously-bypass-hook-trust"), "{said}");

    put(&config, "[features]\nhooks = false\n");
    let (_, _, out) = trust("doctor codex");
    assert_eq!(out.get("problems.0"), "[DIR]/home/.codex/config.toml: hooks are off under [features]");
}

#[test]
fn a_project_that_codex_does_not_trust_has_no_hooks() {
    let root = TestRoot::new();
    hook(&root, "install codex --project").is(0, "installed");
    let untrusted = |out: &crate::common::Outcome| out.stdout.contains("`[DIR]` is not trusted");
    assert!(untrusted(&hook(&root, "doctor codex --project")));
    let folder = root.scratch().canonicalize().unwrap();
    let config = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", folder.display());
    put(&at_home(&root, ".codex/config.toml"), config);
    assert!(!untrusted(&hook(&root, "doctor codex --project")));
}
