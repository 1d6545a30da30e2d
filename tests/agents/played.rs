//! The continuation guard with all six agents, played by `replay`: also where no agent is installed, and for what a
//! real one cannot be made to do at will.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use lychgate::dialect::settings::HookCommand;
use lychgate::dialect::{Agent, TimeoutUnit, has_todo_list, install_events, ticket_in, timeout_unit};
use serde_json::json;

use crate::call::{Holder, PROGRAM, call};
use crate::replay::{Act, Replay, SESSION};

const OPEN: &[(&str, &str)] = &[("first", "in_progress"), ("second", "pending")];

/// A played agent with our hooks, and a root.
struct Played {
    agent: Agent,
    folder: tempfile::TempDir,
    replay: Replay,
}

impl Played {
    fn of(agent: Agent) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let played = Self { agent, replay: Replay::of(agent, folder.path().to_owned()), folder };
        played.install(Path::new(PROGRAM));
        played
    }

    /// Registers our hooks beside those there are, as `hook install` writes them.
    fn install(&self, program: &Path) {
        let root = self.root().display().to_string();
        let command = HookCommand { binary: program.display().to_string(), root, guard: true };
        for registered in install_events(self.agent) {
            let seconds = match timeout_unit(self.agent) {
                TimeoutUnit::Seconds => registered.timeout,
                TimeoutUnit::Milliseconds => registered.timeout / 1000,
            };
            self.replay.hook(registered.event, command.line(self.agent, registered.event), seconds);
        }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn session(&self) -> String {
        format!("{}:{}", self.agent, SESSION)
    }

    /// Every hook has ended with 0 in time, without a word on standard error.
    #[track_caller]
    fn hooks_are_quiet(&self) {
        for call in self.replay.calls() {
            assert_eq!((call.exit, call.stderr.as_str()), (Some(0), ""), "{call:?}");
        }
    }
}

/// How often the guard may bring the agent back for open to-dos.
fn budget(agent: Agent) -> usize {
    if has_todo_list(agent) { 2 } else { 0 }
}

#[test]
fn open_to_dos_bring_each_agent_back_twice_for_each_prompt() {
    for agent in Agent::ALL {
        let it = Played::of(agent);
        for prompt in ["hello", "more"] {
            // The model writes its list anew in every turn.
            let texts = it.replay.say(prompt, &[&[Act::ToDos(OPEN)][..]; 20]);
            assert_eq!(texts.len(), budget(agent), "{agent}: {texts:?}");
            assert!(texts.iter().all(|text| ticket_in(text).is_some()), "{agent}: {texts:?}");
        }
        it.hooks_are_quiet();
    }
}

#[test]
fn a_prompt_that_waits_is_yielded_to() {
    for agent in Agent::ALL {
        let it = Played::of(agent);
        let submit = || {
            let args = ["prompt", "submit", &it.session(), "--file", "-"];
            assert_eq!(call(&it.root(), &args, "what the other process wants")["state"], "queued");
        };
        let texts = it.replay.say("hello", &[&[Act::ToDos(OPEN), Act::Meanwhile(&submit)]]);
        assert_eq!(texts, [""; 0], "{agent}");
        it.hooks_are_quiet();
    }
}

#[test]
fn nothing_goes_on_after_a_stop_until_the_next_prompt() {
    for agent in Agent::ALL {
        let it = Played::of(agent);
        let stop = || {
            call(&it.root(), &["session", "suspend", &it.session(), "--cause", "Stop was pressed"], "");
        };
        // Once after the first continuation too: the second never comes.
        let texts = it.replay.say("hello", &[&[Act::ToDos(OPEN)], &[Act::Meanwhile(&stop)]]);
        assert_eq!(texts.len(), budget(agent).min(1), "{agent}: {texts:?}");
        let texts = it.replay.say("more", &[&[Act::ToDos(OPEN)]]);
        assert_eq!(texts.len(), budget(agent), "{agent}: {texts:?}");
        it.hooks_are_quiet();
    }
}

