//! `settle`: who may, what is done already, what is owed to whom, and what cannot be written.

use std::io::Write as _;
use std::os::fd::AsRawFd as _;

use crate::common::{TestRoot, without_tokens};
use crate::kit::{history, pinned, receipts, refused};
use crate::settle::{below_two, pending};

#[test]
fn only_the_owner_of_the_very_attempt_may_end_its_turns_and_sends() {
    let root = TestRoot::new();
    let mut task = root.reserve_with("t1", &["--owner", "bob"]).launched();
    let (old, old_token) = (task.turn(), task.token.clone());
    let stranger = root.reserve("t2");
    task.root.json(&["stop", "t1"]).is(0, "stopping");
    task.root.json(&["rotate", "t1", "--as", "reawaken"]).is(12, "cleanup-pending");
    let out = root.json(&["rotate", "t1", "--as", "reawaken", "--unproven"]).is(0, "rotated");
    (task.attempt, task.token, task.worker) =
        (out.get("attemptId"), out.get("token"), out.get("workerToken"));
    let send = pending(&task);
    let turn = task.turn();
    for (what, good) in [
        (vec!["--turn", &turn], &task.token),
        (vec!["--turn", &old], &old_token),
        (vec!["--send", &send, "--as", "refused"], &task.token),
        (vec![], &task.token),
    ] {
        for bad in
            [&task.token, &old_token, &task.worker, &stranger.token, &"tok_0".to_owned(), &"x".to_owned()]
        {
            if bad != good {
                let mut args = vec!["settle", "t1", "--token", bad];
                args.extend(what.iter());
                refused(&root, &args, 10, "not-owner");
            }
        }
        let mut args = vec!["settle", "t1"];
        args.extend(what.iter());
        refused(&root, &args, 10, "not-owner");
    }
    let worker = ["settle", "t1", "--turn", &turn, "--token", &task.worker];
    insta::assert_snapshot!(pinned(&root.run(&worker)), @"
    exit 10
    --- stderr
    lychgate settle: refused (not-owner): attempt att_f908fb94e17cee91 of task `t1` needs the token, and a worker's token may report and admit, not settle
    hint: pass --token, --token-file or --token-fd, or set LYCHGATE_TOKEN; anyone may `stop`
    ");
    root.json(&["settle", "t1", "--turn", &old, "--token", &old_token]).is(0, "turn-settled");
    root.json(&["settle", "t1", "--turn", &turn, "--token", &task.token]).is(0, "turn-settled");
}

#[test]
fn the_token_comes_from_an_option_a_file_a_descriptor_or_the_environment_of_that_task() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let file = root.file("token");
    std::fs::write(&file, format!("{}\n", task.token)).unwrap();
    let by_file = ["settle", "t1", "--turn", &task.turn(), "--token-file", &file];
    let out = root.json(&by_file).is(0, "turn-settled");
    assert!(!out.stdout.contains("tok_"), "{out}");

    let mut opened = tempfile::tempfile().unwrap();
    opened.write_all(task.token.as_bytes()).unwrap();
    std::io::Seek::rewind(&mut opened).unwrap();
    // A shell hands the open file on under a number of its choice.
    let turn = task.turn();
    let shell =
        format!("exec {} settle t1 --turn {turn} --token-fd 7 --json 7</proc/self/fd/0", crate::common::BIN);
    let mut command = root.command(&[]);
    let mut through = std::process::Command::new("sh");
    through.args(["-c", &shell]).env_clear().stdout(std::process::Stdio::piped());
    through.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    assert!(opened.as_raw_fd() > 2);
    through.stdin(opened);
    root.finish(through.spawn().unwrap()).is(0, "turn-settled");

    let turn = task.turn();
    let with_environment = |about: &str, args: &[&str]| {
        command = root.command(args);
        command.arg("--json").env("LYCHGATE_TASK", about).env("LYCHGATE_TOKEN", &task.token);
        command.env("LYCHGATE_ATTEMPT", &task.attempt);
        root.finish(command.spawn().unwrap())
    };
    let mut with_environment = with_environment;
    with_environment("t2", &["settle", "t1", "--turn", &turn]).is(10, "not-owner");
    with_environment("", &["settle", "--turn", &turn]).is(64, "usage");
    with_environment("t1", &["settle", "--turn", &turn]).is(0, "turn-settled");
    with_environment("t1", &["settle"]).is(0, "settled");
}

