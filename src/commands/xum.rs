//! What `inspect --xum` and `import` share: a reading of the foreign root that can be relied on.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::protocol::ids::Timestamp;
use crate::protocol::xum::{Problem, Reading};
use crate::state::{StateError, XumRoot};

use super::failure::Failure;

/// How often a root that changes while it is read is read again.
const READINGS_MAX: usize = 6;

/// Two readings in a row, and what differed between them.
pub(super) struct Seen {
    /// The later one.
    pub(super) reading: Reading,
    /// The tasks about which the two say different things. Empty, and `is_steady`: they were equal.
    pub(super) changed: BTreeSet<String>,
    /// Whether the two readings were equal in everything.
    pub(super) is_steady: bool,
}

/// Reads everything twice, and again as long as the two readings differ, within a bound.
pub(super) fn read(root: &XumRoot) -> Result<Seen, Failure> {
    let mut last: Option<Reading> = None;
    let mut changed = BTreeSet::new();
    let mut failed = None;
    for _ in 0..READINGS_MAX {
        match root.read() {
            Ok(reading) => {
                if last.as_ref() == Some(&reading) {
                    return Ok(Seen { reading, changed: BTreeSet::new(), is_steady: true });
                }
                changed = last.as_ref().map(|last| differing(last, &reading)).unwrap_or_default();
                last = Some(reading);
                failed = None;
            }
            // The application may be writing the file just now.
            Err(error @ StateError::XumConfigUnreadable { .. }) => {
                last = None;
                failed = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
        crate::seam::pause("between-readings");
    }
    match (last, failed) {
        (_, Some(error)) => Err(error.into()),
        (Some(reading), None) => Ok(Seen { reading, changed, is_steady: false }),
        (None, None) => Err(Failure::internal("nothing was read")),
    }
}

fn differing(before: &Reading, after: &Reading) -> BTreeSet<String> {
    let ids = before.tasks.keys().chain(after.tasks.keys());
    let mut changed: BTreeSet<String> =
        ids.filter(|id| before.tasks.get(*id) != after.tasks.get(*id)).cloned().collect();
    // What is said about a task rests on the runs as well.
    for run in before.runs.iter().chain(&after.runs) {
        if !(before.runs.contains(run) && after.runs.contains(run)) {
            changed.extend(run.steps.iter().filter_map(|step| step.task.clone()));
        }
    }
    changed
}

/// An instant in milliseconds since the epoch.
pub(super) fn milliseconds(at: &Timestamp) -> i64 {
    at.as_str().parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond)
}

/// A problem, as answers show it.
pub(super) fn told(problem: &Problem) -> Value {
    json!({ "problem": problem.what, "at": problem.at, "says": problem.says })
}
