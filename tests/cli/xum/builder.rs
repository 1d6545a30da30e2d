//! Builds a root of that application, file by file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Outcome, TestRoot};

/// The attempt of a child that nobody said otherwise about.
pub const ATTEMPT: &str = "att_00000000000000c1";
/// The workspace of the person, in whose folder everything lies.
pub const MAIN: &str = "aaaaaaaaaa";
/// The run of the roots with one run.
pub const RUN: &str = "wfr_0011223344556677";
/// An instant long before the clock of the tests.
const THEN: &str = "2025-08-22T08:00:00.000Z";

/// A root of that application, beside a root of ours that does not exist yet.
pub struct Xum {
    pub root: TestRoot,
    pub dir: PathBuf,
    projects: Vec<(String, Vec<Value>)>,
    fences: bool,
}

impl Xum {
    /// A root with one project and one workspace in it.
    pub fn new() -> Self {
        let root = TestRoot::new();
        let dir = root.scratch().join("xum");
        std::fs::create_dir_all(dir.join("sessions")).unwrap();
        let main = json!({ "id": MAIN, "name": "main", "path": "/home/u/main", "createdAt": THEN });
        Self { root, dir, projects: vec![("/home/u/demo".to_owned(), vec![main])], fences: true }
    }

    /// As a version writes it that knows no attempts.
    pub fn older(mut self) -> Self {
        self.fences = false;
        self
    }

    /// Adds a row to the latest project.
    pub fn row(mut self, row: Value) -> Self {
        self.projects.last_mut().unwrap().1.push(row);
        self
    }

    /// Begins another project.
    pub fn project(mut self, path: &str) -> Self {
        self.projects.push((path.to_owned(), Vec::new()));
        self
    }

    /// Writes `config.json`, as that application does.
    pub fn write(self) -> Self {
        std::fs::write(self.dir.join("config.json"), self.config()).unwrap();
        self
    }

    /// The text of `config.json`.
    pub fn config(&self) -> String {
        let projects: Vec<Value> = self
            .projects
            .iter()
            .map(|(path, rows)| json!([path, { "trusted": true, "workspaces": rows }]))
            .collect();
        let mut config = json!({ "projects": projects, "taskSettings": { "maxParallelAgentTasks": 16 } });
        if self.fences {
            config["writeId"] = json!("6f1c2a0e-0000-4000-8000-000000000000");
        }
        serde_json::to_string_pretty(&config).unwrap()
    }

    /// Writes a file below the root.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Writes a report into the folder of a workspace, with the index beside it.
    pub fn report(self, holder: &str, task: &str, attempt: Option<&str>, text: &str) -> Self {
        let mut body = json!({
            "childTaskId": task, "parentWorkspaceId": holder, "createdAtMs": 1, "updatedAtMs": 2,
            "ancestorWorkspaceIds": [holder], "title": "Scan", "structuredOutput": { "n": 1 },
            "reportMarkdown": text,
        });
        if let Some(attempt) = attempt {
            body["attemptId"] = json!(attempt);
        }
        let index = json!({ "version": 1, "artifactsByChildTaskId": { task: { "childTaskId": task } } });
        self.file(&format!("sessions/{holder}/subagent-reports/{task}/report.json"), body.to_string())
            .file(&format!("sessions/{holder}/subagent-reports.json"), index.to_string())
    }

    /// Writes a receipt into the folder of a workspace.
    pub fn receipt(self, holder: &str, task: &str, attempt: &str) -> Self {
        let path = format!("sessions/{holder}/subagent-attempt-settlements/{task}/{attempt}.json");
        self.file(&path, receipt(task, attempt, MAIN).to_string())
    }

    /// Writes a run with its journals.
    pub fn run(self, status: &str, steps: &[Value], events: &[Value]) -> Self {
        let run = json!({
            "id": RUN, "workspaceId": MAIN, "workflow": { "name": "demo" }, "source": "…", "args": {},
            "status": "pending", "createdAt": THEN, "updatedAt": THEN, "events": [], "steps": [],
        });
        let status = json!({ "sequence": 1, "type": "status", "at": THEN, "status": status });
        let lines = |values: &[Value]| {
            values.iter().flat_map(|value| [value.to_string(), "\n".to_owned()]).collect::<String>()
        };
        let events = lines(&[events, &[status]].concat());
        self.in_run("run.json", run.to_string())
            .in_run("steps.jsonl", lines(steps))
            .in_run("events.jsonl", events)
    }

