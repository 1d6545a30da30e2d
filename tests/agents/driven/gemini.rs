//! Gemini CLI.

use rustix::process::Signal;

use super::{blocked_twice, watched};
use crate::agents::Agent;
use crate::model::{Gate, Turn};
use crate::settings::Conversation;

const GEMINI: Agent = Agent::Gemini;

#[test]
fn a_blocked_stop_comes_back_as_a_prompt_with_the_reason_as_its_text() {
    let Some(story) = blocked_twice(GEMINI) else { return };
    insta::assert_snapshot!(story, @"
    1 SessionStart source=startup
    1 BeforeAgent prompt=hello
    1 BeforeTool tool_name=write_todos
    1 AfterTool tool_name=write_todos
    1 AfterAgent prompt=hello stop_hook_active=false
    1 BeforeAgent prompt=go on, one
    1 AfterAgent prompt=hello stop_hook_active=true
    1 BeforeAgent prompt=go on, two
    1 AfterAgent prompt=hello stop_hook_active=true
    1 SessionEnd reason=exit
    1 SessionStart source=resume
    1 BeforeAgent prompt=more
    1 AfterAgent prompt=more stop_hook_active=false
    1 SessionEnd reason=exit
    ");
}

#[test]
fn an_interrupted_turn_has_no_stop() {
    let gate = Gate::default();
    let Some(stage) = watched(GEMINI, vec![Turn::says("too late").held_by(&gate)]) else { return };
    stage.watch("AfterAgent");
    let running = stage.start(Conversation::New, "hello");
    stage.model.wait_for_turn(1);
    running.signal(Signal::INT);
    running.end();
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=startup
    1 BeforeAgent prompt=hello
    1 SessionEnd reason=exit
    ");
}

#[test]
fn a_turn_that_the_provider_fails_has_no_stop_either() {
    let Some(stage) = watched(GEMINI, vec![Turn::fails()]) else { return };
    stage.watch("AfterAgent");
    stage.say("hello");
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=startup
    1 BeforeAgent prompt=hello
    1 SessionEnd reason=exit
    ");
}
