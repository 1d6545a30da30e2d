//! The form for shells: text for `eval` that leaves no variable of an earlier call behind.
//!
//! The script first unsets every variable the command can set, then sets what this answer has. Which ones a
//! command can set is the static table [`OUTPUTS`]: a field that is not in it is not exported, because its
//! variable would survive the next call.
//!
//! `LYCHGATE_TASK`, `LYCHGATE_ATTEMPT` and `LYCHGATE_TOKEN` are different: they belong together, they are who
//! the *next* call speaks for, and a token that is unset is lost. So:
//!
//! - `reserve` makes an identity. All of it is unset, for refusals too, and set from the answer.
//! - `rotate`, when it succeeds, sets task and attempt, and drops a token that belongs to another attempt. A
//!   launcher that held the token keeps it, since its answer does not print it again. A refusal touches nothing.
//! - `admit`, `settle` and `report` read the identity from the environment. They never unset it, and set task
//!   and attempt only when they succeed: a refusal may name an attempt that is not the caller's.
//! - `stop`, `inspect`, `claim-retire`, `recover`, `import` and the commands about sessions are about somebody
//!   else and touch none of it.
//!
//! Variables are set, not exported: an agent started for one task must not inherit what the script last asked
//! about another. Who wants that says so (`set -a`).
//!
//! What an answer says about a task is in `LYCHGATE_ANSWER_TASK` and `LYCHGATE_ANSWER_ATTEMPT` for every
//! command. For the same reason the root is `LYCHGATE_ANSWER_ROOT`: `LYCHGATE_ROOT` would redirect later calls.

use std::fmt::Write as _;

use serde_json::Value;

use super::Answer;
use crate::protocol::codes::Exit;

/// Set by every command, from the answer itself.
const COMMON: [&str; 8] = [
    "LYCHGATE_EXIT",
    "LYCHGATE_CODE",
    "LYCHGATE_ANSWER_ROOT",
    "LYCHGATE_REQUEST_ID",
    "LYCHGATE_ANSWER_TASK",
    "LYCHGATE_ANSWER_ATTEMPT",
    "LYCHGATE_MESSAGE",
    "LYCHGATE_HINT",
];

/// Who the next call speaks for.
const IDENTITY: [(&str, &str); 4] = [
    ("taskId", "LYCHGATE_TASK"),
    ("attemptId", "LYCHGATE_ATTEMPT"),
    ("token", "LYCHGATE_TOKEN"),
    ("workerToken", "LYCHGATE_WORKER_TOKEN"),
];

