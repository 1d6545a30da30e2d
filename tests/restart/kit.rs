//! The words of these stories: the child of a step, its end, its resume, and a call that is killed at one of its
//! pauses.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use crate::actors::Owner;
use crate::common::{Outcome, Task, TestRoot};

/// The checkpoint of most stories.
pub const STEP: [&str; 8] = ["--run", "run", "--step", "step", "--input-hash", "hash", "--parent", "ws"];

/// Every pause point of a call that changes something.
const POINTS: &str = "looked,locked,locked-step,locked-task,before-part,before-rename,after-rename,\
                      after-commit-point,claimed";

/// The arguments that resume the step: whoever asks gets a child, or is told why not.
pub fn asking<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["reserve"], &STEP[..], more].concat()
}

/// Resumes the step.
pub fn ask(root: &TestRoot, more: &[&str]) -> Outcome {
    root.json(&asking(more))
}

/// Resumes the step as a process of its own, which will own the child.
pub fn ask_as(root: &TestRoot, owner: &Owner) -> Outcome {
    ask(root, &["--owner-pid", &owner.pid()])
}

/// Records that the step failed.
#[track_caller]
pub fn fail(root: &TestRoot) {
    let _ = root.json(&[&["step", "fail"], &STEP[..]].concat()).is(0, "step-failed");
}

/// The task that a call was answered with, as its owner.
pub fn owned<'a>(root: &'a TestRoot, out: &Outcome) -> Task<'a> {
    let (attempt, token, worker) = (out.get("attemptId"), out.get("token"), out.get("workerToken"));
    Task { root, id: out.get("taskId"), attempt, token, worker }
}

/// The step's first child, launched. Its owner is this process, or nobody knows who.
pub fn child<'a>(root: &'a TestRoot, owner: Option<&Owner>) -> Task<'a> {
    let out = match owner {
        Some(owner) => ask_as(root, owner),
        None => ask(root, &[]),
    };
    owned(root, &out.is(0, "reserved")).launched()
}

/// Stops a launched child in the middle of its turn, and ends the turn: proven over, without a report.
pub fn cut_short(task: &Task<'_>) {
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    let _ = task.settle(&turn).is(0, "turn-settled");
}

/// The step's first child, stopped before its first turn and so proven over without a report; its owner was killed.
pub fn dead_child(root: &TestRoot) -> Task<'_> {
    let mut owner = Owner::start();
    let task = child(root, Some(&owner));
    let _ = task.stop().is(0, "stopped");
    owner.kill();
    task
}

/// What the run records of the step: its status and its child.
pub fn checkpoint(root: &TestRoot) -> (String, String) {
    let run = root.json(&["inspect", "--run", "run", "--parent", "ws"]).is(0, "ok");
    (run.get("steps.0.status"), run.get("steps.0.taskId"))
}

/// The rows of a root by their names, as they stand on disk.
pub fn rows(root: &TestRoot) -> BTreeMap<String, Value> {
    let folders = std::fs::read_dir(root.path().join("tasks")).unwrap();
    let names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let there = |name: &String| root.path().join("tasks").join(name).join("row.json").exists();
    names.filter(there).map(|name| (name.clone(), root.row(&name))).collect()
}

/// The tasks that say that they replace this one.
pub fn replacements(root: &TestRoot, old: &str) -> Vec<String> {
    let of_old = |row: &Value| row["replaces"]["taskId"] == old;
    rows(root).into_iter().filter(|(_, row)| of_old(row)).map(|(name, _)| name).collect()
}

/// Asserts that one task has taken the place of `old`, and that the claim, the checkpoint and the new row all tell
/// the same about it. Gives its name.
#[track_caller]
pub fn one_replacement(root: &TestRoot, old: &Task<'_>) -> String {
    let [new] = replacements(root, &old.id).try_into().unwrap_or_else(|all| panic!("{}: {all:?}", old.id));
    let (retired, row) = (root.row(&old.id), root.row(&new));
    let claim = &retired["taskAttemptRetiredBy"];
    for (field, value) in [
        ("runId", "run"),
        ("stepId", "step"),
        ("inputHash", "hash"),
        ("childTaskId", &old.id),
        ("attemptId", &old.attempt),
    ] {
        assert_eq!(claim[field], value, "{retired}");
    }
    assert_eq!(retired["retirement"]["replacementTaskId"], new);
    assert_eq!(retired["taskAttemptId"], old.attempt, "a retired attempt stays what it was");
    assert_eq!(row["replaces"]["attemptId"], old.attempt);
    assert_ne!(row["taskAttemptId"], old.attempt);
    new
}

