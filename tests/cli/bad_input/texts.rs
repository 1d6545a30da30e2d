//! What a caller chose is shown safely, carried exactly, and evaluated to exactly itself.

use super::{Family, call, json, json_with_stdin, sh, text};
use crate::common::TestRoot;

/// Texts that try to speak for the tool, to the terminal or to the shell.
const NASTY: [&str; 9] = [
    "two\nlines\n\nand more\n",
    "'\"`$(touch pwned)\\ $HOME !! *",
    "\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}",
    "\u{202e}gnp.exe \u{2066}x\u{2069}\u{200f}\u{061c}",
    "c1 \u{9b}31m \u{85} \u{90}",
    "\rlychgate: done\u{8}\u{8}\t\u{7f}",
    "\u{2028}\u{2029} line separators",
    "'; exit 9; '",
    "refused (not-owner): \u{feff}\u{fffd}\u{1f600}",
];

/// Whether a text for people holds nothing that could move a cursor, colour a line or turn its direction.
fn is_safe(text: &str) -> bool {
    text.chars().all(|c| {
        let bidi = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        c == '\n' || c == '\t' || !(c.is_control() || bidi)
    })
}

#[test]
fn no_text_of_a_caller_reaches_the_terminal_raw() {
    for nasty in NASTY {
        let root = TestRoot::new();
        let family = Family::new(&root);
        let (attempt, token) = (&family.child.attempt, &family.child.token);
        let label = format!("--label={nasty}");
        let said = [
            text(&root, &["admit", "t1", "--attempt", attempt, "--start", "--token", token, &label]).exits(0),
            sh(
                &root,
                r#"printf x | "$LG" report t1 --attempt "$1" --token "$2" --title "$3""#,
                &[attempt, token, nasty],
            ),
            sh(
                &root,
                r#"printf y | "$LG" report t1 --attempt "$1" --token "$2" --title "$3""#,
                &[attempt, token, nasty],
            ),
            text(&root, &["stop", "t1", &format!("--reason={nasty}"), &format!("--failure={nasty}")])
                .exits(0),
            text(&root, &["inspect"]).exits(0),
            text(&root, &["inspect", "t1", "--explain", "--history"]).exits(0),
            text(&root, &["admit", "t1", "--token", nasty, "--attempt", attempt]).exits(10),
            text(&root, &["recover"]).exits(0),
            text(&root, &["inspect", nasty]),
            text(&root, &["reserve", nasty, "--parent=ws"]),
            text(&root, &[nasty]).exits(64),
            text(&root, &["inspect", &format!("--{nasty}")]).exits(64),
            text(&root, &["inspect", "--lock-wait", nasty]).exits(64),
            text(&root, &["--format", nasty, "inspect"]).exits(64),
            text(&root, &["--root", &root.file(nasty), "inspect"]),
            text(&root, &["reserve", "n", "--parent=ws", "--token-file", &format!("/no/{nasty}")]),
        ];
        for raw in said {
            assert!(is_safe(&raw.out()), "{nasty:?}: {}", raw.describe());
            assert!(is_safe(&raw.err()), "{nasty:?}: {}", raw.describe());
        }
    }
}

#[test]
fn a_text_is_one_line_wherever_a_list_is_shown() {
    let root = TestRoot::new();
    let _ = root.reserve("t1");
    let reason = "first\nt2      terminal-no-report\nroot /elsewhere";
    let _ = text(&root, &["stop", "t1", "--reason", reason]).exits(0);
    let shown = text(&root, &["inspect", "t1", "--history"]).exits(0).out();
    assert!(shown.lines().all(|line| !line.starts_with("t2") && !line.starts_with("root /else")), "{shown}");
    // A folder that is nobody's row is shown by its name, which anybody with the root could have chosen.
    std::fs::write(root.path().join("tasks/x\nt3: stopped (fine)\u{1b}[2J"), "").unwrap();
    for args in [["inspect"], ["recover"]] {
        let shown = text(&root, &args).exits(0).out();
        assert!(shown.lines().all(|line| !line.trim_start().starts_with("t3")), "{shown}");
        assert!(is_safe(&shown), "{shown:?}");
    }
}

