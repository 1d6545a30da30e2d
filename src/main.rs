//! Parse, run, print, exit.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use lychgate::answer::{self, Answer, Style, deliver};
use lychgate::cli;
use lychgate::commands::{self, Environment};
use lychgate::protocol::codes::Code;
use lychgate::supervisor;

#[allow(clippy::disallowed_methods, reason = "the program's own arguments are read here, once")]
fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    let worker = cli::Worker::read(&args);
    if let Some((_, call)) = &worker {
        args.clone_from(call);
    } else if let Some(call) = cli::hook_call(&args) {
        return supervisor::run(call, &args, commands::boot_ms());
    }
    let environment = Environment::read().called_as(args.first());
    let (answer, style) = match cli::parse(&args) {
        Ok(mut cli) => {
            cli.global.worker = worker.map(|(worker, _)| worker);
            let style = match cli.global.worker {
                // An agent understands its own form only, whatever form the call asks for.
                Some(_) => Style::default(),
                None => commands::style(&cli.global, &environment, io::stderr().is_terminal()),
            };
            (commands::run(&cli, &environment, &style), style)
        }
        Err(error) => match answer::usage_answer(&error, &args) {
            Ok(answer) => (answer, answer::scanned_style(&args)),
            Err(help) => return print_help(&help),
        },
    };
    print(&answer, &style)
}

fn print(answer: &Answer, style: &Style) -> ExitCode {
    // Whatever its form, it would be lost there.
    if answer.code == Code::OutputUnusable {
        return complain(answer);
    }
    let delivered = deliver(&answer.render(style), &mut io::stdout().lock(), &mut io::stderr().lock());
    match delivered {
        Ok(()) => ExitCode::from(answer.exit().number()),
        Err(error) => complain(&commands::undelivered(answer, &error)),
    }
}

/// Tells on standard error what standard output cannot take.
fn complain(answer: &Answer) -> ExitCode {
    let rendered = answer.render(&Style::default());
    // There is nobody left to tell if standard error is gone too.
    drop(deliver(&rendered, &mut io::sink(), &mut io::stderr().lock()));
    ExitCode::from(answer.exit().number())
}

fn print_help(help: &str) -> ExitCode {
    if let Some(answer) = commands::refuse_unusable_output("") {
        return complain(&answer);
    }
    let rendered = answer::Rendered { stdout: help.as_bytes().to_vec(), stderr: Vec::new() };
    match deliver(&rendered, &mut io::stdout().lock(), &mut io::stderr().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let nothing = Answer::new("", Code::Ok, "");
            complain(&commands::undelivered(&nothing, &error))
        }
    }
}
