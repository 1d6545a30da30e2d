//! The agents that can be driven, and what their hooks and tools are called.

use serde_json::{Value, json};

use crate::model::Turn;

/// An agent that can be driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Agent {
    Claude,
    Codex,
    Gemini,
    Qwen,
    Copilot,
}

impl Agent {
    pub(crate) const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Qwen, Self::Copilot];

    /// The name of the package in `packages.txt`, and the word after `lychgate hook`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Copilot => "copilot",
        }
    }

    /// The event of a prompt.
    pub(crate) fn prompt_event(self) -> &'static str {
        if self == Self::Gemini { "BeforeAgent" } else { "UserPromptSubmit" }
    }

    /// The event of a stop.
    pub(crate) fn stop_event(self) -> &'static str {
        if self == Self::Gemini { "AfterAgent" } else { "Stop" }
    }

    /// Every event worth a look. One that the agent does not know never fires.
    pub(crate) fn events(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "PostToolUseFailure",
                "TaskCreated",
                "TaskCompleted",
                "SubagentStart",
                "SubagentStop",
                "Stop",
                "StopFailure",
                "CwdChanged",
                "PermissionRequest",
                "SessionEnd",
            ],
            Self::Codex => &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "SubagentStart",
                "SubagentStop",
                "Stop",
                "StopFailure",
                "Interrupt",
                "SessionEnd",
            ],
            Self::Gemini => {
                &["SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"]
            }
            Self::Qwen => &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "PostToolUseFailure",
                "TodoCreated",
                "TodoCompleted",
                "SubagentStart",
                "SubagentStop",
                "Stop",
                "StopFailure",
                "SessionEnd",
            ],
            Self::Copilot => &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "PostToolUseFailure",
                "SubagentStart",
                "SubagentStop",
                "Stop",
                "ErrorOccurred",
                "SessionEnd",
            ],
        }
    }

    /// The tool that only requests of the conversation offer, none of a sub-agent or of the agent's own housekeeping.
    pub(crate) fn main_tool(self) -> &'static str {
        match self {
            Self::Claude => "Workflow",
            Self::Codex => "multi_agent_v1",
            Self::Gemini => "invoke_agent",
            Self::Qwen => "todo_write",
            Self::Copilot => "task",
        }
    }

    /// A turn that makes two to-dos, which are open.
    pub(crate) fn makes_two_to_dos(self) -> Turn {
        match self {
            Self::Claude => {
                let task = |subject: &str| json!({"subject": subject, "description": subject});
                Turn::calls("TaskCreate", task("first")).and_calls("TaskCreate", task("second"))
            }
            _ => self.writes_to_dos("in_progress", "pending"),
        }
    }

    /// A turn that says both to-dos are done.
    pub(crate) fn completes_both_to_dos(self) -> Turn {
        match self {
            Self::Claude => {
                let done = |id: &str| json!({"taskId": id, "status": "completed"});
                Turn::calls("TaskUpdate", done("1")).and_calls("TaskUpdate", done("2"))
            }
            _ => self.writes_to_dos("completed", "completed"),
        }
    }

    fn writes_to_dos(self, first: &str, second: &str) -> Turn {
        let list = |text: &str| {
            let item = |id: &str, name: &str, status: &str| -> Value {
                let mut item = json!({"status": status});
                item[text] = name.into();
                if self == Self::Qwen {
                    item["id"] = id.into();
                }
                item
            };
            json!([item("1", "first", first), item("2", "second", second)])
        };
        match self {
            Self::Claude => unreachable!("Claude Code has no list that is written whole"),
            Self::Codex => Turn::calls("update_plan", json!({"plan": list("step")})),
            Self::Gemini => Turn::calls("write_todos", json!({"todos": list("description")})),
            Self::Qwen => Turn::calls("todo_write", json!({"todos": list("content")})),
            Self::Copilot => {
                let status = |status: &str| if status == "completed" { "done" } else { "pending" }.to_owned();
                let query = format!(
                    "INSERT OR REPLACE INTO todos (id, title, description, status) VALUES \
                     ('1', 'first', 'first', '{}'), ('2', 'second', 'second', '{}')",
                    status(first),
                    status(second)
                );
                Turn::calls("sql", json!({"description": "Write the to-dos", "query": query}))
            }
        }
    }
}
