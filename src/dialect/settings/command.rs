//! The command line that is written into an agent's settings, and how it is found there again.
//!
//! It survives that the tool is gone: an agent whose hooks fail would be disturbed, and some take a failure for
//! "do not stop". Paths are absolute, because an agent runs its hooks in whatever folder it works in.

use crate::dialect::{Agent, must_name_event};

/// A hook command, as it stands in an agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// The program's absolute path.
    pub binary: String,
    /// The root it keeps its books in.
    pub root: String,
    /// Whether it may let the agent go on by itself.
    pub guard: bool,
}

/// A hook command of ours that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCommand {
    /// The program it calls.
    pub binary: String,
    /// The root it names; none in a line that was written by hand.
    pub root: Option<String>,
    /// Whether it may let the agent go on by itself.
    pub guard: bool,
    /// Whether it is what would be written today for the same program, root and guard.
    pub current: bool,
}

/// The name of our program, in a line that does not look before it calls.
const PROGRAM: &str = "lychgate";

impl HookCommand {
    /// The command line for an event of an agent.
    pub fn line(&self, agent: Agent, event: &str) -> String {
        let binary = quoted(&self.binary);
        let mut call = format!("{binary} --root {} hook {agent}", quoted(&self.root));
        if must_name_event(agent) {
            call.push_str(" --event ");
            call.push_str(event);
        }
        if self.guard {
            call.push_str(" --guard");
        }
        match agent {
            // Any code but 0 and 1 is taken for "go on", and an empty output is looked for on standard error: so
            // this ends with 0 and an object even where the program cannot be started.
            Agent::Gemini => format!("[ -x {binary} ] && {call} || echo '{{}}'"),
            Agent::Claude | Agent::Codex | Agent::Qwen | Agent::Cursor | Agent::Copilot => {
                format!("[ -x {binary} ] || exit 0; exec {call}")
            }
        }
    }
}

impl FoundCommand {
    /// Recognises a command of ours for this agent, also one that was written by hand or by another version. One
    /// that does more than to call us is somebody's own.
    pub fn read(line: &str, agent: Agent, event: &str) -> Option<Self> {
        let mut tested = None;
        let mut called: Option<Self> = None;
        for words in simple_commands(line)? {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            match *words.as_slice() {
                [] | ["exit", "0"] | ["echo" | "printf", "{}"] | ["true" | ":"] => {}
                ["[", "-x", binary, "]"] | ["test", "-x", binary] if tested.is_none() => {
                    tested = Some(binary.to_owned());
                }
                ["exec", ref call @ ..] | ref call if called.is_none() => {
                    called = Some(read_call(call, agent)?);
                }
                _ => return None,
            }
        }
        let mut found = called?;
        match tested {
            Some(tested) if tested != found.binary => return None,
            None if found.binary.rsplit('/').next() != Some(PROGRAM) => return None,
            Some(_) | None => {}
        }
        if let Some(root) = found.root.clone() {
            let wanted = HookCommand { binary: found.binary.clone(), root, guard: found.guard };
            found.current = wanted.line(agent, event) == line;
        }
        Some(found)
    }
}

/// Whether a line that is not ours calls us all the same, as far as that can be told.
pub(super) fn mentions_us(line: &str) -> bool {
    line.split_once(PROGRAM).is_some_and(|(_, behind)| behind.contains(" hook "))
}

fn read_call(words: &[&str], agent: Agent) -> Option<FoundCommand> {
    let (binary, arguments) = words.split_first()?;
    let hook = arguments.windows(2).position(|pair| pair == ["hook", agent.as_str()])?;
    let root = arguments.iter().enumerate().find_map(|(index, argument)| match *argument {
        "--root" => arguments.get(index + 1).copied(),
        other => other.strip_prefix("--root="),
    });
    let guard = arguments.iter().skip(hook).any(|argument| *argument == "--guard");
    Some(FoundCommand { binary: (*binary).to_owned(), root: root.map(str::to_owned), guard, current: false })
}

/// Quotes a word for every shell an agent may use.
///
/// A dollar sign is kept apart from what follows it, because two agents put variables into their settings before
/// any shell reads them; a backslash too, because not every shell takes it literally between quotes.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut text = String::from("'");
    for c in word.chars() {
        match c {
            '\'' | '$' | '\\' => {
                text.push_str("'\\");
                text.push(c);
                text.push('\'');
            }
            other => text.push(other),
        }
    }
    text.push('\'');
    text
}

