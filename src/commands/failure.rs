//! Everything that can keep a command from granting, and the one place where it becomes an answer.

use std::path::Path;

use crate::answer::Answer;
use crate::protocol::codes::Code;
use crate::protocol::verdict::Refusal;
use crate::state::{StateError, chain};

/// Why a command did not grant what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A rule says no.
    Refused(Box<Refusal>),
    /// The store could not do it.
    State(StateError),
    /// The call is wrong, in a way the argument parser cannot see.
    Call {
        /// [`Code::Usage`], or a more precise one with the same exit status.
        code: Code,
        message: String,
        hint: Option<String>,
    },
    /// A bug.
    Internal(String),
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Call { code: Code::Usage, message: message.into(), hint: None }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::Internal(message.into())
    }

    /// An output file the call named cannot be written; nothing was committed.
    pub(crate) fn output_file(path: &Path, error: &std::io::Error) -> Self {
        let (code, hint) = if error.kind() == std::io::ErrorKind::AlreadyExists {
            (Code::TokenFileExists, "name a new file; a token is never written over")
        } else {
            (Code::Io, "nothing was changed")
        };
        let message = format!("the token file `{}` cannot be written: {error}", path.display());
        Self::Call { code, message, hint: Some(hint.to_owned()) }
    }

    /// A report could not be spooled; nothing was committed.
    pub(crate) fn spool(error: &std::io::Error) -> Self {
        Self::Call {
            code: Code::Io,
            message: format!("the report cannot be spooled in the root: {error}"),
            hint: Some("nothing was changed".to_owned()),
        }
    }

    /// The commit stands, but its token could not be put where the call wanted it.
    pub(crate) fn undelivered_token(path: &Path, error: &std::io::Error) -> Self {
        Self::Call {
            code: Code::AnswerNotDelivered,
            message: format!(
                "the change is durable, but the token file `{}` is not: {error}",
                path.display()
            ),
            hint: Some("repeat the call with the same --request-id; it answers the same attempt".to_owned()),
        }
    }

    /// The claim stands, but nobody could look at the task once more.
    pub(crate) fn after_claim(error: &StateError) -> Self {
        Self::Call {
            code: Code::AnswerNotDelivered,
            message: format!("the claim is durable, but its task could not be read again: {}", chain(error)),
            hint: Some("repeat the call with the same --request-id; it looks again".to_owned()),
        }
    }

    /// Turns a failure into the answer of `command`.
    pub(crate) fn into_answer(self, command: &'static str) -> Answer {
        match self {
            Self::Refused(refusal) => refused(command, *refusal),
            Self::State(error) => {
                let mut answer = Answer::new(command, error.code(), chain(&error));
                answer.hint = error.hint();
                answer
            }
            Self::Call { code, message, hint } => {
                let mut answer = Answer::new(command, code, message);
                answer.hint = hint.or_else(|| Some(format!("lychgate {command} --help")));
                answer
            }
            Self::Internal(message) => Answer::new(command, Code::Internal, message)
                .hint("this is a bug in lychgate; the old state stands"),
        }
    }
}

fn refused(command: &'static str, refusal: Refusal) -> Answer {
    let mut answer = Answer::new(command, refusal.code, refusal.message);
    answer.fields = refusal.facts;
    answer.hint = refusal.hint;
    answer
}

impl From<Box<Refusal>> for Failure {
    fn from(refusal: Box<Refusal>) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}
