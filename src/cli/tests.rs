use std::os::unix::ffi::OsStringExt as _;
use std::process::Command as Process;

use super::*;
use crate::protocol::codes::ReceiptSource;

fn parsed(args: &[&str]) -> Result<Cli, String> {
    let args: Vec<OsString> =
        std::iter::once("lychgate").chain(args.iter().copied()).map(OsString::from).collect();
    parse(&args).map_err(|error| error.render().to_string().lines().take(3).collect::<Vec<_>>().join("\n"))
}

fn accepted(line: &str) -> Cli {
    let args: Vec<&str> = line.split_whitespace().collect();
    parsed(&args).unwrap_or_else(|error| panic!("`{line}` was not understood: {error}"))
}

fn refused(line: &str) -> String {
    let args: Vec<&str> = line.split_whitespace().collect();
    parsed(&args).err().unwrap_or_else(|| panic!("`{line}` was accepted"))
}

#[test]
fn the_definitions_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn the_names_are_the_ones_that_are_typed() {
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    assert_eq!(names, COMMAND_NAMES);
    assert_eq!(
        accepted("claim-retire t --attempt att_0123456789abcdef --run r --step s --input-hash h --parent p")
            .command
            .name(),
        "claim-retire"
    );
}

#[test]
fn every_help_line_is_there_and_ends_without_a_full_stop() {
    let mut command = Cli::command();
    command.build();
    for verb in std::iter::once(&command).chain(command.get_subcommands()) {
        let name = verb.get_name();
        let about = verb.get_about().expect(name).to_string();
        assert!(!about.ends_with('.') && verb.get_long_about().is_some(), "{name}: {about}");
        for arg in verb.get_arguments() {
            let help =
                arg.get_help().unwrap_or_else(|| panic!("{name} {} has no help", arg.get_id())).to_string();
            assert!(!help.ends_with('.') && help.chars().count() < 100, "{name}: {help}");
        }
    }
}

/// Runs the examples of every help text in a shell that only records the calls, and reads them.
#[test]
fn the_examples_in_the_help_are_calls_that_are_understood() {
    const RECORDER: &str = r#"lychgate() {
        printf '%s\037' lychgate "$@" >&2; echo >&2
        case "$*" in *turnId*) echo turn_0123456789abcdef0001 ;; *) echo att_0123456789abcdef ;; esac
    }"#;
    let command = Cli::command();
    for verb in std::iter::once(&command).chain(command.get_subcommands()) {
        let text = verb.get_after_help().expect("an example").to_string();
        let is_call = |line: &&str| line.starts_with("  lychgate") || line.starts_with("  echo ");
        let lines: Vec<&str> = text.lines().skip_while(|line| !is_call(line)).collect();
        let example = lines.join(
            "
",
        );
        let output =
            Process::new("sh").arg("-euc").arg(format!("{RECORDER}\n{example}")).output().expect("sh runs");
        let calls = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(output.status.success() && !calls.is_empty(), "{}: {calls}", verb.get_name());
        for call in calls.lines() {
            let args: Vec<OsString> =
                call.trim_end_matches('\u{1f}').split('\u{1f}').map(OsString::from).collect();
            parse(&args).unwrap_or_else(|error| panic!("{call}: {error}"));
        }
    }
}

#[test]
fn global_options_stand_before_or_after_the_command() {
    for line in [
        "--json --root /r --print code,owner.alive inspect",
        "inspect --json --root /r --print code,owner.alive",
    ] {
        let global = accepted(line).global;
        assert_eq!(global.format(), Format::Json);
        assert_eq!(global.root, Some(PathBuf::from("/r")));
        assert_eq!(global.print, ["code", "owner.alive"]);
        assert_eq!(global.lock_wait, Duration::from_secs(2));
    }
    assert_eq!(accepted("--lock-wait 0 inspect").global.lock_wait, Duration::ZERO);
    assert_eq!(accepted("inspect --format sh").global.format(), Format::Sh);
}

#[test]
fn contradicting_forms_are_refused_wherever_they_stand() {
    for line in
        ["--json inspect --format sh", "--format text inspect --json", "--print code inspect --format sh"]
    {
        assert!(refused(line).contains("exclude each other"), "{line}");
    }
    accepted("--json inspect --format json");
}

#[test]
fn an_owner_pid_belongs_to_the_cleanup_before_it() {
    let Command::Stop(args) =
        accepted("stop t --cleanup a --owner-pid 7 --cleanup=b --reason r --cleanup c --owner-pid=9").command
    else {
        panic!("not a stop")
    };
    let pairs: Vec<_> =
        args.cleanups.0.iter().map(|cleanup| (cleanup.name.as_str(), cleanup.owner_pid)).collect();
    assert_eq!(pairs, [("a", Some(7)), ("b", None), ("c", Some(9))]);
    for line in [
        "stop t --owner-pid 7",
        "stop t --owner-pid 7 --cleanup a",
        "stop t --cleanup a --owner-pid 7 --owner-pid 8",
    ] {
        assert!(refused(line).contains("does not follow a --cleanup of its own"), "{line}");
    }
    assert!(refused("stop t --cleanup a --owner-pid 0").contains("invalid value '0'"));
}

