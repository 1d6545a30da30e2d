//! The arguments of the commands about agents' hooks.

use clap::{Args, Subcommand, ValueEnum};

use super::values::{agent, words};
use crate::dialect::Agent;
use crate::dialect::settings::Scope;

/// `hook`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct HookArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: HookVerb,
}

/// What `hook` does.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum HookVerb {
    /// Have an agent call this program
    Install(HookInstallArgs),
    /// Have an agent call this program no more
    Uninstall(HookUninstallArgs),
    /// Tell whether an agent calls this program, and what keeps it from that
    Doctor(HookDoctorArgs),
    /// Take an event of Claude Code
    Claude(HookAgentArgs),
    /// Take an event of Codex
    Codex(HookAgentArgs),
    /// Take an event of Gemini CLI
    Gemini(HookAgentArgs),
    /// Take an event of Qwen Code
    Qwen(HookAgentArgs),
    /// Take an event of Cursor
    Cursor(HookAgentArgs),
    /// Take an event of Copilot CLI
    Copilot(HookAgentArgs),
}

impl HookVerb {
    /// The agent that makes the call; absent: a person does.
    pub fn agent(&self) -> Option<Agent> {
        match self {
            Self::Install(_) | Self::Uninstall(_) | Self::Doctor(_) => None,
            Self::Claude(_) => Some(Agent::Claude),
            Self::Codex(_) => Some(Agent::Codex),
            Self::Gemini(_) => Some(Agent::Gemini),
            Self::Qwen(_) => Some(Agent::Qwen),
            Self::Cursor(_) => Some(Agent::Cursor),
            Self::Copilot(_) => Some(Agent::Copilot),
        }
    }
}

/// Whose settings of an agent are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[group(id = "settings_scope", multiple = false)]
pub struct ScopeArgs {
    /// The settings of this folder, which everybody who works in it shares
    #[arg(long)]
    pub project: bool,
    /// The settings of this folder, for this user only
    #[arg(long)]
    pub local: bool,
    /// The settings of this user, for every folder
    #[arg(long)]
    pub user: bool,
}

impl ScopeArgs {
    /// The scope that was named.
    pub fn named(&self) -> Option<Scope> {
        match (self.project, self.local, self.user) {
            (true, _, _) => Some(Scope::Project),
            (_, true, _) => Some(Scope::Local),
            (_, _, true) => Some(Scope::User),
            _ => None,
        }
    }
}

/// `hook install`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct HookInstallArgs {
    /// The agent
    #[arg(value_name = "AGENT", value_parser = agent())]
    pub agent: Agent,
    /// Let the agent go on by itself while its to-do list says so
    #[arg(long)]
    pub guard: bool,
    /// Write nothing, and print what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Whose settings.
    #[command(flatten)]
    pub scope: ScopeArgs,
}

/// `hook uninstall`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct HookUninstallArgs {
    /// The agent
    #[arg(value_name = "AGENT", value_parser = agent())]
    pub agent: Agent,
    /// Write nothing, and print what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Whose settings.
    #[command(flatten)]
    pub scope: ScopeArgs,
}

/// `hook doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct HookDoctorArgs {
    /// The agent
    #[arg(value_name = "AGENT", value_parser = agent())]
    pub agent: Agent,
    /// Whose settings; all of them where none are named.
    #[command(flatten)]
    pub scope: ScopeArgs,
}

/// What another hook has said of this end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OuterVerdict {
    /// The agent may stop
    Allow,
    /// The agent shall go on
    Block,
}

/// `hook AGENT`: the call an agent makes. The event is on standard input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct HookAgentArgs {
    /// Let the agent go on by itself while its to-do list says so
    #[arg(long)]
    pub guard: bool,
    /// Say what another hook has said of this end of a turn
    #[arg(long, value_name = "VERDICT")]
    pub external: Option<OuterVerdict>,
    /// Say why that hook lets the agent go on
    #[arg(long, value_name = "TEXT", value_parser = words, requires = "external")]
    pub reason: Option<String>,
    /// Name the event, where the agent does not
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// Look at the events of sub-agents too
    #[arg(long)]
    pub sub_agents: bool,
}
