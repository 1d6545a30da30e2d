//! Every combination of what can be said about a task there: here it is never told for more than it was there.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::builder::{ATTEMPT, MAIN, Xum, child, receipt, with};

const OTHER: &str = "att_00000000000000ff";
const STATUSES: [&str; 6] = ["queued", "starting", "running", "awaiting_report", "interrupted", "reported"];
const REPORTS: [&str; 6] = ["none", "bound", "unbound", "other", "damaged", "blank"];
const RECEIPTS: [&str; 3] = ["none", "strict", "damaged"];

fn report(xum: Xum, id: &str, kind: &str) -> Xum {
    let body = |text: &str, attempt: Value| {
        json!({ "childTaskId": id, "reportMarkdown": text, "attemptId": attempt }).to_string()
    };
    let text = match kind {
        "none" => return xum,
        "bound" => body("done", json!(ATTEMPT)),
        "unbound" => body("done", Value::Null),
        "other" => body("done", json!(OTHER)),
        "blank" => body(" ", json!(ATTEMPT)),
        _ => "{\"childTaskId\":".to_owned(),
    };
    xum.file(&format!("sessions/{MAIN}/subagent-reports/{id}/report.json"), text)
}

fn settled(xum: Xum, id: &str, kind: &str) -> Xum {
    let text = match kind {
        "none" => return xum,
        "strict" => receipt(id, ATTEMPT, MAIN).to_string(),
        _ => receipt(id, OTHER, MAIN).to_string(),
    };
    xum.file(&format!("sessions/{MAIN}/subagent-attempt-settlements/{id}/{ATTEMPT}.json"), text)
}

fn outcomes(json: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tasks = json["tasks"].as_array().unwrap().iter();
    tasks.map(|task| (text(&task["taskId"]), text(&task["outcome"]))).collect()
}

#[test]
fn nothing_is_proven_over_or_reported_here_that_was_not_so_there() {
    let mut xum = Xum::new();
    let mut n = 0;
    for bits in 0..16 {
        let set = |bit: i32| bits & (1 << bit) != 0;
        let fields = json!({
            "taskAttemptId": if set(0) { json!(ATTEMPT) } else { Value::Null },
            "taskAttemptUnproven": if set(1) { json!(true) } else { Value::Null },
            "reportedAt": if set(2) { json!("2025-08-22T09:00:00.000Z") } else { Value::Null },
            "taskExecutionStatus": if set(3) { json!("running") } else { Value::Null },
        });
        for status in STATUSES {
            for kind in REPORTS {
                for receipt in RECEIPTS {
                    // What is told by the id is what the task is.
                    let id = format!("{status}.{kind}.{receipt}.{bits:04b}");
                    xum = xum.row(with(child(&id, status), fields.clone()));
                    xum = settled(report(xum, &id, kind), &id, receipt);
                    n += 1;
                }
            }
        }
    }
    let xum = xum.write();
    let memory = tempfile::Builder::new().prefix("lychgate").tempdir_in("/dev/shm").unwrap();
    let ours = memory.path().display().to_string();
    let there = outcomes(&xum.inspect(&[]).is(0, "ok").json());
    let out = xum.import(&["--root", &ours]).is(0, "imported");
    assert_eq!(out.get("tasks.taken"), n.to_string());
    let here = outcomes(&xum.root.json(&["inspect", "--root", &ours]).is(0, "ok").json());
    assert_eq!((there.len(), here.len()), (n, n));
    let over: Vec<&str> =
        there.iter().filter(|(_, told)| *told == "terminal-no-report").map(|(id, _)| &**id).collect();
    assert_eq!(over, ["interrupted.none.strict.0001"], "one combination of all proves it over");
    for (id, told) in &there {
        let lost = told == "reported" && id.contains(".blank.");
        let is_reactivated = id.rsplit('.').next().unwrap().starts_with('1');
        let is_queued = id.starts_with("queued.") && !is_reactivated;
        let expected = match told.as_str() {
            // Whoever asks may launch it, under a fresh attempt that stays unproven.
            _ if is_queued && (lost || told == "indeterminate") => "live",
            // What ours cannot hold is missing here.
            _ if lost => "indeterminate",
            other => other,
        };
        assert_eq!(here[id], expected, "{id}");
    }
}
