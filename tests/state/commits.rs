//! Commits of several files, with nobody dying.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use lychgate::protocol::codes::Code;
use lychgate::state::{Evidence, StateError, Writes};

use super::common::{ATTEMPT, TestRoot, attempt, begin, marked, name, receipt, row, tree};

fn settle(task: &str, epoch: u64) -> Writes {
    Writes { rows: vec![marked(task, epoch)], receipts: vec![receipt(task)], ..Writes::default() }
}

#[test]
fn a_receipt_lies_in_every_workspace_and_is_found_in_the_parents() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let store = root.store();
    assert_eq!(
        store.read_receipt(&store.read_task(&name("t")).unwrap().unwrap(), &attempt()),
        Evidence::NotFound
    );
    begin(&store, &["t"]).unwrap().commit(settle("t", 1)).unwrap();
    let document = store.read_task(&name("t")).unwrap().unwrap();
    assert_eq!(store.read_receipt(&document, &attempt()), Evidence::Found(receipt("t").receipt));
    let files = [
        "config.json".to_owned(),
        "secret".to_owned(),
        format!("sessions/above/subagent-attempt-settlements/t/{ATTEMPT}.json"),
        format!("sessions/ws/subagent-attempt-settlements/t/{ATTEMPT}.json"),
        "tasks/t/row.json".to_owned(),
    ];
    assert_eq!(tree(&root.path()), files, "nothing is left over");
    assert_eq!(document.pending.unwrap().files.len(), 2, "the record stays until the next commit");
    let tx = begin(&store, &["t"]).unwrap();
    tx.sync_receipt(&name("ws"), &name("t"), &attempt()).unwrap();
    tx.sync_row(&name("t")).unwrap();
    tx.rewrite(&name("t")).unwrap();
    tx.commit(Writes { rows: vec![marked("t", 2)], ..Writes::default() }).unwrap();
    assert_eq!(store.read_task(&name("t")).unwrap().unwrap().pending, None);
    assert_eq!(tree(&root.path()), files);
}

#[test]
fn a_different_receipt_is_never_written_over_and_refuses_the_whole_commit() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let store = root.store();
    begin(&store, &["t"]).unwrap().commit(settle("t", 1)).unwrap();
    for in_the_way in [root.receipt_file("ws", "t"), root.receipt_file("above", "t")] {
        let good = fs::read(&in_the_way).unwrap();
        begin(&store, &["t"]).unwrap().commit(settle("t", 2)).unwrap();
        assert_eq!(fs::read(&in_the_way).unwrap(), good, "the equal record stays as it is");
        begin(&store, &["t"])
            .unwrap()
            .commit(Writes { rows: vec![marked("t", 3)], ..Writes::default() })
            .unwrap();
        fs::write(&in_the_way, String::from_utf8(good.clone()).unwrap().replace("idle", "execution"))
            .unwrap();
        let before = (tree(&root.path()), fs::read(root.row_file("t")).unwrap());
        let error = begin(&store, &["t"]).unwrap().commit(settle("t", 4)).unwrap_err();
        assert!(matches!(error, StateError::ReceiptConflict { .. }));
        assert_eq!(error.code(), Code::ReceiptUnreadable);
        assert_eq!(
            (tree(&root.path()), fs::read(root.row_file("t")).unwrap()),
            before,
            "nothing was changed"
        );
        fs::write(&in_the_way, good).unwrap();
    }
}

#[test]
fn a_folder_or_a_link_in_the_place_of_evidence_is_refused_before_the_commit_point() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let store = root.store();
    let before = fs::read(root.row_file("t")).unwrap();
    let place = root.receipt_file("above", "t");
    fs::create_dir_all(&place).unwrap();
    assert!(begin(&store, &["t"]).unwrap().commit(settle("t", 1)).is_err());
    fs::remove_dir(&place).unwrap();
    symlink("nowhere", &place).unwrap();
    let refused = begin(&store, &["t"]).unwrap().commit(settle("t", 1));
    assert!(matches!(refused, Err(StateError::LinkRefused { .. })));
    fs::remove_file(&place).unwrap();
    fs::remove_dir_all(root.at("sessions/above")).unwrap();
    symlink("ws", root.at("sessions/above")).unwrap();
    assert!(begin(&store, &["t"]).unwrap().commit(settle("t", 1)).is_err());
    assert_eq!(fs::read(root.row_file("t")).unwrap(), before);
}

