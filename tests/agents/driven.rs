//! What the agents do, as far as the guard rests on it: which events fire, in which order, with which ids, and what
//! becomes of an answer. The hooks here only watch, and answer by a script.

mod claude;
mod codex;
mod copilot;
mod gemini;
mod qwen;

use crate::agents::Agent;
use crate::model::Turn;
use crate::packages::{can_drive, say, version};
use crate::record;
use crate::stage::Stage;

/// A stage on which every event but the stop is watched.
fn watched(agent: Agent, script: Vec<Turn>) -> Option<Stage> {
    let stage = Stage::of(agent, script)?;
    for event in agent.events() {
        if *event != agent.stop_event() {
            stage.watch(event);
        }
    }
    Some(stage)
}

/// A hook's answer that brings the agent back with this text.
fn block(agent: Agent, reason: &str) -> String {
    let word = if agent == Agent::Gemini { "deny" } else { "block" };
    format!("printf '{{\"decision\":\"{word}\",\"reason\":\"{reason}\"}}'\n")
}

/// Two to-dos, two stops that a hook answers with more work, a third that it lets be; then a second prompt in the same
/// conversation. Gives what the hooks were told.
fn blocked_twice(agent: Agent) -> Option<String> {
    let stage = watched(agent, vec![agent.makes_two_to_dos(), Turn::says("I stop.")])?;
    stage.answer_stops(&[block(agent, "go on, one"), block(agent, "go on, two")], 30);
    let ended = stage.say("hello");
    assert_eq!(ended.exit, Some(0), "{}", ended.told);
    let turns = stage.model.turns();
    assert_eq!(turns.len(), 4, "to-dos, a stop, and two continuations: {turns:?}");
    assert!(turns[2].newest.contains("go on, one"), "{turns:?}");
    assert!(turns[3].newest.contains("go on, two"), "{turns:?}");
    let ended = stage.say_more("more");
    assert_eq!(ended.exit, Some(0), "{}", ended.told);
    record::holds(&stage, "blocked-twice");
    Some(stage.story())
}

/// The line that says what a run of these tests is worth.
#[test]
fn the_run_says_which_agents_it_drives() {
    let (driven, left): (Vec<Agent>, Vec<Agent>) =
        Agent::ALL.into_iter().partition(|agent| can_drive(*agent));
    let names = |agents: &[Agent]| {
        let names: Vec<String> =
            agents.iter().map(|agent| format!("{} {}", agent.name(), version(*agent))).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    say(&format!("agents: driven for real: {}; not driven: {}", names(&driven), names(&left)));
}
