//! `hook doctor`: whether an agent calls this program, and what keeps it from that.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::cli::HookDoctorArgs;
use crate::commands::context::Context;
use crate::commands::failure::Failure;
use crate::dialect::Agent;
use crate::dialect::settings::codex::{self, Trust};
use crate::dialect::settings::{self, Entry, Found, FoundCommand, Scope, places};
use crate::protocol::codes::Code;
use crate::protocol::guard::session::EventSeen;
use crate::state::{Access, Runnable, SettingsFile, StateError, Store, absolute, canonical, chain, runnable};

use super::{guard_needs, path_of, place};

pub(super) fn run(context: &Context, args: &HookDoctorArgs) -> Result<Answer, Failure> {
    let agent = args.agent;
    let mut report = Report { agent, root: absolute(&context.root)?, ..Report::new(agent) };
    let looked_at: Vec<_> = match args.scope.named() {
        Some(scope) => vec![place(agent, scope)?],
        None => places(agent).iter().collect(),
    };
    let mut seen = Vec::new();
    for place in looked_at {
        let file = SettingsFile::read(&path_of(context, place)?);
        // In the home folder the project's file and the user's are one.
        if let Ok(file) = &file {
            if seen.contains(&file.target().to_owned()) {
                continue;
            }
            seen.push(file.target().to_owned());
        }
        report.look_at(context, place.scope, file)?;
    }
    report.conclude();
    let events_seen = match Store::open(&context.root, Access::Read) {
        Ok(store) => events_seen(&store, agent),
        Err(_) => Map::new(),
    };
    Ok(report.answer(events_seen))
}

/// What the books say about the events that have arrived, and about those that were not worked on.
fn events_seen(store: &Store, agent: Agent) -> Map<String, Value> {
    let ours = format!("{agent}:");
    let mut events: BTreeMap<String, EventSeen> = BTreeMap::new();
    let mut n_sessions = 0_u64;
    let sessions = store.all_sessions().unwrap_or_default();
    let sessions = sessions.into_iter().filter_map(|entry| entry.doc.ok()).map(|document| document.session);
    for session in sessions.filter(|session| session.session_id.as_str().starts_with(&ours)) {
        n_sessions += 1;
        for (name, seen) in session.events {
            let all = events.entry(name).or_insert(EventSeen { count: 0, ..seen.clone() });
            all.count += seen.count;
            if seen.at.as_str() >= all.at.as_str() {
                (all.at, all.took_ms) = (seen.at, seen.took_ms);
            }
        }
    }
    let last = events.values().map(|seen| seen.at.as_str().to_owned()).max();
    crate::facts! {
        "sessions": n_sessions, "lastSeen": last, "events": events,
        "trouble": store.trouble(agent.as_str()),
    }
}

/// The same for people.
fn told_events(seen: &Map<String, Value>) -> String {
    let mut told = String::new();
    let text = |value: Option<&Value>| value.map(|value| value.to_string().trim_matches('"').to_owned());
    let events = seen.get("events").and_then(Value::as_object);
    for (name, event) in events.into_iter().flatten() {
        let field = |key| text(event.get(key)).unwrap_or_default();
        let _: std::fmt::Result = writeln!(
            told,
            "seen: {name} {} times, last {}, {} ms",
            field("count"),
            field("at"),
            field("tookMs")
        );
    }
    if events.is_none_or(Map::is_empty) {
        told.push_str("seen: no event has arrived yet\n");
    }
    if let Some(trouble) = seen.get("trouble").and_then(Value::as_object) {
        let field = |key| text(trouble.get(key)).unwrap_or_default();
        let _: std::fmt::Result =
            writeln!(told, "trouble: {} times, last {}: {}", field("count"), field("at"), field("why"));
    }
    told
}

/// What was found so far.
struct Report {
    agent: Agent,
    root: PathBuf,
    files: Vec<Value>,
    /// Lines for people, one or more a file.
    lines: Vec<String>,
    /// How many files call this program.
    n_calling: usize,
    problems: Vec<String>,
    notes: Vec<String>,
}

impl Report {
    fn new(agent: Agent) -> Self {
        Self {
            agent,
            root: PathBuf::new(),
            files: vec![],
            lines: vec![],
            n_calling: 0,
            problems: vec![],
            notes: vec![],
        }
    }

