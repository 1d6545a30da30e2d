use std::ffi::OsString;

use serde_json::json;

use super::*;

fn admitted() -> Answer {
    let mut answer = Answer::new("admit", Code::Admitted, "the turn may start, once")
        .field("taskId", "fix-1")
        .field("attemptId", "att_0123456789abcdef")
        .field("token", "tok_5ec7e7")
        .field("turnId", "turn_0123456789abcdef0001")
        .field("proven", true)
        .field("replaces", Value::Null)
        .field("owner", json!({"name": "it's \u{1b}[31mme", "alive": true, "workerToken": "tok_2"}))
        .field("owed", json!([]))
        .field("ancestors", json!(["main", "top"]))
        .field(
            "turns",
            json!([{"turnId": "turn_1", "since": "now"}, {"turnId": "turn_2", "owner": {"pid": 7}}]),
        );
    answer.root = Some(PathBuf::from("/state"));
    answer.request_id = RequestId::parse("req-1").ok();
    answer
}

fn refusal() -> Answer {
    Answer::new("admit", Code::AttemptClosing, "`fix-1` is\nclosing")
        .field("taskId", "fix-1")
        .hint("ask again")
}

fn style(format: Format) -> Style {
    Style { format, ..Style::default() }
}

fn printing(format: Format, fields: &[&str]) -> Style {
    Style { format, print: fields.iter().map(|field| (*field).to_owned()).collect(), ..Style::default() }
}

/// Both streams, so that one snapshot shows the whole behaviour.
fn shown(answer: &Answer, style: &Style) -> String {
    let rendered = answer.render(style);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    format!("{}--\n{}", text(rendered.stdout), text(rendered.stderr))
}

