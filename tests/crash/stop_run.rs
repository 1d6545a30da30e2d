//! `stop --run` is several commits, the latch of the run first and then a Stop of each child. Cut short anywhere, each
//! of them is there or not, none without the latch, and none out of order; where the latch is, no step gets a child;
//! and the repeat finishes what is left, and says so.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde_json::Value;

use super::checker::{Books, books};
use super::compare::{difference, equal, fingerprint, leftovers};
use super::points::{Choice, Fault, Point, points, strike, trace};
use super::prep::{Prep, Situation, call, prepare};
use super::world::{Bench, Call, Outcome};
use super::{folder, tell};

/// Clocks of the Stop and its repeats, apart from those of the preparation.
const CALL: u32 = 3000;
const REPEAT: u32 = 3001;
const AGAIN: u32 = 3002;
const OTHER: u32 = 3003;

fn at(step: &str) -> [&str; 6] {
    ["--run", "run", "--step", step, "--input-hash", "hash"]
}

/// A run whose children are queued, idle, in the middle of a turn, and over with a report.
fn run_of_four(prep: &Prep) -> (Call, Call) {
    prep.alive("t1", &at("queued"));
    let idle = prep.alive("t2", &at("idle")).launched();
    idle.settle(&idle.turn());
    prep.alive("t3", &at("at-work")).launched().turn();
    let reported = prep.alive("t4", &at("reported")).launched();
    let turn = reported.turn();
    prep.run_call(&reported.report(b"done"));
    reported.settle(&turn);
    (call(&["stop", "--run", "run", "--reason", "enough"]), call(&["stop", "t1"]))
}

/// The commits, in their order: the run, and its children.
const PARTS: [&str; 5] = ["run", "t1", "t2", "t3", "t4"];

/// What undisturbed runs do.
struct Undisturbed {
    call: Call,
    answered: Outcome,
    old: Books,
    new: Books,
}

impl Undisturbed {
    fn new(situation: &Situation, dir: &Path) -> Self {
        let bench = Bench::copy_of(&situation.bench, dir.join("undisturbed"));
        let call = situation.call.at(CALL);
        let answered = bench.run(&call);
        assert_eq!((answered.exit, answered.code().as_str()), (Some(0), "stopping"), "{answered:?}");
        let this =
            Self { call, answered, old: books(&situation.bench).unwrap(), new: books(&bench).unwrap() };
        for part in PARTS {
            assert_ne!(part_of(&this.old, part), part_of(&this.new, part), "`{part}` is changed by the Stop");
        }
        this
    }

    /// Which of the commits are there. No child is stopped before the run is latched.
    fn done(&self, crashed: &Bench) -> Result<Vec<bool>, String> {
        let found = books(crashed)?;
        let mut done = Vec::new();
        for part in PARTS {
            let part_of = |books| part_of(books, part);
            match part_of(&found) {
                is if is == part_of(&self.new) => done.push(true),
                is if is == part_of(&self.old) => done.push(false),
                is => return Err(format!("`{part}`: {}", difference(&is, &part_of(&self.new)))),
            }
        }
        if done.contains(&true) && !done[0] { Err(format!("before the latch: {done:?}")) } else { Ok(done) }
    }

    /// Looks at what a Stop that was cut short has left.
    fn examine(&self, crashed: &Bench, dir: &Path) -> Result<(), String> {
        if self.done(crashed)?[0] {
            latched(crashed, dir)?;
        }
        let again = Bench::copy_of(crashed, dir.join("again"));
        let repeat = again.run(&self.call.at(REPEAT));
        equal("the repeat", &without_times(&repeat.stdout), &without_times(&self.answered.stdout))?;
        equal("its exit status", &repeat.exit, &self.answered.exit)?;
        let finished = books(&again)?;
        equal("what it has finished", &timeless(&finished), &timeless(&self.new))?;
        equal("what is left over", &leftovers(&again.tree()), &Vec::new())?;

        equal("the second repeat", &again.run(&self.call.at(AGAIN)), &repeat)?;
        equal("the state after it", &books(&again)?, &finished)?;
        let other = again.run(&call(&["stop", "--run", "run", "--json"]).at(OTHER));
        equal("another Stop", &(other.exit, other.code()), &(Some(0), "stopping".to_owned()))
    }

    /// Whether the exit status and what was printed tell the truth.
    fn truthful(&self, outcome: &Outcome, done: &[bool]) -> Result<(), String> {
        let all_done = !done.contains(&false);
        let says_done = outcome.stdout == self.answered.stdout;
        let lie = match outcome.exit {
            _ if outcome.stderr.contains("panicked") => true,
            // It dies with one child after the other, in their order.
            None => (says_done && !all_done) || !done.is_sorted_by(|before, after| before >= after),
            Some(0) => !says_done || !all_done,
            // Nothing at all was done, or the answer tells of each child.
            Some(65 | 74 | 75) => done[0] && !tells_of_each(outcome, done),
            Some(71) => false,
            Some(_) => true,
        };
        if lie { Err(format!("{done:?} of the commits are there: {outcome:?}")) } else { Ok(()) }
    }
}

/// Whether an answer says of each child whether it was stopped, as it is.
fn tells_of_each(outcome: &Outcome, done: &[bool]) -> bool {
    let answer = outcome.answer().unwrap_or_default();
    let told: Vec<(&str, bool)> = (answer["tasks"].as_array().into_iter().flatten())
        .map(|task| (task["taskId"].as_str().unwrap_or_default(), task["ok"] == true))
        .collect();
    told == PARTS.iter().copied().zip(done.iter().copied()).skip(1).collect::<Vec<_>>()
}

