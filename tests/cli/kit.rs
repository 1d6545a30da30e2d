//! What several files need beside the harness: processes that live and die, evidence on disk, and roots pinned
//! to the byte.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{Outcome, Task, TestRoot, without_tokens};

/// A process that can own something, and die.
pub struct Process(Child);

impl Process {
    pub fn alive() -> Self {
        Self(Command::new("sleep").arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Kills it and takes it away, so that no zombie answers to its id.
    pub fn die(&mut self) {
        let _gone = self.0.kill();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.die();
    }
}

/// A task whose owner's process can be killed.
pub fn owned_by<'a>(root: &'a TestRoot, process: &Process, id: &str) -> Task<'a> {
    root.reserve_with(id, &["--owner", "bob", "--owner-pid", &process.pid()])
}

/// What a call did, with nothing in it that differs from run to run.
pub fn pinned(outcome: &Outcome) -> String {
    without_tokens(&outcome.to_string())
}

/// Every receipt below the root: where it lies, and its whole text.
pub fn receipts(root: &TestRoot) -> String {
    let lies = |name: &&str| name.contains("/subagent-attempt-settlements/") && !name.ends_with('/');
    let tree = root.tree();
    let told = tree.lines().filter(lies).map(|name| {
        format!("{name}\n  {}\n", std::fs::read_to_string(root.path().join(name)).unwrap().trim_end())
    });
    told.collect()
}

/// A row without the parts that name processes or calls.
pub fn row(root: &TestRoot, task: &str) -> String {
    let mut row = root.row(task);
    let object = row.as_object_mut().unwrap();
    for noise in ["requests", "history"] {
        object.remove(noise);
    }
    if let Some(process) = row.pointer_mut("/attempt/owner/process") {
        *process = Value::from("[PROCESS]");
    }
    serde_json::to_string_pretty(&row).unwrap()
}

/// What happened to a task, one line an event.
pub fn history(root: &TestRoot, task: &str) -> String {
    let row = root.row(task);
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or("-").to_owned();
    let lines = row["history"]["events"].as_array().unwrap().iter().map(|event| {
        let words = ["command", "what", "from", "to", "note"].map(|key| text(event, key));
        format!("{}\n", words.join(" | "))
    });
    lines.collect()
}

/// Every file and folder with its bytes and its time of change: what a call must leave as it is.
pub fn untouched(root: &TestRoot) -> BTreeMap<String, (Vec<u8>, i64, i64)> {
    let times = |name: &str| {
        let meta = std::fs::symlink_metadata(root.path().join(name)).unwrap();
        (meta.ctime(), meta.ctime_nsec())
    };
    let files = root.bytes().into_iter().map(|(name, bytes)| {
        let (seconds, nanos) = times(&name);
        (name, (bytes, seconds, nanos))
    });
    files.collect()
}

/// Asserts that a call is refused so, and changes nothing at all.
#[track_caller]
pub fn refused(root: &TestRoot, args: &[&str], exit: i32, code: &str) -> Outcome {
    let before = untouched(root);
    let out = root.json(args).is(exit, code);
    assert_eq!(before, untouched(root), "a refusal changes nothing: {out}");
    out
}

/// Where a row lies.
pub fn row_path(root: &TestRoot, task: &str) -> std::path::PathBuf {
    root.path().join("tasks").join(task).join("row.json")
}

/// Rewrites a row by hand, as a restored backup or another program would, with its checksum right.
pub fn rewrite_row(root: &TestRoot, task: &str, change: impl FnOnce(&mut Value)) {
    rewrite_document(root, task, |document| change(&mut document["body"]));
}

/// Rewrites a row's whole document, with its checksum right.
pub fn rewrite_document(root: &TestRoot, task: &str, change: impl FnOnce(&mut Value)) {
    use sha2::Digest as _;
    let path = row_path(root, task);
    let mut file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut file["document"]);
    let document = file["document"].to_string();
    let digest: Vec<String> =
        sha2::Sha256::digest(document.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let digest = digest.concat();
    std::fs::write(&path, format!("{{\"sha256\":\"{digest}\",\"document\":{document}}}\n")).unwrap();
}

/// The parent's copy of the receipt of a task's current attempt.
pub fn receipt_file(task: &Task<'_>) -> std::path::PathBuf {
    let folder = task.root.path().join("sessions/ws/subagent-attempt-settlements").join(&task.id);
    folder.join(format!("{}.json", task.attempt))
}
