//! `inspect`: the commands it suggests, each typed as it is.

use std::process::Command;

use crate::common::{BIN, Task, TestRoot};
use crate::inspect::{launch, thrice};
use crate::kit::{Process, receipt_file};

/// Runs every command that `inspect` suggests, each on a copy of the root as it is, and gives their exit codes.
fn suggested(task: &Task<'_>, token: &str, nonce: &str) -> Vec<(String, i32)> {
    let root = task.root;
    let next = root.run(&["inspect", "--explain", "--json", "--", &task.id]).json()["next"].clone();
    let next: Vec<String> = serde_json::from_value(next).unwrap();
    let file = root.file("token");
    std::fs::write(&file, token).unwrap();
    let run = |line: &String| {
        let copy = root.scratch().join("copy");
        let _fresh = std::fs::remove_dir_all(&copy);
        assert!(Command::new("cp").arg("-a").args([root.path(), copy.clone()]).status().unwrap().success());
        let whole = line.replace("FILE", &file).replace("NONCE", nonce).replacen("lychgate", BIN, 1);
        let mut command = Command::new("sh");
        let out = command.args(["-c", &whole]).env("LYCHGATE_ROOT", &copy).output().unwrap();
        (line.replace(&task.attempt, "ATTEMPT"), out.status.code().unwrap())
    };
    next.iter().map(run).collect()
}

/// The suggestions of one situation, one a line, after each was run.
fn leads_on(task: &Task<'_>, nonce: &str) -> String {
    let lines = suggested(task, &task.token, nonce);
    let lines: Vec<String> = lines.into_iter().map(|(line, exit)| format!("{exit:>2} {line}")).collect();
    lines.join("\n")
}

