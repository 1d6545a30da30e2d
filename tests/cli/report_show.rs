//! `report --show`: what was given comes back, and what is not there any more is said.

use crate::common::TestRoot;
use crate::kit::{refused, untouched};
use crate::report::{late, report_file, reports};

#[test]
fn the_text_comes_back_byte_for_byte() {
    let root = TestRoot::new();
    let edge = format!("{}漢\"\\{}", "x".repeat(65_533), "y".repeat(65_530));
    let texts = [
        "plain, no line feed",
        "two\nlines\n",
        "\u{1b}[31mred\u{1b}[0m \u{7} \u{0} \u{7f} \u{85}",
        "\"quotes\" \\back\\slashes\\ \\u0041 \\n /",
        "tab\there, return\r\n, form\u{c}, back\u{8}",
        "é 漢 😀 \u{2028} \u{feff} \u{ffff} \u{10ffff}",
        ",\"reportMarkdown\":\"not the end\"}",
        "\u{feff}  leading and trailing  \n\n",
        edge.as_str(),
    ];
    for (n, text) in texts.iter().enumerate() {
        let id = format!("r{n}");
        let task = root.reserve(&id).launched();
        task.turn();
        task.report(text).is(0, "report-accepted");
        assert_eq!(root.run(&["report", &id, "--show"]).stdout, **text);
        assert_eq!(root.json(&["report", &id, "--show"]).get("text"), **text);
        let early = root.reserve(&format!("late{n}"));
        early.report(text).is(10, "late-report");
        assert_eq!(root.run(&["report", &early.id, "--show", "--late"]).stdout, **text);
    }
}

#[test]
fn late_reports_are_shown_in_the_order_they_were_kept_each_on_a_line_of_its_own() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    for text in ["zebra", "ape\n", "mole"] {
        task.report(text).is(10, "late-report");
    }
    assert_eq!(late(&root), "zebra\nape\nmole\n");
    assert_eq!(root.json(&["report", "t1", "--show", "--late"]).get("lateReports"), "3");
}

#[test]
fn a_report_that_is_missing_or_damaged_is_unreadable_and_never_absent() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    task.turn();
    task.report("the result").is(0, "report-accepted");
    let file = report_file(&task);
    let whole = std::fs::read(&file).unwrap();
    let other = String::from_utf8(whole.clone()).unwrap().replace("the result", "the resulT");
    let show = ["report", "t1", "--show"];
    for damage in [&b""[..], &whole[..whole.len() - 4], b"null", b"{}", other.as_bytes()] {
        std::fs::write(&file, damage).unwrap();
        refused(&root, &show, 11, "report-unreadable");
        assert_eq!(root.run(&show).stdout, "", "nothing of a damaged report is printed");
    }
    std::fs::remove_file(&file).unwrap();
    refused(&root, &show, 11, "report-unreadable");
    insta::assert_snapshot!(root.run(&show), @"
    exit 11
    --- stderr
    lychgate report: unresolved (report-unreadable): the report of task `t1` is not what its row says: the report file is missing
    ");
    std::fs::create_dir(&file).unwrap();
    refused(&root, &show, 11, "report-unreadable");
    std::fs::remove_dir(&file).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
    refused(&root, &show, 11, "report-unreadable");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(root.run(&show).stdout, "the result");
}

#[test]
fn a_late_report_that_is_missing_or_damaged_is_said() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    task.report("one").is(10, "late-report");
    task.report("two").is(10, "late-report");
    let show = ["report", "t1", "--show", "--late"];
    let folder = reports(&root).join("late");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let whole = std::fs::read(&files[0]).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    for damage in [text.replace("\"one\"", "\"One\"").replace("\"two\"", "\"Two\""), "{}".to_owned()] {
        std::fs::write(&files[0], damage).unwrap();
        refused(&root, &show, 11, "report-unreadable");
    }
    std::fs::remove_file(&files[0]).unwrap();
    refused(&root, &show, 11, "report-unreadable");
    std::fs::remove_file(&files[1]).unwrap();
    refused(&root, &show, 11, "report-unreadable");
    insta::assert_snapshot!(root.run(&show), @"
    exit 11
    --- stderr
    lychgate report: unresolved (report-unreadable): the report of task `t1` is not what its row says: 2 late reports were kept, and 0 are there
    ");
}

