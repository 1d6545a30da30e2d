//! Locks: A33, A35, A37, A39, A41, A43 and A57. A lock here is the kernel's, on a folder that is never removed,
//! so there is nothing to break, to steal or to clean up.

use std::process::{Command, Stdio};

use crate::actors::PATIENT;
use crate::common::{BIN, TestRoot};
use crate::field::{crashed, injected};

#[test]
fn a33_litter_of_other_lock_schemes_and_a_holder_killed_inside_the_lock_hold_nobody_up() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    for folder in [root.path(), root.path().join("tasks"), root.path().join("tasks/t")] {
        for name in ["lock", ".lock.d", "state.lock", ".lock.stale", "row.json.lock"] {
            std::fs::create_dir(folder.join(name)).unwrap();
        }
        std::fs::write(folder.join("pid"), b"999999").unwrap();
    }
    root.park(&["stop", "t"], "locked-task").kill();
    let _ = task.begin().is(0, "admitted");
    let names: Vec<String> = (0..12).map(|n| format!("c{n}")).collect();
    let calls: Vec<Vec<&str>> = names.iter().map(|name| vec!["reserve", name, "--parent", "ws"]).collect();
    for outcome in root.at_once(&calls) {
        let _ = outcome.is(0, "reserved");
    }
    let _ = root.json(&["inspect"]).exit;
    assert_eq!(task.seen("outcome"), "live");
}

#[test]
fn a33_two_calls_never_hold_one_lock_though_one_waited_for_a_dead_holder() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let dead = root.park(&["stop", "t"], "locked-task");
    let admit = ["admit", "t", "--attempt", &task.attempt, "--token", &task.token];
    let waiting: Vec<_> = (0..6).map(|_| root.start(&[&admit[..], &PATIENT].concat())).collect();
    dead.kill();
    let sends: Vec<String> =
        waiting.into_iter().map(|child| root.finish(child).is(0, "registered").get("sendId")).collect();
    let mut distinct = sends.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), sends.len(), "two calls worked on one state: {sends:?}");
    assert_eq!(root.row("t")["sends"].as_array().unwrap().len(), sends.len());
}

#[test]
fn a35_six_claimants_in_eight_rounds_never_own_one_thing_twice() {
    let root = TestRoot::new();
    for round in 0..8 {
        let id = format!("m{round}");
        let task = root.reserve_step(&id).launched();
        let _ = task.stop().is(0, "stopped");
        let claim = ["claim-retire", &id, "--attempt", &task.attempt, "--run", "run", "--step", "step"];
        let claim = [&claim[..], &["--input-hash", "hash", "--parent", "ws"], &PATIENT].concat();
        let grants = root.at_once(&vec![claim; 6]);
        let nonces: Vec<String> =
            grants.into_iter().map(|grant| grant.is(0, "claimed").get("nonce")).collect();
        // Each grant voids the ones before it, so that of six claimants one can spend it.
        let names: Vec<String> = (0..6).map(|n| format!("{id}.{n}")).collect();
        let calls: Vec<Vec<&str>> = names
            .iter()
            .zip(&nonces)
            .map(|(name, nonce)| {
                [&["reserve", name, "--replaces", &id, "--nonce", nonce][..], &PATIENT].concat()
            })
            .collect();
        let outcomes = root.at_once(&calls);
        assert_eq!(outcomes.iter().filter(|outcome| outcome.exit == 0).count(), 1, "round {round}");
        let made = names.iter().filter(|name| root.path().join("tasks").join(name).join("row.json").exists());
        assert_eq!(made.count(), 1, "round {round}");
    }
}

#[test]
fn a37_inspect_names_every_id_that_leads_out_and_no_lock_needs_to_be_forced() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    let send = task.send();
    let seen = root.json(&["inspect", "t", "--explain"]).is(0, "ok");
    assert_eq!(seen.get("identity.attemptId"), task.attempt);
    assert_eq!((seen.get("turns.0.turnId"), seen.get("sends.0.sendId")), (turn.clone(), send));
    let cleanup = root.json(&["stop", "t", "--cleanup", "tree"]).is(0, "stopping").get("cleanupId");
    let seen = root.json(&["inspect", "t"]).is(0, "ok");
    assert!(seen.get("next").contains(&turn) && seen.get("next").contains(&cleanup), "{seen}");
    root.park(&["settle", "t", "--cleanup", &cleanup], "before-rename").kill();
    let _ = root.json(&["settle", "t", "--cleanup", &cleanup, "--lock-wait", "0"]).is(0, "cleanup-paid");
}

