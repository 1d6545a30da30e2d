//! Every script in `examples/` runs as a test, against the binary under test.
#![allow(missing_docs, clippy::disallowed_methods, reason = "a test runs scripts")]

use std::path::Path;
use std::process::Command;

/// Runs an example; it fails by itself when one of its checks fails. Gives what it printed.
fn run(name: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    let output = Command::new("bash")
        .arg(&script)
        .env("LYCHGATE", env!("CARGO_BIN_EXE_lychgate"))
        .output()
        .expect("because there is a shell");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{name}: {}\n{told}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    told
}

/// Rule 101.
#[test]
fn restart_sh_recovers_a_killed_sub_agent_exactly_once() {
    assert!(run("restart.sh").contains("16 checks passed"), "every check of the story was made");
}

/// Rules 73 and 101.
#[test]
fn workflow_sh_resumes_a_killed_workflow_and_replaces_its_dead_child_once() {
    assert!(run("workflow.sh").contains("8 checks passed"), "every check of the story was made");
}

/// Rule 101, rule 89, decision 5.
#[test]
fn midturn_sh_resumes_nothing_by_guessing_and_leaves_the_end_to_the_holders_of_the_tokens() {
    assert!(run("midturn.sh").contains("25 checks passed"), "every check of the story was made");
}

/// Rules 12 and 101.
#[test]
fn lost_receipt_sh_names_the_missing_receipt_however_often_it_is_asked_and_changes_nothing() {
    assert!(run("lost-receipt.sh").contains("12 checks passed"), "every check of the story was made");
}

#[test]
fn every_example_is_run_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let source = include_str!("examples.rs");
    for entry in std::fs::read_dir(folder).expect("because it is part of the checkout") {
        let name = entry.expect("because it can be listed").file_name().to_string_lossy().into_owned();
        assert!(source.contains(&format!("run(\"{name}\")")), "examples/{name} is run by no test");
    }
}
