//! Bad input of every kind against every command: a clear error, the documented exit, and nothing changed.
//!
//! Every call of these files goes through [`call`], which knows the documented exits: a panic, a signal, an
//! internal error, and the exits 1 and 2 fail the test wherever they occur.
#![allow(let_underscore_drop, reason = "what a call did is looked at by the assertion in the same line")]

mod argv;
mod bounds;
mod damage;
mod evidence;
mod full_disk;
mod ids;
mod inputs;
mod limits;
mod output;
mod places;
mod roots;
mod texts;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lychgate::protocol::codes::Code;
use serde_json::Value;

use crate::common::{Task, TestRoot};

/// What a call may end with. 70 is a bug of ours, 1 and 2 mean something else to those who call us.
const EXITS: [i32; 9] = [0, 10, 11, 12, 64, 65, 71, 74, 75];

/// What a call did, byte for byte.
#[must_use]
#[derive(Debug, Clone)]
struct Raw {
    exit: i32,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    shown: String,
}

impl Raw {
    fn new(output: Output, shown: String) -> Self {
        let exit = output.status.code().unwrap_or(-1);
        Self { exit, stdout: output.stdout, stderr: output.stderr, shown }
    }

    fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.out().matches('\n').count(), 1, "one line: {self:?}");
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.describe()))
    }

    #[track_caller]
    fn code(&self) -> String {
        self.json()["code"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn get(&self, field: &str) -> String {
        self.json()[field].as_str().unwrap_or_else(|| panic!("no {field}: {}", self.describe())).to_owned()
    }

    #[track_caller]
    fn is(self, exit: i32, code: &str) -> Self {
        assert_eq!((self.exit, self.code().as_str()), (exit, code), "{}", self.describe());
        self
    }

    /// The exit alone, for the text form.
    #[track_caller]
    fn exits(self, exit: i32) -> Self {
        assert_eq!(self.exit, exit, "{}", self.describe());
        self
    }

    /// One of several codes, each with its own exit.
    #[track_caller]
    fn either(self, codes: &[&str]) -> Self {
        assert!(codes.contains(&self.code().as_str()), "not one of {codes:?}: {}", self.describe());
        self
    }

    fn describe(&self) -> String {
        let short = |text: String| text.chars().take(2000).collect::<String>();
        format!("`{}` -> {}\n{}\n{}", self.shown, self.exit, short(self.out()), short(self.err()))
    }
}

fn shown(command: &Command) -> String {
    let args: Vec<String> =
        command.get_args().map(|arg| arg.to_string_lossy().escape_debug().to_string()).collect();
    args.join(" ").chars().take(600).collect()
}

/// Runs a call and holds it to what is documented of every call.
#[track_caller]
fn call(mut command: Command) -> Raw {
    let shown = shown(&command);
    let output = command.output().unwrap_or_else(|error| panic!("{shown}: {error}"));
    documented(Raw::new(output, shown))
}

#[track_caller]
fn documented(raw: Raw) -> Raw {
    assert!(EXITS.contains(&raw.exit), "an exit that is not documented: {}", raw.describe());
    assert!(!raw.err().contains("panicked"), "{}", raw.describe());
    if let Ok(answer) = serde_json::from_slice::<Value>(&raw.stdout)
        && let Some(code) = answer["code"].as_str()
    {
        let code = Code::parse(code).unwrap_or_else(|| panic!("an unknown code: {}", raw.describe()));
        let exit = i32::from(code.exit().number());
        // A Stop that waited in vain is pending, whatever became of it.
        assert!(raw.exit == exit || (raw.exit == 12 && exit == 0), "{}", raw.describe());
        assert_eq!(answer["ok"], raw.exit == 0, "{}", raw.describe());
        assert!(!answer["message"].as_str().unwrap().is_empty(), "{}", raw.describe());
    }
    if raw.exit != 0 && raw.exit != 12 {
        assert!(!raw.stdout.is_empty() || !raw.stderr.is_empty(), "it says nothing: {}", raw.describe());
    }
    raw
}

/// A call that answers in JSON.
#[track_caller]
fn json(root: &TestRoot, args: &[&str]) -> Raw {
    let mut all = vec!["--json"];
    all.extend(args);
    call(root.command(&all))
}

/// A call that answers in text.
#[track_caller]
fn text(root: &TestRoot, args: &[&str]) -> Raw {
    call(root.command(args))
}

/// A call with something on standard input, answering in JSON.
#[track_caller]
fn json_with_stdin(root: &TestRoot, args: &[&str], stdin: &[u8]) -> Raw {
    let mut all = vec!["--json"];
    all.extend(args);
    let mut command = root.command(&all);
    let shown = shown(&command);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A call that refuses may close its standard input before all of it is written.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    documented(Raw::new(output, shown))
}

/// Runs a shell line with the binary as `$LG`, with the environment of the root.
#[track_caller]
fn sh(root: &TestRoot, script: &str, args: &[&str]) -> Raw {
    let ours = root.command(&[]);
    let mut command = Command::new("bash");
    command.arg("-c").arg(script).arg("bash").args(args).env_clear();
    for (name, value) in ours.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("LG", crate::common::BIN).current_dir(root.scratch());
    let output = command.stdin(Stdio::null()).output().unwrap();
    Raw::new(output, script.to_owned())
}

/// Everything below a folder as it lies there: what each name is, its mode, its owner and its bytes. Nothing is
/// opened but regular files, so a FIFO does not hold it up.
fn tree(path: &Path) -> BTreeMap<PathBuf, (String, Vec<u8>)> {
    fn walk(path: &Path, found: &mut BTreeMap<PathBuf, (String, Vec<u8>)>) {
        let Ok(meta) = std::fs::symlink_metadata(path) else { return };
        let kind = meta.file_type();
        let bytes = if kind.is_file() {
            std::fs::read(path).unwrap()
        } else if kind.is_symlink() {
            std::fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec()
        } else {
            Vec::new()
        };
        let other = kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device();
        let word = if other { "other" } else { "plain" };
        let about = format!("{word} {kind:?} {:o} {}:{}", meta.mode(), meta.uid(), meta.gid());
        found.insert(path.to_owned(), (about, bytes));
        if kind.is_dir() {
            for entry in std::fs::read_dir(path).unwrap() {
                walk(&entry.unwrap().path(), found);
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(path, &mut found);
    found
}

/// The tree before a call, to be compared with the one after it.
struct Unchanged {
    path: PathBuf,
    before: BTreeMap<PathBuf, (String, Vec<u8>)>,
}

impl Unchanged {
    fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), before: tree(path) }
    }

    fn root(root: &TestRoot) -> Self {
        Self::of(&root.path())
    }

    #[track_caller]
    fn holds(&self, why: &str) {
        let after = tree(&self.path);
        let names = self.before.keys().chain(after.keys());
        let changed: Vec<_> = names.filter(|name| self.before.get(*name) != after.get(*name)).collect();
        assert!(changed.is_empty(), "{why}\nchanged: {changed:?}");
    }
}

/// A name as the root writes it.
fn encoded(dir: &Path, want: &str) -> PathBuf {
    dir.join(OsStr::new(want))
}

/// A tree of tasks at work: `pa` under the workspace `ws`, `t1` under `pa`, and `other`, which no damage to `t1`
/// may touch.
struct Family<'a> {
    root: &'a TestRoot,
    parent: Task<'a>,
    child: Task<'a>,
    other: Task<'a>,
    turn: String,
}