#[test]
fn a_receipt_that_is_not_the_one_asked_for_is_unreadable() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let store = root.store();
    begin(&store, &["t"]).unwrap().commit(settle("t", 1)).unwrap();
    begin(&store, &["t"])
        .unwrap()
        .commit(Writes { rows: vec![marked("t", 2)], ..Writes::default() })
        .unwrap();
    let document = store.read_task(&name("t")).unwrap().unwrap();
    let place = root.receipt_file("ws", "t");
    let good = fs::read_to_string(&place).unwrap();
    for bad in [
        String::new(),
        "null".to_owned(),
        good.repeat(2),
        good[..good.len() - 3].to_owned(),
        good.replace("\"version\":1", "\"version\":2"),
        good.replace("\"taskId\":\"t\"", "\"taskId\":\"u\""),
        good.replace(ATTEMPT, "att_ffffffffffffffff"),
        good.replace("\"ws\"", "\"above\""),
        good.replace("idle-settled", "guessed"),
        good.replace('{', "{\"more\":1,"),
    ] {
        fs::write(&place, &bad).unwrap();
        assert!(matches!(store.read_receipt(&document, &attempt()), Evidence::Unreadable(_)), "{bad}");
    }
    fs::remove_file(&place).unwrap();
    assert_eq!(store.read_receipt(&document, &attempt()), Evidence::NotFound);
    fs::create_dir(&place).unwrap();
    assert!(matches!(store.read_receipt(&document, &attempt()), Evidence::Unreadable(_)));
}

#[test]
fn several_rows_change_in_one_commit() {
    let root = TestRoot::new();
    root.put(&["old"]);
    let store = root.store();
    let rows = vec![marked("new", 1), marked("old", 1), marked("x/y", 1)];
    let writes = Writes { rows, receipts: vec![receipt("old")], ..Writes::default() };
    let committed = begin(&store, &["old", "new", "x/y"]).unwrap().commit(writes).unwrap();
    assert_eq!(committed.revisions.values().copied().collect::<Vec<_>>(), [1, 2, 1]);
    for task in ["new", "old", "x/y"] {
        assert_eq!(store.read_task(&name(task)).unwrap().unwrap().row.stop_epoch, 1);
    }
    assert!(tree(&root.path()).iter().all(|file| !file.contains(".lych")));
    // A part, and then the home row, change again.
    for (task, revision) in [("old", 3), ("new", 2)] {
        let committed = begin(&store, &[task]).unwrap();
        let committed =
            committed.commit(Writes { rows: vec![marked(task, 2)], ..Writes::default() }).unwrap();
        assert_eq!(committed.revisions[&name(task)], revision);
    }
    assert_eq!(store.read_task(&name("new")).unwrap().unwrap().pending, None);
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let store = root.store();
    let before = tree(&root.path());
    let mut foreign_first = receipt("t");
    foreign_first.workspaces.reverse();
    for writes in [
        Writes::default(),
        Writes { rows: vec![row("u", "ws")], ..Writes::default() },
        Writes { rows: vec![row("t", "ws"), row("t", "ws")], ..Writes::default() },
        Writes { rows: vec![row("t", "ws")], receipts: vec![receipt("u")], ..Writes::default() },
        Writes { rows: vec![row("t", "ws")], receipts: vec![foreign_first], ..Writes::default() },
    ] {
        assert!(matches!(begin(&store, &["t"]).unwrap().commit(writes), Err(StateError::Internal { .. })));
    }
    assert_eq!(tree(&root.path()), before);
}

#[test]
fn readers_beside_writers_see_whole_commits_only() {
    const ROWS: [&str; 3] = ["a", "b", "c"];
    let root = TestRoot::new();
    root.put(&ROWS);
    let writing = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|home| {
                let root = &root;
                scope.spawn(move || {
                    let store = root.store();
                    for _ in 0..25 {
                        let tx = begin(&store, &ROWS).unwrap();
                        let epochs = ROWS.map(|task| tx.row(&name(task)).unwrap().stop_epoch);
                        assert!(epochs.iter().all(|epoch| *epoch == epochs[0]), "{epochs:?}");
                        let mut rows: Vec<_> = ROWS.iter().map(|task| marked(task, epochs[0] + 1)).collect();
                        rows.swap(0, home);
                        tx.commit(Writes { rows, ..Writes::default() }).unwrap();
                    }
                })
            })
            .collect();
        for order in [["a", "b", "c"], ["c", "b", "a"]] {
            let (root, writing) = (&root, &writing);
            scope.spawn(move || {
                let store = root.store();
                while writing.load(Ordering::Relaxed) {
                    // What is read later is never older: one commit changes all three.
                    let read =
                        order.map(|task| store.read_task(&name(task)).unwrap().unwrap().row.stop_epoch);
                    assert!(read.is_sorted(), "{order:?} {read:?}");
                }
            });
        }
        // Single locks, which apply what they find and let go.
        scope.spawn(|| {
            let store = root.store();
            while writing.load(Ordering::Relaxed) {
                drop(begin(&store, &["b"]).unwrap());
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        writing.store(false, Ordering::Relaxed);
    });
    assert_eq!(root.store().read_task(&name("b")).unwrap().unwrap().row.stop_epoch, 75);
}
