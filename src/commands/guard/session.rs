//! `session` and `prompt`: a session's life, and the queue of its prompts.

use std::path::Path;

use serde_json::Value;

use crate::answer::Answer;
use crate::cli::{MoveStep, OnOff, PromptAct, PromptArgs, RelocateArgs, SessionAct, SessionArgs};
use crate::dialect::with_prompt;
use crate::protocol::guard::request::{Open, RELOCATION_MS, Relocate, Request, Submit};
use crate::protocol::ids::Name;
use crate::state::{canonical, real_folder};

use super::super::context::Context;
use super::super::failure::Failure;
use super::input::text_if_given;
use super::{act, act_for, utf8};

pub(crate) fn session(context: &Context, args: &SessionArgs) -> Result<Answer, Failure> {
    let (session, request) = match &args.act {
        SessionAct::Open { session, cwd, guard, no_queue } => {
            let cwd = cwd.as_deref().map(|cwd| utf8(canonical(cwd))).transpose()?;
            let open = Open { guard: *guard, without_queue: *no_queue, cwd, in_passing: false };
            (session, Request::Open(open))
        }
        SessionAct::Close { session } => (session, Request::Close),
        SessionAct::Restore { session, begin, .. } => (session, Request::Restore(*begin)),
        SessionAct::Plan { session, plan } => (session, Request::Plan(*plan == OnOff::On)),
        SessionAct::Suspend { session, cause } => (session, Request::Suspend(cause.clone())),
        SessionAct::Relocate(args) => return relocate(context, args),
    };
    act(context, session, &[request])
}

/// Where it goes is looked at before anything else: a folder that is not there shuts no gate (O58).
fn relocate(context: &Context, args: &RelocateArgs) -> Result<Answer, Failure> {
    let step = match args.step() {
        MoveStep::Begin(to) => {
            Relocate::Begin { to: target(to)?, for_ms: args.lifetime().or_ms(RELOCATION_MS), process: None }
        }
        MoveStep::Poll => Relocate::Poll,
        MoveStep::Commit => Relocate::Commit,
        MoveStep::Abort => Relocate::Abort,
    };
    act_for(context, &args.session, &[Request::Relocate(step)], args.owner_pid)
}

fn target(to: &Path) -> Result<String, Failure> {
    let unusable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::usage(format!("--to: there is no folder `{}`", to.display()))
        }
        _ => Failure::usage(format!("--to: {error}")),
    };
    utf8(real_folder(to).map_err(unusable)?)
}

pub(crate) fn prompt(context: &Context, args: &PromptArgs) -> Result<Answer, Failure> {
    let (session, request, pid): (&Name, _, _) = match &args.act {
        PromptAct::Submit { session, alias, kind, file, owner_pid } => {
            let submit = Submit {
                alias: alias.as_ref().map(|alias| alias.as_str().to_owned()),
                kind: *kind,
                text: text_if_given(file.as_ref())?,
                process: None,
            };
            (session, Request::Submit(submit), *owner_pid)
        }
        PromptAct::Start { session, prompt, owner_pid } => {
            (session, Request::Start(prompt.clone(), None), *owner_pid)
        }
        PromptAct::Finish { session, prompt, end } => (session, Request::Finish(prompt.clone(), *end), None),
        PromptAct::Remove { session, prompt } => (session, Request::Remove(prompt.clone()), None),
    };
    let mut answer = act_for(context, session, &[request], pid)?;
    if let PromptAct::Start { .. } = &args.act {
        mark(&mut answer);
    }
    Ok(answer)
}

/// A prompt that a script hands to the agent comes back through the agent's own hook. By its mark it is known there,
/// and not admitted twice.
fn mark(answer: &mut Answer) {
    let field = |name: &str| answer.fields.get(name).and_then(Value::as_str);
    let Some(prompt) = field("promptId") else { return };
    let marker = with_prompt("", prompt);
    let with_marker = field("text").map(|text| with_prompt(text, prompt));
    answer.fields.insert("marker".to_owned(), marker.into());
    if let Some(text) = with_marker {
        answer.fields.insert("markedText".to_owned(), text.into());
    }
}
