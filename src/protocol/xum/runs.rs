//! What is taken over of a workflow run: its checkpoints, each with its child.

use serde_json::{Value, json};

use super::mapping::{self, BESIDE, LeftOut};
use super::{Reading, StepIndex, XumRun, XumStep, XumStepStatus, keep};
use crate::protocol::history::History;
use crate::protocol::ids::{InvalidId, Name};
use crate::protocol::requests::RequestLog;
use crate::protocol::row::Extra;
use crate::protocol::run::{Run, RunStop, Step, StepStatus, Unrecorded};
use crate::protocol::verdict::Call;

/// A run as it would be here.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenRun {
    /// The run.
    pub run: Run,
    /// What of it is not taken over.
    pub left_out: Vec<LeftOut>,
}

/// Maps one run. The steps that are no sub-agents' have no place in ours. A run whose checkpoints cannot all be read
/// is stopped: a person decides whether its steps may get children.
pub fn run(
    found: &XumRun,
    reading: &Reading,
    steps: &StepIndex<'_>,
    source: &str,
    call: &Call,
) -> Result<TakenRun, LeftOut> {
    let not_usable =
        |_: InvalidId| LeftOut::new("run", &*found.id, "id-not-usable", "its id cannot be a run's name here");
    let run_id = Name::parse(&found.id).map_err(not_usable)?;
    let parent_workspace_id = Name::parse(&found.owner).map_err(not_usable)?;
    let mut left_out = Vec::new();
    let mut taken = Vec::new();
    for record in &found.steps {
        let left = |kind: &'static str, why: &'static str, says: &str| {
            LeftOut::new(kind, format!("{} {}", found.id, record.step), why, says)
        };
        match step(record, found, reading, call) {
            Ok(step) => taken.push(step),
            Err((why, says)) => left_out.push(left("step", why, says)),
        }
        if has_lost_result(record, reading) {
            let says = "its child's report is not there; its result stays in `steps.jsonl` of that root";
            left_out.push(left("report", "result-not-here", says));
        }
    }
    let stopped = found.unreadable.as_ref().map(|why| {
        let reason = format!("{why}; it is stopped here until a person resumes it");
        left_out.push(LeftOut::new("run", &*found.id, "checkpoints-unreadable", reason.clone()));
        RunStop { at: call.now.clone(), reason: Some(reason), extra: Extra::new() }
    });
    let made = found.created_at.clone().unwrap_or_else(|| call.now.clone());
    let mut run = Run {
        run_id,
        parent_workspace_id,
        steps: taken,
        unrecorded: unrecorded(found, reading, steps),
        stop_epoch: u64::from(stopped.is_some()),
        stopped,
        created_at: made,
        updated_at: call.now.clone(),
        requests: RequestLog::default(),
        history: History::default(),
        extra: Extra::new(),
    };
    let status = found.status.map(super::XumRunStatus::as_str);
    let added = run.steps.len();
    let beside =
        json!({ "root": source, "status": status, "by": call.request_id, "added": added, "made": true });
    run.extra.insert(BESIDE.to_owned(), beside);
    Ok(TakenRun { run, left_out })
}

/// What an import that is repeated says of a run: whether it made it, and how many steps it added.
pub fn added_by(run: &Run, call: &Call) -> Option<(bool, usize)> {
    let beside = run.extra.get(BESIDE)?;
    if beside.get("by")?.as_str()? != call.request_id.as_str() {
        return None;
    }
    let added = beside.get("added").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    Some((beside.get("made").and_then(Value::as_bool).unwrap_or_default(), added.unwrap_or_default()))
}

fn source_of(run: &Run) -> Option<&str> {
    run.extra.get(BESIDE)?.get("root")?.as_str()
}

/// Where the results of a run lie that was taken over: its journal over there.
pub fn result_elsewhere(run: &Run) -> Option<String> {
    let root = source_of(run)?;
    Some(format!("{root}/sessions/{}/workflows/{}/steps.jsonl", run.parent_workspace_id, run.run_id))
}

/// What a run that was taken over before gets from a later import.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The run with it; absent if there is nothing new.
    pub run: Option<Run>,
    /// How many steps are new.
    pub added: usize,
    /// Steps that have changed there since, and stay here as they are.
    pub left_out: Vec<LeftOut>,
}

