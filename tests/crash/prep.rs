//! A root on its way to a situation, and the calls that bring it there.

use std::cell::Cell;
use std::path::Path;

use serde_json::Value;

use super::points::{Fault, Point, strike, trace};
use super::world::{Bench, Call};

/// One of them.
#[derive(Debug)]
pub struct Situation {
    pub name: &'static str,
    pub bench: Bench,
    pub call: Call,
    /// Somebody else's next call on the same rows.
    pub next: Call,
}

/// Makes the prepared root, and says which call is cut short and which one comes next.
pub type Prepare = fn(&Prep) -> (Call, Call);

/// Prepares a situation in a folder.
pub fn prepare(name: &'static str, prepare: Prepare, dir: &Path) -> Situation {
    let prep = Prep { bench: Bench::fresh(dir.join("prepared")), tick: Cell::new(0) };
    let (call, next) = prepare(&prep);
    let named = |call: Call, id: &str| {
        let args = call.args.iter().map(String::as_str).chain(["--request-id", id, "--json"]);
        Call { args: args.map(str::to_owned).collect(), ..call }
    };
    Situation { name, bench: prep.bench, call: named(call, "the-call"), next: named(next, "the-next") }
}

/// A root on its way to a situation.
pub struct Prep {
    pub bench: Bench,
    tick: Cell<u32>,
}

pub struct Task<'a> {
    prep: &'a Prep,
    id: &'static str,
    pub attempt: String,
    token: String,
}

pub fn call(args: &[&str]) -> Call {
    Call::new(args)
}

impl Prep {
    pub fn tick(&self) -> u32 {
        self.tick.set(self.tick.get() + 1);
        self.tick.get()
    }

    pub fn run_call(&self, call: &Call) -> Value {
        let mut call = call.at(self.tick());
        call.args.push("--json".to_owned());
        let outcome = self.bench.run(&call);
        assert_eq!(outcome.exit, Some(0), "{call:?}: {outcome:?}");
        outcome.answer().unwrap()
    }

    pub fn run(&self, args: &[&str]) -> Value {
        self.run_call(&call(args))
    }

    pub fn reserve(&self, id: &'static str, more: &[&str]) -> Task<'_> {
        let answer = self.run(&[&["reserve", id, "--parent", "ws"], more].concat());
        let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
        Task { prep: self, id, attempt: text("attemptId"), token: text("token") }
    }

    /// A task whose parent is a task.
    pub fn reserve_below(&self, id: &'static str, parent: &str) -> Task<'_> {
        let answer = self.run(&["reserve", id, "--parent", parent]);
        let text = |field: &str| answer[field].as_str().unwrap().to_owned();
        Task { prep: self, id, attempt: text("attemptId"), token: text("token") }
    }

    /// A task whose owner lives as long as the test does.
    pub fn alive(&self, id: &'static str, more: &[&str]) -> Task<'_> {
        let pid = std::process::id().to_string();
        self.reserve(id, &[&["--owner-pid", &pid], more].concat())
    }

    /// A task whose owner is proven dead when `then` is over.
    pub fn dead<'a>(&'a self, id: &'static str, then: impl FnOnce(&Task<'a>)) -> Task<'a> {
        let mut owner = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let task = self.reserve(id, &["--owner-pid", &owner.id().to_string()]);
        then(&task);
        owner.kill().unwrap();
        owner.wait().unwrap();
        task
    }

    /// Runs a call and kills it in the middle of step 6 of its commit: the record is durable, and `n_done` of
    /// what it names is in its place.
    pub fn half_done(&self, call: &Call, n_done: usize) {
        let call = call.at(self.tick());
        let copy = Bench::copy_of(&self.bench, self.bench.dir.with_extension("half-done"));
        let (_, calls) = trace(&copy, &call);
        let renames: Vec<_> = calls.iter().filter(|call| call.syscall.starts_with("rename")).collect();
        let is_row = |line: &str| line.trim_end().split_once("row.json\"").is_some();
        let home = renames.iter().position(|call| is_row(&call.line)).unwrap();
        let next = renames[home + 1 + n_done];
        let point = Point { syscall: next.syscall.clone(), n: next.n, fault: Fault::Kill };
        strike(&self.bench, &call, &point).unwrap();
    }
}

impl Task<'_> {
    pub fn owned(&self, args: &[&str]) -> Call {
        call(&[args, &["--token", &self.token]].concat())
    }

    pub fn launched(self) -> Self {
        self.prep.run_call(&self.owned(&["rotate", self.id, "--as", "launch"]));
        self
    }

    pub fn turn(&self) -> String {
        let gate = self.owned(&["admit", self.id, "--attempt", &self.attempt, "--start"]);
        self.prep.run_call(&gate)["turnId"].as_str().unwrap().to_owned()
    }

    pub fn send(&self) -> String {
        let register = self.owned(&["admit", self.id, "--attempt", &self.attempt]);
        self.prep.run_call(&register)["sendId"].as_str().unwrap().to_owned()
    }

    pub fn settle(&self, turn: &str) {
        self.prep.run_call(&self.owned(&["settle", self.id, "--turn", turn]));
    }

    pub fn report(&self, text: &[u8]) -> Call {
        Call { stdin: text.to_vec(), ..self.owned(&["report", self.id, "--attempt", &self.attempt]) }
    }

    pub fn claim(&self) -> Call {
        let about = ["claim-retire", self.id, "--attempt", &self.attempt, "--parent", "ws"];
        call(&[&about[..], &["--run", "run", "--step", "step", "--input-hash", "hash"]].concat())
    }
}
