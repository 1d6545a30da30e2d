//! Locks, strict reading, and commits of one row.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lychgate::state::{LockPlan, LockWait, StateError, Store, Writes};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::common::{AT_ONCE, ATTEMPT, PATIENT, TestRoot, begin, event, marked, name, plan, row, tree};

fn one(row: lychgate::protocol::row::Row) -> Writes {
    Writes { rows: vec![row], ..Writes::default() }
}

#[allow(clippy::needless_pass_by_value, reason = "what is looked at is over")]
fn unreadable<T>(result: Result<T, StateError>) -> bool {
    matches!(result, Err(StateError::RowUnreadable { .. }))
}

fn envelope(document: &str) -> String {
    use std::fmt::Write as _;
    let mut digest = String::new();
    for byte in Sha256::digest(document) {
        write!(digest, "{byte:02x}").unwrap();
    }
    format!("{{\"sha256\":\"{digest}\",\"document\":{document}}}\n")
}

#[test]
fn a_commit_is_read_back_with_the_next_revision() {
    let root = TestRoot::new();
    let store = root.store();
    assert_eq!(store.read_task(&name("t")).unwrap(), None);
    for revision in 1..4 {
        let tx = begin(&store, &["t"]).unwrap();
        assert_eq!(tx.revision(&name("t")), revision - 1);
        let committed = tx.commit(one(marked("t", revision))).unwrap();
        assert_eq!(committed.revisions[&name("t")], revision);
        let document = store.read_task(&name("t")).unwrap().unwrap();
        assert_eq!((document.revision, document.row.stop_epoch), (revision, revision));
    }
    assert_eq!(tree(&root.path()), ["config.json", "secret", "tasks/t/row.json"]);
}

#[test]
fn a_transaction_that_is_dropped_changes_nothing() {
    let root = TestRoot::new();
    let store = root.store();
    drop(begin(&store, &["t"]).unwrap());
    assert!(!root.at("tasks/t").exists(), "locking makes nothing");
    root.put(&["t"]);
    let before = fs::read(root.row_file("t")).unwrap();
    drop(begin(&store, &["t"]).unwrap());
    assert_eq!(fs::read(root.row_file("t")).unwrap(), before);
}

#[test]
fn every_damaged_form_is_unreadable_and_never_missing() {
    let root = TestRoot::new();
    root.put(&["t", "other"]);
    let store = root.store();
    let good = fs::read(root.row_file("t")).unwrap();
    let flipped = String::from_utf8(good.clone()).unwrap().replace("queued", "starting").into_bytes();
    let forms = [
        vec![],
        vec![0; 100],
        good[..good.len() - 1].to_vec(),
        good[..good.len() / 2].to_vec(),
        [good.clone(), good.clone()].concat(),
        [good.clone(), b"x".to_vec()].concat(),
        b"null\n".to_vec(),
        b"[]\n".to_vec(),
        flipped,
        fs::read(root.row_file("other")).unwrap(),
        vec![b' '; 9 * 1024 * 1024],
    ];
    for form in forms {
        fs::write(root.row_file("t"), &form).unwrap();
        assert!(unreadable(store.read_task(&name("t"))));
        assert!(unreadable(begin(&store, &["t"])));
        let listed = store.tasks().unwrap();
        assert!(listed.iter().any(|entry| entry.folder == "t" && entry.doc.is_err()));
        assert_eq!(fs::read(root.row_file("t")).unwrap(), form, "damage is left for whoever looks into it");
    }
    fs::remove_file(root.row_file("t")).unwrap();
    fs::create_dir(root.row_file("t")).unwrap();
    assert!(unreadable(store.read_task(&name("t"))));
    fs::remove_dir(root.row_file("t")).unwrap();
    assert_eq!(store.read_task(&name("t")).unwrap(), None, "an empty folder is no row");
    root.put(&["t"]);
    fs::write(root.at("tasks/file"), "").unwrap();
    assert!(unreadable(store.read_task(&name("file"))));
}