/// The fields each command exports besides.
const OUTPUTS: [(&str, &str); 25] = [
    (
        "reserve",
        "taskStatus proven receiptEligible reason reasonCode outcome ownerAlive reportPath resultPath \
         tokenFile parentWorkspaceId runId stepId inputHash replaces replacesAttemptId \
         replacementTaskId currentAttemptId ancestor stopEpoch since owedCount lateReports otherInputsCount",
    ),
    (
        "rotate",
        "taskStatus proven receiptEligible reason reasonCode outcome ownerAlive tokenFile \
         owned ownerPid previousAttemptId currentAttemptId ancestor runId stepId replacementTaskId \
         stopEpoch since",
    ),
    (
        "admit",
        "sendId turnId sendState taskStatus reason reasonCode currentAttemptId ancestor \
         runId stepId replacementTaskId stopEpoch since",
    ),
    (
        "stop",
        "cleanupId taskStatus phase reason reasonCode receipt source currentAttemptId stopEpoch \
         owedCount canceledSends lateReports since runId runsCount tasksCount",
    ),
    (
        "settle",
        "taskStatus phase receipt turnAttemptId currentAttemptId stopEpoch owedCount canceledSends \
         lateReports",
    ),
    (
        "report",
        "taskStatus reasonCode reportPath reportAttemptId bytes sha256 lateReports currentAttemptId \
         text",
    ),
    (
        "claim-retire",
        "nonce mode authority claimedAt lateReports currentTaskId replacementTaskId taskStatus currentAttemptId \
         owedCount inFlightCount",
    ),
    (
        "inspect",
        "outcome reasonCode why taskStatus phase proven receiptEligible receipt ownerAlive live \
         turnsCount stepsCount owedCount reportPath reportAttemptId lateReports parentWorkspaceId runId stepId \
         inputHash replacementTaskId stopEpoch since tasksCount situation sessionId generation state guard",
    ),
    ("step", "runId stepId inputHash stepStatus reportPath currentTaskId otherInputsCount"),
    ("wait", "outcome reasonCode why taskStatus phase lateReports"),
    ("recover", "recoveredCount leftCount atWork"),
    ("import", "xumRoot dryRun leftCount problemsCount changedMeanwhile"),
    (
        "session",
        "sessionId generation state guard cwd plan cause note since seq queuedPrompts keptTexts from to \
         ownerPid blockersCount",
    ),
    (
        "prompt",
        "sessionId promptId alias state kind seq text marker markedText end nextPromptId removed reason ticket leftMs \
         limit pendingCount retryable to",
    ),
    (
        "claim",
        "sessionId claimed hasQueuedPrompt ticket promptId queuedPromptId reason attempt attempts maxAttempts \
         chain generation seq end unfinishedCount",
    ),
    ("release", "sessionId released promptId openTickets"),
    ("say", "sessionId id waiting limit"),
    ("drain", "sessionId partsCount left hasQueuedPrompt suspended again acknowledged unknownCount"),
    ("todo", "sessionId unfinishedCount armed reason"),
    (
        "end-turn",
        "sessionId decision by text ticket promptId reason attempt maxAttempts chain generation seq \
         unfinishedCount exhausted partsCount left hasQueuedPrompt storedCount",
    ),
    ("background", "sessionId markId related live"),
    ("notify", "sessionId id kind status text related repeat queued began gapId omittedCount reason"),
    ("cron", "sessionId id wakeup text related repeat queued began gapId omittedCount reason"),
    ("gaps", "sessionId gapsCount acknowledgedCount unknownCount left"),
    ("hook", "agent scope settings backup dryRun binary guard healthy lastSeen"),
];

/// Where a field lies that `inspect` tells as a part of something.
const PARTS: [(&str, &str); 9] = [
    ("attemptId", "identity.attemptId"),
    ("ownerAlive", "owner.alive"),
    ("receipt", "closed.receipt"),
    ("reportPath", "report.path"),
    ("reportAttemptId", "report.attemptId"),
    ("replacementTaskId", "retiredBy.replacementTaskId"),
    ("runId", "workflowTask.runId"),
    ("stepId", "workflowTask.stepId"),
    ("inputHash", "workflowTask.inputHash"),
];

/// The value of a field: the answer's own, else a part of one, else how many a list has.
fn value_of(answer: &Answer, field: &str) -> Option<Value> {
    if let Some(value) = answer.fields.get(field) {
        return Some(value.clone());
    }
    if let Some((_, path)) = PARTS.iter().find(|(name, _)| *name == field && answer.command == "inspect") {
        let (first, rest) = path.split_once('.')?;
        return answer.fields.get(first)?.get(rest).cloned();
    }
    if field == "ticket" {
        return answer.fields.get("ticketId").cloned();
    }
    let list = answer.fields.get(field.strip_suffix("Count")?)?;
    Some(list.as_array()?.len().into())
}

/// The fields a command exports in this form, besides the identity and what every answer has.
pub fn sh_fields(command: &str) -> impl Iterator<Item = &'static str> {
    let fields = OUTPUTS.iter().find(|(name, _)| *name == command).map_or("", |(_, fields)| fields);
    fields.split_ascii_whitespace()
}

