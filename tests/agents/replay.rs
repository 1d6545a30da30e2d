//! A driver that treats its hooks as an agent does: it sends the recorded payloads, runs the hooks of one event at the
//! same time, kills each at its timeout, reads their exit statuses and answers with the agent's own eyes, brings the
//! conversation back, and gives up at the agent's own bound.
//!
//! It plays the agents that cannot be driven, and for the others what they cannot be made to do at will. That it
//! behaves like them is tested in `alike`.

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use lychgate::dialect::Agent;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::settings::Hook;

/// The agent's id of the conversation.
pub(crate) const SESSION: &str = "0a1b2c3d-0000-4000-8000-000000000001";

/// More stops than any test wants.
const STOPS_MAX: usize = 40;

/// A conversation that is played.
pub(crate) struct Replay {
    agent: Agent,
    folder: PathBuf,
    hooks: RefCell<Vec<Hook>>,
    n_prompts: Cell<usize>,
    n_events: Cell<usize>,
    says_active: Cell<bool>,
    calls: RefCell<Vec<Call>>,
}

/// What the model does in one turn, before it stops.
pub(crate) enum Act<'a> {
    /// It writes its to-dos, each with its status.
    ToDos(&'a [(&'a str, &'a str)]),
    /// Meanwhile something happens outside.
    Meanwhile(&'a dyn Fn()),
}

/// What a hook did.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "the event is for the message of a failure")]
pub(crate) struct Call {
    pub(crate) event: &'static str,
    /// Nothing: it was killed at its timeout.
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// What an agent makes of a stop hook's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Stop,
    GoOn(String),
}

impl Replay {
    /// A conversation of this agent, in this folder.
    pub(crate) fn of(agent: Agent, folder: PathBuf) -> Self {
        Self {
            agent,
            folder,
            hooks: RefCell::default(),
            n_prompts: Cell::new(0),
            n_events: Cell::new(0),
            says_active: Cell::new(true),
            calls: RefCell::default(),
        }
    }

    /// Registers a hook beside those there are.
    pub(crate) fn hook(&self, event: &'static str, command: String, seconds: u32) {
        self.hooks.borrow_mut().push(Hook { event, command, seconds });
    }

    /// From now on stops do not say that a hook has brought the agent back, as in versions of some agents.
    pub(crate) fn forgets_that_it_is_active(&self) {
        self.says_active.set(false);
    }

    /// Every call of a hook so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.borrow().clone()
    }

    /// A person's prompt. `script` says what the model does in each turn; past its end it just stops. Gives the
    /// texts that the agent was brought back with.
    pub(crate) fn say(&self, prompt: &str, script: &[&[Act<'_>]]) -> Vec<String> {
        self.begin_prompt(prompt, true);
        let mut texts = Vec::new();
        for n in 0.. {
            assert!(n < STOPS_MAX, "the agent is brought back without end: {:?}", self.calls());
            for act in script.get(n).copied().unwrap_or_default() {
                match act {
                    Act::ToDos(items) => self.write_to_dos(items),
                    Act::Meanwhile(act) => act(),
                }
            }
            let Verdict::GoOn(text) = self.stop(texts.len()) else { break };
            if texts.len() >= self.continuations_max() {
                break;
            }
            if self.comes_back_as_prompt() {
                self.begin_prompt(&text, false);
            }
            texts.push(text);
        }
        texts
    }

    /// An event that has these fields beside those of every event.
    pub(crate) fn tell(&self, event: &'static str, fields: &Value) {
        let mut payload = self.payload(event);
        for (name, field) in fields.as_object().unwrap() {
            payload[name] = field.clone();
        }
        self.fire(event, &payload);
    }

    /// How often in a row the agent lets itself be brought back.
    fn continuations_max(&self) -> usize {
        match self.agent {
            Agent::Claude | Agent::Copilot => 8,
            Agent::Qwen => 7,
            Agent::Cursor => 5,
            Agent::Codex | Agent::Gemini => usize::MAX,
        }
    }

    fn comes_back_as_prompt(&self) -> bool {
        !matches!(self.agent, Agent::Claude | Agent::Codex)
    }

    fn begin_prompt(&self, text: &str, typed: bool) {
        // Only Cursor takes what a hook says for a prompt like any other.
        if typed || self.agent == Agent::Cursor {
            self.n_prompts.set(self.n_prompts.get() + 1);
        }
        let event = match self.agent {
            Agent::Gemini => "BeforeAgent",
            Agent::Cursor => "beforeSubmitPrompt",
            _ => "UserPromptSubmit",
        };
        let mut payload = self.payload(event);
        payload["prompt"] = text.into();
        if self.agent == Agent::Qwen && !typed {
            payload.as_object_mut().unwrap().remove("submitted_prompt");
        } else if self.agent == Agent::Qwen {
            payload["submitted_prompt"] = text.into();
        }
        self.fire(event, &payload);
    }

    fn write_to_dos(&self, items: &[(&str, &str)]) {
        let (event, tool, text) = match self.agent {
            Agent::Codex => ("PostToolUse", "update_plan", "step"),
            Agent::Gemini => ("AfterTool", "write_todos", "description"),
            Agent::Qwen => ("PostToolUse", "todo_write", "content"),
            Agent::Claude => return self.create_tasks(items),
            // Their lists never reach a hook.
            Agent::Copilot | Agent::Cursor => return,
        };
        let list: Vec<Value> = (1..)
            .zip(items)
            .map(|(id, (item, status)): (usize, _)| json!({"id": id.to_string(), text: item, "status": status}))
            .collect();
        let mut payload = self.payload(event);
        payload["tool_name"] = tool.into();
        if self.agent == Agent::Codex {
            payload["tool_input"] = json!({"plan": list});
        } else {
            payload["tool_input"] = json!({"todos": list});
            payload["tool_response"] = json!({"returnDisplay": {"todos": list}});
        }
        self.fire(event, &payload);
    }

    fn create_tasks(&self, items: &[(&str, &str)]) {
        for (id, (item, status)) in (1..).zip(items) {
            let mut payload = self.payload("PostToolUse");
            let id = id.to_string();
            if *status == "completed" {
                payload["tool_name"] = "TaskUpdate".into();
                payload["tool_input"] = json!({"taskId": id, "status": status});
                payload["tool_response"] = json!({"success": true, "taskId": id, "updatedFields": ["status"],
                    "statusChange": {"from": "pending", "to": status}});
            } else {
                payload["tool_name"] = "TaskCreate".into();
                payload["tool_input"] = json!({"subject": item, "description": item});
                payload["tool_response"] = json!({"task": {"id": id, "subject": item}});
            }
            self.fire("PostToolUse", &payload);
        }
    }

    fn stop(&self, n_before: usize) -> Verdict {
        let event = match self.agent {
            Agent::Gemini => "AfterAgent",
            Agent::Cursor => "stop",
            _ => "Stop",
        };
        let mut payload = self.payload(event);
        if self.agent == Agent::Cursor {
            payload["loop_count"] = n_before.into();
        } else {
            payload["stop_hook_active"] = (n_before > 0 && self.says_active.get()).into();
        }
        let calls = self.fire(event, &payload);
        let texts = calls.iter().filter_map(|call| match verdict(self.agent, call) {
            Verdict::GoOn(text) => Some(text),
            Verdict::Stop => None,
        });
        let texts: Vec<String> = texts.collect();
        match texts.last() {
            None => Verdict::Stop,
            // It hears only one of several.
            Some(last) if self.agent == Agent::Copilot => Verdict::GoOn(last.clone()),
            Some(_) => Verdict::GoOn(texts.join("\n")),
        }
    }

    /// What the agent says of such an event, with the ids of this conversation.
    fn payload(&self, event: &str) -> Value {
        if self.agent == Agent::Cursor {
            return self.cursor_payload(event);
        }
        let path = format!(
            "{}/tests/payloads/driven/{}-blocked-twice.jsonl",
            env!("CARGO_MANIFEST_DIR"),
            self.agent
        );
        let recorded = std::fs::read_to_string(path).unwrap();
        let mut payloads = recorded.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut payload = payloads.find(|payload| payload["hook_event_name"] == event).unwrap();
        payload["session_id"] = SESSION.into();
        // No two events are told with the same bytes.
        let n = self.n_events.get() + 1;
        self.n_events.set(n);
        for (field, value) in [
            ("timestamp", format!("2026-01-01T00:00:00.{n:03}Z")),
            ("last_assistant_message", format!("I have said {n} things.")),
            ("prompt_response", format!("I have said {n} things.")),
        ] {
            if !payload[field].is_null() {
                payload[field] = value.into();
            }
        }
        payload["cwd"] = self.folder.display().to_string().into();
        for turn in ["prompt_id", "turn_id"] {
            if !payload[turn].is_null() {
                payload[turn] = format!("turn-{}", self.n_prompts.get()).into();
            }
        }
        payload
    }

    /// As its pages say: nothing was recorded.
    fn cursor_payload(&self, event: &str) -> Value {
        let mut payload = json!({"conversation_id": SESSION, "generation_id": self.n_prompts.get().to_string(),
            "model": "x", "hook_event_name": event, "cursor_version": "2.0.0",
            "workspace_roots": [self.folder], "user_email": null, "transcript_path": null});
        match event {
            "stop" => payload["status"] = "completed".into(),
            _ => payload["attachments"] = json!([]),
        }
        payload
    }

    /// Runs the hooks of an event, all at the same time, and waits for all of them.
    fn fire(&self, event: &'static str, payload: &Value) -> Vec<Call> {
        let hooks = self.hooks.borrow();
        let running: Vec<_> =
            hooks.iter().filter(|hook| hook.event == event).map(|hook| self.spawn(hook, payload)).collect();
        let calls: Vec<Call> = running.into_iter().map(|running| running.end(event)).collect();
        self.calls.borrow_mut().extend(calls.iter().cloned());
        calls
    }

    fn spawn(&self, hook: &Hook, payload: &Value) -> RunningHook {
        let mut child = Command::new("sh")
            .args(["-c", &hook.command])
            .current_dir(&self.folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A hook that does not read is no failure of the agent.
        drop(child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()));
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        RunningHook {
            stdout: read_all(stdout),
            stderr: read_all(stderr),
            child,
            deadline: Instant::now() + Duration::from_secs(hook.seconds.into()),
        }
    }
}

struct RunningHook {
    child: Child,
    stdout: mpsc::Receiver<String>,
    stderr: mpsc::Receiver<String>,
    deadline: Instant,
}

fn read_all(mut from: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error counts.
        drop(from.read_to_end(&mut bytes));
        // Nobody waits any more for a hook that was killed.
        drop(send.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receive
}

impl RunningHook {
    /// Waits until the hook has ended and whoever still holds its output has let it go, at most until its timeout.
    fn end(mut self, event: &'static str) -> Call {
        let left = || self.deadline.saturating_duration_since(Instant::now());
        let output =
            self.stdout.recv_timeout(left()).and_then(|out| Ok((out, self.stderr.recv_timeout(left())?)));
        let Ok((stdout, stderr)) = output else {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            self.child.wait().unwrap();
            return Call { event, exit: None, stdout: String::new(), stderr: String::new() };
        };
        let status = self.child.wait().unwrap();
        Call { event, exit: Some(status.code().unwrap_or(128)), stdout, stderr }
    }
}

/// What the agent makes of a stop hook's end.
fn verdict(agent: Agent, call: &Call) -> Verdict {
    let Some(exit) = call.exit else { return Verdict::Stop };
    let told = call.stderr.trim();
    match (agent, exit) {
        (_, 0) => answer(agent, call),
        (Agent::Claude | Agent::Codex | Agent::Qwen, 2) if !told.is_empty() => Verdict::GoOn(told.to_owned()),
        // Whatever is not 0 or 1, a panic too.
        (Agent::Gemini, code) if code != 1 && !told.is_empty() => Verdict::GoOn(told.to_owned()),
        _ => Verdict::Stop,
    }
}

fn answer(agent: Agent, call: &Call) -> Verdict {
    let text = call.stdout.trim();
    let text = if agent == Agent::Gemini && text.is_empty() { call.stderr.trim() } else { text };
    let Ok(answer) = serde_json::from_str::<Value>(text) else { return Verdict::Stop };
    let reason = match agent {
        Agent::Cursor => &answer["followup_message"],
        Agent::Gemini if answer["decision"] == "deny" || answer["decision"] == "block" => &answer["reason"],
        _ if answer["decision"] == "block" => &answer["reason"],
        _ => &Value::Null,
    };
    match reason.as_str() {
        Some(reason) if !reason.is_empty() => Verdict::GoOn(reason.to_owned()),
        _ => Verdict::Stop,
    }
}
