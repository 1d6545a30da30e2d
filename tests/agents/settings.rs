//! How each agent is started: its settings, its command line and its environment, without an account and a network.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::agents::Agent;
use crate::packages;

/// A hook to be registered.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    /// The event's name in the agent's settings.
    pub(crate) event: &'static str,
    /// A shell command.
    pub(crate) command: String,
    /// How long the agent waits for it.
    pub(crate) seconds: u32,
}

/// What a run of an agent takes up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Conversation<'a> {
    New,
    /// The one with this id goes on in a new process.
    Resumed(&'a str),
}

impl Agent {
    /// Writes the agent's settings with these hooks.
    pub(crate) fn configure(self, home: &Path, project: &Path, port: u16, hooks: &[Hook]) {
        let folder = match self {
            Self::Claude => project.join(".claude"),
            Self::Codex => home.join(".codex"),
            Self::Gemini => home.join(".gemini"),
            Self::Qwen => home.join(".qwen"),
            Self::Copilot => project.join(".github/hooks"),
        };
        std::fs::create_dir_all(&folder).unwrap();
        let hooks = self.hooks(hooks);
        let (file, settings) = match self {
            Self::Claude => ("settings.json", json!({"hooks": hooks})),
            Self::Codex => ("hooks.json", json!({"hooks": hooks})),
            Self::Copilot => ("hooks.json", json!({"version": 1, "hooks": hooks})),
            Self::Gemini | Self::Qwen => {
                let auth = if self == Self::Gemini { "gemini-api-key" } else { "openai" };
                let settings = json!({
                    "security": {"auth": {"selectedType": auth}, "folderTrust": {"enabled": false}},
                    "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
                    "privacy": {"usageStatisticsEnabled": false},
                    "telemetry": {"enabled": false},
                    // Qwen Code offers its to-dos only to who asks for them.
                    "tools": {"todoWrite": {"enabled": true}},
                    "hooks": hooks,
                });
                ("settings.json", settings)
            }
        };
        std::fs::write(folder.join(file), settings.to_string()).unwrap();
        if self == Self::Codex {
            std::fs::write(folder.join("config.toml"), codex_config(port)).unwrap();
        }
    }

    fn hooks(self, hooks: &[Hook]) -> Value {
        let mut events = json!({});
        for hook in hooks {
            let told = match self {
                Self::Copilot => {
                    json!({"type": "command", "bash": hook.command, "timeoutSec": hook.seconds})
                }
                Self::Gemini | Self::Qwen => {
                    json!({"type": "command", "command": hook.command, "timeout": hook.seconds * 1000})
                }
                Self::Claude | Self::Codex => {
                    json!({"type": "command", "command": hook.command, "timeout": hook.seconds})
                }
            };
            let list = &mut events[hook.event];
            if list.is_null() {
                *list = if self == Self::Copilot { json!([]) } else { json!([{"hooks": []}]) };
            }
            let list = if self == Self::Copilot { list } else { &mut list[0]["hooks"] };
            list.as_array_mut().unwrap().push(told);
        }
        events
    }

    /// The agent's command line for one prompt. Fails where its package is not installed.
    pub(crate) fn command(
        self,
        home: &Path,
        port: u16,
        conversation: Conversation<'_>,
        prompt: &str,
    ) -> Result<Command, String> {
        let mut command = packages::program(self)?;
        let mut path = OsString::from(packages::node_folder().unwrap_or_default());
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.env_clear().env("PATH", path).env("HOME", home).env("TERM", "dumb").env("LANG", "C.UTF-8");
        self.set_environment(&mut command, home, port);
        match self {
            Self::Claude => {
                command.args(["-p", prompt, "--output-format", "json", "--allowedTools", "Bash"]);
                if let Conversation::Resumed(id) = conversation {
                    command.args(["--resume", id]);
                }
            }
            Self::Codex => {
                command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"]);
                if let Conversation::Resumed(id) = conversation {
                    command.args(["resume", id]);
                }
                command.arg(prompt);
            }
            Self::Gemini => {
                // The to-dos are offered to models of the second generation only.
                command.args([
                    "-p",
                    prompt,
                    "--skip-trust",
                    "-m",
                    "gemini-2.5-pro",
                    "--approval-mode",
                    "yolo",
                ]);
                if let Conversation::Resumed(id) = conversation {
                    command.args(["--resume", id]);
                }
            }
            Self::Qwen => {
                command.args(["-p", prompt, "--approval-mode", "yolo"]);
                if let Conversation::Resumed(id) = conversation {
                    command.args(["--resume", id]);
                }
            }
            Self::Copilot => {
                command.args(["-p", prompt, "--allow-all-tools"]);
                if let Conversation::Resumed(id) = conversation {
                    command.arg(format!("--resume={id}"));
                }
            }
        }
        Ok(command)
    }

    /// No account, no telemetry, no update, and the model on loopback.
    fn set_environment(self, command: &mut Command, home: &Path, port: u16) {
        let url = format!("http://127.0.0.1:{port}");
        match self {
            Self::Claude => command
                .env("ANTHROPIC_BASE_URL", url)
                .env("ANTHROPIC_API_KEY", "any")
                .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                .env("DISABLE_TELEMETRY", "1")
                .env("DISABLE_ERROR_REPORTING", "1")
                .env("DISABLE_AUTOUPDATER", "1"),
            Self::Codex => command.env("CODEX_HOME", home.join(".codex")),
            Self::Gemini => command
                .env("GEMINI_API_KEY", "any")
                .env("GOOGLE_GEMINI_BASE_URL", url)
                .env("GEMINI_CLI_NO_RELAUNCH", "true")
                .env("NODE_COMPILE_CACHE", packages::folder().join("compiled")),
            Self::Qwen => command
                .env("OPENAI_API_KEY", "any")
                .env("OPENAI_BASE_URL", format!("{url}/v1"))
                .env("OPENAI_MODEL", "qwen-x")
                .env("QWEN_CODE_NO_RELAUNCH", "true")
                .env("NODE_COMPILE_CACHE", packages::folder().join("compiled")),
            Self::Copilot => command
                .env("COPILOT_OFFLINE", "true")
                .env("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1"))
                .env("COPILOT_MODEL", "gpt-x")
                .env("COPILOT_AUTO_UPDATE", "false")
                // Trusts the folder, whose hooks would be passed over otherwise.
                .env("COPILOT_ALLOW_ALL", "true")
                // It unpacks itself there, which takes a second; nothing of a conversation is in it.
                .env("XDG_CACHE_HOME", packages::folder().join("unpacked")),
        };
    }

    /// Where the program lies in its package's folder, with a `*` for the machine's name.
    pub(crate) fn program_pattern(self) -> (&'static str, bool) {
        match self {
            Self::Claude => ("node_modules/@anthropic-ai/claude-code-*/claude", false),
            Self::Codex => ("node_modules/@openai/codex-*/vendor/*/bin/codex", false),
            Self::Gemini => ("node_modules/@google/gemini-cli/bundle/gemini.js", true),
            // The entry beside it only starts this one with another option of node.
            Self::Qwen => ("node_modules/@qwen-code/qwen-code/cli.js", true),
            Self::Copilot => ("node_modules/@github/copilot-*/copilot", false),
        }
    }
}

fn codex_config(port: u16) -> String {
    format!(
        r#"model = "gpt-x"
model_provider = "loopback"
[model_providers.loopback]
name = "loopback"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[tools.update_plan]
enabled = true
[analytics]
enabled = false
"#
    )
}
