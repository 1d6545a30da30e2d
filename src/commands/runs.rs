//! Finding a run by its name, and stopping it: latched first, then every child.

use crate::protocol::checkpoint::stop_run;
use crate::protocol::codes::Code;
use crate::protocol::ids::Name;
use crate::protocol::requests::Seen;
use crate::protocol::run::Run;
use crate::protocol::state::shell_word;
use crate::protocol::verdict::{Refusal, Said};
use crate::state::{LockPlan, RunDocument, RunKey, Store, Writes};

use super::context::Context;
use super::failure::Failure;
use super::repeats::{self, Grant, digest};
use super::transact::{self, begin};

/// The refusal for a run that is not there.
fn no_run(run: &Name, parent: Option<&Name>) -> Failure {
    let message = match parent {
        None => format!("there is no run `{run}` in this root"),
        Some(parent) => format!("`{parent}` has no run `{run}`"),
    };
    Failure::Refused(Box::new(Refusal::new(Code::NoSuchStep, message).fact("runId", run.as_str())))
}

/// The run of a name: of the session that was named, or of the only one that has it.
pub(crate) fn find_run(
    store: &Store,
    run: &Name,
    parent: Option<&Name>,
) -> Result<(RunKey, RunDocument), Failure> {
    let key = if let Some(parent) = parent {
        RunKey { parent: parent.clone(), run: run.clone() }
    } else {
        let mut keys = store.find_runs(run)?;
        let key = keys.pop().ok_or_else(|| no_run(run, None))?;
        if let Some(other) = keys.first() {
            let message = format!("`{}` and `{}` both have a run `{run}`", other.parent, key.parent);
            let word = |name: &Name| shell_word(name.as_str());
            let hint =
                format!("say which: --parent {} or --parent {}", word(&other.parent), word(&key.parent));
            return Err(Failure::Call { code: Code::AmbiguousRun, message, hint: Some(hint) });
        }
        key
    };
    let document = store.read_run(&key)?.ok_or_else(|| no_run(run, parent))?;
    Ok((key, document))
}

/// A run that a Stop has latched.
pub(crate) struct Latched {
    pub(crate) key: RunKey,
    pub(crate) run: Run,
    /// The epoch of this Stop.
    pub(crate) epoch: u64,
}

impl Latched {
    /// Whether somebody has gone on on purpose since, before this Stop was repeated.
    pub(crate) fn is_lifted(&self) -> bool {
        self.run.stopped.is_none() || self.run.stop_epoch != self.epoch
    }
}

/// Latches a run: from this commit on none of its steps gets a child. Gives the run as it is then.
pub(crate) fn latch(
    context: &Context,
    store: &Store,
    key: RunKey,
    reason: Option<&str>,
) -> Result<Latched, Failure> {
    let digest = digest(&["stop --run", key.parent.as_str(), key.run.as_str(), reason.unwrap_or_default()]);
    let plan = LockPlan { run: Some(key.clone()), ..LockPlan::default() };
    let transaction = begin(context, store, &plan, &|| Ok(()))?;
    let run = transaction.run().cloned().ok_or_else(|| no_run(&key.run, Some(&key.parent)))?;
    match run.requests.seen(&context.request_id, &digest) {
        Seen::Before(record) => {
            let told = record.answer.get("facts").and_then(|facts| facts.get("stopEpoch"));
            let epoch = told.and_then(serde_json::Value::as_u64).unwrap_or(run.stop_epoch);
            transact::rewrite_run(context, &transaction)?;
            return Ok(Latched { key, run, epoch });
        }
        Seen::ForAnother(record) => return Err(repeats::reused(context, record)),
        Seen::Never => {}
    }
    let call = context.call();
    let mut run = stop_run(&run, reason, &call);
    let message = format!("run `{}` is stopped", key.run);
    let facts = crate::facts! { "runId": key.run, "stopEpoch": run.stop_epoch };
    let said = Said { code: Code::Stopped, message, facts };
    run.remember(repeats::record(context, &digest, &said, &Grant::default()));
    transact::commit(context, transaction, Writes { run: Some(run.clone()), ..Writes::default() })?;
    let epoch = run.stop_epoch;
    Ok(Latched { key, run, epoch })
}
