//! What an agent's settings say about hooks.

use serde_json::Value;

use super::Unusable;
use super::command::{FoundCommand, mentions_us};
use super::json::{Json, Step};
use super::places::{NAME, Shape, shape};
use crate::dialect::{Agent, Registration, install_events};

/// The key of everything about hooks, in every agent's settings.
pub(super) const HOOKS: &str = "hooks";

/// One hook of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The event it is registered for.
    pub event: String,
    /// For which tools.
    pub matcher: Option<String>,
    /// Its place among the event's groups, or among the event's hooks where there are no groups.
    pub group: usize,
    /// Its place in its group.
    pub index: usize,
    /// Its command line as it stands there.
    pub line: String,
    /// Its timeout, in the agent's own unit.
    pub timeout: Option<u64>,
    /// What it calls.
    pub command: FoundCommand,
}

/// What was found in a settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Our hooks.
    pub entries: Vec<Entry>,
    /// The events somebody's own hooks call us for, within commands that do more.
    pub others: Vec<String>,
    /// What in this file keeps the agent from running our hooks.
    pub switched_off: Option<String>,
}

impl Found {
    /// What is registered today and has no hook of ours here.
    pub fn missing(&self, agent: Agent) -> Vec<&'static Registration> {
        let is_there = |wanted: &Registration| self.entries.iter().any(|entry| entry.is_for(wanted));
        install_events(agent).iter().filter(|wanted| !is_there(wanted)).collect()
    }

    /// Our hooks that would not be written today: for another event, twice, or with a command of another form.
    pub fn outdated(&self, agent: Agent) -> Vec<&Entry> {
        let is_twice = |index: usize, entry: &Entry| {
            self.entries.iter().take(index).any(|other| {
                other.event == entry.event && same_matcher(other.matcher.as_deref(), entry.matcher.as_deref())
            })
        };
        let is_wanted = |entry: &Entry| install_events(agent).iter().any(|wanted| entry.is_for(wanted));
        let entries = self.entries.iter().enumerate();
        entries
            .filter(|(index, entry)| !entry.command.current || !is_wanted(entry) || is_twice(*index, entry))
            .map(|(_, entry)| entry)
            .collect()
    }
}

impl Entry {
    /// Whether it stands where this registration belongs.
    pub(super) fn is_for(&self, wanted: &Registration) -> bool {
        self.event == wanted.event && same_matcher(self.matcher.as_deref(), wanted.matcher)
    }

    /// The way to it from the top of the file.
    pub(super) fn path(&self, shape: Shape) -> Vec<Step<'_>> {
        let mut path = vec![Step::Key(HOOKS), Step::Key(&self.event), Step::Index(self.group)];
        if shape.grouped {
            path.extend([Step::Key(HOOKS), Step::Index(self.index)]);
        }
        path
    }
}

/// Looks through a settings file.
pub fn look(text: &str, agent: Agent) -> Result<Found, Unusable> {
    let settings = Json::parse(text)?.value()?;
    let mut found = ours(&settings, agent)?;
    found.switched_off = switched_off(&settings, agent);
    Ok(found)
}

/// The hooks of ours in settings.
pub(super) fn ours(settings: &Value, agent: Agent) -> Result<Found, Unusable> {
    let shape = shape(agent);
    let mut found = Found::default();
    let Some(hooks) = settings.get(HOOKS) else { return Ok(found) };
    let hooks = hooks.as_object().ok_or_else(|| Unusable(format!("its `{HOOKS}` is not an object")))?;
    for (event, list) in hooks {
        let is_registered = install_events(agent).iter().any(|wanted| wanted.event == event);
        let Some(list) = list.as_array() else {
            if is_registered {
                return Err(Unusable(format!("its `{HOOKS}.{event}` is not a list")));
            }
            continue;
        };
        for (group, item) in list.iter().enumerate() {
            let matcher = item.get("matcher").and_then(Value::as_str);
            let handlers: Vec<&Value> = if shape.grouped {
                item.get(HOOKS).and_then(Value::as_array).into_iter().flatten().collect()
            } else {
                vec![item]
            };
            for (index, handler) in handlers.into_iter().enumerate() {
                let Some(line) = handler.get(shape.command).and_then(Value::as_str) else { continue };
                match FoundCommand::read(line, agent, event) {
                    Some(command) => found.entries.push(Entry {
                        event: event.clone(),
                        matcher: matcher.map(str::to_owned),
                        group,
                        index,
                        line: line.to_owned(),
                        timeout: handler.get(shape.timeout).and_then(Value::as_u64),
                        command,
                    }),
                    None if mentions_us(line) => found.others.push(event.clone()),
                    None => {}
                }
            }
        }
    }
    Ok(found)
}

