//! The records of sessions: reading them strictly, their locks, their commits, and what a dead process leaves.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use lychgate::protocol::codes::Code;
use lychgate::protocol::guard::session::Session;
use lychgate::state::{Access, LockPlan, StateError, Store, Writes};

use super::common::{
    AT_ONCE, PATIENT, TestRoot, begin, envelope, event, marked, name, plan, receipt, run, run_key, session,
    session_plan, tree,
};
use super::crash::{kill, litter};

const FILE: &str = "sessions/s/guard/session.json";
const CHILD_ROOT: &str = "LYCHGATE_TEST_SESSION_CHILD_ROOT";

fn alone(session: Session) -> Writes {
    Writes { session: Some(session), ..Writes::default() }
}

fn put(store: &Store, id: &str, seq: u64) -> Option<u64> {
    store.begin(&session_plan(id, &[]), PATIENT).unwrap().commit(alone(session(id, seq))).unwrap().session
}

fn seq(store: &Store) -> Option<u64> {
    store.read_session(&name("s")).unwrap().map(|document| document.session.seq)
}

#[allow(clippy::needless_pass_by_value, reason = "what is looked at is over")]
fn unreadable<T>(result: Result<T, StateError>) -> bool {
    matches!(result, Err(error @ StateError::SessionUnreadable { .. }) if error.code() == Code::SessionUnreadable)
}

#[test]
fn a_session_is_read_back_with_the_next_revision() {
    let root = TestRoot::new();
    let store = root.store();
    assert_eq!(store.read_session(&name("s")).unwrap(), None);
    drop(store.begin(&session_plan("s", &[]), PATIENT).unwrap());
    assert!(!root.at("sessions/s").exists(), "O10: looking and locking make nothing");
    for revision in 1..4 {
        let tx = store.begin(&session_plan("s", &[]), PATIENT).unwrap();
        assert_eq!(tx.session().map_or(0, |session| session.seq), revision - 1);
        let committed = tx.commit(alone(session("s", revision))).unwrap();
        assert_eq!((committed.session, committed.run, committed.revisions.len()), (Some(revision), None, 0));
        let document = store.read_session(&name("s")).unwrap().unwrap();
        assert_eq!((document.revision, document.session.seq, document.newer), (revision, revision, false));
        assert_eq!(store.read_session(&name("s")).unwrap().unwrap(), document, "the fingerprint is the same");
    }
    assert_eq!(tree(&root.path()), ["config.json", "secret", FILE]);
    assert_eq!(store.session_path(&name("s")), fs::canonicalize(root.at(FILE)).unwrap());
    let tx = store.begin(&session_plan("s", &[]), PATIENT).unwrap();
    assert_eq!(tx.session_document(), store.read_session(&name("s")).unwrap().as_ref());
    let before = fs::read(root.at(FILE)).unwrap();
    tx.rewrite_session().unwrap();
    tx.sync_session().unwrap();
    assert_eq!(fs::read(root.at(FILE)).unwrap(), before);
    assert!(begin(&store, &[]).unwrap().rewrite_session().is_err());
}

