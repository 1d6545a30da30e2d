//! Where each agent reads its hooks from, and the shape they have there.

use std::fmt;

use crate::dialect::Agent;

/// Whose settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The folder's, for everybody who works in it.
    Project,
    /// The folder's, for this user only.
    Local,
    /// This user's, for every folder.
    User,
}

impl Scope {
    /// The word, as in its option.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Local => "local",
            Self::User => "user",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A file an agent reads hooks from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Whose settings it holds.
    pub scope: Scope,
    /// Its path from the working folder, or from the home folder for the user's own.
    pub path: &'static str,
    /// A variable that names another folder, and the path from there.
    pub moved_by: Option<(&'static str, &'static str)>,
}

/// The variables that move a user's settings.
pub const VARIABLES: [&str; 5] =
    ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "QWEN_HOME", "COPILOT_HOME"];

/// The files an agent reads hooks from, as far as they are a person's to write.
pub fn places(agent: Agent) -> &'static [Place] {
    match agent {
        Agent::Claude => &CLAUDE,
        Agent::Codex => &CODEX,
        Agent::Gemini => &GEMINI,
        Agent::Qwen => &QWEN,
        Agent::Cursor => &CURSOR,
        Agent::Copilot => &COPILOT,
    }
}

const fn project(path: &'static str) -> Place {
    Place { scope: Scope::Project, path, moved_by: None }
}

const fn user(path: &'static str, variable: &'static str, from_there: &'static str) -> Place {
    Place { scope: Scope::User, path, moved_by: Some((variable, from_there)) }
}

const CLAUDE: [Place; 3] = [
    project(".claude/settings.json"),
    Place { scope: Scope::Local, path: ".claude/settings.local.json", moved_by: None },
    user(".claude/settings.json", "CLAUDE_CONFIG_DIR", "settings.json"),
];
const CODEX: [Place; 2] =
    [project(".codex/hooks.json"), user(".codex/hooks.json", "CODEX_HOME", "hooks.json")];
const GEMINI: [Place; 2] = [
    project(".gemini/settings.json"),
    user(".gemini/settings.json", "GEMINI_CLI_HOME", ".gemini/settings.json"),
];
const QWEN: [Place; 2] =
    [project(".qwen/settings.json"), user(".qwen/settings.json", "QWEN_HOME", "settings.json")];
const CURSOR: [Place; 2] =
    [project(".cursor/hooks.json"), Place { scope: Scope::User, path: ".cursor/hooks.json", moved_by: None }];
/// Every file in these folders is read, so ours holds nothing but ours.
const COPILOT: [Place; 2] = [
    project(".github/hooks/lychgate.json"),
    user(".copilot/hooks/lychgate.json", "COPILOT_HOME", "hooks/lychgate.json"),
];

/// The shape of an agent's hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Whether an event's hooks stand in groups, each with a matcher, or one beside the other.
    pub(super) grouped: bool,
    /// The key of a hook's command line.
    pub(super) command: &'static str,
    /// The key of a hook's timeout.
    pub(super) timeout: &'static str,
    /// What every hook says besides: that it is a command, and a name by which the agent's own commands can switch it
    /// off.
    pub(super) fixed: &'static [(&'static str, &'static str)],
    /// Whether the file says which version its format has.
    pub(super) versioned: bool,
}

/// A hook's name, where it has one.
pub(super) const NAME: &str = "lychgate";
/// The version of the format, where a file has one.
pub(super) const VERSION: u64 = 1;

pub(super) fn shape(agent: Agent) -> Shape {
    const COMMAND: (&str, &str) = ("type", "command");
    let grouped =
        Shape { grouped: true, command: "command", timeout: "timeout", fixed: &[COMMAND], versioned: false };
    match agent {
        Agent::Claude | Agent::Codex => grouped,
        Agent::Gemini | Agent::Qwen => Shape { fixed: &[("name", NAME), COMMAND], ..grouped },
        Agent::Cursor => Shape { grouped: false, fixed: &[], versioned: true, ..grouped },
        // Only newer ones know `command` and `timeout`.
        Agent::Copilot => {
            Shape { grouped: false, command: "bash", timeout: "timeoutSec", versioned: true, ..grouped }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_settings_of_a_project_and_of_a_user() {
        for agent in Agent::ALL {
            let scopes: Vec<Scope> = places(agent).iter().map(|place| place.scope).collect();
            assert!(scopes.contains(&Scope::Project) && scopes.contains(&Scope::User), "{agent}");
            for place in places(agent) {
                assert!(place.moved_by.is_none() || place.scope == Scope::User);
                assert!(place.moved_by.is_none_or(|(variable, _)| VARIABLES.contains(&variable)));
            }
        }
    }
}
