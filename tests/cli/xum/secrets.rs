//! Credentials lie in such a root. They are never opened, never printed, never taken over.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::json;

use super::builder::{MAIN, Xum, child, walk, with};
use crate::common::{BIN, Outcome};

const SECRETS: [&str; 4] = ["providers.jsonc", "secrets.json", "mcp-oauth.json", "server.lock"];
/// What must be seen nowhere.
const WORD: &str = "hunter2hunter2";

fn guarded() -> Xum {
    let leaky = json!({
        "taskApiKey": WORD, "taskLaunchError": format!("Incorrect API key provided: sk-{WORD}"),
        "title": format!("use ghp_{WORD}"), "taskExperiments": { "nested": { "accessToken": WORD } },
        "runtimeConfig": { "type": "ssh", "password": WORD }, "taskPrompt": "look around",
    });
    let failure = json!({ "version": 1, "failuresByChildTaskId": {
        "t": { "errorType": "auth", "errorMessage": format!("Bearer {WORD} was refused") },
    } });
    let xum = Xum::new().row(with(child("t", "interrupted"), leaky));
    let xum = xum.file(&format!("sessions/{MAIN}/subagent-failures.json"), failure.to_string());
    let xum = SECRETS.iter().fold(xum, |xum, file| xum.file(file, format!("{{\"key\":\"{WORD}\"}}")));
    // A setting with a credential in the very file that is read.
    let xum = xum.write();
    let config = xum.config().replacen('{', &format!("{{\n  \"gatewayToken\": \"{WORD}\","), 1);
    xum.file("config.json", config)
}

/// Runs a call under `strace`, and gives what it did and every file it opened or tried to.
fn traced(xum: &Xum, args: &[&str]) -> (Outcome, String) {
    let log = xum.root.file("strace");
    let plain = xum.root.command(args);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-y", "-s", "4096", "-o", &log, "-e", "trace=%file", BIN]).args(args);
    command.arg("--json").env_clear().current_dir(xum.root.scratch());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let out = xum.root.finish(command.spawn().unwrap());
    (out, std::fs::read_to_string(log).unwrap())
}

#[test]
fn files_with_credentials_are_never_opened_nor_looked_at() {
    let xum = guarded();
    let dir = xum.dir.display().to_string();
    for args in [
        vec!["inspect", "--xum", &dir],
        vec!["inspect", "--xum", &dir, "t"],
        vec!["import", "--xum", &dir, "--dry-run"],
        vec!["import", "--xum", &dir],
    ] {
        let (out, log) = traced(&xum, &args);
        assert_eq!(out.exit, 0, "{out}");
        assert!(
            log.contains("\"config.json\"") && log.contains("subagent-failures.json"),
            "files are seen: {log}"
        );
        for secret in SECRETS {
            assert!(!log.contains(secret), "{args:?} touches {secret}: {log}");
        }
    }
}

#[test]
fn no_credential_is_printed_or_taken_over() {
    let xum = guarded();
    let dir = xum.dir.display().to_string();
    for args in [
        vec!["inspect", "--xum", &dir],
        vec!["inspect", "--xum", &dir, "t"],
        vec!["import", "--xum", &dir, "--dry-run"],
        vec!["import", "--xum", &dir],
        vec!["inspect", "t", "--explain", "--history"],
    ] {
        for out in [xum.root.run(&args), xum.root.json(&args)] {
            assert_eq!(out.exit, 0, "{out}");
            assert!(!out.to_string().contains(WORD), "{args:?}: {out}");
        }
    }
    let mut files = BTreeMap::new();
    walk(&xum.root.path(), &mut files);
    assert!(files.keys().any(|path| path.ends_with("tasks/t/row.json")), "something was taken over");
    for (path, bytes) in files {
        assert!(!String::from_utf8_lossy(&bytes).contains(WORD), "{}", path.display());
    }
    assert_eq!(xum.root.row("t")["xum"]["row"]["taskPrompt"], "look around");
}

#[test]
fn what_is_left_out_for_that_reason_is_listed_by_name() {
    let xum = guarded();
    let out = xum.import(&[]).is(0, "imported");
    let json = out.json();
    let left: Vec<&str> =
        json["left"].as_array().unwrap().iter().map(|left| left["id"].as_str().unwrap()).collect();
    assert_eq!(left, ["t title", "t taskApiKey", "t taskLaunchError", "t taskExperiments"]);
    assert_eq!(out.get("fields.left"), "4");
}

#[test]
fn damaged_files_are_told_without_quoting_them() {
    let xum = guarded();
    let quoted = format!("{{\"version\":\"{WORD}\",\"failuresByChildTaskId\":{{}}}}");
    let xum = xum.file(&format!("sessions/{MAIN}/subagent-failures.json"), quoted);
    let out = xum.inspect(&[]);
    assert_eq!(xum.problems()[0].0, "failure-unreadable");
    assert!(!out.to_string().contains(WORD), "{out}");
    let xum = xum.file("config.json", format!("{{\"projects\": \"{WORD}\", \"writeId\": {WORD}}}"));
    let out = xum.inspect(&[]).is(65, "config-unreadable");
    assert!(!out.to_string().contains(WORD), "{out}");
}

#[test]
fn links_are_not_followed_and_prove_nothing() {
    let outside = Xum::new().report(MAIN, "t", None, "elsewhere");
    let xum = Xum::new().row(child("t", "interrupted")).write();
    let session = xum.dir.join("sessions").join(MAIN);
    symlink(outside.dir.join("sessions").join(MAIN), &session).unwrap();
    let out = xum.inspect(&["t"]);
    assert_eq!(
        (out.get("outcome"), out.get("reasonCode")),
        ("indeterminate".into(), "report-unreadable".into())
    );
    std::fs::remove_file(&session).unwrap();
    std::fs::create_dir(&session).unwrap();
    symlink(
        outside.dir.join("sessions").join(MAIN).join("subagent-reports"),
        session.join("subagent-reports"),
    )
    .unwrap();
    assert_eq!(xum.told("t"), ("indeterminate".into(), "report-unreadable".into()));
    let out = xum.import(&[]).is(0, "imported");
    assert_eq!((out.get("reports.taken"), out.get("left.0.why")), ("0".into(), "report-unreadable".into()));
    // The root itself may be reached through one.
    let link = xum.root.file("link");
    symlink(&xum.dir, &link).unwrap();
    xum.root.json(&["inspect", "--xum", &link, "t"]).is(0, "ok");
}

#[test]
fn ids_that_are_paths_lead_nowhere() {
    let outside = Xum::new().report(MAIN, "t", None, "elsewhere");
    let ids = ["../../x", "..", ".", "a/b", ""];
    let xum = ids.iter().fold(Xum::new(), |xum, id| xum.row(child(id, "interrupted")));
    let parent = format!("../../{}/sessions/{MAIN}", outside.dir.display());
    let xum = xum.row(with(child("t", "reported"), json!({ "parentWorkspaceId": parent }))).write();
    let json = xum.inspect(&[]).json();
    assert_eq!(json["tasks"].as_array().unwrap().len(), ids.len() + 1);
    for task in json["tasks"].as_array().unwrap() {
        assert_eq!(task["reasonCode"], "report-unreadable", "{task}");
    }
}