#[test]
fn every_damaged_form_of_a_session_is_unreadable_and_never_missing() {
    let root = TestRoot::new();
    let store = root.store();
    put(&store, "s", 1);
    put(&store, "other", 1);
    root.put(&["s"]);
    let good = fs::read(root.at(FILE)).unwrap();
    let flipped = String::from_utf8(good.clone()).unwrap().replace("\"seq\":1", "\"seq\":2");
    let record = r#"{"id":"00000000000000000000000000000000","files":[],"rows":[]}"#;
    let body = serde_json::to_string(&session("s", 1)).unwrap();
    let with_record =
        format!(r#"{{"version":1,"kind":"session","revision":1,"pending":{record},"body":{body}}}"#);
    let forms = [
        vec![],
        vec![0; 100],
        good[..good.len() - 1].to_vec(),
        flipped.into_bytes(),
        envelope(&with_record).into_bytes(),
        fs::read(root.at("sessions/other/guard/session.json")).unwrap(),
        fs::read(root.row_file("s")).unwrap(),
        vec![b' '; 9 * 1024 * 1024],
    ];
    for form in forms {
        fs::write(root.at(FILE), &form).unwrap();
        assert!(unreadable(store.read_session(&name("s"))));
        assert!(unreadable(store.begin(&session_plan("s", &[]), PATIENT)));
        let listed = store.all_sessions().unwrap();
        assert_eq!(listed.len(), 2);
        assert!(listed.iter().all(|entry| entry.doc.is_err() == (entry.folder == "sessions/s/guard")));
        assert!(listed.into_iter().any(|entry| unreadable(entry.doc)));
        assert_eq!(fs::read(root.at(FILE)).unwrap(), form, "damage is left for whoever looks into it");
    }
}

#[test]
fn what_is_no_folder_of_a_session_is_unreadable_and_a_missing_one_is_no_session() {
    let root = TestRoot::new();
    let store = root.store();
    fs::create_dir_all(root.at("sessions/s/guard")).unwrap();
    assert_eq!(seq(&store), None, "an empty folder is no session");
    assert!(store.all_sessions().unwrap().is_empty());
    assert_eq!(put(&store, "s", 1), Some(1));
    fs::write(root.at("sessions/s/guard/history-1.jsonl"), "").unwrap();
    fs::remove_file(root.at(FILE)).unwrap();
    assert!(unreadable(store.read_session(&name("s"))), "a session that had a history is not just missing");
    fs::remove_dir_all(root.at("sessions/s/guard")).unwrap();
    fs::write(root.at("sessions/s/guard"), "").unwrap();
    assert!(unreadable(store.read_session(&name("s"))));
    assert!(unreadable(store.begin(&session_plan("s", &[]), PATIENT)));
    fs::remove_file(root.at("sessions/s/guard")).unwrap();
    symlink("nowhere", root.at("sessions/s/guard")).unwrap();
    assert!(matches!(store.read_session(&name("s")), Err(StateError::LinkRefused { .. })));
}

#[test]
fn a_newer_session_is_read_and_not_written_and_unknown_fields_survive() {
    let root = TestRoot::new();
    let store = root.store();
    put(&store, "s", 1);
    let mut body = serde_json::to_value(session("s", 1)).unwrap();
    body["inSession"] = 1.into();
    let text = |version: u64| {
        envelope(&format!(
            r#"{{"version":{version},"kind":"session","revision":4,"body":{body},"inFile":[2]}}"#
        ))
    };
    fs::write(root.at(FILE), text(1)).unwrap();
    let tx = store.begin(&session_plan("s", &[]), PATIENT).unwrap();
    let next = tx.session().unwrap().clone();
    assert_eq!(tx.commit(alone(next)).unwrap().session, Some(5));
    let written = fs::read_to_string(root.at(FILE)).unwrap();
    assert!(written.contains(r#""inSession":1"#) && written.contains(r#""inFile":[2]"#));
    fs::write(root.at(FILE), text(3)).unwrap();
    assert!(store.read_session(&name("s")).unwrap().unwrap().newer);
    let refused = store.begin(&session_plan("s", &[]), PATIENT);
    assert!(matches!(refused, Err(StateError::NewerVersion { found: 3, .. })));
}

#[test]
fn a_session_has_a_lock_of_its_own_before_all_others_and_one_maker() {
    let root = TestRoot::new();
    root.put(&["s"]);
    let (store, other) = (root.store(), root.store());
    let late = store.begin(&session_plan("s", &[]), PATIENT).unwrap();
    put(&other, "s", 1);
    let raced = late.commit(alone(session("s", 2)));
    assert!(matches!(raced, Err(StateError::Raced { what }) if what == "session `s`"));
    assert_eq!(seq(&store), Some(1));

    let held = store.begin(&session_plan("s", &[]), PATIENT).unwrap();
    let busy = match other.begin(&session_plan("s", &["s"]), AT_ONCE) {
        Err(StateError::Busy { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(busy, "session `s`");
    drop(begin(&other, &["s"]).unwrap());
    put(&other, "another", 1);
    drop(held);
}

#[test]
fn wishes_for_a_session_that_make_no_sense_are_refused() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let store = root.store();
    let before = tree(&root.path());
    let with_run = LockPlan { run: Some(run_key("s", "r")), ..session_plan("s", &[]) };
    for (plan, writes) in [
        (session_plan("s", &[]), Writes::default()),
        (plan(&["t"]), alone(session("s", 1))),
        (session_plan("s", &[]), alone(session("other", 1))),
        (session_plan("s", &[]), Writes { receipts: vec![receipt("t")], ..alone(session("s", 1)) }),
        (with_run, Writes { run: Some(run("s", "r", 1)), ..alone(session("s", 1)) }),
    ] {
        let refused = store.begin(&plan, PATIENT).unwrap().commit(writes);
        assert!(matches!(refused, Err(StateError::Internal { .. })), "{plan:?}");
    }
    assert_eq!(tree(&root.path()), before);
}

#[test]
fn the_history_of_a_session_goes_on_in_archives() {
    let root = TestRoot::new();
    let store = root.store();
    for n in 0..110 {
        let tx = store.begin(&session_plan("s", &[]), PATIENT).unwrap();
        let mut next = tx.session().cloned().unwrap_or_else(|| session("s", 0));
        next.history.push(event(&format!("e{n}")));
        tx.commit(alone(next)).unwrap();
    }
    let session = store.read_session(&name("s")).unwrap().unwrap().session;
    assert!(session.history.archives >= 2);
    let mut events = store.session_archives(&session).unwrap();
    events.extend(session.history.events.clone());
    assert_eq!(events.iter().map(|event| event.n).collect::<Vec<_>>(), (1..=110).collect::<Vec<_>>());
}

/// Not a test of its own: what the killed process does.
#[test]
fn child_process() {
    let Ok(root) = std::env::var(CHILD_ROOT) else { return };
    let store = Store::open(Path::new(&root), Access::Write).unwrap();
    let rows = if store.read_task(&name("t")).unwrap().is_some() { vec![marked("t", 7)] } else { vec![] };
    let exclusive: &[&str] = if rows.is_empty() { &[] } else { &["t"] };
    let writes = Writes { rows, ..alone(session("s", 7)) };
    store.begin(&session_plan("s", exclusive), PATIENT).unwrap().commit(writes).unwrap();
}

#[test]
fn a_session_whose_committer_died_is_the_old_one_or_the_new_one() {
    for (point, expected) in [("locked", 0), ("before-rename", 0), ("after-rename", 7)] {
        let root = TestRoot::new();
        put(&root.store(), "s", 0);
        kill("sessions::child_process", CHILD_ROOT, &root, point, 1);
        let store = root.store();
        assert_eq!(seq(&store), Some(expected), "{point}");
        put(&store, "s", 8);
        assert!(litter(&root).is_empty(), "{point}");
        assert_eq!(seq(&store), Some(8), "{point}");
    }
}

/// Nothing commits a session together with rows yet, but the store can.
#[test]
fn a_session_that_is_a_part_of_a_commit_is_finished_from_either_side() {
    for (point, n, expected) in [("before-rename", 1, 0), ("after-commit-point", 1, 7)] {
        for finisher in [session_plan("s", &[]), plan(&["t"]), session_plan("other", &["t"])] {
            let root = TestRoot::new();
            root.put(&["t"]);
            put(&root.store(), "s", 0);
            kill("sessions::child_process", CHILD_ROOT, &root, point, n);
            let store = root.store();
            assert_eq!(seq(&store), Some(expected), "{point}: a reader reads through");
            drop(store.begin(&finisher, PATIENT).unwrap());
            drop(store.begin(&session_plan("s", &["t"]), PATIENT).unwrap());
            assert_eq!(seq(&store), Some(expected), "{point}");
            assert_eq!(store.read_task(&name("t")).unwrap().unwrap().row.stop_epoch, expected, "{point}");
            assert!(litter(&root).is_empty(), "{point}");
        }
    }
}
