//! A scratch folder with a root in it, and calls of the real binary on it, alone or under `strace`.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirEntryExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The binary under test: built for the tests, so that its clock and its ids can be fixed.
pub const BIN: &str = env!("CARGO_BIN_EXE_lychgate");

/// One call: what is said on the command line, on standard input, and which clock and ids it sees.
#[derive(Debug, Clone)]
pub struct Call {
    pub args: Vec<String>,
    pub stdin: Vec<u8>,
    /// The second of the fixed clock, and the seed of the fixed ids.
    pub tick: u32,
}

impl Call {
    pub fn new<S: AsRef<str>>(args: &[S]) -> Self {
        Self { args: args.iter().map(|arg| arg.as_ref().to_owned()).collect(), stdin: Vec::new(), tick: 0 }
    }

    /// The same call at another time and with other ids, as a caller that repeats it would make it.
    pub fn at(&self, tick: u32) -> Self {
        Self { tick, ..self.clone() }
    }
}

/// What a call did, as seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The exit status; `None` if a signal ended it.
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    /// Standard output, with the scratch folder blanked.
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// The answer, if a whole one was printed.
    pub fn answer(&self) -> Option<Value> {
        self.stdout.strip_suffix('\n').and_then(|line| serde_json::from_str(line).ok())
    }

    /// The code of the answer; empty if there is none.
    pub fn code(&self) -> String {
        let answer = self.answer();
        answer.and_then(|answer| answer["code"].as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// A scratch folder. The root in it is `root`; files of the caller's lie beside that.
#[derive(Debug)]
pub struct Bench {
    pub dir: PathBuf,
}

impl Bench {
    /// An empty one, in place of whatever was there.
    pub fn fresh(dir: PathBuf) -> Self {
        remove(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self { dir }
    }

    /// A copy of another one, in place of whatever was there.
    pub fn copy_of(from: &Self, dir: PathBuf) -> Self {
        remove(&dir);
        copy(&from.dir, &dir, &mut HashMap::new());
        Self { dir }
    }

    pub fn root(&self) -> PathBuf {
        self.dir.join("root")
    }

    fn prepare(&self, program: &[&str], call: &Call) -> Command {
        let (tick, [first, rest @ ..]) = (call.tick, program) else { unreachable!("a program has a name") };
        let mut command = Command::new(first);
        command
            .args(rest)
            .args(&call.args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LYCHGATE_ROOT", self.root())
            .env("LYCHGATE_TEST_SEED", format!("seed-{tick}"))
            .env("LYCHGATE_TEST_NOW", format!("2026-01-01T00:{:02}:{:02}.000Z", tick / 60, tick % 60))
            .env("LYCHGATE_TEST_BOOT_ID", "boot")
            .env("LYCHGATE_TEST_BOOT_MS", (u64::from(tick) * 1000).to_string())
            .current_dir(&self.dir);
        command
    }

    fn finish(&self, mut command: Command, call: &Call) -> Outcome {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = std::thread::scope(|scope| {
            // A call that is cut short leaves its standard input unread.
            scope.spawn(move || drop(stdin.write_all(&call.stdin)));
            child.wait_with_output().unwrap()
        });
        self.outcome(output)
    }

    fn outcome(&self, output: Output) -> Outcome {
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).unwrap().replace(&self.dir.display().to_string(), "[DIR]")
        };
        Outcome {
            exit: output.status.code(),
            signal: output.status.signal(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Runs a call to its end.
    pub fn run(&self, call: &Call) -> Outcome {
        self.finish(self.prepare(&[BIN], call), call)
    }

    /// Runs a call under `strace` with these options, and gives the trace as well.
    pub fn traced(&self, call: &Call, options: &[&str]) -> (Outcome, String) {
        let log = self.dir.with_extension("strace");
        let log_name = log.display().to_string();
        let mut program = vec!["strace", "-qq", "-o", &log_name];
        program.extend(options);
        program.push(BIN);
        let outcome = self.finish(self.prepare(&program, call), call);
        let trace = fs::read(&log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (outcome, trace.unwrap_or_default())
    }

    /// Every file and folder below the scratch folder: its path, its mode and its bytes, sorted.
    pub fn tree(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        walk(&self.dir, &self.dir, &mut entries);
        entries.sort();
        entries
    }
}

/// One file or folder. A folder has no bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    pub path: String,
    pub mode: u32,
    pub bytes: Option<Vec<u8>>,
}

impl Entry {
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap()
    }
}

fn walk(dir: &Path, base: &Path, out: &mut Vec<Entry>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = path.strip_prefix(base).unwrap().display().to_string();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
        if entry.file_type().unwrap().is_dir() {
            out.push(Entry { path: name, mode, bytes: None });
            walk(&path, base, out);
        } else {
            out.push(Entry { path: name, mode, bytes: Some(fs::read(&path).unwrap()) });
        }
    }
}

/// Copies a folder. Two names of one file are two names of one file in the copy.
fn copy(from: &Path, to: &Path, names: &mut HashMap<u64, PathBuf>) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target, names);
        } else if let Some(first) = names.get(&entry.ino()) {
            fs::hard_link(first, target).unwrap();
        } else {
            fs::copy(entry.path(), &target).unwrap();
            names.insert(entry.ino(), target);
        }
    }
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
}

pub fn remove(dir: &Path) {
    if dir.exists() {
        fs::remove_dir_all(dir).unwrap();
    }
}
