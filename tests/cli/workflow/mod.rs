//! Workflow runs: the one place where a step gets a child, the ends of steps, and the Stop of a run.

mod choke;
mod damage;
mod ends;
mod overtaken;
mod paths;
mod shown;
mod stopped;
mod unrecorded;
mod waits;

use crate::common::{Outcome, TestRoot};

/// Asks for the child of a step of the run `run`.
pub(crate) fn ask(root: &TestRoot, step: &str, more: &[&str]) -> Outcome {
    let mut args = vec!["reserve", "--run", "run", "--step", step, "--input-hash", "h", "--parent", "ws"];
    args.extend(more);
    root.json(&args)
}

/// Records the end of a step of the run `run`.
pub(crate) fn end(root: &TestRoot, how: &str, step: &str, more: &[&str]) -> Outcome {
    let mut args = vec!["step", how, "--run", "run", "--step", step, "--input-hash", "h", "--parent", "ws"];
    args.extend(more);
    root.json(&args)
}

/// A child of a step, and what its calls need.
pub(crate) struct Child<'a> {
    pub root: &'a TestRoot,
    pub task: String,
    pub attempt: String,
    pub token: String,
}

/// A step's fresh child, owned by this test.
pub(crate) fn child<'a>(root: &'a TestRoot, step: &str) -> Child<'a> {
    child_of(root, step, &std::process::id().to_string())
}

/// A step's fresh child, owned by a process.
pub(crate) fn child_of<'a>(root: &'a TestRoot, step: &str, pid: &str) -> Child<'a> {
    let out = ask(root, step, &["--owner-pid", pid]).is(0, "reserved");
    Child { root, task: out.get("taskId"), attempt: out.get("attemptId"), token: out.get("token") }
}

impl Child<'_> {
    /// Launches it.
    pub fn launched(self) -> Self {
        let _ = self
            .root
            .json(&["rotate", &self.task, "--as", "launch", "--token", &self.token])
            .is(0, "launched");
        self
    }

    /// Admits a turn.
    pub fn turn(&self) -> String {
        let args = ["admit", &self.task, "--attempt", &self.attempt, "--start", "--token", &self.token];
        self.root.json(&args).is(0, "admitted").get("turnId")
    }

    /// Publishes a report.
    pub fn report(&self) -> Outcome {
        let args = ["report", &self.task, "--attempt", &self.attempt, "--token", &self.token];
        self.root.json_with_stdin(&args, b"done")
    }

    /// Ends a turn.
    pub fn settle(&self, turn: &str) -> Outcome {
        self.root.json(&["settle", &self.task, "--turn", turn, "--token", &self.token])
    }

    /// Works, is stopped in the middle of its turn, and ends it: proven over, without a report.
    pub fn stopped(self) -> Self {
        let this = self.launched();
        let turn = this.turn();
        let _ = this.root.json(&["stop", &this.task]).is(0, "stopping");
        let _ = this.settle(&turn).is(0, "turn-settled");
        this
    }
}

/// The numbered events of the run `run`: child, status before, status after.
pub(crate) fn events(root: &TestRoot) -> Vec<String> {
    root.step_events()
}

/// Changes the document of the run `run` and makes its checksum right again.
pub(crate) fn edit_run(root: &TestRoot, change: impl FnOnce(&mut serde_json::Value)) {
    use sha2::Digest as _;
    let path = root.path().join("sessions/ws/workflows/run/run.json");
    let mut file: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut file["document"]);
    let document = file["document"].to_string();
    let digest = sha2::Sha256::digest(document.as_bytes());
    let digest = digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    std::fs::write(&path, format!("{{\"sha256\":\"{digest}\",\"document\":{document}}}\n")).unwrap();
}
