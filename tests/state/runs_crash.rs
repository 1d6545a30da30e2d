//! What a dead process leaves of a commit of a new row, an old row with its receipt, and their run.

use std::fs;
use std::path::Path;

use lychgate::state::{Access, Evidence, LockPlan, RunKey, StateError, Store, Writes};

use super::common::{
    AT_ONCE, PATIENT, TestRoot, attempt, begin, marked, name, plan, receipt, run, run_key, run_plan, tree,
};
use super::crash::{kill, litter};

const CHILD_ROOT: &str = "LYCHGATE_TEST_RUN_CHILD_ROOT";

fn key() -> RunKey {
    run_key("ws", "r")
}

fn everything() -> LockPlan {
    run_plan(key(), &["old", "new"])
}

/// Not a test of its own: what the killed process does.
#[test]
fn child_process() {
    let Ok(root) = std::env::var(CHILD_ROOT) else { return };
    let store = Store::open(Path::new(&root), Access::Write).unwrap();
    store.begin(&everything(), PATIENT).unwrap().commit(changes(7)).unwrap();
}

fn changes(epoch: u64) -> Writes {
    Writes {
        rows: vec![marked("new", epoch), marked("old", epoch)],
        run: Some(run("ws", "r", epoch)),
        receipts: vec![receipt("old")],
        ..Writes::default()
    }
}

/// Whether the run was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunWas {
    There,
    Missing,
}

fn killed_at((point, n): (&str, usize), run_was: RunWas) -> TestRoot {
    let root = TestRoot::new();
    root.put(&["old"]);
    if run_was == RunWas::There {
        let writes = Writes { run: Some(run("ws", "r", 0)), ..Writes::default() };
        root.store().begin(&run_plan(key(), &[]), PATIENT).unwrap().commit(writes).unwrap();
    }
    kill("runs_crash::child_process", CHILD_ROOT, &root, point, n);
    root
}

/// The stop epochs of the new row, of the old one and of the run, and whether the old row has its receipt.
type Seen = (Option<u64>, Option<u64>, Option<u64>, bool);

fn seen(store: &Store) -> Seen {
    let task = |task: &str| store.read_task(&name(task)).unwrap();
    let old = task("old").unwrap();
    let receipt = match store.read_receipt(&old, &attempt()) {
        Evidence::Found(_) => true,
        Evidence::NotFound => false,
        Evidence::Unreadable(why) => panic!("{why}"),
    };
    let run = store.read_run(&key()).unwrap();
    let found = store.find_runs(&name("r")).unwrap();
    assert_eq!(found.len(), usize::from(run.is_some()), "a listing reads through as well");
    let epoch = run.map(|document| document.run.stop_epoch);
    (task("new").map(|document| document.row.stop_epoch), Some(old.row.stop_epoch), epoch, receipt)
}

const NEW: Seen = (Some(7), Some(7), Some(7), true);

fn old(run_was: RunWas) -> Seen {
    (None, Some(0), Some(0).filter(|_| run_was == RunWas::There), false)
}

/// Where the process may die, and whether its commit has happened then.
const POINTS: [((&str, usize), bool); 6] = [
    (("locked", 1), false),
    (("before-part", 1), false),
    (("before-part", 2), false),
    (("before-rename", 1), false),
    (("after-rename", 1), true),
    (("after-commit-point", 1), true),
];

fn at_every_point(check: impl Fn(&TestRoot, Seen, bool, &str)) {
    for (point, happened) in POINTS {
        for run_was in [RunWas::There, RunWas::Missing] {
            let root = killed_at(point, run_was);
            let expected = if happened { NEW } else { old(run_was) };
            check(&root, expected, happened, &format!("{point:?}, the run was {run_was:?}"));
        }
    }
}

#[test]
fn readers_of_each_file_see_all_of_a_commit_or_nothing() {
    at_every_point(|root, expected, _, place| {
        let before = tree(&root.path());
        let store = Store::open(&root.path(), Access::Read).unwrap();
        assert_eq!(seen(&store), expected, "{place}");
        assert_eq!(tree(&root.path()), before, "{place}: a reader changes nothing");
    });
}

#[test]
fn whoever_locks_one_file_next_sees_it_whole_and_can_go_on() {
    for alone in [plan(&["new"]), plan(&["old"]), run_plan(key(), &[])] {
        at_every_point(|root, mut expected, happened, place| {
            let place = format!("{place}, then {alone:?}");
            let store = root.store();
            let tx = store.begin(&alone, PATIENT).unwrap();
            let mut writes = Writes::default();
            if let Some(task) = alone.exclusive.first() {
                let epoch = tx.row(task).map(|row| row.stop_epoch);
                let of = if task.as_str() == "new" { &mut expected.0 } else { &mut expected.1 };
                assert_eq!(epoch, *of, "{place}");
                *of = Some(99);
                writes.rows.push(marked(task.as_str(), 99));
            } else {
                assert_eq!(tx.run().map(|run| run.stop_epoch), expected.2, "{place}");
                expected.2 = Some(99);
                writes.run = Some(run("ws", "r", 99));
            }
            if happened && alone == plan(&["old"]) {
                tx.sync_receipt(&name("ws"), &name("old"), &attempt()).unwrap();
            }
            tx.commit(writes).unwrap();
            assert_eq!(seen(&store), expected, "{place}");
            drop(store.begin(&everything(), PATIENT).unwrap());
            assert_eq!(seen(&store), expected, "{place}, everything finished");
        });
    }
}

