//! `import`: takes over the tasks of another application's root, a task a commit, and says what it left.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::cli::ImportArgs;
use crate::protocol::codes::{Code, Exit};
use crate::protocol::ids::{Name, Timestamp};
use crate::protocol::requests::Seen;
use crate::protocol::row::{Extra, ReportRef};
use crate::protocol::run::Run;
use crate::protocol::verdict::{Call, Facts, Refusal, Said};
use crate::protocol::xum::mapping::{self, LeftOut, TakenTask};
use crate::protocol::xum::runs::{self, Merged, TakenRun};
use crate::protocol::xum::{Reading, StepIndex, XumReport, XumRun, keep};
use crate::state::{
    Access, LockPlan, LockWait, REPORT_BYTES_MAX, ReceiptWrite, ReportInputError, ReportMeta, ReportWrite,
    RunKey, StateError, Store, Writes, XumRoot, chain,
};

use super::context::Context;
use super::failure::Failure;
use super::repeats::{Grant, digest, record};
use super::transact::{commit, rewrite, rewrite_run};
use super::xum::{read, told};

pub(crate) fn run(context: &Context, args: &ImportArgs) -> Result<Answer, Failure> {
    let root = XumRoot::open(&args.xum)?;
    let seen = read(&root)?;
    if !seen.is_steady {
        let message = format!("`{}` changes faster than it can be read", root.path().display());
        let refusal = Refusal::new(Code::IdentityChanged, message);
        return Err(Failure::Refused(Box::new(refusal.hint("stop the application, and ask again"))));
    }
    let store = match (args.dry_run, Store::open(&context.root, Access::Read)) {
        (true, Ok(store)) => Some(store),
        (true, Err(StateError::NoRoot { .. })) => None,
        (true, Err(error)) => return Err(error.into()),
        (false, _) => Some(Store::open(&context.root, Access::Write)?),
    };
    let source = root.path().display().to_string();
    let call = context.call();
    let mut pass = Pass {
        context,
        dry_run: args.dry_run,
        digest: digest(&["import", &source]),
        root: &root,
        store: store.as_ref(),
        steps: StepIndex::of(&seen.reading),
        reading: &seen.reading,
        source,
        call,
        counts: BTreeMap::new(),
        left: Vec::new(),
    };
    let stopped_by = pass.everything().err();
    // What the application did meanwhile is not here.
    let changed = root.read().ok().as_ref() != Some(&seen.reading);
    Ok(pass.answer(changed, stopped_by))
}

/// How many of one kind there are, and what became of them.
#[derive(Default)]
struct Count {
    taken: usize,
    already: usize,
    left: usize,
}

/// What becomes of one thing.
enum Done {
    Taken,
    Already,
    Left(LeftOut),
}

struct Pass<'a> {
    context: &'a Context,
    dry_run: bool,
    digest: String,
    root: &'a XumRoot,
    /// `None`: a dry run, and there is no root yet.
    store: Option<&'a Store>,
    reading: &'a Reading,
    steps: StepIndex<'a>,
    source: String,
    call: Call,
    counts: BTreeMap<&'static str, Count>,
    left: Vec<LeftOut>,
}

fn known(left: LeftOut) -> Done {
    if left.why == "already-imported" { Done::Already } else { Done::Left(left) }
}

/// What became of a run.
struct Made {
    is_new: bool,
    /// How many of its steps are new.
    n_steps: usize,
}

const KINDS: [(&str, &str); 6] = [
    ("task", "tasks"),
    ("report", "reports"),
    ("receipt", "receipts"),
    ("run", "runs"),
    ("step", "steps"),
    ("field", "fields"),
];

