//! What a dead process leaves. The process is killed at each pause point of a commit of three rows, a receipt
//! and a report; then everybody who may come next looks: a reader, a call on one row only, a call on all.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lychgate::state::{Access, Evidence, LockPlan, StateError, Store, Writes};

use super::common::{ATTEMPT, PATIENT, TestRoot, attempt, begin, marked, name, receipt, tree};
use super::reports::{accepted, report_write};

const CHILD_ROOT: &str = "LYCHGATE_TEST_CHILD_ROOT";
pub(crate) const TASKS: [&str; 3] = ["home", "part", "third"];

/// Not a test of its own: what the killed process does.
#[test]
fn child_process() {
    let Ok(root) = std::env::var(CHILD_ROOT) else { return };
    let store = Store::open(Path::new(&root), Access::Write).unwrap();
    let tx = begin(&store, &TASKS).unwrap();
    tx.commit(changes(&store)).unwrap();
}

pub(crate) fn changes(store: &Store) -> Writes {
    let (write, reference) = report_write(store, "part", "the result", false);
    let mut part = marked("part", 7);
    part.reports.push(reference);
    let rows = vec![marked("home", 7), part, marked("third", 7)];
    Writes { rows, receipts: vec![receipt("part"), receipt("home")], report: Some(write) }
}

/// A root with two of the three rows, on which a process died at a pause point.
fn killed_at(point: &str) -> TestRoot {
    let root = TestRoot::new();
    root.put(&["home", "part"]);
    let pauses = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["crash::child_process", "--exact", "--test-threads=1"])
        .env(CHILD_ROOT, root.path())
        .env("LYCHGATE_TEST_PAUSE", point)
        .env("LYCHGATE_TEST_PAUSE_DIR", pauses.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !pauses.path().join(format!("{point}.reached")).exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before `{point}`");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    root
}

/// The stop epochs a reader sees, and whether both pieces of evidence of `part` count.
pub(crate) fn seen(store: &Store) -> (Vec<Option<u64>>, bool) {
    let documents = TASKS.map(|task| store.read_task(&name(task)).unwrap());
    let part = documents[1].as_ref().unwrap();
    let receipt = store.read_receipt(part, &attempt());
    let report = part.row.reports.first().map(|report| store.read_report(part, report));
    let evidence = match (receipt, report) {
        (Evidence::Found(_), Some(Evidence::Found(()))) => true,
        (Evidence::NotFound, None) => false,
        other => panic!("half of the evidence: {other:?}"),
    };
    (documents.map(|document| document.map(|document| document.row.stop_epoch)).to_vec(), evidence)
}

pub(crate) fn old() -> (Vec<Option<u64>>, bool) {
    (vec![Some(0), Some(0), None], false)
}

pub(crate) fn new() -> (Vec<Option<u64>>, bool) {
    (vec![Some(7), Some(7), Some(7)], true)
}

fn litter(root: &TestRoot) -> Vec<String> {
    tree(&root.path()).into_iter().filter(|file| file.contains(".lych")).collect()
}

/// Where the process may die, and whether its commit has happened then.
const POINTS: [(&str, bool); 5] = [
    ("locked", false),
    ("before-part", false),
    ("before-rename", false),
    ("after-rename", true),
    ("after-commit-point", true),
];

#[test]
fn readers_see_all_of_a_commit_or_nothing_and_change_nothing() {
    for (point, happened) in POINTS {
        let root = killed_at(point);
        let before = tree(&root.path());
        let store = Store::open(&root.path(), Access::Read).unwrap();
        assert_eq!(seen(&store), if happened { new() } else { old() }, "{point}");
        let listed = store.tasks().unwrap().into_iter().map(|entry| entry.doc.unwrap().row.stop_epoch);
        assert_eq!(listed.collect::<Vec<_>>(), if happened { vec![7, 7, 7] } else { vec![0, 0] }, "{point}");
        assert_eq!(tree(&root.path()), before, "{point}");
        assert_eq!(seen(&root.store()), seen(&store));
    }
}

