//! The layers, held by a test and not by good will: which module may use which, who may touch files, clocks,
//! randomness and the environment, and how large a file may grow.
#![allow(missing_docs, clippy::disallowed_methods, reason = "a test looks at the sources")]

use std::path::{Path, PathBuf};

/// A source file and its lines of code, without comments and without its unit tests.
struct Source {
    path: PathBuf,
    text: String,
}

fn sources(below: &str) -> Vec<Source> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).expect("because the folder is part of the checkout") {
            let path = entry.expect("because the folder can be listed").path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    walk(&root.join(below), &mut found);
    found.sort();
    assert!(!found.is_empty(), "there are no sources below {below}");
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("because sources are text");
        Source { path: path.strip_prefix(root).expect("because it lies below").to_owned(), text }
    };
    found.into_iter().map(read).collect()
}

impl Source {
    /// The lines of code before the unit tests of the file.
    fn code(&self) -> impl Iterator<Item = &str> {
        self.text
            .lines()
            .take_while(|line| !line.starts_with("#[cfg(test)]"))
            .map(|line| line.split("//").next().unwrap_or_default())
            .filter(|line| !line.trim().is_empty())
    }

    fn is_test(&self) -> bool {
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name == "tests.rs"
            || name == "testing.rs"
            || self.path.components().any(|part| part.as_os_str() == "tests")
    }

    /// The first of these words that the code holds.
    fn uses<'w>(&self, words: &[&'w str]) -> Option<&'w str> {
        words.iter().copied().find(|word| self.code().any(|line| line.contains(word)))
    }
}

/// Fails with every file below `layer` that uses one of these words.
fn forbid(layer: &str, words: &[&str], why: &str) {
    let broken: Vec<String> = sources(layer)
        .iter()
        .filter(|source| !source.is_test())
        .filter_map(|source| source.uses(words).map(|word| format!("{}: `{word}`", source.path.display())))
        .collect();
    assert!(broken.is_empty(), "{why}:\n{}", broken.join("\n"));
}

#[test]
fn the_protocol_uses_nothing_but_itself() {
    let others = [
        "crate::state",
        "crate::commands",
        "crate::answer",
        "crate::cli",
        "crate::dialect",
        "crate::seam",
        "crate::stdio",
    ];
    forbid("src/protocol", &others, "the rules know no other layer");
}

#[test]
fn the_dialects_use_nothing_but_themselves() {
    let others = [
        "crate::protocol",
        "crate::state",
        "crate::commands",
        "crate::answer",
        "crate::cli",
        "crate::seam",
        "crate::stdio",
    ];
    forbid("src/dialect", &others, "an agent's words are translated without knowing what they lead to");
}

/// What a pure layer never touches.
const WORLD: [&str; 15] = [
    "std::fs",
    "fs_err",
    "std::env",
    "std::process",
    "std::time",
    "std::net",
    "std::thread",
    "std::io",
    "rustix",
    "getrandom",
    "jiff",
    "tempfile",
    "rand::",
    "println!",
    "eprintln!",
];

#[test]
fn the_protocol_touches_no_file_clock_randomness_or_environment() {
    forbid("src/protocol", &WORLD, "the rules are pure");
}

#[test]
fn the_dialects_touch_no_file_clock_randomness_or_environment() {
    forbid("src/dialect", &WORLD, "bytes in, an event out; an answer in, bytes out");
}

#[test]
fn the_state_knows_no_command_and_no_answer() {
    let others = ["crate::commands", "crate::answer", "crate::cli", "crate::dialect"];
    forbid("src/state", &others, "the store serves the commands");
}

#[test]
fn the_state_decides_nothing() {
    let rules = [
        "protocol::admission",
        "protocol::advice",
        "protocol::classify",
        "protocol::lineage",
        "protocol::recovery",
        "protocol::reservation",
        "protocol::retirement",
        "protocol::rotation",
        "protocol::settlement",
        "protocol::stop",
    ];
    forbid("src/state", &rules, "the store uses the protocol's types, not its rules");
}

#[test]
fn only_the_state_touches_files() {
    let files =
        ["std::fs", "fs_err", "tempfile", "atomicwrites", "fd_lock", "rustix::fs", "openat", "OpenOptions"];
    for layer in ["src/commands", "src/answer", "src/cli"] {
        forbid(layer, &files, "only the store touches files");
    }
}

#[test]
fn the_command_line_and_the_answers_decide_nothing() {
    for layer in ["src/cli", "src/answer"] {
        forbid(
            layer,
            &["crate::state", "crate::commands", "std::env::var"],
            "the two ends of the wire do no work",
        );
    }
}

#[test]
fn one_file_reads_the_environment_and_the_clock() {
    let world = ["std::env::var", "jiff::Timestamp::now", "SystemTime::now"];
    let reading: Vec<String> = sources("src")
        .iter()
        .filter(|source| !source.is_test() && source.uses(&world).is_some())
        .map(|source| source.path.display().to_string())
        .collect();
    assert_eq!(
        reading,
        ["src/commands/context.rs", "src/seam.rs"],
        "the seam is outside the layers by design"
    );
}

#[test]
fn one_module_holds_unsafe_code() {
    let unsafe_ones: Vec<String> = sources("src")
        .iter()
        .filter(|source| source.uses(&["unsafe {", "unsafe_code)", "#[unsafe("]).is_some())
        .map(|source| source.path.display().to_string())
        .collect();
    assert_eq!(unsafe_ones, ["src/stdio.rs"], "standard output must be looked at before main");
}

/// A file past this many lines hides a concept that wants a file of its own.
const LINES_MAX: usize = 420;

#[test]
fn no_file_hides_a_second_concept() {
    let long: Vec<String> = sources("src")
        .iter()
        .filter(|source| source.text.lines().count() > LINES_MAX)
        .map(|source| source.path.display().to_string())
        .collect();
    assert!(long.is_empty(), "longer than {LINES_MAX} lines: {long:?}");
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<String> = sources("src")
        .iter()
        .filter(|source| !source.is_test() && !source.text.starts_with("//!"))
        .map(|source| source.path.display().to_string())
        .collect();
    assert!(silent.is_empty(), "without module docs: {silent:?}");
}

#[test]
fn every_test_file_is_declared() {
    for source in sources("tests/cli") {
        let name = source.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let folder = source.path.parent().expect("because it lies in a folder");
        let names_it = |file: &Path| {
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file))
                .is_ok_and(|text| text.contains(&format!("mod {name};")))
        };
        let declared = name == "main"
            || name == "mod"
            || names_it(&folder.join("main.rs"))
            || names_it(&folder.join("mod.rs"))
            || names_it(&folder.with_extension("rs"));
        assert!(declared, "{} is compiled into no test", source.path.display());
    }
}