fn part_of(books: &Books, part: &str) -> Value {
    let named = |(folder, book): &(&String, &Value)| {
        folder.as_str() == part || book["run"]["runId"].as_str() == Some(part)
    };
    books.iter().find(named).map_or(Value::Null, |(_, book)| book.clone())
}

/// No step gets a child, whether it has one or not, and nothing changes by asking.
fn latched(crashed: &Bench, dir: &Path) -> Result<(), String> {
    let bench = Bench::copy_of(crashed, dir.join("latched"));
    let before = books(&bench)?;
    for (step, tick) in ["idle", "fresh"].into_iter().zip(OTHER + 1..) {
        let ask = [&["reserve", "--parent", "ws", "--json"], &at(step)[..]].concat();
        let told = bench.run(&call(&ask).at(tick));
        equal(
            &format!("a child of `{step}`"),
            &(told.exit, told.code()),
            &(Some(10), "run-stopped".to_owned()),
        )?;
    }
    equal("the state after asking", &books(&bench)?, &before)
}

/// Blanks every time.
fn without_times(text: &str) -> String {
    let mut parts = text.split("\"2026-");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "\"[TIME]" + part.split_once('"').map_or("", |(_, rest)| rest))
}

fn timeless(books: &Books) -> String {
    let told: Vec<String> = books.values().map(Value::to_string).collect();
    without_times(&told.join("\n").replace("\\\"", "\""))
}

/// Cuts the Stop short at every point of its way from `base`, and looks at each state that comes of it, once. Gives how
/// many points there were, and one bench for each number of commits after which it was killed.
fn explore(stop: &Undisturbed, base: &Bench, choices: &[Choice], dir: &Path) -> (usize, Vec<Bench>) {
    let (_, calls) = trace(&Bench::copy_of(base, dir.join("traced")), &stop.call);
    let all: Vec<Point> = choices.iter().flat_map(|choice| points(&calls, *choice)).collect();
    let mut seen = HashSet::new();
    let mut halves = BTreeMap::new();
    for point in &all {
        let bench = Bench::copy_of(base, dir.join("crashed"));
        let outcome = strike(&bench, &stop.call, point).unwrap_or_else(|why| panic!("{why}"));
        let done = stop.done(&bench).unwrap_or_else(|why| panic!("{point}: {why}"));
        stop.truthful(&outcome, &done).unwrap_or_else(|why| panic!("{point}: {why}"));
        if seen.insert(fingerprint(&bench)) {
            stop.examine(&bench, dir).unwrap_or_else(|why| panic!("{point}: {why}"));
        }
        let n_done = done.iter().filter(|done| **done).count();
        if point.fault == Fault::Kill && n_done < PARTS.len() {
            let half = || Bench::copy_of(&bench, dir.join(format!("half-{n_done}")));
            halves.entry(n_done).or_insert_with(half);
        }
    }
    (all.len(), halves.into_values().collect())
}

/// Rules 10, 34 and 74; hazard H4.
#[test]
fn a_stop_of_a_run_cut_short_anywhere_is_latched_first_and_finished_by_its_repeat() {
    let Some(dir) = folder() else { return };
    let situation = prepare("stop --run", run_of_four, dir.path());
    let stop = Undisturbed::new(&situation, dir.path());
    let (n_points, halves) =
        explore(&stop, &situation.bench, &[Choice::ChangingKills, Choice::Errors], dir.path());
    assert_eq!(halves.len(), PARTS.len(), "it was killed after each number of commits");
    let mut n_in_recovery = 0;
    // Its repeat meets one child that is stopped and three that are not; it makes no difference which.
    for half in &halves[2..3] {
        n_in_recovery += explore(&stop, half, &[Choice::ChangingKills], &dir.path().join("again")).0;
    }
    tell(&format!("stop --run: {n_points} points, {n_in_recovery} in its repeat\n"));
}

/// The control: what must be rejected.
#[test]
fn a_child_stopped_without_the_latch_or_before_another_one_is_rejected() {
    let Some(dir) = folder() else { return };
    let situation = prepare("stop --run", run_of_four, dir.path());
    let stop = Undisturbed::new(&situation, dir.path());
    let whole = Bench::copy_of(&situation.bench, dir.path().join("whole"));
    let answered = whole.run(&stop.call);
    let all = stop.done(&whole).unwrap();
    assert_eq!((stop.truthful(&answered, &all), stop.examine(&whole, dir.path())), (Ok(()), Ok(())));

    let put_back = |file: &str| {
        let bench = Bench::copy_of(&whole, dir.path().join("edited"));
        std::fs::copy(situation.bench.root().join(file), bench.root().join(file)).unwrap();
        bench
    };
    let unlatched = put_back("sessions/ws/workflows/run/run.json");
    assert!(stop.done(&unlatched).unwrap_err().contains("before the latch"));
    assert!(latched(&unlatched, dir.path()).is_err());

    let gap = put_back("tasks/t3/row.json");
    let done = stop.done(&gap).unwrap();
    assert_eq!(done, [true, true, true, false, true]);
    assert!(stop.truthful(&answered, &done).is_err(), "it says that all were stopped");
    let killed = Outcome { exit: None, signal: Some(9), stdout: String::new(), ..answered };
    assert!(stop.truthful(&killed, &done).is_err(), "out of order");
}