/// The variable of a field in [`OUTPUTS`].
fn variable(command: &str, field: &str) -> String {
    match field {
        "sendId" => "LYCHGATE_SEND".to_owned(),
        "turnId" => "LYCHGATE_TURN".to_owned(),
        "cleanupId" => "LYCHGATE_CLEANUP".to_owned(),
        "sessionId" => "LYCHGATE_SESSION".to_owned(),
        "promptId" => "LYCHGATE_PROMPT".to_owned(),
        "markId" => "LYCHGATE_MARK".to_owned(),
        "gapId" => "LYCHGATE_GAP".to_owned(),
        // `LYCHGATE_ATTEMPT` is who the next call speaks for.
        "attempt" => "LYCHGATE_TICKET_ATTEMPT".to_owned(),
        "reasonCode" => "LYCHGATE_REASON".to_owned(),
        // Beside a `reasonCode` it is a sentence; the stable word has the short name.
        "reason" if sh_fields(command).any(|field| field == "reasonCode") => {
            "LYCHGATE_REASON_TEXT".to_owned()
        }
        _ => {
            let mut name = String::from("LYCHGATE_");
            for c in field.chars() {
                if c.is_ascii_uppercase() {
                    name.push('_');
                }
                name.push(c.to_ascii_uppercase());
            }
            name
        }
    }
}

/// What a command does to the identity.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Identity {
    Makes,
    Changes,
    Speaks,
    Leaves,
}

fn identity(answer: &Answer) -> Identity {
    let succeeded = matches!(answer.exit(), Exit::Done);
    match answer.command {
        "reserve" => Identity::Makes,
        "rotate" if succeeded => Identity::Changes,
        "admit" | "settle" | "report" if succeeded => Identity::Speaks,
        _ => Identity::Leaves,
    }
}

pub(super) fn script(answer: &Answer) -> String {
    let identity = identity(answer);
    let outputs: Vec<&str> = sh_fields(answer.command).collect();
    let mut script = String::from("unset");
    let mut unset: Vec<String> = COMMON.iter().map(|name| (*name).to_owned()).collect();
    unset.extend(outputs.iter().map(|field| variable(answer.command, field)));
    if identity == Identity::Makes {
        unset.extend(IDENTITY.iter().map(|(_, name)| (*name).to_owned()));
    }
    for name in unset {
        script.push(' ');
        script.push_str(&name);
    }
    script.push('\n');

    set(&mut script, "LYCHGATE_EXIT", &answer.exit().number().to_string());
    set(&mut script, "LYCHGATE_CODE", answer.code.as_str());
    push_identity(&mut script, answer, identity);
    for field in outputs {
        set_field(&mut script, &variable(answer.command, field), value_of(answer, field).as_ref());
    }
    set_field(&mut script, "LYCHGATE_ANSWER_TASK", answer.fields.get("taskId"));
    set_field(&mut script, "LYCHGATE_ANSWER_ATTEMPT", value_of(answer, "attemptId").as_ref());
    if let Some(root) = &answer.root {
        set(&mut script, "LYCHGATE_ANSWER_ROOT", &root.to_string_lossy());
    }
    if let Some(id) = &answer.request_id {
        set(&mut script, "LYCHGATE_REQUEST_ID", id.as_str());
    }
    set(&mut script, "LYCHGATE_MESSAGE", &answer.message);
    if let Some(hint) = &answer.hint {
        set(&mut script, "LYCHGATE_HINT", hint);
    }
    script
}

fn push_identity(script: &mut String, answer: &Answer, identity: Identity) {
    let fields = match identity {
        Identity::Leaves => return,
        Identity::Speaks => IDENTITY.get(..2).unwrap_or_default(),
        Identity::Makes | Identity::Changes => &IDENTITY,
    };
    if identity == Identity::Changes
        && let Some(Value::String(attempt)) = answer.fields.get("attemptId")
    {
        let attempt = quoted(attempt);
        let _: std::fmt::Result = writeln!(
            script,
            "test \"${{LYCHGATE_ATTEMPT-}}\" = {attempt} || unset LYCHGATE_TOKEN LYCHGATE_WORKER_TOKEN"
        );
    }
    for (field, name) in fields {
        set_field(script, name, answer.fields.get(*field));
    }
}

/// Sets a variable to a single value; what is missing, null or a collection leaves it as it is.
fn set_field(script: &mut String, name: &str, value: Option<&Value>) {
    match value {
        Some(Value::String(text)) => set(script, name, text),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => set(script, name, &value.to_string()),
        None | Some(Value::Null | Value::Array(_) | Value::Object(_)) => {}
    }
}

fn set(script: &mut String, name: &str, value: &str) {
    let _: std::fmt::Result = writeln!(script, "{name}={}", quoted(value));
}