#[test]
fn a_fifo_in_the_place_of_a_row_does_not_hang() {
    let root = TestRoot::new();
    root.put(&["t"]);
    fs::remove_file(root.row_file("t")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(root.row_file("t")).status();
    if made.is_ok_and(|status| status.success()) {
        assert!(unreadable(root.store().read_task(&name("t"))));
    }
}

#[test]
fn a_newer_row_is_read_and_not_written() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let body = serde_json::to_string(&row("t", "ws")).unwrap();
    let newer = envelope(&format!(r#"{{"version":3,"kind":"task","revision":1,"body":{body}}}"#));
    fs::write(root.row_file("t"), newer).unwrap();
    let store = root.store();
    assert!(store.read_task(&name("t")).unwrap().unwrap().newer);
    assert!(matches!(begin(&store, &["t"]), Err(StateError::NewerVersion { found: 3, .. })));
    let shared = LockPlan { shared: vec![name("t")], exclusive: vec![] };
    assert!(matches!(store.begin(&shared, PATIENT), Err(StateError::NewerVersion { .. })));
}

#[test]
fn unknown_fields_survive_a_rewrite() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let mut body = serde_json::to_value(row("t", "ws")).unwrap();
    body["inRow"] = 1.into();
    let text = envelope(&format!(r#"{{"version":1,"kind":"task","revision":4,"body":{body},"inFile":[2]}}"#));
    fs::write(root.row_file("t"), text).unwrap();
    let store = root.store();
    let tx = begin(&store, &["t"]).unwrap();
    let next = tx.row(&name("t")).unwrap().clone();
    tx.commit(one(next)).unwrap();
    let text = fs::read_to_string(root.row_file("t")).unwrap();
    assert!(
        text.contains(r#""inRow":1"#) && text.contains(r#""inFile":[2]"#) && text.contains(r#""revision":5"#)
    );
}

/// Puts a field no version knows into every record below, and counts them.
fn add_unknown(value: &mut Value) -> usize {
    match value {
        Value::Object(record) => {
            let below: usize = record.values_mut().map(add_unknown).sum();
            record.insert("ofALaterVersion".to_owned(), true.into());
            below + 1
        }
        Value::Array(records) => records.iter_mut().map(add_unknown).sum(),
        _ => 0,
    }
}

#[test]
fn unknown_fields_of_every_record_of_a_row_survive_a_rewrite() {
    let (at, attempt) = ("2026-01-01T00:00:00Z", ATTEMPT);
    let process = json!({ "pid": 7 });
    let owner = json!({ "name": "n", "process": process });
    let mut body = serde_json::to_value(row("t", "ws")).unwrap();
    body["workflowTask"] = json!({ "runId": "r", "stepId": "s", "inputHash": "h" });
    body["attempt"]["owner"] = owner.clone();
    body["attempt"]["unprovenOverride"] = json!({ "at": at, "besideTurns": [] });
    body["taskAttemptRetiredBy"] = json!({
        "runId": "r", "stepId": "s", "inputHash": "h", "childTaskId": "t", "attemptId": attempt,
        "mode": "no-report", "at": at
    });
    body["retirement"] = json!({ "nonce": "non_0123456789abcdef0123456789abcdef" });
    body["replaces"] = json!({ "taskId": "o", "attemptId": attempt });
    let cleanup = json!({
        "cleanupId": "cln_0123456789abcdef0123456789abcdef", "name": "c", "process": process, "since": at
    });
    body["settlement"] = json!({
        "closedBy": "stop", "closedFrom": "turn", "at": at, "cleanups": [cleanup], "settled": { "settledAt": at }
    });
    body["sends"] = json!([{
        "sendId": "snd_0123456789abcdef0001", "attemptId": attempt, "owned": true, "state": "pending", "since": at
    }]);
    body["superseded"] = json!([{ "attemptId": attempt, "owned": true, "owner": owner, "at": at }]);
    let report = json!({ "textSha256": "0", "textBytes": 1, "fileSha256": "0", "at": at });
    body["reports"] = json!([report]);
    let event = serde_json::to_value(event("stopped")).unwrap();
    body["history"] = json!({ "total": 1, "archives": 0, "events": [event] });
    body["requests"] = json!([{ "requestId": "r", "command": "stop", "digest": "0", "answer": {} }]);
    let n_records = add_unknown(&mut body);
    let root = TestRoot::new();
    root.put(&["t"]);
    let text = envelope(&json!({ "version": 1, "kind": "task", "revision": 1, "body": body }).to_string());
    fs::write(root.row_file("t"), text).unwrap();
    let store = root.store();
    let tx = begin(&store, &["t"]).unwrap();
    let next = tx.row(&name("t")).unwrap().clone();
    tx.commit(one(next)).unwrap();
    let text = fs::read_to_string(root.row_file("t")).unwrap();
    assert_eq!(text.matches("ofALaterVersion").count(), n_records, "{text}");
}

#[test]
fn one_writer_at_a_time() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let (store, other) = (root.store(), root.store());
    let tx = begin(&store, &["t"]).unwrap();
    let started = Instant::now();
    let Err(StateError::Busy { what, waited }) =
        other.begin(&plan(&["t"]), LockWait(Duration::from_millis(60)))
    else {
        panic!("the lock was held")
    };
    assert!(what.contains("`t`") && waited >= Duration::from_millis(60));
    assert!(started.elapsed() < Duration::from_secs(2), "the wait has an end");
    let shared = LockPlan { shared: vec![name("t")], exclusive: vec![] };
    assert!(matches!(other.begin(&shared, AT_ONCE), Err(StateError::Busy { .. })));
    assert!(other.read_task(&name("t")).unwrap().is_some(), "readers do not wait");
    drop(tx);
    let one = store.begin(&shared, AT_ONCE).unwrap();
    let two = other.begin(&shared, AT_ONCE).unwrap();
    assert!(matches!(root.store().begin(&plan(&["t"]), AT_ONCE), Err(StateError::Busy { .. })));
    drop((one, two));
    drop(root.store().begin(&plan(&["t"]), AT_ONCE).unwrap());
}

#[test]
fn no_update_is_lost_between_threads() {
    let root = TestRoot::new();
    root.put(&["t"]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = root.store();
                for _ in 0..15 {
                    let tx = begin(&store, &["t"]).unwrap();
                    let mut next = tx.row(&name("t")).unwrap().clone();
                    next.stop_epoch += 1;
                    tx.commit(one(next)).unwrap();
                }
            });
        }
    });
    let document = root.store().read_task(&name("t")).unwrap().unwrap();
    assert_eq!((document.revision, document.row.stop_epoch), (61, 60));
}

