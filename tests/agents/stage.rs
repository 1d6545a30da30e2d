//! A stage for one conversation: a fresh home, a project, hooks and a model; and everything an agent starts there is
//! dead when it ends.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use crate::agents::Agent;
use crate::model::{Model, PATIENCE, Turn};
use crate::packages;
use crate::settings::{Conversation, Hook};

/// The stage.
pub(crate) struct Stage {
    pub(crate) agent: Agent,
    pub(crate) model: Model,
    folder: tempfile::TempDir,
    hooks: RefCell<Vec<Hook>>,
}

/// What a hook was told.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The event it was registered for.
    pub(crate) event: String,
    /// What was on its standard input.
    pub(crate) payload: Value,
}

impl Seen {
    /// The call in a few words: the event, whether a sub-agent sent it, and what tells it from others of its kind.
    fn in_words(&self) -> String {
        let mut words = vec![self.event.clone()];
        if let Some(agent) = self.payload["agent_type"].as_str() {
            words.push(format!("({agent})"));
        }
        for field in
            ["source", "reason", "tool_name", "phase", "prompt", "submitted_prompt", "stop_hook_active"]
        {
            match &self.payload[field] {
                Value::Null => {}
                Value::String(text) => {
                    words.push(format!("{field}={:.60}", text.lines().next().unwrap_or(r#""""#)));
                }
                other => words.push(format!("{field}={other}")),
            }
        }
        words.join(" ")
    }
}

/// A run of an agent that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Its exit status; none: a signal ended it.
    pub(crate) exit: Option<i32>,
    /// Standard output and standard error, for the message of a failure.
    pub(crate) told: String,
}

/// A run of an agent that goes on.
pub(crate) struct Running<'a> {
    stage: &'a Stage,
    child: Child,
}

impl Stage {
    /// A stage for this agent, whose model plays these turns; nothing, where the agent is not to be driven.
    pub(crate) fn of(agent: Agent, script: Vec<Turn>) -> Option<Self> {
        packages::can_drive(agent).then(|| Self {
            agent,
            model: Model::plays(agent.main_tool(), script),
            folder: tempfile::Builder::new().prefix("agent").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            hooks: RefCell::default(),
        })
    }

    /// A path on the stage, outside of home and project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// The agent's working directory.
    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// The agent's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Registers a hook beside those there are.
    pub(crate) fn hook(&self, event: &'static str, command: String, seconds: u32) {
        self.hooks.borrow_mut().push(Hook { event, command, seconds });
    }

    /// Registers a hook for this event that only remembers what it is told, under this name.
    pub(crate) fn watch(&self, event: &'static str) {
        self.hook(event, probe(self.folder.path(), event, None), 30);
    }

    /// Registers a hook for the agent's stops that answers with these shell scripts, one a call.
    pub(crate) fn answer_stops(&self, scripts: &[String], seconds: u32) {
        let answers = self.path("answers");
        std::fs::create_dir_all(&answers).unwrap();
        for (n, script) in scripts.iter().enumerate() {
            std::fs::write(answers.join(format!("{n:02}")), script).unwrap();
        }
        let event = self.agent.stop_event();
        self.hook(event, probe(self.folder.path(), event, Some(&answers)), seconds);
    }

    /// What the hooks have been told so far, in the order of their beginnings.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let text = std::fs::read_to_string(self.folder.path().join("seen")).unwrap_or_default();
        let seen = text.lines().map(|line| {
            let (event, payload) = line.split_once('\t').unwrap_or_else(|| panic!("one line a call: {line}"));
            let payload = serde_json::from_str(payload).unwrap_or_else(|error| panic!("{error}: {line}"));
            Seen { event: event.to_owned(), payload }
        });
        seen.collect()
    }

    /// What the hooks have been told so far, a line a call; ids of conversations and turns are numbered in the order
    /// of their appearance.
    pub(crate) fn story(&self) -> String {
        let (mut sessions, mut turns) = (Vec::new(), Vec::new());
        let number = |ids: &mut Vec<String>, id: &str| {
            let known = ids.iter().position(|known| known == id);
            known.unwrap_or_else(|| {
                ids.push(id.to_owned());
                ids.len() - 1
            }) + 1
        };
        let lines = self.seen().into_iter().map(|seen| {
            let session = number(&mut sessions, seen.payload["session_id"].as_str().unwrap_or_default());
            let turn = ["prompt_id", "turn_id"].into_iter().find_map(|name| seen.payload[name].as_str());
            let turn = turn.map(|turn| format!(".{}", number(&mut turns, turn))).unwrap_or_default();
            format!("{session}{turn} {}\n", seen.in_words())
        });
        lines.collect()
    }