#[test]
fn a39_after_a_kill_at_any_instant_every_call_works_at_once() {
    let mut n_killed = 0;
    for call in ["flock", "openat", "write", "fsync", "renameat", "mkdirat"] {
        for n in [1, 2, 3, 5] {
            let root = TestRoot::new();
            let task = root.reserve("t").launched();
            n_killed += u32::from(crashed(&root, call, n, &["stop", "t"]));
            let at = format!("{call} #{n}");
            let outcome = task.stands();
            assert!(matches!(outcome.as_str(), "live" | "terminal-no-report"), "{at}: {outcome}");
            let next = root.json(&["reserve", "next", "--parent", "ws", "--lock-wait", "0"]);
            assert_eq!(next.exit, 0, "{at}: {next}");
            let again = root.json(&["stop", "t", "--lock-wait", "0"]);
            let code = if outcome == "live" { "stopped" } else { "already-stopped" };
            assert_eq!((again.exit, again.code().as_str()), (0, code), "{at}: {again}");
            assert_eq!(task.receipts(), [task.attempt.as_str()], "{at}");
        }
    }
    assert!(n_killed >= 15, "only {n_killed} calls were killed");
}

#[test]
fn a41_a_holder_in_another_pid_namespace_is_waited_for_and_never_broken() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let hidden = |wait: &str| {
        let plain = root.command(&[]);
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc", BIN, "stop", "t", "--json", "--lock-wait", wait]);
        command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let holder =
        root.park(&["admit", "t", "--attempt", &task.attempt, "--token", &task.token], "before-rename");
    let _ = root.finish(hidden("0")).is(75, "busy");
    let waiting = hidden("60s");
    let _ = holder.go().is(0, "registered");
    let stopped = root.finish(waiting).is(0, "stopped");
    assert_eq!(stopped.get("canceledSends"), "1", "it saw what the hidden holder wrote");
}

#[test]
fn a43_every_file_is_closed_on_exec_and_no_process_starts_under_a_lock() {
    let root = TestRoot::new();
    let task = root.reserve_step("t").launched();
    let turn = task.turn();
    std::fs::write(root.scratch().join("report"), "done").unwrap();
    let calls: [&[&str]; 5] = [
        &["reserve", "new", "--parent", "ws"],
        &["report", "t", "--attempt", &task.attempt, "--token", &task.token, "--file", "report"],
        &["settle", "t", "--turn", &turn, "--close", "--token", &task.token],
        &["stop", "t"],
        &["inspect"],
    ];
    for call in calls {
        let log = root.scratch().join("strace.log");
        let plain = root.command(&[]);
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o"]).arg(&log);
        command.args([
            "-e",
            "trace=open,openat,openat2,fcntl,ioctl,dup,dup2,dup3,flock,execve,clone,clone3,fork,vfork",
        ]);
        command.arg(BIN).args(call).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let out = command.current_dir(root.scratch()).stdin(Stdio::null()).output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{call:?}");
        let log = std::fs::read_to_string(log).unwrap();
        let inside = |line: &&str| line.contains("open") && !line.contains("= -1");
        for line in log.lines().filter(inside) {
            assert!(line.contains("O_CLOEXEC"), "{call:?}: {line}");
        }
        for inheritable in
            ["F_SETFD, 0)", "FIONCLEX", "F_DUPFD,", "dup(", "dup2(", "fork(", "clone(", "clone3("]
        {
            assert!(!log.contains(inheritable), "{call:?}: {inheritable}\n{log}");
        }
        assert_eq!(log.matches("execve(").count(), 1, "{call:?}: only the call itself");
        assert_eq!(log.contains("flock("), call[0] != "inspect", "{call:?}");
    }
}

#[test]
fn a57_where_the_lock_call_fails_nothing_goes_on_without_it() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    for error in ["ENOLCK", "EBADF", "EOPNOTSUPP", "EIO", "EINVAL", "ENOSYS"] {
        for call in [
            vec!["stop", "t"],
            vec!["admit", "t", "--attempt", &task.attempt, "--start", "--token", &task.token],
            vec!["rotate", "t", "--as", "startup", "--unproven"],
        ] {
            let before = root.bytes();
            let outcome = injected(&root, "flock", &format!("error={error}"), &call);
            assert_eq!((outcome.exit, outcome.code().as_str()), (74, "io"), "{error} {call:?}: {outcome}");
            assert!(outcome.get("message").contains("lock"), "{outcome}");
            assert!(before == root.bytes(), "{error} {call:?} went on without a lock");
        }
        assert_eq!(
            injected(&root, "flock", &format!("error={error}"), &["inspect", "t"]).get("outcome"),
            "live"
        );
    }
    let recover = injected(&root, "flock", "error=ENOLCK", &["recover"]);
    assert_ne!(recover.exit, 0, "{recover}");
}