#[test]
fn the_environment_of_an_earlier_attempt_does_not_end_its_successor() {
    let root = TestRoot::new();
    let mut task = root.reserve("t1").launched();
    let (attempt, token) = (task.attempt.clone(), task.token.clone());
    root.json(&["stop", "t1"]).is(0, "stopped");
    task.rotated("reawaken");
    let mut command = root.command(&["settle", "t1", "--token", &task.token, "--json"]);
    command.envs([("LYCHGATE_TASK", "t1"), ("LYCHGATE_ATTEMPT", &attempt), ("LYCHGATE_TOKEN", &token)]);
    root.finish(command.spawn().unwrap()).is(10, "stale-attempt");
    assert_eq!(root.row("t1")["taskStatus"], "running");
}

#[test]
fn an_attempt_that_is_named_must_be_the_current_one_whatever_is_settled() {
    let root = TestRoot::new();
    let mut task = root.reserve("t1").launched();
    let first = task.attempt.clone();
    root.json(&["stop", "t1"]).is(0, "stopped");
    task.rotated("reawaken");
    let (turn, send) = (task.turn(), pending(&task));
    for what in [
        vec!["--turn", &turn],
        vec!["--turn", &turn, "--close"],
        vec!["--send", &send, "--as", "canceled"],
        vec!["--cleanup", "cln_00000000000000000000000000000000"],
        vec![],
    ] {
        let mut args = vec!["settle", "t1", "--attempt", &first, "--token", &task.token];
        args.extend(what.iter());
        let out = refused(&root, &args, 10, "stale-attempt");
        assert_eq!(out.get("currentAttemptId"), task.attempt);
    }
    let args = ["settle", "t1", "--attempt", &task.attempt, "--turn", &turn, "--token", &task.token];
    root.json(&args).is(0, "turn-settled");
}

#[test]
fn settling_the_same_thing_again_is_done_already() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let (turn, send) = (task.turn(), pending(&task));
    let stop = ["stop", "t1", "--cleanup", "worktree"];
    let settle_send = ["settle", "t1", "--send", &send, "--as", "no-work", "--token", &task.token];
    root.json(&settle_send).is(0, "send-settled");
    root.json(&settle_send).is(0, "already-settled");
    let cleanup = root.json(&stop).is(0, "stopping").get("cleanupId");
    task.settle(&turn).is(0, "turn-settled");
    task.settle(&turn).is(0, "already-settled");
    root.json(&["settle", "t1", "--cleanup", &cleanup]).is(0, "cleanup-paid");
    root.json(&["settle", "t1", "--cleanup", &cleanup]).is(0, "already-settled");
    insta::assert_snapshot!(pinned(&root.json(&["settle", "t1", "--token", &task.token])), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"settle","code":"already-settled","root":"[DIR]/root","requestId":"req_1941b2f896422154","taskId":"t1","attemptId":"att_de15204e35ca515e","taskStatus":"interrupted","phase":"settled","stopEpoch":1,"receipt":"execution-settled","owed":[],"message":"the attempt of task `t1` was settled before"}
    "#);
    insta::assert_snapshot!(pinned(&root.json(&["settle", "t1", "--turn", &turn, "--close", "--token", &task.token])), @r#"
    exit 0
    --- stdout
    {"ok":true,"command":"settle","code":"already-settled","root":"[DIR]/root","requestId":"req_17d236eb1270881d","taskId":"t1","attemptId":"att_de15204e35ca515e","taskStatus":"interrupted","phase":"settled","stopEpoch":1,"receipt":"execution-settled","owed":[],"turnId":"turn_de15204e35ca515e0001","turnAttemptId":"att_de15204e35ca515e","message":"turn turn_de15204e35ca515e0001 of task `t1` had ended before"}
    "#);
}

#[test]
fn an_old_turn_id_never_ends_a_newer_turn() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let old = task.turn();
    task.settle(&old).is(0, "turn-settled");
    let new = task.turn();
    let out = task.settle(&old).is(0, "already-settled");
    assert_eq!(out.get("owed.0.turnId"), new);
    for never in [format!("{new}0"), "turn_00000000000000000009".to_owned(), new.replace("0002", "0003")] {
        refused(&root, &["settle", "t1", "--turn", &never, "--token", &task.token], 10, "no-such-turn");
    }
    let out = root.json(&["settle", "t1", "--turn", &old, "--close", "--token", &task.token]);
    assert_eq!(
        out.is(12, "obligations-owed").get("owed.0.turnId"),
        new,
        "closed, and the newer turn still runs"
    );
}

