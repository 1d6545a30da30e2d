//! Every code an answer can carry: documented in `docs/CODES.md`, and reached from outside by some test.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lychgate::protocol::codes::{Code, Exit};

use crate::common::{BIN, TestRoot};
use crate::kit::{Process, refused};

/// Codes no test in this folder can reach, and why.
const UNREACHABLE: [(Code, &str); 2] = [
    (Code::Internal, "it says that the program contradicts itself, which no call may bring about"),
    (Code::Unresolved, "answered where a step's earlier child cannot be judged; no call gives it yet"),
];

const EXITS: [(Exit, &str); 10] = [
    (Exit::Done, "done, or the question is answered"),
    (Exit::Refused, "a rule says no; nothing changed unless the meaning says so"),
    (Exit::Unresolved, "evidence is missing or contradictory"),
    (Exit::Pending, "something is still owed; ask again"),
    (Exit::Usage, "the call itself is wrong"),
    (Exit::Data, "data is unreadable, damaged or of a newer format; nothing was written"),
    (Exit::Internal, "a bug in lychgate"),
    (Exit::Uncertain, "a change may be visible; repeat with the same `--request-id`"),
    (Exit::Io, "an I/O error; the old state stands"),
    (Exit::Busy, "a lock was not free in time; nothing was changed"),
];

fn documented() -> String {
    let mut text = String::from(
        "# Codes\n\nEvery answer carries a `code`: one stable word. It decides the exit status. `inspect` gives some of them as \
         a `reasonCode` with exit 0, and `late-report` names its reason in the same field.\n\nThis file is written by a test from the table in \
         `src/protocol/codes.rs`:\n`LYCHGATE_UPDATE_DOCS=1 cargo test --test cli codes::` rewrites it.\n",
    );
    for (exit, meaning) in EXITS {
        write!(text, "\n## {}: {meaning}\n\n| code | meaning |\n|---|---|\n", exit.number()).unwrap();
        for code in Code::ALL.iter().filter(|code| code.exit() == exit) {
            writeln!(text, "| `{code}` | {} |", code.meaning().replace('|', "\\|")).unwrap();
        }
    }
    text
}

#[test]
fn the_documented_codes_are_those_of_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/CODES.md");
    let wanted = documented();
    if std::env::var("LYCHGATE_UPDATE_DOCS").is_ok_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "docs/CODES.md is not the table's: run with LYCHGATE_UPDATE_DOCS=1");
    for code in Code::ALL {
        assert_eq!(found.matches(&format!("| `{code}` |")).count(), 1, "{code} stands there once");
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Whether a line of a test names a code as something that was answered: as a text of its own, as the last word of
/// one, or in the brackets in which people are told it.
fn names(line: &str, code: &str) -> bool {
    let line = line.trim_start();
    let opening = ['"', '(', '\'', ' '];
    !line.starts_with("//")
        && line.match_indices(code).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + code.len()..].chars().next();
            before.is_some_and(|c| opening.contains(&c))
                && after.is_some_and(|c| ['"', ')', '\''].contains(&c))
        })
}

#[test]
fn every_code_is_reached_by_a_test_from_outside() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli"), &mut files);
    assert!(files.len() > 5, "{files:?}");
    let text: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let is_named =
        |code: Code| text.iter().flat_map(|text| text.lines()).any(|line| names(line, code.as_str()));
    let is_excused = |code: Code| UNREACHABLE.iter().any(|(excused, _)| *excused == code);
    let missing: Vec<_> = Code::ALL.iter().filter(|code| !is_named(**code) && !is_excused(**code)).collect();
    assert!(missing.is_empty(), "no test names {missing:?}");
    let needless: Vec<_> = UNREACHABLE.iter().filter(|(code, _)| is_named(*code)).collect();
    assert!(needless.is_empty(), "a test names {needless:?}, so it is no exception any more");
}

