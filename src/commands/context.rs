//! What a command sees of the world: the environment as it was at the start, the clock, and fresh ids.
//!
//! This is the only place that reads environment variables, the clock and the random source.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::Global;
use crate::protocol::ids::{AttemptId, CleanupId, InvalidId, Name, Nonce, RequestId, Timestamp};
use crate::state::process::Here;

use super::failure::Failure;

/// The environment variables a command looks at. Empty is unset.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    root: Option<PathBuf>,
    task: Option<String>,
    attempt: Option<String>,
    token: Option<String>,
    no_colour: bool,
    width: usize,
}

/// The width of a table where nobody says another one.
const WIDTH_DEFAULT: usize = 80;

#[allow(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl Environment {
    /// Reads the environment once.
    pub fn read() -> Self {
        let root = path_variable("LYCHGATE_ROOT")
            .or_else(|| path_variable("XUM_ROOT"))
            .or_else(|| path_variable("XDG_STATE_HOME").map(|home| home.join("lychgate")))
            .or_else(|| path_variable("HOME").map(|home| home.join(".local/state/lychgate")));
        Self {
            root,
            task: variable("LYCHGATE_TASK"),
            attempt: variable("LYCHGATE_ATTEMPT"),
            token: variable("LYCHGATE_TOKEN"),
            no_colour: path_variable("NO_COLOR").is_some(),
            width: variable("COLUMNS").and_then(|text| text.parse().ok()).unwrap_or(WIDTH_DEFAULT),
        }
    }

    /// How many columns a table may have.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether the user asked for no colour.
    pub fn no_colour(&self) -> bool {
        self.no_colour
    }
}

/// What a command works with besides its own arguments.
pub(crate) struct Context {
    pub(crate) command: &'static str,
    pub(crate) root: PathBuf,
    pub(crate) lock_wait: Duration,
    pub(crate) request_id: RequestId,
    pub(crate) here: Here,
    /// Whether this call has committed something, whatever its answer is.
    pub(crate) changed: Cell<bool>,
    environment: Environment,
    ids: Ids,
}

impl Context {
    pub(crate) fn new(
        command: &'static str,
        global: &Global,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let root = global.root.clone().or_else(|| environment.root.clone()).ok_or_else(|| {
            Failure::usage(
                "there is no root: neither --root nor LYCHGATE_ROOT, XDG_STATE_HOME or HOME is set",
            )
        })?;
        let ids = Ids::new();
        let request_id = match &global.request_id {
            Some(id) => id.clone(),
            None => ids.fresh("req_", 8, RequestId::parse)?,
        };
        Ok(Self {
            command,
            root,
            lock_wait: global.lock_wait,
            request_id,
            here: Here::new(),
            changed: Cell::new(false),
            environment: environment.clone(),
            ids,
        })
    }

    /// The root as answers show it: what it really is, once it exists.
    pub(crate) fn shown_root(&self) -> PathBuf {
        crate::state::canonical(&self.root)
    }

    #[allow(clippy::unused_self, reason = "the clock is part of what a command sees of the world")]
    pub(crate) fn now(&self) -> Timestamp {
        clock::now()
    }

    pub(crate) fn fresh_attempt(&self) -> Result<AttemptId, Failure> {
        self.ids.fresh("att_", 8, AttemptId::parse)
    }

    pub(crate) fn fresh_nonce(&self) -> Result<Nonce, Failure> {
        self.ids.fresh("non_", 16, Nonce::parse)
    }

    pub(crate) fn fresh_cleanup(&self) -> Result<CleanupId, Failure> {
        self.ids.fresh("cln_", 16, CleanupId::parse)
    }

    /// The task of a command that may leave it out, from the environment a worker was started with.
    pub(crate) fn task_or_environment(&self, given: Option<&Name>) -> Result<Name, Failure> {
        if let Some(task) = given {
            return Ok(task.clone());
        }
        let Some(text) = &self.environment.task else {
            return Err(Failure::usage("no task is named, and LYCHGATE_TASK is not set"));
        };
        Name::parse(text).map_err(|error| Failure::usage(format!("LYCHGATE_TASK: {error}")))
    }