const STEP: [&str; 6] = ["--run", "run", "--step", "step", "--input-hash", "hash"];

impl<'a> Family<'a> {
    fn new(root: &'a TestRoot) -> Self {
        let pid = std::process::id().to_string();
        let parent = root.reserve("pa").launched();
        let out = json(
            root,
            &[&["reserve", "t1", "--parent", "pa", "--owner-pid", &pid], STEP.as_slice()].concat(),
        )
        .is(0, "reserved");
        let child = Task {
            root,
            id: "t1".to_owned(),
            attempt: out.get("attemptId"),
            token: out.get("token"),
            worker: out.get("workerToken"),
        }
        .launched();
        let turn = child.turn();
        let other = root.reserve("other").launched();
        Self { root, parent, child, other, turn }
    }

    /// `t1` reported.
    fn reported(self) -> Self {
        let _ = self.child.report("the report").is(0, "report-accepted");
        self
    }

    /// `t1` reported, and a second report was kept as late.
    fn with_late(self) -> Self {
        let this = self.reported();
        let _ = this.child.report("another one").is(10, "late-report");
        this
    }

    /// `t1` stopped and settled, with receipts at `pa` and at `ws`.
    fn settled(self) -> Self {
        let _ = json(self.root, &["stop", "t1"]).is(0, "stopping");
        let _ = self.child.settle(&self.turn).is(0, "turn-settled");
        assert!(self.receipt("pa").exists() && self.receipt("ws").exists(), "{}", self.root.tree());
        self
    }

