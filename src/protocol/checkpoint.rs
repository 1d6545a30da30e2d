//! How a run's checkpoints change: a step is started, fails, completes; the run is stopped and goes on
//! (rules 5, 74, 80; decisions 9, 10).

use serde_json::json;

use super::classify::ReportEvidence;
use super::codes::Code;
use super::history::{Event, History};
use super::ids::{AttemptId, Name};
use super::requests::{RequestLog, RequestRecord};
use super::row::{Extra, Row};
use super::run::{Run, RunStop, Step, StepStatus};
use super::verdict::{Call, Facts, Refusal, Said};
use super::workflow::Checkpoint;
use crate::facts;

/// A changed run and what is said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunChange {
    /// The new run; absent when the answer stands already.
    pub run: Option<Box<Run>>,
    /// The answer.
    pub said: Said,
}

impl Run {
    /// A run without steps.
    pub fn new(run: &Name, parent: &Name, call: &Call) -> Self {
        Self {
            run_id: run.clone(),
            parent_workspace_id: parent.clone(),
            steps: Vec::new(),
            unrecorded: Vec::new(),
            stopped: None,
            stop_epoch: 0,
            created_at: call.now.clone(),
            updated_at: call.now.clone(),
            requests: RequestLog::default(),
            history: History::default(),
            extra: Extra::new(),
        }
    }

    /// Remembers a call. Runs have no sends, so the bound is all that counts.
    pub fn remember(&mut self, record: RequestRecord) {
        self.requests.push_bounded(record);
    }

    fn record(&mut self, call: &Call, step: &Step, before: Option<StepStatus>) {
        self.updated_at = call.now.clone();
        let mut extra = Extra::new();
        extra.insert("stepId".to_owned(), json!(step.step_id));
        extra.insert("inputHash".to_owned(), json!(step.input_hash));
        extra.insert("attemptId".to_owned(), json!(step.attempt_id));
        self.history.push(Event {
            n: 0,
            at: call.now.clone(),
            command: call.command.to_owned(),
            request_id: call.request_id.clone(),
            what: step.status.as_str().to_owned(),
            from: before.map(|status| status.as_str().to_owned()),
            to: step.status.as_str().to_owned(),
            subject: Some(step.task_id.to_string()),
            note: step.error.clone(),
            extra,
        });
    }

    /// Records that a step has a fresh child. The child it had, `prior`, is disposed first if it is not recorded as
    /// failed yet, so that the list of events tells the whole story.
    pub fn start_step(
        &mut self,
        at: &Checkpoint,
        prior: Option<&Step>,
        task: &Name,
        attempt: &AttemptId,
        call: &Call,
    ) {
        if let Some(prior) = prior {
            self.dispose(prior, "its child is over without a result", call);
        }
        let before = self.status(at);
        let step = Step {
            step_id: at.step.clone(),
            input_hash: at.input_hash.clone(),
            status: StepStatus::Started,
            task_id: task.clone(),
            attempt_id: Some(attempt.clone()),
            started_at: call.now.clone(),
            ended_at: None,
            error: None,
            imported: false,
            extra: Extra::new(),
        };
        self.put(step.clone());
        self.record(call, &step, before);
    }

    /// Records a started step as failed. Any other status stays.
    fn dispose(&mut self, step: &Step, why: &str, call: &Call) {
        if step.status == StepStatus::Started {
            self.end(&failed(step, Some(why), call), call);
        }
    }

    /// Adds the record of a step as another root has it.
    pub fn record_imported(&mut self, step: Step) {
        self.put(step);
    }

    fn end(&mut self, step: &Step, call: &Call) {
        let before = self.step(&step.step_id, &step.input_hash).map(|step| step.status);
        self.put(step.clone());
        self.record(call, step, before);
    }

    fn status(&self, at: &Checkpoint) -> Option<StepStatus> {
        self.step(&at.step, &at.input_hash).map(|step| step.status)
    }

    /// A step that has a record has no child without one.
    fn put(&mut self, step: Step) {
        self.unrecorded.retain(|child| !child.may_be_of(&step.step_id, &step.input_hash));
        let known =
            |record: &&mut Step| record.step_id == step.step_id && record.input_hash == step.input_hash;
        match self.steps.iter_mut().find(known) {
            Some(record) => *record = step,
            None => self.steps.push(step),
        }
    }

    /// Lifts the latch.
    pub fn resume(&mut self, call: &Call) {
        if self.stopped.take().is_some() {
            self.updated_at = call.now.clone();
            self.note(call, "resumed", "stopped", "open", None);
        }
    }

