//! `stop`: shuts the admission of tasks, each in a commit of its own, root first.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::cli::{CleanupArg, ReceiptCopies, StopArgs};
use crate::protocol::codes::{Code, Exit};
use crate::protocol::ids::{AttemptId, Name};
use crate::protocol::row::Row;
use crate::protocol::settlement::ClosingWords;
use crate::protocol::stop::{self, NamedCleanup, Stop};
use crate::protocol::verdict::{Call, Refusal};
use crate::state::{Access, RunKey, Store};

use super::children;
use super::context::Context;
use super::failure::Failure;
use super::owner::process;
use super::repeats::{Grant, digest};
use super::runs::{Latched, find_run, latch};
use super::tokens::Keys;
use super::transact::{Ancestors, Sight, TaskCall};

pub(crate) fn run(context: &Context, args: &StopArgs) -> Result<Answer, Failure> {
    let store = Store::open(&context.root, Access::Change)?;
    if args.run.is_some() || args.all {
        return stop_many(context, &store, args);
    }
    let tasks = match args.tasks.as_slice() {
        [] => vec![context.task_or_environment(None)?],
        tasks => tasks.to_vec(),
    };
    let keys = Keys::without_token(&store)?;
    let job = Job { context, store: &store, keys: &keys, args, lifted: Vec::new() };
    let mut answers: Vec<(String, Answer)> = Vec::new();
    for task in &tasks {
        answers.push((task.to_string(), job.stop(task, Part::Named)));
    }
    if args.tree {
        let meant = tasks.iter().zip(&answers).filter(|(_, (_, answer))| stands(answer));
        let meant: Vec<Name> = meant.map(|(task, _)| task.clone()).collect();
        let n_named = answers.len();
        job.stop_descendants(&meant, &mut answers)?;
        // A workspace that is no task itself is stopped by stopping everything below it.
        if answers.len() > n_named {
            answers.retain(|(_, answer)| answer.code != Code::NoTaskRecord);
        }
    }
    if let Some(wait) = args.wait {
        job.wait(&mut answers, wait)?;
    }
    Ok(joined(context, answers, args.tree))
}

/// A run, or the whole root: the runs are latched first, so that no step gets a child any more; then every
/// child is stopped.
fn stop_many(context: &Context, store: &Store, args: &StopArgs) -> Result<Answer, Failure> {
    let keys = Keys::without_token(store)?;
    let reason = args.reason.as_deref();
    let mut latched = Vec::new();
    let mut tasks: Vec<Name> = Vec::new();
    let mut answers: Vec<(String, Answer)> = Vec::new();
    if let Some(run) = &args.run {
        let (key, _) = find_run(store, run, args.parent.as_ref())?;
        let stopped = latch(context, store, key, reason)?;
        tasks.extend(children::of_run(store, &stopped.run));
        latched.push(stopped);
    } else {
        // A run that cannot be latched is told, and keeps nothing else from being stopped.
        for entry in store.all_runs()? {
            let stopped = entry.doc.map_err(Failure::from).and_then(|document| {
                let run = document.run;
                let key = RunKey { parent: run.parent_workspace_id, run: run.run_id };
                latch(context, store, key, reason)
            });
            match stopped {
                Ok(stopped) => latched.push(stopped),
                Err(failure) => answers.push((entry.folder, failure.into_answer(context.command))),
            }
        }
        for entry in store.tasks()? {
            match entry.doc {
                Ok(document) if document.row.task_attempt_retired_by.is_some() => {}
                Ok(document) => tasks.push(document.row.task_id),
                Err(error) => answers.push((entry.folder, Failure::from(error).into_answer(context.command))),
            }
        }
    }
    let mut seen = HashSet::new();
    tasks.retain(|task| seen.insert(task.clone()));
    let lifted = latched.iter().filter(|stopped| stopped.is_lifted()).map(|stopped| stopped.key.clone());
    let job = Job { context, store, keys: &keys, args, lifted: lifted.collect() };
    let mut meant = Vec::new();
    for task in tasks {
        let answer = job.stop(&task, Part::Below);
        let name = task.to_string();
        if stands(&answer) {
            meant.push(task);
        }
        answers.push((name, answer));
    }
    if args.tree {
        job.stop_descendants(&meant, &mut answers)?;
    }
    if let Some(wait) = args.wait {
        job.wait(&mut answers, wait)?;
    }
    let mut answer = joined(context, answers, true);
    if let ([stopped], Some(_)) = (latched.as_slice(), &args.run) {
        answer.fields.insert("runId".to_owned(), json!(stopped.key.run));
        answer.fields.insert("stopEpoch".to_owned(), json!(stopped.epoch));
    } else {
        let of_run = |stopped: &Latched| json!({ "runId": stopped.key.run, "stopEpoch": stopped.epoch });
        answer.fields.insert("runs".to_owned(), Value::Array(latched.iter().map(of_run).collect()));
    }
    Ok(answer)
}