#[test]
fn a_turn_of_a_superseded_attempt_ends_under_its_own_token_and_leaves_no_receipt() {
    let root = TestRoot::new();
    let mut task = root.reserve_unknown("t1").launched();
    let (old, token) = (task.turn(), task.token.clone());
    task.root.json(&["stop", "t1"]).is(0, "stopping");
    let out = root.json(&["rotate", "t1", "--as", "reawaken", "--unproven"]).is(0, "rotated");
    (task.attempt, task.token) = (out.get("attemptId"), out.get("token"));
    refused(&root, &["settle", "t1", "--turn", &old, "--close", "--token", &token], 10, "stale-attempt");
    let out = root.json(&["settle", "t1", "--turn", &old, "--token", &token]).is(0, "turn-settled");
    assert_eq!((out.get("phase"), out.get("receipt")), ("open".to_owned(), "null".to_owned()));
    assert_ne!(out.get("turnAttemptId"), out.get("attemptId"));
    root.json(&["settle", "t1", "--turn", &old, "--close", "--token", &token]).is(0, "already-settled");
    assert_eq!(receipts(&root), "");
}

#[test]
fn an_attempt_that_is_not_eligible_or_nobodys_settles_without_a_receipt() {
    let root = TestRoot::new();
    let task = root.reserve_unknown("marked").launched();
    task.turn();
    root.json(&["stop", "marked"]).is(0, "stopping");
    let out = root.json(&["rotate", "marked", "--as", "reawaken", "--unproven"]).is(0, "rotated");
    let out = root.json(&["settle", "marked", "--token", &out.get("token")]).is(0, "settled");
    assert_eq!((out.get("phase"), out.get("receipt")), ("settled".to_owned(), "null".to_owned()));
    let nobodys = root.reserve_unknown("nobodys").launched();
    root.json(&["rotate", "nobodys", "--as", "startup", "--unproven"]).is(0, "rotated");
    let attempt = root.json(&["inspect", "nobodys"]).get("identity.attemptId");
    let turn =
        root.json(&["admit", "nobodys", "--attempt", &attempt, "--start"]).is(0, "admitted").get("turnId");
    root.json(&["settle", "nobodys", "--turn", &turn]).is(0, "turn-settled");
    insta::assert_snapshot!(pinned(&root.run(&["settle", "nobodys"])), @"
    exit 0
    --- stdout
    task `nobodys` is interrupted; the attempt is settled, without a receipt
    taskId:        nobodys
    attemptId:     att_0daf88152e5bf2f2
    taskStatus:    interrupted
    phase:         settled
    stopEpoch:     0
    owed:          none
    canceledSends: 0
    ");
    assert_eq!(receipts(&root), "");
    drop(nobodys);
}

#[test]
fn whoever_pays_the_last_debt_of_a_stop_writes_the_receipt() {
    let root = TestRoot::new();
    for (id, cleanups_first) in [("t1", true), ("t2", false)] {
        let task = root.reserve(id).launched();
        let turn = task.turn();
        let first = root.json(&["stop", id, "--cleanup", "worktree"]).is(0, "stopping").get("cleanupId");
        let second =
            root.json(&["stop", id, "--cleanup", "container"]).is(0, "already-stopping").get("cleanupId");
        let pay = |cleanup: &str| root.json(&["settle", id, "--cleanup", cleanup]).is(0, "cleanup-paid");
        let (last, how) = if cleanups_first {
            assert_eq!(pay(&second).get("phase"), "closing");
            assert_eq!(pay(&first).get("phase"), "closing");
            (task.settle(&turn).is(0, "turn-settled"), "the owner")
        } else {
            assert_eq!(task.settle(&turn).is(0, "turn-settled").get("phase"), "closing");
            assert_eq!(pay(&first).get("receipt"), "null");
            (pay(&second), "a stranger with the id of the cleanup")
        };
        assert_eq!(last.get("receipt"), "execution-settled", "paid last by {how}");
        assert_eq!(last.get("phase"), "settled");
    }
    insta::assert_snapshot!(receipts(&root), @r#"
    sessions/ws/subagent-attempt-settlements/t1/att_de15204e35ca515e.json
      {"version":1,"taskId":"t1","attemptId":"att_de15204e35ca515e","parentWorkspaceId":"ws","source":"execution-settled","settledAt":"2026-01-01T00:00:08.000Z"}
    sessions/ws/subagent-attempt-settlements/t2/att_0daf88152e5bf2f2.json
      {"version":1,"taskId":"t2","attemptId":"att_0daf88152e5bf2f2","parentWorkspaceId":"ws","source":"execution-settled","settledAt":"2026-01-01T00:00:16.000Z"}
    "#);
    insta::assert_snapshot!(history(&root, "t2"), @"
    reserve | reserved | - | queued/open | -
    rotate | launched | queued/open | starting/open | -
    admit | admitted | starting/open | running/open | -
    stop | stopping | running/open | interrupted/closing | -
    stop | already-stopping | interrupted/closing | interrupted/closing | -
    settle | turn-settled | interrupted/closing | interrupted/closing | -
    settle | cleanup-paid | interrupted/closing | interrupted/closing | -
    settle | cleanup-paid | interrupted/closing | interrupted/settled | -
    ");
}

#[test]
fn a_cleanup_id_alone_pays_and_only_a_debt_that_is_owed() {
    let root = TestRoot::new();
    let mut task = root.reserve("t1").launched();
    let cleanup = root.json(&["stop", "t1", "--cleanup", "worktree"]).is(0, "stopping").get("cleanupId");
    let never = "cln_00000000000000000000000000000000";
    refused(&root, &["settle", "t1", "--cleanup", never], 10, "no-such-cleanup");
    insta::assert_snapshot!(pinned(&root.run(&["settle", "t1", "--cleanup", &cleanup])), @"
    exit 0
    --- stdout
    a cleanup of task `t1` is paid; the attempt is settled and its receipt is written
    taskId:     t1
    attemptId:  att_de15204e35ca515e
    taskStatus: interrupted
    phase:      settled
    stopEpoch:  1
    receipt:    launch-failed
    owed:       none
    cleanupId:  cln_6b60908f0b05dfa2bf65097df4cc7e82
    ");
    task.rotated("reawaken");
    root.json(&["settle", "t1", "--cleanup", &cleanup]).is(0, "already-settled");
}

#[test]
fn a_send_ends_without_a_turn_only_while_it_has_none() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let sends = [pending(&task), pending(&task), pending(&task)];
    for (send, end) in sends.iter().zip(["refused", "no-work", "canceled"]) {
        let out = root.json(&["settle", "t1", "--send", send, "--as", end, "--token", &task.token]);
        let out = out.is(0, "send-settled");
        assert!(out.get("as").starts_with(end), "{out}");
        refused(&root, &["admit", "t1", "--send", send, "--start", "--token", &task.token], 10, "turn-ended");
    }
    let send = pending(&task);
    root.json(&["admit", "t1", "--send", &send, "--queued", "--token", &task.token]).is(0, "enqueued");
    let text = ["settle", "t1", "--send", &send, "--as", "canceled", "--token", &task.token];
    insta::assert_snapshot!(pinned(&root.run(&text)), @"
    exit 0
    --- stdout
    send snd_de15204e35ca515e0004 of task `t1` is discharged: canceled-before-admission
    taskId:     t1
    attemptId:  att_de15204e35ca515e
    taskStatus: starting
    phase:      open
    stopEpoch:  0
    owed:       none
    sendId:     snd_de15204e35ca515e0004
    as:         canceled-before-admission
    ");
    let send = pending(&task);
    root.json(&["admit", "t1", "--send", &send, "--start", "--token", &task.token]).is(0, "admitted");
    let args = ["settle", "t1", "--send", &send, "--as", "canceled", "--token", &task.token];
    refused(&root, &args, 10, "send-admitted");
    insta::assert_snapshot!(pinned(&root.run(&args)), @"
    exit 10
    --- stderr
    lychgate settle: refused (send-admitted): send snd_de15204e35ca515e0005 of task `t1` has turn turn_de15204e35ca515e0001; a turn ends, it is not canceled
    hint: when it has ended, or if you know that it never started: lychgate settle t1 --turn turn_de15204e35ca515e0001
    ");
    let never = "snd_00000000000000000009";
    let args = ["settle", "t1", "--send", never, "--as", "canceled", "--token", &task.token];
    refused(&root, &args, 10, "no-such-send");
}

#[test]
fn the_same_request_again_gets_the_same_answer_and_another_wish_is_refused() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let turn = task.turn();
    let args = ["settle", "t1", "--turn", &turn, "--close", "--token", &task.token, "--request-id", "r1"];
    let first = root.json(&args).is(0, "turn-settled");
    let again = root.json(&args).is(0, "turn-settled");
    assert_eq!(first.stdout, again.stdout);
    let other = ["settle", "t1", "--token", &task.token, "--request-id", "r1"];
    refused(&root, &other, 10, "request-id-reused");
}

#[test]
fn an_answer_that_is_lost_after_the_change_is_uncertain_and_its_repeat_says_it_again() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    task.turn();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = ["settle", "t1", "--token", &task.token, "--request-id", "r1"];
    let mut command = root.command(&args);
    let lost = root.finish(command.stdout(full()).spawn().unwrap());
    assert_eq!(lost.exit, 71, "admission was shut, so this is no failure that changed nothing: {lost}");
    insta::assert_snapshot!(lost, @"
    exit 71
    --- stderr
    lychgate settle: uncertain (answer-not-delivered): the change is durable, but its answer could not be printed: No space left on device (os error 28)
    hint: repeat the call with --request-id r1; it answers what this one did
    ");
    root.json(&args).is(12, "obligations-owed");
    let mut command = root.command(&["settle", "t1", "--json"]);
    let lost = root.finish(command.stdout(full()).spawn().unwrap());
    assert_eq!(lost.exit, 74, "a refusal changed nothing: {lost}");
}

#[test]
fn a_receipt_that_cannot_be_written_leaves_the_attempt_as_it_was_and_parent_only_leads_on() {
    let root = TestRoot::new();
    let task = below_two(&root);
    let turn = task.turn();
    root.json(&["stop", "t1"]).is(0, "stopping");
    std::fs::write(root.path().join("sessions/top"), b"in the way").unwrap();
    let args = ["settle", "t1", "--turn", &turn, "--token", &task.token];
    let out = root.json(&args);
    assert!([65, 74].contains(&out.exit), "{out}");
    assert_eq!(receipts(&root), "", "no copy without all of them");
    assert_eq!(root.row("t1")["sends"].as_array().unwrap().len(), 1);
    let mut parent_only = args.to_vec();
    parent_only.extend(["--receipt", "parent-only"]);
    let out = root.json(&parent_only).is(0, "turn-settled");
    assert_eq!(out.get("receipt"), "execution-settled");
    assert!(receipts(&root).starts_with("sessions/ws/"), "{}", receipts(&root));
}

#[test]
fn a_foreign_file_where_the_receipt_belongs_is_never_written_over() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let turn = task.turn();
    let folder = root.path().join("sessions/ws/subagent-attempt-settlements/t1");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{}.json", task.attempt));
    std::fs::write(&file, b"{\"version\":1}").unwrap();
    let args = ["settle", "t1", "--turn", &turn, "--close", "--token", &task.token];
    let out = root.json(&args).is(11, "receipt-unreadable");
    assert_eq!(std::fs::read(&file).unwrap(), b"{\"version\":1}");
    assert_eq!(root.row("t1")["taskStatus"], "running");
    insta::assert_snapshot!(without_tokens(&out.get("message")), @"`[DIR]/root/sessions/ws/subagent-attempt-settlements/t1/att_de15204e35ca515e.json` is in the way of a receipt: it is not the same record");
}

#[test]
fn a_damaged_row_and_a_held_lock_change_nothing() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let turn = task.turn();
    let args = ["settle", "t1", "--turn", &turn, "--token", &task.token];
    let held = root.paused(&["stop", "t1"], "locked-task");
    root.wait_reached("locked-task");
    let mut busy = args.to_vec();
    busy.extend(["--lock-wait", "0"]);
    refused(&root, &busy, 75, "busy");
    root.go("locked-task");
    root.finish(held).is(0, "stopping");
    let path = root.path().join("tasks/t1/row.json");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refused(&root, &args, 65, "row-unreadable");
}

#[test]
fn a_token_of_an_earlier_attempt_does_not_end_an_attempt_that_nobody_owns() {
    let root = TestRoot::new();
    let task = root.reserve_unknown("t").launched();
    let again = root.json(&["rotate", "t", "--as", "startup", "--unproven"]).is(0, "rotated");
    assert_eq!(again.get("owned"), "false");
    let before = root.bytes();
    let _ = root.json(&["settle", "t", "--token", &task.token]).is(10, "not-owner");
    assert_eq!(root.bytes(), before);
    let _ = root.json(&["settle", "t"]).is(0, "settled");
}
