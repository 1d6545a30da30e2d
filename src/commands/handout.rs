//! Handing out the token of a fresh attempt: in the answer, or in a new file that is on disk before the commit.

use std::path::Path;

use serde_json::json;

use crate::answer::Answer;
use crate::protocol::requests::RequestRecord;
use crate::protocol::verdict::Said;
use crate::state::{StateError, TokenFile, Transaction, Writes};

use super::context::Context;
use super::failure::Failure;
use super::repeats::{self, Grant};
use super::tokens::Keys;
use super::transact;

/// What is handed out.
pub(crate) struct Handout<'a> {
    pub(crate) said: Said,
    pub(crate) grant: &'a Grant,
    /// Where the token goes instead of into the answer.
    pub(crate) token_file: Option<&'a Path>,
}

/// Commits, and answers with the token. A token file is written first and taken back if the commit certainly did
/// not happen: a token whose attempt was never committed is of no use to anybody.
pub(crate) fn commit(
    context: &Context,
    keys: &Keys,
    transaction: Transaction<'_>,
    writes: Writes,
    out: Handout<'_>,
) -> Result<Answer, Failure> {
    let mut answer = repeats::granted(context, keys, out.said, out.grant);
    let request = context.request_id.as_str();
    if let Some(path) = out.token_file {
        let token = take_tokens(&mut answer);
        TokenFile::create(path, &token, request).map_err(|error| Failure::output_file(path, &error))?;
        answer.fields.insert("tokenFile".to_owned(), json!(path.display().to_string()));
    }
    match (transact::commit(context, transaction, writes), out.token_file) {
        (Ok(()), path) => {
            if let Some(path) = path {
                TokenFile::keep(path, request);
            }
            Ok(answer)
        }
        (Err(error), Some(path)) if !matches!(error, StateError::Uncertain { .. }) => {
            TokenFile::take_back(path, request);
            Err(error.into())
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// The first answer again, with its token where this call wants it.
pub(crate) fn repeated(
    context: &Context,
    keys: &Keys,
    record: &RequestRecord,
    token_file: Option<&Path>,
) -> Result<Answer, Failure> {
    let mut answer = repeats::repeated(context, keys, record)?;
    let Some(path) = token_file else { return Ok(answer) };
    let token = take_tokens(&mut answer);
    let request = context.request_id.as_str();
    match TokenFile::read(path) {
        Ok(text) if text.trim() == token => {}
        _ => TokenFile::create(path, &token, request).map_err(|error| Failure::output_file(path, &error))?,
    }
    TokenFile::keep(path, request);
    answer.fields.insert("tokenFile".to_owned(), json!(path.display().to_string()));
    Ok(answer)
}

fn take_tokens(answer: &mut Answer) -> String {
    answer.fields.shift_remove("workerToken");
    let token = answer.fields.shift_remove("token");
    token.and_then(|token| token.as_str().map(str::to_owned)).unwrap_or_default()
}
