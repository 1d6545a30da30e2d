//! The people of the stories: owners that really live and really die, calls that are parked halfway and go on
//! or are killed there, and the words of a task that the stories use most.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::common::{Outcome, Task, TestRoot};

/// A process that owns attempts. It does nothing: what counts is that it lives, and when it dies.
pub struct Owner {
    child: Child,
}

impl Owner {
    /// Starts one.
    pub fn start() -> Self {
        Self::of(Command::new("sleep").arg("600"))
    }

    /// Starts one that is another user's.
    pub fn of_another_user() -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sleep", "600"]);
        Self::of(&mut command)
    }

    fn of(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self { child: child.unwrap() }
    }

    /// Its process id, as `--owner-pid` takes it.
    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Stops it, as a machine that sleeps does.
    pub fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills it with SIGKILL, and reaps it: then it is gone for good.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // It may be dead already, as the story wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A call that is parked at a seam, with all the locks it holds there.
pub struct Parked<'a> {
    root: &'a TestRoot,
    child: Option<Child>,
    folder: PathBuf,
    point: String,
}

impl Parked<'_> {
    /// Lets it go on, and gives what it did.
    pub fn go(mut self) -> Outcome {
        std::fs::write(self.folder.join(format!("{}.go", self.point)), b"").unwrap();
        self.root.finish(self.child.take().unwrap())
    }

    /// Kills it with SIGKILL right there.
    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// A long wait for a lock: the story decides when it is free, and no test waits for its end.
pub const PATIENT: [&str; 2] = ["--lock-wait", "60s"];
/// No wait for a lock at all.
pub const AT_ONCE: [&str; 2] = ["--lock-wait", "0"];

impl TestRoot {
    /// Starts a call and waits until it is parked at a seam.
    #[track_caller]
    pub fn park(&self, args: &[&str], point: &str) -> Parked<'_> {
        let folder = tempfile::Builder::new().prefix("seam").tempdir_in(self.scratch()).unwrap().keep();
        let mut command = self.command(args);
        command.arg("--json").env("LYCHGATE_TEST_PAUSE", point).env("LYCHGATE_TEST_PAUSE_DIR", &folder);
        let child = command.spawn().unwrap();
        let mut parked = Parked { root: self, child: Some(child), folder, point: point.to_owned() };
        let reached = parked.folder.join(format!("{point}.reached"));
        while !reached.exists() {
            if parked.child.as_mut().unwrap().try_wait().unwrap().is_some() {
                let outcome = self.finish(parked.child.take().unwrap());
                panic!("it ended before it reached `{point}`: {outcome}");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        parked
    }

    /// Starts a call that answers in JSON, without waiting for its end.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.arg("--json");
        command.spawn().unwrap()
    }

    /// Starts several calls at once and gives what they did, in their order.
    pub fn at_once(&self, calls: &[Vec<&str>]) -> Vec<Outcome> {
        let children: Vec<Child> = calls.iter().map(|args| self.start(args)).collect();
        children.into_iter().map(|child| self.finish(child)).collect()
    }

    /// Asserts that a call is refused with this code and changes not one byte below the root.
    #[track_caller]
    pub fn refuses(&self, exit: i32, code: &str, args: &[&str]) -> Outcome {
        let before = self.bytes();
        let outcome = self.json(args).is(exit, code);
        assert!(before == self.bytes(), "a refusal changed the root: {outcome}");
        outcome
    }

    /// Reserves a task whose owner is this process.
    pub fn reserve_for(&self, id: &str, owner: &Owner) -> Task<'_> {
        self.reserve_with(id, &["--owner-pid", &owner.pid()])
    }

    /// Reserves a task for the step `run`/`step`/`hash`, owned by this process.
    pub fn reserve_step_for(&self, id: &str, owner: &Owner) -> Task<'_> {
        let hash = self.free_input(id);
        let step = ["--run", "run", "--step", "step", "--input-hash", &hash];
        self.reserve_with(id, &[&step[..], &["--owner-pid", &owner.pid()]].concat())
    }

    /// Rewrites a row behind everybody's back, as a program of another version or a restore would.
    pub fn forge(&self, task: &str, change: impl FnOnce(&mut Value)) {
        let path = self.path().join("tasks").join(task).join("row.json");
        let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let mut document = file["document"].clone();
        change(&mut document["body"]);
        let text = document.to_string();
        let digest: Vec<String> = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = digest.concat();
        std::fs::write(&path, format!("{{\"sha256\":\"{digest}\",\"document\":{text}}}\n")).unwrap();
    }

    /// The numbered events of the run `run`: child, status before, status after.
    pub fn step_events(&self) -> Vec<String> {
        let out = self.json(&["inspect", "--run", "run", "--history"]).is(0, "ok").json();
        let word = |event: &Value, key: &str| event[key].as_str().unwrap_or("none").to_owned();
        let told =
            |event| format!("{} {} -> {}", word(event, "subject"), word(event, "from"), word(event, "to"));
        out["history"].as_array().unwrap().iter().map(told).collect()
    }

    /// The attempts of a task that have a receipt in a workspace's folder, sorted.
    pub fn receipts(&self, workspace: &str, task: &str) -> Vec<String> {
        let folder = ["sessions", workspace, "subagent-attempt-settlements", task];
        let Ok(entries) = std::fs::read_dir(self.path().join(folder.join("/"))) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect();
        names.sort();
        names
    }

    /// Takes a receipt away for good. The commit that wrote it can put it back until the row's next commit.
    pub fn lose_receipt(&self, workspace: &str, task: &str, attempt: &str) {
        let _ = self.json(&["stop", task]).is(0, "already-stopped");
        std::fs::remove_file(self.receipt_file(workspace, task, attempt)).unwrap();
    }

    /// Where the receipt of an attempt lies.
    pub fn receipt_file(&self, workspace: &str, task: &str, attempt: &str) -> PathBuf {
        let folder = self.path().join("sessions").join(workspace).join("subagent-attempt-settlements");
        folder.join(task).join(format!("{attempt}.json"))
    }
}

