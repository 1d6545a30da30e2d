//! The written command lines, run by real shells.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::{AGENTS, at_home, command_lines, put, text};
use crate::common::{BIN, TestRoot};

/// Folder names that a shell, a settings file or an agent could take for something else.
const ODD: [&str; 7] = [
    "plain",
    "with space",
    "it's \"quoted\"",
    "$HOME and ${HOME} and `id`",
    "back\\slash\\\\",
    "ümlaut 名前",
    "a;b&&c|d>e(f)#g*?[!~",
];

/// Runs a line as an agent does: with something on standard input, in another folder.
fn run(shell: &str, line: &str) -> Output {
    let mut command = Command::new(shell);
    command.args(["-c", line]).current_dir("/").env("HOME", "/nowhere").stdin(Stdio::null());
    command.output().unwrap()
}

/// Installs from a copy of the program in `folder`, into settings with that root, and gives the lines written.
fn installed(root: &TestRoot, folder: &PathBuf, agent: &str, path: &str) -> Vec<(String, String)> {
    std::fs::create_dir_all(folder).unwrap();
    let program = folder.join("lychgate");
    drop(std::fs::remove_file(&program));
    std::fs::hard_link(BIN, &program).or_else(|_| std::fs::copy(BIN, &program).map(drop)).unwrap();
    let mut command = Command::new(&program);
    command.args(["hook", "install", agent, "--json", "--guard", "--root"]).arg(folder.join("books"));
    command.env_clear().env("HOME", at_home(root, "")).stdout(Stdio::piped()).stderr(Stdio::piped());
    root.finish(command.spawn().unwrap()).is(0, "installed");
    let lines = command_lines(&text(&at_home(root, path)));
    assert!(lines.len() > 5, "{lines:?}");
    std::fs::remove_file(&program).unwrap();
    lines
}

#[test]
fn a_line_starts_the_program_with_exactly_the_paths_that_were_meant() {
    let root = TestRoot::new();
    for odd in ODD {
        let folder = root.scratch().join(odd);
        for (agent, path) in AGENTS {
            let lines = installed(&root, &folder, agent, path);
            let program = folder.join("lychgate");
            put(&program, "#!/bin/sh\nprintf '%s\\n' \"$0\" \"$@\"\n");
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
            let (event, line) = &lines[0];
            let (program, books) =
                (program.display().to_string(), folder.join("books").display().to_string());
            let mut wanted = vec![program.as_str(), "--root", &books, "hook", agent];
            if agent == "copilot" {
                wanted.extend(["--event", event]);
            }
            wanted.push("--guard");
            for shell in ["sh", "bash"] {
                let out = run(shell, line);
                let said = String::from_utf8(out.stdout).unwrap();
                assert_eq!(said.lines().collect::<Vec<_>>(), wanted, "{shell}: {line}");
                assert_eq!((out.status.code(), out.stderr.len()), (Some(0), 0));
            }
        }
    }
}

/// Two agents put variables into their settings before a shell sees them.
#[test]
fn no_line_has_a_variable_an_agent_could_fill_in() {
    let root = TestRoot::new();
    for odd in ODD {
        for (agent, path) in AGENTS {
            for (_, line) in installed(&root, &root.scratch().join(odd), agent, path) {
                let dollars = line.match_indices('$').map(|(at, _)| line[at + 1..].chars().next());
                for behind in dollars {
                    let could = behind.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '{');
                    assert!(!could, "{line}");
                }
            }
        }
    }
}

/// Rule of the hooks: an agent whose hooks fail would be disturbed, and Gemini would be kept from stopping.
#[test]
fn a_line_ends_well_when_the_program_is_gone_or_cannot_run() {
    let root = TestRoot::new();
    let folder = root.scratch().join("it's gone");
    for (agent, path) in AGENTS {
        let lines = installed(&root, &folder, agent, path);
        let program = folder.join("lychgate");
        let nothing = if agent == "gemini" { "{}\n" } else { "" };
        let check = |why: &str, codes: &[i32]| {
            for (_, line) in &lines {
                let out = run("sh", line);
                assert_eq!(String::from_utf8(out.stdout).unwrap(), nothing, "{agent}, {why}: {line}");
                assert!(codes.contains(&out.status.code().unwrap()), "{agent}, {why}: {:?}", out.status);
            }
        };
        check("gone", &[0]);
        put(&program, "not a program");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o644)).unwrap();
        check("not executable", &[0]);
        // Of another machine: no agent but Gemini takes a failure for more than a failure.
        put(&program, b"\x7fELF\0\0\0\0");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let codes: &[i32] = if agent == "gemini" { &[0] } else { &[126, 127, 2] };
        check("of another machine", codes);
        std::fs::remove_file(&program).unwrap();
    }
}

#[test]
fn a_program_that_is_called_by_a_link_is_written_by_that_name() {
    let root = TestRoot::new();
    let bin = root.scratch().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(BIN, bin.join("lychgate")).unwrap();
    let installed = |program: &str, search_path: &str| {
        let mut command = Command::new(program);
        command.args(["hook", "install", "claude", "--json"]).current_dir(root.scratch());
        command.env_clear().env("HOME", at_home(&root, "")).env("PATH", search_path);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        root.finish(command.spawn().unwrap()).get("binary")
    };
    let by_path = bin.display().to_string();
    assert_eq!(installed(&format!("{by_path}/lychgate"), ""), "[DIR]/bin/lychgate");
    assert_eq!(installed("bin/lychgate", ""), "[DIR]/bin/lychgate");
    assert_eq!(installed("lychgate", &by_path), "[DIR]/bin/lychgate");
}
