//! `stop`: shuts the admission of tasks, each in a commit of its own, root first.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::cli::{CleanupArg, ReceiptCopies, StopArgs};
use crate::protocol::codes::{Code, Exit, ReceiptSource};
use crate::protocol::ids::{AttemptId, Name};
use crate::protocol::row::Row;
use crate::protocol::settlement::ClosingWords;
use crate::protocol::state::Phase;
use crate::protocol::stop::{self, NamedCleanup, Stop};
use crate::protocol::verdict::{Call, Refusal};
use crate::state::{Access, Store};

use super::context::Context;
use super::failure::Failure;
use super::owner::process;
use super::tokens::Keys;
use super::transact::{Ancestors, Grant, NOT_YET, Sight, TaskCall, digest};

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
        answers.push((task.clone(), job.stop(task, Part::Named)));
    }
    if args.tree {
        let roots = answers.iter().filter(|(_, answer)| stands(answer)).map(|(task, _)| task.clone());
        job.stop_descendants(&roots.collect::<Vec<_>>(), &mut answers)?;
    }
    if let Some(wait) = args.wait {
        job.wait(&mut answers, wait)?;
    }
    Ok(joined(context, answers, args.tree))
}

struct Job<'a> {
    context: &'a Context,
    store: &'a Store,
    keys: &'a Keys,
    args: &'a StopArgs,
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
        let named = self.named(cleanups)?;
        let cleanups: Vec<String> =
            cleanups.iter().map(|cleanup| format!("{}/{:?}", cleanup.name, cleanup.owner_pid)).collect();
        let call = TaskCall {
            context: self.context,
            store: self.store,
            keys: self.keys,
            task,
            ancestors: Ancestors::NotLookedAt,
            digest: digest(&[
                "stop",
                task.as_str(),
                attempt.as_ref().map_or("", AttemptId::as_str),
                self.args.reason.as_deref().unwrap_or_default(),
                self.args.failure.as_deref().unwrap_or_default(),
                &cleanups.join("\n"),
                if self.parent_only() { "parent-only" } else { "" },
            ]),
        };
        let judge = |row: &Row, _: &Sight<'_>, call: &Call| {
            let request = Stop { attempt: attempt.clone(), words: self.words(), cleanups: named.clone()? };
            stop::stop(row, &request, call)
        };
        call.run(&judge, &|_| Grant::default())
    }

    /// The debts to name. A debtor that cannot be recorded is refused only when the call is judged: a repeated
    /// call gets its first answer, also when the process it named is gone since.
    fn named(&self, cleanups: &[CleanupArg]) -> Result<Result<Vec<NamedCleanup>, Box<Refusal>>, Failure> {
        let mut named = Vec::new();
        for cleanup in cleanups {
            let process = match cleanup.owner_pid.map(|pid| process(self.context, pid)).transpose() {
                Ok(process) => process,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let id = self.context.fresh_cleanup()?;
            named.push(NamedCleanup { id, name: cleanup.name.to_string(), process });
        }
        Ok(Ok(named))
    }

    fn parent_only(&self) -> bool {
        self.args.receipt == ReceiptCopies::ParentOnly
    }

    fn words(&self) -> ClosingWords {
        ClosingWords {
            reason: self.args.reason.clone(),
            failure: self.args.failure.clone(),
            source: None,
            parent_only: self.parent_only(),
        }
    }

    /// Stops everything below the tasks, nearest to the root first, until a look finds nothing new: a child
    /// reserved meanwhile was reserved before its ancestor's Stop, and none can be after it.
    fn stop_descendants(&self, roots: &[Name], answers: &mut Vec<(Name, Answer)>) -> Result<(), Failure> {
        let mut done: HashSet<Name> = roots.iter().cloned().collect();
        loop {
            let mut found: Vec<(usize, Name)> = Vec::new();
            for entry in self.store.tasks()? {
                let Ok(document) = entry.doc else { continue };
                let row = document.row;
                let line = || std::iter::once(&row.parent_workspace_id).chain(&row.ancestors);
                if !done.contains(&row.task_id) && line().any(|ancestor| roots.contains(ancestor)) {
                    found.push((row.ancestors.len(), row.task_id));
                }
            }
            if found.is_empty() {
                return Ok(());
            }
            found.sort();
            for (_, task) in found {
                answers.push((task.clone(), self.stop(&task, Part::Below)));
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
                let settled = row.settlement.as_ref().and_then(|settlement| settlement.settled.as_ref());
                let receipt = settled.and_then(|settled| settled.receipt).map(ReceiptSource::as_str);
                answer.fields.insert("receipt".to_owned(), json!(receipt));
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
fn joined(context: &Context, mut answers: Vec<(Name, Answer)>, tree: bool) -> Answer {
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
    let tasks: Vec<Value> = answers.into_iter().map(|(task, answer)| listed(&task, answer)).collect();
    joined.fields.insert("tasks".to_owned(), Value::Array(tasks));
    joined
}

fn listed(task: &Name, answer: Answer) -> Value {
    let mut object = crate::facts! {
        "taskId": task, "ok": answer.exit() == Exit::Done, "code": answer.code.as_str(),
    };
    object.extend(answer.fields);
    object.insert("message".to_owned(), json!(answer.message));
    Value::Object(object)
}
