//! What is taken over of a workflow run: its checkpoints, each with its child.

use serde_json::{Value, json};

use super::mapping::{BESIDE, LeftOut};
use super::{Reading, XumRun, XumStep, XumStepStatus, keep};
use crate::protocol::history::History;
use crate::protocol::ids::{InvalidId, Name};
use crate::protocol::requests::RequestLog;
use crate::protocol::row::Extra;
use crate::protocol::run::{Run, RunStop, Step, StepStatus};
use crate::protocol::verdict::Call;

/// Whether a run that exists in our root is this one: why it is not taken over again.
pub fn exists(run: &Run, source: &str) -> LeftOut {
    let from = run.extra.get(BESIDE).and_then(|beside| beside.get("root")).and_then(Value::as_str);
    let (why, says) = if from == Some(source) {
        ("already-imported", "it was taken over from this root before")
    } else {
        ("run-exists", "a run of this name exists here, and is not from that root")
    };
    LeftOut::new("run", run.run_id.as_str(), why, says)
}

/// The child of a step whose own child has an id that cannot be a name here: no task has this name, so that nobody
/// takes the step for one that was never started.
const UNUSABLE: &str = "(its id cannot be a name here)";

/// Maps one run. The steps that are no sub-agents' have no place in ours. A run whose checkpoints cannot all be read
/// is stopped: a person decides whether its steps may get children.
pub fn run(
    found: &XumRun,
    reading: &Reading,
    source: &str,
    call: &Call,
) -> Result<(Run, Vec<LeftOut>), LeftOut> {
    let skipped = |why: &'static str, says: &str| LeftOut::new("run", &*found.id, why, says);
    let not_usable = |_: InvalidId| skipped("id-not-usable", "its id cannot be a run's name here");
    let run_id = Name::parse(&found.id).map_err(not_usable)?;
    let parent_workspace_id = Name::parse(&found.owner).map_err(not_usable)?;
    let mut left_out = Vec::new();
    let mut steps = Vec::new();
    for record in &found.steps {
        match step(record, found, reading, call) {
            Ok(step) => steps.push(step),
            Err((why, says)) => {
                let id = format!("{} {}", found.id, record.step);
                left_out.push(LeftOut::new("step", id, why, says));
            }
        }
    }
    let stopped = found.unreadable.as_ref().map(|why| {
        let reason = format!("{why}; it is stopped here until a person resumes it");
        left_out.push(LeftOut::new("run", &*found.id, "checkpoints-unreadable", reason.clone()));
        RunStop { at: call.now.clone(), reason: Some(reason), extra: Extra::new() }
    });
    let made = found.created_at.clone().unwrap_or_else(|| call.now.clone());
    let status = found.status.map(super::XumRunStatus::as_str);
    let mut extra = Extra::new();
    extra.insert(BESIDE.to_owned(), json!({ "root": source, "status": status, "by": call.request_id }));
    let run = Run {
        run_id,
        parent_workspace_id,
        steps,
        unrecorded: Vec::new(),
        stop_epoch: u64::from(stopped.is_some()),
        stopped,
        created_at: made,
        updated_at: call.now.clone(),
        requests: RequestLog::default(),
        history: History::default(),
        extra,
    };
    Ok((run, left_out))
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
    let task_id = if let Ok(task) = Name::parse(task) {
        task
    } else {
        extra.insert(BESIDE.to_owned(), json!({ "taskId": task }));
        name(UNUSABLE)?
    };
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
