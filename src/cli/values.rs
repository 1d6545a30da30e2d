//! The values an option can have beyond plain text and the protocol's ids.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum, value_parser};

use crate::dialect::Agent;
use crate::protocol::classify::Outcome;
use crate::protocol::codes::ReceiptSource;
use crate::protocol::guard::background::TaskKind;
use crate::protocol::guard::request::PromptName;
use crate::protocol::guard::session::{MessageKind, PromptEnd, PromptKind, TicketEnd};
use crate::protocol::ids::{AttemptId, InvalidId, Name};
use crate::protocol::rotation::{Expect, RotateAs};
use crate::protocol::row::ClaimMode;
use crate::protocol::settlement::Disposal;

/// The longest duration an option accepts. It keeps every deadline computed from one representable.
pub const DURATION_MAX: Duration = Duration::from_hours(365 * 24);

/// Reads `500ms`, `2s`, `5m` or `0`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let digits_len = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, unit) = text.split_at(digits_len);
    if digits.is_empty() {
        return Err("a duration is a whole number and a unit, such as 500ms, 2s or 5m".to_owned());
    }
    let millis_per_unit: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "" => return Err(format!("the unit is missing: write {digits}ms, {digits}s or {digits}m")),
        _ => return Err(format!("`{}` is not a unit: use ms, s or m", unit.escape_debug())),
    };
    let too_long = || "a duration is at most 365 days".to_owned();
    // The text is digits only, so the one way to fail is to be too large.
    let count: u64 = digits.parse().map_err(|_| too_long())?;
    let millis = count.checked_mul(millis_per_unit).ok_or_else(too_long)?;
    Some(Duration::from_millis(millis)).filter(|length| *length <= DURATION_MAX).ok_or_else(too_long)
}

/// Reads `ATTEMPT` or `ATTEMPT@EPOCH`.
pub(super) fn expect(text: &str) -> Result<Expect, String> {
    let (attempt, epoch) = match text.split_once('@') {
        None => (text, None),
        Some((attempt, epoch)) => (attempt, Some(epoch)),
    };
    let attempt = AttemptId::parse(attempt).map_err(|invalid| invalid.to_string())?;
    let epoch = match epoch {
        None => None,
        // `u64::from_str` would accept a plus sign, and no epoch is printed with one.
        Some(digits) if digits.starts_with('+') => return Err(no_epoch(digits)),
        Some(digits) => Some(digits.parse().map_err(|_| no_epoch(digits))?),
    };
    Ok(Expect { attempt, epoch })
}

fn no_epoch(given: &str) -> String {
    format!(
        "`{}` is not a stop epoch (a whole number, as `stop` and `inspect` print it)",
        given.escape_debug()
    )
}

/// The longest words for people an option takes, in bytes. They lie in the row, which every call reads.
pub(super) const WORDS_BYTES_MAX: usize = 4096;

/// Reads words for people.
pub(super) fn words(text: &str) -> Result<String, String> {
    if text.len() <= WORDS_BYTES_MAX {
        return Ok(text.to_owned());
    }
    Err(format!("a text here is at most {WORDS_BYTES_MAX} bytes; longer ones belong into a report"))
}

/// Reads words for people that must say something.
pub(super) fn some_words(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("it says nothing".to_owned()) } else { words(text) }
}

/// The longest reason of an outer hook, in bytes. It is handed on to the agent.
const REASON_BYTES_MAX: usize = 64 << 10;

/// Reads the reason of an outer hook.
pub(super) fn reason(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it says nothing, and an agent would take it for a broken hook".to_owned());
    }
    if text.len() > REASON_BYTES_MAX {
        return Err(format!("a reason is at most {REASON_BYTES_MAX} bytes"));
    }
    Ok(text.to_owned())
}

/// Reads the name of a prompt: its id, or the host's name for it. An empty one is never "no prompt" (O4).
pub(super) fn prompt_name(text: &str) -> Result<PromptName, InvalidId> {
    Name::parse(text).map(|name| PromptName(name.into()))
}

/// Where a text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input (`-`).
    Stdin,
    /// A file.
    File(PathBuf),
}

/// Reads `-` or a path.
pub(super) fn input(text: &str) -> Result<Input, String> {
    match text {
        "" => Err("the path is empty".to_owned()),
        "-" => Ok(Input::Stdin),
        path => Ok(Input::File(PathBuf::from(path))),
    }
}

/// Accepts a field name or a dotted path, such as `owner.alive` or `turns.0.turnId`.
pub(super) fn field(text: &str) -> Result<String, String> {
    if text.is_empty() || text.split('.').any(str::is_empty) {
        return Err(
            "a field is a name or a dotted path, such as code, owner.alive or turns.0.turnId".to_owned()
        );
    }
    Ok(text.to_owned())
}

/// Which copies of a receipt are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReceiptCopies {
    /// In the folder of the parent and of every ancestor
    Full,
    /// In the parent's folder only, which is the one that counts as evidence
    ParentOnly,
}