    fn problem(&mut self, text: String) {
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    fn look_at(
        &mut self,
        context: &Context,
        scope: Scope,
        file: Result<SettingsFile, StateError>,
    ) -> Result<(), Failure> {
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                self.lines.push(format!("{scope:<8} {}", chain(&error)));
                self.files.push(json!({ "scope": scope.as_str(), "problem": chain(&error) }));
                self.problem(chain(&error));
                return Ok(());
            }
        };
        let path = file.path().display().to_string();
        let mut about =
            crate::facts! { "scope": scope.as_str(), "settings": path, "exists": file.text().is_some() };
        let found = match file.text().map(|text| settings::look(text, self.agent)) {
            Some(Ok(found)) => found,
            Some(Err(unusable)) => {
                self.lines.push(format!("{scope:<8} {path}: {unusable}"));
                self.problem(format!("the settings `{path}` cannot be understood: {unusable}"));
                about.insert("problem".to_owned(), unusable.to_string().into());
                self.files.push(about.into());
                return Ok(());
            }
            None => Found::default(),
        };
        let calls = self.judge(&path, &found);
        self.lines.push(format!("{scope:<8} {path}: {}", told(&file, &calls)));
        let missing: Vec<&str> = found.missing(self.agent).iter().map(|wanted| wanted.event).collect();
        about.extend(crate::facts! {
            "calls": calls.iter().map(Call::fields).collect::<Vec<_>>(),
            "missing": if found.entries.is_empty() { vec![] } else { missing },
            "outdated": found.outdated(self.agent).iter().map(|entry| entry.event.clone()).collect::<Vec<_>>(),
            "others": found.others,
            "switchedOff": found.switched_off,
        });
        if self.agent == Agent::Codex && !found.entries.is_empty() {
            about.insert("trust".to_owned(), self.trust(context, scope, &file, &found)?);
        }
        self.files.push(about.into());
        Ok(())
    }

    /// What is wrong with the hooks of one file, and what they call.
    fn judge(&mut self, path: &str, found: &Found) -> Vec<Call> {
        if let Some(why) = &found.switched_off {
            self.problem(format!("{path}: {why}, so {} runs no hook of ours", self.agent));
        }
        for event in &found.others {
            self.note(format!("{path}: a hook for {event} calls this program within another command"));
        }
        if found.entries.is_empty() {
            return vec![];
        }
        self.n_calling += 1;
        let again = format!("run `lychgate hook install {}` again", self.agent);
        let missing: Vec<&str> = found.missing(self.agent).iter().map(|wanted| wanted.event).collect();
        if !missing.is_empty() {
            self.problem(format!("{path}: no hook for {}; {again}", missing.join(", ")));
        }
        let outdated = found.outdated(self.agent);
        if let Some(one) = outdated.first() {
            let count = outdated.len();
            self.problem(format!(
                "{path}: {count} hook(s) of another form, for {} first; {again}",
                one.event
            ));
        }
        let calls = Call::all(found);
        for call in &calls {
            self.judge_call(path, call);
        }
        calls
    }

    fn judge_call(&mut self, path: &str, call: &Call) {
        let FoundCommand { binary, guard, .. } = &call.command;
        if !["executable", LOOKED_UP].contains(&call.binary_state) {
            let state = call.binary_state;
            self.problem(format!("{path}: `{binary}` is {state}, so the hooks do nothing"));
        }
        match (&call.command.root, &call.root_error) {
            (None, _) => self.note(format!("{path}: a hook names no root, and uses the agent's environment")),
            (Some(root), Some(error)) => self.problem(format!("the root `{root}` cannot be used: {error}")),
            (Some(root), None) if Path::new(root) != self.root => {
                self.note(format!("the hooks keep their books in `{root}`, and this call has another root"));
            }
            _ => {}
        }
        if let Some(needs) = guard_needs(self.agent).filter(|_| *guard) {
            self.note(needs);
        }
    }

    /// Whether Codex runs the hooks of a file.
    fn trust(
        &mut self,
        context: &Context,
        scope: Scope,
        file: &SettingsFile,
        found: &Found,
    ) -> Result<Value, Failure> {
        let user = path_of(context, place(Agent::Codex, Scope::User)?)?;
        let config = user.with_file_name("config.toml");
        let config_text = match SettingsFile::read(&config) {
            Ok(config) => config.text().unwrap_or_default().to_owned(),
            Err(error) => {
                self.problem(chain(&error));
                String::new()
            }
        };
        let text = config_text.as_str();
        if codex::hooks_are_off(text) {
            self.problem(format!("{}: hooks are off under [features]", config.display()));
        }
        let names = both_names(file.path());
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let entries = || found.entries.iter().map(|entry| (entry, codex::trust(text, &names, entry)));
        // A Codex that does not know an event has no hook of it to trust.
        let is_skipped = |(entry, trust): &(&Entry, Trust)| match trust {
            Trust::Trusted => false,
            Trust::Missing => codex::is_known_to_all(&entry.event),
            Trust::Changed | Trust::Disabled => true,
        };
        let n_skipped = entries().filter(is_skipped).count();
        if n_skipped > 0 {
            let total = found.entries.len();
            self.problem(format!(
                "Codex skips {n_skipped} of {total} hooks without a word, because they are not trusted as they stand: \
                 open /hooks in Codex, or start it with --dangerously-bypass-hook-trust"
            ));
        }
        let count = |wanted: Trust| entries().filter(|(_, trust)| *trust == wanted).count();
        let counts = Trust::ALL.map(|wanted| (wanted.as_str().to_owned(), Value::from(count(wanted))));
        if let (Scope::Project, Some(folder)) = (scope, file.path().parent().and_then(Path::parent)) {
            let names = both_names(folder);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            if !codex::trusts_project(text, &names) {
                let folder = folder.display();
                self.problem(format!(
                    "Codex loads no hooks of a project it does not trust, and `{folder}` is not trusted"
                ));
            }
        }
        Ok(counts.into_iter().collect())
    }

    /// What only all files together show.
    fn conclude(&mut self) {
        let agent = self.agent;
        match self.n_calling {
            0 => self.problem(format!(
                "no settings of {agent} call this program: run `lychgate hook install {agent}`"
            )),
            1 => {}
            count => {
                self.problem(format!("{count} files call this program, so each event arrives {count} times"));
            }
        }
    }

    fn answer(self, events_seen: Map<String, Value>) -> Answer {
        let healthy = self.problems.is_empty();
        let message = if healthy {
            format!("{} calls this program", self.agent)
        } else {
            format!("{} problem(s) with the hooks of {}", self.problems.len(), self.agent)
        };
        let mut body = format!("{message}\n");
        for line in &self.lines {
            let _: std::fmt::Result = writeln!(body, "  {line}");
        }
        for (word, texts) in [("problem", &self.problems), ("note", &self.notes)] {
            for text in texts {
                let _: std::fmt::Result = writeln!(body, "{word}: {text}");
            }
        }
        body.push_str(&told_events(&events_seen));
        let mut answer = Answer::new("hook", Code::Ok, message)
            .field("agent", self.agent.as_str())
            .field("healthy", healthy)
            .field("files", self.files)
            .field("problems", self.problems)
            .field("notes", self.notes)
            .body(body);
        answer.fields.extend(events_seen);
        answer
    }
}

