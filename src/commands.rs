//! One file a verb: arguments in, a judged transaction, an answer out. No rules and no paths here.

mod admit;
mod children;
mod claim_retire;
mod context;
mod evidence;
mod failure;
mod guard;
mod handout;
mod hook;
mod import;
mod input;
mod inspect;
mod inspect_run;
mod inspect_session;
mod owner;
mod recover;
mod repeats;
mod report;
mod reserve;
mod reserve_step;
mod rotate;
mod runs;
mod settle;
mod step;
mod stop;
mod tokens;
mod transact;
mod wait;
mod xum;

pub use context::{Environment, boot_ms};

use crate::answer::{Answer, Style};
use crate::cli::{Cli, Command, Global};
use crate::protocol::codes::{Code, Exit};
use crate::stdio::{Stdout, stdout_state};

use context::Context;
use failure::Failure;

/// Runs one call and answers it.
pub fn run(cli: &Cli, environment: &Environment, style: &Style) -> Answer {
    let command = cli.command.name();
    if let Some(answer) = refuse_unusable_output(command) {
        return answer;
    }
    let context = match Context::new(command, &cli.global, environment) {
        Ok(context) => context,
        Err(failure) => return failure.into_answer(command),
    };
    let done = match context.worker.as_ref().and_then(|worker| worker.trouble.as_deref()) {
        Some(trouble) => hook::note(&context, &cli.command, trouble),
        None => dispatch(&context, &cli.command, style),
    };
    let mut answer = done.unwrap_or_else(|failure| failure.into_answer(command));
    if context.worker.is_some() && answer.exit() != Exit::Done {
        drop(hook::note(&context, &cli.command, &answer.message));
    }
    answer.root.get_or_insert_with(|| context.shown_root());
    answer.changed = context.answers_change.get() || answer.exit() == Exit::Uncertain;
    answer.request_id = Some(context.request_id);
    answer
}

fn dispatch(context: &Context, command: &Command, style: &Style) -> Result<Answer, Failure> {
    match command {
        Command::Reserve(args) => reserve::run(context, args),
        Command::Rotate(args) => rotate::run(context, args),
        Command::Admit(args) => admit::run(context, args),
        Command::Stop(args) => stop::run(context, args),
        Command::Settle(args) => settle::run(context, args),
        Command::Report(args) => report::run(context, args),
        Command::ClaimRetire(args) => claim_retire::run(context, args),
        Command::Step(args) => step::run(context, args),
        Command::Wait(args) => wait::run(context, args),
        Command::Inspect(args) => inspect::run(context, args, style),
        Command::Recover(args) => recover::run(context, args),
        Command::Import(args) => import::run(context, args),
        Command::Session(args) => guard::session(context, args),
        Command::Prompt(args) => guard::prompt(context, args),
        Command::Claim(args) => guard::claim(context, args),
        Command::Release(args) => guard::release(context, args),
        Command::Say(args) => guard::say(context, args),
        Command::Drain(args) => guard::drain(context, args),
        Command::Todo(args) => guard::todo(context, args),
        Command::EndTurn(args) => guard::end_turn(context, args),
        Command::Background(args) => guard::background(context, args),
        Command::Notify(args) => guard::notify(context, args),
        Command::Cron(args) => guard::cron(context, args),
        Command::Gaps(args) => guard::gaps(context, args),
        Command::Hook(args) => hook::run(context, args),
    }
}

/// An answer that cannot be delivered is not worth a change: standard output is looked at before anything.
pub fn refuse_unusable_output(command: &'static str) -> Option<Answer> {
    let what = match stdout_state() {
        Stdout::Usable => return None,
        Stdout::Closed => "closed",
        Stdout::ReadOnly => "open for reading only",
        Stdout::NoReader => "a pipe that nobody reads any more",
    };
    let answer =
        Answer::new(command, Code::OutputUnusable, format!("standard output is {what}, so nothing was done"));
    Some(answer.hint("redirect it to a file or to /dev/null if the answer is not wanted"))
}

/// How the answer shall look: as asked, and as wide as the terminal says.
pub fn style(global: &Global, environment: &Environment, is_terminal: bool) -> Style {
    Style {
        format: global.format(),
        print: global.print.clone(),
        show_token: global.show_token,
        colour: is_terminal && !environment.no_colour(),
        width: environment.width(),
    }
}

/// The answer to a call whose answer could not be delivered. If that told of a change, whether it granted or
/// refused, its caller must ask again; else nothing was changed.
pub fn undelivered(answer: &Answer, error: &std::io::Error) -> Answer {
    let changed = answer.changed;
    let (code, what) = if answer.exit() == Exit::Uncertain {
        (answer.code, "neither was the change proven durable nor could its answer be printed")
    } else if changed {
        (Code::AnswerNotDelivered, "the change is durable, but its answer could not be printed")
    } else {
        (Code::OutputUnusable, "the answer could not be printed")
    };
    let mut lost = Answer::new(answer.command, code, format!("{what}: {error}"));
    lost.request_id.clone_from(&answer.request_id);
    if let (true, Some(id)) = (changed, &answer.request_id) {
        lost = lost.hint(format!("repeat the call with --request-id {id}; it answers what this one did"));
    }
    lost
}
