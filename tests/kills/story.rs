//! A root, the shells that resume its runs, their agents, and the log in which all of them tell what they do.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

use crate::common::{BIN, TestRoot};

/// A fact that does not come in this time never does.
const DEADLINE: Duration = Duration::from_mins(2);
/// How long two looks are apart.
const POLL: Duration = Duration::from_millis(1);

/// The steps of a run. The first letter says how the first child ends, see `agent.sh`.
pub const STEPS: [&str; 6] = ["a-plain", "s-stopped", "d-dies", "i-idle", "o-open", "z-plain"];

/// One line of the log: what, and about whom.
pub type Line = Vec<String>;

pub struct Story {
    pub root: TestRoot,
    log: PathBuf,
    /// The agents that are gone for good: reaped, so that their death can be proven.
    reaped: BTreeSet<i32>,
}

/// A shell in a process group of its own, which its agents leave.
pub struct Shell {
    child: Child,
}

impl Story {
    pub fn new() -> Self {
        // Agents come to this process when their shell has died, and are reaped here, whatever process 1 does.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        let root = TestRoot::new();
        let log = root.scratch().join("log");
        std::fs::write(&log, "").unwrap();
        Self { root, log, reaped: BTreeSet::new() }
    }

    /// Starts a shell that resumes a run.
    pub fn resume(&self, run: &str, steps: &[&str], work_time: Duration) -> Shell {
        let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kills");
        let errors =
            std::fs::File::options().append(true).create(true).open(self.root.file("errors")).unwrap();
        let mut shell = Command::new("bash");
        shell.arg(format!("{scripts}/resume.sh")).arg(run).args(steps).env_clear();
        shell.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LYCHGATE", BIN);
        shell.env("LYCHGATE_ROOT", self.root.path()).env("HOME", self.root.scratch()).env("LOG", &self.log);
        shell.env("AGENT", format!("{scripts}/agent.sh")).env("WORK", self.root.scratch());
        shell.env("WORK_TIME", format!("{:.3}", work_time.as_secs_f64()));
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).process_group(0);
        Shell { child: shell.spawn().unwrap() }
    }

    /// Everything that was told so far, whole lines.
    pub fn log(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }

    /// The lines that begin with these words.
    pub fn told(&self, words: &[&str]) -> Vec<Line> {
        let begins = |line: &Line| line.len() >= words.len() && line.iter().zip(words).all(|(a, b)| a == b);
        self.log().into_iter().filter(begins).collect()
    }

    /// Looks at the facts until they give something, and reaps meanwhile who has ended.
    pub fn until<T>(&mut self, what: &str, mut fact: impl FnMut(&mut Self) -> Option<T>) -> T {
        let deadline = Instant::now() + DEADLINE;
        loop {
            self.reap();
            if let Some(found) = fact(self) {
                return found;
            }
            assert!(Instant::now() < deadline, "{what} never came\n{}", self.everything());
            std::thread::sleep(POLL);
        }
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        let folders = std::fs::read_dir(self.root.path().join("tasks")).into_iter().flatten();
        folders.filter(|folder| folder.as_ref().unwrap().path().join("row.json").exists()).count()
    }

    fn agents(&self) -> impl Iterator<Item = i32> {
        let pids: Vec<i32> = self.told(&["agent"]).iter().map(|line| line[1].parse().unwrap()).collect();
        pids.into_iter()
    }

    fn reap(&mut self) {
        for agent in self.agents().filter(|agent| !self.reaped.contains(agent)).collect::<Vec<_>>() {
            // As long as its shell lives and has not lost it, it is nobody of ours.
            if let Ok(Some(_)) = waitpid(Pid::from_raw(agent), WaitOptions::NOHANG) {
                self.reaped.insert(agent);
            }
        }
    }

    /// Waits until no agent is at work any more.
    pub fn until_all_agents_are_gone(&mut self) {
        self.until("the end of all agents", |story| {
            story.agents().all(|agent| story.reaped.contains(&agent)).then_some(())
        });
    }

    /// Kills an agent with SIGKILL, and reaps it.
    pub fn kill_agent(&mut self, agent: i32) {
        kill_process(Pid::from_raw(agent).unwrap(), Signal::KILL).unwrap();
        self.until("the death of the agent", |story| story.reaped.contains(&agent).then_some(()));
    }

    /// What a failure is looked at with.
    pub fn everything(&self) -> String {
        let log: Vec<String> = self.log().iter().map(|line| line.join(" ")).collect();
        let errors = std::fs::read_to_string(self.root.file("errors")).unwrap_or_default();
        format!(
            "--- log\n{}\n--- errors\n{errors}\n--- inspect\n{}",
            log.join("\n"),
            self.root.run(&["inspect"])
        )
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        // Whatever failed, nobody is left working on a root that goes away.
        for agent in self.agents().filter(|agent| !self.reaped.contains(agent)).filter_map(Pid::from_raw) {
            let _ = kill_process(agent, Signal::KILL);
            let _ = waitpid(Some(agent), WaitOptions::empty());
        }
    }
}

impl Shell {
    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Kills it with SIGKILL, with the call it is just making, and reaps it.
    pub fn kill(mut self) {
        self.kill_group();
    }

    fn kill_group(&mut self) {
        if self.ended().is_none() {
            kill_process_group(Pid::from_child(&self.child), Signal::KILL).unwrap();
            self.child.wait().unwrap();
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.kill_group();
    }
}
