//! What the process notices about its standard output at the start. Runs itself as the process under test.
#![allow(clippy::disallowed_methods, reason = "a test program reads its own arguments and environment")]
// This program is its own test runner, so it reports and exits by itself.
#![allow(clippy::print_stderr, clippy::exit)]

use std::io;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};

use lychgate::stdio::stdout_state;

/// Makes this program report the state of its standard output on standard error.
const REPORT: &str = "LYCHGATE_TEST_REPORT_STDOUT";

fn main() -> ExitCode {
    if std::env::var_os(REPORT).is_some() {
        eprintln!("{:?}", stdout_state());
        return ExitCode::SUCCESS;
    }
    // Test runners ask for the list of tests first.
    if std::env::args().any(|argument| argument == "--list") {
        if !std::env::args().any(|argument| argument == "--ignored") {
            use io::Write as _;
            let listed = writeln!(io::stdout(), "notices_unusable_standard_output: test");
            return if listed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        return ExitCode::SUCCESS;
    }
    notices_unusable_standard_output();
    ExitCode::SUCCESS
}

/// The state under a redirection by the shell.
fn under_shell(redirection: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$0\" {redirection}")]).arg(this_program());
    report(command.stdout(Stdio::piped()))
}

/// The state with a given standard output.
fn with_stdout(stdout: impl Into<Stdio>) -> String {
    report(Command::new(this_program()).stdout(stdout))
}

fn report(command: &mut Command) -> String {
    let child = command.env(REPORT, "1").stderr(Stdio::piped()).spawn().expect("this program can be started");
    let output = child.wait_with_output().expect("its output can be read");
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

fn this_program() -> std::path::PathBuf {
    std::env::current_exe().expect("this program has a path")
}

fn notices_unusable_standard_output() {
    assert_eq!(under_shell(""), "Usable", "a pipe");
    assert_eq!(under_shell(">/dev/null"), "Usable", "the null device");
    assert_eq!(under_shell(">&-"), "Closed", "closed");
    assert_eq!(under_shell("<&- >&-"), "Closed", "closed together with standard input");
    assert_eq!(under_shell("1</dev/null"), "ReadOnly", "opened for reading");
    assert_eq!(under_shell("1<>/dev/null"), "Usable", "opened for both");
    #[cfg(target_os = "linux")]
    assert_eq!(under_shell(">/dev/full"), "Usable", "a full device: only the write fails");

    let (reader, writer) = io::pipe().expect("a pipe can be made");
    assert_eq!(with_stdout(writer.try_clone().expect("it can be shared")), "Usable", "a pipe with a reader");
    drop(reader);
    assert_eq!(with_stdout(writer), "NoReader", "a pipe whose reader is gone");

    // A full pipe is not writable now, but it is being read.
    let (reader, mut writer) = io::pipe().expect("a pipe can be made");
    fill(&mut writer);
    assert_eq!(with_stdout(writer.try_clone().expect("it can be shared")), "Usable", "a full pipe");
    drop(reader);
    assert_eq!(with_stdout(writer), "NoReader", "a full pipe whose reader is gone");

    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets can be made");
    let theirs = std::os::fd::OwnedFd::from(theirs);
    assert_eq!(with_stdout(theirs.try_clone().expect("it can be shared")), "Usable", "a socket");
    drop(ours);
    assert_eq!(with_stdout(theirs), "NoReader", "a socket whose other end is gone");
}

/// Fills a pipe to the last page without ever waiting.
fn fill(writer: &mut io::PipeWriter) {
    use io::Write as _;
    let before = rustix::fs::fcntl_getfl(&*writer).expect("a pipe has flags");
    rustix::fs::fcntl_setfl(&*writer, before | rustix::fs::OFlags::NONBLOCK).expect("they can be set");
    while writer.write(&[0; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&*writer, before).expect("they can be set");
}