/// A parser of values of the protocol, which knows nothing of the command line: each under its word.
fn one_of<T: Clone + Send + Sync + 'static>(
    all: impl IntoIterator<Item = (PossibleValue, T)>,
) -> impl TypedValueParser<Value = T> {
    let all: Vec<_> = all.into_iter().collect();
    let words: Vec<_> = all.iter().map(|(word, _)| word.clone()).collect();
    PossibleValuesParser::new(words).try_map(move |given| {
        let found = all.iter().find(|(word, _)| word.matches(&given, false));
        found.map(|(_, value)| value.clone()).ok_or("not one of the words")
    })
}

fn word(word: &'static str, help: &'static str) -> PossibleValue {
    PossibleValue::new(word).help(help)
}

/// Which identity `rotate` publishes.
pub(super) fn rotate_as() -> impl TypedValueParser<Value = RotateAs> {
    let all = [
        (RotateAs::Launch, "Start a queued task: queued to starting"),
        (RotateAs::Reawaken, "Go on with an interrupted task: interrupted to running"),
        (RotateAs::Reactivate, "Work on in a task that has reported: it stays reported"),
        (RotateAs::Startup, "Take up a running task after a restart: unowned and unproven"),
    ];
    one_of(all.map(|(kind, help)| (word(kind.as_str(), help), kind)))
}

/// Why a send ends without a turn. Its word for a cancellation is shorter than the protocol's.
pub(super) fn disposal() -> impl TypedValueParser<Value = Disposal> {
    one_of([
        (word("refused", "The agent did not take it"), Disposal::Refused),
        (word("no-work", "There was nothing to do"), Disposal::NoWork),
        (word("canceled", "The caller gave it up"), Disposal::Canceled),
    ])
}

/// The outcome `inspect --expect` asks for.
pub(super) fn outcome() -> impl TypedValueParser<Value = Outcome> {
    let all = [
        (Outcome::Reported, "A report counts"),
        (Outcome::Live, "Something is in flight, or may start"),
        (Outcome::CleanupPending, "Closing, with an owner who can still pay what is owed"),
        (Outcome::TerminalNoReport, "Over, and positively without a report"),
        (Outcome::Indeterminate, "Evidence is missing or contradictory"),
    ];
    one_of(all.map(|(outcome, help)| (word(outcome.as_str(), help), outcome)))
}

/// Why an attempt ends, as its receipt says.
pub(super) fn receipt_source() -> impl TypedValueParser<Value = ReceiptSource> {
    one_of(ReceiptSource::ALL.map(|source| (PossibleValue::new(source.as_str()), source)))
}

/// How an attempt is retired.
pub(super) fn claim_mode() -> impl TypedValueParser<Value = ClaimMode> {
    let modes = [ClaimMode::NoReport, ClaimMode::RetireReported];
    one_of(modes.map(|mode| (PossibleValue::new(mode.as_str()), mode)))
}

/// How a prompt came to be.
pub(super) fn prompt_kind() -> impl TypedValueParser<Value = PromptKind> {
    let all = [
        (PromptKind::Ordinary, "A person said something new: it lifts a suspension"),
        (PromptKind::Retry, "The last prompt once more"),
        (PromptKind::Continue, "Go on where it stopped"),
    ];
    one_of(all.map(|(kind, help)| (word(kind.as_str(), help), kind)))
}

/// How a prompt ended.
pub(super) fn prompt_end() -> impl TypedValueParser<Value = PromptEnd> {
    let all = [
        (PromptEnd::Completed, "The agent was done with it"),
        (PromptEnd::Failed, "The turn broke; a retry goes on"),
        (PromptEnd::Aborted, "A person stopped it"),
        (PromptEnd::Abandoned, "Nobody works on it any more"),
    ];
    one_of(all.map(|(end, help)| (word(end.as_str(), help), end)))
}

/// What became of a ticket.
pub(super) fn ticket_end() -> impl TypedValueParser<Value = TicketEnd> {
    let all = [
        (TicketEnd::Sent, "The provider returned a stream: it is charged"),
        (TicketEnd::Unsent, "Nothing was sent: it is free"),
        (TicketEnd::FailedAfterStart, "The stream began and broke: it is charged"),
    ];
    one_of(all.map(|(end, help)| (word(end.as_str(), help), end)))
}

/// Who wrote a text. The guard's own texts are written by the guard.
pub(super) fn message_kind() -> impl TypedValueParser<Value = MessageKind> {
    one_of([
        (word("user", "A person"), MessageKind::User),
        (word("tool", "A tool"), MessageKind::Tool),
        (word("hook", "An outer hook"), MessageKind::Hook),
    ])
}

/// What lives in the background.
pub(super) fn task_kind() -> impl TypedValueParser<Value = TaskKind> {
    one_of(TaskKind::ALL.map(|kind| (PossibleValue::new(kind.as_str()), kind)))
}

/// An agent whose hooks are understood.
pub(super) fn agent() -> impl TypedValueParser<Value = Agent> {
    one_of(Agent::ALL.map(|agent| (PossibleValue::new(agent.as_str()), agent)))
}

