//! Codex.

use rustix::process::Signal;
use serde_json::json;

use super::{blocked_twice, watched};
use crate::agents::Agent;
use crate::model::{Gate, Turn};
use crate::record;
use crate::settings::Conversation;

const CODEX: Agent = Agent::Codex;

#[test]
fn a_blocked_stop_goes_on_in_the_same_turn_without_a_new_prompt() {
    let Some(story) = blocked_twice(CODEX) else { return };
    insta::assert_snapshot!(story, @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello
    1.1 PreToolUse tool_name=update_plan
    1.1 PostToolUse tool_name=update_plan
    1.1 Stop stop_hook_active=false
    1.1 Stop stop_hook_active=true
    1.1 Stop stop_hook_active=true
    1 SessionEnd reason=other
    1 SessionStart source=resume
    1.2 UserPromptSubmit prompt=more
    1.2 Stop stop_hook_active=false
    1 SessionEnd reason=other
    ");
}

/// The sub-agent is at work before the tool that made it has ended.
#[test]
fn a_sub_agents_task_is_a_prompt_of_the_session_that_names_the_sub_agent() {
    let gate = Gate::default();
    let script = vec![
        Turn::calls("multi_agent_v1::spawn_agent", json!({"message": "do it"})),
        Turn::says("I wait.").held_by(&gate),
    ];
    let Some(stage) = watched(CODEX, script) else { return };
    stage.model.gives_sub_agents(vec![CODEX.makes_two_to_dos()]);
    stage.watch("Stop");
    let running = stage.start(Conversation::New, "hello");
    stage.wait_for("SubagentStop", 1);
    gate.open();
    running.end();
    let story = stage.story().replace("1.1 PostToolUse tool_name=spawn_agent\n", "");
    insta::assert_snapshot!(story, @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello
    1.1 PreToolUse tool_name=spawn_agent
    1.2 SubagentStart (default)
    1.2 UserPromptSubmit (default) prompt=do it
    1.2 PreToolUse (default) tool_name=update_plan
    1.2 PostToolUse (default) tool_name=update_plan
    1.2 SubagentStop (default) stop_hook_active=false
    1.1 Stop stop_hook_active=false
    1 SessionEnd reason=other
    ");
    record::holds(&stage, "sub-agent");
}

#[test]
fn an_interrupted_turn_has_an_event_of_its_own() {
    let gate = Gate::default();
    let Some(stage) = watched(CODEX, vec![Turn::says("too late").held_by(&gate)]) else { return };
    stage.watch("Stop");
    let running = stage.start(Conversation::New, "hello");
    stage.model.wait_for_turn(1);
    running.signal(Signal::INT);
    running.end();
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello
    1.1 Interrupt
    1 SessionEnd reason=other
    ");
    record::holds(&stage, "interrupt");
}

#[test]
fn a_turn_that_the_provider_fails_ends_without_a_word() {
    let Some(stage) = watched(CODEX, vec![Turn::fails()]) else { return };
    stage.watch("Stop");
    stage.say("hello");
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello
    1 SessionEnd reason=other
    ");
}
