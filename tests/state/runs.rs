//! The checkpoints of runs: reading them strictly, their locks, and commits of a run with nobody dying.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use lychgate::protocol::codes::Code;
use lychgate::protocol::row::Row;
use lychgate::protocol::run::Run;
use lychgate::state::{Access, Evidence, LockPlan, RunKey, StateError, Store, Writes};
use serde_json::json;

use super::common::{
    AT_ONCE, PATIENT, TestRoot, attempt, begin, envelope, event, marked, name, plan, receipt, run, run_key,
    run_plan, tree,
};

const FILE: &str = "sessions/ws/workflows/r/run.json";

fn key() -> RunKey {
    run_key("ws", "r")
}

fn alone(run: Run) -> Writes {
    Writes { run: Some(run), ..Writes::default() }
}

fn put(store: &Store, key: RunKey, stop_epoch: u64) -> Option<u64> {
    let next = run(key.parent.as_str(), key.run.as_str(), stop_epoch);
    store.begin(&run_plan(key, &[]), PATIENT).unwrap().commit(alone(next)).unwrap().run
}

#[allow(clippy::needless_pass_by_value, reason = "what is looked at is over")]
fn unreadable<T>(result: Result<T, StateError>) -> bool {
    matches!(result, Err(error @ StateError::RunUnreadable { .. }) if error.code() == Code::RunUnreadable)
}

#[test]
fn a_run_is_read_back_with_the_next_revision() {
    let root = TestRoot::new();
    let store = root.store();
    assert_eq!(store.read_run(&key()).unwrap(), None);
    drop(store.begin(&run_plan(key(), &[]), PATIENT).unwrap());
    assert!(!root.at("sessions/ws").exists(), "locking makes nothing");
    for revision in 1..4 {
        let tx = store.begin(&run_plan(key(), &[]), PATIENT).unwrap();
        assert_eq!(tx.run().map_or(0, |run| run.stop_epoch), revision - 1);
        let committed = tx.commit(alone(run("ws", "r", revision))).unwrap();
        assert_eq!((committed.run, committed.revisions.len()), (Some(revision), 0));
        let document = store.read_run(&key()).unwrap().unwrap();
        assert_eq!((document.revision, document.run.stop_epoch, document.newer), (revision, revision, false));
        assert_eq!(store.read_run(&key()).unwrap().unwrap(), document, "the fingerprint is the same");
    }
    assert_eq!(tree(&root.path()), ["config.json", "secret", FILE]);
    assert_eq!(store.run_path(&key()), fs::canonicalize(root.at(FILE)).unwrap());
    let tx = store.begin(&run_plan(key(), &[]), PATIENT).unwrap();
    assert_eq!(tx.run_document(), store.read_run(&key()).unwrap().as_ref());
    let before = fs::read(root.at(FILE)).unwrap();
    tx.rewrite_run().unwrap();
    tx.sync_run().unwrap();
    assert_eq!(fs::read(root.at(FILE)).unwrap(), before);
    assert!(begin(&store, &[]).unwrap().rewrite_run().is_err());
}

