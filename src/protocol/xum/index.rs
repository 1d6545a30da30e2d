//! Which step records name a task, which record a step has, and which tasks work for a step that never named them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::row::Claim;
use super::{Problem, Reading, Sighting, TaskFacts, XumRow, XumRun, XumStep};

impl Reading {
    /// Adds the runs that rows name and that have no folder, and tells of every task that its run never named: what is
    /// known about that run is not all that was.
    pub fn tell_what_is_lost(&mut self) {
        let mut lost = BTreeMap::new();
        let index = StepIndex::of(self);
        let mut problems = Vec::new();
        for (id, facts) in &self.tasks {
            let Some(row) = facts.row.found() else { continue };
            let Some(child) = index.unrecorded(id, row) else { continue };
            if !index.runs.contains_key(&(&*row.parent, &*child.run)) {
                lost.insert((row.parent.clone(), child.run), id.clone());
            }
            problems.push(Problem::new(
                "checkpoint-missing",
                id,
                "it works for a step of a run, and no record of that names it",
            ));
        }
        self.problems.extend(problems);
        for ((owner, run), task) in lost {
            self.runs.push(XumRun::lost(run, owner, &task));
        }
        self.runs.sort_by(|a, b| (&a.owner, &a.id).cmp(&(&b.owner, &b.id)));
    }
}

impl XumRun {
    fn lost(id: String, owner: String, task: &str) -> Self {
        Self {
            id,
            owner,
            status: None,
            steps: Vec::new(),
            lease: Sighting::NotFound,
            noted: BTreeSet::new(),
            named: BTreeSet::new(),
            created_at: None,
            updated_at: None,
            unreadable: Some(format!("no folder of it can be read, and `{task}` works for it")),
        }
    }
}

/// A task that works for a step of a run that never named it: the record that did got lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XumUnrecorded {
    /// The run.
    pub run: String,
    /// The step.
    pub step: String,
    /// Its input, if the task's claim says which.
    pub input_hash: Option<String>,
}

/// The latest record of a step, and its run.
#[derive(Debug, Clone, Copy)]
pub struct StepOf<'a> {
    /// The run.
    pub run: &'a XumRun,
    /// The record.
    pub step: &'a XumStep,
}

/// Which latest step records name a task, and which record a step has.
#[derive(Debug, Default)]
pub struct StepIndex<'a> {
    by_task: BTreeMap<&'a str, Vec<StepOf<'a>>>,
    /// By owner, run, step and input.
    by_key: BTreeMap<[&'a str; 4], &'a XumStep>,
    /// By owner and run.
    runs: BTreeMap<(&'a str, &'a str), &'a XumRun>,
}

impl<'a> StepIndex<'a> {
    /// The index of a reading.
    pub fn of(reading: &'a Reading) -> Self {
        let mut found = Self::default();
        for run in &reading.runs {
            found.runs.insert((&run.owner, &run.id), run);
            for step in &run.steps {
                found.by_key.insert([&run.owner, &run.id, &step.step, &step.input_hash], step);
                if let Some(task) = &step.task {
                    found.by_task.entry(task).or_default().push(StepOf { run, step });
                }
            }
        }
        found
    }

    /// The latest record of the step and input a claim of a child of this owner is for.
    pub fn latest(&self, owner: &str, claim: &Claim) -> Option<&'a XumStep> {
        let key = [owner, claim.run_id.as_str(), claim.step_id.as_str(), claim.input_hash.as_str()];
        self.by_key.get(&key).copied()
    }

    /// The step that a task works for, if its run never named that task.
    pub fn unrecorded(&self, task: &str, row: &XumRow) -> Option<XumUnrecorded> {
        let claim = row.claim.as_deref();
        let (run, step) = match (claim, &row.step) {
            (Some(claim), _) => (claim.run_id.as_str(), claim.step_id.as_str()),
            (None, Some((run, step))) => (run.as_str(), step.as_str()),
            (None, None) => return None,
        };
        let names = |run: &&XumRun| run.named.contains(task);
        if self.by_task.contains_key(task) || self.runs.get(&(&*row.parent, run)).is_some_and(names) {
            return None;
        }
        let input_hash = claim.map(|claim| claim.input_hash.as_str().to_owned());
        Some(XumUnrecorded { run: run.to_owned(), step: step.to_owned(), input_hash })
    }

    /// The record of the step a task works for: the one its row names, else the only one that names it.
    pub fn step_of(&self, task: &str, facts: &TaskFacts) -> Option<StepOf<'a>> {
        let named = self.by_task.get(task)?;
        let row = facts.row.found();
        if let Some((run, step)) = row.and_then(|row| row.step.as_ref()) {
            let mut fitting = named.iter().filter(|of| of.run.id == *run && of.step.step == *step);
            let first = fitting.next().copied();
            // Two inputs of one step that both name it contradict each other.
            return first.filter(|_| fitting.next().is_none());
        }
        match named.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }
}
