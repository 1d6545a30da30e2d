//! Which hook events our command is registered for, and nothing else: the installer writes exactly these, and the
//! readers beside this file understand exactly these, so the two cannot disagree.

use super::Agent;

/// One event of an agent that our command is registered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registration {
    /// The event's name in the agent's settings.
    pub event: &'static str,
    /// For tool events: which tools, in the agent's own pattern. Absent: every event of that name.
    pub matcher: Option<&'static str>,
    /// How long the agent waits for us, in the agent's own unit: see [`timeout_unit`].
    pub timeout: u32,
}

/// The unit in which an agent's settings give a hook's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

/// The unit of [`Registration::timeout`] for this agent.
pub fn timeout_unit(agent: Agent) -> TimeoutUnit {
    match agent {
        // Newer Qwen counts in seconds, but still reads 1000 and more as milliseconds.
        Agent::Gemini | Agent::Qwen => TimeoutUnit::Milliseconds,
        Agent::Claude | Agent::Codex | Agent::Cursor | Agent::Copilot => TimeoutUnit::Seconds,
    }
}

/// What our command is registered for, for this agent.
pub fn install_events(agent: Agent) -> &'static [Registration] {
    match agent {
        Agent::Claude => &CLAUDE,
        Agent::Codex => &CODEX,
        Agent::Gemini => &GEMINI,
        Agent::Qwen => &QWEN,
        Agent::Cursor => &CURSOR,
        Agent::Copilot => &COPILOT,
    }
}

/// Whether the agent leaves the event's name out of some events, so that the command line must give it.
pub fn must_name_event(agent: Agent) -> bool {
    agent == Agent::Copilot
}

/// Far above the second a call takes, and far below the ten minutes a hanging disk could hold an agent up for.
const SECONDS: u32 = 10;
const MILLISECONDS: u32 = SECONDS * 1000;

const fn on(event: &'static str, timeout: u32) -> Registration {
    Registration { event, matcher: None, timeout }
}

const fn tools(event: &'static str, matcher: &'static str, timeout: u32) -> Registration {
    Registration { event, matcher: Some(matcher), timeout }
}

const CLAUDE: [Registration; 10] = [
    on("SessionStart", SECONDS),
    on("UserPromptSubmit", SECONDS),
    tools("PreToolUse", "AskUserQuestion", SECONDS),
    tools("PostToolUse", "TodoWrite|TaskCreate|TaskUpdate|AskUserQuestion", SECONDS),
    on("SubagentStart", SECONDS),
    on("SubagentStop", SECONDS),
    on("Stop", SECONDS),
    on("StopFailure", SECONDS),
    on("CwdChanged", SECONDS),
    // Without a timeout of its own a session's end gives all hooks together one and a half seconds.
    on("SessionEnd", SECONDS),
];

/// No question tool: it exists in plan mode only, where nothing is continued, and its hook also fires for calls
/// that are turned down at once. Codex allows the last two events no more than three seconds.
const CODEX: [Registration; 9] = [
    on("SessionStart", SECONDS),
    on("UserPromptSubmit", SECONDS),
    tools("PostToolUse", "update_plan", SECONDS),
    on("SubagentStart", SECONDS),
    on("SubagentStop", SECONDS),
    on("Stop", SECONDS),
    on("StopFailure", SECONDS),
    on("Interrupt", 3),
    on("SessionEnd", 3),
];

const GEMINI: [Registration; 6] = [
    on("SessionStart", MILLISECONDS),
    on("BeforeAgent", MILLISECONDS),
    tools("BeforeTool", "ask_user|invoke_agent", MILLISECONDS),
    tools("AfterTool", "write_todos|ask_user|invoke_agent|enter_plan_mode|exit_plan_mode", MILLISECONDS),
    on("AfterAgent", MILLISECONDS),
    on("SessionEnd", MILLISECONDS),
];

const QWEN: [Registration; 9] = [
    on("SessionStart", MILLISECONDS),
    on("UserPromptSubmit", MILLISECONDS),
    tools("PreToolUse", "ask_user_question", MILLISECONDS),
    tools("PostToolUse", "todo_write|ask_user_question", MILLISECONDS),
    on("SubagentStart", MILLISECONDS),
    on("SubagentStop", MILLISECONDS),
    on("Stop", MILLISECONDS),
    on("StopFailure", MILLISECONDS),
    on("SessionEnd", MILLISECONDS),
];

const CURSOR: [Registration; 6] = [
    on("sessionStart", SECONDS),
    on("beforeSubmitPrompt", SECONDS),
    on("subagentStart", SECONDS),
    on("subagentStop", SECONDS),
    on("stop", SECONDS),
    on("sessionEnd", SECONDS),
];

/// In the spelling that carries the event's name with it, except for `SubagentStart`. No question tool: a hook before
/// a tool that cannot be started would keep the agent from ever asking.
const COPILOT: [Registration; 7] = [
    on("SessionStart", SECONDS),
    on("UserPromptSubmit", SECONDS),
    on("SubagentStart", SECONDS),
    on("SubagentStop", SECONDS),
    on("Stop", SECONDS),
    on("ErrorOccurred", SECONDS),
    on("SessionEnd", SECONDS),
];
