//! The situations: a prepared root, the call that is cut short on it, and a call somebody else makes after it.

use std::cell::Cell;
use std::path::Path;

use serde_json::Value;

use super::checker;
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
type Prepare = fn(&Prep) -> (Call, Call);

/// Every situation, in the order of the table that is printed.
pub const ALL: &[(&str, Prepare)] = &[
    ("reserve, the first call ever", first_call),
    ("reserve", reserve),
    ("reserve --token-file", reserve_token_file),
    ("reserve --replaces", replace),
    ("rotate --as launch", launch),
    ("rotate --as reawaken", reawaken),
    ("rotate --as reactivate", reactivate),
    ("rotate --as startup", startup),
    ("rotate --token-file", rotate_token_file),
    ("admit: register", register),
    ("admit: enqueue", enqueue),
    ("admit: the gate, of a send", gate_send),
    ("admit: the gate, at once", gate_at_once),
    ("admit: the gate refuses, and discharges", gate_refuses),
    ("stop, idle, three receipts", stop_idle),
    ("stop, a turn running", stop_running),
    ("stop --cleanup", stop_cleanup),
    ("settle --turn --close", settle_turn),
    ("settle, the attempt", settle_attempt),
    ("settle --send", settle_send),
    ("settle --cleanup", settle_cleanup),
    ("report, small", report_small),
    ("report, 300 kB", report_large),
    ("report, late", report_late),
    ("claim-retire", claim),
    ("claim-retire, again", claim_again),
    ("recover: settle", recover_settle),
    ("recover: revert", recover_revert),
    ("recover: re-drive", recover_redrive),
    ("the history is cut", history_cut),
    ("finish a replacement, from the new row", finish_from_new),
    ("finish a replacement, from the old row", finish_from_old),
    ("finish three receipts", finish_receipts),
    ("finish a report", finish_report),
];

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
    bench: Bench,
    tick: Cell<u32>,
}

struct Task<'a> {
    prep: &'a Prep,
    id: &'static str,
    attempt: String,
    token: String,
}

fn call(args: &[&str]) -> Call {
    Call::new(args)
}

impl Prep {
    fn tick(&self) -> u32 {
        self.tick.set(self.tick.get() + 1);
        self.tick.get()
    }

    fn run_call(&self, call: &Call) -> Value {
        let mut call = call.at(self.tick());
        call.args.push("--json".to_owned());
        let outcome = self.bench.run(&call);
        assert_eq!(outcome.exit, Some(0), "{call:?}: {outcome:?}");
        outcome.answer().unwrap()
    }

    fn run(&self, args: &[&str]) -> Value {
        self.run_call(&call(args))
    }

    fn reserve(&self, id: &'static str, more: &[&str]) -> Task<'_> {
        let answer = self.run(&[&["reserve", id, "--parent", "ws"], more].concat());
        let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
        Task { prep: self, id, attempt: text("attemptId"), token: text("token") }
    }

    /// A task whose owner lives as long as the test does.
    fn alive(&self, id: &'static str, more: &[&str]) -> Task<'_> {
        let pid = std::process::id().to_string();
        self.reserve(id, &[&["--owner-pid", &pid], more].concat())
    }

    /// A task whose owner is proven dead when `then` is over.
    fn dead<'a>(&'a self, id: &'static str, then: impl FnOnce(&Task<'a>)) -> Task<'a> {
        let mut owner = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let task = self.reserve(id, &["--owner-pid", &owner.id().to_string()]);
        then(&task);
        owner.kill().unwrap();
        owner.wait().unwrap();
        task
    }

    /// Runs a call and kills it in the middle of step 6 of its commit: the record is durable, and `n_done` of
    /// what it names is in its place.
    fn half_done(&self, call: &Call, n_done: usize) {
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
    fn owned(&self, args: &[&str]) -> Call {
        call(&[args, &["--token", &self.token]].concat())
    }

    fn launched(self) -> Self {
        self.prep.run_call(&self.owned(&["rotate", self.id, "--as", "launch"]));
        self
    }

    fn turn(&self) -> String {
        let gate = self.owned(&["admit", self.id, "--attempt", &self.attempt, "--start"]);
        self.prep.run_call(&gate)["turnId"].as_str().unwrap().to_owned()
    }

    fn send(&self) -> String {
        let register = self.owned(&["admit", self.id, "--attempt", &self.attempt]);
        self.prep.run_call(&register)["sendId"].as_str().unwrap().to_owned()
    }

    fn settle(&self, turn: &str) {
        self.prep.run_call(&self.owned(&["settle", self.id, "--turn", turn]));
    }

    fn report(&self, text: &[u8]) -> Call {
        Call { stdin: text.to_vec(), ..self.owned(&["report", self.id, "--attempt", &self.attempt]) }
    }

    fn claim(&self) -> Call {
        let about = ["claim-retire", self.id, "--attempt", &self.attempt, "--parent", "ws"];
        call(&[&about[..], &["--run", "run", "--step", "step", "--input-hash", "hash"]].concat())
    }
}

