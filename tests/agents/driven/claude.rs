//! Claude Code.

use std::io::Write as _;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{blocked_twice, watched};
use crate::agents::Agent;
use crate::model::{Gate, Turn};
use crate::record;
use crate::settings::Conversation;

const CLAUDE: Agent = Agent::Claude;

/// A message that is typed, as a line of the stream that stands for a person's keyboard.
fn typed(text: &str) -> String {
    format!("{}\n", json!({"type": "user", "message": {"role": "user", "content": text}}))
}

#[test]
fn a_blocked_stop_goes_on_in_the_same_turn_without_a_new_prompt() {
    let Some(story) = blocked_twice(CLAUDE) else { return };
    insta::assert_snapshot!(story, @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello
    1.1 PreToolUse tool_name=TaskCreate
    1.1 TaskCreated
    1.1 PostToolUse tool_name=TaskCreate
    1.1 PreToolUse tool_name=TaskCreate
    1.1 TaskCreated
    1.1 PostToolUse tool_name=TaskCreate
    1.1 Stop stop_hook_active=false
    1.1 Stop stop_hook_active=true
    1.1 Stop stop_hook_active=true
    1.1 SessionEnd reason=other
    1 SessionStart source=resume
    1.2 UserPromptSubmit prompt=more
    1.2 Stop stop_hook_active=false
    1.2 SessionEnd reason=other
    ");
}

#[test]
fn a_sub_agents_events_say_so_but_for_those_of_its_to_dos() {
    let agent = json!({"description": "d", "prompt": "do it", "subagent_type": "general-purpose"});
    let Some(stage) = watched(CLAUDE, vec![Turn::calls("Agent", agent)]) else { return };
    stage.model.gives_sub_agents(vec![CLAUDE.makes_two_to_dos()]);
    stage.watch("Stop");
    stage.say("hello");
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello
    1.1 PreToolUse tool_name=Agent
    1.1 SubagentStart (general-purpose)
    1.1 PreToolUse (general-purpose) tool_name=TaskCreate
    1.1 TaskCreated
    1.1 PostToolUse (general-purpose) tool_name=TaskCreate
    1.1 PreToolUse (general-purpose) tool_name=TaskCreate
    1.1 TaskCreated
    1.1 PostToolUse (general-purpose) tool_name=TaskCreate
    1.1 SubagentStop (general-purpose) stop_hook_active=false
    1.1 PostToolUse tool_name=Agent
    1.1 Stop stop_hook_active=false
    1.1 SessionEnd reason=other
    ");
    record::holds(&stage, "sub-agent");
}

#[test]
fn what_ends_in_the_background_comes_as_a_prompt_with_a_tag() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let go = folder.path().join("go");
    let wait = format!("until test -e '{}'; do sleep 0.05; done", go.display());
    let shell = json!({"command": wait, "run_in_background": true, "description": "d"});
    let Some(stage) = watched(CLAUDE, vec![Turn::calls("Bash", shell)]) else { return };
    stage.watch("Stop");
    let running = stage.start(Conversation::New, "hello");
    stage.wait_for("Stop", 1);
    std::fs::write(&go, "").unwrap();
    running.end();
    let stops = stage.told_of("Stop");
    assert_eq!(stops[0]["background_tasks"][0]["status"], "running", "{stops:?}");
    assert_eq!(stops[1]["background_tasks"], json!([]), "{stops:?}");
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello
    1.1 PreToolUse tool_name=Bash
    1.1 PostToolUse tool_name=Bash
    1.1 Stop stop_hook_active=false
    1.2 UserPromptSubmit prompt=<task-notification>
    1.2 Stop stop_hook_active=false
    1.2 SessionEnd reason=other
    ");
    record::holds(&stage, "background");
}

#[test]
fn to_dos_without_tasks_are_a_list_without_ids() {
    let item = |text: &str, status: &str| json!({"content": text, "status": status, "activeForm": text});
    let list = json!({"todos": [item("first", "in_progress"), item("second", "pending")]});
    let Some(stage) = watched(CLAUDE, vec![Turn::calls("TodoWrite", list)]) else { return };
    stage.watch("Stop");
    stage
        .start_as(Conversation::New, "hello", |command| {
            command.env("CLAUDE_CODE_ENABLE_TASKS", "0");
        })
        .end();
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello
    1.1 PreToolUse tool_name=TodoWrite
    1.1 PostToolUse tool_name=TodoWrite
    1.1 Stop stop_hook_active=false
    1.1 SessionEnd reason=other
    ");
    record::holds(&stage, "todo-write");
}

