//! Tokens: how they are made, shown, read and checked.
//!
//! A token is a function of the root's secret, the attempt and the role, so that a repeated call can print it
//! again and no row stores it. Every attempt keeps its own for ever.

use std::path::Path;

use crate::cli::TokenArgs;
use crate::protocol::ids::{AttemptId, Name};
use crate::protocol::verdict::{Credentials, Role};
use crate::state::{Secret, Store, TokenFile, hex};

use super::context::Context;
use super::failure::Failure;

const OWNER: &[u8] = b"owner";
const WORKER: &[u8] = b"worker";
const PURPOSE: &[u8] = b"lychgate-token";

/// The root's secret and the token the caller showed.
pub(crate) struct Keys {
    secret: Secret,
    shown: Option<String>,
}

impl Keys {
    /// Reads the token of a call: from its options, else from the environment if `environment` says so.
    pub(crate) fn read(
        store: &Store,
        args: &TokenArgs,
        environment: Option<String>,
    ) -> Result<Self, Failure> {
        let shown = match (&args.token, &args.token_file, args.token_fd) {
            (Some(token), _, _) => Some(token.clone()),
            (None, Some(path), _) => Some(read_file(path)?),
            (None, None, Some(fd)) => Some(TokenFile::read_descriptor(fd).map_err(|e| unreadable(&e))?),
            (None, None, None) => environment,
        };
        Ok(Self { secret: store.secret()?, shown: shown.map(|token| token.trim().to_owned()) })
    }

    /// The keys of a call that shows no token.
    pub(crate) fn without_token(store: &Store) -> Result<Self, Failure> {
        Ok(Self { secret: store.secret()?, shown: None })
    }

    /// The keys of a call whose token file may not exist yet.
    pub(crate) fn read_if_there(store: &Store, args: &TokenArgs) -> Result<Self, Failure> {
        match &args.token_file {
            Some(path) if !TokenFile::exists(path) => Self::without_token(store),
            _ => Self::read(store, args, None),
        }
    }

    /// The owner's token of `attempt`.
    pub(crate) fn owner_token(&self, attempt: &AttemptId) -> String {
        token_text(&self.secret.mac(&[PURPOSE, attempt.as_str().as_bytes(), OWNER]))
    }

    /// The worker's token of `attempt`.
    pub(crate) fn worker_token(&self, attempt: &AttemptId) -> String {
        token_text(&self.secret.mac(&[PURPOSE, attempt.as_str().as_bytes(), WORKER]))
    }
}

fn token_text(mac: &[u8; 32]) -> String {
    format!("tok_{}", hex(mac))
}

fn token_bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("tok_")?;
    if digits.len() != 64 || !digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return None;
    }
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

impl Credentials for Keys {
    fn role(&self, attempt: &AttemptId) -> Role {
        let Some(shown) = &self.shown else { return Role::Absent };
        let Some(bytes) = token_bytes(shown) else { return Role::Wrong };
        let attempt = attempt.as_str().as_bytes();
        if self.secret.verify(&[PURPOSE, attempt, OWNER], &bytes) {
            Role::Owner
        } else if self.secret.verify(&[PURPOSE, attempt, WORKER], &bytes) {
            Role::Worker
        } else {
            Role::Wrong
        }
    }
}

fn read_file(path: &Path) -> Result<String, Failure> {
    TokenFile::read(path).map_err(|error| unreadable(&error))
}

fn unreadable(error: &std::io::Error) -> Failure {
    Failure::usage(format!("the token cannot be read: {error}"))
}

/// The keys of a command of a worker: its options, else the environment it was started with.
pub(crate) fn worker_keys(
    store: &Store,
    args: &TokenArgs,
    context: &Context,
    task: &Name,
) -> Result<Keys, Failure> {
    Keys::read(store, args, context.environment_token(task))
}
