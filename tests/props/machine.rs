//! The stories, and what the run as a whole must have seen.

use std::cell::RefCell;
use std::collections::BTreeSet;

use lychgate::protocol::codes::{Code, Exit};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::op::{Op, Verb};
use crate::world::{Tally, World};

/// How many stories are played unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 400;
/// How many calls a story has at least, and at most.
const CALLS_MIN: usize = 40;
const CALLS_MAX: usize = 140;

/// Codes that are refused, unresolved or pending, and that the rules leave to the commands around them.
const OF_THE_COMMANDS: [Code; 17] = [
    // The checkpoints of runs are no part of this world of rows; `tests/cli/workflow` plays them.
    Code::Adopt,
    Code::Reattach,
    Code::Completed,
    Code::RunStopped,
    Code::NoSuchStep,
    Code::StepEnded,
    Code::EndedOtherwise,
    Code::NotYet,
    Code::NoTaskRecord,
    Code::OwnerPidUnreadable,
    Code::TokenFileExists,
    Code::NoReport,
    Code::RequestIdReused,
    Code::OutcomeDiffers,
    Code::Unresolved,
    Code::IdentityChanged,
    Code::RecoveryIncomplete,
];

/// What must have happened somewhere, beside every refusal.
const SOMETIMES: [&str; 9] = [
    "replacement",
    "receipt",
    "report-accepted",
    "already-reported",
    "repeated",
    "refusal that discharges",
    "settled",
    "reverted",
    "wrote-off",
];

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        7 => Just(Verb::Reserve),
        12 => Just(Verb::Launch),
        8 => Just(Verb::Reawaken),
        4 => Just(Verb::Reactivate),
        4 => Just(Verb::Startup),
        5 => Just(Verb::Register),
        3 => Just(Verb::Enqueue),
        6 => Just(Verb::GateSend),
        16 => Just(Verb::GateAttempt),
        10 => Just(Verb::Stop),
        10 => Just(Verb::SettleTurn),
        4 => Just(Verb::SettleTurnAndClose),
        3 => Just(Verb::SettleSend),
        4 => Just(Verb::SettleCleanup),
        4 => Just(Verb::SettleAttempt),
        11 => Just(Verb::Report),
        9 => Just(Verb::Claim),
        6 => Just(Verb::Replace),
        6 => Just(Verb::Recover),
        3 => Just(Verb::Kill),
        2 => Just(Verb::Crash),
        5 => Just(Verb::Repeat),
        1 => Just(Verb::Legacy),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let byte = any::<u8>;
    (verb(), byte(), byte(), byte(), byte(), byte(), byte()).prop_map(
        |(verb, task, actor, key, pick, alt, fault)| Op { verb, task, actor, key, pick, alt, fault },
    )
}

fn play(ops: &[Op], tally: &mut Tally) -> Result<(), String> {
    let mut world = World::default();
    std::mem::swap(&mut world.tally, tally);
    let mut played = Ok(());
    for op in ops {
        played = op.play(&mut world).and_then(|()| world.check()).map_err(|found| format!("{op:?}: {found}"));
        if played.is_err() {
            break;
        }
    }
    std::mem::swap(&mut world.tally, tally);
    played
}

fn seed() -> [u8; 32] {
    let number = std::env::var("LYCHGATE_PROPS_SEED").ok().and_then(|text| text.parse::<u64>().ok());
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&number.unwrap_or(1).to_le_bytes());
    seed
}

#[test]
fn every_invariant_holds_after_every_step_and_everything_happens_sometimes() {
    let mut config = Config { failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    let cases = config.cases;
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed());
    let mut runner = TestRunner::new_with_rng(config, rng);
    let tally = RefCell::new(Tally::default());
    let outcome = runner.run(&vec(op(), CALLS_MIN..CALLS_MAX), |ops| {
        play(&ops, &mut tally.borrow_mut()).map_err(TestCaseError::fail)
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    if cases >= CASES {
        assert_seen(&tally.borrow());
    }
}

fn assert_seen(tally: &Tally) {
    let refusals = Code::ALL
        .iter()
        .filter(|code| matches!(code.exit(), Exit::Refused | Exit::Unresolved | Exit::Pending))
        .filter(|code| !OF_THE_COMMANDS.contains(code) && !OF_THE_GUARD.contains(code))
        .map(|code| code.as_str());
    let wanted: BTreeSet<&str> = refusals.chain(SOMETIMES).collect();
    let missing: Vec<_> = wanted.iter().filter(|what| !tally.0.contains_key(**what)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}; seen: {:?}", tally.0);
    let strangers = OF_THE_COMMANDS.iter().filter(|code| tally.0.contains_key(code.as_str()));
    assert_eq!(strangers.count(), 0, "the rules do answer these: {:?}", tally.0);
}

/// What only the continuation guard answers; its own tests see that.
const OF_THE_GUARD: [Code; 24] = [
    Code::NoSession,
    Code::SessionOver,
    Code::PromptQueued,
    Code::Unavailable,
    Code::AlreadyGranted,
    Code::QueueFull,
    Code::NoSuchPrompt,
    Code::PromptEnded,
    Code::PromptNotRunning,
    Code::PromptIsRunning,
    Code::NoSuchTicket,
    Code::TicketEnded,
    Code::TicketVoid,
    Code::NoMatch,
    Code::TodoLate,
    Code::NoSuchMark,
    Code::NothingQueued,
    Code::KeptBack,
    Code::NoSuchItem,
    Code::NoRelocation,
    Code::PromptWaiting,
    Code::TicketOpen,
    Code::Relocating,
    Code::SessionRestoring,
];
