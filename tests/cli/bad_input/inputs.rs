//! Reports and tokens from places that give nothing, too much, or something else.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::{Family, Unchanged, json, json_with_stdin, sh};
use crate::common::TestRoot;

#[test]
fn a_report_comes_from_a_text_or_not_at_all() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let write = |name: &str, bytes: &[u8]| std::fs::write(root.scratch().join(name), bytes).unwrap();
    write("blank", b" \n\t\xe3\x80\x80\n");
    write("empty", b"");
    write("latin", b"caf\xe9");
    write("cut", b"a\xe6\xbc");
    write("surrogate", b"\xed\xa0\x80");
    std::fs::create_dir(root.scratch().join("folder")).unwrap();
    symlink("nowhere", root.scratch().join("dangling")).unwrap();
    std::fs::File::create(root.scratch().join("huge")).unwrap().set_len(1 << 40).unwrap();
    let report = ["report", "t1", "--attempt", &family.child.attempt, "--token", &family.child.token];
    let unchanged = Unchanged::root(&root);
    for (file, code) in [
        ("blank", "report-empty"),
        ("empty", "report-empty"),
        ("/dev/null", "report-empty"),
        ("latin", "report-not-text"),
        ("cut", "report-not-text"),
        ("surrogate", "report-not-text"),
        ("/dev/zero", "report-too-large"),
        ("/dev/urandom", "report-not-text"),
        ("huge", "report-too-large"),
        ("folder", "usage"),
        ("dangling", "usage"),
        ("missing", "usage"),
        ("missing/too", "usage"),
        ("", "usage"),
        ("/proc/self/mem", "usage"),
    ] {
        let _ = json(&root, &[report.as_slice(), &["--file", file]].concat()).is(64, code);
    }
    for (stdin, code) in
        [(b"".as_slice(), "report-empty"), (b"\n", "report-empty"), (b"\xff", "report-not-text")]
    {
        let _ = json_with_stdin(&root, &report, stdin).is(64, code);
        let _ = json_with_stdin(&root, &[report.as_slice(), &["--file", "-"]].concat(), stdin).is(64, code);
    }
    let closed = [report.as_slice(), &["--json"]].concat();
    let _ = sh(&root, r#"exec "$LG" "$@" <&-"#, &closed).is(64, "report-empty");
    let _ = sh(&root, r#"exec "$LG" "$@" <folder"#, &closed).is(64, "usage");
    let _ = sh(&root, r#"exec "$LG" "$@" </dev/zero"#, &closed).is(64, "report-too-large");
    // Nobody meant to type a report: a terminal is not waited for.
    let terminal = sh(&root, r#"exec script -qec "$(printf '%q ' "$LG" "$@")" /dev/null"#, &closed);
    assert!(terminal.exit == 64 && terminal.out().contains("report-empty"), "{}", terminal.describe());
    unchanged.holds("no report");
    let _ = family.child.report("a text").is(0, "report-accepted");
}

#[test]
fn a_report_that_nobody_may_read_is_the_callers_mistake() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let path = root.scratch().join("mine");
    std::fs::write(&path, "a text").unwrap();
    for entry in super::tree(&root.path()).keys() {
        std::os::unix::fs::chown(entry, Some(1000), Some(1000)).unwrap();
    }
    std::fs::set_permissions(root.scratch(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let unchanged = Unchanged::root(&root);
    let as_user = r#"exec setpriv --reuid=1000 --regid=1000 --clear-groups "$LG" --json "$@""#;
    let (attempt, token) = (family.child.attempt.as_str(), family.child.token.as_str());
    let report = ["report", "t1", "--attempt", attempt, "--token", token, "--file", path.to_str().unwrap()];
    let _ = sh(&root, as_user, &report).is(64, "usage");
    let admit = ["admit", "t1", "--attempt", attempt, "--token-file", path.to_str().unwrap()];
    let _ = sh(&root, as_user, &admit).is(64, "usage");
    unchanged.holds("nothing was done");
}

/// What is read as a token and is none is a wrong token; what cannot be read at all is a mistake in the call.
#[test]
fn a_token_that_is_none_is_a_wrong_one() {
    let root = TestRoot::new();
    let family = Family::new(&root);
    let write = |name: &str, bytes: &[u8]| std::fs::write(root.scratch().join(name), bytes).unwrap();
    let token = family.child.token.clone();
    write("empty", b"");
    write("binary", b"tok_\xff\xfe\x00");
    write("long", "tok_".repeat(5000).as_bytes());
    write("cut character", &[b"x".repeat(4095), "\u{e9}".into()].concat());
    write("upper", token.to_uppercase().as_bytes());
    write("cut", &token.as_bytes()[..67]);
    write("two", format!("{token}\n{token}\n").as_bytes());
    write("right", format!("  {token}\n\n").as_bytes());
    std::fs::create_dir(root.scratch().join("folder")).unwrap();
    symlink("nowhere", root.scratch().join("dangling")).unwrap();
    let settle = ["settle", "t1", "--turn", &family.turn];
    let with = |more: &[&str]| json(&root, &[settle.as_slice(), more].concat());
    let unchanged = Unchanged::root(&root);
    for file in [
        "empty",
        "binary",
        "long",
        "cut character",
        "upper",
        "cut",
        "two",
        "/dev/null",
        "/dev/zero",
        "/dev/urandom",
    ] {
        let _ = with(&["--token-file", file]).is(10, "not-owner");
    }
    for bad in ["", " ", "x", "tok_", "\u{1f600}", "tok_zz", &"x".repeat(100_000), &token[1..], "'; exit 9"] {
        let _ = with(&[&format!("--token={bad}")]).is(10, "not-owner");
    }
    for file in ["folder", "dangling", "missing", "missing/too", "empty/below"] {
        let _ = with(&["--token-file", file]).is(64, "usage");
    }
    for fd in ["99", "2147483647"] {
        let _ = with(&["--token-fd", fd]).is(64, "usage");
    }
    for fd in ["-1", "x", "", "1.5", "99999999999", "0x0"] {
        let _ = with(&[&format!("--token-fd={fd}")]).is(64, "usage");
    }
    let closed = [settle.as_slice(), &["--json", "--token-fd", "0"]].concat();
    let _ = sh(&root, r#"exec "$LG" "$@" <folder"#, &closed).is(64, "usage");
    let _ =
        sh(&root, r#"exec "$LG" "$@" 7<&-"#, &[settle.as_slice(), &["--json", "--token-fd", "7"]].concat())
            .is(64, "usage");
    unchanged.holds("no wrong token pays");
    // No answer repeats what was shown as a token.
    let raw = with(&["--token", "tok_secret_of_somebody"]).is(10, "not-owner");
    assert!(!raw.out().contains("secret_of_somebody"), "{}", raw.describe());
    let _ = with(&["--token-file", "right"]).is(0, "turn-settled");
}

#[test]
fn a_token_file_that_cannot_be_written_commits_nothing() {
    let root = TestRoot::new();
    let _ = root.reserve("first");
    std::fs::write(root.scratch().join("file"), "kept").unwrap();
    std::fs::create_dir(root.scratch().join("folder")).unwrap();
    symlink("nowhere", root.scratch().join("dangling")).unwrap();
    let long = "n".repeat(256);
    let unchanged = Unchanged::of(root.scratch());
    for (file, codes) in [
        ("missing/f", ["io", "io"]),
        ("file/f", ["io", "io"]),
        ("file", ["token-file-exists", "token-file-exists"]),
        ("folder", ["token-file-exists", "token-file-exists"]),
        ("dangling", ["token-file-exists", "token-file-exists"]),
        (&long, ["io", "io"]),
        ("/dev/null", ["token-file-exists", "token-file-exists"]),
        ("", ["io", "usage"]),
        ("/proc/f", ["io", "io"]),
    ] {
        let raw = json(&root, &["reserve", "t1", "--parent", "ws", &format!("--token-file={file}")]);
        let _ = raw.either(&codes);
        unchanged.holds(file);
    }
}

/// A rotation writes its token over an older one, so it must know before its commit that it can.
#[test]
fn a_rotation_whose_token_has_no_place_commits_nothing() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let _ = json(&root, &["stop", "t1"]).is(0, "stopped");
    std::fs::write(root.scratch().join("file"), "kept").unwrap();
    std::fs::create_dir(root.scratch().join("folder")).unwrap();
    symlink("nowhere", root.scratch().join("dangling")).unwrap();
    let long = "n".repeat(256);
    let unchanged = Unchanged::of(root.scratch());
    for file in ["missing/f", "file/f", "folder", "dangling", &long, "/proc/f", ""] {
        let raw = json(&root, &["rotate", "t1", "--as", "reawaken", &format!("--token-file={file}")]);
        assert!([64, 74].contains(&raw.exit), "{file}: {}", raw.describe());
        unchanged.holds(file);
    }
    // A refused rotation leaves the old token where it is.
    std::fs::write(root.scratch().join("mine"), &task.token).unwrap();
    let unchanged = Unchanged::of(root.scratch());
    let _ = json(&root, &["rotate", "t1", "--as", "launch", "--token-file", "mine"]).is(10, "not-queued");
    unchanged.holds("a refused rotation writes no token");
    let _ = json(&root, &["rotate", "t1", "--as", "reawaken", "--token-file", "mine"]).is(0, "rotated");
    let token = std::fs::read_to_string(root.scratch().join("mine")).unwrap();
    assert_ne!(token.trim(), task.token);
    let mode = std::fs::metadata(root.scratch().join("mine")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

/// A token file in the place of a file of the root is refused like any existing file.
#[test]
fn no_token_is_written_over_a_file_of_the_root() {
    let root = TestRoot::new();
    let _ = root.reserve("t1");
    let unchanged = Unchanged::root(&root);
    for file in ["root/config.json", "root/secret", "root/tasks/t1/row.json", "root/tasks"] {
        let _ = json(&root, &["reserve", "t2", "--parent", "ws", "--token-file", file])
            .is(10, "token-file-exists");
    }
    unchanged.holds("nothing was written over");
}
