//! `background`, `notify`, `cron` and `gaps`: what lives beside the turn, and what waits for one.

use crate::answer::Answer;
use crate::cli::{BackgroundAct, BackgroundArgs, CronArgs, GapsArgs, NotifyArgs, QueueAct};
use crate::protocol::guard::background::TaskKind;
use crate::protocol::guard::request::{Background, CronRequest, MARK_MS, Notify, Request, TAKEN_MS};
use crate::protocol::ids::{MarkId, Name};

use super::super::context::Context;
use super::super::failure::Failure;
use super::input::text_if_given;
use super::{act, act_for};

pub(crate) fn background(context: &Context, args: &BackgroundArgs) -> Result<Answer, Failure> {
    let task = args.task.clone();
    let background = match args.act {
        BackgroundAct::Start => Background::Start {
            task,
            kind: args.kind.unwrap_or(TaskKind::Agent),
            parent: args.parent.clone(),
            owner: args.owner.clone(),
            process: None,
            told_by_agent: false,
        },
        BackgroundAct::End => Background::End(task),
        BackgroundAct::Mark => Background::Mark(task, args.lifetime.or_ms(MARK_MS)),
        BackgroundAct::Commit => Background::Commit(task, mark(args)?),
        BackgroundAct::Rollback => Background::Rollback(task, mark(args)?),
    };
    act_for(context, &args.session, &[Request::Background(background)], args.owner_pid)
}

fn mark(args: &BackgroundArgs) -> Result<MarkId, Failure> {
    args.mark.clone().ok_or_else(|| Failure::usage("--mark is missing"))
}

fn item(given: Option<&Name>) -> Result<Name, Failure> {
    given.cloned().ok_or_else(|| Failure::usage("the item to acknowledge is missing"))
}

pub(crate) fn notify(context: &Context, args: &NotifyArgs) -> Result<Answer, Failure> {
    let notify = match args.act {
        QueueAct::Put => Notify::Put {
            id: args.id.clone(),
            task: args.task.clone().ok_or_else(|| Failure::usage("--task is missing"))?,
            kind: args.kind.as_ref().map(|kind| kind.as_str().to_owned()),
            status: args.status.as_ref().map(|status| status.as_str().to_owned()),
            text: text_if_given(args.file.as_ref())?,
        },
        QueueAct::Take => Notify::Take { for_ms: args.lifetime.or_ms(TAKEN_MS), process: None },
        QueueAct::Ack => Notify::Ack(item(args.item.as_ref())?),
    };
    act_for(context, &args.session, &[Request::Notify(notify)], args.owner_pid)
}

pub(crate) fn cron(context: &Context, args: &CronArgs) -> Result<Answer, Failure> {
    let cron = match args.act {
        QueueAct::Put => CronRequest::Put {
            id: args.id.clone(),
            task: args.task.clone().ok_or_else(|| Failure::usage("--task is missing"))?,
            wakeup: args.wakeup,
            text: text_if_given(args.file.as_ref())?,
        },
        QueueAct::Take => CronRequest::Take { for_ms: args.lifetime.or_ms(TAKEN_MS), process: None },
        QueueAct::Ack => CronRequest::Ack(item(args.item.as_ref())?),
    };
    act_for(context, &args.session, &[Request::Cron(cron)], args.owner_pid)
}

pub(crate) fn gaps(context: &Context, args: &GapsArgs) -> Result<Answer, Failure> {
    act(context, &args.session, &[Request::Gaps(args.ack.clone())])
}
