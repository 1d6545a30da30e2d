//! What a person wants comes first: a prompt that waits, and a Stop.

use super::{Guarded, leaves_to_dos_open};
use crate::agents::Agent;
use crate::model::{Gate, Turn};
use crate::settings::Conversation;

/// To-dos, and a stop that waits at the gate.
fn stops_at(agent: Agent, gate: &Gate) -> Vec<Turn> {
    vec![agent.makes_two_to_dos(), Turn::says("I stop.").held_by(gate)]
}

/// A prompt that another process has submitted in the middle of the turn: the agent stops for it.
fn a_waiting_prompt(agent: Agent) {
    let gate = Gate::default();
    let Some(it) = Guarded::of(agent, stops_at(agent, &gate)) else { return };
    let running = it.start(Conversation::New, "hello");
    it.stage.model.wait_for_turn(2);
    let session = it.session();
    let submitted = it.call(&["prompt", "submit", &session, "--file", "-"], "what the other process wants");
    assert_eq!(submitted["state"], "queued", "{submitted}");
    gate.open();
    let ended = running.end();
    assert_eq!(ended.exit, Some(0), "{}", ended.told);
    assert_eq!(it.continuations_since(2), [""; 0], "{}", ended.told);
    let told = it.call(&["inspect", "--session", &session], "");
    let prompts = told["prompts"].as_array().unwrap();
    let waits = |prompt: &serde_json::Value| {
        prompt["promptId"] == submitted["promptId"] && prompt["state"] == "queued"
    };
    assert!(prompts.iter().any(waits), "it still waits: {told}");
}

/// A Stop that a script presses in the middle of the turn. A person's next prompt is a new beginning.
fn a_stop(agent: Agent) {
    let gate = Gate::default();
    let Some(it) = Guarded::of(agent, stops_at(agent, &gate)) else { return };
    let running = it.start(Conversation::New, "hello");
    it.stage.model.wait_for_turn(2);
    it.call(&["session", "suspend", &it.session(), "--cause", "Stop was pressed"], "");
    gate.open();
    let ended = running.end();
    assert_eq!(ended.exit, Some(0), "{}", ended.told);
    assert_eq!(it.continuations_since(2), [""; 0], "{}", ended.told);
    it.stage.model.now_plays(leaves_to_dos_open(agent));
    let ended = it.say_more("more");
    assert_eq!(it.continuations_since(4).len(), 2, "{}", ended.told);
}

mod a_prompt_that_waits_is_yielded_to {
    super::super::with!(Claude: claude_code, Codex: codex, Gemini: gemini_cli, Qwen: qwen_code => super::a_waiting_prompt);
}

mod nothing_goes_on_after_a_stop_until_the_next_prompt {
    super::super::with!(Claude: claude_code, Codex: codex, Gemini: gemini_cli, Qwen: qwen_code => super::a_stop);
}