#[test]
fn what_is_suggested_for_a_task_at_work_can_be_typed() {
    let root = TestRoot::new();
    let [queued, queued_unknown, queued_dead] = thrice(&root, "queued", |_| ());
    insta::assert_snapshot!(leads_on(&queued, ""), @"
    0 lychgate rotate queued-alive --as launch
    0 lychgate stop queued-alive
    ");
    insta::assert_snapshot!(leads_on(&queued_unknown, ""), @"
    0 lychgate rotate queued-unknown --as launch
    0 lychgate stop queued-unknown
    ");
    insta::assert_snapshot!(leads_on(&queued_dead, ""), @" 0 lychgate rotate queued-dead --as launch");
    let [starting, starting_unknown, starting_dead] = thrice(&root, "starting", launch);
    insta::assert_snapshot!(leads_on(&starting, ""), @" 0 lychgate stop starting-alive");
    insta::assert_snapshot!(leads_on(&starting_unknown, ""), @"
    0 lychgate stop starting-unknown
    0 lychgate recover starting-unknown --unproven
    ");
    insta::assert_snapshot!(leads_on(&starting_dead, ""), @" 0 lychgate recover starting-dead");
    let [_, running_unknown, running_dead] = thrice(&root, "running", |task| {
        launch(task);
        task.turn();
    });
    insta::assert_snapshot!(leads_on(&running_unknown, ""), @"
    0 lychgate settle running-unknown --turn turn_5cef1fe7bd4ab6210001 --token-file FILE
    0 lychgate stop running-unknown
    0 lychgate recover running-unknown --unproven
    ");
    insta::assert_snapshot!(leads_on(&running_dead, ""), @"
    0 lychgate settle running-dead --turn turn_93017453a80232cf0001 --token-file FILE
    0 lychgate recover running-dead --unproven
    ");
    let [closing, closing_unknown, closing_dead] = thrice(&root, "closing", |task| {
        launch(task);
        task.turn();
        root.json(&["stop", &task.id]).is(0, "stopping");
    });
    insta::assert_snapshot!(leads_on(&closing, ""), @" 0 lychgate settle closing-alive --turn turn_c09b4faf5dc734e50001 --token-file FILE");
    insta::assert_snapshot!(leads_on(&closing_unknown, ""), @"
    0 lychgate settle closing-unknown --turn turn_de855896ca32faa90001 --token-file FILE
    0 lychgate rotate closing-unknown --as reawaken --unproven
    ");
    insta::assert_snapshot!(leads_on(&closing_dead, ""), @"
    0 lychgate settle closing-dead --turn turn_f8e4bd319137a0c90001 --token-file FILE
    0 lychgate rotate closing-dead --as reawaken
    ");
}

#[test]
fn what_is_suggested_for_a_task_that_reported_can_be_typed() {
    let root = TestRoot::new();
    let [reported, reported_unknown, reported_dead] = thrice(&root, "reported", |task| {
        launch(task);
        task.turn();
        task.report("done").is(0, "report-accepted");
    });
    insta::assert_snapshot!(leads_on(&reported, ""), @"
     0 lychgate report reported-alive --show
    12 lychgate settle reported-alive --token-file FILE
     0 lychgate settle reported-alive --turn turn_44ef219a1efd157c0001 --token-file FILE
    ");
    insta::assert_snapshot!(leads_on(&reported_unknown, ""), @"
     0 lychgate report reported-unknown --show
    12 lychgate settle reported-unknown --token-file FILE
     0 lychgate settle reported-unknown --turn turn_de15204e35ca515e0001 --token-file FILE
    ");
    let turn = root.row("reported-dead")["sends"][0]["turnId"].as_str().unwrap().to_owned();
    reported_dead.settle(&turn).is(0, "turn-settled");
    insta::assert_snapshot!(leads_on(&reported_dead, ""), @"
    0 lychgate report reported-dead --show
    0 lychgate settle reported-dead --token-file FILE
    0 lychgate rotate reported-dead --as reactivate
    ");
    // Reactivated, and at work again.
    let mut mortal = Process::alive();
    for (task, pid) in [(&reported, mortal.pid()), (&reported_unknown, String::new())] {
        let turn = root.row(&task.id)["sends"][0]["turnId"].as_str().unwrap().to_owned();
        task.settle(&turn).is(0, "turn-settled");
        let mut args = vec!["rotate", &task.id, "--as", "reactivate"];
        if !pid.is_empty() {
            args.extend(["--owner-pid", &pid]);
        }
        let out = root.json(&args).is(0, "rotated");
        let again = Task {
            root: &root,
            id: task.id.clone(),
            attempt: out.get("attemptId"),
            token: out.get("token"),
            worker: String::new(),
        };
        again.turn();
        if pid.is_empty() {
            insta::assert_snapshot!(leads_on(&again, ""), @"
            0 lychgate settle reported-unknown --turn turn_03c45a284c25ff3b0002 --token-file FILE
            0 lychgate stop reported-unknown
            0 lychgate rotate reported-unknown --as reactivate --unproven
            ");
            root.json(&["stop", &again.id]).is(0, "stopping");
            insta::assert_snapshot!(leads_on(&again, ""), @"
            0 lychgate settle reported-unknown --turn turn_03c45a284c25ff3b0002 --token-file FILE
            0 lychgate rotate reported-unknown --as reactivate --unproven
            ");
        } else {
            insta::assert_snapshot!(leads_on(&again, ""), @" 0 lychgate stop reported-alive");
            mortal.die();
            insta::assert_snapshot!(leads_on(&again, ""), @"
            0 lychgate settle reported-alive --turn turn_93017453a80232cf0002 --token-file FILE
            0 lychgate rotate reported-alive --as reactivate --unproven
            ");
            root.json(&["stop", &again.id]).is(0, "stopping");
            insta::assert_snapshot!(leads_on(&again, ""), @"
            0 lychgate settle reported-alive --turn turn_93017453a80232cf0002 --token-file FILE
            0 lychgate rotate reported-alive --as reactivate
            ");
        }
    }
}

#[test]
fn what_is_suggested_for_a_task_that_is_over_can_be_typed() {
    let root = TestRoot::new();
    let over = root.reserve_step("over").launched();
    root.json(&["stop", "over"]).is(0, "stopped");
    insta::assert_snapshot!(leads_on(&over, ""), @"
    0 lychgate claim-retire over --attempt ATTEMPT --run run --step step --input-hash hash --parent ws
    0 lychgate rotate over --as reawaken
    ");
    let nonce = over.claim(&[]).is(0, "claimed").get("nonce");
    insta::assert_snapshot!(leads_on(&over, &nonce), @"
    0 lychgate claim-retire over --attempt ATTEMPT --run run --step step --input-hash hash --parent ws
    0 lychgate reserve --replaces over --nonce NONCE
    ");
    let mut marked = root.reserve_step("marked").launched();
    root.json(&["rotate", "marked", "--as", "startup", "--unproven"]).is(0, "rotated");
    marked.attempt = root.json(&["inspect", "marked"]).get("identity.attemptId");
    insta::assert_snapshot!(leads_on(&marked, ""), @"
    0 lychgate admit marked --attempt ATTEMPT --start
    0 lychgate stop marked
    ");
    root.json(&["stop", "marked"]).is(0, "stopped");
    marked.rotated("reawaken");
    root.json(&["stop", "marked"]).is(0, "stopped");
    insta::assert_snapshot!(leads_on(&marked, ""), @"
    0 lychgate rotate marked --as reawaken
    0 lychgate claim-retire marked --token-file FILE --attempt ATTEMPT --run run --step step --input-hash hash --parent ws
    ");
    let lost = root.reserve_unknown("lost").launched();
    root.json(&["stop", "lost"]).is(0, "stopped");
    root.json(&["stop", "lost"]).is(0, "already-stopped");
    std::fs::remove_file(receipt_file(&lost)).unwrap();
    insta::assert_snapshot!(leads_on(&lost, ""), @" 0 lychgate rotate lost --as reawaken");
}

#[test]
fn names_that_a_shell_or_the_tool_would_misread_are_suggested_so_that_they_can_be_typed() {
    let root = TestRoot::new();
    let args =
        ["reserve", "--parent=-p s", "--run=-r", "--step=it's", "--input-hash=$(h)", "--json", "--", "-x; y"];
    let out = root.run(&args).is(0, "reserved");
    let task = Task {
        root: &root,
        id: "-x; y".to_owned(),
        attempt: out.get("attemptId"),
        token: out.get("token"),
        worker: String::new(),
    };
    insta::assert_snapshot!(leads_on(&task, ""), @"
    0 lychgate rotate --as launch -- '-x; y'
    0 lychgate stop -- '-x; y'
    ");
    root.run(&["stop", "--json", "--", "-x; y"]).is(0, "stopped");
    insta::assert_snapshot!(leads_on(&task, ""), @r"
    0 lychgate claim-retire --attempt ATTEMPT --run=-r --step 'it'\''s' --input-hash '$(h)' --parent='-p s' -- '-x; y'
    0 lychgate rotate --as reawaken -- '-x; y'
    ");
}