#[test]
fn whoever_locks_one_row_next_sees_it_whole_and_can_go_on() {
    for (point, happened) in POINTS {
        for task in TASKS {
            let root = killed_at(point);
            let store = root.store();
            let tx = begin(&store, &[task]).unwrap();
            let expected = if happened { new() } else { old() };
            let index = TASKS.iter().position(|other| *other == task).unwrap();
            assert_eq!(tx.row(&name(task)).map(|row| row.stop_epoch), expected.0[index], "{point} {task}");
            if let Some(document) = tx.document(&name(task)).filter(|_| happened && task == "part") {
                assert!(matches!(store.read_receipt(document, &attempt()), Evidence::Found(_)));
                tx.sync_receipt(&name("ws"), &name(task), &attempt()).unwrap();
                tx.sync_report(&name("ws"), &name(task), Some(&attempt())).unwrap();
            }
            // Newer bytes, which nothing of the dead commit may be put over.
            let mut next = tx.row(&name(task)).cloned().unwrap_or_else(|| marked(task, 0));
            next.stop_epoch = 99;
            tx.commit(Writes { rows: vec![next], ..Writes::default() }).unwrap();
            let mut expected = expected;
            expected.0[index] = Some(99);
            assert_eq!(seen(&store), expected, "{point} {task}");
            drop(begin(&store, &TASKS).unwrap());
            assert_eq!(seen(&store), expected, "{point} {task}, everything finished");
        }
    }
}

#[test]
fn a_call_on_all_rows_finishes_everything_and_leaves_no_litter_in_the_rows() {
    for (point, happened) in POINTS {
        let root = killed_at(point);
        let store = root.store();
        drop(begin(&store, &TASKS).unwrap());
        assert_eq!(seen(&store), if happened { new() } else { old() }, "{point}");
        assert!(
            litter(&root).iter().all(|file| !happened && file.starts_with("sessions")),
            "{:?}",
            litter(&root)
        );
        let tx = begin(&store, &TASKS).unwrap();
        let mut changes = changes(&store);
        if happened {
            for row in &mut changes.rows {
                row.stop_epoch = 8;
            }
        }
        let done = tx.commit(changes).unwrap();
        assert_eq!(done.revisions[&name("part")], if happened { 3 } else { 2 }, "{point}");
        assert!(litter(&root).is_empty(), "{point}: {:?}", litter(&root));
    }
}

#[test]
fn a_lock_on_the_home_row_alone_takes_the_locks_of_the_parts_as_well() {
    let root = killed_at("after-commit-point");
    let store = root.store();
    let other = root.store();
    let part = LockPlan { shared: vec![name("part")], exclusive: vec![] };
    let shared = other.begin(&part, PATIENT).unwrap();
    assert_eq!(shared.row(&name("part")).unwrap().stop_epoch, 7, "a shared lock reads through");
    let busy = store.begin(&super::common::plan(&["home"]), super::common::AT_ONCE);
    assert!(matches!(busy, Err(StateError::Busy { .. })));
    drop(shared);
    let tx = begin(&store, &["home"]).unwrap();
    assert!(tx.row(&name("third")).is_some(), "the part was locked and applied");
    tx.commit(Writes { rows: vec![marked("home", 8)], ..Writes::default() }).unwrap();
    assert_eq!(store.read_task(&name("home")).unwrap().unwrap().pending, None);
    assert_eq!(seen(&store).0, [Some(8), Some(7), Some(7)]);
}

#[test]
fn dying_in_the_middle_of_putting_things_in_place_is_finished_too() {
    // The evidence is renamed in the order of the record, and then the parts; every prefix of that.
    for n in 0..=6 {
        let root = killed_at("after-commit-point");
        let store = root.store();
        let record = store.read_task(&name("home")).unwrap().unwrap().pending.unwrap();
        let files = record.files.iter().map(|file| {
            let place = root.at(&file.path);
            (place.with_file_name(&file.staged), place)
        });
        let parts = record.rows.iter().map(|row| {
            let folder = root.at("tasks").join(&row.folder);
            (folder.join(&row.staged), folder.join("row.json"))
        });
        for (from, to) in files.chain(parts).take(n) {
            fs::rename(from, to).unwrap();
        }
        assert_eq!(seen(&store), new(), "{n} in place");
        drop(begin(&store, &["part"]).unwrap());
        assert_eq!(seen(&store), new(), "{n} in place");
        drop(begin(&store, &["home"]).unwrap());
        assert_eq!(seen(&store), new(), "{n} in place");
        assert!(litter(&root).is_empty());
        assert_eq!(store.read_task(&name("part")).unwrap().unwrap().revision, 2);
    }
}

