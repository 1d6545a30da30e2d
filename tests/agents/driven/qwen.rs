//! Qwen Code.

use rustix::process::Signal;
use serde_json::json;

use super::{blocked_twice, watched};
use crate::agents::Agent;
use crate::model::{Gate, Turn};
use crate::record;
use crate::settings::Conversation;

const QWEN: Agent = Agent::Qwen;

#[test]
fn a_blocked_stop_comes_back_as_a_prompt_with_the_reason_as_its_text() {
    let Some(story) = blocked_twice(QWEN) else { return };
    insta::assert_snapshot!(story, @r#"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello submitted_prompt=hello
    1.1 PreToolUse tool_name=todo_write
    1.1 TodoCreated phase=validation
    1.1 TodoCreated phase=validation
    1.1 TodoCreated phase=postWrite
    1.1 TodoCreated phase=postWrite
    1.1 PostToolUse tool_name=todo_write
    1.1 UserPromptSubmit prompt=""
    1.1 Stop stop_hook_active=false
    1.1 UserPromptSubmit prompt=go on, one
    1.1 Stop stop_hook_active=true
    1.1 UserPromptSubmit prompt=go on, two
    1.1 Stop stop_hook_active=true
    1 SessionStart source=resume
    1.2 UserPromptSubmit prompt=more submitted_prompt=more
    1.2 Stop stop_hook_active=false
    "#);
}

/// Its sub-agents live in the background, and the end of one brings the main conversation back: it stops once more,
/// without a prompt before and as if for the first time.
#[test]
fn a_sub_agents_end_brings_a_second_stop_of_the_same_prompt() {
    let (main, sub) = (Gate::default(), Gate::default());
    let agent = json!({"description": "d", "prompt": "do it", "subagent_type": "general-purpose"});
    let script = vec![Turn::calls("agent", agent), Turn::says("I wait.").held_by(&main)];
    let Some(stage) = watched(QWEN, script) else { return };
    stage.model.gives_sub_agents(vec![Turn::says("done").held_by(&sub)]);
    stage.watch("Stop");
    let running = stage.start(Conversation::New, "hello");
    stage.model.wait_for_turn(2);
    main.open();
    stage.wait_for("Stop", 1);
    sub.open();
    running.end();
    insta::assert_snapshot!(stage.story(), @r#"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello submitted_prompt=hello
    1.1 PreToolUse tool_name=agent
    1.1 SubagentStart (general-purpose)
    1.1 PostToolUse tool_name=agent
    1.1 UserPromptSubmit prompt=""
    1.1 Stop stop_hook_active=false
    1.1 SubagentStop (general-purpose) stop_hook_active=false
    1.1 Stop stop_hook_active=false
    "#);
    record::holds(&stage, "sub-agent");
}

#[test]
fn an_interrupted_turn_has_no_stop() {
    let gate = Gate::default();
    let Some(stage) = watched(QWEN, vec![Turn::says("too late").held_by(&gate)]) else { return };
    stage.watch("Stop");
    let running = stage.start(Conversation::New, "hello");
    stage.model.wait_for_turn(1);
    running.signal(Signal::INT);
    running.end();
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello submitted_prompt=hello
    ");
}

#[test]
fn a_turn_that_the_provider_fails_has_no_stop_either() {
    let Some(stage) = watched(QWEN, vec![Turn::fails()]) else { return };
    stage.watch("Stop");
    stage.say("hello");
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello submitted_prompt=hello
    ");
    record::holds(&stage, "failure");
}
