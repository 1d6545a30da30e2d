//! Full disks and litter: A45, A47 and A51.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::common::{BIN, TestRoot};
use crate::field::{crashed, injected};

#[test]
fn a45_no_file_or_link_in_the_way_of_a_temporary_name_does_harm() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let folder = root.path().join("tasks/t");
    let victim = root.scratch().join("victim");
    std::fs::write(&victim, b"precious").unwrap();
    for name in ["row.json.tmp", "row.tmp", ".row.json.tmp", "row.json~", ".lych-link"] {
        std::os::unix::fs::symlink(&victim, folder.join(name)).unwrap();
    }
    std::fs::create_dir(folder.join("row.json.0.tmp")).unwrap();
    let turn = task.turn();
    let _ = task.stop().is(0, "stopping");
    let _ = task.settle(&turn).is(0, "turn-settled");
    assert_eq!(task.stands(), "terminal-no-report");
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious", "wrote through a link");
    assert!(folder.join("row.json").symlink_metadata().unwrap().is_file());
}

#[test]
fn a45_two_writers_at_once_never_share_a_temporary_file() {
    let root = TestRoot::new();
    let names: Vec<String> = (0..10).map(|n| format!("w{n}")).collect();
    let calls: Vec<Vec<&str>> = names.iter().map(|name| vec!["reserve", name, "--parent", "ws"]).collect();
    let outcomes = root.at_once(&calls);
    let tasks: Vec<(&String, String)> = names
        .iter()
        .zip(outcomes.into_iter().map(|outcome| outcome.is(0, "reserved").get("attemptId")))
        .collect();
    for (name, attempt) in &tasks {
        assert_eq!(root.row(name)["taskAttemptId"], **attempt, "one writer's bytes under the other's name");
    }
    let stops: Vec<Vec<&str>> = names.iter().map(|name| vec!["stop", name.as_str()]).collect();
    for outcome in root.at_once(&stops) {
        let _ = outcome.is(0, "stopped");
    }
    for (name, attempt) in &tasks {
        assert_eq!(root.receipts("ws", name), [attempt.as_str()]);
    }
}

/// The files below a root, without the folders, which a failed call may have made.
fn files(root: &TestRoot) -> Vec<(String, Vec<u8>)> {
    root.bytes().into_iter().filter(|(name, _)| !name.ends_with('/')).collect()
}

/// Plays one change of a running task on a disk that is full for one kind of system call.
fn full_for(call: &str, verb: &str) {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let turn = task.turn();
    std::fs::write(root.scratch().join("report"), "x".repeat(100_000)).unwrap();
    let token = ["--token", &task.token];
    let args = match verb {
        "report" => [&["report", "t", "--attempt", &task.attempt, "--file", "report"][..], &token].concat(),
        "admit" => [&["admit", "t", "--attempt", &task.attempt, "--start"][..], &token].concat(),
        "settle" => [&["settle", "t", "--turn", &turn, "--close"][..], &token].concat(),
        "reserve" => vec!["reserve", "t2", "--parent", "ws"],
        _ => vec![verb, "t"],
    };
    let before = files(&root);
    // Of the writes only the first is refused, which is a file's. Standard output is not full.
    let what = if call == "write" { "error=ENOSPC:when=1" } else { "error=ENOSPC:when=1+" };
    let outcome = injected(&root, call, what, &args);
    let at = format!("{call} {verb}: {outcome}");
    if call == "mkdirat" && matches!(verb, "stop" | "admit") {
        // These make no folder.
        assert_eq!(outcome.exit, 0, "{at}");
        return;
    }
    assert_eq!((outcome.exit, outcome.code().as_str()), (74, "io"), "{at}");
    assert!(format!("{outcome}").to_lowercase().contains("space"), "the reason is not named: {at}");
    assert!(files(&root) == before, "it left something: {}\n{at}", root.tree());
    assert_eq!(task.stands(), "live", "{at}");
    assert_eq!(root.json(&args).exit, 0, "{at}");
}

#[test]
fn a47_a_full_disk_is_named_and_leaves_the_old_state_byte_for_byte() {
    for call in ["write", "fsync", "mkdirat", "renameat"] {
        for verb in ["report", "stop", "admit", "settle", "reserve"] {
            full_for(call, verb);
        }
    }
}

/// Plays a script in a mount namespace in which the root is a small memory file system. It sees the binary as
/// `$bin`, and must itself say what is wrong.
fn on_small_disk(root: &TestRoot, script: &str) {
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-euc", script])
        .env("bin", BIN)
        .env("LYCHGATE_ROOT", root.path())
        .current_dir(root.scratch())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
}