    fn note(&mut self, call: &Call, what: &str, from: &str, to: &str, note: Option<&str>) {
        self.history.push(Event {
            n: 0,
            at: call.now.clone(),
            command: call.command.to_owned(),
            request_id: call.request_id.clone(),
            what: what.to_owned(),
            from: Some(from.to_owned()),
            to: to.to_owned(),
            subject: None,
            note: note.map(str::to_owned),
            extra: Extra::new(),
        });
    }
}

/// Latches a run: from this commit on none of its steps gets a child.
pub fn stop_run(run: &Run, reason: Option<&str>, call: &Call) -> Run {
    let mut run = run.clone();
    let from = if run.stopped.is_some() { "stopped" } else { "open" };
    run.stop_epoch += 1;
    run.stopped =
        Some(RunStop { at: call.now.clone(), reason: reason.map(str::to_owned), extra: Extra::new() });
    run.updated_at = call.now.clone();
    run.note(call, "stopped", from, "stopped", reason);
    run
}

/// A step whose child `task` no record names, as its record would be.
pub fn unrecorded_step(at: &Checkpoint, task: &Name, row: Option<&Row>, call: &Call) -> Step {
    Step {
        step_id: at.step.clone(),
        input_hash: at.input_hash.clone(),
        status: StepStatus::Started,
        task_id: task.clone(),
        attempt_id: row.and_then(|row| row.task_attempt_id.clone()),
        started_at: row.map_or_else(|| call.now.clone(), |row| row.created_at.clone()),
        ended_at: None,
        error: None,
        imported: false,
        extra: Extra::new(),
    }
}

/// The refusal for a step that never had a child.
pub fn no_such_step(run: Option<&Run>, at: &Checkpoint) -> Box<Refusal> {
    let message = format!(
        "run `{}` of `{}` has no record of step `{}` with input {}",
        at.run, at.parent, at.step, at.input_hash
    );
    let other: Vec<&str> = other_inputs(run, at);
    let mut refusal = Refusal::new(Code::NoSuchStep, message);
    if !other.is_empty() {
        refusal = refusal
            .hint("the step has records under the inputs named in `otherInputs`")
            .fact("otherInputs", other);
    }
    Box::new(refusal)
}

/// The inputs other than this one that the step has a record for.
pub fn other_inputs<'r>(run: Option<&'r Run>, at: &Checkpoint) -> Vec<&'r str> {
    let steps = run.into_iter().flat_map(|run| &run.steps);
    steps
        .filter(|step| step.step_id == at.step && step.input_hash != at.input_hash)
        .map(|step| step.input_hash.as_str())
        .collect()
}

fn about(step: &Step, at: &Checkpoint) -> Facts {
    facts! {
        "runId": at.run, "stepId": step.step_id, "inputHash": step.input_hash, "stepStatus": step.status.as_str(),
        "taskId": step.task_id, "attemptId": step.attempt_id,
    }
}

/// `step complete`: the child's report becomes the step's result.
pub fn complete(
    run: Option<&Run>,
    at: &Checkpoint,
    step: &Step,
    child: Option<(&Row, &ReportEvidence)>,
    call: &Call,
) -> Result<RunChange, Box<Refusal>> {
    match step.status {
        StepStatus::Completed => {
            let message = format!("step `{}` was completed before", at.step);
            return Ok(RunChange {
                run: None,
                said: Said { code: Code::AlreadyEnded, message, facts: about(step, at) },
            });
        }
        StepStatus::Failed => return Err(ended(step, at)),
        StepStatus::Started => {}
    }
    let (row, reports) = child.ok_or_else(|| {
        Box::new(Refusal::new(Code::NoTaskRecord, format!("there is no row for task `{}`", step.task_id)))
    })?;
    let report = row.counted_report().ok_or_else(|| {
        let message = format!("task `{}` has not reported, so step `{}` has no result", row.task_id, at.step);
        Box::new(Refusal::new(Code::NoReport, message).fact("taskId", row.task_id.as_str()))
    })?;
    if let ReportEvidence::Broken(why) = reports {
        let message = format!("the report of task `{}` is not what its row says: {why}", row.task_id);
        return Err(Box::new(Refusal::new(Code::ReportUnreadable, message)));
    }
    let done = Step {
        status: StepStatus::Completed,
        attempt_id: report.attempt_id.clone().or_else(|| step.attempt_id.clone()),
        ended_at: Some(call.now.clone()),
        error: None,
        ..step.clone()
    };
    let message = format!("step `{}` is completed by the report of task `{}`", at.step, row.task_id);
    Ok(ended_as(run, &done, at, Code::StepCompleted, message, call))
}

