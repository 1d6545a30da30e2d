//! `reserve`: names, ancestors, owners and tokens.

use crate::common::{TestRoot, without_tokens};
use crate::owners::{NOBODY, Process, alive};

#[test]
fn a_reservation_answers_a_queued_task_with_its_tokens() {
    let root = TestRoot::new();
    let text = root.run(&["reserve", "t1", "--parent", "ws"]);
    insta::assert_snapshot!(text, @"
    exit 0
    --- stdout
    task `t1` is reserved
    taskId:            t1
    attemptId:         att_de15204e35ca515e
    taskStatus:        queued
    proven:            true
    receiptEligible:   true
    parentWorkspaceId: ws
    The token is not shown: use --show-token, --json or --token-file
    hint: without --owner-pid nobody can prove later that the owner died; pass the pid of the process that does the work
    ");
    let json = root.json(&["reserve", "t2", "--parent", "ws", "--owner-pid", &alive()]);
    insta::assert_snapshot!(without_tokens(&json.to_string()), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"reserve","code":"reserved","root":"[DIR]/root","requestId":"req_b0599e694c170d04","taskId":"t2","attemptId":"att_44ef219a1efd157c","taskStatus":"queued","proven":true,"receiptEligible":true,"parentWorkspaceId":"ws","token":"[TOKEN]","workerToken":"[TOKEN]","message":"task `t2` is reserved"}
    "#);
    insta::assert_snapshot!(root.tree(), @"
    config.json
    secret
    sessions/
    tasks/
    tasks/t1/
    tasks/t1/row.json
    tasks/t2/
    tasks/t2/row.json
    ");
}

#[test]
fn the_row_of_a_reservation_says_who_what_and_where() {
    let root = TestRoot::new();
    let args = ["--owner", "nightly", "--ancestor", "org", "--run", "r", "--step", "s", "--input-hash", "h"];
    let task = root.reserve_with("t1", &args);
    let row = serde_json::to_string_pretty(&root.row("t1")).unwrap();
    assert!(!row.contains(&task.token) && !row.contains(&task.worker), "no row stores a token");
    insta::assert_snapshot!(row, @r#"
    {
      "taskId": "t1",
      "parentWorkspaceId": "ws",
      "ancestors": [
        "org"
      ],
      "workflowTask": {
        "runId": "r",
        "stepId": "s",
        "inputHash": "h"
      },
      "taskStatus": "queued",
      "taskAttemptId": "att_de15204e35ca515e",
      "attempt": {
        "origin": "reserve",
        "owned": true,
        "receiptEligible": true,
        "reason": "a reservation is the first admission of its task",
        "since": "2026-01-01T00:00:01.000Z",
        "owner": {
          "name": "nightly"
        },
        "everAdmitted": false
      },
      "stopEpoch": 0,
      "sends": [],
      "sendsMinted": 0,
      "turnsMinted": 0,
      "createdAt": "2026-01-01T00:00:01.000Z",
      "updatedAt": "2026-01-01T00:00:01.000Z",
      "requests": [
        {
          "requestId": "req_f0d5b1efa390b1eb",
          "command": "reserve",
          "digest": "d504da62832db3051b681790b2e76c58",
          "answer": {
            "code": "reserved",
            "message": "task `t1` is reserved",
            "facts": {
              "taskId": "t1",
              "attemptId": "att_de15204e35ca515e",
              "taskStatus": "queued",
              "proven": true,
              "receiptEligible": true,
              "parentWorkspaceId": "ws",
              "runId": "r",
              "stepId": "s",
              "inputHash": "h"
            },
            "hint": "without --owner-pid nobody can prove later that the owner died; pass the pid of the process that does the work",
            "tokensOf": "att_de15204e35ca515e"
          }
        }
      ],
      "history": {
        "total": 1,
        "archives": 0,
        "events": [
          {
            "n": 1,
            "at": "2026-01-01T00:00:01.000Z",
            "command": "reserve",
            "requestId": "req_f0d5b1efa390b1eb",
            "what": "reserved",
            "to": "queued/open",
            "subject": "att_de15204e35ca515e"
          }
        ]
      }
    }
    "#);
}

#[test]
fn tokens_are_shown_to_people_on_request_only() {
    let root = TestRoot::new();
    let hidden = root.run(&["reserve", "t1", "--parent", "ws"]);
    assert!(!hidden.stdout.contains("tok_"), "{hidden}");
    let shown = root.run(&["reserve", "t2", "--parent", "ws", "--show-token"]);
    assert_eq!(shown.stdout.matches("tok_").count(), 2, "{shown}");
}

#[test]
fn a_taken_name_is_refused_for_ever_and_changes_nothing() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");
    let before = root.bytes();
    let refused = root.json(&["reserve", "t1", "--parent", "elsewhere"]).is(10, "task-exists");
    assert_eq!(refused.get("currentAttemptId"), task.attempt);
    assert_eq!(refused.get("taskStatus"), "interrupted");
    insta::assert_snapshot!(root.run(&["reserve", "t1", "--parent", "ws"]), @"
    exit 10
    --- stderr
    lychgate reserve: refused (task-exists): task `t1` exists: interrupted, attempt att_de15204e35ca515e
    hint: to continue it use `rotate`; for new work take a new name
    ");
    assert_eq!(root.bytes(), before);
}

#[test]
fn a_taken_name_is_refused_without_waiting_for_its_lock() {
    let root = TestRoot::new();
    let _task = root.reserve("t1");
    let holder = root.paused(&["stop", "t1"], "locked-task");
    root.wait_reached("locked-task");
    let _ = root.json(&["reserve", "t1", "--parent", "ws", "--lock-wait", "0"]).is(10, "task-exists");
    root.go("locked-task");
    let _ = root.finish(holder).is(0, "stopped");
}

#[test]
fn a_parent_that_is_being_changed_makes_a_reservation_wait_and_then_give_up() {
    let root = TestRoot::new();
    let _parent = root.reserve("p");
    let holder = root.paused(&["stop", "p"], "locked-task");
    root.wait_reached("locked-task");
    let before = root.bytes();
    let _ = root.json(&["reserve", "c", "--parent", "p", "--lock-wait", "0"]).is(75, "busy");
    assert_eq!(root.bytes(), before);
    root.go("locked-task");
    let _ = root.finish(holder).is(0, "stopped");
    let _ = root.json(&["reserve", "c", "--parent", "p"]).is(10, "ancestor-stopped");
}

#[test]
fn the_ancestors_of_a_task_follow_from_a_parent_that_is_a_task() {
    let root = TestRoot::new();
    let ancestors = |task: &str| root.row(task)["ancestors"].to_string();
    let _ = root.reserve_with("p", &["--ancestor", "org", "--ancestor", "top"]);
    assert_eq!(ancestors("p"), r#"["org","top"]"#, "a parent that is no task knows none itself");
    let _ = root.json(&["reserve", "c", "--parent", "p"]).is(0, "reserved");
    assert_eq!(ancestors("c"), r#"["ws","org","top"]"#);
    let mut same = vec!["reserve", "d", "--parent", "c"];
    same.extend(["--ancestor", "p", "--ancestor", "ws", "--ancestor", "org", "--ancestor", "top"]);
    let _ = root.json(&same).is(0, "reserved");
    assert_eq!(ancestors("d"), r#"["p","ws","org","top"]"#);

    let before = root.bytes();
    for other in [&["ws"][..], &["top", "org", "ws"], &["ws", "org", "top", "more"]] {
        let mut args = vec!["reserve", "e", "--parent", "p"];
        args.extend(other.iter().flat_map(|name| ["--ancestor", name]));
        let refused = root.json(&args).is(64, "usage");
        let known = "task `p` has the ancestors ws, org, top";
        assert!(refused.get("message").starts_with(known), "{refused}");
    }
    assert_eq!(root.bytes(), before);
    let _ = root.json(&["stop", "d"]).is(0, "stopped");
    let tree = root.tree();
    let receipts = tree.lines().filter(|line| line.contains("-settlements/d/att_")).count();
    assert_eq!(receipts, 5, "a copy for the parent and one for every ancestor: {tree}");
}

#[test]
fn a_task_is_not_its_own_ancestor() {
    let root = TestRoot::new();
    let _ = root.json(&["reserve", "a", "--parent", "a"]).is(64, "usage");
    let _ = root.json(&["reserve", "a", "--parent", "b", "--ancestor", "a"]).is(64, "usage");
    let _ = root.json(&["reserve", "a", "--parent", "b"]).is(0, "reserved");
    let _ = root.json(&["reserve", "b", "--parent", "a"]).is(64, "usage");
}

#[test]
fn nothing_is_reserved_below_a_stopped_ancestor_until_that_goes_on() {
    let root = TestRoot::new();
    let _ = root.reserve("p").launched();
    let _ = root.json(&["reserve", "c", "--parent", "p"]).is(0, "reserved");
    let _ = root.json(&["stop", "p"]).is(0, "stopped");
    let before = root.bytes();
    for parent in ["p", "c"] {
        let refused = root.json(&["reserve", "d", "--parent", parent]).is(10, "ancestor-stopped");
        assert_eq!(refused.get("ancestor"), "p");
    }
    insta::assert_snapshot!(root.run(&["reserve", "d", "--parent", "c"]), @"
    exit 10
    --- stderr
    lychgate reserve: refused (ancestor-stopped): ancestor `p` is stopped, so `d` is not reserved under it
    ");
    assert_eq!(root.bytes(), before);
    let _ = root.json(&["rotate", "p", "--as", "reawaken"]).is(0, "rotated");
    let _ = root.json(&["reserve", "d", "--parent", "c"]).is(0, "reserved");
}

#[test]
fn an_attempt_that_its_owner_settled_does_not_shut_what_is_below() {
    let root = TestRoot::new();
    let parent = root.reserve("p").launched();
    let _ = root.json(&["settle", "p", "--token", &parent.token]).is(0, "settled");
    let _ = root.json(&["reserve", "c", "--parent", "p"]).is(0, "reserved");
}

#[test]
fn the_process_of_an_owner_is_recorded_or_refused() {
    let root = TestRoot::new();
    let out = root.json(&["reserve", "t1", "--parent", "ws", "--owner-pid", &alive(), "--owner", "me"]);
    assert_eq!(out.json()["hint"], serde_json::Value::Null, "{out}");
    let owner = root.row("t1")["attempt"]["owner"].clone();
    assert_eq!(owner["name"], "me");
    assert_eq!(owner["process"]["pid"], std::process::id());
    for part in ["startTicks", "bootId", "pidNamespace"] {
        assert!(!owner["process"][part].is_null(), "{part}: {owner}");
    }

    let unnamed = root.json(&["reserve", "t2", "--parent", "ws"]).is(0, "reserved");
    assert!(unnamed.get("hint").contains("--owner-pid"), "{unnamed}");
    assert_eq!(root.row("t2")["attempt"]["owner"], serde_json::json!({}));

    let gone = Process::start();
    let pid = gone.pid();
    gone.die();
    let before = root.bytes();
    for pid in [pid.as_str(), NOBODY] {
        let args = ["reserve", "t3", "--parent", "ws", "--owner-pid", pid, "--token-file", &root.file("tok")];
        let _ = root.json(&args).is(10, "owner-pid-unreadable");
    }
    for pid in ["0", "-1", "x", "99999999999"] {
        let _ = root.json(&["reserve", "t3", "--parent", "ws", "--owner-pid", pid]).is(64, "usage");
    }
    assert_eq!(root.bytes(), before);
    assert!(!std::path::Path::new(&root.file("tok")).exists(), "a refused reservation leaves no token");
}

#[test]
fn a_step_gives_its_task_the_first_free_number() {
    let root = TestRoot::new();
    let reserve = |run: &str| {
        root.json(&["reserve", "--parent", "ws", "--run", run, "--step", "build", "--input-hash", "h"])
    };
    let _ = root.reserve("r.build.2");
    assert_eq!(reserve("r").is(0, "reserved").get("taskId"), "r.build.1");
    assert_eq!(reserve("r").is(0, "reserved").get("taskId"), "r.build.3");
    let _ = reserve(&"r".repeat(125)).is(64, "usage");
    assert_eq!(
        root.row("r.build.3")["workflowTask"].to_string(),
        r#"{"runId":"r","stepId":"build","inputHash":"h"}"#
    );
}

#[test]
fn a_reservation_that_is_not_said_completely_is_usage() {
    let root = TestRoot::new();
    let long = "x".repeat(129);
    let calls: [&[&str]; 9] = [
        &["t1"],
        &["--parent", "ws"],
        &["t1", "--parent", "ws", "--run", "r"],
        &["t1", "--parent", "ws", "--step", "s", "--input-hash", "h"],
        &["--replaces", "t1"],
        &["t1", "--parent", "ws", "--nonce", "n"],
        &[&long, "--parent", "ws"],
        &["", "--parent", "ws"],
        &["a\nb", "--parent", "ws"],
    ];
    for call in calls {
        let _ = root.json(&[&["reserve"], call].concat()).is(64, "usage");
    }
    assert_eq!(root.tree(), "", "a call that is not understood makes no root");
    for odd in ["a/../../b", ".", "..", "CON", "a b", "漢", &"漢".repeat(42), "-x"] {
        let _ = root.run(&["reserve", "--json", "--parent", "ws", "--", odd]).is(0, "reserved");
        assert_eq!(root.run(&["inspect", "--json", "--", odd]).get("taskId"), odd);
    }
    insta::assert_snapshot!(root.run(&["reserve", "t1"]), @"
    exit 64
    --- stderr
    lychgate reserve: usage (usage): the following required arguments were not provided: --parent <WS>
    hint: see `lychgate reserve --help`
    ");
}

mod token_files {
    use std::os::unix::fs::PermissionsExt as _;

    use crate::common::TestRoot;

    #[test]
    fn a_token_file_takes_the_token_out_of_the_answer() {
        let root = TestRoot::new();
        let file = root.file("t1.token");
        let out = root.json(&["reserve", "t1", "--parent", "ws", "--token-file", &file]).is(0, "reserved");
        assert!(!out.stdout.contains("tok_"), "{out}");
        assert_eq!(out.get("tokenFile"), "[DIR]/t1.token");
        let token = std::fs::read_to_string(&file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let _ = root.json(&["settle", "t1", "--token", token.trim()]).is(0, "settled");
    }

    #[test]
    fn an_existing_token_file_is_refused_and_left_as_it_is() {
        let root = TestRoot::new();
        let file = root.file("tok");
        std::fs::write(&file, "precious").unwrap();
        let reserve = ["reserve", "t1", "--parent", "ws", "--token-file", &file];
        let _ = root.json(&reserve).is(10, "token-file-exists");
        insta::assert_snapshot!(root.run(&reserve), @"
        exit 10
        --- stderr
        lychgate reserve: refused (token-file-exists): the token file `[DIR]/tok` cannot be written: File exists (os error 17)
        hint: name a new file; a token is never written over
        ");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("nowhere", &file).unwrap();
        let _ = root.json(&reserve).is(10, "token-file-exists");
        assert!(!root.tree().contains("tasks/t1"), "{}", root.tree());
        let nowhere = root.file("no/such/folder");
        let _ = root.json(&["reserve", "t1", "--parent", "ws", "--token-file", &nowhere]).is(74, "io");
        let _ = root.json(&["reserve", "t1", "--parent", "ws"]).is(0, "reserved");
    }

    #[test]
    fn a_repeated_reservation_gives_its_token_file_again() {
        let root = TestRoot::new();
        let file = root.file("tok");
        let args = ["reserve", "t1", "--parent", "ws", "--token-file", &file, "--request-id", "r1"];
        let first = root.json(&args).is(0, "reserved");
        let token = std::fs::read(&file).unwrap();
        assert_eq!(root.json(&args).stdout, first.stdout);
        assert_eq!(std::fs::read(&file).unwrap(), token, "the file of the first call is its own");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(root.json(&args).stdout, first.stdout);
        assert_eq!(std::fs::read(&file).unwrap(), token, "a lost file is written again");
        std::fs::write(&file, "somebody else's").unwrap();
        let _ = root.json(&args).is(10, "token-file-exists");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "somebody else's");
    }
}
