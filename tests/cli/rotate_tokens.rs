//! `rotate --token-file`: the token is read from it, and a new one takes its place after the commit.

use std::os::unix::fs::PermissionsExt as _;

use crate::common::TestRoot;

#[test]
fn the_file_is_read_and_then_holds_the_new_token() {
    let root = TestRoot::new();
    let file = root.file("tok");
    let read = || std::fs::read_to_string(&file).unwrap();
    let made = root.json(&["reserve", "t1", "--parent", "ws", "--token-file", &file]);
    let reserved = read();
    let rotate = |kind: &str| root.json(&["rotate", "t1", "--as", kind, "--token-file", &file]);
    let own = rotate("launch").is(0, "launched");
    assert_eq!((own.get("attemptId"), read()), (made.get("attemptId"), reserved.clone()), "own launch");
    assert_eq!(own.json().get("tokenFile"), None, "nothing new to write");
    let _ = root.json(&["stop", "t1"]).is(0, "stopped");

    let fresh = rotate("reawaken").is(0, "rotated");
    assert!(!fresh.stdout.contains("tok_"), "{fresh}");
    assert_eq!(fresh.get("tokenFile"), "[DIR]/tok");
    assert_ne!(read(), reserved);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let attempt = fresh.get("attemptId");
    let _ = root
        .json(&["admit", "t1", "--attempt", &attempt, "--start", "--token-file", &file])
        .is(0, "admitted");
}

#[test]
fn a_file_that_is_not_there_yet_is_written_by_a_stranger() {
    let root = TestRoot::new();
    let _task = root.reserve("t1");
    let file = root.file("new");
    let out = root.json(&["rotate", "t1", "--as", "launch", "--token-file", &file]).is(0, "launched");
    let token = std::fs::read_to_string(&file).unwrap();
    let admit = ["admit", "t1", "--attempt", &out.get("attemptId"), "--token", token.trim()];
    let _ = root.json(&admit).is(0, "registered");
}

#[test]
fn a_refused_or_tokenless_rotation_leaves_the_file_alone() {
    let root = TestRoot::new();
    let file = root.file("tok");
    let _ = root.json(&["reserve", "t1", "--parent", "ws", "--token-file", &file]).is(0, "reserved");
    let token = std::fs::read(&file).unwrap();
    let around = || {
        let mut names: Vec<_> =
            std::fs::read_dir(root.scratch()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (names, before) = (around(), root.bytes());
    let _ = root.json(&["rotate", "t1", "--as", "reawaken", "--token-file", &file]).is(10, "not-interrupted");
    let nowhere = root.file("no/such/folder");
    let _ = root.json(&["rotate", "t1", "--as", "launch", "--token-file", &nowhere]).is(74, "io");
    assert_eq!(
        (around(), root.bytes(), std::fs::read(&file).unwrap()),
        (names.clone(), before, token.clone())
    );
    let _ = root.json(&["rotate", "t1", "--as", "launch", "--token-file", &file]).is(0, "launched");
    let startup = ["rotate", "t1", "--as", "startup", "--unproven", "--token-file", &file];
    let _ = root.json(&startup).is(0, "rotated");
    assert_eq!((around(), std::fs::read(&file).unwrap()), (names, token), "a startup has no token");
}

#[test]
fn a_repeated_rotation_gives_its_token_file_again() {
    let root = TestRoot::new();
    let _task = root.reserve("t1");
    let file = root.file("tok");
    let args = ["rotate", "t1", "--as", "launch", "--token-file", &file, "--request-id", "r1"];
    let first = root.json(&args).is(0, "launched");
    let token = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let before = root.bytes();
    assert_eq!(root.json(&args).stdout, first.stdout);
    assert_eq!(std::fs::read(&file).unwrap(), token);
    assert_eq!(root.bytes(), before);
}

#[test]
fn a_token_comes_in_one_way_only() {
    let root = TestRoot::new();
    let _task = root.reserve("t1");
    let both = ["rotate", "t1", "--as", "launch", "--token", "x", "--token-file", "f"];
    let _ = root.json(&both).is(64, "usage");
    let _ = root.json(&["rotate", "t1", "--as", "launch", "--token-fd", "77"]).is(64, "usage");
}
