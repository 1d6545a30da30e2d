//! The continuation guard with real agents: its hooks are installed by `hook install`, everything else is theirs.

mod robust;
mod twice;
mod yields;

use std::cell::RefCell;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::agents::Agent;
use crate::model::Turn;
use crate::settings::Conversation;
use crate::stage::{Ended, Running, Stage};

const PROGRAM: &str = env!("CARGO_BIN_EXE_lychgate");

/// The agents whose to-dos reach a hook.
const WITH_TO_DOS: [Agent; 4] = [Agent::Claude, Agent::Codex, Agent::Gemini, Agent::Qwen];

/// An agent on its stage, with a root.
struct Guarded {
    stage: Stage,
    root: PathBuf,
    /// The program that the hooks call.
    program: PathBuf,
    /// Where `hook install` writes.
    scopes: RefCell<Vec<&'static str>>,
}

impl Guarded {
    /// An agent with our hooks, and a root of its own.
    fn of(agent: Agent, script: Vec<Turn>) -> Option<Self> {
        let stage = Stage::of(agent, script)?;
        let root = stage.path("root");
        Some(Self::on(stage, root))
    }

    /// An agent with our hooks, and this root.
    fn on(stage: Stage, root: PathBuf) -> Self {
        // Whose calls tell the session's id.
        stage.watch(stage.agent.prompt_event());
        stage.watch(stage.agent.stop_event());
        Self { stage, root, program: PROGRAM.into(), scopes: RefCell::new(vec!["--user"]) }
    }

    /// The session's name in the root.
    fn session(&self) -> String {
        format!("{}:{}", self.stage.agent.name(), self.stage.session())
    }

    /// Calls the program as a script would, beside the agent.
    #[track_caller]
    fn call(&self, args: &[&str], stdin: &str) -> Value {
        call(&self.root, args, stdin)
    }

    fn start(&self, conversation: Conversation<'_>, prompt: &str) -> Running<'_> {
        self.stage.prepare();
        for scope in self.scopes.borrow().iter() {
            let output = Command::new(&self.program)
                .args(["--root", self.root.to_str().unwrap(), "hook", "install", self.stage.agent.name()])
                .args([scope, "--guard"])
                .env_clear()
                .env("HOME", self.stage.home())
                .current_dir(self.stage.project())
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        self.stage.start_prepared(conversation, prompt, |_| {})
    }

    fn say(&self, prompt: &str) -> Ended {
        self.start(Conversation::New, prompt).end()
    }

    fn say_more(&self, prompt: &str) -> Ended {
        let session = self.stage.session();
        self.start(Conversation::Resumed(&session), prompt).end()
    }

    /// The texts that the agent came back with after the model's turn `n`, counted from one; each by a ticket of its
    /// own.
    #[track_caller]
    fn continuations_since(&self, n: usize) -> Vec<String> {
        let texts: Vec<String> =
            self.stage.model.turns().into_iter().skip(n).map(|asked| asked.newest).collect();
        let mut tickets: Vec<&str> = texts
            .iter()
            .map(|text| lychgate::dialect::ticket_in(text).unwrap_or_else(|| panic!("{text}")))
            .collect();
        tickets.sort_unstable();
        tickets.dedup();
        assert_eq!(tickets.len(), texts.len(), "{texts:?}");
        texts
    }
}

#[track_caller]
fn call(root: &Path, args: &[&str], stdin: &str) -> Value {
    let mut child = Command::new(PROGRAM)
        .args(["--root", root.to_str().unwrap(), "--json"])
        .args(args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["ok"], true, "{args:?}: {answer}");
    answer
}

/// Two to-dos that stay open, and a stop.
fn leaves_to_dos_open(agent: Agent) -> Vec<Turn> {
    vec![agent.makes_two_to_dos(), Turn::says("I stop.")]
}

/// Tests of one story, a test an agent.
macro_rules! with {
    ($($agent:ident: $name:ident),* => $story:path) => {
        $(
            #[test]
            fn $name() {
                $story(crate::agents::Agent::$agent);
            }
        )*
    };
}
pub(crate) use with;
