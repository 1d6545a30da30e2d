//! What is remembered of a call, and how it is answered again, so that a lost answer is harmless (hazard H4).

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::answer::Answer;
use crate::protocol::codes::Code;
use crate::protocol::ids::{AttemptId, SendId};
use crate::protocol::requests::RequestRecord;
use crate::protocol::row::Extra;
use crate::protocol::state::shell_word;
use crate::protocol::verdict::{Facts, Refusal, Said};
use crate::state::hex;

use super::context::Context;
use super::failure::Failure;
use super::tokens::Keys;

/// What a granted call hands out besides its facts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grant {
    /// Print the tokens of this attempt.
    pub(crate) tokens_of: Option<AttemptId>,
    /// The send this call is about: the call is remembered as long as that is undischarged.
    pub(crate) send: Option<SendId>,
    /// The answer authorises an act, and is given once.
    pub(crate) authorises: bool,
    /// A hint beside the answer.
    pub(crate) hint: Option<String>,
}

/// A digest of the parts of a request, independent of their spelling on the command line.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut digest = hex(&hasher.finalize());
    digest.truncate(DIGEST_LEN);
    digest
}

/// How many hex digits of its SHA-256 a request is told from another by.
const DIGEST_LEN: usize = 32;

/// The answer to a granted call.
pub(crate) fn granted(context: &Context, keys: &Keys, said: Said, grant: &Grant) -> Answer {
    let mut answer = Answer::new(context.command, said.code, said.message);
    answer.fields = said.facts;
    answer.hint.clone_from(&grant.hint);
    if let Some(attempt) = &grant.tokens_of {
        add_tokens(&mut answer, keys, attempt);
    }
    answer
}

/// Adds the tokens of an attempt to an answer.
fn add_tokens(answer: &mut Answer, keys: &Keys, attempt: &AttemptId) {
    answer.fields.insert("token".to_owned(), json!(keys.owner_token(attempt)));
    answer.fields.insert("workerToken".to_owned(), json!(keys.worker_token(attempt)));
}

/// What a row remembers of a granted call. Tokens are left out: they are computed again.
pub(crate) fn record(context: &Context, digest: &str, said: &Said, grant: &Grant) -> RequestRecord {
    let mut answer = Extra::new();
    answer.insert("code".to_owned(), json!(said.code.as_str()));
    answer.insert("message".to_owned(), json!(said.message));
    answer.insert("facts".to_owned(), Value::Object(said.facts.clone()));
    if let Some(hint) = &grant.hint {
        answer.insert("hint".to_owned(), json!(hint));
    }
    if let Some(attempt) = &grant.tokens_of {
        answer.insert("tokensOf".to_owned(), json!(attempt));
    }
    RequestRecord {
        request_id: context.request_id.clone(),
        command: context.command.to_owned(),
        digest: digest.to_owned(),
        answer,
        send_id: grant.send.clone(),
        authorised: grant.authorises,
        extra: Extra::new(),
    }
}

/// Answers a call from its record.
pub(crate) fn repeated(context: &Context, keys: &Keys, record: &RequestRecord) -> Result<Answer, Failure> {
    let mut answer = recalled(context, record)?;
    let tokens_of = record.answer.get("tokensOf").and_then(Value::as_str);
    if let Some(attempt) = tokens_of.and_then(|text| AttemptId::parse(text).ok()) {
        add_tokens(&mut answer, keys, &attempt);
    }
    Ok(answer)
}

/// The same, of a call that never hands out a token.
pub(crate) fn recalled(context: &Context, record: &RequestRecord) -> Result<Answer, Failure> {
    let text = |key: &str| record.answer.get(key).and_then(Value::as_str);
    let facts = record.answer.get("facts").and_then(Value::as_object).cloned().unwrap_or_default();
    let message = text("message").unwrap_or_default().to_owned();
    if record.authorised {
        return Err(Failure::Refused(Box::new(given_once(facts))));
    }
    let code = text("code").and_then(Code::parse).ok_or_else(|| {
        Failure::internal(format!("the remembered answer of {} has no known code", record.request_id))
    })?;
    let mut answer = Answer::new(context.command, code, message);
    answer.fields = facts;
    answer.hint = text("hint").map(str::to_owned);
    Ok(answer)
}

/// The repeat of an answer that authorised an act: the same ids, and nobody may act on them.
fn given_once(mut facts: Facts) -> Refusal {
    let fact = |key: &str| facts.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    if facts.contains_key("turnId") {
        let (task, turn) = (shell_word(&fact("taskId")), fact("turnId"));
        let message = format!("this call was answered before, and that answer authorised turn {turn}, once");
        let hint = format!(
            "nobody may start on this answer; who knows that the turn never started may settle it: \
             lychgate settle {task} --turn {turn}"
        );
        return Refusal { facts, ..Refusal::new(Code::AlreadyAdmitted, message) }.hint(hint);
    }
    let (session, ticket) = (shell_word(&fact("sessionId")), fact("ticket"));
    let (what, hint) = if ticket.is_empty() {
        let hint = "nobody may start a turn on this answer; it is offered again when its time is over";
        (format!("handed out `{}`", fact("id")), hint.to_owned())
    } else {
        let hint = format!(
            "nobody may send on this answer; who knows that nothing was sent may say so: \
             lychgate claim {session} --ticket {ticket} --as unsent"
        );
        (format!("granted ticket {ticket}"), hint)
    };
    let message = format!("this call was answered before, and that answer {what}, once");
    // What a caller would act on without looking at the code.
    facts.retain(|key, _| !matches!(key.as_str(), "decision" | "by" | "text"));
    if let Some(claimed) = facts.get_mut("claimed") {
        *claimed = json!(false);
    }
    Refusal { facts, ..Refusal::new(Code::AlreadyGranted, message) }.hint(hint)
}

/// The refusal of a request id that was used for another call.
pub(crate) fn reused(context: &Context, record: &RequestRecord) -> Failure {
    let message = format!(
        "request id `{}` was used for another call (`{}`), so this is not a repeat of it",
        context.request_id, record.command
    );
    Failure::Refused(Box::new(
        Refusal::new(Code::RequestIdReused, message).hint("take a new id for a new call"),
    ))
}