    /// Writes a file of the run.
    pub fn in_run(self, file: &str, content: impl AsRef<[u8]>) -> Self {
        self.file(&format!("sessions/{MAIN}/workflows/{RUN}/{file}"), content)
    }

    /// Writes the lease of the run, renewed so long before the first call.
    pub fn lease(self, seconds_ago: i64) -> Self {
        let at = 1_767_225_601_000_i64 - seconds_ago * 1000;
        self.in_run("lease.json", json!({ "ownerId": format!("b:{RUN}:00"), "acquiredAtMs": at }).to_string())
    }

    /// Looks at it.
    #[must_use]
    pub fn inspect(&self, more: &[&str]) -> Outcome {
        let dir = self.dir.display().to_string();
        self.root.json(&[&["inspect", "--xum", &dir], more].concat())
    }

    /// Takes it over.
    #[must_use]
    pub fn import(&self, more: &[&str]) -> Outcome {
        let dir = self.dir.display().to_string();
        self.root.json(&[&["import", "--xum", &dir], more].concat())
    }

    /// The outcome and the reason of a task.
    pub fn told(&self, task: &str) -> (String, String) {
        let out = self.inspect(&[task]);
        (out.get("outcome"), out.get("reasonCode"))
    }

    /// The kinds of the problems, each with where it is.
    pub fn problems(&self) -> Vec<(String, String)> {
        let json = self.inspect(&[]).json();
        let word = |problem: &Value, field: &str| problem[field].as_str().unwrap().to_owned();
        let problems = json["problems"].as_array().unwrap();
        problems.iter().map(|problem| (word(problem, "problem"), word(problem, "at"))).collect()
    }

    /// The bytes of every file of it.
    pub fn bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        walk(&self.dir, &mut found);
        found
    }
}

/// The bytes of every file below a folder.
pub fn walk(dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap_or_default());
        }
    }
}

/// The row of a child of the main workspace.
pub fn child(id: &str, status: &str) -> Value {
    json!({
        "id": id, "name": format!("agent_explore_{id}"), "title": "Scan docs", "path": "/home/u/x",
        "createdAt": THEN, "runtimeConfig": { "type": "local" }, "parentWorkspaceId": MAIN,
        "agentId": "explore", "taskStatus": status, "taskAttemptId": ATTEMPT,
    })
}

/// A row with other fields; a null one is taken out.
#[allow(clippy::needless_pass_by_value, reason = "a call reads better with the fields in it")]
pub fn with(mut row: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        if value.is_null() {
            row.as_object_mut().unwrap().remove(name);
        } else {
            row[name] = value.clone();
        }
    }
    row
}

/// The row of a child of a step of the run, without anything that fences it.
pub fn step_child(id: &str, status: &str) -> Value {
    with(child(id, status), json!({ "workflowTask": { "runId": RUN, "stepId": id, "workflowName": "demo" } }))
}

/// A record of a step that has the name of its child.
pub fn step(task: &str, status: &str) -> Value {
    json!({ "stepId": task, "inputHash": "sha256:ab", "status": status, "taskId": task, "startedAt": THEN })
}

/// A receipt.
pub fn receipt(task: &str, attempt: &str, parent: &str) -> Value {
    json!({
        "version": 1, "taskId": task, "attemptId": attempt, "parentWorkspaceId": parent,
        "source": "execution-settled", "settledAt": THEN,
    })
}

/// The event by which that application notes that nobody can tell what became of a child.
pub fn noted(task: &str) -> Value {
    json!({
        "sequence": 1, "type": "agent-step", "at": THEN, "stepId": task, "inputHash": "sha256:ab",
        "status": "reserved", "details": { "disposition": "indeterminate", "taskId": task, "reason": "x" },
    })
}