impl Pass<'_> {
    /// The runs first: a pass that dies must not leave a task whose step seems never to have had a child. Then the
    /// tasks, parents before their children. The first failure that is no matter of one of them ends the pass.
    fn everything(&mut self) -> Result<(), StateError> {
        for found in &self.reading.runs {
            if let Err(error) = self.run(found) {
                self.failed("run", &found.id, error)?;
            }
        }
        let mut ids: Vec<(usize, &String)> =
            self.reading.tasks.iter().map(|(id, facts)| (facts.line.len(), id)).collect();
        ids.sort();
        for (_, id) in ids {
            match self.task(id) {
                Ok(()) => {}
                Err(Failure::State(error)) => self.failed("task", id, error)?,
                Err(other) => {
                    let answer = other.into_answer(self.context.command);
                    self.leave(LeftOut::new("task", id, answer.code.as_str(), answer.message));
                }
            }
        }
        Ok(())
    }

    fn failed(&mut self, kind: &'static str, id: &str, error: StateError) -> Result<(), StateError> {
        if matches!(error.code().exit(), Exit::Io | Exit::Uncertain | Exit::Internal) {
            return Err(error);
        }
        let code = error.code().as_str();
        self.leave(LeftOut::new(kind, id, code, chain(&error)));
        Ok(())
    }

    fn leave(&mut self, left: LeftOut) {
        self.counts.entry(left.kind).or_default().left += 1;
        self.left.push(left);
    }

    fn count(&mut self, kind: &'static str, n: usize, done: &Done) {
        let count = self.counts.entry(kind).or_default();
        match done {
            Done::Taken => count.taken += n,
            Done::Already => count.already += n,
            Done::Left(_) => {}
        }
    }

    fn task(&mut self, id: &str) -> Result<(), Failure> {
        let Some(facts) = self.reading.tasks.get(id) else { return Ok(()) };
        let nonce = self.context.fresh_nonce()?;
        let mut taken = match mapping::task(id, facts, &self.steps, &self.source, nonce, &self.call) {
            Ok(taken) => taken,
            Err(left) => {
                self.leave(left);
                return Ok(());
            }
        };
        if let Some(left) = taken.report.as_ref().and_then(|report| unfit(id, report)) {
            taken.report = None;
            taken.left_out.push(left);
        }
        let (n_reports, n_receipts) = (usize::from(taken.report.is_some()), taken.receipts.len());
        let mut left_out = std::mem::take(&mut taken.left_out);
        let done = if self.dry_run {
            let existing = self.store.map(|store| store.read_task(&taken.row.task_id)).transpose()?.flatten();
            existing.map_or(Done::Taken, |document| {
                known(mapping::exists(&document.row, &taken.row, &self.source))
            })
        } else {
            self.write(id, taken, &mut left_out)?
        };
        self.count("task", 1, &done);
        self.count("report", n_reports, &done);
        self.count("receipt", n_receipts, &done);
        match done {
            Done::Taken => left_out.into_iter().for_each(|left| self.leave(left)),
            Done::Already => {}
            Done::Left(left) => self.leave(left),
        }
        Ok(())
    }

    /// One task in one commit: row, report and receipts.
    fn write(&self, id: &str, taken: TakenTask, left_out: &mut Vec<LeftOut>) -> Result<Done, Failure> {
        let Some(store) = self.store else { return Err(Failure::internal("a change without a root")) };
        let TakenTask { mut row, report, report_counts, receipts, .. } = taken;
        let plan = LockPlan { exclusive: vec![row.task_id.clone()], ..LockPlan::default() };
        let transaction = store.begin(&plan, LockWait(self.context.lock_wait))?;
        if let Some(existing) = transaction.row(&row.task_id) {
            // The same call again answers what it did the first time.
            if let Seen::Before(_) = existing.requests.seen(&self.context.request_id, &self.digest) {
                rewrite(self.context, &transaction, &row.task_id)?;
                return Ok(Done::Taken);
            }
            return Ok(known(mapping::exists(existing, &row, &self.source)));
        }
        let report = match report {
            None => None,
            Some(report) => Some(self.report(store, id, &report, &row.parent_workspace_id, &row.task_id)?),
        };
        let report = report.map(|(written, reference)| {
            mapping::bind(&mut row, reference, report_counts);
            written
        });
        let said = Said { code: Code::Imported, message: String::new(), facts: Facts::new() };
        row.remember(record(self.context, &self.digest, &said, &Grant::default()));
        let receipts =
            receipts.into_iter().map(|(receipt, workspaces)| ReceiptWrite { receipt, workspaces }).collect();
        let writes = Writes { rows: vec![*row], receipts, report, ..Writes::default() };
        match commit(self.context, transaction, writes) {
            Ok(()) => Ok(Done::Taken),
            Err(error @ (StateError::ReceiptConflict { .. } | StateError::ReportConflict { .. })) => {
                left_out.clear();
                Ok(Done::Left(LeftOut::new("task", id, error.code().as_str(), chain(&error))))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn report(
        &self,
        store: &Store,
        id: &str,
        report: &XumReport,
        parent: &Name,
        task: &Name,
    ) -> Result<(ReportWrite, ReportRef), Failure> {
        let text = self.root.report_text(id, report, store.root());
        let mut text = match text {
            Ok(Some(text)) => text,
            Ok(None) => return Err(changed(id)),
            Err(ReportInputError::Spool { source }) => return Err(Failure::spool(&source)),
            Err(error) => return Err(Failure::internal(chain(&error))),
        };
        let at: Timestamp = report.at.clone().unwrap_or_else(|| self.call.now.clone());
        let title = report.title.as_deref().map(|title| keep::shown(title).to_owned());
        let meta = ReportMeta {
            task: task.clone(),
            attempt: report.attempt.clone(),
            parent: parent.clone(),
            title: title.clone(),
            at: at.clone(),
        };
        let file_sha256 = text.file_digest(&meta).map_err(|source| Failure::spool(&source))?;
        let reference = ReportRef {
            attempt_id: report.attempt.clone(),
            text_sha256: text.sha256().to_owned(),
            text_bytes: text.bytes(),
            file_sha256,
            title,
            at,
            extra: Extra::new(),
        };
        Ok((ReportWrite { meta, text, late: false }, reference))
    }

    fn run(&mut self, found: &XumRun) -> Result<(), StateError> {
        let TakenRun { run, mut left_out } =
            match runs::run(found, self.reading, &self.steps, &self.source, &self.call) {
                Ok(mapped) => mapped,
                Err(left) => {
                    self.leave(left);
                    return Ok(());
                }
            };
        let n_steps = run.steps.len();
        let made = match self.write_run(run, &mut left_out)? {
            Ok(made) => made,
            Err(left) => {
                self.leave(left);
                return Ok(());
            }
        };
        self.count("run", 1, if made.is_new { &Done::Taken } else { &Done::Already });
        self.count("step", made.n_steps, &Done::Taken);
        self.count("step", n_steps.saturating_sub(made.n_steps), &Done::Already);
        for left in left_out {
            self.leave(left);
        }
        Ok(())
    }

    /// One run in one commit. `left_out` is what is left of it, as far as that is news.
    fn write_run(&self, run: Run, left_out: &mut Vec<LeftOut>) -> Result<Result<Made, LeftOut>, StateError> {
        let new = Made { is_new: true, n_steps: run.steps.len() };
        let Some(store) = self.store else { return Ok(Ok(new)) };
        let key = RunKey { parent: run.parent_workspace_id.clone(), run: run.run_id.clone() };
        if self.dry_run {
            let existing = store.read_run(&key)?;
            return Ok(
                existing.map_or(Ok(new), |document| self.merged(&document.run, &run, left_out).map(|m| m.0))
            );
        }
        let plan = LockPlan { run: Some(key), ..LockPlan::default() };
        let transaction = store.begin(&plan, LockWait(self.context.lock_wait))?;
        let Some(existing) = transaction.run() else {
            commit(self.context, transaction, Writes { run: Some(run), ..Writes::default() })?;
            return Ok(Ok(new));
        };
        if let Some((is_new, n_steps)) = runs::added_by(existing, &self.call) {
            // What changed there is told again with the rest.
            let merged = runs::merge(existing, &run, &self.call).ok().filter(|_| !is_new);
            left_out.extend(merged.into_iter().flat_map(|merged| merged.left_out));
            rewrite_run(self.context, &transaction)?;
            return Ok(Ok(Made { is_new, n_steps }));
        }
        let (made, run) = match self.merged(existing, &run, left_out) {
            Ok(merged) => merged,
            Err(left) => return Ok(Err(left)),
        };
        if run.is_some() {
            commit(self.context, transaction, Writes { run, ..Writes::default() })?;
        }
        Ok(Ok(made))
    }

    /// What a run that is here gets from this import.
    fn merged(
        &self,
        existing: &Run,
        now: &Run,
        left_out: &mut Vec<LeftOut>,
    ) -> Result<(Made, Option<Run>), LeftOut> {
        let Merged { run, added, left_out: changed } = runs::merge(existing, now, &self.call)?;
        // What was left the first time was told then.
        if run.is_none() {
            left_out.clear();
        }
        left_out.extend(changed);
        Ok((Made { is_new: false, n_steps: added }, run))
    }

    fn answer(self, changed: bool, stopped_by: Option<StateError>) -> Answer {
        let taken = |kind: &str| self.counts.get(kind).map_or(0, |count| count.taken);
        let verb = if self.dry_run { "would be taken over" } else { "taken over" };
        let message = format!(
            "{} task(s), {} report(s), {} receipt(s) and {} run(s) {verb}; {} left",
            taken("task"),
            taken("report"),
            taken("receipt"),
            taken("run"),
            self.left.len()
        );
        let mut answer = Answer::new(self.context.command, Code::Imported, message);
        answer.fields = crate::facts! { "xumRoot": self.source, "dryRun": self.dry_run };
        let none = Count::default();
        for (kind, field) in KINDS {
            let count = self.counts.get(kind).unwrap_or(&none);
            let told = json!({ "taken": count.taken, "already": count.already, "left": count.left });
            answer.fields.insert(field.to_owned(), told);
        }
        let left: Vec<Value> = self
            .left
            .iter()
            .map(|left| json!({ "kind": left.kind, "id": left.id, "why": left.why, "says": left.says }))
            .collect();
        answer.fields.insert("left".to_owned(), left.into());
        answer.fields.insert("problems".to_owned(), self.reading.problems.iter().map(told).collect());
        answer.fields.insert("changedMeanwhile".to_owned(), changed.into());
        if changed {
            answer.hint = Some(format!(
                "`{}` was changed meanwhile: stop the application, and look at it with inspect --xum",
                self.source
            ));
        }
        if let Some(error) = stopped_by {
            answer.code = error.code();
            answer.message = format!("{}; until then: {}", chain(&error), answer.message);
            answer.hint = error.hint();
        }
        answer
    }
}

fn changed(id: &str) -> Failure {
    let message = format!("the report of `{id}` is not the one any more that was found");
    Failure::Refused(Box::new(Refusal::new(Code::IdentityChanged, message)))
}

/// A report that ours cannot be. Its task is taken over without it.
fn unfit(id: &str, report: &XumReport) -> Option<LeftOut> {
    let left = |code: Code| Some(LeftOut::new("report", id, code.as_str(), code.meaning()));
    if report.is_blank {
        left(Code::ReportEmpty)
    } else if report.text_bytes > REPORT_BYTES_MAX {
        left(Code::ReportTooLarge)
    } else {
        None
    }
}