/// One `--cleanup NAME [--owner-pid PID]` of a Stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanupArg {
    /// What is being cleaned up.
    pub name: Name,
    /// The process that owes it.
    pub owner_pid: Option<u32>,
}

/// The cleanups of a Stop, each with the `--owner-pid` that follows it on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleanups(pub Vec<CleanupArg>);

/// How many debts one Stop may name.
const CLEANUPS_MAX: usize = 64;
/// An option that may be given once for each `--cleanup`.
const OWNER_PID: &str = "owner_pid";
const CLEANUP: &str = "cleanup";

impl Args for Cleanups {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
            .arg(
                clap::Arg::new(CLEANUP)
                    .long("cleanup")
                    .value_name("NAME")
                    .action(clap::ArgAction::Append)
                    .value_parser(Name::parse)
                    .help("Name something that must be cleaned up before the attempt is over (repeatable)"),
            )
            .arg(
                clap::Arg::new(OWNER_PID)
                    .long("owner-pid")
                    .value_name("PID")
                    .action(clap::ArgAction::Append)
                    .value_parser(value_parser!(u32).range(1..))
                    .help("Name the process that owes the --cleanup before it"),
            )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Cleanups {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let names = indexed::<Name>(matches, CLEANUP).map(|(index, name)| (index, Ok(name)));
        let pids = indexed::<u32>(matches, OWNER_PID).map(|(index, pid)| (index, Err(pid)));
        let mut in_order: Vec<(usize, Result<Name, u32>)> = names.chain(pids).collect();
        in_order.sort_by_key(|(index, _)| *index);
        let mut cleanups: Vec<CleanupArg> = Vec::new();
        for (_, given) in in_order {
            match given {
                Ok(name) => cleanups.push(CleanupArg { name, owner_pid: None }),
                Err(pid) => match cleanups.last_mut() {
                    Some(cleanup) if cleanup.owner_pid.is_none() => cleanup.owner_pid = Some(pid),
                    _ => return Err(stray_owner_pid(pid)),
                },
            }
        }
        if cleanups.len() > CLEANUPS_MAX {
            let message = format!("a call names at most {CLEANUPS_MAX} cleanups");
            return Err(clap::Error::raw(ErrorKind::TooManyValues, message));
        }
        Ok(Self(cleanups))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn indexed<'a, T: Clone + Send + Sync + 'static>(
    matches: &'a ArgMatches,
    id: &'a str,
) -> impl Iterator<Item = (usize, T)> + 'a {
    let indices = matches.indices_of(id).into_iter().flatten();
    indices.zip(matches.get_many::<T>(id).into_iter().flatten().cloned())
}

fn stray_owner_pid(pid: u32) -> clap::Error {
    let text = format!("--owner-pid {pid} does not follow a --cleanup of its own");
    clap::Error::raw(ErrorKind::ArgumentConflict, text)
}

/// Shows an argument that may not be UTF-8, with everything that could disturb a terminal escaped.
pub(super) fn shown(argument: &OsStr) -> String {
    argument.to_string_lossy().escape_debug().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_unless_they_are_zero() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("5m"), Ok(Duration::from_mins(5)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert_eq!(duration("31536000s"), Ok(DURATION_MAX));
    }

    #[test]
    fn a_wrong_duration_is_told_what_is_wrong() {
        let told = |text| duration(text).expect_err("a wrong duration was accepted");
        assert_eq!(told("2"), "the unit is missing: write 2ms, 2s or 2m");
        assert_eq!(told("2h"), "`h` is not a unit: use ms, s or m");
        assert_eq!(told("2 s"), "` s` is not a unit: use ms, s or m");
        assert_eq!(told("1.5s"), "`.5s` is not a unit: use ms, s or m");
        for text in ["", "s", "-2s", "+2s", "٣s"] {
            assert_eq!(told(text), "a duration is a whole number and a unit, such as 500ms, 2s or 5m");
        }
    }

    #[test]
    fn a_duration_does_not_overflow() {
        for text in ["31536001s", "18446744073709551615m", "18446744073709551616ms", &"9".repeat(400)] {
            let text = if text.ends_with('9') { format!("{text}s") } else { text.to_owned() };
            assert_eq!(duration(&text), Err("a duration is at most 365 days".to_owned()), "{text}");
        }
    }

    #[test]
    fn an_expectation_is_an_attempt_and_perhaps_an_epoch() {
        let read = expect("att_0123456789abcdef@7").expect("well formed");
        assert_eq!((read.attempt.as_str(), read.epoch), ("att_0123456789abcdef", Some(7)));
        assert_eq!(expect("att_0123456789abcdef").map(|read| read.epoch), Ok(None));
        for text in
            ["att_0123456789abcdef@", "att_0123456789abcdef@+1", "att_0123456789abcdef@x", "att_1@1", "@1"]
        {
            assert!(expect(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_field_is_a_dotted_path_without_gaps() {
        assert!(field("turns.0.turnId").is_ok());
        for text in ["", ".", "a.", ".a", "a..b"] {
            assert!(field(text).is_err(), "{text}");
        }
    }
}