#[test]
fn every_damaged_form_of_a_run_is_unreadable_and_never_missing() {
    let root = TestRoot::new();
    let store = root.store();
    put(&store, key(), 1);
    put(&store, run_key("ws", "other"), 1);
    put(&store, run_key("elsewhere", "r"), 1);
    root.put(&["r"]);
    let good = fs::read(root.at(FILE)).unwrap();
    let flipped = String::from_utf8(good.clone()).unwrap().replace("\"stopEpoch\":1", "\"stopEpoch\":2");
    let record = r#"{"id":"00000000000000000000000000000000","files":[],"rows":[]}"#;
    let body = serde_json::to_string(&run("ws", "r", 1)).unwrap();
    let with_record =
        format!(r#"{{"version":1,"kind":"run","revision":1,"pending":{record},"body":{body}}}"#);
    let forms = [
        vec![],
        vec![0; 100],
        good[..good.len() - 1].to_vec(),
        [good.clone(), good.clone()].concat(),
        b"null\n".to_vec(),
        flipped.into_bytes(),
        envelope(&with_record).into_bytes(),
        fs::read(root.at("sessions/ws/workflows/other/run.json")).unwrap(),
        fs::read(root.at("sessions/elsewhere/workflows/r/run.json")).unwrap(),
        fs::read(root.row_file("r")).unwrap(),
        vec![b' '; 9 * 1024 * 1024],
    ];
    for form in forms {
        fs::write(root.at(FILE), &form).unwrap();
        assert!(unreadable(store.read_run(&key())));
        assert!(unreadable(store.begin(&run_plan(key(), &["r"]), PATIENT)));
        assert!(unreadable(store.find_runs(&name("r"))), "nobody can tell which session's run it is");
        assert_eq!(store.find_runs(&name("other")).unwrap(), [run_key("ws", "other")]);
        let listed = store.all_runs().unwrap();
        assert_eq!(listed.len(), 3);
        assert!(listed.iter().all(|entry| entry.doc.is_err() == (entry.folder == "sessions/ws/workflows/r")));
        assert_eq!(fs::read(root.at(FILE)).unwrap(), form, "damage is left for whoever looks into it");
    }
}

#[test]
fn what_is_no_folder_of_a_run_is_unreadable_and_a_missing_one_is_no_run() {
    let root = TestRoot::new();
    let store = root.store();
    fs::create_dir_all(root.at("sessions/ws/workflows/r")).unwrap();
    assert_eq!(store.read_run(&key()).unwrap(), None, "an empty folder is no run");
    assert_eq!(put(&store, key(), 1), Some(1));
    fs::write(root.at("sessions/ws/workflows/r/history-1.jsonl"), "").unwrap();
    fs::remove_file(root.at(FILE)).unwrap();
    assert!(unreadable(store.read_run(&key())), "a run that had a history is not just missing");
    fs::remove_dir_all(root.at("sessions/ws/workflows")).unwrap();
    assert!(store.all_runs().unwrap().is_empty());
    for in_the_way in ["sessions/ws/workflows/r", "sessions/ws/workflows", "sessions/ws"] {
        let place = root.at(in_the_way);
        if place.exists() {
            fs::remove_dir(&place).unwrap();
        } else {
            fs::create_dir(place.parent().unwrap()).unwrap();
        }
        fs::write(&place, "").unwrap();
        assert!(unreadable(store.read_run(&key())), "{in_the_way}");
        assert!(unreadable(store.begin(&run_plan(key(), &[]), PATIENT)), "{in_the_way}");
        assert!(unreadable(store.find_runs(&name("r"))), "{in_the_way}");
        assert!(store.all_runs().unwrap().pop().unwrap().doc.is_err(), "{in_the_way}");
        fs::remove_file(&place).unwrap();
        symlink("nowhere", &place).unwrap();
        assert!(matches!(store.read_run(&key()), Err(StateError::LinkRefused { .. })), "{in_the_way}");
        fs::remove_file(&place).unwrap();
    }
    fs::write(root.at("sessions/.DS_Store"), "").unwrap();
    assert!(store.find_runs(&name("r")).unwrap().is_empty(), "no id's folder is hidden");
    fs::remove_dir_all(root.at("sessions")).unwrap();
    assert!(matches!(store.read_run(&key()), Err(StateError::RootDamaged { .. })));
    assert!(matches!(store.find_runs(&name("r")), Err(StateError::RootDamaged { .. })));
    assert!(matches!(store.begin(&run_plan(key(), &[]), PATIENT), Err(StateError::RootDamaged { .. })));
}

#[test]
fn a_newer_run_is_read_and_not_written_and_unknown_fields_survive() {
    let root = TestRoot::new();
    let store = root.store();
    put(&store, key(), 1);
    let mut body = serde_json::to_value(run("ws", "r", 1)).unwrap();
    body["inRun"] = 1.into();
    let text = |version: u64| {
        envelope(&format!(r#"{{"version":{version},"kind":"run","revision":4,"body":{body},"inFile":[2]}}"#))
    };
    fs::write(root.at(FILE), text(1)).unwrap();
    let tx = store.begin(&run_plan(key(), &[]), PATIENT).unwrap();
    let next = tx.run().unwrap().clone();
    assert_eq!(tx.commit(alone(next)).unwrap().run, Some(5));
    let written = fs::read_to_string(root.at(FILE)).unwrap();
    assert!(written.contains(r#""inRun":1"#) && written.contains(r#""inFile":[2]"#));
    fs::write(root.at(FILE), text(3)).unwrap();
    assert!(store.read_run(&key()).unwrap().unwrap().newer);
    let refused = store.begin(&run_plan(key(), &[]), PATIENT);
    assert!(matches!(refused, Err(StateError::NewerVersion { found: 3, .. })));
}

#[test]
fn the_run_is_locked_before_the_rows() {
    let root = TestRoot::new();
    root.put(&["a", "up"]);
    let (store, other) = (root.store(), root.store());
    put(&store, key(), 1);
    let all = LockPlan { shared: vec![name("up")], ..run_plan(key(), &["a"]) };
    let busy = || match other.begin(&all, AT_ONCE) {
        Err(StateError::Busy { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    let run_lock = store.begin(&run_plan(key(), &[]), PATIENT).unwrap();
    let row_lock = store.begin(&plan(&["a", "up"]), PATIENT).unwrap();
    assert_eq!(busy(), "run `r` of `ws`");
    drop(run_lock);
    assert_eq!(busy(), "task `up`");
    drop(row_lock);
    drop(other.begin(&all, AT_ONCE).unwrap());
}

#[test]
fn the_second_maker_of_a_run_starts_over() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let (store, other) = (root.store(), root.store());
    let late = store.begin(&run_plan(key(), &["t", "new"]), PATIENT).unwrap();
    put(&other, key(), 1);
    let writes = Writes { rows: vec![marked("new", 2), marked("t", 2)], ..alone(run("ws", "r", 2)) };
    assert!(matches!(late.commit(writes), Err(StateError::Raced { what }) if what == "run `r` of `ws`"));
    assert_eq!(store.read_run(&key()).unwrap().unwrap().run.stop_epoch, 1);
    assert_eq!(store.read_task(&name("t")).unwrap().unwrap().row.stop_epoch, 0);
    assert_eq!(store.read_task(&name("new")).unwrap(), None);
}

#[test]
fn wishes_for_a_run_that_make_no_sense_are_refused() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let store = root.store();
    let before = tree(&root.path());
    for (plan, writes) in [
        (run_plan(key(), &[]), Writes::default()),
        (plan(&["t"]), alone(run("ws", "r", 1))),
        (run_plan(key(), &[]), alone(run("other", "r", 1))),
        (run_plan(key(), &[]), Writes { receipts: vec![receipt("t")], ..alone(run("ws", "r", 1)) }),
    ] {
        let refused = store.begin(&plan, PATIENT).unwrap().commit(writes);
        assert!(matches!(refused, Err(StateError::Internal { .. })), "{plan:?}");
    }
    assert_eq!(tree(&root.path()), before);
}

#[test]
fn a_new_row_an_old_one_its_receipt_and_the_run_change_in_one_commit() {
    let root = TestRoot::new();
    root.put(&["old"]);
    let store = root.store();
    for (epoch, fresh) in [(1, "new/1"), (2, "new/2")] {
        let rows: Vec<Row> = vec![marked(fresh, epoch), marked("old", epoch)];
        let writes = Writes { rows, receipts: vec![receipt("old")], ..alone(run("ws", "r", epoch)) };
        let committed =
            store.begin(&run_plan(key(), &["old", fresh]), PATIENT).unwrap().commit(writes).unwrap();
        assert_eq!(committed.run, Some(epoch));
        assert_eq!(committed.revisions[&name("old")], epoch + 1);
        assert!(tree(&root.path()).iter().all(|file| !file.contains(".lych")));
        let old = store.read_task(&name("old")).unwrap().unwrap();
        assert!(matches!(store.read_receipt(&old, &attempt()), Evidence::Found(_)));
        assert_eq!(store.read_run(&key()).unwrap().unwrap().run.stop_epoch, epoch);
    }
    // A run that was a part, and then its home row, change again.
    assert_eq!(put(&store, key(), 3), Some(3));
    begin(&store, &["new/2"])
        .unwrap()
        .commit(Writes { rows: vec![marked("new/2", 9)], ..Writes::default() })
        .unwrap();
    assert_eq!(store.read_task(&name("new/2")).unwrap().unwrap().pending, None);
    assert_eq!(store.read_run(&key()).unwrap().unwrap().run.stop_epoch, 3);
}

#[test]
fn runs_are_found_in_every_session_that_has_one() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let store = root.store();
    let long = "/".repeat(127) + "x";
    let keys = [run_key("a/b", "r"), run_key(&long, "r"), run_key("c", "other"), run_key(".d", &long)];
    for key in &keys {
        put(&store, key.clone(), 1);
    }
    begin(&store, &["t"])
        .unwrap()
        .commit(Writes { rows: vec![marked("t", 1)], receipts: vec![receipt("t")], ..Writes::default() })
        .unwrap();
    let mut found = store.find_runs(&name("r")).unwrap();
    found.sort();
    let mut expected = keys[..2].to_vec();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(store.find_runs(&name(&long)).unwrap(), keys[3..]);
    assert!(store.find_runs(&name("t")).unwrap().is_empty());
    let listed = store.all_runs().unwrap();
    assert_eq!(listed.len(), 4);
    let is_listed = |key: &RunKey| {
        listed.iter().any(|entry| entry.doc.as_ref().unwrap().run.parent_workspace_id == key.parent)
    };
    assert!(keys.iter().all(is_listed));
}

#[test]
fn the_history_of_a_run_goes_on_in_archives() {
    let root = TestRoot::new();
    let store = root.store();
    for n in 0..110 {
        let tx = store.begin(&run_plan(key(), &["t"]), PATIENT).unwrap();
        let mut next = tx.run().cloned().unwrap_or_else(|| run("ws", "r", 0));
        next.history.push(event(&format!("e{n}")));
        // As a part and as its own home in turn.
        let rows = if n % 2 == 0 { vec![] } else { vec![marked("t", n)] };
        tx.commit(Writes { rows, ..alone(next) }).unwrap();
    }
    let run = store.read_run(&key()).unwrap().unwrap().run;
    assert!(run.history.archives >= 2);
    let mut events = store.run_archives(&run).unwrap();
    events.extend(run.history.events.clone());
    assert_eq!(events.iter().map(|event| event.n).collect::<Vec<_>>(), (1..=110).collect::<Vec<_>>());
    fs::remove_file(root.at("sessions/ws/workflows/r/history-1.jsonl")).unwrap();
    assert!(matches!(store.run_archives(&run), Err(StateError::RootDamaged { .. })));
}

#[test]
fn a_thousand_steps_stay_far_below_the_bound_of_a_file() {
    let root = TestRoot::new();
    let store = root.store();
    let mut large = run("ws", "r", 0);
    for n in 0..1000 {
        let step = json!({
            "stepId": format!("a-step-with-a-long-name-{n}"), "inputHash": format!("sha256:{n:064x}"),
            "status": "failed", "taskId": format!("r.a-step-with-a-long-name-{n}.1"),
            "attemptId": "att_0123456789abcdef", "startedAt": "2026-01-01T00:00:00.000Z",
            "endedAt": "2026-01-01T00:00:00.000Z", "error": "its result was refused by the schema of the step"
        });
        large.steps.push(serde_json::from_value(step).unwrap());
    }
    store.begin(&run_plan(key(), &[]), PATIENT).unwrap().commit(alone(large.clone())).unwrap();
    assert!(fs::metadata(root.at(FILE)).unwrap().len() < 1024 * 1024, "an eighth of the bound");
    assert_eq!(store.read_run(&key()).unwrap().unwrap().run, large);
    large.steps[0].error = Some("x".repeat(8 * 1024 * 1024));
    let refused = store.begin(&run_plan(key(), &[]), PATIENT).unwrap().commit(alone(large));
    assert!(matches!(refused, Err(StateError::Io { .. })), "what could not be read back is not written");
}

#[test]
fn readers_beside_writers_of_a_run_see_whole_commits_only() {
    let root = TestRoot::new();
    root.put(&["a", "b"]);
    put(&root.store(), key(), 0);
    let writing = AtomicBool::new(true);
    let epochs = |store: &Store| {
        [
            store.read_task(&name("b")).unwrap().unwrap().row.stop_epoch,
            store.read_run(&key()).unwrap().unwrap().run.stop_epoch,
            store.read_task(&name("a")).unwrap().unwrap().row.stop_epoch,
        ]
    };
    std::thread::scope(|scope| {
        let writers = [["a", "b"], ["b", "a"]].map(|order| {
            let root = &root;
            scope.spawn(move || {
                let store = root.store();
                for _ in 0..25 {
                    let tx = store.begin(&run_plan(key(), &order), PATIENT).unwrap();
                    let epoch = tx.run().unwrap().stop_epoch;
                    assert!(order.iter().all(|task| tx.row(&name(task)).unwrap().stop_epoch == epoch));
                    let rows = order.iter().map(|task| marked(task, epoch + 1)).collect();
                    tx.commit(Writes { rows, ..alone(run("ws", "r", epoch + 1)) }).unwrap();
                }
            })
        });
        for single in [run_plan(key(), &[]), plan(&["a"])] {
            let (root, writing, epochs) = (&root, &writing, &epochs);
            scope.spawn(move || {
                let store = root.store();
                while writing.load(Ordering::Relaxed) {
                    drop(store.begin(&single, PATIENT).unwrap());
                    let read = epochs(&store);
                    assert!(read.is_sorted(), "what is read later is never older: {read:?}");
                }
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        writing.store(false, Ordering::Relaxed);
    });
    assert_eq!(epochs(&root.store()), [50; 3]);
}

#[test]
fn a_root_says_whether_it_had_checkpoints_from_its_first_day() {
    let root = TestRoot::new();
    assert!(root.store().has_checkpoints_since_birth());
    for (more, expected) in [("", false), (",\"checkpoints\":false", false), (",\"checkpoints\":true", true)]
    {
        let config = format!("{{\"kind\":\"lychgate\",\"version\":1{more}}}\n");
        fs::write(root.at("config.json"), config).unwrap();
        for access in [Access::Read, Access::Change, Access::Write] {
            let store = Store::open(&root.path(), access).unwrap();
            assert_eq!(store.has_checkpoints_since_birth(), expected, "{more}");
        }
    }
}