    /// The events that the hooks have been told so far.
    pub(crate) fn events(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.event).collect()
    }

    /// What the hooks have been told of this event.
    pub(crate) fn told_of(&self, event: &str) -> Vec<Value> {
        self.seen().into_iter().filter(|seen| seen.event == event).map(|seen| seen.payload).collect()
    }

    /// The agent's id of the conversation.
    pub(crate) fn session(&self) -> String {
        let seen = self.seen();
        let ids = seen.iter().rev().filter_map(|seen| seen.payload["session_id"].as_str());
        ids.map(str::to_owned).next().expect("because a hook was told")
    }

    /// Waits until the hooks have been told of this event `n` times.
    #[track_caller]
    pub(crate) fn wait_for(&self, event: &str, n: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.events().iter().filter(|told| *told == event).count() < n {
            assert!(Instant::now() < deadline, "no {n} times {event}: {:?}", self.events());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts the agent with a prompt.
    pub(crate) fn start(&self, conversation: Conversation<'_>, prompt: &str) -> Running<'_> {
        self.start_as(conversation, prompt, |_| {})
    }

    /// Starts the agent with a prompt, by a command line that is changed like this.
    pub(crate) fn start_as(
        &self,
        conversation: Conversation<'_>,
        prompt: &str,
        change: impl FnOnce(&mut Command),
    ) -> Running<'_> {
        self.prepare();
        self.start_prepared(conversation, prompt, change)
    }

    /// Writes the agent's settings.
    pub(crate) fn prepare(&self) {
        std::fs::create_dir_all(self.home()).unwrap();
        // A repository of its own: agents look for settings and instructions up to the top of one.
        let repository = self.project().join(".git");
        std::fs::create_dir_all(repository.join("objects")).unwrap();
        std::fs::create_dir_all(repository.join("refs")).unwrap();
        std::fs::write(repository.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        self.agent.configure(&self.home(), &self.project(), self.model.port(), &self.hooks.borrow());
    }

    /// Starts the agent with the settings there are.
    pub(crate) fn start_prepared(
        &self,
        conversation: Conversation<'_>,
        prompt: &str,
        change: impl FnOnce(&mut Command),
    ) -> Running<'_> {
        let mut command = self.agent.command(&self.home(), self.model.port(), conversation, prompt).unwrap();
        let output = File::options().create(true).append(true).open(self.path("told")).unwrap();
        command.current_dir(self.project()).stdin(Stdio::null()).process_group(0);
        command.stdout(output.try_clone().unwrap()).stderr(output);
        change(&mut command);
        Running { stage: self, child: command.spawn().unwrap() }
    }

    /// Runs the agent with a prompt, in a new conversation, until it ends.
    pub(crate) fn say(&self, prompt: &str) -> Ended {
        self.start(Conversation::New, prompt).end()
    }

    /// Runs the agent with a prompt more in the same conversation.
    pub(crate) fn say_more(&self, prompt: &str) -> Ended {
        self.start(Conversation::Resumed(&self.session()), prompt).end()
    }

    /// Kills every process that was started below this stage's home, by its environment.
    fn sweep(&self) {
        let home = format!("HOME={}\0", self.home().display());
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let ours = environment.windows(home.len()).any(|part| part == home.as_bytes());
            if let (Some(pid), true) = (pid, ours) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// The command of a hook that remembers in `folder` what it is told, and answers with the scripts in `answers`.
pub(crate) fn probe(folder: &Path, event: &str, answers: Option<&Path>) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/probe.sh");
    let answers = answers.map(|path| format!(" '{}'", path.display())).unwrap_or_default();
    format!("sh '{}' '{}' '{event}'{answers}", script.display(), folder.display())
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.sweep();
    }
}

impl Running<'_> {
    /// Sends a signal to the agent, and to nothing below it.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The agent's standard input, where the command line was changed to have one.
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Waits until the agent ends by itself.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let told = || std::fs::read_to_string(self.stage.path("told")).unwrap_or_default();
            match self.child.try_wait().unwrap() {
                Some(status) => return Ended { exit: status.code(), told: told() },
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                None => {
                    panic!("{:?} did not end; events {:?}\n{}", self.stage.agent, self.stage.events(), told())
                }
            }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = kill_process_group(self.pid(), Signal::KILL);
        drop(self.child.wait());
    }
}
