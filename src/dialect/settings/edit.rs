//! Writing our hooks into an agent's settings, and taking them out again.

use serde_json::{Map, Value, json};

use super::Unusable;
use super::command::HookCommand;
use super::found::{Entry, HOOKS, ours};
use super::json::{Json, Step};
use super::places::{Shape, VERSION, shape};
use crate::dialect::{Agent, Registration, install_events};

/// The settings with our hooks in them: one for each event we are registered for, and no other of ours. The same
/// text where that is so already.
pub fn install(text: Option<&str>, agent: Agent, command: &HookCommand) -> Result<String, Unusable> {
    let shape = shape(agent);
    let mut json = Json::parse(text.unwrap_or("{}\n"))?;
    require_version(&mut json, shape)?;
    if json.value()?.get(HOOKS).is_none() {
        json.append(&[], Some(HOOKS), &json!({}))?;
    }
    remove_surplus(&mut json, agent)?;
    for wanted in install_events(agent) {
        let fields = fields(wanted, shape, &command.line(agent, wanted.event));
        let settings = json.value()?;
        let entries = ours(&settings, agent)?.entries;
        match entries.iter().find(|entry| entry.is_for(wanted)) {
            Some(entry) => renew(&mut json, &entry.path(shape), &fields)?,
            None => add(&mut json, &settings, wanted, shape, fields)?,
        }
    }
    Ok(json.into_text())
}

/// The settings without our hooks. What they leave empty goes too, unless it was there, empty, before they came.
/// `None` where nothing is left of a file that was not there before.
pub fn uninstall(text: &str, before: Option<&str>, agent: Agent) -> Result<Option<String>, Unusable> {
    let shape = shape(agent);
    // A copy that has hooks of ours in it is not from before they came.
    let is_from_before = |value: &Value| ours(value, agent).is_ok_and(|found| found.entries.is_empty());
    let before = before.and_then(|text| Some((text, Json::parse(text).ok()?.value().ok()?)));
    let before = before.filter(|(_, value)| is_from_before(value));
    let was_empty =
        |pointer: &str| before.as_ref().and_then(|(_, value)| value.pointer(pointer)).is_some_and(is_empty);
    let mut json = Json::parse(text)?;
    let entries = ours(&json.value()?, agent)?.entries;
    if entries.is_empty() {
        return Ok(Some(text.to_owned()));
    }
    // From the last to the first, so that what is taken out moves nothing that is still to be found.
    for entry in entries.iter().rev() {
        let keeps_list = was_empty(&format!("/{HOOKS}/{}", entry.event));
        take_out(&mut json, entry, shape, keeps_list)?;
    }
    let left = json.value()?;
    if left.get(HOOKS).is_some_and(is_empty) && !was_empty(&format!("/{HOOKS}")) {
        json.remove(&[Step::Key(HOOKS)])?;
    }
    let had_version = before.as_ref().is_none_or(|(_, value)| value.get("version").is_some());
    if shape.versioned && !had_version && left.get("version").is_some() {
        json.remove(&[Step::Key("version")])?;
    }
    let left = json.value()?;
    Ok(match before {
        Some((text, value)) if value == left => Some(text.to_owned()),
        None if is_blank(&left, shape) => None,
        _ => Some(json.into_text()),
    })
}

