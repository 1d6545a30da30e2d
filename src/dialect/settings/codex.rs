//! What Codex's `config.toml` says about hooks: Codex runs one only after its user trusted it, and skips it without
//! a word otherwise.
//!
//! Only the form that Codex itself writes is understood. Trust is the user's to give, so nothing here writes any.

use sha2::{Digest as _, Sha256};

use super::found::Entry;

/// Whether Codex will run a hook, as far as its `config.toml` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Trusted as it stands.
    Trusted,
    /// Another hook was trusted in its place: it was changed since.
    Changed,
    /// Never trusted.
    Missing,
    /// Switched off by its user.
    Disabled,
}

impl Trust {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Trusted, Self::Changed, Self::Missing, Self::Disabled];

    /// The word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Disabled => "disabled",
        }
    }
}

/// Whether Codex trusts a hook of the file at one of these paths, which are names of the same file.
pub fn trust(config: &str, paths: &[&str], hook: &Entry) -> Trust {
    let place = |path: &str| format!("{path}:{}:{}:{}", label(&hook.event), hook.group, hook.index);
    for key in paths.iter().map(|path| place(path)) {
        let mut trusted = None;
        for (name, value) in section(config, "hooks.state", &key) {
            match name {
                "enabled" if value == "false" => return Trust::Disabled,
                "trusted_hash" => trusted = Some(value.trim_matches(['"', '\'']) == hash(hook)),
                _ => {}
            }
        }
        match trusted {
            Some(true) => return Trust::Trusted,
            Some(false) => return Trust::Changed,
            None => {}
        }
    }
    Trust::Missing
}

/// Whether every Codex with hooks knows an event. One that does not steps over its hooks, and has none to trust:
/// 0.171 knows all of ours but this one.
pub fn is_known_to_all(event: &str) -> bool {
    event != "StopFailure"
}

/// Whether Codex's hooks are switched off altogether.
pub fn hooks_are_off(config: &str) -> bool {
    let mut features = lines_of(config, |header| header == "[features]");
    features.any(|(name, value)| ["hooks", "codex_hooks"].contains(&name) && value == "false")
}

/// Whether Codex trusts the project at one of these paths, which are names of the same folder.
pub fn trusts_project(config: &str, paths: &[&str]) -> bool {
    let says =
        |path: &&str| section(config, "projects", path).any(|line| line == ("trust_level", "\"trusted\""));
    paths.iter().any(says)
}

/// The lines below `[table."key"]`.
fn section<'t>(config: &'t str, table: &str, key: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let escaped = key.replace('\\', "\\\\").replace('"', "\\\"");
    let headers = [format!("[{table}.\"{escaped}\"]"), format!("[{table}.'{key}']")];
    lines_of(config, move |header| headers.iter().any(|wanted| wanted == header))
}

/// The lines `name = value` below a header that is wanted.
fn lines_of(config: &str, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, &str)> {
    let mut inside = false;
    config.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with('[') {
            inside = wanted(line);
            return None;
        }
        let (name, value) = line.split_once('=').filter(|_| inside)?;
        // What Codex writes itself has no comment behind it; a person's may.
        let value = value.split(" #").next().unwrap_or_default();
        Some((name.trim(), value.trim()))
    })
}

/// An event's name in Codex's own keys.
fn label(event: &str) -> String {
    let mut label = String::new();
    for c in event.chars() {
        if c.is_ascii_uppercase() && !label.is_empty() {
            label.push('_');
        }
        label.push(c.to_ascii_lowercase());
    }
    label
}

/// What Codex records of a hook that was trusted: the digest of its definition, keys sorted.
fn hash(hook: &Entry) -> String {
    let mut identity = serde_json::json!({
        "event_name": label(&hook.event),
        "hooks": [{
            "async": false,
            "command": hook.line,
            "timeout": hook.timeout.unwrap_or(TIMEOUT_SECONDS),
            "type": "command",
        }],
    });
    if let (Some(matcher), Some(fields)) = (&hook.matcher, identity.as_object_mut()) {
        fields.insert("matcher".to_owned(), matcher.as_str().into());
    }
    let digest = Sha256::digest(identity.to_string().as_bytes());
    digest.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// Codex's own timeout for a hook that names none.
const TIMEOUT_SECONDS: u64 = 600;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::settings::FoundCommand;

    fn hook(event: &str, matcher: Option<&str>) -> Entry {
        let line = "[ -x /bin/true ] || exit 0; exec /bin/true --root /r hook codex";
        Entry {
            event: event.to_owned(),
            matcher: matcher.map(str::to_owned),
            group: 0,
            index: 0,
            line: line.to_owned(),
            timeout: Some(10),
            command: FoundCommand::read(line, crate::dialect::Agent::Codex, event).expect("ours"),
        }
    }

    /// The hashes were told by Codex 0.171.0 for these very hooks.
    #[test]
    fn a_hash_is_the_one_that_codex_records() {
        assert_eq!(
            hash(&hook("Stop", None)),
            "sha256:8436d2cf6760b389975157dcc7ee595a4bc4ffbc3c8e7ec06e6ce6156fe858c5"
        );
        assert_eq!(
            hash(&hook("PostToolUse", Some("update_plan"))),
            "sha256:dc173d982d83c26fe64e68fe46875abf01dd875ff61a43cd73add9a93dcdd41a"
        );
    }

    /// The text was written by Codex 0.171.0, but for the paths.
    #[test]
    fn trust_is_read_from_what_codex_writes() {
        let config = "[hooks.state]\n[hooks.state.\"/h/hooks.json:stop:0:0\"]\n\
            trusted_hash = \"sha256:8436d2cf6760b389975157dcc7ee595a4bc4ffbc3c8e7ec06e6ce6156fe858c5\"\n\n\
            [hooks.state.\"/h/hooks.json:post_tool_use:0:0\"]\ntrusted_hash = \"sha256:x\"\n\
            [hooks.state.\"/h/hooks.json:session_start:0:0\"]\ntrusted_hash = \"sha256:x\"\nenabled = false\n";
        let paths = ["/elsewhere/hooks.json", "/h/hooks.json"];
        for (event, wanted) in [
            ("Stop", Trust::Trusted),
            ("PostToolUse", Trust::Changed),
            ("SessionStart", Trust::Disabled),
            ("UserPromptSubmit", Trust::Missing),
        ] {
            assert_eq!(trust(config, &paths, &hook(event, None)), wanted, "{event}");
        }
        assert_eq!(trust("", &paths, &hook("Stop", None)), Trust::Missing);
        assert_eq!(trust(config, &["/elsewhere/hooks.json"], &hook("Stop", None)), Trust::Missing);
    }

    #[test]
    fn hooks_that_are_off_and_projects_that_are_trusted_are_seen() {
        assert!(hooks_are_off("[features]\nhooks = false # for now\n"));
        assert!(!hooks_are_off("[features]\nhooks = true\n[other]\nhooks = false\n"));
        let config = "[projects.\"/a \\\"b\\\"\"]\ntrust_level = \"trusted\"\n[projects.'/c']\ntrust_level = \"untrusted\"\n";
        assert!(trusts_project(config, &["/a \"b\""]));
        assert!(!trusts_project(config, &["/c", "/d"]));
    }
}