/// Quotes a text for a POSIX shell. No variable can hold a NUL, so NULs are dropped.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for c in text.chars() {
        match c {
            '\'' => quoted.push_str("'\\''"),
            '\0' => {}
            _ => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;
    use crate::protocol::codes::Code;

    fn sh(script: &str) -> Vec<u8> {
        let output = Command::new("sh").arg("-euc").arg(script).output().expect("sh runs");
        assert!(output.status.success(), "{}\n{script}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_quoted_text_comes_back_from_the_shell(text in r"[^\x00]*|[ '\\\n$`!*a-c\x22-]*") {
            prop_assert_eq!(sh(&format!("printf %s {}", quoted(&text))), text.into_bytes());
        }
    }

    const PRINT: &str =
        r#"printf '%s|%s|%s' "${LYCHGATE_TASK-none}" "${LYCHGATE_ATTEMPT-none}" "${LYCHGATE_TOKEN-none}""#;

    fn identity_after(answer: &Answer) -> String {
        let mine = "LYCHGATE_TASK=mine LYCHGATE_ATTEMPT=att_mine LYCHGATE_TOKEN=tok_mine";
        String::from_utf8(sh(&format!("{mine}\n{}{PRINT}", script(answer)))).expect("UTF-8")
    }

    fn about(command: &'static str, code: Code, task: &str, attempt: &str) -> Answer {
        Answer::new(command, code, "m").field("taskId", task).field("attemptId", attempt)
    }

    #[test]
    fn a_reserve_replaces_the_whole_identity_even_when_it_is_refused() {
        let reserved = about("reserve", Code::Reserved, "new", "att_new").field("token", "tok_new");
        assert_eq!(identity_after(&reserved), "new|att_new|tok_new");
        assert_eq!(identity_after(&Answer::new("reserve", Code::TaskExists, "m")), "none|none|none");
    }

    #[test]
    fn a_rotate_keeps_the_token_of_the_same_attempt_only() {
        let own_launch = about("rotate", Code::Launched, "mine", "att_mine");
        assert_eq!(identity_after(&own_launch), "mine|att_mine|tok_mine");
        let fresh = about("rotate", Code::Rotated, "mine", "att_fresh");
        assert_eq!(identity_after(&fresh), "mine|att_fresh|none");
        assert_eq!(identity_after(&fresh.field("token", "tok_fresh")), "mine|att_fresh|tok_fresh");
        let refused = about("rotate", Code::StaleLaunch, "mine", "att_other");
        assert_eq!(identity_after(&refused), "mine|att_mine|tok_mine");
    }

    #[test]
    fn only_a_success_of_the_speaker_sets_its_identity() {
        assert_eq!(identity_after(&about("admit", Code::Admitted, "t", "att_a")), "t|att_a|tok_mine");
        for (command, code) in [
            ("admit", Code::StaleAttempt),
            ("settle", Code::NotOwner),
            ("stop", Code::Stopped),
            ("inspect", Code::Ok),
            ("claim-retire", Code::Claimed),
        ] {
            let answer = about(command, code, "other", "att_other");
            assert_eq!(identity_after(&answer), "mine|att_mine|tok_mine", "{command}");
            let script = script(&answer);
            assert!(script.contains("LYCHGATE_ANSWER_TASK='other'\n"), "{script}");
        }
    }

    #[test]
    fn a_stale_turn_never_survives_a_refused_gate() {
        let script = script(&Answer::new("admit", Code::Busy, "m"));
        let turn = sh(&format!("LYCHGATE_TURN=turn_old\n{script}printf %s \"${{LYCHGATE_TURN-none}}\""));
        assert_eq!(turn, b"none");
    }

    #[test]
    fn the_table_knows_every_command_and_no_two_fields_share_a_variable() {
        for command in crate::cli::COMMAND_NAMES {
            let mut names: Vec<String> = sh_fields(command).map(|field| variable(command, field)).collect();
            names.extend(
                COMMON.iter().chain(IDENTITY.iter().map(|(_, name)| name)).map(|name| (*name).to_owned()),
            );
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert!(sh_fields(command).count() > 0, "{command}");
            assert_eq!(names.len(), count, "{command}");
        }
    }
}