/// Asserts that nothing was retired or replaced, and that the step still names this child as it did.
#[track_caller]
pub fn no_replacement(root: &TestRoot, old: &Task<'_>, status: &str) {
    assert_eq!(replacements(root, &old.id), Vec::<String>::new());
    assert_eq!(root.row(&old.id).get("taskAttemptRetiredBy"), None);
    assert_eq!(checkpoint(root), (status.to_owned(), old.id.clone()));
}

/// The bytes of every document and every evidence file, without what a killed call left beside them.
pub fn books(root: &TestRoot) -> BTreeMap<String, Vec<u8>> {
    root.bytes().into_iter().filter(|(name, _)| !name.contains("/.lych-")).collect()
}

/// Resumes the step twice, and asserts that neither call changes a byte: each answers the same. Gives the answer.
#[track_caller]
pub fn unresolved(root: &TestRoot, exit: i32, code: &str, reason: Option<&str>) -> Outcome {
    let before = books(root);
    let first = ask(root, &["--request-id", "again"]).is(exit, code);
    let second = ask(root, &["--request-id", "again"]);
    assert_eq!(first.stdout, second.stdout);
    if let Some(reason) = reason {
        assert_eq!(first.get("reasonCode"), reason, "{first}");
    }
    assert!(before == books(root), "a resume that is refused changes nothing: {first}");
    first
}

/// A call that pauses at every point. It is killed when this is dropped.
struct Led {
    child: Child,
    folder: PathBuf,
}

impl Led {
    fn start(root: &TestRoot, args: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("seam").tempdir_in(root.scratch()).unwrap().keep();
        let mut command = root.command(args);
        command.args(["--json"]).env("LYCHGATE_TEST_PAUSE", POINTS).env("LYCHGATE_TEST_PAUSE_EACH", "1");
        command.env("LYCHGATE_TEST_PAUSE_DIR", &folder);
        Self { child: command.spawn().unwrap(), folder }
    }

    /// Waits for the next pause. `None`: the call ended without one.
    fn pause(&mut self) -> Option<String> {
        loop {
            // Asked first: a call that has ended reaches nothing more.
            let ended = self.child.try_wait().unwrap().is_some();
            let names = std::fs::read_dir(&self.folder).unwrap();
            let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let point = names.find_map(|name| Some(name.strip_suffix(".reached")?.to_owned()));
            if ended || point.is_some() {
                return point;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn go(&self, point: &str) {
        std::fs::remove_file(self.folder.join(format!("{point}.reached"))).unwrap();
        std::fs::write(self.folder.join(format!("{point}.go")), b"").unwrap();
    }
}

impl Drop for Led {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Makes a call and kills it with SIGKILL at its pause number `n`, counted from 0. Gives the name of that pause, or
/// `None` if the call ended before it.
fn killed_at_pause(root: &TestRoot, args: &[&str], n: usize) -> Option<String> {
    let mut led = Led::start(root, args);
    for _ in 0..n {
        let point = led.pause()?;
        led.go(&point);
    }
    led.pause()
}

/// A prepared root: the task it is about, the runner, and the call of that runner that will be killed.
pub struct Scene<'a> {
    pub task: Task<'a>,
    pub runner: Owner,
    pub args: Vec<String>,
}

impl<'a> Scene<'a> {
    pub fn new(task: Task<'a>, runner: Owner, args: &[&str]) -> Self {
        Self { task, runner, args: args.iter().map(|&arg| arg.to_owned()).collect() }
    }

    /// Makes the call once more.
    pub fn repeat(&self) -> Outcome {
        self.task.root.json(&self.args.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// Plays a story once for every pause of a call: a root is prepared, the call is killed at that pause, and `after`
/// goes on. Gives the names of the pauses in their order.
pub fn at_every_pause(
    prepare: impl Fn(&TestRoot) -> Scene<'_>,
    after: impl Fn(Scene<'_>, &str),
) -> Vec<String> {
    let mut points = Vec::new();
    loop {
        let root = TestRoot::new();
        let scene = prepare(&root);
        let args: Vec<&str> = scene.args.iter().map(String::as_str).collect();
        let Some(point) = killed_at_pause(&root, &args, points.len()) else { return points };
        after(scene, &point);
        points.push(point);
    }
}