/// Whether the settings hold our hooks and nothing else, so that nobody misses a copy of them.
pub fn is_ours_alone(text: &str, agent: Agent) -> bool {
    uninstall(text, None, agent) == Ok(None)
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

/// Whether settings say nothing at all.
fn is_blank(settings: &Value, shape: Shape) -> bool {
    is_empty(settings) || (shape.versioned && *settings == json!({ "version": VERSION }))
}

/// Says the version of the format where that is needed, and refuses one that is not understood.
fn require_version(json: &mut Json, shape: Shape) -> Result<(), Unusable> {
    if !shape.versioned {
        return Ok(());
    }
    match json.value()?.get("version") {
        None => json.append(&[], Some("version"), &VERSION.into()),
        Some(version) if *version == VERSION => Ok(()),
        Some(other) => Err(Unusable(format!("its `version` is {other}, and only {VERSION} is understood"))),
    }
}

/// Takes out hooks of ours that have no place, or whose place another one has.
fn remove_surplus(json: &mut Json, agent: Agent) -> Result<(), Unusable> {
    let entries = ours(&json.value()?, agent)?.entries;
    let mut free: Vec<&Registration> = install_events(agent).iter().collect();
    let mut surplus = Vec::new();
    for entry in &entries {
        match free.iter().position(|wanted| entry.is_for(wanted)) {
            Some(place) => drop(free.swap_remove(place)),
            None => surplus.push(entry),
        }
    }
    for entry in surplus.into_iter().rev() {
        take_out(json, entry, shape(agent), false)?;
    }
    Ok(())
}

/// Takes out one hook, with its group and its event's list where they hold nothing else.
fn take_out(json: &mut Json, entry: &Entry, shape: Shape, keeps_list: bool) -> Result<(), Unusable> {
    let mut path = entry.path(shape);
    json.remove(&path)?;
    let settings = json.value()?;
    let list = settings.get(HOOKS).and_then(|hooks| hooks.get(&entry.event));
    if shape.grouped {
        let group = list.and_then(|list| list.get(entry.group));
        if !group.and_then(|group| group.get(HOOKS)).is_some_and(is_empty) {
            return Ok(());
        }
        path.truncate(3);
        json.remove(&path)?;
    }
    let settings = json.value()?;
    let list = settings.get(HOOKS).and_then(|hooks| hooks.get(&entry.event));
    if list.is_some_and(is_empty) && !keeps_list {
        path.truncate(2);
        json.remove(&path)?;
    }
    Ok(())
}

/// What a hook of ours says, in the order it is written.
fn fields(wanted: &Registration, shape: Shape, line: &str) -> Vec<(&'static str, Value)> {
    let mut fields: Vec<(&'static str, Value)> =
        shape.fixed.iter().map(|(key, value)| (*key, Value::from(*value))).collect();
    fields.push((shape.command, line.into()));
    fields.push((shape.timeout, wanted.timeout.into()));
    fields
}

/// Brings a hook of ours up to date; what somebody added to it stays.
fn renew(json: &mut Json, at: &[Step<'_>], fields: &[(&'static str, Value)]) -> Result<(), Unusable> {
    for (key, wanted) in fields {
        let settings = json.value()?;
        let hook = at.iter().try_fold(&settings, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        });
        match hook.and_then(|hook| hook.get(key)) {
            Some(found) if found == wanted => {}
            Some(_) => {
                let mut place = at.to_vec();
                place.push(Step::Key(key));
                json.set(&place, wanted)?;
            }
            None => json.append(at, Some(key), wanted)?,
        }
    }
    Ok(())
}

/// Adds a hook behind those an event has.
fn add(
    json: &mut Json,
    settings: &Value,
    wanted: &Registration,
    shape: Shape,
    fields: Vec<(&'static str, Value)>,
) -> Result<(), Unusable> {
    let mut item = Map::new();
    if let Some(matcher) = wanted.matcher {
        item.insert("matcher".to_owned(), matcher.into());
    }
    let hook: Map<String, Value> = fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    if shape.grouped {
        item.insert(HOOKS.to_owned(), Value::from(vec![Value::from(hook)]));
    } else {
        item.extend(hook);
    }
    let hooks = [Step::Key(HOOKS)];
    if settings.get(HOOKS).is_some_and(|hooks| hooks.get(wanted.event).is_some()) {
        json.append(&[Step::Key(HOOKS), Step::Key(wanted.event)], None, &item.into())
    } else {
        json.append(&hooks, Some(wanted.event), &Value::from(vec![Value::from(item)]))
    }
}

#[cfg(test)]
mod tests;