    /// Whether the environment's attempt and token belong to `task`: the three variables belong together.
    fn environment_is_about(&self, task: &Name) -> bool {
        self.environment.task.as_deref() == Some(task.as_str())
    }

    /// The attempt a command means: given, or the environment's if that is about this task.
    pub(crate) fn attempt_or_environment(
        &self,
        given: Option<&AttemptId>,
        task: &Name,
    ) -> Result<Option<AttemptId>, Failure> {
        if given.is_some() || !self.environment_is_about(task) {
            return Ok(given.cloned());
        }
        self.environment
            .attempt
            .as_deref()
            .map(|text| {
                AttemptId::parse(text).map_err(|error| Failure::usage(format!("LYCHGATE_ATTEMPT: {error}")))
            })
            .transpose()
    }

    /// The environment's token, if that is about this task.
    pub(crate) fn environment_token(&self, task: &Name) -> Option<String> {
        self.environment.token.clone().filter(|_| self.environment_is_about(task))
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Draws ids from the operating system.
struct Ids {
    #[cfg(feature = "test-seams")]
    seed: Option<seeded::Seed>,
}

impl Ids {
    fn new() -> Self {
        Self {
            #[cfg(feature = "test-seams")]
            seed: seeded::Seed::read(),
        }
    }

    fn fresh<T>(
        &self,
        prefix: &str,
        n_bytes: usize,
        parse: impl Fn(&str) -> Result<T, InvalidId>,
    ) -> Result<T, Failure> {
        let mut bytes = [0_u8; 16];
        let bytes =
            bytes.get_mut(..n_bytes).ok_or_else(|| Failure::internal("an id is longer than 16 bytes"))?;
        self.fill(bytes)?;
        parse(&format!("{prefix}{}", hex(bytes))).map_err(|error| Failure::internal(error.to_string()))
    }

    #[allow(clippy::disallowed_methods, reason = "the one place that draws ids")]
    fn fill(&self, bytes: &mut [u8]) -> Result<(), Failure> {
        #[cfg(feature = "test-seams")]
        if let Some(seed) = &self.seed {
            seed.fill(bytes);
            return Ok(());
        }
        getrandom::fill(bytes)
            .map_err(|error| Failure::internal(format!("the system gives no random bytes: {error}")))
    }
}

#[cfg(feature = "test-seams")]
mod seeded {
    //! Fixed ids for the tests: a digest of a seed and a counter.

    use std::cell::Cell;

    use sha2::{Digest as _, Sha256};

    pub(super) struct Seed {
        seed: String,
        drawn: Cell<u64>,
    }

    impl Seed {
        pub(super) fn read() -> Option<Self> {
            super::variable("LYCHGATE_TEST_SEED").map(|seed| Self { seed, drawn: Cell::new(0) })
        }

        pub(super) fn fill(&self, bytes: &mut [u8]) {
            self.drawn.set(self.drawn.get() + 1);
            let digest = Sha256::digest(format!("{}/{}", self.seed, self.drawn.get()).as_bytes());
            bytes.iter_mut().zip(digest).for_each(|(byte, drawn)| *byte = drawn);
        }
    }
}

mod clock {
    //! The time, for people.

    use crate::protocol::ids::Timestamp;

    /// The time now, to the millisecond.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub(super) fn now() -> Timestamp {
        #[cfg(feature = "test-seams")]
        if let Some(fixed) =
            super::variable("LYCHGATE_TEST_NOW").and_then(|text| Timestamp::parse(&text).ok())
        {
            return fixed;
        }
        let text = format!("{:.3}", jiff::Timestamp::now());
        // A formatted instant is well formed; the epoch stands in for the impossible.
        Timestamp::parse(&text).unwrap_or_else(|_| epoch())
    }

    fn epoch() -> Timestamp {
        Timestamp::parse("1970-01-01T00:00:00.000Z").expect("because the text is constant and well formed")
    }
}

/// The age of a recorded instant in whole seconds, if both can be read.
pub(crate) fn age_seconds(since: &Timestamp, now: &Timestamp) -> Option<i64> {
    let since: jiff::Timestamp = since.as_str().parse().ok()?;
    let now: jiff::Timestamp = now.as_str().parse().ok()?;
    Some(now.as_second() - since.as_second())
}
