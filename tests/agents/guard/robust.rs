//! The agent stops whatever has become of our program, its root, or its own turn.

use rustix::process::Signal;
use serde_json::json;

use super::{Guarded, leaves_to_dos_open};
use crate::agents::Agent;
use crate::call::PROGRAM;
use crate::model::{Gate, Turn};
use crate::settings::Conversation;
use crate::stage::Stage;

/// First the root becomes unusable in the middle of a turn, then the program is gone in the middle of the next.
fn nothing_works(agent: Agent) {
    let (first, second) = (Gate::default(), Gate::default());
    let script = |gate: &Gate| vec![agent.makes_two_to_dos(), Turn::says("I stop.").held_by(gate)];
    let Some(mut it) = Guarded::of(agent, script(&first)) else { return };
    it.program = it.stage.path("bin/lychgate");
    std::fs::copy(PROGRAM, &it.program).unwrap();
    let running = it.start(Conversation::New, "hello");
    it.stage.model.wait_for_turn(2);
    let kept = it.stage.path("kept");
    std::fs::rename(&it.root, &kept).unwrap();
    std::fs::write(&it.root, "no folder").unwrap();
    first.open();
    let ended = running.end();
    assert_eq!(ended.exit, Some(0), "{}", ended.told);
    assert_eq!(it.continuations_since(2), [""; 0], "{}", ended.told);

    std::fs::remove_file(&it.root).unwrap();
    std::fs::rename(&kept, &it.root).unwrap();
    it.stage.model.now_plays(script(&second));
    let session = it.stage.session();
    let running = it.start(Conversation::Resumed(&session), "more");
    it.stage.model.wait_for_turn(4);
    std::fs::remove_file(&it.program).unwrap();
    second.open();
    let ended = running.end();
    assert_eq!(ended.exit, Some(0), "{}", ended.told);
    assert_eq!(it.continuations_since(4), [""; 0], "{}", ended.told);
}

/// Two agents of different sorts and two conversations of one sort, all at once on one root: each has its own budget.
#[test]
fn agents_that_share_a_root_do_not_share_a_budget() {
    let shared = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = shared.path().join("root");
    std::thread::scope(|scope| {
        for agent in [Agent::Claude, Agent::Claude, Agent::Codex] {
            let root = root.clone();
            scope.spawn(move || {
                let Some(stage) = Stage::of(agent, leaves_to_dos_open(agent)) else { return };
                let it = Guarded::on(stage, root);
                let ended = it.say("hello");
                assert_eq!(ended.exit, Some(0), "{}", ended.told);
                assert_eq!(it.continuations_since(2).len(), 2, "{}", ended.told);
            });
        }
    });
}

/// Our hook stands in two settings, and so is called twice for each event.
fn installed_twice(agent: Agent) {
    let Some(it) = Guarded::of(agent, leaves_to_dos_open(agent)) else { return };
    it.scopes.borrow_mut().push("--project");
    let ended = it.say("hello");
    assert_eq!(ended.exit, Some(0), "{}", ended.told);
    assert!(it.continuations_since(2).len() <= 2, "{}", ended.told);
}

/// The turn is interrupted; no stop is ever told. The next prompt is as good as any.
fn interrupted(agent: Agent) {
    let gate = Gate::default();
    let script = vec![agent.makes_two_to_dos(), Turn::says("too late").held_by(&gate)];
    let Some(it) = Guarded::of(agent, script) else { return };
    let running = it.start(Conversation::New, "hello");
    it.stage.model.wait_for_turn(2);
    running.signal(Signal::INT);
    running.end();
    it.stage.model.now_plays(leaves_to_dos_open(agent));
    let ended = it.say_more("more");
    assert_eq!(it.continuations_since(4).len(), 2, "{}", ended.told);
}

/// The to-dos of a sub-agent are no reason to bring the main agent back.
#[test]
fn to_dos_of_a_sub_agent_of_claude_code_bring_nobody_back() {
    let task = json!({"description": "d", "prompt": "do it", "subagent_type": "general-purpose"});
    let Some(it) = Guarded::of(Agent::Claude, vec![Turn::calls("Agent", task)]) else { return };
    it.stage.model.gives_sub_agents(vec![Agent::Claude.makes_two_to_dos()]);
    let ended = it.say("hello");
    assert_eq!(it.continuations_since(2), [""; 0], "{}", ended.told);
}

#[test]
fn to_dos_of_a_sub_agent_of_codex_bring_nobody_back() {
    let gate = Gate::default();
    let spawn = Turn::calls("multi_agent_v1::spawn_agent", json!({"message": "do it"}));
    let Some(it) = Guarded::of(Agent::Codex, vec![spawn, Turn::says("I wait.").held_by(&gate)]) else {
        return;
    };
    it.stage.model.gives_sub_agents(vec![Agent::Codex.makes_two_to_dos()]);
    it.stage.watch("SubagentStop");
    let running = it.start(Conversation::New, "hello");
    it.stage.wait_for("SubagentStop", 1);
    gate.open();
    let ended = running.end();
    assert_eq!(it.continuations_since(2), [""; 0], "{}", ended.told);
}

/// While something of the turn's own work runs in the background, its end is waited for. It brings the agent back by
/// itself; that is no person's prompt, so nothing of the budget comes back with it.
#[test]
fn what_runs_in_the_background_is_waited_for_and_fills_no_budget() {
    let (gate, agent) = (Gate::default(), Agent::Claude);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let go = folder.path().join("go");
    let wait = format!("until test -e '{}'; do sleep 0.05; done", go.display());
    let shell = json!({"command": wait, "run_in_background": true, "description": "d"});
    let turn = agent.makes_two_to_dos().and_calls("Bash", shell);
    let Some(it) = Guarded::of(agent, vec![turn, Turn::says("I stop.").held_by(&gate)]) else { return };
    let running = it.start(Conversation::New, "hello");
    it.stage.model.wait_for_turn(2);
    gate.open();
    it.stage.wait_for("Stop", 1);
    assert_eq!(it.stage.model.turns().len(), 2, "nobody brings it back while the shell runs");
    std::fs::write(&go, "").unwrap();
    let ended = running.end();
    let turns = it.stage.model.turns();
    assert!(turns[2].newest.contains("<task-notification>"), "{turns:?}");
    assert!(it.continuations_since(3).len() <= 2, "{}", ended.told);
}

/// To-dos that are done bring nobody back.
#[test]
fn to_dos_that_are_done_bring_nobody_back() {
    for agent in [Agent::Claude, Agent::Codex] {
        let script = vec![agent.makes_two_to_dos(), agent.completes_both_to_dos()];
        let Some(it) = Guarded::of(agent, script) else { return };
        let ended = it.say("hello");
        assert_eq!(it.continuations_since(3), [""; 0], "{}", ended.told);
    }
}

mod the_agent_stops_when_the_root_is_unusable_and_when_the_program_is_gone {
    super::super::with!(
        Claude: claude_code, Codex: codex, Gemini: gemini_cli, Qwen: qwen_code, Copilot: copilot_cli
            => super::nothing_works
    );
}

mod hooks_that_are_installed_twice_bring_the_agent_back_no_more_often {
    super::super::with!(Claude: claude_code, Gemini: gemini_cli, Qwen: qwen_code => super::installed_twice);
}

mod a_turn_that_was_interrupted_leaves_the_next_prompt_its_budget {
    super::super::with!(Claude: claude_code, Codex: codex => super::interrupted);
}