/// Splits a shell line into its commands and their words. `None` for a line with anything beyond words, quotes and
/// the operators `;`, `&&` and `||`.
fn simple_commands(line: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = vec![vec![]];
    let mut word: Option<String> = None;
    let mut chars = line.trim().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' if matches!(chars.peek(), Some('"' | '\\' | '$' | '`')) => {
                            word.push(chars.next()?);
                        }
                        '$' | '`' => return None,
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            ' ' | '\t' => commands.last_mut()?.extend(word.take()),
            ';' => {
                commands.last_mut()?.extend(word.take());
                commands.push(vec![]);
            }
            '&' | '|' if chars.next_if_eq(&c).is_some() => {
                commands.last_mut()?.extend(word.take());
                commands.push(vec![]);
            }
            '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '#' | '\n' => return None,
            other => word.get_or_insert_default().push(other),
        }
    }
    commands.last_mut()?.extend(word);
    Some(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(binary: &str, root: &str, guard: bool) -> HookCommand {
        HookCommand { binary: binary.to_owned(), root: root.to_owned(), guard }
    }

    #[test]
    fn the_line_looks_before_it_calls_and_names_everything() {
        let plain = command("/usr/local/bin/lychgate", "/home/you/books", false);
        assert_eq!(
            plain.line(Agent::Claude, "Stop"),
            "[ -x /usr/local/bin/lychgate ] || exit 0; exec /usr/local/bin/lychgate --root /home/you/books hook claude"
        );
        assert_eq!(
            HookCommand { guard: true, ..plain.clone() }.line(Agent::Gemini, "AfterAgent"),
            "[ -x /usr/local/bin/lychgate ] && /usr/local/bin/lychgate --root /home/you/books hook gemini --guard || echo '{}'"
        );
        let copilot = plain.line(Agent::Copilot, "SubagentStart");
        assert!(copilot.ends_with(" hook copilot --event SubagentStart"), "{copilot}");
        let found = |event| FoundCommand::read(&copilot, Agent::Copilot, event).map(|found| found.current);
        assert_eq!((found("SubagentStart"), found("Stop")), (Some(true), Some(false)));
    }

    #[test]
    fn no_variable_is_left_for_an_agent_to_fill_in() {
        for path in ["/a/$HOME", "/a/${HOME}", "/$a'$b\\$c"] {
            let quoted = quoted(path);
            let follows = |at: usize| quoted.get(at + 1..).and_then(|rest| rest.chars().next());
            for (at, _) in quoted.match_indices('$') {
                assert_eq!(follows(at), Some('\''), "{quoted}");
            }
        }
    }

    #[test]
    fn every_line_we_write_is_recognised_with_all_that_is_in_it() {
        let paths = ["/usr/bin/lychgate", "/opt/my tools/ly'ch$gate\\x", "/ü/\"a\"/`b`", "/a;b&&c|d(e)#f"];
        for agent in Agent::ALL {
            for (binary, root) in paths.iter().flat_map(|binary| paths.iter().map(move |root| (binary, root)))
            {
                for guard in [false, true] {
                    let line = command(binary, root, guard).line(agent, "Stop");
                    let found = FoundCommand::read(&line, agent, "Stop").unwrap_or_else(|| panic!("{line}"));
                    assert_eq!((found.binary.as_str(), found.root.as_deref()), (*binary, Some(*root)));
                    assert_eq!((found.guard, found.current), (guard, true), "{line}");
                }
            }
        }
    }

    #[test]
    fn a_line_written_by_hand_or_by_another_version_is_ours_and_not_current() {
        for line in [
            "lychgate hook claude",
            "/usr/bin/lychgate hook claude --guard",
            "exec lychgate --root '/a b' hook claude",
            "test -x /opt/x && /opt/x --root=/a hook claude || true",
            "[ -x \"/a/b\" ] || exit 0; exec \"/a/b\" --root /r hook claude --external allow",
        ] {
            let found = FoundCommand::read(line, Agent::Claude, "Stop").unwrap_or_else(|| panic!("{line}"));
            assert!(!found.current, "{line}");
        }
    }

    #[test]
    fn a_line_that_does_more_is_somebodys_own() {
        for line in [
            "lychgate hook claude | tee /tmp/log",
            "cd /x && lychgate hook claude",
            "lychgate hook codex",
            "lychgate inspect",
            "/opt/other hook claude",
            "[ -x /a ] || exit 0; exec /b hook claude",
            "lychgate hook claude; lychgate hook claude",
            "LYCHGATE_ROOT=/r lychgate hook claude",
            "echo lychgate hook claude",
            "lychgate hook claude 2>/dev/null",
            "'unclosed",
            "",
        ] {
            assert_eq!(FoundCommand::read(line, Agent::Claude, "Stop"), None, "{line}");
        }
        assert!(mentions_us("cd /x && lychgate hook claude"));
        assert!(!mentions_us("other-tool hook claude"));
    }
}