#[test]
fn a_lost_prepared_receipt_is_written_from_the_record_and_a_lost_report_is_damage() {
    let root = killed_at("after-commit-point");
    let store = root.store();
    let record = store.read_task(&name("home")).unwrap().unwrap().pending.unwrap();
    let (small, large): (Vec<_>, Vec<_>) = record.files.iter().partition(|file| file.body.is_some());
    for file in &small {
        fs::remove_file(root.at(&file.path).with_file_name(&file.staged)).unwrap();
    }
    assert_eq!(seen(&store), new());
    drop(begin(&store, &["home"]).unwrap());
    assert_eq!(seen(&store), new());
    let root = killed_at("after-commit-point");
    for file in large {
        let record = root.store().read_task(&name("home")).unwrap().unwrap().pending.unwrap();
        let staged = &record.files.iter().find(|other| other.path == file.path).unwrap().staged;
        fs::remove_file(root.at(&file.path).with_file_name(staged)).unwrap();
    }
    for task in ["home", "part"] {
        assert!(matches!(begin(&root.store(), &[task]), Err(StateError::RootDamaged { .. })));
    }
}

#[test]
fn an_unreadable_home_row_holds_its_parts_shut() {
    let root = killed_at("after-commit-point");
    fs::write(root.row_file("home"), "x").unwrap();
    let store = root.store();
    for task in ["part", "third"] {
        assert!(matches!(begin(&store, &[task]), Err(StateError::RowUnreadable { .. })));
        assert!(matches!(store.read_task(&name(task)), Err(StateError::RowUnreadable { .. })));
    }
    let root = killed_at("after-commit-point");
    let part = fs::read_dir(root.at("tasks/third")).unwrap().next().unwrap().unwrap().path();
    fs::write(part, "x").unwrap();
    assert!(matches!(root.store().read_task(&name("third")), Err(StateError::RowUnreadable { .. })));
    assert!(matches!(begin(&root.store(), &["home"]), Err(StateError::RowUnreadable { .. })));
}

#[test]
fn a_foreign_file_in_the_place_of_committed_evidence_is_unreadable_and_stays() {
    let root = killed_at("after-commit-point");
    let place = root.receipt_file("ws", "home");
    fs::write(&place, "mine").unwrap();
    let store = root.store();
    drop(begin(&store, &["home"]).unwrap());
    let document = store.read_task(&name("home")).unwrap().unwrap();
    let attempt = document.row.task_attempt_id.clone().unwrap();
    assert!(matches!(store.read_receipt(&document, &attempt), Evidence::Unreadable(_)));
    assert_eq!(fs::read_to_string(place).unwrap(), "mine");
}

#[test]
fn a_stale_part_is_never_put_over_a_newer_row() {
    let root = killed_at("after-commit-point");
    let store = root.store();
    let record = store.read_task(&name("home")).unwrap().unwrap().pending.unwrap();
    let staged = root.at("tasks/part").join(&record.rows[0].staged);
    let bytes = fs::read(&staged).unwrap();
    let tx = begin(&store, &["part"]).unwrap();
    let mut newer = tx.row(&name("part")).unwrap().clone();
    newer.stop_epoch = 99;
    tx.commit(Writes { rows: vec![newer], ..Writes::default() }).unwrap();
    // As if the rename of the part had been lost and the later one had not.
    fs::write(&staged, bytes).unwrap();
    assert_eq!(store.read_task(&name("part")).unwrap().unwrap().row.stop_epoch, 99);
    drop(begin(&store, &["home"]).unwrap());
    assert_eq!(store.read_task(&name("part")).unwrap().unwrap().row.stop_epoch, 99);
    assert!(!staged.exists());
}

#[test]
fn the_accepted_report_of_a_dead_process_can_be_shown() {
    let root = killed_at("after-commit-point");
    let store = root.store();
    let document = store.read_task(&name("part")).unwrap().unwrap();
    assert_eq!(accepted(&store, &document), "the result");
    assert!(!root.at(&format!("sessions/ws/subagent-reports/part/{ATTEMPT}.json")).exists());
}