const STEP: [&str; 6] = ["--run", "run", "--step", "step", "--input-hash", "hash"];
const ABOVE: [&str; 4] = ["--ancestor", "up", "--ancestor", "top"];

fn first_call(_: &Prep) -> (Call, Call) {
    (call(&["reserve", "t1", "--parent", "ws"]), call(&["reserve", "t2", "--parent", "ws"]))
}

fn reserve(prep: &Prep) -> (Call, Call) {
    prep.alive("t0", &[]);
    (call(&["reserve", "t1", "--parent", "t0", "--owner", "me"]), call(&["reserve", "t1", "--parent", "t0"]))
}

fn reserve_token_file(prep: &Prep) -> (Call, Call) {
    prep.alive("t0", &[]);
    let reserve = ["reserve", "t1", "--parent", "ws", "--token-file"];
    (call(&[&reserve[..], &["tok"]].concat()), call(&[&reserve[..], &["other"]].concat()))
}

/// A claimed task, and the nonce of its claim.
fn claimed(prep: &Prep) -> (Task<'_>, String) {
    let task = prep.alive("t1", &[&STEP[..], &ABOVE[..]].concat()).launched();
    task.settle(&task.turn());
    prep.run(&["stop", "t1"]);
    let nonce = prep.run_call(&task.claim())["nonce"].as_str().unwrap().to_owned();
    (task, nonce)
}

fn replace(prep: &Prep) -> (Call, Call) {
    let (_, nonce) = claimed(prep);
    let replace = |task| call(&["reserve", task, "--replaces", "t1", "--nonce", &nonce]);
    (replace("t2"), replace("t3"))
}

fn launch(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]);
    (task.owned(&["rotate", "t1", "--as", "launch"]), call(&["rotate", "t1", "--as", "launch"]))
}

fn reawaken(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    task.settle(&task.turn());
    prep.run(&["stop", "t1"]);
    let reawaken = ["rotate", "t1", "--as", "reawaken"];
    (call(&reawaken), call(&[&reawaken[..], &["--expect", &task.attempt]].concat()))
}

fn reactivate(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    let turn = task.turn();
    prep.run_call(&task.report(b"done"));
    prep.run_call(&task.owned(&["settle", "t1", "--turn", &turn, "--close"]));
    (call(&["rotate", "t1", "--as", "reactivate", "--owner", "me"]), call(&["stop", "t1"]))
}

/// Launched by an owner that died, with no turn in flight.
fn left_idle(prep: &Prep) -> Task<'_> {
    prep.dead("t1", |task| {
        prep.run_call(&task.owned(&["rotate", "t1", "--as", "launch"]));
        task.settle(&task.turn());
    })
}

fn startup(prep: &Prep) -> (Call, Call) {
    left_idle(prep);
    (call(&["rotate", "t1", "--as", "startup"]), call(&["stop", "t1"]))
}

fn rotate_token_file(prep: &Prep) -> (Call, Call) {
    prep.run(&["reserve", "t1", "--parent", "ws", "--token-file", "tok"]);
    prep.run(&["rotate", "t1", "--as", "launch", "--token-file", "tok"]);
    prep.run(&["stop", "t1"]);
    let reawaken = call(&["rotate", "t1", "--as", "reawaken", "--token-file", "tok"]);
    (reawaken, call(&["rotate", "t1", "--as", "reawaken", "--token-file", "other"]))
}

fn register(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    (task.owned(&["admit", "t1", "--attempt", &task.attempt]), call(&["stop", "t1"]))
}

fn enqueue(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    let send = task.send();
    let gate = task.owned(&["admit", "t1", "--send", &send, "--start"]);
    (task.owned(&["admit", "t1", "--send", &send, "--queued"]), gate)
}

fn gate_send(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    let send = task.send();
    let gate = task.owned(&["admit", "t1", "--send", &send, "--start", "--label", "a turn"]);
    (gate.clone(), gate)
}

fn gate_at_once(prep: &Prep) -> (Call, Call) {
    prep.alive("t0", &[]).launched();
    let task = prep.reserve_below("t1", "t0").launched();
    (task.owned(&["admit", "t1", "--attempt", &task.attempt, "--start"]), call(&["stop", "t1"]))
}

impl Prep {
    /// A task whose parent is a task.
    fn reserve_below(&self, id: &'static str, parent: &str) -> Task<'_> {
        let answer = self.run(&["reserve", id, "--parent", parent]);
        let text = |field: &str| answer[field].as_str().unwrap().to_owned();
        Task { prep: self, id, attempt: text("attemptId"), token: text("token") }
    }
}

fn gate_refuses(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]);
    let send = task.send();
    let gate = task.owned(&["admit", "t1", "--send", &send, "--start"]);
    (gate, task.owned(&["rotate", "t1", "--as", "launch"]))
}

fn stop_idle(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &ABOVE).launched();
    task.settle(&task.turn());
    (call(&["stop", "t1", "--reason", "enough"]), call(&["stop", "t1"]))
}

fn stop_running(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    let turn = task.turn();
    task.send();
    (call(&["stop", "t1", "--failure", "it broke"]), task.owned(&["settle", "t1", "--turn", &turn]))
}

