//! The situations: a prepared root, the call that is cut short on it, and a call somebody else makes after it.

use super::checker;
use super::prep::{Prep, Prepare, Task, call};
use super::world::Call;

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
    ("reserve --run, a step's first child", step_first),
    ("reserve --run, a step's next child", step_next),
    ("step complete", step_complete),
    ("step fail", step_fail),
    ("recover: settle", recover_settle),
    ("recover: revert", recover_revert),
    ("recover: re-drive", recover_redrive),
    ("the history is cut", history_cut),
    ("finish a replacement, from the new row", finish_from_new),
    ("finish a replacement, from the old row", finish_from_old),
    ("finish three receipts", finish_receipts),
    ("finish a report", finish_report),
    ("session open", session_open),
    ("claim, granted", claim_granted),
    ("claim, a prompt waits", claim_waits),
];

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

/// The call that asks for the child of the one step.
fn child(id: &str) -> Call {
    call(&[&["reserve", id, "--parent", "ws"], &STEP[..]].concat())
}

fn end_of_step(how: &str) -> Call {
    call(&[&["step", how, "--parent", "ws"], &STEP[..]].concat())
}

fn step_first(_: &Prep) -> (Call, Call) {
    (child("t1"), child("t2"))
}

/// The one commit that disposes the step's child, claims it, replaces it and rewrites the checkpoint.
fn step_next(prep: &Prep) -> (Call, Call) {
    let task = prep.alive("t1", &STEP).launched();
    task.settle(&task.turn());
    prep.run(&["stop", "t1"]);
    (child("t2"), child("t3"))
}

/// A step whose child has reported.
fn reported_step(prep: &Prep) {
    let task = prep.alive("t1", &STEP).launched();
    let turn = task.turn();
    prep.run_call(&task.report(b"done"));
    prep.run_call(&task.owned(&["settle", "t1", "--turn", &turn, "--close"]));
}

fn step_complete(prep: &Prep) -> (Call, Call) {
    reported_step(prep);
    (end_of_step("complete"), child("t2"))
}

fn step_fail(prep: &Prep) -> (Call, Call) {
    reported_step(prep);
    (end_of_step("fail"), end_of_step("complete"))
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

fn session_open(_: &Prep) -> (Call, Call) {
    (call(&["session", "open", "s", "--guard"]), call(&["session", "open", "t"]))
}

/// A session with a running prompt.
fn running(prep: &Prep) {
    prep.run(&["session", "open", "s", "--guard"]);
    prep.run(&["prompt", "submit", "s", "--alias", "p1"]);
}

fn claim_granted(prep: &Prep) -> (Call, Call) {
    running(prep);
    (call(&["claim", "s", "--prompt", "p1"]), call(&["prompt", "submit", "s", "--alias", "p2"]))
}

/// A refusal that changes something: it installs the wait.
fn claim_waits(prep: &Prep) -> (Call, Call) {
    running(prep);
    prep.run(&["prompt", "submit", "s", "--alias", "p2"]);
    (call(&["claim", "s", "--prompt", "p1"]), call(&["prompt", "remove", "s", "p2"]))
}
