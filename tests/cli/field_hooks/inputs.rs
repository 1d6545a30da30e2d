//! Bad input, and what may stand on standard output: H37, H61, H63, H65, H67 and H69.

use serde_json::{Value, json};

use super::{ALL, Agent};
use crate::common::{BIN, TestRoot};
use crate::guard::Session;

#[test]
fn h37_no_input_and_no_mistake_on_the_command_line_ends_a_hook_with_what_an_agent_takes_for_a_block() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    for args in [
        &["hook", "claude", "--no-such-option"][..],
        &["hook", "claude", "--guard", "--external", "perhaps"],
        &["hook", "emacs"],
        &["hook"],
        &["hook", "claude", "--root"],
        &["--lock-wait", "soon", "hook", "claude"],
    ] {
        let mut command = root.command(args);
        command.stdin(std::process::Stdio::piped());
        let heard = agent.run(
            command,
            agent.payload("UserPromptSubmit", &json!({ "prompt": "hi" })).to_string().as_bytes(),
        );
        assert!(!heard.goes_on(), "{args:?}");
        assert_ne!(heard.0.stderr, "", "{args:?}: a person is told");
    }
    agent.bytes(b"{\"session_id\":").is_unusable();
    assert!(agent.stop(), "the person's prompt is not lost");
}

#[test]
fn h61_bytes_are_read_as_utf8_whatever_the_locale_is() {
    let root = TestRoot::new();
    let agent = Agent::claude(&root, "sch\u{f6}n");
    let in_locale = |locale: &str, stdin: &[u8]| {
        let mut command = agent.command();
        command.env("LC_ALL", locale).env("LANG", locale).env("PYTHONIOENCODING", "cp932");
        agent.run(command, stdin)
    };
    let prompt = |text: &str| {
        format!(
            r#"{{"session_id":"sch{}n","hook_event_name":"UserPromptSubmit","prompt_id":"turn-0","prompt":"{text}"}}"#,
            '\u{f6}'
        )
    };
    for (locale, text) in
        [("C", "\u{1f600} los"), ("ja_JP.SJIS", "half a pair: \\ud83d"), ("POSIX", "\\u00e9")]
    {
        assert_eq!(in_locale(locale, prompt(text).as_bytes()).0.stderr, "", "{text}");
    }
    agent.todo(&["pending"]);
    let told = agent.stop_with(&json!({})).told();
    assert!(told.contains("[lychgate tkt_"), "{told}");
    let found = root.json(&["inspect", "--session", "claude:sch\u{f6}n"]).is(0, "ok");
    assert_eq!(found.json()["chain"]["attempts"], 1);
    let before = agent.books().record();
    let utf16: Vec<u8> = prompt("x").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin1 = [&prompt("caf").as_bytes()[..prompt("caf").len() - 2], b"\xe9\"}"].concat();
    for stdin in [utf16, latin1] {
        in_locale("C", &stdin).is_unusable();
    }
    assert_eq!(agent.books().record(), before);
}

#[test]
fn h63_standard_input_is_read_to_its_end_on_every_path() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    // The harness fails if a write into the hook does.
    let long = "x".repeat(2_000_000);
    agent.bytes(long.as_bytes()).is_unusable();
    let _ = agent.event("UserPromptSubmit", &json!({ "prompt": long }));
    let _ = agent.event("SomethingNew", &json!({ "detail": long }));
    let mut command = agent.command();
    command.env("LYCHGATE_ROOT", "/proc/none");
    agent.run(command, agent.payload("Stop", &json!({ "x": long })).to_string().as_bytes()).is_unusable();
    let mut command = root.command(&["hook", "claude", "--no-such-option"]);
    command.stdin(std::process::Stdio::piped());
    let _ = agent.run(command, long.as_bytes());
}

#[test]
fn h65_what_is_no_event_changes_nothing_and_invents_no_session() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    let stop = agent.payload("Stop", &json!({})).to_string();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let digits = format!(r#"{{"session_id":"s","hook_event_name":"Stop","n":{}}}"#, "9".repeat(1_000_000));
    let before = agent.books().record();
    for bad in [
        "",
        " \n",
        "{",
        &stop[..stop.len() - 1],
        "[]",
        "null",
        "42",
        "\"x\"",
        &format!("{stop}{stop}"),
        &deep,
        &stop.replacen('{', r#"{"session_id":"other","#, 1),
    ] {
        agent.bytes(bad.as_bytes()).is_unusable();
    }
    assert_eq!(agent.books().record(), before);
    assert_eq!(std::fs::read_dir(root.path().join("sessions")).unwrap().count(), 1, "nobody is invented");
    // A number that nobody looks at, however long, spoils nothing, and no answer may hang on it.
    let _ = agent.bytes(digits.as_bytes());
    assert!(agent.attempts() <= 1);
}

#[test]
fn h67_a_hook_that_has_nothing_to_say_says_nothing() {
    for words in ALL {
        let root = TestRoot::new();
        let agent = Agent::new(&root, words, "s");
        agent.prompt("hello");
        // A profile that greets comes before whatever we say.
        let mut shell = std::process::Command::new("bash");
        let hook = agent.command();
        shell.args(["-c", "echo hello; exec \"$0\" \"$@\"", BIN]).args(hook.get_args()).env_clear();
        shell.envs(hook.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let payload = agent.payload(words.stop, &json!({})).to_string();
        let mut child = shell.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
        let out = root.finish(child);
        // Gemini asks for an object in any case.
        let ours = if words.agent == "gemini" { "{}" } else { "" };
        assert_eq!(
            out.stdout.strip_prefix("hello\n").map(str::trim_end),
            Some(ours),
            "{}: {out}",
            words.agent
        );
    }
}

#[test]
fn h69_there_is_one_document_on_standard_output_and_it_comes_after_the_commit() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    let heard = agent.stop_with(&json!({}));
    let mut documents = serde_json::Deserializer::from_str(&heard.0.stdout).into_iter::<Value>();
    assert!(documents.next().unwrap().unwrap().is_object());
    assert!(documents.next().is_none(), "{}", heard.0);
    // Killed before the commit and killed after it: not a byte, for nothing was said that was not whole.
    for point in ["before-rename", "after-rename"] {
        let said = super::deaths::kill_the_worker(&agent, "Stop", point);
        assert_eq!(said.0.stdout, "", "{point}");
    }
    // The same for what a command says.
    let (s, prompt) = Session::at_work(&root, "t");
    let before = s.record();
    let parked = root.park(&["claim", "t", "--prompt", &prompt], "before-rename");
    parked.kill();
    assert_eq!(s.record(), before);
    let _ = s.claim(&prompt).is(0, "granted");
}

#[test]
fn an_agent_hears_its_own_form_whatever_form_the_call_asks_for() {
    for form in [&["--json"][..], &["--format", "sh"], &["--print", "code"]] {
        let root = TestRoot::new();
        let agent = Agent::at_work(&root, "s");
        let mut command = root.command(&[&["hook", "claude", "--guard"][..], form].concat());
        command.stdin(std::process::Stdio::piped());
        let stop = agent.payload("Stop", &json!({ "stop_hook_active": false })).to_string();
        let heard = agent.run(command, stop.as_bytes());
        assert!(heard.goes_on(), "{form:?}: {}", heard.0.stdout);
        let said: Value = serde_json::from_str(&heard.0.stdout).unwrap();
        let fields: Vec<&String> = said.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["decision", "reason"], "{form:?}");
    }
}