#[test]
fn a_report_whose_call_died_before_it_was_put_in_place_is_there_all_the_same() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let file = root.file("report.md");
    let args = ["report", "t1", "--attempt", &task.attempt, "--file", &file, "--token", &task.token];
    for (text, show) in
        [("early", vec!["report", "t1", "--show", "--late"]), ("done", vec!["report", "t1", "--show"])]
    {
        if text == "done" {
            task.turn();
        }
        std::fs::write(&file, text).unwrap();
        let mut call = root.paused(&args, "after-commit-point");
        root.wait_reached("after-commit-point");
        call.kill().unwrap();
        call.wait().unwrap();
        std::fs::remove_file(root.file("after-commit-point.reached")).unwrap();
        let before = untouched(&root);
        assert_eq!(root.run(&show).stdout, text);
        assert_eq!(before, untouched(&root), "reading finishes nothing");
        root.json(&args).is(
            if text == "done" { 0 } else { 10 },
            if text == "done" { "already-reported" } else { "late-report" },
        );
        assert_eq!(root.run(&show).stdout, text);
    }
    assert_eq!(root.row("t1")["lateReports"], 1);
}

#[test]
fn a_foreign_file_where_the_report_belongs_is_never_written_over() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    task.turn();
    std::fs::create_dir_all(reports(&root)).unwrap();
    std::fs::write(report_file(&task), b"{}").unwrap();
    let before = root.bytes();
    let out = task.report("mine").is(11, "report-unreadable");
    assert_eq!(before, root.bytes(), "{out}");
}

#[test]
fn nothing_to_show_is_refused_and_says_so() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    insta::assert_snapshot!(root.run(&["report", "t1", "--show"]), @"
    exit 10
    --- stderr
    lychgate report: refused (no-report): task `t1` published no report
    ");
    insta::assert_snapshot!(root.run(&["report", "t1", "--show", "--late"]), @"
    exit 10
    --- stderr
    lychgate report: refused (no-report): task `t1` has no late report
    ");
    refused(&root, &["report", "t2", "--show"], 10, "no-task-record");
    root.json_with_stdin(&["report", "t2", "--attempt", &task.attempt], b"x").is(10, "no-task-record");
    drop(task);
}

#[test]
fn a_call_without_an_attempt_or_with_a_file_that_is_not_there_is_usage() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    task.turn();
    let attempt = task.attempt.as_str();
    for wrong in [
        vec!["report"],
        vec!["report", "t1"],
        vec!["report", "t1", "--attempt", "att_1"],
        vec!["report", "t1", "--attempt", attempt, "--file", "no-such-file"],
        vec!["report", "t1", "--attempt", attempt, "--file", "."],
        vec!["report", "t1", "--attempt", attempt, "--file", ""],
        vec!["report", "t1", "--late"],
        vec!["report", "t1", "--show", "--attempt", attempt],
        vec!["report", "t1", "--show", "--title", "x"],
    ] {
        refused(&root, &wrong, 64, "usage");
    }
}

#[test]
fn a_worker_reports_from_the_environment_it_was_started_with() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    task.turn();
    let file = root.file("report.md");
    std::fs::write(&file, "done").unwrap();
    let mut command = root.command(&["report", "--file", &file, "--json"]);
    command.envs([
        ("LYCHGATE_TASK", task.id.as_str()),
        ("LYCHGATE_ATTEMPT", &task.attempt),
        ("LYCHGATE_TOKEN", &task.worker),
    ]);
    root.finish(command.spawn().unwrap()).is(0, "report-accepted");
}

#[test]
fn the_same_request_again_gets_the_same_answer_and_another_text_is_another_request() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    task.turn();
    let args = ["report", "t1", "--attempt", &task.attempt, "--token", &task.token, "--request-id", "r1"];
    let first = root.json_with_stdin(&args, b"done").is(0, "report-accepted");
    let again = root.json_with_stdin(&args, b"done").is(0, "report-accepted");
    assert_eq!(first.stdout, again.stdout);
    root.json_with_stdin(&args, b"other").is(10, "request-id-reused");
}

#[test]
fn a_reactivated_task_reports_again_under_its_new_attempt() {
    let root = TestRoot::new();
    let mut task = root.reserve("t1").launched();
    let turn = task.turn();
    task.report("first").is(0, "report-accepted");
    task.settle(&turn).is(0, "turn-settled");
    root.json(&["settle", "t1", "--token", &task.token]).is(0, "settled");
    let first = task.attempt.clone();
    task.rotated("reactivate");
    task.turn();
    let out = task.report("second").is(0, "report-accepted");
    assert_eq!(out.get("reportAttemptId"), task.attempt);
    assert_eq!(root.run(&["report", "t1", "--show"]).stdout, "second");
    assert!(reports(&root).join(format!("{first}.json")).exists(), "the first report is never lost");
}
