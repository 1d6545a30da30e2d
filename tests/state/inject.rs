//! A commit of three rows, a run, receipts and a report that dies or fails at each of its system calls, on the real file
//! system, by the hand of `strace`. Skipped where there is no `strace`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use lychgate::state::{Access, StateError, Store, Transaction, Writes};

use super::common::{PATIENT, TestRoot, begin, run as run_at, run_key, run_plan, tree};
use super::crash::{TASKS, changes, new, old, seen};

const CHILD_ROOT: &str = "LYCHGATE_TEST_INJECT_ROOT";
const CALLS: [&str; 7] = ["fsync", "renameat", "mkdirat", "fchmodat", "fchmod", "unlinkat", "flock"];

/// Not a test of its own: what the process under `strace` does. It says how its commit ended.
#[test]
fn child_process() {
    let Ok(root) = std::env::var(CHILD_ROOT) else { return };
    let root = Path::new(&root);
    let commit = || {
        let store = Store::open(root, Access::Write)?;
        begin_all(&store)?.commit(all_changes(&store))
    };
    let ended = commit().map_or_else(|error| error.code().as_str(), |_| "ok");
    fs::write(root.with_file_name("ended"), ended).unwrap();
}

fn begin_all(store: &Store) -> Result<Transaction<'_>, StateError> {
    store.begin(&run_plan(run_key("ws", "r"), &TASKS), PATIENT)
}

fn all_changes(store: &Store) -> Writes {
    Writes { run: Some(run_at("ws", "r", 7)), ..changes(store) }
}

/// What a reader sees, after a look whether the run is as new as the rows.
fn seen_all(store: &Store) -> (Vec<Option<u64>>, bool) {
    let found = seen(store);
    let run = store.read_run(&run_key("ws", "r")).unwrap();
    assert_eq!(run.is_some(), found == new(), "{found:?} beside {run:?}");
    found
}

/// How the call ended, if it lived, and whether anything was injected at all.
fn run(root: &TestRoot, call: &str, what: &str, n: usize) -> (Option<String>, bool) {
    let log = root.path().with_file_name("log");
    Command::new("strace")
        .args(["-f", "-o", log.to_str().unwrap()])
        .args(["-e", &format!("trace={call}"), "-e", &format!("inject={call}:{what}:when={n}")])
        .arg(std::env::current_exe().unwrap())
        .args(["inject::child_process", "--exact", "--test-threads=1"])
        .env(CHILD_ROOT, root.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let log = fs::read_to_string(log).unwrap();
    let injected = log.contains("INJECTED") || log.contains("killed by SIGKILL");
    (fs::read_to_string(root.path().with_file_name("ended")).ok(), injected)
}

/// Looks at what was left, lets the next call finish it, and commits again.
fn check(root: &TestRoot, ended: Option<&str>, place: &str) {
    let store = Store::open(&root.path(), Access::Read).unwrap();
    let found = seen_all(&store);
    match ended {
        Some("ok" | "uncertain") => assert_eq!(found, new(), "{place}: {ended:?}"),
        Some(_) => assert_eq!(found, old(), "{place}: {ended:?}"),
        None => assert!(found == new() || found == old(), "{place}: {found:?}"),
    }
    let store = root.store();
    for task in ["third", "part", "home"] {
        drop(begin(&store, &[task]).unwrap());
        assert_eq!(seen_all(&store), found, "{place}, after a call on {task}");
    }
    drop(store.begin(&run_plan(run_key("ws", "r"), &[]), PATIENT).unwrap());
    assert_eq!(seen_all(&store), found, "{place}, after a call on the run");
    begin_all(&store).unwrap().commit(all_changes(&store)).unwrap();
    assert_eq!(seen_all(&store), new(), "{place}");
    assert!(
        tree(&root.path()).iter().all(|file| !file.contains(".lych")),
        "{place}: {:?}",
        tree(&root.path())
    );
}

fn at_every_call(what: &str, calls: &[&str]) -> Vec<String> {
    let mut ends = vec![];
    for call in calls {
        for n in 1.. {
            let root = TestRoot::new();
            root.put(&["home", "part"]);
            let (ended, injected) = run(&root, call, what, n);
            if !injected {
                assert_eq!(ended.as_deref(), Some("ok"));
                break;
            }
            check(&root, ended.as_deref(), &format!("{call} {n}"));
            ends.push(ended.unwrap_or_else(|| "died".to_owned()));
        }
    }
    ends
}

fn strace_is_there() -> bool {
    Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[test]
fn a_commit_that_dies_at_any_call_happened_or_did_not() {
    if strace_is_there() {
        let ends = at_every_call("signal=SIGKILL", &CALLS);
        assert!(ends.len() > 30 && ends.iter().all(|end| end == "died"), "{ends:?}");
    }
}

#[test]
fn a_commit_that_fails_at_any_call_says_on_which_side_it_failed() {
    if strace_is_there() {
        for (error, calls) in [("error=EIO", &CALLS[..]), ("error=ENOSPC", &["fsync", "renameat", "mkdirat"])]
        {
            let ends = at_every_call(error, calls);
            let count = |wanted: &str| ends.iter().filter(|end| *end == wanted).count();
            assert_eq!(count("uncertain"), 1, "only the sync after the rename of the home row: {ends:?}");
            assert_eq!(count("uncertain") + count("io") + count("ok"), ends.len(), "{ends:?}");
            assert!(count("ok") > 5 && count("io") > 10, "{ends:?}");
        }
    }
}
