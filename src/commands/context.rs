//! What a command sees of the world: the environment as it was at the start, the clock, and fresh ids.
//!
//! This is the only place that reads environment variables, the clock and the random source.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::{Global, Worker};
use crate::dialect::settings::VARIABLES;
use crate::protocol::guard::session::BootTime;
use crate::protocol::ids::{AttemptId, CleanupId, Fresh, InvalidId, Name, Nonce, RequestId, Timestamp};
use crate::protocol::verdict::Call;
use crate::state::{hex, process::Here};

use super::failure::Failure;

/// How long a hook waits for the lock of its session: the agent waits for the hook.
const HOOK_LOCK_WAIT: Duration = Duration::from_millis(500);

/// Milliseconds since the machine was started, by the clock of all deadlines.
pub fn boot_ms() -> u64 {
    clock::boot_ms()
}

/// The environment variables a command looks at. Empty is unset.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    root: Option<PathBuf>,
    task: Option<OsString>,
    attempt: Option<OsString>,
    token: Option<OsString>,
    no_colour: bool,
    width: usize,
    home: Option<PathBuf>,
    search_path: Option<OsString>,
    called_as: Option<OsString>,
    /// The variables that move the settings of agents.
    moved: Vec<(&'static str, PathBuf)>,
}

/// The width of a table where nobody says another one.
const WIDTH_DEFAULT: usize = 80;
/// The widest table. A formatted cell cannot be wider than 65535 columns, whatever COLUMNS says.
const WIDTH_MAX: usize = 1000;

#[allow(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn path_variable(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from)
}

fn text_variable(name: &str) -> Option<String> {
    variable(name).and_then(|value| value.into_string().ok())
}

/// A variable that is not UTF-8 is never taken for one that is not set: it may be all that guards a call.
fn utf8<'a>(name: &str, value: &'a OsStr) -> Result<&'a str, Failure> {
    value.to_str().ok_or_else(|| Failure::usage(format!("{name} is not UTF-8")))
}

/// Its specification asks to ignore a relative path, which would be another root in every folder.
fn state_home() -> Option<PathBuf> {
    path_variable("XDG_STATE_HOME").filter(|home| home.is_absolute())
}

fn width(columns: Option<&str>) -> usize {
    columns.and_then(|text| text.parse().ok()).map_or(WIDTH_DEFAULT, |width: usize| width.min(WIDTH_MAX))
}

impl Environment {
    /// Reads the environment once.
    pub fn read() -> Self {
        let root = path_variable("LYCHGATE_ROOT")
            .or_else(|| path_variable("XUM_ROOT"))
            .or_else(|| state_home().map(|home| home.join("lychgate")))
            .or_else(|| path_variable("HOME").map(|home| home.join(".local/state/lychgate")));
        Self {
            root,
            task: variable("LYCHGATE_TASK"),
            attempt: variable("LYCHGATE_ATTEMPT"),
            token: variable("LYCHGATE_TOKEN"),
            no_colour: variable("NO_COLOR").is_some(),
            width: width(text_variable("COLUMNS").as_deref()),
            home: path_variable("HOME"),
            search_path: variable("PATH"),
            called_as: None,
            moved: VARIABLES.into_iter().filter_map(|name| Some((name, path_variable(name)?))).collect(),
        }
    }