#[test]
fn json_is_one_object_on_one_line() {
    insta::assert_snapshot!(shown(&admitted(), &style(Format::Json)), @r#"
    {"ok":true,"command":"admit","code":"admitted","root":"/state","requestId":"req-1","taskId":"fix-1","attemptId":"att_0123456789abcdef","token":"tok_5ec7e7","turnId":"turn_0123456789abcdef0001","proven":true,"replaces":null,"owner":{"name":"it's \u001b[31mme","alive":true,"workerToken":"tok_2"},"owed":[],"ancestors":["main","top"],"turns":[{"turnId":"turn_1","since":"now"},{"turnId":"turn_2","owner":{"pid":7}}],"message":"the turn may start, once"}
    --
    "#);
    insta::assert_snapshot!(shown(&refusal(), &style(Format::Json)), @r#"
    {"ok":false,"command":"admit","code":"attempt-closing","root":null,"requestId":null,"taskId":"fix-1","message":"`fix-1` is\nclosing","hint":"ask again"}
    --
    "#);
}

#[test]
fn text_lists_the_fields_and_hides_tokens_and_escapes() {
    insta::assert_snapshot!(shown(&admitted(), &style(Format::Text)), @r"
    the turn may start, once
    taskId:      fix-1
    attemptId:   att_0123456789abcdef
    turnId:      turn_0123456789abcdef0001
    proven:      true
    owner.name:  it's \u{1b}[31mme
    owner.alive: true
    owed:        none
    ancestors:   main, top
    turns:
      turnId: turn_1  since: now
      turnId: turn_2  owner.pid: 7
    The token is not shown: use --show-token, --json or --token-file
    --
    ");
    let showing = Style { show_token: true, ..Style::default() };
    let text = shown(&admitted(), &showing);
    assert!(text.contains("token:             tok_5ec7e7\n"), "{text}");
    assert!(text.contains("owner.workerToken: tok_2\n") && !text.contains("not shown"), "{text}");
}

#[test]
fn a_refusal_is_two_lines_on_standard_error() {
    insta::assert_snapshot!(shown(&refusal(), &style(Format::Text)), @r"
    --
    lychgate admit: refused (attempt-closing): `fix-1` is\nclosing
    hint: ask again
    ");
}

#[test]
fn every_exit_has_its_word() {
    let cases = [
        (Code::StaleAttempt, "refused"),
        (Code::OwnerDeadUnsettled, "unresolved"),
        (Code::Usage, "usage"),
        (Code::RowUnreadable, "unreadable"),
        (Code::Internal, "internal error"),
        (Code::Uncertain, "uncertain"),
        (Code::Io, "failed"),
        (Code::Busy, "busy"),
    ];
    for (code, word) in cases {
        let text = shown(&Answer::new("stop", code, "m"), &Style::default());
        assert_eq!(text, format!("--\nlychgate stop: {word} ({code}): m\n"));
    }
}

#[test]
fn what_is_pending_is_data() {
    let answer = Answer::new("stop", Code::Stopping, "one turn is owed").field("stopEpoch", 3);
    let answer = Answer { exit: Some(Exit::Pending), ..answer };
    assert_eq!(shown(&answer, &Style::default()), "one turn is owed\nstopEpoch: 3\n--\n");
    assert_eq!(answer.exit(), Exit::Pending);
    let rendered = answer.render(&style(Format::Json));
    assert!(rendered.stdout.starts_with(br#"{"ok":false,"#));
}

#[test]
fn an_uncertain_call_learns_how_to_repeat_itself() {
    let mut answer = Answer::new("stop", Code::Uncertain, "the folder could not be synced");
    answer.request_id = RequestId::parse("req-9").ok();
    let text = shown(&answer, &Style::default());
    assert!(text.ends_with("hint: repeat the call with --request-id req-9\n"), "{text}");
}

#[test]
fn a_body_replaces_message_and_list_and_goes_to_standard_output() {
    let body = "root /state\n\tfix-1: live\u{202e}";
    let inspected = Answer::new("inspect", Code::Ok, "m").field("taskId", "fix-1").body(body).hint("h");
    assert_eq!(shown(&inspected, &Style::default()), "root /state\n\tfix-1: live\\u{202e}\nhint: h\n--\n");
    let differs = Answer::new("inspect", Code::OutcomeDiffers, "it is live").body(body);
    assert_eq!(
        shown(&differs, &Style::default()),
        "root /state\n\tfix-1: live\\u{202e}\n--\nlychgate inspect: refused (outcome-differs): it is live\n"
    );
}

#[test]
fn a_body_does_not_swallow_a_token_that_was_asked_for() {
    let reserved = Answer::new("reserve", Code::Reserved, "m").field("token", "tok_1").body("reserved fix-1");
    let showing = Style { show_token: true, ..Style::default() };
    assert_eq!(shown(&reserved, &showing), "reserved fix-1\ntoken: tok_1\n--\n");
    assert!(shown(&reserved, &Style::default()).contains("--show-token"));
}

#[test]
fn a_verbatim_text_is_printed_byte_for_byte() {
    let report = Answer::new("report", Code::Ok, "m").field("text", "a\u{7}b").verbatim("a\u{7}b");
    assert_eq!(report.render(&Style::default()).stdout, b"a\x07b");
    let refused = Answer::new("report", Code::NoReport, "m").verbatim("a");
    assert_eq!(refused.render(&Style::default()).stdout, b"");
}

#[test]
fn nothing_that_could_spoof_a_terminal_passes() {
    let text: String = ('\0'..='\u{3000}').collect();
    let shown = escaped(&text);
    let bad = |c: char| {
        c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    assert!(!shown.chars().any(bad));
    assert_eq!(escaped("a\u{1b}[0m\r\n\u{9b}\u{7f}é漢"), r"a\u{1b}[0m\r\n\u{9b}\u{7f}é漢");
}

#[test]
fn colour_marks_the_first_word_only() {
    let style = Style { colour: true, ..Style::default() };
    let text = shown(&refusal(), &style);
    assert!(text.contains("admit: \u{1b}[1;31mrefused\u{1b}[0m (attempt-closing): `fix-1`"), "{text}");
}

#[test]
fn printed_fields_are_raw_and_missing_ones_are_empty_lines() {
    let style = printing(
        Format::Text,
        &["token", "owner.alive", "turns.1.turnId", "turns.9.turnId", "replaces", "ancestors", "code", "ok"],
    );
    insta::assert_snapshot!(shown(&admitted(), &style), @r#"
    tok_5ec7e7
    true
    turn_2


    ["main","top"]
    admitted
    true
    --
    "#);
}

#[test]
fn a_refusal_prints_fields_and_still_complains_in_text_form_only() {
    insta::assert_snapshot!(shown(&refusal(), &printing(Format::Text, &["turnId"])), @r"

    --
    lychgate admit: refused (attempt-closing): `fix-1` is\nclosing
    hint: ask again
    ");
    assert_eq!(shown(&refusal(), &printing(Format::Json, &["code"])), "attempt-closing\n--\n");
}

#[test]
fn sh_unsets_before_it_sets() {
    insta::assert_snapshot!(shown(&admitted(), &style(Format::Sh)), @"
    unset LYCHGATE_EXIT LYCHGATE_CODE LYCHGATE_ANSWER_ROOT LYCHGATE_REQUEST_ID LYCHGATE_ANSWER_TASK LYCHGATE_ANSWER_ATTEMPT LYCHGATE_MESSAGE LYCHGATE_HINT LYCHGATE_SEND LYCHGATE_TURN LYCHGATE_SEND_STATE LYCHGATE_TASK_STATUS LYCHGATE_REASON_TEXT LYCHGATE_REASON LYCHGATE_CURRENT_ATTEMPT_ID LYCHGATE_ANCESTOR LYCHGATE_RUN_ID LYCHGATE_STEP_ID LYCHGATE_REPLACEMENT_TASK_ID LYCHGATE_STOP_EPOCH LYCHGATE_SINCE
    LYCHGATE_EXIT='0'
    LYCHGATE_CODE='admitted'
    LYCHGATE_TASK='fix-1'
    LYCHGATE_ATTEMPT='att_0123456789abcdef'
    LYCHGATE_TURN='turn_0123456789abcdef0001'
    LYCHGATE_ANSWER_TASK='fix-1'
    LYCHGATE_ANSWER_ATTEMPT='att_0123456789abcdef'
    LYCHGATE_ANSWER_ROOT='/state'
    LYCHGATE_REQUEST_ID='req-1'
    LYCHGATE_MESSAGE='the turn may start, once'
    --
    ");
}

fn usage(line: &str) -> (Answer, Style) {
    let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let error = crate::cli::parse(&args).err().unwrap_or_else(|| panic!("`{line}` was accepted"));
    (usage_answer(&error, &args).expect("not a request for help"), scanned_style(&args))
}

#[test]
fn a_usage_error_says_where_on_one_line() {
    let text = |line| {
        let (answer, style) = usage(line);
        shown(&answer, &style)
    };
    insta::assert_snapshot!(text("lychgate --root /r reserve t"), @r"
    --
    lychgate reserve: usage (usage): the following required arguments were not provided: --parent <WS>
    hint: see `lychgate reserve --help`
    ");
    insta::assert_snapshot!(text("lychgate stop t --cleanp x"), @r"
    --
    lychgate stop: usage (usage): unexpected argument '--cleanp' found
    hint: a similar argument exists: '--cleanup'; see `lychgate stop --help`
    ");
    insta::assert_snapshot!(text("lychgate --json sotp t"), @r#"
    {"ok":false,"command":null,"code":"usage","root":null,"requestId":null,"message":"unrecognized subcommand 'sotp'","hint":"some similar subcommands exist: 'step', 'stop'; see `lychgate --help`"}
    --
    "#);
    insta::assert_snapshot!(text("lychgate rotate t --as launch --expect att_1"), @r"
    --
    lychgate rotate: usage (usage): invalid value 'att_1' for '--expect <ATTEMPT[@EPOCH]>': `att_1` is not an attempt id (`att_` and 16 lowercase hex digits)
    hint: see `lychgate rotate --help`
    ");
    insta::assert_snapshot!(text("lychgate settle t --as never --send snd_0123456789abcdef0001"), @r"
    --
    lychgate settle: usage (usage): invalid value 'never' for '--as <HOW>' [possible values: refused, no-work, canceled]
    hint: see `lychgate settle --help`
    ");
    insta::assert_snapshot!(text("lychgate"), @"
    --
    lychgate: usage (usage): 'lychgate' requires a subcommand but one was not provided [subcommands: reserve, rotate, admit, stop, settle, report, claim-retire, step, inspect, wait, recover, import, session, prompt, claim, release, say, drain, todo, end-turn, background, notify, cron, gaps, hook]
    hint: see `lychgate --help`
    ");
}

#[test]
fn the_wanted_form_is_found_in_a_call_that_cannot_be_read() {
    let form = |line: &str| scanned_style(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
    assert_eq!(form("l reserve --nope --format json"), style(Format::Json));
    assert_eq!(form("l --format=sh reserve --nope"), style(Format::Sh));
    assert_eq!(form("l --format=yaml reserve"), style(Format::Text));
    assert_eq!(
        form("l reserve --print code,turns.0 --nope --json"),
        printing(Format::Json, &["code", "turns.0"])
    );
    assert_eq!(form("l reserve -- --json"), style(Format::Text));
    assert_eq!(form("l --root --json reserve"), style(Format::Text));
}

#[test]
fn help_and_version_are_no_errors() {
    for line in ["l --help", "l reserve --help", "l --version", "l stop -h --json"] {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let error = crate::cli::parse(&args).expect_err("help");
        assert!(usage_answer(&error, &args).expect_err("help").contains("lychgate"), "{line}");
    }
}

/// A writer that takes a few bytes and then fails.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.0 == 0 { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
    }
}

#[test]
fn standard_output_matters_and_standard_error_does_not() {
    let rendered = Rendered { stdout: b"four".to_vec(), stderr: b"told".to_vec() };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    assert!(deliver(&rendered, &mut out, &mut err).is_ok());
    assert_eq!((out.as_slice(), err.as_slice()), (&b"four"[..], &b"told"[..]));
    assert!(deliver(&rendered, &mut out, &mut Full(0)).is_ok());
    assert!(deliver(&rendered, &mut Full(3), &mut err).is_err());
    assert!(deliver(&rendered, &mut Full(4), &mut err).is_err(), "a flush that fails matters too");
}
