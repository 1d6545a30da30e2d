//! Copilot CLI.

use rustix::process::Signal;
use serde_json::json;

use super::{blocked_twice, watched};
use crate::agents::Agent;
use crate::model::{Gate, Turn};
use crate::record;
use crate::settings::Conversation;

const COPILOT: Agent = Agent::Copilot;

#[test]
fn a_blocked_stop_comes_back_as_a_prompt_with_the_reason_as_its_text() {
    let Some(story) = blocked_twice(COPILOT) else { return };
    insta::assert_snapshot!(story, @"
    1 SessionStart source=new
    1 UserPromptSubmit prompt=hello
    1 PreToolUse tool_name=sql
    1 PostToolUse tool_name=sql
    1 Stop stop_hook_active=false
    1 UserPromptSubmit prompt=go on, one
    1 Stop stop_hook_active=true
    1 UserPromptSubmit prompt=go on, two
    1 Stop stop_hook_active=true
    1 SessionEnd reason=complete
    1 SessionStart source=resume
    1 UserPromptSubmit prompt=more
    1 Stop stop_hook_active=false
    1 SessionEnd reason=complete
    ");
}

#[test]
fn a_sub_agents_events_say_so() {
    let agent = json!({"description": "d", "prompt": "do it", "agent_type": "general-purpose", "name": "n"});
    let Some(stage) = watched(COPILOT, vec![Turn::calls("task", agent)]) else { return };
    stage.model.gives_sub_agents(vec![COPILOT.makes_two_to_dos()]);
    stage.watch("Stop");
    stage.say("hello");
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=new
    1 UserPromptSubmit prompt=hello
    1 PreToolUse tool_name=Agent
    2 SubagentStart (general-purpose)
    3 UserPromptSubmit (general-purpose) prompt=do it
    3 Stop (general-purpose) stop_hook_active=false
    1 SubagentStop (general-purpose) stop_hook_active=false
    1 PostToolUse tool_name=Agent
    1 Stop stop_hook_active=false
    1 SessionEnd reason=complete
    ");
    record::holds(&stage, "sub-agent");
}

#[test]
fn an_interrupted_turn_has_no_stop() {
    let gate = Gate::default();
    let Some(stage) = watched(COPILOT, vec![Turn::says("too late").held_by(&gate)]) else { return };
    stage.watch("Stop");
    let running = stage.start(Conversation::New, "hello");
    stage.model.wait_for_turn(1);
    running.signal(Signal::INT);
    running.end();
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=new
    1 UserPromptSubmit prompt=hello
    1 SessionEnd reason=complete
    ");
}

#[test]
fn a_turn_that_the_provider_fails_has_no_stop_either() {
    let Some(stage) = watched(COPILOT, vec![Turn::fails()]) else { return };
    stage.watch("Stop");
    stage.say("hello");
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=new
    1 UserPromptSubmit prompt=hello
    1 ErrorOccurred
    1 SessionEnd reason=error
    ");
    record::holds(&stage, "failure");
}
