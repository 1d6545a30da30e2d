//! `--format sh`, evaluated by a real shell, and `--print`.

use std::process::{Command, Stdio};

use crate::common::{BIN, Outcome, TestRoot};

/// Runs a script in `sh`, with the binary in its path.
pub fn script(root: &TestRoot, text: &str) -> Outcome {
    let harness = root.command(&[]);
    let mut command = Command::new("sh");
    command.args(["-euc", text]).env_clear();
    for (name, value) in harness.get_envs() {
        // One seed for all calls of a script would give all of them the same ids.
        if let (Some(value), false) = (value, name.to_string_lossy().starts_with("LYCHGATE_TEST")) {
            command.env(name, value);
        }
    }
    let bin = std::path::Path::new(BIN).parent().unwrap().display().to_string();
    command.env("PATH", format!("{bin}:{}", std::env::var("PATH").unwrap()));
    command.current_dir(root.scratch()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    root.finish(command.spawn().unwrap())
}

const CALL: &str = r#"
call() { rc=0; out=$(lychgate "$@" --format sh) || rc=$?; eval "$out"; test "$rc" = "$LYCHGATE_EXIT"; }
"#;

#[test]
fn a_script_goes_through_a_whole_task_with_an_id_full_of_quotes() {
    let root = TestRoot::new();
    let odd = r#"it's $(touch oops) `touch oops` "q" \n *; exit 3 # 漢"#;
    std::fs::write(root.file("id"), odd).unwrap();
    let out = script(
        &root,
        &format!(
            r#"{CALL}
set -a
id=$(cat id)
call reserve "$id" --parent "it's a parent"
test "$LYCHGATE_TASK" = "$id"; test "$LYCHGATE_PARENT_WORKSPACE_ID" = "it's a parent"
first=$LYCHGATE_TOKEN
call rotate "$id" --as launch --token "$LYCHGATE_TOKEN"
test "$LYCHGATE_TOKEN" = "$first"
call admit --start --label "$id"
turn=$LYCHGATE_TURN
call admit --send "$LYCHGATE_SEND" --start
echo "$LYCHGATE_EXIT $LYCHGATE_CODE"; test "$LYCHGATE_TURN" = "$turn"
call stop
echo "$LYCHGATE_EXIT $LYCHGATE_CODE $LYCHGATE_STOP_EPOCH"
call settle --turn "$turn"
echo "$LYCHGATE_EXIT $LYCHGATE_CODE"
call rotate "$id" --as reawaken
test "$LYCHGATE_TOKEN" != "$first"
call rotate "$id" --as launch
echo "$LYCHGATE_EXIT $LYCHGATE_CODE"
test "$LYCHGATE_TASK" = "$id"
call reserve "$id" --parent other
echo "$LYCHGATE_EXIT $LYCHGATE_CODE ${{LYCHGATE_TOKEN-no token}}"
ls"#
        ),
    );
    insta::assert_snapshot!(out, @"
    exit 0
    --- stdout
    10 already-admitted
    0 stopping 1
    0 turn-settled
    10 not-queued
    10 task-exists no token
    id
    root
    ");
}

#[test]
fn every_value_of_an_answer_has_its_variable() {
    let root = TestRoot::new();
    let _ = root.reserve_with("p", &["--run", "r", "--step", "s", "--input-hash", "h"]);
    let queued = root.reserve("t1");
    let old = root.reserve_step("old");
    let _ = root.json(&["stop", "old"]).is(0, "stopped");
    let nonce = old.claim(&[]).is(0, "claimed").get("nonce");
    let _ = root.json(&["stop", "p"]).is(0, "stopped");
    let admit = ["admit", "t1", "--attempt", &queued.attempt, "--token", &queued.token];
    let calls: [&[&str]; 14] = [
        &["reserve", "t2", "--parent", "ws", "--run", "r", "--step", "s", "--input-hash", "h"],
        &["reserve", "t2", "--parent", "ws"],
        &["reserve", "new", "--replaces", "old", "--nonce", &nonce],
        &["reserve", "newer", "--replaces", "old", "--nonce", &nonce],
        &["reserve", "t3", "--parent", "p"],
        &["rotate", "t1", "--as", "launch", "--expect", "att_0000000000000000"],
        &["rotate", "t1", "--as", "reawaken"],
        &["rotate", "old", "--as", "reawaken"],
        &["rotate", "t1", "--as", "launch", "--token", &queued.token],
        &admit,
        &["admit", "t1", "--attempt", "att_0000000000000000"],
        &["admit", "t1", "--attempt", &queued.attempt, "--start", "--token", &queued.token],
        &["stop", "t1", "--cleanup", "worktree"],
        &["stop", "nobody"],
    ];
    for (n, call) in calls.iter().enumerate() {
        let id = ["--request-id", &format!("r{n}")];
        let sh = root.run(&[call, &id[..], &["--format", "sh"]].concat());
        let json = root.json(&[call, &id[..]].concat());
        // The gate's answer is given once, so it has two values of its own in its repeat.
        let once = json.code() == "already-admitted";
        for (key, value) in json.json().as_object().unwrap() {
            let text = match value {
                serde_json::Value::String(text) => text.replace('\'', r"'\''"),
                serde_json::Value::Bool(_) | serde_json::Value::Number(_) => value.to_string(),
                _ => continue,
            };
            let told_otherwise = matches!(key.as_str(), "ok" | "command");
            if told_otherwise || (once && matches!(key.as_str(), "code" | "message" | "hint")) {
                continue;
            }
            let line = format!("{}='{text}'\n", variable(key));
            assert!(sh.stdout.contains(&line), "{line}{json}{sh}");
        }
        assert!(sh.stdout.contains(&format!("LYCHGATE_EXIT='{}'\n", sh.exit)), "{sh}");
        assert_eq!(sh.stderr, "");
    }
}

/// The variable of a field.
fn variable(field: &str) -> String {
    let short = match field {
        "taskId" => "ANSWER_TASK",
        "attemptId" => "ANSWER_ATTEMPT",
        "root" => "ANSWER_ROOT",
        "sendId" => "SEND",
        "turnId" => "TURN",
        "cleanupId" => "CLEANUP",
        "reasonCode" => "REASON",
        "reason" => "REASON_TEXT",
        other => {
            let snake = other.chars().map(|c| if c.is_uppercase() { format!("_{c}") } else { c.to_string() });
            return format!("LYCHGATE_{}", snake.collect::<String>().to_uppercase());
        }
    };
    format!("LYCHGATE_{short}")
}

#[test]
fn a_usage_error_is_told_to_a_script_too() {
    let root = TestRoot::new();
    for wrong in ["reserve", "rotate t1 --as nothing", "admit", "stop --wait soon t1", "nonsense", ""] {
        let out = script(&root, &format!("{CALL} call {wrong}; echo \"$LYCHGATE_EXIT $LYCHGATE_CODE\""));
        assert_eq!((out.exit, out.stdout.as_str()), (0, "64 usage\n"), "{wrong}: {out}");
    }
}

#[test]
fn a_printed_field_is_raw_and_alone_on_its_line() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let _turn = task.turn();
    let out = root.run(&["stop", "t1", "--print", "code,owed.0.turnId,nothing,stopEpoch,receipt,exit"]);
    insta::assert_snapshot!(format!("{out}{:?}", out.stdout), @r#"
    exit 0
    --- stdout
    stopping
    turn_de15204e35ca515e0001

    1
    "stopping\nturn_de15204e35ca515e0001\n\n1\n\n\n"
    "#);
    let refused = root.run(&["rotate", "t1", "--as", "launch", "--print", "taskStatus", "--print", "code"]);
    insta::assert_snapshot!(refused, @"
    exit 10
    --- stdout
    interrupted
    not-queued
    --- stderr
    lychgate rotate: refused (not-queued): task `t1` is interrupted, not queued
    ");
    let json = root.run(&["rotate", "t1", "--as", "launch", "--print", "code", "--json"]);
    assert_eq!((json.stdout.as_str(), json.stderr.as_str()), ("not-queued\n", ""));
    let reserved = root.run(&["reserve", "t2", "--parent", "ws", "--print", "token"]);
    assert!(reserved.stdout.starts_with("tok_") && reserved.stdout.len() == 69, "{reserved}");
    let before = root.bytes();
    assert_eq!(root.run(&["stop", "t1", "--print", "code", "--format", "sh"]).exit, 64);
    assert_eq!(root.run(&["stop", "t1", "--print", ""]).exit, 64);
    assert_eq!(root.run(&["stop", "t1", "--json", "--format", "text"]).exit, 64);
    assert_eq!(root.bytes(), before);
}