struct Job<'a> {
    context: &'a Context,
    store: &'a Store,
    keys: &'a Keys,
    args: &'a StopArgs,
    /// Runs that somebody went on with on purpose after this very Stop was made; it is only repeated.
    lifted: Vec<RunKey>,
}

/// How a task came to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It was named: the guard and the cleanups of the call are about it.
    Named,
    /// It lies below one that was.
    Below,
}

/// Whether what lies below a named task is stopped with it: not where a rule said no, for then this tree was
/// not meant. A workspace that is no task may have tasks below it.
fn stands(answer: &Answer) -> bool {
    !matches!(answer.exit(), Exit::Refused | Exit::Usage) || answer.code == Code::NoTaskRecord
}

impl Job<'_> {
    fn stop(&self, task: &Name, part: Part) -> Answer {
        self.try_stop(task, part).unwrap_or_else(|failure| failure.into_answer(self.context.command))
    }

    fn try_stop(&self, task: &Name, part: Part) -> Result<Answer, Failure> {
        let (attempt, cleanups) = match part {
            Part::Named => {
                let guard = self.context.attempt_or_environment(self.args.attempt.as_ref(), task)?;
                (guard, self.args.cleanups.0.as_slice())
            }
            Part::Below => (None, [].as_slice()),
        };
        let request = self.request(attempt.clone(), cleanups)?;
        let cleanups: Vec<String> =
            cleanups.iter().map(|cleanup| format!("{}/{:?}", cleanup.name, cleanup.owner_pid)).collect();
        let call = TaskCall {
            context: self.context,
            store: self.store,
            keys: self.keys,
            task,
            ancestors: Ancestors::NotLookedAt,
            checkpoint: None,
            digest: digest(&[
                "stop",
                task.as_str(),
                attempt.as_ref().map_or("", AttemptId::as_str),
                self.args.reason.as_deref().unwrap_or_default(),
                self.args.failure.as_deref().unwrap_or_default(),
                &cleanups.join("\n"),
                if self.args.receipt == ReceiptCopies::ParentOnly { "parent-only" } else { "" },
            ]),
        };
        let judge = |row: &Row, _: &Sight<'_>, call: &Call| {
            self.refuse_lifted(row)?;
            stop::stop(row, request.as_ref().map_err(Clone::clone)?, call)
        };
        call.run(&judge, &|_| Grant::default())
    }

    /// What a run has started after its Stop was lifted on purpose is not meant by a repeat of that Stop. What the
    /// Stop has stopped is answered from its record, before this is asked.
    fn refuse_lifted(&self, row: &Row) -> Result<(), Box<Refusal>> {
        let of_run = |key: &&RunKey| {
            let run = row.workflow_task.as_ref().map(|step| &step.run_id);
            row.parent_workspace_id == key.parent && run == Some(&key.run)
        };
        let Some(key) = self.lifted.iter().find(of_run) else { return Ok(()) };
        let message =
            format!("run `{}` was stopped before by this call, and somebody has gone on since", key.run);
        let hint = "to stop it again, take a new request id";
        Err(Box::new(Refusal::new(Code::StaleEpoch, message).hint(hint).fact("runId", key.run.as_str())))
    }

    /// The request; or the refusal of a debtor that cannot be recorded, which only a new call is told.
    fn request(
        &self,
        attempt: Option<AttemptId>,
        named: &[CleanupArg],
    ) -> Result<Result<Stop, Box<Refusal>>, Failure> {
        let mut cleanups = Vec::new();
        for cleanup in named {
            let process = match cleanup.owner_pid.map(|pid| process(self.context, pid)).transpose() {
                Ok(process) => process,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let id = self.context.fresh_cleanup()?;
            cleanups.push(NamedCleanup { id, name: cleanup.name.to_string(), process });
        }
        let words = ClosingWords {
            reason: self.args.reason.clone(),
            failure: self.args.failure.clone(),
            source: None,
            parent_only: self.args.receipt == ReceiptCopies::ParentOnly,
        };
        Ok(Ok(Stop { attempt, words, cleanups }))
    }

    /// Stops everything below the tasks, nearest to the root first, until a look finds nothing new: a child
    /// reserved meanwhile was reserved before its ancestor's Stop, and none can be after it. A row that cannot
    /// be read may be a descendant, so it is told and not passed over.
    fn stop_descendants(&self, roots: &[Name], answers: &mut Vec<(String, Answer)>) -> Result<(), Failure> {
        let mut below: HashSet<Name> = roots.iter().cloned().collect();
        let mut done = below.clone();
        loop {
            let mut rows = Vec::new();
            for entry in self.store.tasks()? {
                match entry.doc {
                    Ok(document) => rows.push(document.row),
                    Err(error) if !answers.iter().any(|(task, _)| *task == entry.folder) => {
                        let answer = Failure::from(error).into_answer(self.context.command);
                        answers.push((entry.folder, answer));
                    }
                    Err(_) => {}
                }
            }
            while let Some(row) =
                rows.iter().find(|row| !below.contains(&row.task_id) && is_below(row, &below))
            {
                below.insert(row.task_id.clone());
            }
            rows.retain(|row| below.contains(&row.task_id) && !done.contains(&row.task_id));
            if rows.is_empty() {
                return Ok(());
            }
            rows.sort_by(|a, b| (a.ancestors.len(), &a.task_id).cmp(&(b.ancestors.len(), &b.task_id)));
            for row in rows {
                answers.push((row.task_id.to_string(), self.stop(&row.task_id, Part::Below)));
                done.insert(row.task_id);
            }
        }
    }

    /// Waits, without a lock, until nothing of the stopped attempts is owed any more.
    #[allow(clippy::disallowed_methods, reason = "a wait ends by the clock, and grants nothing")]
    fn wait(&self, answers: &mut [(String, Answer)], wait: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + wait;
        for (task, answer) in answers.iter_mut().filter(|(_, answer)| is_stopping(answer)) {
            let task = Name::parse(task).map_err(|error| Failure::internal(error.to_string()))?;
            let stopped = answer.fields.get("attemptId").cloned();
            loop {
                let Some(document) = self.store.read_task(&task)? else { break };
                let row = document.row;
                let owed = row.owed_after(stopped.as_ref().and_then(Value::as_str));
                let over = owed.is_empty();
                answer.fields.insert("phase".to_owned(), json!(row.phase().as_str()));
                answer.fields.insert("owed".to_owned(), json!(owed));
                if over {
                    answer.code = Code::Stopped;
                    answer.message = format!("task `{task}` is stopped");
                    let settled = row.settlement.as_ref().and_then(|settlement| settlement.settled.as_ref());
                    answer
                        .fields
                        .insert("receipt".to_owned(), json!(settled.and_then(|settled| settled.receipt)));
                    break;
                }
                if Instant::now() >= deadline {
                    answer.exit = Some(Exit::Pending);
                    break;
                }
                std::thread::sleep(POLL);
            }
        }
        Ok(())
    }
}

