//! At most two continuations, and when there are others.

use super::{Guarded, leaves_to_dos_open};
use crate::agents::Agent;

/// Open to-dos bring the agent back twice; a person's next prompt has a budget of its own, and its to-dos are written
/// anew in every turn.
fn open_to_dos(agent: Agent) {
    let Some(it) = Guarded::of(agent, leaves_to_dos_open(agent)) else { return };
    let ended = it.say("hello");
    assert_eq!(ended.exit, Some(0), "{}", ended.told);
    assert_eq!(it.continuations_since(2).len(), 2, "{}", ended.told);
    assert_eq!(it.stage.model.turns().len(), 4, "{}", ended.told);
    it.stage.model.now_plays(vec![leaves_to_dos_open(agent); 5].concat());
    let ended = it.say_more("more");
    assert_eq!(ended.exit, Some(0), "{}", ended.told);
    assert_eq!(it.continuations_since(4).len(), 2, "{}", ended.told);
    assert_eq!(it.stage.model.turns().len(), 4 + 6, "{}", ended.told);
}

mod open_to_dos_bring_the_agent_back_twice_for_each_prompt {
    super::super::with!(Claude: claude_code, Codex: codex, Gemini: gemini_cli, Qwen: qwen_code => super::open_to_dos);
}
