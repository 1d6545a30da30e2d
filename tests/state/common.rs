//! A root of its own for each test, and short ways to make rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lychgate::protocol::guard::session::Session;
use lychgate::protocol::history::Event;
use lychgate::protocol::ids::{AttemptId, Name};
use lychgate::protocol::receipt::Receipt;
use lychgate::protocol::row::Row;
use lychgate::protocol::run::Run;
use lychgate::state::{
    Access, Committed, LockPlan, LockWait, ReceiptWrite, RunKey, StateError, Store, Transaction, Writes,
};
use serde_json::json;
use sha2::{Digest, Sha256};

pub(crate) const ATTEMPT: &str = "att_0123456789abcdef";

pub(crate) struct TestRoot {
    dir: tempfile::TempDir,
}

impl TestRoot {
    pub(crate) fn new() -> Self {
        let root = Self { dir: tempfile::tempdir().unwrap() };
        root.store();
        root
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.path(), Access::Write).unwrap()
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub(crate) fn row_file(&self, task: &str) -> PathBuf {
        self.at(&format!("tasks/{task}/row.json"))
    }

    /// Commits these rows as they are.
    pub(crate) fn put(&self, tasks: &[&str]) -> Committed {
        let store = self.store();
        let rows = tasks.iter().map(|task| row(task, "ws")).collect();
        begin(&store, tasks).unwrap().commit(Writes { rows, ..Writes::default() }).unwrap()
    }

    pub(crate) fn receipt_file(&self, workspace: &str, task: &str) -> PathBuf {
        self.at(&format!("sessions/{workspace}/subagent-attempt-settlements/{task}/{ATTEMPT}.json"))
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

pub(crate) fn attempt() -> AttemptId {
    AttemptId::parse(ATTEMPT).unwrap()
}

pub(crate) fn plan(exclusive: &[&str]) -> LockPlan {
    LockPlan { exclusive: exclusive.iter().map(|task| name(task)).collect(), ..LockPlan::default() }
}

pub(crate) const PATIENT: LockWait = LockWait(Duration::from_secs(20));
pub(crate) const AT_ONCE: LockWait = LockWait(Duration::ZERO);

pub(crate) fn begin<'a>(store: &'a Store, exclusive: &[&str]) -> Result<Transaction<'a>, StateError> {
    store.begin(&plan(exclusive), PATIENT)
}

pub(crate) fn row(task: &str, parent: &str) -> Row {
    serde_json::from_value(json!({
        "taskId": task,
        "parentWorkspaceId": parent,
        "taskStatus": "queued",
        "taskAttemptId": ATTEMPT,
        "attempt": {
            "origin": "reserve", "owned": true, "receiptEligible": true, "reason": "fresh",
            "since": "2026-01-01T00:00:00Z"
        },
        "createdAt": "2026-01-01T00:00:00Z",
        "updatedAt": "2026-01-01T00:00:00Z"
    }))
    .unwrap()
}

/// A row that can be told apart.
pub(crate) fn marked(task: &str, stop_epoch: u64) -> Row {
    let mut row = row(task, "ws");
    row.stop_epoch = stop_epoch;
    row
}

pub(crate) fn run_key(parent: &str, run: &str) -> RunKey {
    RunKey { parent: name(parent), run: name(run) }
}

/// A run that can be told apart.
pub(crate) fn run(parent: &str, run: &str, stop_epoch: u64) -> Run {
    serde_json::from_value(json!({
        "runId": run, "parentWorkspaceId": parent, "stopEpoch": stop_epoch,
        "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"
    }))
    .unwrap()
}

pub(crate) fn run_plan(key: RunKey, exclusive: &[&str]) -> LockPlan {
    LockPlan { run: Some(key), ..plan(exclusive) }
}

/// A session that can be told apart.
pub(crate) fn session(session: &str, seq: u64) -> Session {
    serde_json::from_value(json!({
        "sessionId": session, "generation": 1, "state": "open", "guard": true, "seq": seq, "chain": { "id": 0 },
        "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"
    }))
    .unwrap()
}

pub(crate) fn session_plan(session: &str, exclusive: &[&str]) -> LockPlan {
    LockPlan { session: Some(name(session)), ..plan(exclusive) }
}

/// The bytes of a document file.
pub(crate) fn envelope(document: &str) -> String {
    use std::fmt::Write as _;
    let mut digest = String::new();
    for byte in Sha256::digest(document) {
        write!(digest, "{byte:02x}").unwrap();
    }
    format!("{{\"sha256\":\"{digest}\",\"document\":{document}}}\n")
}

pub(crate) fn receipt(task: &str) -> ReceiptWrite {
    let receipt: Receipt = serde_json::from_value(json!({
        "version": 1, "taskId": task, "attemptId": ATTEMPT, "parentWorkspaceId": "ws",
        "source": "idle-settled", "settledAt": "2026-01-01T00:00:00Z"
    }))
    .unwrap();
    ReceiptWrite { receipt, workspaces: vec![name("ws"), name("above")] }
}

pub(crate) fn event(what: &str) -> Event {
    serde_json::from_value(json!({
        "n": 0, "at": "2026-01-01T00:00:00Z", "command": "stop", "requestId": "r", "what": what, "to": "queued"
    }))
    .unwrap()
}

/// Every file below a folder, sorted, without its content.
pub(crate) fn tree(path: &Path) -> Vec<String> {
    fn walk(root: &Path, dir: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                walk(root, &path, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    let mut found = vec![];
    walk(path, path, &mut found);
    found.sort();
    found
}