    /// One more commit of `t1`, after which its row no longer carries the record of the one before.
    fn moved_on(self) -> Self {
        let _ = json(self.root, &["stop", "t1"]).either(&["already-stopped", "stopping", "already-stopping"]);
        self
    }

    fn receipt(&self, workspace: &str) -> PathBuf {
        let file = format!("{}.json", self.child.attempt);
        encoded(&self.root.path().join("sessions"), workspace)
            .join("subagent-attempt-settlements/t1")
            .join(file)
    }

    fn report_file(&self) -> PathBuf {
        let folder = self.root.path().join("sessions/pa/subagent-reports/t1");
        folder.join(format!("{}.json", self.child.attempt))
    }

    fn late_file(&self) -> PathBuf {
        let folder = self.root.path().join("sessions/pa/subagent-reports/t1/late");
        std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
    }

    fn row_file(&self) -> PathBuf {
        self.root.path().join("tasks/t1/row.json")
    }

    /// Every command that speaks about `t1`, reading and changing.
    fn commands(&self) -> Vec<Vec<String>> {
        let (attempt, token) = (self.child.attempt.as_str(), self.child.token.as_str());
        let expect = format!("{attempt}@0");
        let send = format!("snd_{}0001", attempt.trim_start_matches("att_"));
        let claim = ["claim-retire", "t1", "--attempt", attempt, "--parent", "pa"];
        let lines: Vec<Vec<&str>> = vec![
            vec!["reserve", "t1", "--parent", "pa"],
            vec!["reserve", "fresh", "--replaces", "t1", "--nonce", "non_00000000000000000000000000000000"],
            vec!["rotate", "t1", "--as", "launch", "--token", token],
            vec!["rotate", "t1", "--as", "reawaken", "--expect", &expect],
            vec!["rotate", "t1", "--as", "reactivate", "--unproven"],
            vec!["rotate", "t1", "--as", "startup", "--unproven"],
            vec!["admit", "t1", "--attempt", attempt, "--token", token],
            vec!["admit", "t1", "--attempt", attempt, "--start", "--token", token],
            vec!["admit", "t1", "--send", &send, "--start", "--token", token],
            vec!["stop", "t1"],
            vec!["stop", "t1", "--tree", "--cleanup", "disk"],
            vec!["settle", "t1", "--turn", &self.turn, "--close", "--token", token],
            vec!["settle", "t1", "--send", &send, "--as", "refused", "--token", token],
            vec!["settle", "t1", "--token", token],
            vec!["report", "t1", "--attempt", attempt, "--token", token, "--file", "some-report"],
            vec!["report", "t1", "--show"],
            vec!["report", "t1", "--show", "--late"],
            [claim.as_slice(), &STEP].concat(),
            [claim.as_slice(), &STEP, &["--mode", "retire-reported", "--token", token]].concat(),
            vec!["inspect", "t1"],
            vec!["inspect", "t1", "--explain", "--history", "--token", token],
            vec!["recover", "t1"],
            vec!["recover", "t1", "--unproven"],
        ];
        std::fs::write(self.root.scratch().join("some-report"), "a report from a file").unwrap();
        lines.into_iter().map(|line| line.into_iter().map(str::to_owned).collect()).collect()
    }

    /// The other task goes on working, whatever happened to `t1`.
    #[track_caller]
    fn other_is_usable(&self) {
        let _ = json(self.root, &["inspect", "other", "--expect", "live"]).is(0, "ok");
        let other = &self.other;
        let admit = ["admit", "other", "--attempt", &other.attempt, "--start", "--token", &other.token];
        let turn = json(self.root, &admit).is(0, "admitted").get("turnId");
        let _ = json(self.root, &["settle", "other", "--turn", &turn, "--token", &other.token])
            .is(0, "turn-settled");
    }
}

fn strs(line: &[String]) -> Vec<&str> {
    line.iter().map(String::as_str).collect()
}
