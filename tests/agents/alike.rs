//! The driver of `replay` treats stop hooks as the real agents do: the same answers are given to both, and both must
//! stop at the same ones, and come back with the same texts at the others.

use std::path::Path;

use lychgate::dialect;

use crate::agents::Agent;
use crate::replay::Replay;
use crate::settings::Conversation;
use crate::stage::{Stage, probe};

/// How long a hook may take: enough for a shell on a busy machine.
const SECONDS: u32 = 2;

/// What two hooks answer to one stop after the other, as shell scripts.
fn answers(agent: Agent) -> [[String; 2]; 3] {
    let word = if agent == Agent::Gemini { "deny" } else { "block" };
    let block = |reason: &str| format!("printf '{{\"decision\":\"{word}\",\"reason\":\"{reason}\"}}'\n");
    [
        ["echo two >&2; exit 2\n".to_owned(), String::new()],
        [block("alpha"), block("omega")],
        // A panic; and an answer by a hook that then hangs until its timeout.
        ["echo panic >&2; exit 101\n".to_owned(), format!("{}sleep 30\n", block("early"))],
    ]
}

/// Writes what each of the hooks answers, and gives its command.
fn hooks(agent: Agent, folder: &Path) -> [String; 2] {
    [0, 1].map(|hook| {
        let queue = folder.join(format!("answers{hook}"));
        std::fs::create_dir_all(&queue).unwrap();
        for (stop, scripts) in answers(agent).iter().enumerate() {
            std::fs::write(queue.join(stop.to_string()), &scripts[hook]).unwrap();
        }
        probe(folder, agent.stop_event(), Some(&queue))
    })
}

/// A hook waits for its answer in a queue that is not empty.
fn some_are_left(folder: &Path) -> bool {
    std::fs::read_dir(folder.join("answers0")).unwrap().next().is_some()
}

/// The words of the hooks that a text has.
fn heard(text: &str) -> Vec<&'static str> {
    ["two", "alpha", "omega", "panic", "early"].into_iter().filter(|word| text.contains(word)).collect()
}

/// What the agent comes back with, prompt after prompt until all answers are given.
fn really(agent: Agent) -> Option<Vec<Vec<Vec<&'static str>>>> {
    let stage = Stage::of(agent, vec![])?;
    // Whose calls tell the session's id.
    stage.watch(agent.prompt_event());
    let folder = stage.path("hooks");
    for command in hooks(agent, &folder) {
        stage.hook(agent.stop_event(), command, SECONDS);
    }
    let (mut heard_by_prompt, mut n_known) = (Vec::new(), 0);
    while some_are_left(&folder) {
        let session = if n_known == 0 { String::new() } else { stage.session() };
        let conversation = if n_known == 0 { Conversation::New } else { Conversation::Resumed(&session) };
        let ended = stage.start(conversation, "hello").end();
        let turns = stage.model.turns();
        assert!(turns.len() > n_known, "{}", ended.told);
        heard_by_prompt.push(turns[n_known + 1..].iter().map(|asked| heard(&asked.newest)).collect());
        n_known = turns.len();
    }
    Some(heard_by_prompt)
}

fn played(agent: Agent) -> Vec<Vec<Vec<&'static str>>> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let replay = Replay::of(known(agent), folder.path().to_owned());
    for command in hooks(agent, folder.path()) {
        replay.hook(agent.stop_event(), command, SECONDS);
    }
    let mut heard_by_prompt = Vec::new();
    while some_are_left(folder.path()) {
        heard_by_prompt.push(replay.say("hello", &[]).iter().map(|text| heard(text)).collect());
    }
    heard_by_prompt
}

/// A hook brings the agent back at every stop, and the agent gives up by itself as often as the driver says.
fn both_give_up(agent: Agent) {
    let Some(stage) = Stage::of(agent, vec![]) else { return };
    let again = "printf '{\"decision\":\"block\",\"reason\":\"again\"}'".to_owned();
    stage.hook(agent.stop_event(), again.clone(), 10);
    let ended = stage.say("hello");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let replay = Replay::of(known(agent), folder.path().to_owned());
    replay.hook(agent.stop_event(), again, 10);
    assert_eq!(
        stage.model.turns().len() - 1,
        replay.say("hello", &[]).len(),
        "really, and played: {}",
        ended.told
    );
}

fn known(agent: Agent) -> dialect::Agent {
    dialect::Agent::ALL.into_iter().find(|known| known.as_str() == agent.name()).unwrap()
}

fn both_are_alike(agent: Agent) {
    let Some(really) = really(agent) else { return };
    assert_eq!(really, played(agent), "really, and played");
}

#[test]
fn claude_code() {
    both_are_alike(Agent::Claude);
}

#[test]
fn codex() {
    both_are_alike(Agent::Codex);
}

#[test]
fn gemini_cli() {
    both_are_alike(Agent::Gemini);
}

#[test]
fn qwen_code() {
    both_are_alike(Agent::Qwen);
}

#[test]
fn copilot_cli() {
    both_are_alike(Agent::Copilot);
}

#[test]
fn claude_code_gives_up() {
    both_give_up(Agent::Claude);
}

#[test]
fn qwen_code_gives_up() {
    both_give_up(Agent::Qwen);
}

#[test]
fn copilot_cli_gives_up() {
    both_give_up(Agent::Copilot);
}
