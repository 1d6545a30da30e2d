//! What a row is kept from growing by, and what it is not taken for when it is gone.

use crate::common::TestRoot;

#[test]
fn words_for_people_are_bounded_because_every_call_reads_them() {
    let root = TestRoot::new();
    let task = root.reserve("t").launched();
    let before = root.bytes();
    let long = "x".repeat(4097);
    for option in ["--reason", "--failure"] {
        let out = root.json(&["stop", "t", option, &long]).is(64, "usage");
        assert!(out.stdout.contains("at most 4096 bytes"), "{option}");
    }
    let label =
        ["admit", "t", "--attempt", &task.attempt, "--start", "--label", &long, "--token", &task.token];
    let _ = root.json(&label).is(64, "usage");
    let _ = root
        .json_with_stdin(&["report", "t", "--attempt", &task.attempt, "--title", &long], b"r")
        .is(64, "usage");
    let mut many = vec!["stop", "t"];
    many.extend(["--cleanup", "c"].repeat(65));
    let _ = root.json(&many).is(64, "usage");
    assert_eq!(root.bytes(), before);
    let _ = root.json(&["stop", "t", "--reason", &long[..4096]]).is(0, "stopped");
}

#[test]
fn a_row_that_is_gone_beside_its_history_is_damage_and_its_name_stays_taken() {
    let root = TestRoot::new();
    let _task = root.reserve("t");
    for _ in 0..50 {
        let _ = root.json(&["stop", "t"]);
    }
    assert!(root.tree().contains("tasks/t/history-1.jsonl"), "{}", root.tree());
    std::fs::remove_file(root.path().join("tasks/t/row.json")).unwrap();
    let before = root.bytes();
    let _ = root.json(&["reserve", "t", "--parent", "ws"]).is(65, "row-unreadable");
    let _ = root.json(&["stop", "t"]).is(65, "row-unreadable");
    let _ = root.json(&["inspect", "t"]).is(65, "row-unreadable");
    assert_eq!(root.bytes(), before);
}