#[test]
fn a_call_on_all_of_them_finishes_everything_and_commits_again() {
    at_every_point(|root, expected, happened, place| {
        let store = root.store();
        let tx = store.begin(&everything(), PATIENT).unwrap();
        assert_eq!(tx.run().map(|run| run.stop_epoch), expected.2, "{place}");
        assert_eq!(seen(&store), expected, "{place}");
        assert!(!happened || litter(root).is_empty(), "{place}: {:?}", litter(root));
        tx.commit(changes(8)).unwrap();
        assert_eq!(seen(&store), (Some(8), Some(8), Some(8), true), "{place}");
        assert!(litter(root).is_empty(), "{place}: {:?}", litter(root));
    });
}

#[test]
fn every_prefix_of_putting_things_in_place_is_finished() {
    // Two copies of the receipt, the old row, and the run.
    for n in 0..=4 {
        let root = killed_at(("after-commit-point", 1), RunWas::Missing);
        let store = root.store();
        let record = store.read_task(&name("new")).unwrap().unwrap().pending.unwrap();
        let files = record.files.iter().map(|file| {
            let place = root.at(&file.path);
            (place.with_file_name(&file.staged), place)
        });
        let [row, run] = &record.rows[..] else { panic!("{record:?}") };
        let (row_folder, run_folder) = (root.at("tasks").join(&row.folder), root.at(&run.folder));
        let parts = [
            (row_folder.join(&row.staged), row_folder.join("row.json")),
            (run_folder.join(&run.staged), run_folder.join("run.json")),
        ];
        for (from, to) in files.chain(parts).take(n) {
            fs::rename(from, to).unwrap();
        }
        assert_eq!(seen(&store), NEW, "{n} in place");
        drop(begin(&store, &["old"]).unwrap());
        assert_eq!(seen(&store), NEW, "{n} in place");
        drop(begin(&store, &["new"]).unwrap());
        assert_eq!(seen(&store), NEW, "{n} in place");
        assert!(litter(&root).is_empty());
        assert_eq!(store.read_run(&key()).unwrap().unwrap().revision, 1);
    }
}

#[test]
fn a_call_that_has_rows_and_needs_a_run_lets_go_of_the_rows_before_it_waits_for_the_run() {
    let root = killed_at(("after-commit-point", 1), RunWas::There);
    let run_folder = fs::File::open(root.at("sessions/ws/workflows/r")).unwrap();
    let row_folder = fs::File::open(root.at("tasks/new")).unwrap();
    // Held without looking inside, so that the part stays.
    run_folder.lock().unwrap();
    let store = root.store();
    let Err(StateError::Busy { what, .. }) = begin_at_once(&store) else { panic!("the run is held") };
    assert_eq!(what, "run `r` of `ws`");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| begin(&root.store(), &["new"]).map(drop));
        // Whoever has the run gets the row too, for the call that waits holds nothing.
        row_folder.lock().unwrap();
        row_folder.unlock().unwrap();
        assert!(
            root.at("sessions/ws/workflows/r").read_dir().unwrap().count() > 1,
            "the part is still there"
        );
        run_folder.unlock().unwrap();
        waiting.join().unwrap().unwrap();
    });
    assert!(litter(&root).is_empty());
    assert_eq!(seen(&store), NEW);
}

fn begin_at_once(store: &Store) -> Result<(), StateError> {
    store.begin(&plan(&["new"]), AT_ONCE).map(drop)
}

#[test]
fn calls_that_come_to_a_left_run_part_from_both_sides_all_get_through() {
    for _ in 0..3 {
        let root = killed_at(("after-commit-point", 1), RunWas::There);
        std::thread::scope(|scope| {
            for plan in [plan(&["new"]), everything(), plan(&["old", "new"]), run_plan(key(), &["new"])] {
                let root = &root;
                scope.spawn(move || drop(root.store().begin(&plan, PATIENT).unwrap()));
            }
        });
        assert!(litter(&root).is_empty());
        assert_eq!(seen(&root.store()), NEW);
    }
}

#[test]
fn the_part_of_another_run_than_the_one_of_the_plan_is_finished_first() {
    let root = killed_at(("after-commit-point", 1), RunWas::There);
    let store = root.store();
    let other = run_key("ws", "other");
    let tx = store.begin(&run_plan(other.clone(), &["new"]), PATIENT).unwrap();
    assert_eq!(tx.run(), None);
    assert!(litter(&root).is_empty());
    let writes =
        Writes { rows: vec![marked("new", 8)], run: Some(run("ws", "other", 8)), ..Writes::default() };
    tx.commit(writes).unwrap();
    assert_eq!(seen(&store), (Some(8), Some(7), Some(7), true));
    assert_eq!(store.read_run(&other).unwrap().unwrap().run.stop_epoch, 8);
}

#[test]
fn an_unreadable_home_row_holds_the_part_of_the_run_shut_and_a_bad_part_the_home_row() {
    let root = killed_at(("after-commit-point", 1), RunWas::There);
    fs::write(root.row_file("new"), "x").unwrap();
    let store = root.store();
    assert!(matches!(store.read_run(&key()), Err(StateError::RowUnreadable { .. })));
    assert!(matches!(store.begin(&run_plan(key(), &[]), PATIENT), Err(StateError::RowUnreadable { .. })));
    let root = killed_at(("after-commit-point", 1), RunWas::There);
    let store = root.store();
    let part = store.read_task(&name("new")).unwrap().unwrap().pending.unwrap().rows.pop().unwrap();
    fs::write(root.at(&part.folder).join(&part.staged), "x").unwrap();
    assert!(matches!(store.read_run(&key()), Err(StateError::RunUnreadable { .. })));
    assert!(matches!(begin(&store, &["new"]), Err(StateError::RunUnreadable { .. })));
}