#[test]
fn each_agent_stops_when_the_root_is_unusable_and_when_the_program_is_gone() {
    for agent in Agent::ALL {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let program = folder.path().join("lychgate");
        std::fs::copy(PROGRAM, &program).unwrap();
        let it = Played { agent, replay: Replay::of(agent, folder.path().to_owned()), folder };
        it.install(&program);
        let (root, kept) = (it.root(), it.folder.path().join("kept"));
        let spoil = || {
            std::fs::rename(&root, &kept).unwrap();
            std::fs::write(&root, "no folder").unwrap();
        };
        let texts = it.replay.say("hello", &[&[Act::ToDos(OPEN), Act::Meanwhile(&spoil)]]);
        assert_eq!(texts, [""; 0], "{agent}: the root is unusable");
        std::fs::remove_file(&root).unwrap();
        std::fs::rename(&kept, &root).unwrap();
        let remove = || std::fs::remove_file(&program).unwrap();
        let texts = it.replay.say("more", &[&[Act::ToDos(OPEN), Act::Meanwhile(&remove)]]);
        assert_eq!(texts, [""; 0], "{agent}: the program is gone");
        assert!(
            it.replay.calls().iter().all(|call| call.exit == Some(0)),
            "{agent}: {:?}",
            it.replay.calls()
        );
    }
}

/// Our hook stands in two settings, and so answers each event twice at the same time. A continuation that comes back as
/// a prompt is told twice as well.
#[test]
fn hooks_that_are_installed_twice_bring_an_agent_back_no_more_often() {
    for (agent, says_active) in Agent::ALL.into_iter().flat_map(|agent| [(agent, true), (agent, false)]) {
        let it = Played::of(agent);
        it.install(Path::new(PROGRAM));
        if !says_active {
            it.replay.forgets_that_it_is_active();
        }
        for prompt in ["hello", "more"] {
            let texts = it.replay.say(prompt, &[&[Act::ToDos(OPEN)][..]; 20]);
            assert_eq!(
                texts.len(),
                budget(agent),
                "{agent}, says that it is active {says_active}: {texts:?}"
            );
        }
        it.hooks_are_quiet();
    }
}

#[test]
fn an_agent_that_forgets_that_it_was_brought_back_is_not_brought_back_for_ever() {
    for agent in Agent::ALL {
        let it = Played::of(agent);
        it.replay.forgets_that_it_is_active();
        let texts = it.replay.say("hello", &[&[Act::ToDos(OPEN)][..]; 20]);
        assert_eq!(texts.len(), budget(agent), "{agent}: {texts:?}");
    }
}

/// Another program's hook brings the agent back at every stop. Ours does not join in for ever, and is not what keeps
/// the agent from its end.
#[test]
fn another_hook_that_never_lets_go_gets_no_help() {
    for agent in [Agent::Claude, Agent::Qwen] {
        let it = Played::of(agent);
        it.replay.hook("Stop", "printf '{\"decision\":\"block\",\"reason\":\"again\"}'".to_owned(), 10);
        let texts = it.replay.say("hello", &[&[Act::ToDos(OPEN)]]);
        let ours = texts.iter().filter(|text| ticket_in(text).is_some()).count();
        assert!(ours <= 2, "{agent}: {texts:?}");
        it.hooks_are_quiet();
    }
}

/// Somebody holds the session's lock longer than an agent may be kept waiting.
#[test]
fn an_agent_whose_session_is_locked_stops_in_time() {
    for agent in Agent::ALL {
        let it = Played::of(agent);
        let holder = RefCell::new(None);
        let hold = || {
            let args = ["session", "suspend", &it.session(), "--cause", "it never comes to that"];
            *holder.borrow_mut() = Some(Holder::of(&it.root(), &args, it.folder.path()));
        };
        let texts = it.replay.say("hello", &[&[Act::ToDos(OPEN), Act::Meanwhile(&hold)]]);
        assert_eq!(texts, [""; 0], "{agent}");
        // Why it had nothing to say is on standard error, where people find it.
        assert!(
            it.replay.calls().iter().all(|call| call.exit == Some(0)),
            "{agent}: {:?}",
            it.replay.calls()
        );
    }
}

/// A question that the person turned down has no event; the next prompt ends the wait for its answer.
#[test]
fn a_question_that_is_never_answered_does_not_outlive_the_next_prompt() {
    let it = Played::of(Agent::Claude);
    let ask = || {
        let question = json!({"tool_name": "AskUserQuestion", "tool_use_id": "toolu_q", "tool_input": {"questions": []}});
        it.replay.tell("PreToolUse", &question);
    };
    let texts = it.replay.say("hello", &[&[Act::ToDos(OPEN), Act::Meanwhile(&ask)]]);
    assert_eq!(texts, [""; 0], "nobody answers for the person");
    let texts = it.replay.say("more", &[&[Act::ToDos(OPEN)]]);
    assert_eq!(texts.len(), 2, "{texts:?}");
    it.hooks_are_quiet();
}
