//! At most two continuations, and when there are others.

use serde_json::json;

use super::{Guarded, WITH_TO_DOS, leaves_to_dos_open, with};
use crate::agents::Agent;
use crate::model::{Gate, Turn};
use crate::settings::Conversation;
use crate::stage::Stage;

/// Open to-dos bring the agent back twice; a person's next prompt has a budget of its own.
fn open_to_dos(agent: Agent) {
    let Some(it) = Guarded::of(agent, leaves_to_dos_open(agent)) else { return };
    let ended = it.say("hello");
    assert_eq!(ended.exit, Some(0), "{}", ended.told);
    assert_eq!(it.continuations_since(2).len(), 2, "{}", ended.told);
    it.stage.model.now_plays(leaves_to_dos_open(agent));
    let ended = it.say_more("more");
    assert_eq!(ended.exit, Some(0), "{}", ended.told);
    assert_eq!(it.continuations_since(6).len(), 2, "{}", ended.told);
}

mod open_to_dos_bring_the_agent_back_twice_for_each_prompt {
    super::with!(Claude: claude_code, Codex: codex, Gemini: gemini_cli, Qwen: qwen_code => super::open_to_dos);
}
