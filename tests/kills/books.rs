//! What must be true of the books, whenever shells are killed, and when a run is completed.

use std::collections::{BTreeMap, BTreeSet};

use lychgate::protocol::ids::Name;
use lychgate::protocol::invariants::{RowRule, World, WorldRule};
use lychgate::protocol::row::{Row, TaskStatus};
use lychgate::state::{Access, StateError, Store};
use serde_json::Value;

use crate::story::{Line, Story};

/// One numbered event of a run.
struct Event {
    step: String,
    child: String,
    from: Option<String>,
    to: String,
}

/// Every row, by its name.
fn rows(story: &Story) -> BTreeMap<Name, Row> {
    let opened = match Store::open(&story.root.path(), Access::Read) {
        // The very first call may have been killed before there was a root.
        Err(StateError::NoRoot { .. }) => return BTreeMap::new(),
        opened => opened.unwrap(),
    };
    let documents = opened.tasks().unwrap().into_iter().map(|entry| entry.doc.unwrap().row);
    documents.map(|row| (row.task_id.clone(), row)).collect()
}

fn events(story: &Story, run: &str) -> Vec<Event> {
    let told = story.root.json(&["inspect", "--run", run, "--history"]).is(0, "ok").json();
    let text = |event: &Value, key: &str| event[key].as_str().map(str::to_owned);
    let numbers: Vec<u64> =
        told["history"].as_array().unwrap().iter().map(|event| event["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no event is missing");
    let event = |event: &Value| Event {
        step: text(event, "stepId").unwrap(),
        child: text(event, "subject").unwrap(),
        from: text(event, "from"),
        to: text(event, "to").unwrap(),
    };
    told["history"].as_array().unwrap().iter().map(event).collect()
}

/// At any time, agents at work or not: every row is sound, and no step has two children of which neither is retired.
/// A row is read through the record of a commit that is not finished, so old and new child change together.
pub fn sound(story: &Story) {
    let rows = rows(story);
    let mut living = BTreeSet::new();
    for row in rows.values() {
        let broken = RowRule::check(row);
        assert!(broken.is_empty(), "`{}`: {broken:?}\n{}", row.task_id, story.everything());
        let step = row.workflow_task.as_ref().unwrap();
        if row.task_attempt_retired_by.is_none() {
            let alone = living.insert((step.run_id.clone(), step.step_id.clone()));
            assert!(alone, "`{}` is not alone\n{}", row.task_id, story.everything());
        }
    }
    works_overlap(story);
}

/// No two children of one step were at work at the same time: what an agent began, it ended before another one of the
/// step began.
fn works_overlap(story: &Story) {
    let mut at_work: BTreeMap<String, String> = BTreeMap::new();
    for line in story.log() {
        match line[0].as_str() {
            "begin" => {
                let other = at_work.insert(line[1].clone(), line[2].clone());
                assert_eq!(other, None, "`{}` began beside it\n{}", line[2], story.everything());
            }
            "end" => assert_eq!(at_work.remove(&line[1]).as_ref(), Some(&line[2]), "{}", story.everything()),
            _ => {}
        }
    }
}

/// A completed run, with all its agents gone.
pub fn completed(story: &Story, run: &str, steps: &[&str]) {
    sound(story);
    let all = rows(story);
    let world = World { rows: &all, receipts: &[], published: &[], admitted: &[] };
    for rule in
        [WorldRule::OneReplacement, WorldRule::ReplacementSpentAClaim, WorldRule::ReplacementIsOfTheStep]
    {
        assert_eq!(rule.broken(&world), None, "{}: {}", rule.name(), story.everything());
    }
    let events = events(story, run);
    let n_reserved = events.iter().filter(|event| event.to == "started").count();
    let of_run = all.keys().filter(|task| task.as_str().starts_with(&format!("{run}.")));
    assert_eq!(of_run.count(), n_reserved, "a task a reservation\n{}", story.everything());
    for step in steps {
        let of_step: Vec<&Event> = events.iter().filter(|event| event.step == *step).collect();
        let n_children =
            children(&of_step).unwrap_or_else(|why| panic!("{step}: {why}\n{}", story.everything()));
        let children: Vec<&Row> =
            (1..=n_children).map(|n| &all[&Name::parse(&format!("{run}.{step}.{n}")).unwrap()]).collect();
        for (old, new) in children.iter().zip(&children[1..]) {
            replaced_once(story, old, new);
        }
        let last = children.last().unwrap();
        assert!(
            last.task_attempt_retired_by.is_none() && last.task_status == TaskStatus::Reported,
            "{last:?}"
        );
        done_once(story, &format!("{run}.{step}"), last);
    }
    let ended = story.told(&["lost"]).len() + story.told(&["over"]).len();
    assert_eq!(ended, story.told(&["agent"]).len(), "an agent failed\n{}", story.everything());
}

/// The events of one step: its children one after the other, each failed before the next one started, the last one
/// completed, and nothing after that. Gives how many.
fn children(events: &[&Event]) -> Result<usize, String> {
    let told: Vec<(&str, Option<&str>, &str)> =
        events.iter().map(|event| (event.child.as_str(), event.from.as_deref(), event.to.as_str())).collect();
    let n_children = told.len() / 2;
    let name = |n: usize| told.get(2 * n).map_or("", |event| event.0);
    let mut wanted = vec![(name(0), None, "started")];
    for n in 1..n_children {
        wanted.push((name(n - 1), Some("started"), "failed"));
        wanted.push((name(n), Some("failed"), "started"));
    }
    wanted.push((name(n_children.saturating_sub(1)), Some("started"), "completed"));
    let numbered = (0..n_children).all(|n| name(n).ends_with(&format!(".{}", n + 1)));
    if told == wanted && numbered { Ok(n_children) } else { Err(format!("{told:?}")) }
}

/// The old child is retired for this step, its claim was spent once, for the new one, and it left a receipt.
fn replaced_once(story: &Story, old: &Row, new: &Row) {
    let claim = old.task_attempt_retired_by.as_ref().unwrap();
    let step = new.workflow_task.as_ref().unwrap();
    assert_eq!(
        (&claim.run_id, &claim.step_id, &claim.input_hash),
        (&step.run_id, &step.step_id, &step.input_hash)
    );
    assert_eq!(Some(&claim.attempt_id), old.task_attempt_id.as_ref());
    let replaces = new.replaces.as_ref().unwrap();
    assert_eq!((&replaces.task_id, &replaces.attempt_id), (&old.task_id, &old.task_attempt_id));
    let spent = old.history.events.iter().filter(|event| event.what == "claim-spent");
    let spent: Vec<Option<&str>> = spent.map(|event| event.subject.as_deref()).collect();
    assert_eq!(spent, [Some(new.task_id.as_str())], "{}", story.everything());
    let receipt =
        format!("sessions/ws/subagent-attempt-settlements/{}/{}.json", old.task_id, claim.attempt_id);
    assert!(story.root.path().join(&receipt).exists(), "{receipt}\n{}", story.everything());
}

/// The children of a step that passed the gate: one whose report counts, and before it the one that was to end without
/// a report, where there was to be one.
fn done_once(story: &Story, step: &str, last: &Row) {
    let begun = story.told(&["begin", step]);
    let without = begun.iter().filter(|line| matches!(line[4].as_str(), "stop" | "idle")).count();
    let letter = step.split_once('.').unwrap().1.chars().next().unwrap();
    assert_eq!(without, usize::from(matches!(letter, 's' | 'i')), "{}", story.everything());
    assert_eq!(begun.len(), without + 1, "done once\n{}", story.everything());
    let done: &Line = begun.last().unwrap();
    assert_eq!(done[2], last.task_id.as_str());
    assert_eq!(done[3], last.report_attempt_id.as_ref().unwrap().as_str());
    let n_died = usize::from(story.root.scratch().join(format!("died.{step}")).exists());
    assert_eq!(n_died, usize::from(letter == 'd'), "who was to die did so");
}

/// Files of calls that are over.
pub fn leftovers(story: &Story) -> Vec<String> {
    let tree = story.root.tree();
    let temporary = |path: &&str| {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap();
        [".lych-", ".tmp", ".atomicwrite"].iter().any(|prefix| name.starts_with(prefix))
    };
    tree.lines().filter(temporary).map(str::to_owned).collect()
}
