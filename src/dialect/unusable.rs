//! Why standard input was not a hook call that can be understood.

use thiserror::Error;

/// Why standard input is of no use. Such a call changes nothing, and the agent goes on as it would.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unusable {
    /// Nothing, or only blanks.
    #[error("standard input is empty")]
    Empty,
    /// Bytes that are no UTF-8.
    #[error("standard input is not UTF-8 text")]
    NotUtf8,
    /// Not JSON, cut off, nested too deeply, or more than one document.
    #[error("standard input is not one JSON document (line {line}, column {column})")]
    NotJson {
        /// Where reading ended.
        line: usize,
        /// Where reading ended.
        column: usize,
    },
    /// JSON, but not an object.
    #[error("standard input is JSON, but not an object")]
    NotAnObject,
    /// An object has the same name twice.
    #[error("a name occurs twice in the same JSON object")]
    DuplicateName,
    /// No session id.
    #[error("there is no session id (`{field}`)")]
    NoSession {
        /// The field that should hold it.
        field: &'static str,
    },
    /// A session id that cannot tell one session from others.
    #[error("the session id (`{field}`) is of no use: {why}")]
    BadSession {
        /// The field that holds it.
        field: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Neither the input nor the caller says which event it is.
    #[error("neither standard input nor the command line names the hook event")]
    NoEvent,
    /// A field has another type than the agent gives it.
    #[error("`{field}` has another type than expected")]
    WrongType {
        /// The field.
        field: &'static str,
    },
}
