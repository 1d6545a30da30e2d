//! Reports: kept whole, read strictly, refused ones kept as well.

use std::fs;

use lychgate::protocol::ids::Timestamp;
use lychgate::protocol::row::ReportRef;
use lychgate::state::{Document, Evidence, ReportMeta, ReportText, ReportWrite, StateError, Store, Writes};

use super::common::{ATTEMPT, TestRoot, attempt, begin, marked, name, row, tree};

fn time(second: u64) -> Timestamp {
    Timestamp::parse(&format!("2026-01-01T00:00:{second:02}Z")).unwrap()
}

pub(crate) fn report_write(store: &Store, task: &str, text: &str, late: bool) -> (ReportWrite, ReportRef) {
    let mut text = ReportText::spool(&mut text.as_bytes(), store.root()).unwrap();
    let title = Some("a \",\"reportMarkdown\":\" title".to_owned());
    let meta = ReportMeta {
        task: name(task),
        attempt: Some(attempt()),
        parent: name("ws"),
        title,
        at: time(text.bytes % 60),
    };
    let reference = ReportRef {
        attempt_id: meta.attempt.clone(),
        text_sha256: text.sha256.clone(),
        text_bytes: text.bytes,
        file_sha256: text.file_digest(&meta).unwrap(),
        title: meta.title.clone(),
        at: meta.at.clone(),
        extra: lychgate::protocol::row::Extra::new(),
    };
    (ReportWrite { meta, text, late }, reference)
}

pub(crate) fn accepted(store: &Store, document: &Document) -> String {
    let mut out = vec![];
    assert_eq!(store.show_report(document, &document.row.reports[0], &mut out), Evidence::Found(()));
    String::from_utf8(out).unwrap()
}

fn publish(store: &Store, text: &str) -> Result<Document, StateError> {
    let (write, reference) = report_write(store, "t", text, false);
    let mut next = row("t", "ws");
    next.reports.push(reference);
    let tx = begin(store, &["t"]).unwrap();
    tx.commit(Writes { rows: vec![next], receipts: vec![], report: Some(write) })?;
    Ok(store.read_task(&name("t")).unwrap().unwrap())
}

fn file(root: &TestRoot) -> std::path::PathBuf {
    root.at(&format!("sessions/ws/subagent-reports/t/{ATTEMPT}.json"))
}

#[test]
fn a_report_is_shown_as_it_was_given() {
    let near_border = "x".repeat(64 * 1024 - 200);
    for text in [
        "plain",
        "line\n\"quoted\" \\ \u{1}\u{7f} 漢 😀 ß\r\n\t",
        &format!("{near_border}{}", "😀\"".repeat(300)),
    ] {
        let root = TestRoot::new();
        let store = root.store();
        let document = publish(&store, text).unwrap();
        assert_eq!(store.read_report(&document, &document.row.reports[0]), Evidence::Found(()));
        assert_eq!(accepted(&store, &document), text);
        let value: serde_json::Value = serde_json::from_slice(&fs::read(file(&root)).unwrap()).unwrap();
        assert_eq!(value["reportMarkdown"], *text);
        assert_eq!((value["taskId"].as_str(), value["bytes"].as_u64()), (Some("t"), Some(text.len() as u64)));
        assert_eq!(store.report_files(&name("ws"), &name("t")).unwrap(), [format!("{ATTEMPT}.json")]);
        assert_eq!(
            fs::canonicalize(file(&root)).unwrap(),
            store.report_path(&name("ws"), &name("t"), Some(&attempt()))
        );
    }
}

#[test]
fn the_largest_report_is_kept() {
    let root = TestRoot::new();
    let store = root.store();
    let text = "\u{1}é漢\n".repeat(16 * 1024 * 1024 / 7);
    let document = publish(&store, &text).unwrap();
    assert!(accepted(&store, &document) == text);
    let tx = begin(&store, &["t"]).unwrap();
    tx.rewrite(&name("t")).unwrap();
    assert_eq!(store.read_report(&document, &document.row.reports[0]), Evidence::Found(()));
    assert!(tree(&root.path()).iter().all(|file| !file.contains(".lych")));
}

#[test]
fn a_report_that_changed_is_unreadable_and_one_that_is_gone_is_not_found() {
    let root = TestRoot::new();
    let store = root.store();
    let document = publish(&store, "text").unwrap();
    let good = fs::read(file(&root)).unwrap();
    for bad in [vec![], good[..good.len() - 1].to_vec(), [good.clone(), vec![b'\n']].concat()] {
        fs::write(file(&root), bad).unwrap();
        assert!(matches!(store.read_report(&document, &document.row.reports[0]), Evidence::Unreadable(_)));
        let mut out = vec![];
        let shown = store.show_report(&document, &document.row.reports[0], &mut out);
        assert!(matches!(shown, Evidence::Unreadable(_)) && out.is_empty());
    }
    fs::remove_file(file(&root)).unwrap();
    assert_eq!(store.read_report(&document, &document.row.reports[0]), Evidence::NotFound);
}

#[test]
fn a_report_is_never_written_over() {
    let root = TestRoot::new();
    let store = root.store();
    publish(&store, "first").unwrap();
    let good = fs::read(file(&root)).unwrap();
    publish(&store, "first").unwrap();
    assert!(matches!(publish(&store, "second"), Err(StateError::ReportConflict { .. })));
    assert_eq!(fs::read(file(&root)).unwrap(), good);
    assert!(tree(&root.path()).iter().all(|file| !file.contains(".lych")));
}

#[test]
fn refused_reports_are_kept_once_each_and_shown() {
    let root = TestRoot::new();
    let store = root.store();
    for text in ["four", "a", "four"] {
        let (write, reference) = report_write(&store, "t", text, true);
        let known = store.late_exists(&name("ws"), &name("t"), &attempt(), &reference.text_sha256);
        let tx = begin(&store, &["t"]).unwrap();
        assert_eq!(known, tx.revision(&name("t")) == 2);
        tx.commit(Writes { rows: vec![marked("t", 1)], receipts: vec![], report: Some(write) }).unwrap();
        assert!(store.late_exists(&name("ws"), &name("t"), &attempt(), &reference.text_sha256));
    }
    assert!(!store.late_exists(&name("ws"), &name("t"), &attempt(), &"0".repeat(64)));
    let document = store.read_task(&name("t")).unwrap().unwrap();
    let late = store.late_reports(&document).unwrap();
    assert_eq!(late.iter().map(|report| report.bytes).collect::<Vec<_>>(), [1, 4], "by time");
    for (report, text) in late.iter().zip(["a", "four"]) {
        let mut out = vec![];
        assert_eq!(store.show_late(&document, report, &mut out), Evidence::Found(()));
        assert_eq!(out, text.as_bytes());
    }
    assert!(store.report_files(&name("ws"), &name("t")).unwrap().is_empty(), "late ones do not count");
    assert!(store.report_files(&name("ws"), &name("nobody")).unwrap().is_empty());
    let damaged = root.at("sessions/ws/subagent-reports/t/late").join(&late[0].file);
    let text = fs::read_to_string(&damaged).unwrap().replace("Markdown\":\"a", "Markdown\":\"b");
    fs::write(damaged, text).unwrap();
    let shown = store.show_late(&document, &late[0], &mut vec![]);
    assert!(matches!(shown, Evidence::Unreadable(_)));
    assert!(!store.late_exists(&name("ws"), &name("t"), &attempt(), &late[0].text_sha256));
}