/// Adds to a run that was taken over before the steps and the children that are new there: a step that had a child
/// there must not be taken here for one that never had any. What became of a step here since stays as it is.
pub fn merge(existing: &Run, now: &Run, call: &Call) -> Result<Merged, LeftOut> {
    if source_of(existing).is_none() || source_of(existing) != source_of(now) {
        let says = "a run of this name exists here, and is not from that root";
        return Err(LeftOut::new("run", now.run_id.as_str(), "run-exists", says));
    }
    let mut run = existing.clone();
    let mut left_out = Vec::new();
    for step in &now.steps {
        match existing.step(&step.step_id, &step.input_hash) {
            None => run.record_imported(step.clone()),
            Some(known)
                if known.imported && (known.status, &known.task_id) != (step.status, &step.task_id) =>
            {
                let id = format!("{} {}", now.run_id, step.step_id);
                let says = "it was taken over before, and has changed there since; what is here stays";
                left_out.push(LeftOut::new("step", id, "changed-since", says));
            }
            Some(_) => {}
        }
    }
    let added = run.steps.len() - existing.steps.len();
    for child in &now.unrecorded {
        // What the step was given here was given on the evidence about that child.
        let of_it = |step: &&Step| child.may_be_of(&step.step_id, &step.input_hash);
        let is_judged = existing.steps.iter().filter(of_it).any(|step| !step.imported);
        if !is_judged && run.unrecorded.iter().all(|known| known.task_id != child.task_id) {
            run.unrecorded.push(child.clone());
        }
    }
    // Checkpoints that got lost since: as with a run that is new here, unless a person has decided already.
    if existing.stop_epoch == 0 && now.stopped.is_some() {
        run.stopped.clone_from(&now.stopped);
        run.stop_epoch = 1;
    }
    if run == *existing {
        return Ok(Merged { run: None, added, left_out });
    }
    run.updated_at = call.now.clone();
    if let Some(beside) = run.extra.get_mut(BESIDE).and_then(Value::as_object_mut) {
        beside.extend(crate::facts! { "by": call.request_id, "added": added, "made": false });
    }
    Ok(Merged { run: Some(run), added, left_out })
}

/// The tasks that work for a step of this run and that it never named.
fn unrecorded(found: &XumRun, reading: &Reading, steps: &StepIndex<'_>) -> Vec<Unrecorded> {
    let rows = reading.tasks.iter().filter_map(|(id, facts)| Some((id, facts.row.found()?)));
    let children = rows.filter(|(_, row)| row.parent == found.owner).filter_map(|(id, row)| {
        let child = steps.unrecorded(id, row).filter(|child| child.run == found.id)?;
        Some(Unrecorded {
            step_id: Name::parse(&child.step).ok()?,
            input_hash: child.input_hash.and_then(|hash| Name::parse(&hash).ok()),
            task_id: mapping::usable(id)?,
            extra: Extra::new(),
        })
    });
    children.collect()
}

/// A completed step whose child has no report that could be taken over.
fn has_lost_result(record: &XumStep, reading: &Reading) -> bool {
    let child = record.task.as_ref().filter(|_| record.status == XumStepStatus::Completed);
    child.is_some_and(|task| {
        reading
            .tasks
            .get(task)
            .is_none_or(|facts| facts.row.found().is_none() || facts.report.found().is_none())
    })
}

fn step(
    record: &XumStep,
    run: &XumRun,
    reading: &Reading,
    call: &Call,
) -> Result<Step, (&'static str, &'static str)> {
    let task = record.task.as_deref().ok_or(("step-without-task", "it is no sub-agent's"))?;
    let name = |text: &str| {
        Name::parse(text)
            .map_err(|_| ("id-not-usable", "its name cannot be one here, so nobody can ask for it"))
    };
    let mut extra = Extra::new();
    if Name::parse(task).is_err() {
        extra.insert(BESIDE.to_owned(), json!({ "taskId": task }));
    }
    let task_id = mapping::usable(task).ok_or(("id-not-usable", "its child's id cannot be one here"))?;
    let attempt =
        reading.tasks.get(task).and_then(|facts| facts.row.found()).and_then(|row| row.attempt.clone());
    let started = record.started_at.clone().or_else(|| run.created_at.clone());
    let status = match record.status {
        // It goes on when its run is resumed, so it is not over.
        XumStepStatus::Started | XumStepStatus::Interrupted => StepStatus::Started,
        XumStepStatus::Failed => StepStatus::Failed,
        XumStepStatus::Completed => StepStatus::Completed,
    };
    let ended = record.ended_at.clone().filter(|_| status != StepStatus::Started);
    Ok(Step {
        step_id: name(&record.step)?,
        input_hash: name(&record.input_hash)?,
        status,
        task_id,
        attempt_id: attempt,
        started_at: started.unwrap_or_else(|| call.now.clone()),
        ended_at: ended,
        error: record.error.as_deref().map(|error| keep::shown(error).to_owned()),
        imported: true,
        extra,
    })
}