    /// Notes what this program was called as.
    #[must_use]
    pub fn called_as(mut self, name: Option<&OsString>) -> Self {
        self.called_as = name.cloned();
        self
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
    /// What the process that works on a hook call was told.
    pub(crate) worker: Option<Worker>,
    pub(crate) request_id: RequestId,
    pub(crate) here: Here,
    /// Whether the answer tells of a change, this call's or the one it repeats.
    pub(crate) answers_change: Cell<bool>,
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
        refuse_other_than_utf8(&root)?;
        let ids = Ids::new();
        let request_id = match &global.request_id {
            Some(id) => id.clone(),
            None => ids.fresh("req_", 8, RequestId::parse)?,
        };
        Ok(Self {
            command,
            root,
            lock_wait: match global.worker {
                Some(_) => global.lock_wait.min(HOOK_LOCK_WAIT),
                None => global.lock_wait,
            },
            worker: global.worker.clone(),
            request_id,
            here: Here::new(),
            answers_change: Cell::new(false),
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

    /// This call, as the rules see it.
    pub(crate) fn call(&self) -> Call {
        Call { command: self.command, request_id: self.request_id.clone(), now: self.now() }
    }

    /// The boot clock, for deadlines. It never goes back, and goes on while the machine sleeps.
    pub(crate) fn boot(&self) -> BootTime {
        #[cfg(feature = "test-seams")]
        if let Some(boot_id) = text_variable("LYCHGATE_TEST_BOOT_ID") {
            return BootTime { boot_id: Some(boot_id), ms: clock::boot_ms() };
        }
        BootTime { boot_id: self.here.boot_id().map(str::to_owned), ms: clock::boot_ms() }
    }

    /// Digits for the ids that one call may mint.
    pub(crate) fn fresh(&self) -> Result<Fresh, Failure> {
        self.ids.fresh("", 8, Fresh::parse)
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
        let text = utf8("LYCHGATE_TASK", text)?;
        Name::parse(text).map_err(|error| Failure::usage(format!("LYCHGATE_TASK: {error}")))
    }

    /// The user's home folder.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.environment.home.as_deref()
    }

    /// Where a variable moves an agent's settings to.
    pub(crate) fn moved_to(&self, variable: &str) -> Option<&Path> {
        let mut moved = self.environment.moved.iter();
        moved.find(|(name, _)| *name == variable).map(|(_, folder)| folder.as_path())
    }

    /// The path this program was called by.
    pub(crate) fn program(&self) -> std::io::Result<PathBuf> {
        let environment = &self.environment;
        crate::state::program(environment.called_as.as_deref(), environment.search_path.as_deref())
    }

    /// Whether the environment's attempt and token belong to `task`: the three variables belong together.
    fn environment_is_about(&self, task: &Name) -> bool {
        self.environment.task.as_deref() == Some(OsStr::new(task.as_str()))
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
        let Some(text) = self.environment.attempt.as_deref() else { return Ok(None) };
        let attempt = AttemptId::parse(utf8("LYCHGATE_ATTEMPT", text)?);
        attempt.map(Some).map_err(|error| Failure::usage(format!("LYCHGATE_ATTEMPT: {error}")))
    }

    /// The environment's token, if that is about this task.
    pub(crate) fn environment_token(&self, task: &Name) -> Option<String> {
        // A malformed token is just a wrong one.
        let token = self.environment.token.as_ref().filter(|_| self.environment_is_about(task));
        token.map(|token| token.to_string_lossy().into_owned())
    }
}

/// An answer could not carry such a path back, and would name another root.
fn refuse_other_than_utf8(root: &Path) -> Result<(), Failure> {
    match root.to_str() {
        Some(_) => Ok(()),
        None => Err(Failure::usage(format!("the root's path `{}` is not UTF-8", root.display()))),
    }
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
    #[allow(clippy::unused_self, reason = "with the test seams it looks at the seed")]
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
            super::text_variable("LYCHGATE_TEST_SEED").map(|seed| Self { seed, drawn: Cell::new(0) })
        }

        pub(super) fn fill(&self, bytes: &mut [u8]) {
            self.drawn.set(self.drawn.get() + 1);
            let digest = Sha256::digest(format!("{}/{}", self.seed, self.drawn.get()).as_bytes());
            bytes.iter_mut().zip(digest).for_each(|(byte, drawn)| *byte = drawn);
        }
    }
}

mod clock {
    //! The time, for people; and the boot clock, for deadlines.

    use rustix::time::{ClockId, clock_gettime};

    use crate::protocol::ids::Timestamp;

    /// The time now, to the millisecond.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub(super) fn now() -> Timestamp {
        #[cfg(feature = "test-seams")]
        if let Some(fixed) =
            super::text_variable("LYCHGATE_TEST_NOW").and_then(|text| Timestamp::parse(&text).ok())
        {
            return fixed;
        }
        let text = format!("{:.3}", jiff::Timestamp::now());
        // A formatted instant is well formed; the epoch stands in for the impossible.
        Timestamp::parse(&text).unwrap_or_else(|_| epoch())
    }

    #[cfg(target_os = "linux")]
    const BOOT_CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const BOOT_CLOCK: ClockId = ClockId::Monotonic;

    /// Milliseconds since the machine was started.
    pub(super) fn boot_ms() -> u64 {
        #[cfg(feature = "test-seams")]
        if let Some(fixed) = super::text_variable("LYCHGATE_TEST_BOOT_MS").and_then(|text| text.parse().ok())
        {
            return fixed;
        }
        let now = clock_gettime(BOOT_CLOCK);
        let part = |number: i64| u64::try_from(number).unwrap_or_default();
        part(now.tv_sec) * 1000 + part(now.tv_nsec) / 1_000_000
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
