//! The answer to a call that could not be read, in the form the call asked for as far as that can be told.

use std::ffi::OsString;

use clap::ValueEnum;
use clap::error::ErrorKind;

use super::{Answer, Format, Style};
use crate::cli::COMMAND_NAMES;
use crate::protocol::codes::Code;

/// Turns an error of the command line into an answer, or into the help or version text that was asked for.
pub fn usage_answer(error: &clap::Error, args: &[OsString]) -> Result<Answer, String> {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Err(text);
    }
    let command = command_name(args);
    let help = match command {
        "" => "see `lychgate --help`".to_owned(),
        command => format!("see `lychgate {command} --help`"),
    };
    let hint = match tip(&text) {
        Some(tip) => format!("{tip}; {help}"),
        None => help,
    };
    Ok(Answer::new(command, Code::Usage, first_paragraph(&text)).hint(hint))
}

/// The style that a call asked for, read from its arguments without understanding them.
pub fn scanned_style(args: &[OsString]) -> Style {
    let mut style = Style::default();
    let mut args = before_dashes(args);
    while let Some(arg) = args.next() {
        let (option, attached) = match arg.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (arg, None),
        };
        match option {
            "--json" => style.format = Format::Json,
            "--show-token" => style.show_token = true,
            "--format" => {
                let wanted = attached.or_else(|| args.next());
                style.format =
                    wanted.and_then(|word| Format::from_str(word, false).ok()).unwrap_or(style.format);
            }
            "--print" => {
                let fields = attached.or_else(|| args.next()).unwrap_or_default();
                style.print.extend(fields.split(',').map(str::to_owned));
            }
            _ if takes_value(option) && attached.is_none() => drop(args.next()),
            _ => {}
        }
    }
    style
}

fn command_name(args: &[OsString]) -> &'static str {
    let mut args = before_dashes(args);
    while let Some(arg) = args.next() {
        if takes_value(arg) {
            args.next();
        } else if !arg.starts_with('-') {
            return COMMAND_NAMES.into_iter().find(|name| *name == arg).unwrap_or("");
        }
    }
    ""
}

/// The arguments that can be options, without the program's name. What is not UTF-8 is none of them.
fn before_dashes(args: &[OsString]) -> impl Iterator<Item = &str> {
    args.iter().skip(1).map(|arg| arg.to_str().unwrap_or("-")).take_while(|arg| *arg != "--")
}

/// The global options whose value may follow as the next argument.
fn takes_value(option: &str) -> bool {
    matches!(option, "--root" | "--format" | "--print" | "--lock-wait" | "--request-id")
}

/// What is wrong, on one line: clap lists missing arguments on lines of their own.
fn first_paragraph(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let joined = lines.join(" ");
    joined.strip_prefix("error: ").unwrap_or(&joined).to_owned()
}

fn tip(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.trim().strip_prefix("tip: "))
}