impl Task<'_> {
    /// The arguments that show the owner's token, after those given.
    fn call(&self, args: &[&str]) -> Outcome {
        self.root.json(&[args, &["--token", &self.token]].concat())
    }

    /// Launches it with the token.
    pub fn launch(&self) -> Outcome {
        self.call(&["rotate", &self.id, "--as", "launch"])
    }

    /// Registers a send, and gives its id.
    #[track_caller]
    pub fn send(&self) -> String {
        self.call(&["admit", &self.id, "--attempt", &self.attempt]).is(0, "registered").get("sendId")
    }

    /// Registers a send in the agent's own queue, and gives its id.
    #[track_caller]
    pub fn queued_send(&self) -> String {
        self.call(&["admit", &self.id, "--attempt", &self.attempt, "--queued"])
            .is(0, "enqueued")
            .get("sendId")
    }

    /// Asks the gate for a registered send.
    pub fn gate(&self, send: &str) -> Outcome {
        self.call(&["admit", &self.id, "--send", send, "--start"])
    }

    /// Registers a send and asks the gate, in one step.
    pub fn begin(&self) -> Outcome {
        self.call(&["admit", &self.id, "--attempt", &self.attempt, "--start"])
    }

    /// The owner says that the attempt is over.
    pub fn close(&self) -> Outcome {
        self.call(&["settle", &self.id])
    }

    /// Stops it, as anyone may.
    pub fn stop(&self) -> Outcome {
        self.root.json(&["stop", &self.id])
    }

    /// Claims it with the owner's token.
    pub fn claim_as_owner(&self, more: &[&str]) -> Outcome {
        self.claim(&[more, &["--token", &self.token]].concat())
    }

    /// Publishes a fresh attempt over it, showing the token, and speaks for that one from now on.
    #[track_caller]
    pub fn rotated_as_owner(&mut self, kind: &str, more: &[&str]) -> Outcome {
        let args = [&["rotate", &self.id, "--as", kind][..], more].concat();
        let out = self.call(&args).is(0, "rotated");
        self.speak_for(&out);
        out
    }

    /// Publishes a fresh attempt over it as a stranger, and speaks for that one from now on.
    #[track_caller]
    pub fn rotated_with(&mut self, kind: &str, more: &[&str]) -> Outcome {
        let out = self.root.json(&[&["rotate", &self.id, "--as", kind][..], more].concat()).is(0, "rotated");
        self.speak_for(&out);
        out
    }

    fn speak_for(&mut self, out: &Outcome) {
        self.attempt = out.get("attemptId");
        self.token = out.get("token");
        self.worker = out.get("workerToken");
    }

    /// The same task, seen with another attempt and its token.
    pub fn again(&self) -> Self {
        Self {
            root: self.root,
            id: self.id.clone(),
            attempt: self.attempt.clone(),
            token: self.token.clone(),
            worker: self.worker.clone(),
        }
    }

    /// A field of what `inspect` answers to a stranger.
    pub fn seen(&self, field: &str) -> String {
        self.root.json(&["inspect", &self.id]).get(field)
    }

    /// Outcome and reason, as `inspect` answers to a stranger: `outcome`, or `outcome/reason`.
    pub fn stands(&self) -> String {
        let seen = self.root.json(&["inspect", &self.id]);
        match seen.get("reasonCode").as_str() {
            "null" => seen.get("outcome"),
            reason => format!("{}/{reason}", seen.get("outcome")),
        }
    }

    /// Outcome and reason, as `inspect` answers to the owner.
    pub fn stands_for_owner(&self) -> String {
        let seen = self.call(&["inspect", &self.id]);
        match seen.get("reasonCode").as_str() {
            "null" => seen.get("outcome"),
            reason => format!("{}/{reason}", seen.get("outcome")),
        }
    }

    /// The attempts with a receipt in the parent's folder.
    pub fn receipts(&self) -> Vec<String> {
        self.root.receipts("ws", &self.id)
    }
}
