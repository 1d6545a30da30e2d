//! What goes wrong with hooks and automatic continuation in the field, retold: `docs/HOOKS.md` lists the cases.
//! Each test plays an agent that calls its hooks, and says what must come of it instead.

mod budgets;
mod deaths;
mod inputs;
mod lives;
mod order;
mod places;
mod stalls;
mod who;

use std::cell::Cell;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Map, Value, json};

use crate::common::{Outcome, TestRoot};
use crate::guard::Session;

/// What one agent calls its events.
struct Words {
    agent: &'static str,
    session: &'static str,
    turn: Option<&'static str>,
    prompt: &'static str,
    stop: &'static str,
    after_tool: &'static str,
    before_tool: &'static str,
    question_tool: &'static str,
}

const CLAUDE: Words = Words {
    agent: "claude",
    session: "session_id",
    turn: Some("prompt_id"),
    prompt: "UserPromptSubmit",
    stop: "Stop",
    after_tool: "PostToolUse",
    before_tool: "PreToolUse",
    question_tool: "AskUserQuestion",
};
const CODEX: Words =
    Words { agent: "codex", turn: Some("turn_id"), question_tool: "request_user_input", ..CLAUDE };
const GEMINI: Words = Words {
    agent: "gemini",
    turn: None,
    prompt: "BeforeAgent",
    stop: "AfterAgent",
    after_tool: "AfterTool",
    before_tool: "BeforeTool",
    question_tool: "ask_user",
    ..CLAUDE
};
const QWEN: Words = Words { agent: "qwen", question_tool: "ask_user_question", ..CLAUDE };
const CURSOR: Words = Words {
    agent: "cursor",
    session: "conversation_id",
    turn: Some("generation_id"),
    prompt: "beforeSubmitPrompt",
    stop: "stop",
    after_tool: "postToolUse",
    before_tool: "preToolUse",
    question_tool: "",
};
const COPILOT: Words = Words { agent: "copilot", turn: None, question_tool: "ask_user", ..CLAUDE };

/// The agents that have a to-do list, so that the guard has something to go by.
const WITH_LIST: [&Words; 4] = [&CLAUDE, &CODEX, &GEMINI, &QWEN];
const ALL: [&Words; 6] = [&CLAUDE, &CODEX, &GEMINI, &QWEN, &CURSOR, &COPILOT];

/// An agent's session, told by its hooks.
pub struct Agent<'a> {
    root: &'a TestRoot,
    words: &'static Words,
    id: &'static str,
    turn: Cell<u32>,
    options: Vec<&'static str>,
}

/// What a hook call was answered, which was nothing or one object, with exit status 0.
pub struct Heard(Outcome);

impl Heard {
    /// What the agent is told to go on with; empty: it may stop.
    #[track_caller]
    pub fn told(&self) -> String {
        let Some(object) = self.object() else { return String::new() };
        if !["block", "deny"].iter().any(|word| object["decision"] == *word) {
            assert!(object.get("followup_message").is_none(), "{}", self.0);
            return String::new();
        }
        let reason = object["reason"].as_str().unwrap_or_default();
        assert!(!reason.is_empty(), "{}", self.0);
        reason.to_owned()
    }

    #[track_caller]
    pub fn goes_on(&self) -> bool {
        !self.told().is_empty()
    }

    /// The one object, read strictly.
    #[track_caller]
    pub fn object(&self) -> Option<Value> {
        let text = &self.0.stdout;
        let object: Option<Map<String, Value>> = (!text.is_empty())
            .then(|| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {}", self.0)));
        object.map(Value::Object)
    }

    /// The agent may stop, and people are told why in one line, and perhaps what to do in another.
    #[track_caller]
    pub fn is_unusable(&self) {
        assert!(!self.goes_on(), "{}", self.0);
        let mut lines = self.0.stderr.lines();
        let why = lines.next().and_then(|line| line.strip_prefix("lychgate hook: ")).unwrap_or_default();
        assert!(!why.is_empty() && !why.starts_with("lychgate"), "{}", self.0);
        assert!(lines.all(|line| line.starts_with("hint: ")), "{}", self.0);
    }
}

impl<'a> Agent<'a> {
    fn new(root: &'a TestRoot, words: &'static Words, id: &'static str) -> Self {
        Self { root, words, id, turn: Cell::new(0), options: vec!["--guard"] }
    }

    pub fn claude(root: &'a TestRoot, id: &'static str) -> Self {
        Self::new(root, &CLAUDE, id)
    }