#[test]
fn the_scan_tells_an_answer_from_a_word_in_passing() {
    for line in [".is(10, \"busy\")", "is(&t, \"indeterminate busy\")", "refused (busy): x", "CODE='busy'"] {
        assert!(names(line, "busy"), "{line}");
    }
    for line in ["// \"busy\"", "let busy = 1;", "\"busy-body\"", "the row is busy, so", "\"not_busy\""] {
        assert!(!names(line, "busy"), "{line}");
    }
}

#[test]
fn codes_and_exits_are_stable_words_and_numbers() {
    let mut words = BTreeMap::new();
    for code in Code::ALL {
        let word = code.as_str();
        assert!(word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{word}");
        assert_eq!(Code::parse(word), Some(*code));
        assert!(words.insert(word, code).is_none(), "{word} twice");
        assert!(EXITS.iter().any(|(exit, _)| *exit == code.exit()), "{word} has a documented exit");
        assert!(![1, 2].contains(&code.exit().number()), "agents read 2 as a block, and 1 is any crash");
    }
}

/// The refusals of the verbs that start work, each in the shortest story.
#[test]
fn the_verbs_that_start_work_refuse_with_their_own_words() {
    let root = TestRoot::new();
    let task = root.reserve("t1");
    let (attempt, token) = (task.attempt.clone(), task.token.clone());
    refused(&root, &["reserve", "t1", "--parent", "ws"], 10, "task-exists");
    refused(&root, &["reserve", "t2", "--replaces", "t1", "--nonce", "non_0"], 10, "not-claimed");
    let launch = ["rotate", "t1", "--as", "launch", "--token", &token];
    let expect = ["rotate", "t1", "--as", "launch", "--expect", "att_0000000000000000"];
    refused(&root, &expect, 10, "stale-launch");
    refused(&root, &["rotate", "t1", "--as", "reactivate"], 10, "not-reported");
    refused(&root, &["rotate", "t1", "--as", "startup"], 10, "not-running");
    refused(&root, &["rotate", "t1", "--as", "launch", "--owner-pid", "4194305"], 10, "owner-pid-unreadable");
    let start = ["admit", "t1", "--attempt", &attempt, "--start", "--token", &token];
    refused(&root, &start, 10, "not-launched");
    root.json(&launch).is(0, "launched");
    refused(&root, &launch, 10, "not-queued");
    refused(&root, &["rotate", "t1", "--as", "reawaken"], 10, "not-interrupted");
    let at = format!("{attempt}@7");
    refused(&root, &["rotate", "t1", "--as", "startup", "--expect", &at], 10, "stale-epoch");
    let queue = ["admit", "t1", "--attempt", &attempt, "--queued", "--token", &token];
    let send = root.json(&queue).is(0, "enqueued").get("sendId");
    root.json(&["admit", "t1", "--send", &send, "--queued", "--token", &token]).is(0, "already-enqueued");
    let gate = ["admit", "t1", "--send", &send, "--start", "--token", &token];
    root.json(&gate).is(0, "admitted");
    refused(&root, &gate, 10, "already-admitted");
    refused(&root, &["rotate", "t1", "--as", "startup", "--unproven"], 10, "owner-alive");
    let other = root.reserve_unknown("t3").launched();
    refused(&root, &["rotate", "t3", "--as", "startup"], 10, "owner-unknown");
    let out = root.json(&["rotate", "t3", "--as", "startup", "--unproven"]).is(0, "rotated");
    let unowned = ["admit", "t3", "--attempt", &out.get("attemptId"), "--start"];
    root.json(&unowned).is(0, "admitted");
    refused(&root, &unowned, 10, "unowned-send-used");
    let parent = root.reserve("top").launched();
    let child = root.json(&["reserve", "child", "--parent", "top"]).is(0, "reserved");
    root.json(&["stop", "top"]).is(0, "stopped");
    refused(
        &root,
        &["rotate", "child", "--as", "launch", "--token", &child.get("token")],
        10,
        "ancestor-stopped",
    );
    let file = root.file("token");
    std::fs::write(&file, "mine").unwrap();
    refused(&root, &["reserve", "t4", "--parent", "ws", "--token-file", &file], 10, "token-file-exists");
    drop((other, parent));
}

#[test]
fn a_root_that_cannot_be_trusted_is_refused_for_what_is_wrong_with_it() {
    let stop = ["stop", "t1"];
    let spoilt = |spoil: &dyn Fn(&Path)| {
        let root = TestRoot::new();
        drop(root.reserve("t1").launched());
        spoil(&root.path());
        root
    };
    let damaged = spoilt(&|path| std::fs::remove_file(path.join("secret")).unwrap());
    refused(&damaged, &stop, 65, "root-damaged");
    let foreign = spoilt(&|path| std::fs::write(path.join("config.json"), b"{\"projects\":[]}").unwrap());
    refused(&foreign, &stop, 65, "foreign-root");
    refused(&foreign, &["inspect", "t1"], 65, "foreign-root");
    let linked = spoilt(&|path| {
        std::fs::rename(path.join("tasks"), path.join("elsewhere")).unwrap();
        symlink("elsewhere", path.join("tasks")).unwrap();
    });
    refused(&linked, &stop, 65, "link-refused");
    let others = spoilt(&|path| chown(path, Some(12_345), None).unwrap());
    refused(&others, &stop, 65, "root-not-yours");
    others.json(&["inspect", "t1"]).is(0, "ok");
}

/// A call under `strace`, which injects what a healthy system never does.
fn injected(root: &TestRoot, inject: &str, args: &[&str]) -> Command {
    let plain = root.command(args);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", &root.file("strace"), "-e", inject, BIN]).args(args).arg("--json");
    command.env_clear().current_dir(root.scratch()).stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn a_file_system_whose_locks_cannot_be_trusted_is_read_and_not_written() {
    let root = TestRoot::new();
    let mut process = Process::alive();
    drop(crate::kit::owned_by(&root, &process, "t1").launched());
    process.die();
    // The kernel is made to say that every file is on FUSE.
    let fuse = "inject=fstatfs:poke_exit=@arg2=4655736500000000";
    let before = root.bytes();
    let out = root.finish(injected(&root, fuse, &["stop", "t1"]).spawn().unwrap());
    let out = out.is(65, "network-filesystem");
    assert_eq!(before, root.bytes());
    insta::assert_snapshot!(out.get("hint"), @r#"set LYCHGATE_ROOT to a folder on a local disk, or set `"networkFilesystem": "allow"` in the root's `config.json`"#);
    let out = root.finish(injected(&root, fuse, &["inspect", "t1"]).spawn().unwrap()).is(0, "ok");
    assert_eq!(out.get("owner.alive"), "unknown", "nobody is ever proven dead there");
}

#[test]
fn a_change_that_is_visible_and_not_proven_durable_is_uncertain_until_its_repeat() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let args = ["admit", "t1", "--attempt", &task.attempt, "--token", &task.token, "--request-id", "r1"];
    // Each sync of the call fails in its turn; the last one is that of the folder, after the rename.
    let mut codes = Vec::new();
    for nth in 1..9 {
        let fails = format!("inject=fsync,fdatasync:error=EIO:when={nth}");
        let out = root.finish(injected(&root, &fails, &args).spawn().unwrap());
        codes.push(out.code());
        if out.exit != 74 {
            break;
        }
    }
    assert_eq!(codes.last().map(String::as_str), Some("uncertain"), "{codes:?}");
    assert!(codes.iter().rev().skip(1).all(|code| code == "io"), "{codes:?}");
    root.json(&args).is(0, "registered");
    assert_eq!(root.row("t1")["sends"].as_array().unwrap().len(), 1, "once, whatever the repeats");
}

#[test]
fn an_output_that_nobody_can_read_is_noticed_before_anything_is_written() {
    let root = TestRoot::new();
    let task = root.reserve("t1").launched();
    let before = root.bytes();
    let shell = format!("exec {BIN} stop t1 >&-");
    let mut command = Command::new("sh");
    command.args(["-c", &shell]).env("LYCHGATE_ROOT", root.path()).stderr(Stdio::piped());
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(74));
    assert!(String::from_utf8(out.stderr).unwrap().contains("(output-unusable)"));
    assert_eq!(before, root.bytes());
    drop(task);
}