fn is_stopping(answer: &Answer) -> bool {
    matches!(answer.code, Code::Stopping | Code::AlreadyStopping)
}

/// Whether a row's recorded line of ancestors leads through one of these.
fn is_below(row: &Row, above: &HashSet<Name>) -> bool {
    above.contains(&row.parent_workspace_id) || row.ancestors.iter().any(|name| above.contains(name))
}

/// How often a waiting Stop looks.
const POLL: Duration = Duration::from_millis(10);

/// One task and no tree: its own answer. Else all answers in a list, and the worst exit status.
fn joined(context: &Context, mut answers: Vec<(String, Answer)>, tree: bool) -> Answer {
    if !tree
        && answers.len() == 1
        && let Some((_, answer)) = answers.pop()
    {
        return answer;
    }
    let worst = answers.iter().max_by_key(|(_, answer)| answer.exit());
    let stopping = answers.iter().any(|(_, answer)| is_stopping(answer));
    let (code, exit) = match worst {
        Some((_, answer)) if !matches!(answer.exit(), Exit::Done | Exit::Pending) => {
            (answer.code, answer.exit())
        }
        Some((_, answer)) if answer.exit() == Exit::Pending => (Code::Stopping, Exit::Pending),
        _ if stopping => (Code::Stopping, Exit::Done),
        _ => (Code::Stopped, Exit::Done),
    };
    let failed = answers.iter().filter(|(_, answer)| !matches!(answer.exit(), Exit::Done | Exit::Pending));
    let failed: Vec<String> = failed.map(|(task, answer)| format!("`{task}` ({})", answer.code)).collect();
    let message = if failed.is_empty() {
        format!("{} task(s) stopped or stopping", answers.len())
    } else {
        let named = failed.join(", ");
        format!("{} of {} task(s) could not be stopped: {named}", failed.len(), answers.len())
    };
    let mut joined = Answer::new(context.command, code, message);
    joined.exit = Some(exit);
    joined.body = Some(told(&joined.message, &answers));
    let tasks: Vec<Value> = answers.into_iter().map(|(task, answer)| listed(&task, answer)).collect();
    joined.fields.insert("tasks".to_owned(), Value::Array(tasks));
    joined
}

/// The list for people. It is printed beside a refusal too: what was stopped is data all the same.
fn told(message: &str, answers: &[(String, Answer)]) -> String {
    use std::fmt::Write as _;
    let mut told = format!("{message}\n");
    for (task, answer) in answers {
        // Writing to a String cannot fail.
        let _ = writeln!(told, "  {task}: {} ({})", answer.code, answer.message);
        for cleanup in answer.fields.get("cleanupIds").and_then(Value::as_array).into_iter().flatten() {
            let _ = writeln!(told, "    cleanup {}", cleanup.as_str().unwrap_or_default());
        }
    }
    told
}

fn listed(task: &str, answer: Answer) -> Value {
    let mut object = crate::facts! {
        "taskId": task, "ok": answer.exit() == Exit::Done, "code": answer.code.as_str(),
    };
    object.extend(answer.fields);
    object.insert("message".to_owned(), json!(answer.message));
    Value::Object(object)
}
