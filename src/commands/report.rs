//! `report`: publishes the report of an attempt, or prints it.

use serde_json::json;

use crate::answer::Answer;
use crate::cli::{Input, ReportArgs};
use crate::protocol::codes::Code;
use crate::protocol::ids::{AttemptId, Name};
use crate::protocol::report::{Publication, Publishing, publish};
use crate::protocol::requests::Seen;
use crate::protocol::row::ReportRef;
use crate::protocol::verdict::{Refusal, Said};
use crate::state::{
    Access, Document, Evidence, LockPlan, ReportInputError, ReportMeta, ReportText, ReportWrite, Store,
    Transaction, Writes, chain,
};

use super::context::Context;
use super::failure::Failure;
use super::repeats::{self, Grant, digest};
use super::tokens::{Keys, worker_keys};
use super::transact::{self, begin, no_task};

pub(crate) fn run(context: &Context, args: &ReportArgs) -> Result<Answer, Failure> {
    let task = context.task_or_environment(args.task.as_ref())?;
    if args.show {
        return show(context, args, &task);
    }
    let attempt = context
        .attempt_or_environment(args.attempt.as_ref(), &task)?
        .ok_or_else(|| Failure::usage("--attempt is missing, and LYCHGATE_ATTEMPT is not set"))?;
    let store = Store::open(&context.root, Access::Change)?;
    let keys = worker_keys(&store, &args.token, context, &task)?;
    // The text is read in full before any lock is taken: whoever writes it may be slow.
    let text = read(&store, args.file.as_ref())?;
    let job = Job { context, store: &store, keys: &keys, args, task, attempt };
    job.run(text)
}

struct Job<'a> {
    context: &'a Context,
    store: &'a Store,
    keys: &'a Keys,
    args: &'a ReportArgs,
    task: Name,
    attempt: AttemptId,
}

fn read(store: &Store, file: Option<&Input>) -> Result<ReportText, Failure> {
    let spooled = match file {
        Some(Input::File(path)) => ReportText::spool_file(path, store.root()),
        Some(Input::Stdin) | None => ReportText::spool_stdin(store.root()),
    };
    spooled.map_err(|error| {
        let code = match &error {
            ReportInputError::Empty | ReportInputError::Terminal => Code::ReportEmpty,
            ReportInputError::TooLarge => Code::ReportTooLarge,
            ReportInputError::NotText => Code::ReportNotText,
            ReportInputError::Unreadable { .. } => Code::Usage,
            ReportInputError::Spool { .. } => Code::Io,
        };
        Failure::Call { code, message: chain(&error), hint: Some("nothing was changed".to_owned()) }
    })
}

impl Job<'_> {
    fn run(&self, mut text: ReportText) -> Result<Answer, Failure> {
        let seen = self.store.read_task(&self.task)?.ok_or_else(|| no_task(&self.task))?;
        let digest = digest(&[
            "report",
            self.task.as_str(),
            self.attempt.as_str(),
            self.args.title.as_deref().unwrap_or_default(),
            text.sha256(),
        ]);
        let call = self.context.call();
        let meta = ReportMeta {
            task: self.task.clone(),
            attempt: Some(self.attempt.clone()),
            parent: seen.row.parent_workspace_id,
            title: self.args.title.clone(),
            at: call.now.clone(),
        };
        let file_sha256 = text.file_digest(&meta).map_err(|source| Failure::spool(&source))?;
        let plan = LockPlan { exclusive: vec![self.task.clone()], ..LockPlan::default() };
        let transaction = begin(self.context, self.store, &plan, &|| Ok(()))?;
        let document = transaction.document(&self.task).cloned().ok_or_else(|| no_task(&self.task))?;
        match document.row.requests.seen(&self.context.request_id, &digest) {
            Seen::Never => {}
            Seen::Before(record) => {
                let answer = repeats::repeated(self.context, self.keys, record);
                transact::rewrite(self.context, &transaction, &self.task)?;
                return answer.map(|answer| self.with_path(answer, &meta.parent));
            }
            Seen::ForAnother(record) => return Err(repeats::reused(self.context, record)),
        }
        let publication = Publication {
            attempt: self.attempt.clone(),
            text_sha256: text.sha256().to_owned(),
            text_bytes: text.bytes(),
            file_sha256,
            title: self.args.title.clone(),
            kept_late: self.store.late_exists(&meta.parent, &self.task, &self.attempt, text.sha256()),
        };
        let publishing = publish(&document.row, &publication, self.keys, &call);
        if let Publishing::Already(_) = &publishing {
            self.rest_on_report(&transaction, &document)?;
        }
        self.commit(transaction, publishing, meta, text, &digest)
    }

    fn commit(
        &self,
        transaction: Transaction<'_>,
        publishing: Publishing,
        meta: ReportMeta,
        text: ReportText,
        digest: &str,
    ) -> Result<Answer, Failure> {
        let parent = meta.parent.clone();
        match publishing {
            Publishing::Accept { mut row, said } => {
                row.remember(repeats::record(self.context, digest, &said, &Grant::default()));
                let report = Some(ReportWrite { meta, text, late: false });
                transact::commit(
                    self.context,
                    transaction,
                    Writes { rows: vec![*row], report, ..Writes::default() },
                )?;
                Ok(self.with_path(self.answer(said), &parent))
            }
            Publishing::Already(said) => {
                transact::rewrite(self.context, &transaction, &self.task)?;
                Ok(self.with_path(self.answer(said), &parent))
            }
            Publishing::Late { row, refusal } => {
                match row {
                    Some(row) => {
                        let report = Some(ReportWrite { meta, text, late: true });
                        transact::commit(
                            self.context,
                            transaction,
                            Writes { rows: vec![*row], report, ..Writes::default() },
                        )?;
                    }
                    None => transact::rewrite(self.context, &transaction, &self.task)?,
                }
                Err(Failure::Refused(refusal))
            }
        }
    }

    /// That this attempt has reported is answered again only as long as its report is there and whole.
    fn rest_on_report(&self, transaction: &Transaction<'_>, document: &Document) -> Result<(), Failure> {
        let published = |report: &&ReportRef| report.attempt_id.as_ref() == Some(&self.attempt);
        let Some(report) = document.row.reports.iter().find(published) else { return Ok(()) };
        found(&self.task, self.store.read_report(document, report), "the report file is missing")?;
        let parent = &document.row.parent_workspace_id;
        Ok(transaction.sync_report(parent, &self.task, Some(&self.attempt))?)
    }

    fn answer(&self, said: Said) -> Answer {
        repeats::granted(self.context, self.keys, said, &Grant::default())
    }

    /// Reads nothing: whether the answer is whole must not hang on a reading after the commit.
    fn with_path(&self, mut answer: Answer, parent: &Name) -> Answer {
        let path = self.store.report_path(parent, &self.task, Some(&self.attempt));
        answer.fields.insert("reportPath".to_owned(), json!(path.display().to_string()));
        answer
    }
}