#[test]
fn plans_in_unlike_orders_do_not_hold_each_other_up() {
    let root = TestRoot::new();
    root.put(&["a", "b"]);
    let crossed = LockPlan { shared: vec![name("b")], exclusive: vec![name("a")] };
    let started = Instant::now();
    std::thread::scope(|scope| {
        for plan in [crossed, plan(&["a", "b"])] {
            let root = &root;
            scope.spawn(move || {
                let store = root.store();
                for _ in 0..150 {
                    drop(store.begin(&plan, PATIENT).unwrap());
                }
            });
        }
    });
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
fn the_second_maker_of_a_row_starts_over() {
    let root = TestRoot::new();
    let (store, other) = (root.store(), root.store());
    let late = begin(&store, &["t"]).unwrap();
    begin(&other, &["t"]).unwrap().commit(one(marked("t", 1))).unwrap();
    assert!(matches!(late.commit(one(marked("t", 2))), Err(StateError::Raced { .. })));
    assert_eq!(store.read_task(&name("t")).unwrap().unwrap().row.stop_epoch, 1);
    // Held by somebody else, though still empty.
    fs::create_dir(root.at("tasks/u")).unwrap();
    let held = begin(&other, &["u"]).unwrap();
    fs::rename(root.at("tasks/u"), root.at("tasks/v")).unwrap();
    let late = begin(&store, &["u"]).unwrap();
    fs::rename(root.at("tasks/v"), root.at("tasks/u")).unwrap();
    assert!(matches!(late.commit(one(marked("u", 2))), Err(StateError::Raced { .. })));
    drop(held);
}

#[test]
fn makers_of_one_row_at_once_make_it_once() {
    for _ in 0..10 {
        let root = TestRoot::new();
        let won = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let store: Store = root.store();
                    loop {
                        let tx = begin(&store, &["t"]).unwrap();
                        if tx.row(&name("t")).is_some() {
                            return;
                        }
                        match tx.commit(one(marked("t", 1))) {
                            Ok(_) => {
                                won.fetch_add(1, Ordering::Relaxed);
                                return;
                            }
                            Err(error) => assert!(matches!(error, StateError::Raced { .. })),
                        }
                    }
                });
            }
        });
        assert_eq!(won.into_inner(), 1);
    }
}