    /// A person's prompt runs, and the agent's list has something unfinished.
    pub fn at_work(root: &'a TestRoot, id: &'static str) -> Self {
        let agent = Self::claude(root, id);
        agent.work();
        agent
    }

    pub fn work(&self) {
        self.prompt("build it");
        self.todo(&["in_progress", "pending"]);
    }

    /// An event of the turn, with these fields more.
    pub fn payload(&self, event: &str, more: &Value) -> Value {
        let mut fields = json!({
            self.words.session: self.id, "cwd": "/work/project", "transcript_path": "/work/t.jsonl",
            "hook_event_name": event,
        });
        if let Some(turn) = self.words.turn {
            fields[turn] = format!("turn-{}", self.turn.get()).into();
        }
        for (name, value) in more.as_object().unwrap() {
            fields[name] = value.clone();
        }
        fields
    }

    #[track_caller]
    pub fn event(&self, event: &str, more: &Value) -> Heard {
        self.bytes(self.payload(event, more).to_string().as_bytes())
    }

    /// A hook call as a command, with options of the test's.
    pub fn command(&self) -> std::process::Command {
        let mut command = self.root.command(&[&["hook", self.words.agent], &self.options[..]].concat());
        command.stdin(Stdio::piped());
        command
    }

    #[track_caller]
    pub fn bytes(&self, stdin: &[u8]) -> Heard {
        self.run(self.command(), stdin)
    }

    #[track_caller]
    pub fn run(&self, mut command: std::process::Command, stdin: &[u8]) -> Heard {
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin).expect("standard input is read to its end");
        let heard = Heard(self.root.finish(child));
        assert_eq!(heard.0.exit, 0, "{}", heard.0);
        drop(heard.object());
        heard
    }

    /// A person's prompt, in a turn of its own.
    #[track_caller]
    pub fn prompt(&self, text: &str) {
        self.turn.set(self.turn.get() + 1);
        self.prompt_again(text);
    }

    /// A prompt event in the turn there is.
    #[track_caller]
    pub fn prompt_again(&self, text: &str) {
        let heard = self.event(self.words.prompt, &json!({ "prompt": text }));
        assert!(!heard.goes_on(), "{}", heard.0);
    }

    /// The agent writes its list.
    #[track_caller]
    pub fn todo(&self, states: &[&str]) {
        let list = |content: &str| -> Value {
            let item = |(n, state): (usize, &&str)| json!({ content: format!("item {n}"), "status": state });
            states.iter().enumerate().map(item).collect()
        };
        let (tool, input, response) = match self.words.agent {
            "codex" => ("update_plan", json!({ "plan": list("step") }), json!("Plan updated")),
            "gemini" => {
                let todos = list("description");
                ("write_todos", json!({ "todos": todos }), json!({ "returnDisplay": { "todos": todos } }))
            }
            "qwen" => ("todo_write", json!({ "todos": list("content") }), json!({})),
            _ => ("TodoWrite", json!({ "todos": list("content") }), json!({ "newTodos": list("content") })),
        };
        let more = json!({ "tool_name": tool, "tool_input": input, "tool_response": response });
        let heard = self.event(self.words.after_tool, &more);
        assert!(!heard.goes_on(), "{}", heard.0);
    }

    /// The agent asks the person something, or has the answer.
    #[track_caller]
    pub fn question(&self, asked: bool) {
        let event = if asked { self.words.before_tool } else { self.words.after_tool };
        let more = json!({ "tool_name": self.words.question_tool, "tool_input": {}, "tool_use_id": "q1",
            "tool_response": if asked { Value::Null } else { json!({}) } });
        assert!(!self.event(event, &more).goes_on());
    }

    /// The model stops. Whether it is told to go on.
    #[track_caller]
    pub fn stop(&self) -> bool {
        self.stop_with(&json!({ "stop_hook_active": false })).goes_on()
    }

    #[track_caller]
    pub fn stop_with(&self, more: &Value) -> Heard {
        self.event(self.words.stop, more)
    }

    /// How often the model goes on in so many stops.
    #[track_caller]
    pub fn stops(&self, n: usize) -> usize {
        (0..n).filter(|_| self.stop()).count()
    }

    /// The session as the commands know it.
    pub fn books(&self) -> Session<'a> {
        Session { root: self.root, id: format!("{}:{}", self.words.agent, self.id).leak() }
    }

    /// What was charged.
    #[track_caller]
    pub fn attempts(&self) -> u64 {
        self.books().attempts()
    }
}