/// The text of the report that counts, or of the late ones in the order they were kept.
fn show(context: &Context, args: &ReportArgs, task: &Name) -> Result<Answer, Failure> {
    let store = Store::open(&context.root, Access::Read)?;
    let document = store.read_task(task)?.ok_or_else(|| no_task(task))?;
    let mut text = Vec::new();
    let what = if args.late {
        show_late(&store, &document, &mut text)?;
        "late reports"
    } else {
        let Some(report) = document.row.counted_report() else {
            return Err(nothing(task, "published no report"));
        };
        found(task, store.show_report(&document, report, &mut text), "the report file is missing")?;
        "report"
    };
    let text = String::from_utf8(text).map_err(|_| unreadable(task, "it is not UTF-8"))?;
    let row = &document.row;
    let answer = Answer::new(context.command, Code::Ok, format!("the {what} of task `{task}`"))
        .field("taskId", task.as_str())
        .field("taskStatus", row.task_status.as_str())
        .field("reportAttemptId", row.report_attempt_id.as_ref().map(AttemptId::as_str))
        .field("lateReports", row.late_reports)
        .field("text", text.as_str());
    Ok(answer.verbatim(text))
}

fn show_late(store: &Store, document: &Document, text: &mut Vec<u8>) -> Result<(), Failure> {
    let row = &document.row;
    let late = store.late_reports(document).map_err(|why| unreadable(&row.task_id, &why))?;
    if (late.len() as u64) < row.late_reports {
        let why = format!("{} late reports were kept, and {} are there", row.late_reports, late.len());
        return Err(unreadable(&row.task_id, &why));
    }
    if late.is_empty() {
        return Err(nothing(&row.task_id, "has no late report"));
    }
    for report in &late {
        let start = text.len();
        let shown = store.show_late(document, report, text);
        found(&row.task_id, shown, "a late report is missing")?;
        // One report ends where the next begins: each starts on a line of its own.
        if late.len() > 1 && text.len() > start && text.last() != Some(&b'\n') {
            text.push(b'\n');
        }
    }
    Ok(())
}

fn found(task: &Name, shown: Evidence<()>, missing: &str) -> Result<(), Failure> {
    match shown {
        Evidence::Found(()) => Ok(()),
        Evidence::NotFound => Err(unreadable(task, missing)),
        Evidence::Unreadable(why) => Err(unreadable(task, &why)),
    }
}

fn nothing(task: &Name, what: &str) -> Failure {
    let refusal = Refusal::new(Code::NoReport, format!("task `{task}` {what}")).fact("taskId", task.as_str());
    Failure::Refused(Box::new(refusal))
}

fn unreadable(task: &Name, why: &str) -> Failure {
    let message = format!("the report of task `{task}` is not what its row says: {why}");
    Failure::Refused(Box::new(Refusal::new(Code::ReportUnreadable, message).fact("taskId", task.as_str())))
}
