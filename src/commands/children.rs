//! The child of a workflow step: the one its record names, or whatever replaced that since, or a task that says that
//! it is the step's child where no record says so.

use crate::protocol::checkpoint::unrecorded_step;
use crate::protocol::codes::Code;
use crate::protocol::ids::Name;
use crate::protocol::row::Row;
use crate::protocol::run::{Run, Step, StepStatus};
use crate::protocol::verdict::{Call, Refusal};
use crate::protocol::workflow::Checkpoint;
use crate::state::Store;

use super::failure::Failure;

/// The step as it stands, with its child. `None`: it never had one.
pub(crate) fn of_step(
    store: &Store,
    run: Option<&Run>,
    at: &Checkpoint,
    call: &Call,
) -> Result<Option<Step>, Failure> {
    let record = run.and_then(|run| run.step(&at.step, &at.input_hash));
    if let Some(record) = record.filter(|record| record.status == StepStatus::Completed) {
        return Ok(Some(record.clone()));
    }
    let recorded = record.map(|record| record.task_id.clone());
    let mut found: Vec<(Name, Option<Row>)> = Vec::new();
    for child in recorded.into_iter().chain(without_record(store, run, at)?) {
        let latest = replaced_by(store, &child)?;
        if found.iter().all(|(child, _)| *child != latest.0) {
            found.push(latest);
        }
    }
    if let [(one, _), (other, _), ..] = found.as_slice() {
        let why = format!("`{one}` and `{other}` both say that they work for step `{}`", at.step);
        return Err(contradictory(one, why));
    }
    let Some((child, row)) = found.pop() else { return Ok(None) };
    // What is recorded about a child says nothing about its replacement.
    Ok(Some(match record.filter(|record| record.task_id == child) {
        Some(record) => record.clone(),
        None => unrecorded_step(at, &child, row.as_ref(), call),
    }))
}

/// Every child of a run. One whose row cannot be read is named as the run names it.
pub(crate) fn of_run(store: &Store, run: &Run) -> Vec<Name> {
    let recorded = run.steps.iter().map(|step| &step.task_id);
    let children = recorded.chain(run.unrecorded.iter().map(|child| &child.task_id));
    children
        .map(|child| replaced_by(store, child).map_or_else(|_| child.clone(), |(child, _)| child))
        .collect()
}

/// Tasks that say that they work for a step that never named them: those an import found; and where the step has no
/// record at all, the one under the name that a child gets by itself, and in a root that is older than checkpoints any.
fn without_record(store: &Store, run: Option<&Run>, at: &Checkpoint) -> Result<Vec<Name>, Failure> {
    let unrecorded = run.into_iter().flat_map(|run| &run.unrecorded);
    let unrecorded = unrecorded.filter(|child| child.may_be_of(&at.step, &at.input_hash));
    let mut found: Vec<Name> = unrecorded.map(|child| child.task_id.clone()).collect();
    if run.is_some_and(|run| run.step(&at.step, &at.input_hash).is_some()) {
        return Ok(found);
    }
    if !store.has_checkpoints_since_birth() {
        found.extend(latest_row(store, at)?);
    } else if let Ok(name) = Name::parse(&format!("{}.{}.1", at.run, at.step)) {
        let row = store.read_task(&name)?.map(|document| document.row);
        found.extend(row.filter(|row| works_for(row, at)).map(|row| row.task_id));
    }
    Ok(found)
}

fn works_for(row: &Row, at: &Checkpoint) -> bool {
    row.parent_workspace_id == at.parent
        && row.workflow_task.as_ref().is_some_and(|step| {
            step.run_id == at.run && step.step_id == at.step && step.input_hash == at.input_hash
        })
}

fn latest_row(store: &Store, at: &Checkpoint) -> Result<Option<Name>, Failure> {
    let mut latest: Option<Row> = None;
    for entry in store.tasks()? {
        // A row that cannot be read may be this step's child.
        let row = entry.doc?.row;
        if works_for(&row, at) && latest.as_ref().is_none_or(|latest| latest.created_at <= row.created_at) {
            latest = Some(row);
        }
    }
    Ok(latest.map(|row| row.task_id))
}

/// The task, or what replaced it, and what replaced that; with its row, if there is one.
fn replaced_by(store: &Store, task: &Name) -> Result<(Name, Option<Row>), Failure> {
    let mut line = vec![task.clone()];
    loop {
        let Some(last) = line.last().cloned() else { return Err(Failure::internal("a line of none")) };
        let row = store.read_task(&last)?.map(|document| document.row);
        let retirement = row.as_ref().and_then(|row| row.retirement.as_ref());
        let Some(next) = retirement.and_then(|retirement| retirement.replacement_task_id.clone()) else {
            return Ok((last, row));
        };
        // Only what was taken over from elsewhere can say so.
        if line.contains(&next) {
            let why = format!("the line of replacements of `{task}` comes back to `{next}`");
            return Err(contradictory(task, why));
        }
        line.push(next);
    }
}

fn contradictory(task: &Name, why: String) -> Failure {
    let refusal = Refusal::new(Code::Unresolved, why)
        .fact("taskId", task.as_str())
        .fact("reasonCode", Code::CheckpointMismatch.as_str());
    Failure::Refused(Box::new(refusal))
}
