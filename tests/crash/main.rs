//! Crash points: the real binary, killed at every system call of every changing command, and every call that
//! changes something failing.
//!
//! For each situation one undisturbed run is traced; then the same call runs once for each point on a fresh copy
//! of the prepared root, with `strace` killing it there or making that system call fail, and showing that it
//! did. Afterwards [`checker::Checker`] looks: the old state or the new one and never a third, an exit status
//! that tells the truth, readers and the next call work, and the repeat with the same request id comes to exactly
//! one effect and leaves nothing over. States that differ only in random names are looked at once.
//!
//! Calls about the process's own memory are left out. Death and errors are all this can show. That what was synced survives a power failure is not tested here.
//!
//! One point again, with everything it left told and kept:
//!
//! ```text
//! LYCHGATE_CRASH_SITUATION='reserve' LYCHGATE_CRASH_POINTS='renameat:1:KILL' \
//!     cargo test --test crash -- --ignored one_point --nocapture
//! ```
//!
//! Points are `SYSCALL:N:FAULT`, the N-th call of SYSCALL since the process began, and FAULT is `KILL` or an
//! error like `EIO`. Several, separated by commas, are crashes one after the other, each of the same call.
//! Everything, with every error of every call that changes or looks at something, and three crashes in a row:
//! `cargo test --release --test crash -- --ignored in_full`, which takes a quarter of an hour.
//! `LYCHGATE_CRASH_SITUATION` alone limits that and the short test to one situation.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]
#![allow(unreachable_pub, reason = "a test target exports nothing")]
#![allow(clippy::disallowed_methods, reason = "tests look at files and the environment from outside")]

mod checker;
mod compare;
mod controls;
mod explore;
mod points;
mod prep;
mod situations;
mod stop_run;
mod world;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use explore::{Plan, Tally, explore};
use points::{Choice, Fault, Point};
use world::Bench;

/// What every build runs: death everywhere, twice in a row where something is half done, and the likely errors.
const SHORT: Plan = Plan {
    first: &[Choice::Kills, Choice::Errors],
    second: &[Choice::ChangingKills],
    second_everywhere: false,
    n_crashes: 2,
};

/// Everything.
const FULL: Plan = Plan {
    first: &[Choice::Kills, Choice::EveryError],
    second: &[Choice::ChangingKills, Choice::Errors],
    second_everywhere: true,
    n_crashes: 3,
};

/// A folder for one test, on the disk the tests are built on. `None`: `strace` does not work here, and that is
/// allowed here.
fn folder() -> Option<tempfile::TempDir> {
    let dir = tempfile::Builder::new().prefix("crash").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Err(why) = points::strace_works(&Bench::fresh(dir.path().join("probe"))) else { return Some(dir) };
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "the crash points must run in CI: {why}");
    tell(&format!("SKIPPED, no crash point was tried: {why}\n"));
    None
}

/// Says something even if the test succeeds.
fn tell(text: &str) {
    // Nobody is left to tell if standard error is gone.
    drop(std::io::stderr().write_all(text.as_bytes()));
}

fn wanted(name: &str) -> bool {
    std::env::var("LYCHGATE_CRASH_SITUATION").map_or(true, |only| only == name)
}

fn run(plan: Plan) {
    let Some(dir) = folder() else { return };
    let mut table = format!(
        "{:42} {:>6} {:>6} {:>7} {:>9} {:>7}\n",
        "situation", "calls", "kills", "errors", "recovery", "states"
    );
    let mut total = Tally::default();
    for (name, prepare) in situations::ALL.iter().filter(|(name, _)| wanted(name)) {
        let own = dir.path().join("situation");
        world::remove(&own);
        let situation = prep::prepare(name, *prepare, &own);
        let tally = explore(&situation, plan, &own);
        add_line(&mut table, name, &tally);
        for failure in &tally.failures {
            tell(&format!("FAILED {failure}\n"));
        }
        total.n_calls += tally.n_calls;
        total.n_kills += tally.n_kills;
        total.n_errors += tally.n_errors;
        total.n_in_recovery += tally.n_in_recovery;
        total.n_states += tally.n_states;
        total.failures.extend(tally.failures);
    }
    add_line(&mut table, "all", &total);
    tell(&table);
    let n = total.failures.len();
    let shown: Vec<String> = total.failures.into_iter().take(40).collect();
    assert!(n == 0, "{n} points failed:\n{}", shown.join("\n"));
    assert!(total.n_kills > 0, "no situation has that name");
}

fn add_line(table: &mut String, name: &str, tally: &Tally) {
    let Tally { n_calls, n_kills, n_errors, n_in_recovery, n_states, .. } = tally;
    // Writing to a String cannot fail.
    let _ =
        writeln!(table, "{name:42} {n_calls:>6} {n_kills:>6} {n_errors:>7} {n_in_recovery:>9} {n_states:>7}");
}

#[test]
fn a_call_cut_short_anywhere_leaves_the_old_state_or_the_new_one() {
    run(SHORT);
}

#[test]
#[ignore = "takes long; run it in release"]
fn a_call_cut_short_anywhere_leaves_the_old_state_or_the_new_one_in_full() {
    run(FULL);
}

#[test]
#[ignore = "for the search after a failure: LYCHGATE_CRASH_SITUATION and LYCHGATE_CRASH_POINTS say which"]
fn one_point() {
    let Some(dir) = folder() else { return };
    let dir = dir.keep();
    let chain = std::env::var("LYCHGATE_CRASH_POINTS").expect("LYCHGATE_CRASH_POINTS is set");
    let chain: Vec<Point> = chain.split(',').map(|text| parse(text).expect("SYSCALL:N:FAULT")).collect();
    let (name, prepare) = situations::ALL.iter().find(|(name, _)| wanted(name)).expect("a situation's name");
    let situation = prep::prepare(name, *prepare, Path::new(&dir));
    tell(&explore::reproduce(&situation, &chain, &dir).unwrap_or_else(|error| panic!("{error}")));
}

fn parse(text: &str) -> Option<Point> {
    let [syscall, n, fault] = text.split(':').collect::<Vec<_>>().try_into().ok()?;
    let fault = if fault == "KILL" { Fault::Kill } else { Fault::Error(fault.to_owned().leak()) };
    Some(Point { syscall: syscall.to_owned(), n: n.parse().ok()?, fault })
}