#[test]
fn an_interrupted_turn_has_no_stop() {
    let gate = Gate::default();
    let Some(stage) = watched(CLAUDE, vec![Turn::says("too late").held_by(&gate)]) else { return };
    stage.watch("Stop");
    let running = stage.start(Conversation::New, "hello");
    stage.model.wait_for_turn(1);
    running.signal(Signal::INT);
    running.end();
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=hello
    1.1 SessionEnd reason=other
    ");
}

/// The session's end does not wait for the failure's hook: either may be heard first.
#[test]
fn a_turn_that_the_provider_fails_has_no_stop_either() {
    let Some(stage) = watched(CLAUDE, vec![Turn::fails()]) else { return };
    stage.watch("Stop");
    stage.say("hello");
    stage.wait_for("StopFailure", 1);
    let (begun, mut ended) = (stage.events(), stage.events().split_off(2));
    ended.sort();
    assert_eq!(
        (&begun[..2], &ended[..]),
        (
            &["SessionStart".to_owned(), "UserPromptSubmit".to_owned()][..],
            &["SessionEnd".to_owned(), "StopFailure".to_owned()][..]
        )
    );
    record::holds(&stage, "failure");
}

/// What is typed while the model answers waits for the turn's end and is a prompt; what is typed while a tool runs
/// goes along with the tool's result, and no hook hears of it. `/clear` makes a new session.
#[test]
fn what_is_typed_in_the_middle_of_a_turn_reaches_a_hook_only_if_no_tool_runs() {
    let (gate, folder) = (Gate::default(), tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let (reached, go) = (folder.path().join("reached"), folder.path().join("go"));
    let command =
        format!("touch '{}'; until test -e '{}'; do sleep 0.05; done", reached.display(), go.display());
    let script = vec![
        Turn::says("one").held_by(&gate),
        Turn::calls("Bash", json!({"command": command, "description": "d"})),
    ];
    let Some(stage) = watched(CLAUDE, script) else { return };
    stage.watch("Stop");
    let mut running = stage.start_as(Conversation::New, "", |command| {
        command.args(["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
        command.stdin(Stdio::piped());
    });
    let mut keyboard = running.stdin();
    let mut say = |text: &str| keyboard.write_all(typed(text).as_bytes()).unwrap();
    say("alpha");
    stage.model.wait_for_turn(1);
    say("while the model answers");
    gate.open();
    while !reached.exists() {
        std::thread::yield_now();
    }
    say("while a tool runs");
    std::fs::write(go, "").unwrap();
    stage.model.wait_for_turn(3);
    assert!(stage.model.turns()[2].newest.contains("while a tool runs"), "{:?}", stage.model.turns()[2]);
    stage.wait_for("Stop", 2);
    say("/clear");
    stage.wait_for("SessionStart", 2);
    say("omega");
    stage.wait_for("Stop", 3);
    drop(keyboard);
    running.end();
    insta::assert_snapshot!(stage.story(), @"
    1 SessionStart source=startup
    1.1 UserPromptSubmit prompt=alpha
    1.1 Stop stop_hook_active=false
    1.2 UserPromptSubmit prompt=while the model answers
    1.2 PreToolUse tool_name=Bash
    1.2 PostToolUse tool_name=Bash
    1.2 Stop stop_hook_active=false
    1.3 SessionEnd reason=clear
    2.3 SessionStart source=clear
    2.4 UserPromptSubmit prompt=omega
    2.4 Stop stop_hook_active=false
    2.4 SessionEnd reason=other
    ");
    record::holds(&stage, "typed-and-cleared");
}

#[test]
fn a_forked_conversation_begins_with_the_id_of_the_old_one() {
    let Some(stage) = watched(CLAUDE, vec![]) else { return };
    stage.say("hello");
    let old: Value = stage.session().into();
    let session = stage.session();
    stage
        .start_as(Conversation::Resumed(&session), "more", |command| {
            command.arg("--fork-session");
        })
        .end();
    let (starts, prompts) = (stage.told_of("SessionStart"), stage.told_of("UserPromptSubmit"));
    assert_eq!(starts[1]["session_id"], old);
    assert_ne!(prompts[1]["session_id"], old);
}
