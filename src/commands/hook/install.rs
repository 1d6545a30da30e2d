//! `hook install` and `hook uninstall`: an agent's settings with our hooks, and without them.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::answer::Answer;
use crate::cli::{HookInstallArgs, HookUninstallArgs};
use crate::commands::context::Context;
use crate::commands::failure::Failure;
use crate::dialect::settings::{self, HookCommand, Scope};
use crate::dialect::{Agent, install_events};
use crate::protocol::codes::Code;
use crate::state::{Access, SettingsFile, StateError, Store, absolute};

use super::{diff, guard_needs, path_of, place, unusable};

pub(super) fn install(context: &Context, args: &HookInstallArgs) -> Result<Answer, Failure> {
    let scope = args.scope.named().unwrap_or(Scope::User);
    let root = absolute(&context.root)?;
    refuse_unusable_root(&root)?;
    let program = context.program();
    let program =
        program.map_err(|error| Failure::internal(format!("this program is not found: {error}")))?;
    let command = HookCommand {
        binary: settled(&program, "this program's path")?,
        root: settled(&root, "the root's path")?,
        guard: args.guard,
    };
    let file = SettingsFile::read(&path_of(context, place(args.agent, scope)?)?)?;
    let text =
        settings::install(file.text(), args.agent, &command).map_err(|error| unusable(&file, error))?;
    let changes = file.text() != Some(text.as_str());
    if changes && !args.dry_run {
        keep_copy(&file, args.agent)?;
        file.replace(&text)?;
        context.answers_change.set(true);
    }
    let events: Vec<&str> = install_events(args.agent).iter().map(|event| event.event).collect();
    let (code, done) = match (changes, args.dry_run) {
        (false, _) => (Code::AlreadyInstalled, "calls"),
        (true, false) => (Code::Installed, "calls"),
        (true, true) => (Code::Installed, "would call"),
    };
    let message = format!("{} {done} {} on {} events", args.agent, command.binary, events.len());
    let mut answer = about(Answer::new("hook", code, message), args.agent, scope, &file);
    answer = answer.field("binary", command.binary).field("guard", args.guard).field("events", events);
    answer.root = Some(root);
    let needs = guard_needs(args.agent).filter(|_| args.guard);
    let advice: Vec<String> = needs.into_iter().chain(advice(args.agent, scope)).collect();
    if !advice.is_empty() {
        answer = answer.hint(advice.join("; "));
    }
    Ok(told(answer, &file, Some(&text), args.dry_run))
}

pub(super) fn uninstall(context: &Context, args: &HookUninstallArgs) -> Result<Answer, Failure> {
    let scope = args.scope.named().unwrap_or(Scope::User);
    let file = SettingsFile::read(&path_of(context, place(args.agent, scope)?)?)?;
    let before = file.text().unwrap_or("{}");
    let failed = |error| Failure::from(unusable(&file, error));
    let found = settings::look(before, args.agent).map_err(failed)?;
    if found.entries.is_empty() {
        let message = format!("the {scope} settings of {} do not call this program", args.agent);
        let answer = about(Answer::new("hook", Code::NotInstalled, message), args.agent, scope, &file);
        return Ok(told(answer, &file, file.text(), args.dry_run));
    }
    let left = settings::uninstall(before, file.backup().as_deref(), args.agent).map_err(failed)?;
    if !args.dry_run {
        keep_copy(&file, args.agent)?;
        match &left {
            Some(text) => file.replace(text)?,
            None => file.remove()?,
        }
        context.answers_change.set(true);
    }
    let done = if args.dry_run { "would no longer call" } else { "no longer calls" };
    let message = format!("{} {done} this program by its {scope} settings", args.agent);
    let answer = about(Answer::new("hook", Code::Uninstalled, message), args.agent, scope, &file);
    Ok(told(answer, &file, left.as_deref(), args.dry_run))
}

/// Books that cannot be kept there are not asked for: the hook would fail in silence.
fn refuse_unusable_root(root: &Path) -> Result<(), Failure> {
    match Store::open(root, Access::Read) {
        Ok(_) | Err(StateError::NoRoot { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A path that can be written into a command line.
fn settled(path: &Path, what: &str) -> Result<String, Failure> {
    let text = path.to_str().filter(|text| !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("{what} `{}` cannot be written into a command line", path.display()))
    })
}

/// Before the first change of what is not ours alone, a copy is kept.
fn keep_copy(file: &SettingsFile, agent: Agent) -> Result<(), Failure> {
    if file.text().is_some_and(|text| !settings::is_ours_alone(text, agent)) {
        file.keep_copy()?;
    }
    Ok(())
}

fn about(answer: Answer, agent: Agent, scope: Scope, file: &SettingsFile) -> Answer {
    let shown = |path: &Path| path.display().to_string();
    let target = Some(shown(file.target())).filter(|_| file.target() != file.path());
    let backup = file.backup_path();
    let backup = Some(shown(&backup)).filter(|_| file.backup().is_some());
    answer
        .field("agent", agent.as_str())
        .field("scope", scope.as_str())
        .field("settings", shown(file.path()))
        .field("target", target)
        .field("backup", backup)
}

/// Says what changes: as a field, and for people who asked beforehand as the text itself.
fn told(mut answer: Answer, file: &SettingsFile, after: Option<&str>, dry_run: bool) -> Answer {
    answer = answer.field("dryRun", dry_run);
    if !dry_run {
        let shown = |name: &str| answer.fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut body = format!("{}\n", answer.message);
        let root = answer.root.as_ref().map(|root| root.display().to_string());
        let paths = ["settings", "target", "backup"].map(|name| (name, shown(name)));
        for (name, path) in paths.into_iter().chain([("root", root)]) {
            if let Some(path) = path {
                let _: std::fmt::Result = writeln!(body, "{name}: {path}");
            }
        }
        return answer.body(body);
    }
    let before = file.text().unwrap_or_default();
    let text = diff::unified(&file.path().display().to_string(), before, after.unwrap_or_default());
    let body =
        if text.is_empty() { format!("{}; nothing would change\n", answer.message) } else { text.clone() };
    answer.field("diff", Value::from(text)).body(body)
}

/// What else has to be done, or is worth knowing, before the hooks do what is wanted.
fn advice(agent: Agent, scope: Scope) -> Option<String> {
    match (agent, scope) {
        (Agent::Codex, Scope::Project) => Some(
            "Codex loads them only in a project it trusts, and runs each only after you trusted it: open /hooks in Codex"
                .to_owned(),
        ),
        (Agent::Codex, _) => {
            Some("Codex runs each of them only after you trusted it: open /hooks in Codex".to_owned())
        }
        (Agent::Gemini | Agent::Qwen, Scope::Project) => {
            Some(format!("{agent} runs them only in a folder that it trusts"))
        }
        (_, Scope::Project) => {
            Some("they name paths of this machine; keep them out of what others check out".to_owned())
        }
        _ => None,
    }
}
