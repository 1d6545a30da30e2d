//! The harness: a fresh root on a real disk, a clean environment, a fixed clock and fixed ids, and the whole
//! behaviour of a call (exit code, standard output, standard error, and the tree it leaves) as one text.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// The binary under test, built with the test seams.
pub const BIN: &str = env!("CARGO_BIN_EXE_lychgate");

/// A fresh root and everything a call on it needs.
pub struct TestRoot {
    dir: tempfile::TempDir,
    n_calls: Cell<u32>,
    /// Milliseconds of the boot clock beyond a second a call.
    later_ms: Cell<u64>,
    n_boots: Cell<u32>,
}

/// What a call did, as seen from outside.
#[derive(Clone)]
pub struct Outcome {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit {}", self.exit)?;
        if !self.stdout.is_empty() {
            writeln!(f, "--- stdout\n{}", self.stdout.trim_end_matches('\n'))?;
        }
        if !self.stderr.is_empty() {
            writeln!(f, "--- stderr\n{}", self.stderr.trim_end_matches('\n'))?;
        }
        Ok(())
    }
}

impl Outcome {
    /// The answer, which must be one JSON object on one line and nothing else.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.matches('\n').count(), 1, "one line: {self}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// The `code` of a JSON answer.
    #[track_caller]
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// A text field of a JSON answer.
    #[track_caller]
    pub fn get(&self, field: &str) -> String {
        let json = self.json();
        let value = field.split('.').fold(&json, |value, name| match name.parse::<usize>() {
            Ok(index) => &value[index],
            Err(_) => &value[name],
        });
        match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Asserts the exit code and the code of a JSON answer, and gives it back.
    #[track_caller]
    pub fn is(self, exit: i32, code: &str) -> Self {
        assert_eq!((self.exit, self.code().as_str()), (exit, code), "{self}");
        self
    }
}

impl TestRoot {
    /// A fresh root on the disk the tests are built on, never on a memory file system.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("t").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self { dir, n_calls: Cell::new(0), later_ms: Cell::new(0), n_boots: Cell::new(1) }
    }

    /// Lets the boot clock run on. Every call is a second after the one before, whatever it takes.
    pub fn later(&self, ms: u64) {
        self.later_ms.set(self.later_ms.get() + ms);
    }

    /// The machine is restarted: the boot clock begins anew.
    pub fn reboot(&self) {
        self.n_boots.set(self.n_boots.get() + 1);
    }

    /// A scratch folder beside the root.
    pub fn scratch(&self) -> &Path {
        self.dir.path()
    }

