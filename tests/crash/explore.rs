//! Runs every point of a situation, and lets the checker look at what each has left.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::checker::{Checker, Side};
use super::compare::fingerprint;
use super::points::{Choice, Fault, Point, points, strike, trace};
use super::prep::Situation;
use super::world::{Bench, Outcome};

/// Which points are tried on the prepared root, and which on every state that a killed call has left there.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub first: &'static [Choice],
    /// For the same call on what it has left itself: a crash during recovery.
    pub second: &'static [Choice],
    /// Whether also on what is left before the commit point; else only where something is half done.
    pub second_everywhere: bool,
    /// How many crashes in a row.
    pub n_crashes: usize,
}

/// What came of a situation.
#[derive(Debug, Default)]
pub struct Tally {
    pub n_calls: usize,
    pub n_kills: usize,
    pub n_errors: usize,
    pub n_in_recovery: usize,
    pub n_states: usize,
    pub failures: Vec<String>,
}

/// Where a run begins: the prepared root, or what the points in `chain` have left of it.
#[derive(Debug)]
struct Base {
    bench: Bench,
    side: Side,
    chain: Vec<Point>,
}

impl Base {
    /// Something is committed and may have to be finished, or the root is not made yet.
    fn is_half_done(&self) -> bool {
        self.side == Side::New || !self.bench.root().join("config.json").exists()
    }
}

type Verdict = Arc<OnceLock<Result<Side, String>>>;

struct Explorer<'a> {
    situation: &'a Situation,
    checker: Checker,
    dir: &'a Path,
    /// Each state that was seen, by its fingerprint. Looking at it is the dear part, and needed once.
    verdicts: Mutex<HashMap<u64, Verdict>>,
    found: Mutex<Vec<Base>>,
    failures: Mutex<Vec<String>>,
}

/// Explores a situation as the plan says.
pub fn explore(situation: &Situation, plan: Plan, dir: &Path) -> Tally {
    let explorer = Explorer::new(situation, dir);
    let mut tally = Tally::default();
    let mut bases = vec![explorer.start()];
    for crash in 0..plan.n_crashes {
        let mut jobs = Vec::new();
        for base in &bases {
            let copy = Bench::copy_of(&base.bench, dir.join("traced"));
            let (_, calls) = trace(&copy, &explorer.checker.call);
            let choices = if crash == 0 { plan.first } else { plan.second };
            for point in choices.iter().flat_map(|choice| points(&calls, *choice)) {
                match (crash, point.fault) {
                    (0, Fault::Kill) => tally.n_kills += 1,
                    (0, _) => tally.n_errors += 1,
                    _ => tally.n_in_recovery += 1,
                }
                jobs.push((base, point));
            }
            if crash == 0 {
                tally.n_calls = calls.len();
            }
        }
        explorer.run_all(&jobs);
        bases = std::mem::take(&mut *explorer.found.lock().unwrap());
        bases.retain(|base| plan.second_everywhere || base.is_half_done());
    }
    tally.n_states = explorer.verdicts.into_inner().unwrap().len();
    tally.failures = explorer.failures.into_inner().unwrap();
    tally
}

impl<'a> Explorer<'a> {
    fn new(situation: &'a Situation, dir: &'a Path) -> Self {
        let checker = Checker::new(situation, dir);
        let (verdicts, found, failures) = Default::default();
        Self { situation, checker, dir, verdicts, found, failures }
    }

    fn start(&self) -> Base {
        let bench = Bench { dir: self.situation.bench.dir.clone() };
        Base { bench, side: Side::Old, chain: Vec::new() }
    }

    fn run_all(&self, jobs: &[(&Base, Point)]) {
        let next = AtomicUsize::new(0);
        let n_threads = std::thread::available_parallelism().map_or(2, usize::from);
        std::thread::scope(|scope| {
            for thread in 0..n_threads {
                let (next, work) = (&next, self.dir.join(format!("worker-{thread}")));
                scope.spawn(move || {
                    std::fs::create_dir_all(&work).unwrap();
                    while let Some((base, point)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(failure) = self.run(base, point, &work) {
                            self.failures.lock().unwrap().push(failure);
                        }
                    }
                });
            }
        });
    }

    fn run(&self, base: &Base, point: &Point, work: &Path) -> Result<(), String> {
        let bench = Bench::copy_of(&base.bench, work.join("crashed"));
        let outcome = strike(&bench, &self.checker.call, point).map_err(|e| self.told(base, point, &e))?;
        let outcome = self.checker.blanked(outcome);
        self.judge(&bench, &outcome, base, point, work).map_err(|error| self.told(base, point, &error))
    }

    fn judge(
        &self,
        bench: &Bench,
        outcome: &Outcome,
        base: &Base,
        point: &Point,
        work: &Path,
    ) -> Result<(), String> {
        if point.blinds() && self.checker.is_unproven_for_want_of_sight(bench, outcome) {
            return Ok(());
        }
        let seen = fingerprint(bench);
        let verdict = Arc::clone(self.verdicts.lock().unwrap().entry(seen).or_default());
        let mut is_new = false;
        let side = verdict.get_or_init(|| {
            is_new = true;
            self.checker.examine(bench, work)
        });
        let side = *side.as_ref().map_err(Clone::clone)?;
        if is_new && point.fault == Fault::Kill {
            let chain = base.chain.iter().cloned().chain([point.clone()]).collect();
            let kept = Bench::copy_of(bench, self.dir.join(format!("state-{seen:016x}")));
            self.found.lock().unwrap().push(Base { bench: kept, side, chain });
        }
        self.checker.truthful(outcome, bench, base.side, side)
    }

    fn told(&self, base: &Base, point: &Point, error: &str) -> String {
        let chain = base.chain.iter().chain([point]).map(ToString::to_string).collect::<Vec<_>>().join(",");
        let name = self.situation.name;
        format!("LYCHGATE_CRASH_SITUATION='{name}' LYCHGATE_CRASH_POINTS='{chain}'\n  {error}")
    }
}

/// Runs one chain of points and tells everything about it: for the search after a failure.
pub fn reproduce(situation: &Situation, chain: &[Point], dir: &Path) -> Result<String, String> {
    let explorer = Explorer::new(situation, dir);
    let mut told = String::new();
    let mut base = explorer.start();
    for point in chain {
        let bench = Bench::copy_of(&base.bench, dir.join(format!("after-{}", base.chain.len() + 1)));
        let outcome = explorer.checker.blanked(strike(&bench, &explorer.checker.call, point)?);
        // Writing to a String cannot fail.
        let _ = writeln!(told, "{point}: {outcome:?}\nleft in {}", bench.dir.display());
        for entry in bench.tree() {
            let _ = writeln!(told, "  {:04o} {} {:?}", entry.mode, entry.path, entry.bytes.map(|b| b.len()));
        }
        let work: PathBuf = dir.join("work");
        std::fs::create_dir_all(&work).unwrap();
        let side = explorer.checker.examine(&bench, &work).map_err(|error| format!("{told}{error}"))?;
        let truth = explorer.checker.truthful(&outcome, &bench, base.side, side);
        truth.map_err(|error| format!("{told}{error}"))?;
        let _ = writeln!(told, "the state is the {side:?} one");
        let chain = base.chain.into_iter().chain([point.clone()]).collect();
        base = Base { bench, side, chain };
    }
    Ok(told)
}