#[test]
fn an_id_that_starts_with_a_dash_stands_after_two_dashes() {
    let Command::Stop(args) = accepted("stop --json -- -x --tree").command else { panic!("not a stop") };
    assert_eq!(args.tasks.iter().map(Name::as_str).collect::<Vec<_>>(), ["-x", "--tree"]);
}

#[test]
fn a_malformed_token_or_nonce_is_not_a_usage_error() {
    let Command::Settle(args) = accepted("settle t --token nonsense").command else { panic!("not a settle") };
    assert_eq!(args.token.token.as_deref(), Some("nonsense"));
    accepted("reserve --replaces old --nonce nonsense");
    assert!(refused("settle t --token a --token-fd 3").contains("cannot be used with"));
}

#[test]
fn ids_are_well_formed_or_refused() {
    for line in [
        "admit t --attempt att_1",
        "admit t --send snd_1 --start",
        "settle t --turn turn_1",
        "settle t --cleanup cln_1",
        "rotate t --as launch --expect att_1@2",
    ] {
        assert!(refused(line).contains("invalid value"), "{line}");
    }
    assert!(parsed(&["inspect", "a\nb"]).is_err());
    assert!(parsed(&["inspect", ""]).is_err());
}

#[test]
fn a_reservation_names_a_task_or_says_what_it_is_for() {
    accepted("reserve t --parent p --ancestor g --ancestor h");
    accepted("reserve --parent p --run r --step s --input-hash h");
    accepted("reserve --replaces old --nonce n");
    assert!(refused("reserve --parent p").contains("required arguments"));
    assert!(refused("reserve t").contains("--parent"));
    assert!(refused("reserve --parent p --run r --step s").contains("--input-hash"));
    assert!(refused("reserve t --parent p --step s").contains("--run"));
    assert!(refused("reserve --replaces old").contains("--nonce"));
    assert!(
        refused("reserve --parent p --replaces old --nonce n --run r --step s --input-hash h")
            .contains("cannot be used")
    );
}

#[test]
fn steps_of_a_send_exclude_each_other() {
    let (attempt, send) = ("--attempt att_0123456789abcdef", "--send snd_0123456789abcdef0001");
    accepted(&format!("admit t {attempt}"));
    accepted(&format!("admit {attempt} --start --label l"));
    accepted(&format!("admit t {send} --queued"));
    assert!(refused(&format!("admit t {send}")).contains("required arguments"));
    assert!(refused(&format!("admit t {send} --start --queued")).contains("cannot be used with"));
    assert!(refused(&format!("admit t {send} {attempt} --start")).contains("cannot be used with"));
}

#[test]
fn a_settlement_names_one_debt_or_none() {
    let turn = "--turn turn_0123456789abcdef0001";
    let send = "--send snd_0123456789abcdef0001";
    let Command::Settle(args) = accepted("settle --source idle-settled --receipt parent-only").command else {
        panic!("not a settle")
    };
    assert_eq!((args.source, args.receipt), (Some(ReceiptSource::IdleSettled), ReceiptCopies::ParentOnly));
    accepted(&format!("settle {turn} --close"));
    accepted(&format!("settle {send} --as no-work"));
    for line in [
        format!("settle {turn} {send} --as refused"),
        format!("settle {send}"),
        "settle --close".to_owned(),
        "settle --as refused".to_owned(),
    ] {
        refused(&line);
    }
}

#[test]
fn tasks_are_named_once_and_an_attempt_guards_one() {
    assert_eq!(
        refused("stop a b a"),
        "error: the task `a` is named twice\n\nUsage: lychgate [OPTIONS] <COMMAND>"
    );
    assert!(refused("inspect a a").contains("twice"));
    assert!(refused("stop a b --attempt att_0123456789abcdef").contains("guards one task"));
    assert!(refused("recover --unproven").contains("required arguments"));
    accepted("stop");
    accepted("recover a --unproven --strict");
}

#[test]
fn a_report_is_given_or_shown() {
    let Command::Report(args) = accepted("report t --file -").command else { panic!("not a report") };
    assert_eq!(args.file, Some(Input::Stdin));
    accepted("report t --show --late");
    for line in ["report t --late", "report t --show --title x", "report t --show --file f"] {
        refused(line);
    }
}

#[test]
fn an_argument_that_is_not_utf8_is_named() {
    let args = [
        OsString::from("lychgate"),
        "--root".into(),
        OsString::from_vec(b"/tmp/\xff\x1b".to_vec()),
        "inspect".into(),
    ];
    let error = parse(&args).expect_err("not UTF-8");
    assert_eq!(error.kind(), ErrorKind::InvalidUtf8);
    assert!(
        error.to_string().starts_with("error: argument 2 (`/tmp/\u{fffd}\\u{1b}`) is not UTF-8"),
        "{error}"
    );
}
