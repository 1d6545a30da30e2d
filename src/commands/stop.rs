//! `stop`: shuts the admission of tasks, each in a commit of its own, root first.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::cli::{ReceiptCopies, StopArgs};
use crate::protocol::codes::{Code, Exit};
use crate::protocol::ids::{AttemptId, Name};
use crate::protocol::settlement::ClosingWords;
use crate::protocol::state::Phase;
use crate::protocol::stop::{self, NamedCleanup, Stop};
use crate::state::{Access, Store};

use super::context::Context;
use super::failure::Failure;
use super::owner::process;
use super::tokens::Keys;
use super::transact::{Ancestors, Grant, NOT_YET, TaskCall, digest};

pub(crate) fn run(context: &Context, args: &StopArgs) -> Result<Answer, Failure> {
    let tasks = match args.tasks.as_slice() {
        [] => vec![context.task_or_environment(None)?],
        tasks => tasks.to_vec(),
    };
    let store = Store::open(&context.root, Access::Write)?;
    let keys = Keys::without_token(&store)?;
    let job = Job { context, store: &store, keys: &keys, args };
    let mut answers: Vec<(Name, Answer)> = Vec::new();
    for task in &tasks {
        answers.push((task.clone(), job.stop(task)));
    }
    let unreadable = if args.tree { job.stop_descendants(&tasks, &mut answers)? } else { Vec::new() };
    if let Some(wait) = args.wait {
        job.wait(&mut answers, wait)?;
    }
    let answers = answers.into_iter().map(|(task, answer)| (task.to_string(), answer));
    Ok(joined(context, answers.chain(unreadable).collect(), args.tree))
}

struct Job<'a> {
    context: &'a Context,
    store: &'a Store,
    keys: &'a Keys,
    args: &'a StopArgs,
}

impl Job<'_> {
    fn stop(&self, task: &Name) -> Answer {
        self.try_stop(task).unwrap_or_else(|failure| failure.into_answer(self.context.command))
    }

    fn try_stop(&self, task: &Name) -> Result<Answer, Failure> {
        let attempt = self.context.attempt_or_environment(self.args.attempt.as_ref(), task)?;
        let request = self.request(attempt)?;
        let cleanups: Vec<String> = self
            .args
            .cleanups
            .0
            .iter()
            .map(|cleanup| format!("{}/{:?}", cleanup.name, cleanup.owner_pid))
            .collect();
        let call = TaskCall {
            context: self.context,
            store: self.store,
            keys: self.keys,
            task,
            ancestors: Ancestors::NotLookedAt,
            digest: digest(&[
                "stop",
                task.as_str(),
                request.attempt.as_ref().map_or("", AttemptId::as_str),
                self.args.reason.as_deref().unwrap_or_default(),
                self.args.failure.as_deref().unwrap_or_default(),
                &cleanups.join("\n"),
            ]),
        };
        call.run(&|row, _, call| stop::stop(row, &request, call), &|_| Grant::default())
    }

    fn request(&self, attempt: Option<AttemptId>) -> Result<Stop, Failure> {
        let mut cleanups = Vec::new();
        for cleanup in &self.args.cleanups.0 {
            cleanups.push(NamedCleanup {
                id: self.context.fresh_cleanup()?,
                name: cleanup.name.to_string(),
                process: cleanup.owner_pid.map(|pid| process(self.context, pid)).transpose()?,
            });
        }
        Ok(Stop {
            attempt,
            words: ClosingWords {
                reason: self.args.reason.clone(),
                failure: self.args.failure.clone(),
                source: None,
                parent_only: self.args.receipt == ReceiptCopies::ParentOnly,
            },
            cleanups,
        })
    }

    /// Stops everything below the tasks, nearest to the root first, until a look finds nothing new: a child
    /// reserved meanwhile was reserved before its ancestor's Stop, and none can be after it. Answers with the
    /// folders of the rows that cannot be read: each may be a descendant's, and was not stopped.
    fn stop_descendants(
        &self,
        roots: &[Name],
        answers: &mut Vec<(Name, Answer)>,
    ) -> Result<Vec<(String, Answer)>, Failure> {
        let mut done: HashSet<Name> = roots.iter().cloned().collect();
        loop {
            let mut found: Vec<(usize, Name)> = Vec::new();
            let mut unreadable = Vec::new();
            for entry in self.store.tasks()? {
                let answered = done.iter().any(|task| entry.is_of(task));
                let row = match entry.doc {
                    Ok(document) => document.row,
                    Err(_) if answered => continue,
                    Err(error) => {
                        unreadable
                            .push((entry.folder, Failure::from(error).into_answer(self.context.command)));
                        continue;
                    }
                };
                let line = || std::iter::once(&row.parent_workspace_id).chain(&row.ancestors);
                if !done.contains(&row.task_id) && line().any(|ancestor| roots.contains(ancestor)) {
                    found.push((row.ancestors.len(), row.task_id));
                }
            }
            if found.is_empty() {
                return Ok(unreadable);
            }
            found.sort();
            for (_, task) in found {
                answers.push((task.clone(), self.stop(&task)));
                done.insert(task);
            }
        }
    }

    /// Waits, without a lock, until nothing is owed any more.
    #[allow(clippy::disallowed_methods, reason = "a wait ends by the clock, and grants nothing")]
    fn wait(&self, answers: &mut [(Name, Answer)], wait: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + wait;
        for (task, answer) in answers.iter_mut().filter(|(_, answer)| answer.exit() == Exit::Done) {
            loop {
                let Some(document) = self.store.read_task(task)? else { break };
                let row = document.row;
                answer.fields.insert("phase".to_owned(), json!(row.phase().as_str()));
                answer.fields.insert("owed".to_owned(), json!(row.owed()));
                if row.phase() != Phase::Closing {
                    if answer.code == Code::Stopping || answer.code == Code::AlreadyStopping {
                        answer.code = Code::Stopped;
                        answer.message = format!("task `{task}` is stopped");
                    }
                    break;
                }
                if Instant::now() >= deadline {
                    answer.exit = Some(NOT_YET);
                    break;
                }
                std::thread::sleep(POLL);
            }
        }
        Ok(())
    }
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
    let stopping =
        answers.iter().any(|(_, answer)| matches!(answer.code, Code::Stopping | Code::AlreadyStopping));
    let (code, exit) = match worst {
        Some((_, answer)) if !matches!(answer.exit(), Exit::Done | Exit::Pending) => {
            (answer.code, answer.exit())
        }
        Some((_, answer)) if answer.exit() == Exit::Pending => (Code::Stopping, Exit::Pending),
        _ if stopping => (Code::Stopping, Exit::Done),
        _ => (Code::Stopped, Exit::Done),
    };
    let n_failed =
        answers.iter().filter(|(_, answer)| !matches!(answer.exit(), Exit::Done | Exit::Pending)).count();
    let message = match n_failed {
        0 => format!("{} task(s) stopped or stopping", answers.len()),
        n => format!("{n} of {} task(s) could not be stopped", answers.len()),
    };
    let mut joined = Answer::new(context.command, code, message);
    joined.exit = Some(exit);
    let tasks: Vec<Value> = answers.into_iter().map(|(task, answer)| listed(&task, answer)).collect();
    joined.fields.insert("tasks".to_owned(), Value::Array(tasks));
    joined
}

fn listed(task: &str, answer: Answer) -> Value {
    let mut object = crate::facts! {
        "taskId": task, "ok": answer.exit() == Exit::Done, "code": answer.code.as_str(),
    };
    object.extend(answer.fields);
    object.insert("message".to_owned(), json!(answer.message));
    Value::Object(object)
}
