//! `hook`: agents' hooks and the settings they come from.

mod diff;
mod doctor;
mod events;
mod install;

use std::path::PathBuf;

use crate::answer::Answer;
use crate::cli::{Command, HookArgs, HookVerb};
use crate::dialect::settings::{Place, Scope, Unusable, places};
use crate::dialect::{Agent, has_todo_list, todo_list_needs};
use crate::protocol::codes::Code;
use crate::state::{Access, SettingsError, SettingsFile, StateError, Store};

use super::context::Context;
use super::failure::Failure;

pub(super) fn run(context: &Context, args: &HookArgs) -> Result<Answer, Failure> {
    match &args.verb {
        HookVerb::Install(args) => install::install(context, args),
        HookVerb::Uninstall(args) => install::uninstall(context, args),
        HookVerb::Doctor(args) => doctor::run(context, args),
        HookVerb::Claude(args) => events::run(context, Agent::Claude, args),
        HookVerb::Codex(args) => events::run(context, Agent::Codex, args),
        HookVerb::Gemini(args) => events::run(context, Agent::Gemini, args),
        HookVerb::Qwen(args) => events::run(context, Agent::Qwen, args),
        HookVerb::Cursor(args) => events::run(context, Agent::Cursor, args),
        HookVerb::Copilot(args) => events::run(context, Agent::Copilot, args),
    }
}

/// Notes, as well as it can be done, what kept a hook from its work.
pub(super) fn note(context: &Context, command: &Command, trouble: &str) -> Result<Answer, Failure> {
    if let Command::Hook(HookArgs { verb }) = command
        && let Some(agent) = verb.agent()
    {
        Store::open(&context.root, Access::Change)?.note_trouble(agent.as_str(), &context.now(), trouble);
    }
    Ok(Answer::new(context.command, Code::Ok, "the trouble is noted").verbatim(""))
}

/// The settings of an agent in a scope it has.
fn place(agent: Agent, scope: Scope) -> Result<&'static Place, Failure> {
    places(agent).iter().find(|place| place.scope == scope).ok_or_else(|| {
        let has: Vec<String> = places(agent).iter().map(|place| format!("--{}", place.scope)).collect();
        Failure::usage(format!("{agent} has no --{scope} settings with hooks: use {}", has.join(" or ")))
    })
}

/// The path of settings: from this folder, from the folder a variable names, or from the user's home.
fn path_of(context: &Context, place: &Place) -> Result<PathBuf, Failure> {
    if place.scope != Scope::User {
        return Ok(PathBuf::from(place.path));
    }
    let moved = place.moved_by.and_then(|(variable, path)| Some(context.moved_to(variable)?.join(path)));
    let at_home = || context.home().map(|home| home.join(place.path));
    moved.or_else(at_home).ok_or_else(|| {
        Failure::usage("the settings of this user cannot be found: HOME is not set".to_owned())
    })
}

/// What the settings themselves make impossible.
fn unusable(file: &SettingsFile, unusable: Unusable) -> StateError {
    SettingsError::Unreadable { path: file.path().to_owned(), reason: unusable.0 }.into()
}

/// What keeps an agent's guard off although it was asked for, or may keep it off.
fn guard_needs(agent: Agent) -> Option<String> {
    if !has_todo_list(agent) {
        return Some(format!("the guard stays off: {agent} has no to-do list that its hooks tell of"));
    }
    todo_list_needs(agent).map(|needs| format!("the guard needs the to-do tool of {agent}; {needs}"))
}