/// `step fail`: the step's child gave no result that counts.
pub fn fail(
    run: Option<&Run>,
    at: &Checkpoint,
    step: &Step,
    child: Option<&Row>,
    error: Option<&str>,
    call: &Call,
) -> Result<RunChange, Box<Refusal>> {
    match step.status {
        StepStatus::Failed => {
            let message = format!("step `{}` was recorded as failed before", at.step);
            return Ok(RunChange {
                run: None,
                said: Said { code: Code::AlreadyEnded, message, facts: about(step, at) },
            });
        }
        StepStatus::Completed => return Err(ended(step, at)),
        StepStatus::Started => {}
    }
    if let Some(row) = child.filter(|row| row.task_attempt_id.is_none()) {
        let message =
            format!("task `{}` has no attempt id, so nothing could fence it after this", row.task_id);
        return Err(Box::new(Refusal::new(Code::LegacyNoAttemptId, message)));
    }
    let message = format!("step `{}` is recorded as failed", at.step);
    Ok(ended_as(run, &failed(step, error, call), at, Code::StepFailed, message, call))
}

/// The record of a step that failed here: whatever it was taken over as, its child was fenced when it failed.
fn failed(step: &Step, error: Option<&str>, call: &Call) -> Step {
    Step {
        status: StepStatus::Failed,
        ended_at: Some(call.now.clone()),
        error: error.map(str::to_owned),
        imported: false,
        ..step.clone()
    }
}

fn ended(step: &Step, at: &Checkpoint) -> Box<Refusal> {
    let message = format!("step `{}` is {} already", at.step, step.status.as_str());
    let mut refusal = Refusal::new(Code::StepEnded, message);
    refusal.facts = about(step, at);
    Box::new(refusal)
}

fn ended_as(
    run: Option<&Run>,
    step: &Step,
    at: &Checkpoint,
    code: Code,
    message: String,
    call: &Call,
) -> RunChange {
    let mut run = run.cloned().unwrap_or_else(|| Run::new(&at.run, &at.parent, call));
    let facts = about(step, at);
    run.end(step, call);
    RunChange { run: Some(Box::new(run)), said: Said { code, message, facts } }
}

/// What a claim does to the checkpoint: its latest record must name this child, and a started one is disposed
/// (rule 80). `None`: there is no checkpoint of ours, or nothing changes.
pub fn claimed(
    run: Option<&Run>,
    at: &Checkpoint,
    child: &Name,
    call: &Call,
) -> Result<Option<Run>, Box<Refusal>> {
    let Some(run) = run else { return Ok(None) };
    refuse_other_child(run, at, child)?;
    let Some(step) = run.step(&at.step, &at.input_hash) else { return Ok(None) };
    match step.status {
        StepStatus::Completed => Err(Box::new(Refusal::new(
            Code::Completed,
            format!("step `{}` is completed by task `{child}`", at.step),
        ))),
        StepStatus::Started => {
            let mut changed = run.clone();
            changed.dispose(step, "its child was retired", call);
            Ok(Some(changed))
        }
        StepStatus::Failed => Ok(None),
    }
}

/// What spending a claim does to the checkpoint: it names the replacement now, also where it named no child before.
pub fn replaced(
    run: Option<&Run>,
    at: &Checkpoint,
    old: &Row,
    new: (&Name, &AttemptId),
    call: &Call,
) -> Result<Run, Box<Refusal>> {
    run.map_or(Ok(()), |run| refuse_other_child(run, at, &old.task_id))?;
    let record = run.and_then(|run| run.step(&at.step, &at.input_hash));
    let prior = record.cloned().unwrap_or_else(|| unrecorded_step(at, &old.task_id, Some(old), call));
    let mut run = run.cloned().unwrap_or_else(|| Run::new(&at.run, &at.parent, call));
    run.start_step(at, Some(&prior), new.0, new.1, call);
    Ok(run)
}

/// The checkpoint is this child's, or nobody's: neither its record nor a task that it never named is another one.
fn refuse_other_child(run: &Run, at: &Checkpoint, child: &Name) -> Result<(), Box<Refusal>> {
    let recorded = run.step(&at.step, &at.input_hash).map(|step| &step.task_id);
    let unrecorded = run.unrecorded.iter().filter(|child| child.may_be_of(&at.step, &at.input_hash));
    let mut children = recorded.into_iter().chain(unrecorded.map(|child| &child.task_id));
    let Some(other) = children.find(|other| *other != child) else { return Ok(()) };
    let message = format!("step `{}` of run `{}` has task `{other}` now, not `{child}`", at.step, at.run);
    Err(Box::new(Refusal::new(Code::CheckpointMismatch, message).fact("currentTaskId", other.as_str())))
}
