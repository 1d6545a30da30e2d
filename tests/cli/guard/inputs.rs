//! The texts that calls bring along, on standard input or in a file.

use std::process::{Command, Stdio};

use super::{Session, todo_list};
use crate::common::{BIN, TestRoot};

const MAX: usize = 64 * 1024;

#[test]
fn a_text_is_not_blank_not_too_large_and_utf8() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let _ = s.submit("p1");
    let before = root.bytes();
    let calls = ["say s", "prompt submit s --alias p2 --file -", "notify s put --task b --file -", "todo s"];
    for line in calls {
        let args: Vec<&str> = line.split(' ').collect();
        let run = |bytes: &[u8]| root.json_with_stdin(&args, bytes);
        let _ = run(b"").is(64, "text-empty");
        let _ = run(b" \n\t ").is(64, "text-empty");
        let _ = run("\u{a0}\u{2003}".as_bytes()).is(64, "text-empty");
        let _ = run(b"\xff\xfe").is(64, "usage");
        let most = if args[0] == "todo" { 1 << 20 } else { MAX };
        let _ = run(&vec![b'x'; most + 1]).is(64, "text-too-large");
    }
    let _ = s.call("say", &["--file", &root.file("missing")]).is(64, "usage");
    let _ = s.call("say", &["--file", &root.file(".")]).is(64, "usage");
    let _ = s.call("say", &[]).is(64, "text-empty");
    assert_eq!(root.bytes(), before);
    assert_eq!(s.tell("say", &[], &"x".repeat(MAX)).is(0, "said").get("waiting"), "1");
    let _ = s.tell("say", &[], "\u{0}\u{1b}[2J\u{202e}").is(0, "said");
}

#[test]
fn a_terminal_is_no_text() {
    let root = TestRoot::new();
    let _ = Session::open(&root, "s");
    let call = format!("{BIN} say s --json");
    // `script` gives its child a terminal of its own; its own input has ended.
    let mut command = Command::new("script");
    command.args(["-qec", &call, "/dev/null"]).env("LYCHGATE_ROOT", root.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(64) && told.contains("text-empty"), "{told}");
}

#[test]
fn a_file_is_read_and_standard_input_is_left_alone_unless_asked_for() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    std::fs::write(root.file("list"), todo_list(&["pending"])).unwrap();
    let _ = s.call("todo", &["--file", &root.file("list")]).is(0, "todo-counted");
    // A call that may bring a text does not wait for one that nobody writes.
    let mut command = root.command(&["prompt", "submit", "s", "--json"]);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let held = child.stdin.take();
    let _ = root.finish(child).is(0, "submitted");
    drop(held);
}
