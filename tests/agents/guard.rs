//! The continuation guard with real agents: its hooks are installed by `hook install`, everything else is theirs.

mod robust;
mod twice;
mod yields;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use lychgate::dialect::ticket_in;
use serde_json::Value;

use crate::agents::Agent;
use crate::call::{PROGRAM, call};
use crate::model::Turn;
use crate::settings::Conversation;
use crate::stage::{Ended, Running, Stage};

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

    /// The continuations of ours that the model was asked for after its turn `n`, counted from one: each by a ticket of
    /// its own.
    #[track_caller]
    fn continuations_since(&self, n: usize) -> Vec<String> {
        let asked: Vec<String> =
            self.stage.model.turns().into_iter().skip(n).map(|asked| asked.newest).collect();
        let tickets: Vec<String> =
            asked.iter().filter_map(|text| ticket_in(text)).map(str::to_owned).collect();
        let different: BTreeSet<&String> = tickets.iter().collect();
        assert_eq!(different.len(), tickets.len(), "{asked:?}");
        tickets
    }
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
