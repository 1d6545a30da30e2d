//! Which step records name a task, which record a step has, and which tasks work for a step without one.

use std::collections::{BTreeMap, BTreeSet};

use super::{Problem, Reading, Sighting, TaskFacts, XumRow, XumRun, XumStep};

impl Reading {
    /// Adds the runs that rows name and that have no folder, and tells of every task whose step has no record: what
    /// is known about its run is not all that was.
    pub fn tell_what_is_lost(&mut self) {
        let mut lost = BTreeMap::new();
        let index = StepIndex::of(self);
        let mut problems = Vec::new();
        for (id, facts) in &self.tasks {
            let Some(row) = facts.row.found() else { continue };
            let Some(child) = index.unrecorded(id, row) else { continue };
            if !index.runs.contains(&(&row.parent, &child.run)) {
                lost.insert((row.parent.clone(), child.run), id.clone());
            }
            problems.push(Problem::new(
                "checkpoint-missing",
                id,
                "it works for a step, and no checkpoint names a child of that",
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
            created_at: None,
            updated_at: None,
            unreadable: Some(format!("it has no folder, and `{task}` works for it")),
        }
    }
}

/// A task that works for a step of which no record names a child.
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
    by_key: BTreeMap<(&'a str, &'a str, &'a str), &'a XumStep>,
    /// The steps with a child, each with its run's owner and its run.
    with_child: BTreeSet<(&'a str, &'a str, &'a str)>,
    /// The runs, each with its owner.
    runs: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> StepIndex<'a> {
    /// The index of a reading.
    pub fn of(reading: &'a Reading) -> Self {
        let mut found = Self::default();
        for run in &reading.runs {
            found.runs.insert((&run.owner, &run.id));
            for step in &run.steps {
                if step.task.is_some() {
                    found.with_child.insert((&run.owner, &run.id, &step.step));
                }
                found.by_key.insert((&run.id, &step.step, &step.input_hash), step);
                if let Some(task) = &step.task {
                    found.by_task.entry(task).or_default().push(StepOf { run, step });
                }
            }
        }
        found
    }

    /// The latest record of a step and input.
    pub fn latest(&self, run: &str, step: &str, input_hash: &str) -> Option<&'a XumStep> {
        self.by_key.get(&(run, step, input_hash)).copied()
    }

    /// The step that a task works for, if no record of it names a child: that task or another.
    pub fn unrecorded(&self, task: &str, row: &XumRow) -> Option<XumUnrecorded> {
        if self.by_task.contains_key(task) {
            return None;
        }
        if let Some(claim) = &row.claim {
            let (run, step, hash) =
                (claim.run_id.as_str(), claim.step_id.as_str(), claim.input_hash.as_str());
            let child =
                || XumUnrecorded { run: run.into(), step: step.into(), input_hash: Some(hash.into()) };
            return self.latest(run, step, hash).is_none().then(child);
        }
        let (run, step) = row.step.as_ref()?;
        let has_child = self.with_child.contains(&(row.parent.as_str(), run.as_str(), step.as_str()));
        (!has_child).then(|| XumUnrecorded { run: run.clone(), step: step.clone(), input_hash: None })
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