#[test]
fn json_carries_every_text_exactly() {
    for nasty in NASTY {
        let root = TestRoot::new();
        let family = Family::new(&root);
        let (attempt, token) = (&family.child.attempt, &family.child.token);
        let admit = ["admit", "t1", "--attempt", attempt, "--start", "--token", token, "--label", nasty];
        let _ = json(&root, &admit).is(0, "admitted");
        let report = ["report", "t1", "--attempt", attempt, "--token", token, "--title", nasty];
        let _ = json_with_stdin(&root, &report, nasty.as_bytes()).is(0, "report-accepted");
        let _ = json(&root, &["stop", "t1", "--reason", nasty, "--failure", nasty]).is(0, "stopping");
        let inspected = json(&root, &["inspect", "t1", "--history"]).is(0, "ok").json();
        let labels: Vec<_> =
            inspected["turns"].as_array().unwrap().iter().map(|turn| &turn["label"]).collect();
        assert!(labels.contains(&&serde_json::json!(nasty)), "{labels:?}");
        for value in
            [&inspected["report"]["title"], &inspected["closed"]["reason"], &inspected["closed"]["failure"]]
        {
            assert_eq!(value, nasty);
        }
        assert_eq!(json(&root, &["report", "t1", "--show"]).is(0, "ok").get("text"), nasty);
        let shown = text(&root, &["report", "t1", "--show"]).exits(0);
        assert_eq!(shown.stdout, nasty.as_bytes(), "a report is printed as it is");
    }
}

#[test]
fn the_shell_form_evaluates_to_exactly_what_was_given() {
    let root = TestRoot::new();
    let script = r#"
        out=$("$LG" --format sh "$@") || true
        eval "$out"
        printf '%s\0' "${LYCHGATE_ANSWER_TASK-}" "${LYCHGATE_REQUEST_ID-}" "${LYCHGATE_MESSAGE-}" "${LYCHGATE_CODE-}"
    "#;
    for name in
        ["'", "''", "a'b\"c", "$(touch pwned)", "`touch pwned`", "\\", "*", "-n", "a b", "\u{202e}x", "!x"]
    {
        let request = format!("--request-id={name}");
        let out = sh(&root, script, &["reserve", "--parent=ws", &request, "--", name]);
        let parts: Vec<String> = out.out().split('\0').map(str::to_owned).collect();
        assert_eq!(
            (parts[0].as_str(), parts[1].as_str(), parts[3].as_str()),
            (name, name, "reserved"),
            "{parts:?}"
        );
    }
    for nasty in NASTY {
        // A usage error, too: its message holds what was wrong.
        let told = sh(&root, script, &["inspect", nasty]);
        let parts: Vec<String> = told.out().split('\0').map(str::to_owned).collect();
        assert!(["usage", "ok"].contains(&parts[3].as_str()), "{nasty:?}: {parts:?}");
        assert!(!parts[2].is_empty(), "{nasty:?}: {parts:?}");
    }
    assert!(!root.scratch().join("pwned").exists());
}

/// Asking for a field prints its value as it is, whatever the value is, and nothing for what is not there.
#[test]
fn unknown_fields_print_as_empty_lines() {
    let root = TestRoot::new();
    let _ = root.reserve("t1");
    let shown = text(
        &root,
        &["inspect", "t1", "--print", "nothing,taskId,turns.99999999999999999999999,owner.x.y,ok.z"],
    );
    assert_eq!(shown.exits(0).out(), "\nt1\n\n\n\n");
    let shown = text(&root, &["inspect", "t1", "--print=-1,turns.-1,\u{1f600},a b"]);
    assert_eq!(shown.exits(0).out(), "\n\n\n\n");
    for bad in ["", ",", "a..b", ".", "code,", "a.", ".a"] {
        let _ = call(root.command(&["inspect", "t1", "--print", bad])).exits(64);
        let _ = json(&root, &["inspect", "t1", &format!("--print={bad}")]).exits(64);
    }
}
