//! One large root of the kind that grows over years: odd ids, missing parents, rows twice, unknown fields, torn lines.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::builder::{ATTEMPT, MAIN, Xum, child, receipt, step, with};

const N_TASKS: usize = 5000;
const N_RUNS: usize = 20;

/// The id of a task: every tenth is odd, and no two are equal.
fn id(n: usize) -> String {
    match n % 10 {
        0 => format!("odd {n} % ü +&"),
        1 => format!("…{n}..").repeat(1 + n % 7),
        _ => format!("{n:010x}"),
    }
}

/// The row of a task, and a second one in another project where there is one.
fn rows(n: usize) -> (Value, Option<Value>) {
    let id = &id(n);
    let unknown = json!({ "taskLater": { "deep": [n] }, "somethingElse": { "a": n } });
    match n % 10 {
        2 => (with(child(id, "interrupted"), json!({ "parentWorkspaceId": format!("gone-{n}") })), None),
        3 => (child(id, "interrupted"), Some(with(child(id, "interrupted"), json!({ "title": "moved" })))),
        4 => (child(id, "interrupted"), Some(child(id, "running"))),
        5 => (with(child(id, "interrupted"), json!({ "taskAttemptId": null })), None),
        6 => (child(id, "reported"), None),
        7 => (with(child(id, "interrupted"), unknown), None),
        8 => (child(id, "running"), None),
        9 => (child(id, "queued"), None),
        _ => (child(id, "interrupted"), None),
    }
}

fn large() -> Xum {
    let mut xum = Xum::new();
    let mut others = Vec::new();
    for n in 0..N_TASKS {
        let (row, other) = rows(n);
        xum = xum.row(row);
        others.extend(other);
    }
    xum = others.into_iter().fold(xum.project("/home/u/demo/sub"), Xum::row);
    let mut index = serde_json::Map::new();
    for n in (0..N_TASKS).filter(|n| n % 10 == 6) {
        let id = id(n);
        let body =
            json!({ "childTaskId": id, "reportMarkdown": format!("report {n}"), "attemptId": ATTEMPT });
        xum = xum.file(&format!("sessions/{MAIN}/subagent-reports/{id}/report.json"), body.to_string());
        index.insert(id, json!({}));
    }
    let index = json!({ "version": 1, "artifactsByChildTaskId": index });
    xum = xum.file(&format!("sessions/{MAIN}/subagent-reports.json"), index.to_string());
    for n in (0..N_TASKS).filter(|n| n % 10 == 7) {
        let path = format!("sessions/{MAIN}/subagent-attempt-settlements/{}/{ATTEMPT}.json", id(n));
        xum = xum.file(&path, receipt(&id(n), ATTEMPT, MAIN).to_string());
    }
    for run in 0..N_RUNS {
        let at = format!("sessions/{MAIN}/workflows/wfr_{run:04}");
        let snapshot = json!({ "id": format!("wfr_{run:04}"), "workspaceId": MAIN, "status": "interrupted", "steps": [] });
        let children = (0..N_TASKS).filter(|n| n % N_RUNS == run && n % 10 == 5);
        let lines: String =
            children.flat_map(|n| [step(&id(n), "started").to_string(), "\n".to_owned()]).collect();
        xum = xum.file(&format!("{at}/run.json"), snapshot.to_string());
        xum = xum.file(&format!("{at}/steps.jsonl"), lines + "{\"stepId\":\"to");
    }
    xum.write()
}

fn counted(json: &Value, list: &str, word: &str) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for item in json[list].as_array().unwrap() {
        *counted.entry(item[word].as_str().unwrap_or("-").to_owned()).or_default() += 1;
    }
    counted
}

fn map(pairs: &[(&str, usize)]) -> BTreeMap<String, usize> {
    pairs.iter().map(|(word, n)| ((*word).to_owned(), *n)).collect()
}

#[test]
fn a_root_of_five_thousand_tasks_is_told_and_taken_over_to_the_last() {
    let xum = large();
    let tenth = N_TASKS / 10;
    let json = xum.inspect(&[]).is(0, "ok").json();
    assert_eq!(json["tasks"].as_array().unwrap().len(), N_TASKS);
    assert_eq!(
        json["outcomes"],
        json!({ "indeterminate": 8 * tenth, "reported": tenth, "terminal-no-report": tenth })
    );
    let reasons = [
        ("-", 2 * tenth),
        ("legacy-no-attempt-id", tenth),
        ("owner-unknown", 2 * tenth),
        ("row-unreadable", tenth),
        ("unowned-no-receipt", 4 * tenth),
    ];
    assert_eq!(counted(&json, "tasks", "reasonCode"), map(&reasons));
    let problems = [
        ("duplicate-id", 2 * tenth),
        ("parent-missing", tenth),
        ("row-unreadable", tenth),
        ("torn-line", N_RUNS),
    ];
    assert_eq!(counted(&json, "problems", "problem"), map(&problems));
    let out = xum.import(&["--dry-run"]).is(0, "imported");
    assert_eq!((out.get("tasks.taken"), out.get("tasks.left")), ((9 * tenth).to_string(), tenth.to_string()));
    assert_eq!((out.get("reports.taken"), out.get("receipts.taken")), (tenth.to_string(), tenth.to_string()));
    assert_eq!((out.get("runs.taken"), out.get("steps.taken")), (N_RUNS.to_string(), tenth.to_string()));
    assert_eq!(counted(&out.json(), "left", "why"), map(&[("row-unreadable", tenth)]));
    assert_eq!(xum.root.tree(), "");
    // In memory, where a sync costs nothing: thousands of commits are thousands of syncs.
    let memory = tempfile::Builder::new().prefix("lychgate").tempdir_in("/dev/shm").unwrap();
    let ours = memory.path().display().to_string();
    let out = xum.import(&["--root", &ours]).is(0, "imported");
    assert_eq!((out.get("tasks.taken"), out.get("tasks.left")), ((9 * tenth).to_string(), tenth.to_string()));
    let out = xum.import(&["--root", &ours, "--dry-run"]).is(0, "imported");
    assert_eq!((out.get("tasks.taken"), out.get("tasks.already")), ("0".into(), (9 * tenth).to_string()));
}