#[test]
fn leftover_temps_are_swept_and_nothing_else() {
    let root = TestRoot::new();
    root.put(&["t"]);
    for file in [".lych-dead", "notes", ".hidden"] {
        fs::write(root.at("tasks/t").join(file), "").unwrap();
    }
    std::os::unix::fs::symlink("notes", root.at("tasks/t/.lych-link")).unwrap();
    fs::create_dir(root.at("tasks/t/.lych-folder")).unwrap();
    root.store().read_task(&name("t")).unwrap();
    assert!(root.at("tasks/t/.lych-dead").exists(), "a reader sweeps nothing");
    drop(begin(&root.store(), &["t"]).unwrap());
    let left = tree(&root.at("tasks/t"));
    assert_eq!(left, [".hidden", ".lych-link", "notes", "row.json"]);
}

#[test]
fn a_history_that_is_cut_goes_on_in_archives() {
    let root = TestRoot::new();
    let store = root.store();
    root.put(&["t"]);
    for n in 0..120 {
        let tx = begin(&store, &["t"]).unwrap();
        let mut next = tx.row(&name("t")).unwrap().clone();
        next.history.push(event(&format!("e{n}")));
        tx.commit(one(next)).unwrap();
    }
    let row = store.read_task(&name("t")).unwrap().unwrap().row;
    assert!(row.history.archives >= 2);
    let mut events = store.archives(&row).unwrap();
    events.extend(row.history.events.clone());
    assert_eq!(events.iter().map(|event| event.n).collect::<Vec<_>>(), (1..=120).collect::<Vec<_>>());
    fs::remove_file(root.at("tasks/t/history-1.jsonl")).unwrap();
    assert!(matches!(store.archives(&row), Err(StateError::RootDamaged { .. })));
}

#[test]
fn a_rewrite_gives_the_same_bytes_in_a_new_file() {
    use std::os::unix::fs::MetadataExt;
    let root = TestRoot::new();
    root.put(&["t"]);
    let before = (fs::read(root.row_file("t")).unwrap(), fs::metadata(root.row_file("t")).unwrap().ino());
    let store = root.store();
    let tx = begin(&store, &["t"]).unwrap();
    tx.rewrite(&name("t")).unwrap();
    assert_eq!(fs::read(root.row_file("t")).unwrap(), before.0);
    assert_ne!(fs::metadata(root.row_file("t")).unwrap().ino(), before.1);
    assert!(tx.rewrite(&name("unlocked")).is_err());
}

#[test]
fn a_root_that_was_replaced_is_noticed() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let store = root.store();
    let ghost = begin(&store, &["t"]).unwrap();
    fs::rename(root.path(), root.path().with_file_name("moved")).unwrap();
    let fresh = root.store();
    drop(begin(&fresh, &["t"]).unwrap());
    drop(ghost);
}

#[test]
fn rows_are_listed_in_order() {
    let root = TestRoot::new();
    root.put(&["b", "a/x", ".c"]);
    fs::create_dir(root.at("tasks/empty")).unwrap();
    let listed: Vec<_> = root.store().tasks().unwrap().into_iter().map(|entry| entry.folder).collect();
    assert_eq!(listed, ["%2Ec", "a%2Fx", "b"]);
}