    /// The root itself. It does not exist before the first change.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// A path in the scratch folder, as text.
    pub fn file(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// A command that is not run yet, with a clean environment, the next tick of the clock and the next ids.
    pub fn command(&self, args: &[&str]) -> Command {
        let n = self.n_calls.get() + 1;
        self.n_calls.set(n);
        let mut command = Command::new(BIN);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path().join("home"))
            .env("LYCHGATE_ROOT", self.path())
            .env("COLUMNS", "80")
            .env("LYCHGATE_TEST_SEED", format!("seed-{n}"))
            .env(
                "LYCHGATE_TEST_NOW",
                format!("2026-01-01T{:02}:{:02}:{:02}.000Z", n / 3600, n / 60 % 60, n % 60),
            )
            .env("LYCHGATE_TEST_BOOT_MS", (u64::from(n) * 1000 + self.later_ms.get()).to_string())
            .env("LYCHGATE_TEST_BOOT_ID", format!("boot-{}", self.n_boots.get()))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a call in the default text form.
    #[must_use]
    pub fn run(&self, args: &[&str]) -> Outcome {
        self.finish(self.command(args).spawn().unwrap())
    }

    /// Runs a call that answers in JSON.
    #[must_use]
    pub fn json(&self, args: &[&str]) -> Outcome {
        let mut command = self.command(args);
        command.args(["--json"]);
        self.finish(command.spawn().unwrap())
    }

    /// Runs a call with something on standard input, answering in JSON.
    #[must_use]
    pub fn json_with_stdin(&self, args: &[&str], stdin: &[u8]) -> Outcome {
        let mut command = self.command(args);
        command.arg("--json").stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A call that refuses may close its standard input before all of it is written.
        let _ = child.stdin.take().unwrap().write_all(stdin);
        self.finish(child)
    }

    /// Waits for a call and gives what it did, with the names of this run's folders and tokens blanked.
    #[must_use]
    pub fn finish(&self, child: Child) -> Outcome {
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| self.blanked(&String::from_utf8(bytes).unwrap());
        Outcome {
            exit: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Blanks what differs from run to run: the scratch folder. Tokens stay, for the next call needs them.
    fn blanked(&self, text: &str) -> String {
        let real = self.dir.path().canonicalize().unwrap();
        text.replace(&real.display().to_string(), "[DIR]")
            .replace(&self.dir.path().display().to_string(), "[DIR]")
    }

    /// Every file and folder below the root, sorted, with the size of nothing and the content of nothing:
    /// enough to see what a call left behind.
    pub fn tree(&self) -> String {
        fn walk(dir: &Path, base: &Path, out: &mut Vec<String>) {
            let Ok(entries) = std::fs::read_dir(dir) else { return };
            for entry in entries.map(Result::unwrap) {
                let path = entry.path();
                let name = path.strip_prefix(base).unwrap().display().to_string();
                if entry.file_type().unwrap().is_dir() {
                    out.push(format!("{name}/"));
                    walk(&path, base, out);
                } else {
                    out.push(name);
                }
            }
        }
        let mut lines = Vec::new();
        walk(&self.path(), &self.path(), &mut lines);
        lines.sort();
        lines.join("\n")
    }

    /// The bytes of every file below the root, to show that a call changed none of them.
    pub fn bytes(&self) -> BTreeMap<String, Vec<u8>> {
        let names = self.tree();
        let content = |name: &str| std::fs::read(self.path().join(name)).unwrap_or_default();
        names.lines().map(|name| (name.to_owned(), content(name))).collect()
    }

    /// The body of a task's row, as it stands on disk.
    pub fn row(&self, task: &str) -> Value {
        let path = self.path().join("tasks").join(task).join("row.json");
        let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file: Value = serde_json::from_slice(&text).unwrap();
        file["document"]["body"].clone()
    }

    /// Changes the text of a row's document and makes its checksum right again: for rows that only an older
    /// program could have written.
    pub fn edit_row(&self, task: &str, from: &str, to: &str) {
        use sha2::Digest as _;
        let path = self.path().join("tasks").join(task).join("row.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let document = text.split_once(r#""document":"#).unwrap().1.trim_end().strip_suffix('}').unwrap();
        assert!(document.contains(from), "`{from}` is not in {document}");
        let document = document.replacen(from, to, 1);
        let digest = sha2::Sha256::digest(document.as_bytes());
        let digest: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = digest.concat();
        std::fs::write(path, format!("{{\"sha256\":\"{digest}\",\"document\":{document}}}\n")).unwrap();
    }

    /// Waits until a call that was started with [`TestRoot::paused`] has reached its point.
    pub fn wait_reached(&self, point: &str) {
        let reached = self.dir.path().join(format!("{point}.reached"));
        for _ in 0..5000 {
            if reached.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        panic!("no call reached `{point}`");
    }

    /// Lets a paused call go on.
    pub fn go(&self, point: &str) {
        std::fs::write(self.dir.path().join(format!("{point}.go")), b"").unwrap();
    }

    /// Starts a call that stops at a seam; it answers in JSON.
    pub fn paused(&self, args: &[&str], point: &str) -> Child {
        let mut command = self.command(args);
        command
            .arg("--json")
            .env("LYCHGATE_TEST_PAUSE", point)
            .env("LYCHGATE_TEST_PAUSE_DIR", self.dir.path());
        command.spawn().unwrap()
    }
}

/// Blanks tokens, which are drawn from the root's own random secret.
pub fn without_tokens(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("tok_") {
        let (before, token) = rest.split_at(at);
        let digits = token.bytes().skip(4).take_while(u8::is_ascii_hexdigit).count();
        out.push_str(before);
        out.push_str(if digits == 64 { "[TOKEN]" } else { &token[..4 + digits] });
        rest = &token[4 + digits..];
    }
    out + rest
}

/// A task on its way, and the ids and tokens its calls need.
pub struct Task<'a> {
    pub root: &'a TestRoot,
    pub id: String,
    pub attempt: String,
    pub token: String,
    pub worker: String,
}

impl TestRoot {
    /// Reserves a task under the workspace `ws`, owned by a process that lives as long as the test.
    pub fn reserve(&self, id: &str) -> Task<'_> {
        self.reserve_with(id, &["--owner-pid", &std::process::id().to_string()])
    }

    /// Reserves a task whose owner nobody can tell anything about.
    pub fn reserve_unknown(&self, id: &str) -> Task<'_> {
        self.reserve_with(id, &[])
    }

    /// Reserves a task for the step `run`/`step`/`hash`.
    pub fn reserve_step(&self, id: &str) -> Task<'_> {
        self.reserve_step_on(id, &self.free_input(id))
    }

    /// An input of the step `step` that no other task of this root works on: a step and input have one child at a
    /// time. The first one is `hash`.
    pub fn free_input(&self, id: &str) -> String {
        let taken = self.path().join("sessions/ws/workflows/run/run.json").exists();
        if taken { format!("hash-of-{id}") } else { "hash".to_owned() }
    }

    /// Reserves a task for another input of the same step: a step and input have one child at a time.
    pub fn reserve_step_on(&self, id: &str, hash: &str) -> Task<'_> {
        self.reserve_with(id, &["--run", "run", "--step", "step", "--input-hash", hash])
    }