fn stop_cleanup(prep: &Prep) -> (Call, Call) {
    prep.alive("t1", &[]).launched();
    let stop = call(&["stop", "t1", "--cleanup", "worktree", "--cleanup", "container"]);
    (stop, call(&["rotate", "t1", "--as", "reawaken"]))
}

fn settle_turn(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &ABOVE).launched();
    let turn = task.turn();
    (task.owned(&["settle", "t1", "--turn", &turn, "--close"]), call(&["stop", "t1"]))
}

fn settle_attempt(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    (task.owned(&["settle", "t1"]), call(&["rotate", "t1", "--as", "reawaken"]))
}

fn settle_send(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    let send = task.send();
    let gate = task.owned(&["admit", "t1", "--send", &send, "--start"]);
    (task.owned(&["settle", "t1", "--send", &send, "--as", "no-work"]), gate)
}

fn settle_cleanup(prep: &Prep) -> (Call, Call) {
    prep.alive("t1", &ABOVE).launched();
    let stopped = prep.run(&["stop", "t1", "--cleanup", "worktree"]);
    let cleanup = stopped["cleanupId"].as_str().unwrap().to_owned();
    (call(&["settle", "t1", "--cleanup", &cleanup]), call(&["stop", "t1"]))
}

fn report_small(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    task.turn();
    (task.report(b"done\n"), task.report(b"done otherwise\n"))
}

/// A text that is kept neither in memory nor in a commit record.
fn large() -> Vec<u8> {
    "A line of a long report, with a \"quote\" in it.\n".repeat(6400).into_bytes()
}

fn report_large(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    let turn = task.turn();
    (task.report(&large()), task.owned(&["settle", "t1", "--turn", &turn, "--close"]))
}

fn report_late(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    let turn = task.turn();
    prep.run_call(&task.report(b"done"));
    prep.run_call(&task.owned(&["settle", "t1", "--turn", &turn, "--close"]));
    (task.report(b"too late"), call(&["rotate", "t1", "--as", "reactivate"]))
}

/// Settled, for a step, and neither retired nor reported.
fn interrupted(prep: &Prep) -> Task<'_> {
    let task = prep.alive("t1", &STEP).launched();
    task.settle(&task.turn());
    prep.run(&["stop", "t1"]);
    task
}

fn claim(prep: &Prep) -> (Call, Call) {
    let task = interrupted(prep);
    (task.claim(), call(&["rotate", "t1", "--as", "reawaken"]))
}

fn claim_again(prep: &Prep) -> (Call, Call) {
    let (task, nonce) = claimed(prep);
    (task.claim(), call(&["reserve", "t2", "--replaces", "t1", "--nonce", &nonce]))
}

fn recover_settle(prep: &Prep) -> (Call, Call) {
    left_idle(prep);
    (call(&["recover"]), call(&["stop", "t1"]))
}

fn recover_revert(prep: &Prep) -> (Call, Call) {
    prep.dead("t1", |task| {
        prep.run_call(&task.owned(&["rotate", "t1", "--as", "launch"]));
        task.send();
    });
    (call(&["recover", "t1"]), call(&["rotate", "t1", "--as", "launch"]))
}

fn recover_redrive(prep: &Prep) -> (Call, Call) {
    prep.reserve("t1", &[]).launched().turn();
    (call(&["recover", "t1", "--unproven"]), call(&["stop", "t1"]))
}

fn history_cut(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    let events = || {
        let books = checker::books(&prep.bench).unwrap();
        books["t1"]["row"]["history"]["events"].as_array().unwrap().len()
    };
    while events() < lychgate::protocol::history::EVENTS_MAX {
        let send = task.send();
        if events() < lychgate::protocol::history::EVENTS_MAX {
            prep.run_call(&task.owned(&["settle", "t1", "--send", &send, "--as", "no-work"]));
        }
    }
    (task.owned(&["admit", "t1", "--attempt", &task.attempt, "--queued"]), call(&["stop", "t1"]))
}

fn half_replaced(prep: &Prep) -> Task<'_> {
    let (task, nonce) = claimed(prep);
    prep.half_done(&call(&["reserve", "t2", "--replaces", "t1", "--nonce", &nonce]), 0);
    task
}

fn finish_from_new(prep: &Prep) -> (Call, Call) {
    half_replaced(prep);
    (call(&["rotate", "t2", "--as", "launch"]), call(&["stop", "t1"]))
}

fn finish_from_old(prep: &Prep) -> (Call, Call) {
    half_replaced(prep);
    (call(&["stop", "t1"]), call(&["rotate", "t2", "--as", "launch"]))
}

fn finish_receipts(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &ABOVE).launched();
    task.settle(&task.turn());
    prep.half_done(&call(&["stop", "t1"]), 1);
    (call(&["rotate", "t1", "--as", "reawaken"]), call(&["stop", "t1"]))
}

fn finish_report(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &[]).launched();
    let turn = task.turn();
    prep.half_done(&task.report(&large()), 0);
    (task.owned(&["settle", "t1", "--turn", &turn, "--close"]), call(&["stop", "t1"]))
}