#[test]
fn a47_on_a_disk_that_is_really_full_every_call_says_so_and_works_again_without_repair() {
    let root = TestRoot::new();
    on_small_disk(
        &root,
        r#"
        mkdir "$LYCHGATE_ROOT"; mount -t tmpfs -o size=512k,mode=700 none "$LYCHGATE_ROOT"
        lych() { "$bin" "$@"; }
        field() { jq -r ".$1"; }
        out=$(lych reserve t --parent ws --json); a=$(echo "$out" | field attemptId); k=$(echo "$out" | field token)
        lych rotate t --as launch --token "$k" >/dev/null
        turn=$(lych admit t --attempt "$a" --start --token "$k" --json | field turnId)
        dd if=/dev/zero of="$LYCHGATE_ROOT/fill" bs=1k 2>/dev/null || :
        snap() { cd "$LYCHGATE_ROOT"; find . -type f ! -name fill | sort | xargs sha256sum; cd - >/dev/null; }
        before=$(snap)
        head -c 100000 /dev/zero | tr '\0' x >report
        for call in "report t --attempt $a --token $k --file report" "stop t" "reserve t2 --parent ws" \
                    "settle t --turn $turn --close --token $k"; do
            rc=0; why=$(lych $call --json 2>&1) || rc=$?
            [ $rc = 74 ] || { echo "$call: exit $rc: $why"; exit 1; }
            echo "$why" | grep -qi space || { echo "$call: the reason is not named: $why"; exit 1; }
            [ "$(snap)" = "$before" ] || { echo "$call changed something: $(snap)"; exit 1; }
        done
        [ "$(lych inspect t --token "$k" --json | field outcome)" = live ] || { echo "not live"; exit 1; }
        rm "$LYCHGATE_ROOT/fill"
        lych report t --attempt "$a" --token "$k" --file report >/dev/null
        lych reserve t2 --parent ws >/dev/null
        lych settle t --turn "$turn" --close --token "$k" >/dev/null
        [ "$(lych inspect t --json | field outcome)" = reported ] || { echo "not reported"; exit 1; }
        "#,
    );
}

fn leftovers(root: &TestRoot) -> usize {
    root.tree()
        .lines()
        .filter(|name| name.rsplit('/').next().is_some_and(|name| name.starts_with(".lych")))
        .count()
}

#[test]
fn a51_what_killed_writers_leave_is_never_state_and_stays_bounded() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    for _ in 0..8 {
        let admit = ["admit", "t", "--attempt", &task.attempt, "--token", &task.token];
        assert!(crashed(&root, "renameat", 1, &admit));
        assert!(crashed(&root, "fsync", 1, &["stop", "t"]));
    }
    assert_eq!(task.stands(), "live");
    assert_eq!(root.row("t")["sends"].as_array().unwrap().len(), 0);
    assert_eq!(
        root.json(&["inspect"]).json()["tasks"].as_array().unwrap().len(),
        1,
        "litter reads as a task"
    );
    let _ = task.begin().is(0, "admitted");
    let in_row = leftovers_in(&root, "tasks/t");
    assert_eq!(in_row, Vec::<PathBuf>::new(), "the next writer sweeps, under the lock");
    assert!(leftovers(&root) <= 8, "{}", root.tree());
}

fn leftovers_in(root: &TestRoot, folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.path().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".lych")).collect()
}

#[test]
fn a51_a_leftover_that_is_a_whole_row_is_no_row() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let folder = root.path().join("tasks/t");
    let old = std::fs::read(folder.join("row.json")).unwrap();
    let _ = task.stop().is(0, "stopped");
    for name in [".lych-AbCdEf", "row.json.tmp", ".lych-part-0123456789abcdef0123456789abcdef"] {
        std::fs::write(folder.join(name), &old).unwrap();
        let seen = root.json(&["inspect", "t"]);
        assert!(seen.exit == 65 || seen.get("taskStatus") == "interrupted", "{name}: {seen}");
        let _ = task.begin();
        assert_eq!(root.row("t")["turnsMinted"], 0, "{name}");
        drop(std::fs::remove_file(folder.join(name)));
    }
    let stray = root.path().join("tasks/stray");
    std::fs::create_dir(&stray).unwrap();
    std::fs::write(stray.join(".lych-AbCdEf"), &old).unwrap();
    assert_eq!(root.json(&["inspect", "stray"]).get("reasonCode"), "no-task-record");
}