    /// Reserves a task with more options.
    pub fn reserve_with(&self, id: &str, more: &[&str]) -> Task<'_> {
        let mut args = vec!["reserve", id, "--parent", "ws"];
        args.extend(more);
        let out = self.json(&args).is(0, "reserved");
        Task {
            root: self,
            id: id.to_owned(),
            attempt: out.get("attemptId"),
            token: out.get("token"),
            worker: out.get("workerToken"),
        }
    }
}

impl Task<'_> {
    /// Launches it under its own attempt.
    pub fn launched(self) -> Self {
        let _ =
            self.root.json(&["rotate", &self.id, "--as", "launch", "--token", &self.token]).is(0, "launched");
        self
    }

    /// Admits a turn and gives its id.
    pub fn turn(&self) -> String {
        self.root
            .json(&["admit", &self.id, "--attempt", &self.attempt, "--start", "--token", &self.token])
            .is(0, "admitted")
            .get("turnId")
    }

    /// Settles a turn with the owner's token.
    #[must_use]
    pub fn settle(&self, turn: &str) -> Outcome {
        self.root.json(&["settle", &self.id, "--turn", turn, "--token", &self.token])
    }

    /// Publishes a report.
    #[must_use]
    pub fn report(&self, text: &str) -> Outcome {
        let args = ["report", &self.id, "--attempt", &self.attempt, "--token", &self.token];
        self.root.json_with_stdin(&args, text.as_bytes())
    }

    /// Publishes a fresh attempt over it, and speaks for that one from now on.
    pub fn rotated(&mut self, kind: &str) -> Outcome {
        let out = self.root.json(&["rotate", &self.id, "--as", kind]).is(0, "rotated");
        self.attempt = out.get("attemptId");
        self.token = out.get("token");
        self.worker = out.get("workerToken");
        out
    }

    /// The outcome `inspect` sees.
    pub fn outcome(&self) -> String {
        self.root.json(&["inspect", &self.id]).get("outcome")
    }

    /// The input of the step it works for, as its row says.
    pub fn input(&self) -> String {
        let path = self.root.path().join("tasks").join(&self.id).join("row.json");
        let row = std::fs::read(path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        let hash = row
            .and_then(|row| row["document"]["body"]["workflowTask"]["inputHash"].as_str().map(str::to_owned));
        hash.unwrap_or_else(|| "hash".to_owned())
    }

    /// Claims it for `run`/`step` and its input.
    #[must_use]
    pub fn claim(&self, more: &[&str]) -> Outcome {
        let hash = self.input();
        let mut args = vec!["claim-retire", &self.id, "--attempt", &self.attempt, "--run", "run"];
        args.extend(["--step", "step", "--input-hash", &hash, "--parent", "ws"]);
        args.extend(more);
        self.root.json(&args)
    }
}
