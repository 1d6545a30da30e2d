//! The start line: every process of a round waits at it, and all cross it together.

use std::io::{PipeReader, PipeWriter, Read as _, pipe};
use std::process::{Child, Command, Stdio};

use lychgate::protocol::invariants::RowRule;
use lychgate::protocol::row::Row;

use crate::common::{Outcome, TestRoot};

/// Says that it stands at the line, waits for the end of the pipe that all share, and becomes the call.
const AT_THE_LINE: &str = "echo; read -r _; exec \"$0\" \"$@\"";

/// How many rounds are played: those of the environment, else those that suit CI.
pub fn rounds(in_ci: usize) -> usize {
    let wanted = std::env::var("LYCHGATE_RACE_ROUNDS").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(in_ci)
}

/// Calls that start together.
pub struct Race<'a> {
    root: &'a TestRoot,
    line: PipeReader,
    held: PipeWriter,
    calls: Vec<Child>,
}

impl<'a> Race<'a> {
    pub fn new(root: &'a TestRoot) -> Self {
        let (line, held) = pipe().unwrap();
        Self { root, line, held, calls: Vec::new() }
    }

    /// Puts a call at the line. It answers in JSON, waits long for its locks, and draws its ids at random.
    pub fn enter(&mut self, args: &[&str]) -> &mut Self {
        let call = patient(self.root, args);
        let mut waiting = Command::new("sh");
        waiting.args(["-c", AT_THE_LINE]).arg(call.get_program()).args(call.get_args()).env_clear();
        waiting.envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
        waiting.current_dir(self.root.scratch()).stdin(self.line.try_clone().unwrap());
        waiting.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.calls.push(waiting.spawn().unwrap());
        self
    }

    /// Waits until all stand at the line, lets them go, and gives their answers in the order of entering.
    pub fn go(self) -> Vec<Outcome> {
        let Self { root, line, held, mut calls } = self;
        for call in &mut calls {
            call.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        }
        drop((line, held));
        calls.into_iter().map(|call| root.finish(call)).collect()
    }
}

/// A call that answers in JSON, waits long for its locks, and draws its ids at random.
fn patient(root: &TestRoot, args: &[&str]) -> Command {
    let mut call = root.command(args);
    call.args(["--json", "--lock-wait", "30s"]).env_remove("LYCHGATE_TEST_SEED");
    call
}

/// Starts `first`, which stops at `point` with its locks held; then starts `second`, and lets `first` go on.
pub fn in_order(root: &TestRoot, point: &str, first: &[&str], second: &[&str]) -> (Outcome, Outcome) {
    let held = paused(root, first, point);
    let waiting = patient(root, second).spawn().unwrap();
    root.go(point);
    (root.finish(held), root.finish(waiting))
}

/// Starts a call and waits until it has stopped at `point`.
pub fn paused(root: &TestRoot, args: &[&str], point: &str) -> Child {
    for mark in ["reached", "go"] {
        // Absent before the first round.
        drop(std::fs::remove_file(root.scratch().join(format!("{point}.{mark}"))));
    }
    let mut call = patient(root, args);
    call.env("LYCHGATE_TEST_PAUSE", point).env("LYCHGATE_TEST_PAUSE_DIR", root.scratch());
    let call = call.spawn().unwrap();
    root.wait_reached(point);
    call
}

/// Runs a call to `point` and kills it there.
pub fn killed_at(root: &TestRoot, args: &[&str], point: &str) {
    let mut call = paused(root, args, point);
    call.kill().unwrap();
    call.wait().unwrap();
}

/// Those who were answered with this exit and code.
pub fn with_code<'o>(outcomes: &'o [Outcome], code: &str) -> Vec<&'o Outcome> {
    outcomes.iter().filter(|outcome| outcome.code() == code).collect()
}

/// Asserts that one call was granted with `granted` and all others were answered with one of `others`. Gives
/// the answer of the one.
#[track_caller]
pub fn one_winner<'o>(outcomes: &'o [Outcome], granted: &str, others: &[(i32, &str)]) -> &'o Outcome {
    let winners = with_code(outcomes, granted);
    assert_eq!(winners.len(), 1, "one is {granted}: {}", told(outcomes));
    assert_eq!(winners[0].exit, 0, "{}", winners[0]);
    for outcome in outcomes.iter().filter(|outcome| outcome.code() != granted) {
        let code = outcome.code();
        assert!(others.contains(&(outcome.exit, code.as_str())), "{outcome}");
    }
    winners[0]
}

pub fn told(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(ToString::to_string).collect()
}

/// The row as it stands on disk, sound by every invariant over rows.
#[track_caller]
pub fn sound_row(root: &TestRoot, task: &str) -> Row {
    let row: Row = serde_json::from_value(root.row(task)).unwrap();
    let broken = RowRule::check(&row);
    assert!(broken.is_empty(), "`{task}`: {broken:?}");
    row
}