/// Whether two matchers let the same events through, as far as that is plain to see.
fn same_matcher(one: Option<&str>, other: Option<&str>) -> bool {
    let all = |matcher: Option<&str>| {
        matcher.filter(|matcher| !matcher.is_empty() && *matcher != "*").map(str::to_owned)
    };
    all(one) == all(other)
}

/// What in these settings keeps the agent from running hooks, or ours.
fn switched_off(settings: &Value, agent: Agent) -> Option<String> {
    let says = |path: &str, wanted: bool| settings.pointer(path).and_then(Value::as_bool) == Some(wanted);
    let names_ours = |path: &str| {
        let names = settings.pointer(path).and_then(Value::as_array).into_iter().flatten();
        names
            .filter_map(Value::as_str)
            .any(|name| name == NAME || FoundCommand::read(name, agent, "").is_some())
    };
    match agent {
        Agent::Claude | Agent::Copilot | Agent::Qwen if says("/disableAllHooks", true) => {
            Some("disableAllHooks is true".to_owned())
        }
        Agent::Gemini | Agent::Qwen => ["/hooksConfig/enabled", "/hooks/enabled", "/tools/enableHooks"]
            .into_iter()
            .find(|path| says(path, false))
            .map(|path| format!("{} is false", dotted(path)))
            .or_else(|| {
                let lists = ["/hooksConfig/disabled", "/hooks/disabled"];
                let list = lists.into_iter().find(|path| names_ours(path))?;
                Some(format!("{} names our hook", dotted(list)))
            }),
        _ => None,
    }
}

fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_that_let_everything_through_are_the_same() {
        assert!(same_matcher(None, Some("")) && same_matcher(Some("*"), None));
        assert!(same_matcher(Some("Bash"), Some("Bash")) && !same_matcher(Some("Bash"), None));
    }

    #[test]
    fn what_switches_hooks_off_is_named() {
        let off = |text: &str, agent| look(text, agent).expect("settings").switched_off;
        assert_eq!(
            off(r#"{"disableAllHooks": true}"#, Agent::Claude).as_deref(),
            Some("disableAllHooks is true")
        );
        assert_eq!(off(r#"{"disableAllHooks": false}"#, Agent::Claude), None);
        assert_eq!(off(r#"{"disableAllHooks": true}"#, Agent::Codex), None);
        assert_eq!(
            off(r#"{"hooksConfig": {"enabled": false}}"#, Agent::Gemini).as_deref(),
            Some("hooksConfig.enabled is false")
        );
        assert_eq!(
            off(r#"{"hooks": {"disabled": ["other", "lychgate"]}}"#, Agent::Gemini).as_deref(),
            Some("hooks.disabled names our hook")
        );
        assert_eq!(off(r#"{"hooks": {"disabled": ["other"]}}"#, Agent::Gemini), None);
    }

    #[test]
    fn settings_of_another_shape_are_stepped_over_or_told() {
        let told = |text: &str| look(text, Agent::Claude).expect_err("understood").0;
        assert_eq!(told(r#"{"hooks": []}"#), "its `hooks` is not an object");
        assert_eq!(told(r#"{"hooks": {"Stop": {}}}"#), "its `hooks.Stop` is not a list");
        let odd =
            r#"{"hooks": {"Unknown": 1, "Stop": [1, {}, {"hooks": 2}, {"hooks": [null, {"command": 3}]}]}}"#;
        assert_eq!(look(odd, Agent::Claude), Ok(Found::default()));
    }
}