/// The state of a program that is named without its folder.
const LOOKED_UP: &str = "looked up by the agent";

/// One way in which a file calls this program, and on which events.
struct Call {
    command: FoundCommand,
    binary_state: &'static str,
    root_state: &'static str,
    /// Why the root cannot be used.
    root_error: Option<String>,
    events: Vec<String>,
}

impl Call {
    /// The calls of a file, each once.
    fn all(found: &Found) -> Vec<Self> {
        let mut calls: Vec<Self> = Vec::new();
        for entry in &found.entries {
            let same = |call: &&mut Self| {
                let (one, other) = (&call.command, &entry.command);
                (&one.binary, &one.root, one.guard) == (&other.binary, &other.root, other.guard)
            };
            match calls.iter_mut().find(same) {
                Some(call) => call.events.push(entry.event.clone()),
                None => calls.push(Self::new(entry.command.clone(), entry.event.clone())),
            }
        }
        calls
    }

    fn new(command: FoundCommand, event: String) -> Self {
        let binary_state = match runnable(Path::new(&command.binary)) {
            Runnable::Yes => "executable",
            Runnable::No => "not executable",
            Runnable::Missing if command.binary.contains('/') => "missing",
            Runnable::Missing => LOOKED_UP,
        };
        let (root_state, root_error) =
            match command.root.as_deref().map(|root| Store::open(Path::new(root), Access::Read)) {
                None => ("not named", None),
                Some(Ok(_)) => ("ok", None),
                Some(Err(StateError::NoRoot { .. })) => ("not made yet", None),
                Some(Err(error)) => (error.code().as_str(), Some(chain(&error))),
            };
        Self { command, binary_state, root_state, root_error, events: vec![event] }
    }

    fn fields(&self) -> Value {
        json!({
            "binary": self.command.binary,
            "binaryState": self.binary_state,
            "root": self.command.root,
            "rootState": self.root_state,
            "guard": self.command.guard,
            "events": self.events,
        })
    }
}

/// What a file does, for people.
fn told(file: &SettingsFile, calls: &[Call]) -> String {
    if file.text().is_none() {
        return "there is no such file".to_owned();
    }
    let told: Vec<String> = calls
        .iter()
        .map(|call| {
            let root = call.command.root.as_deref().unwrap_or("not named");
            let guard = if call.command.guard { "on" } else { "off" };
            let (binary, n_events) = (&call.command.binary, call.events.len());
            format!("calls {binary} on {n_events} events, root {root} ({}), guard {guard}", call.root_state)
        })
        .collect();
    if told.is_empty() { "does not call this program".to_owned() } else { told.join("; ") }
}

/// A path as it is named, and as it really is.
fn both_names(path: &Path) -> Vec<String> {
    [path.to_owned(), canonical(path)].iter().map(|path| path.display().to_string()).collect()
}
