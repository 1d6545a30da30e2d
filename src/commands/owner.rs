//! The owner record of a call.

use crate::cli::OwnerArgs;
use crate::protocol::codes::Code;
use crate::protocol::row::{Extra, Owner, ProcessRef};
use crate::protocol::verdict::Refusal;
use crate::state::process::describe;

use super::context::Context;

/// What a call without `--owner-pid` is told: the parent process is never taken for the owner.
pub(crate) const NO_PID_HINT: &str = "without --owner-pid nobody can prove later that the owner died; pass the pid of the process that does the work";

/// The owner record given, if any of it was. It is looked at before the call is known to be new, so a refusal
/// is only given once it is: a repeated call must get its first answer after that process is gone.
pub(crate) fn owner(context: &Context, args: &OwnerArgs) -> Result<Option<Owner>, Box<Refusal>> {
    if args.owner.is_none() && args.owner_pid.is_none() {
        return Ok(None);
    }
    Ok(Some(Owner {
        name: args.owner.as_ref().map(|name| name.as_str().to_owned()),
        process: args.owner_pid.map(|pid| process(context, pid)).transpose()?,
        extra: Extra::new(),
    }))
}

/// The record of a process. One that cannot be read now is refused: it could never be proven dead.
pub(crate) fn process(context: &Context, pid: u32) -> Result<ProcessRef, Box<Refusal>> {
    describe(pid, &context.here).map_err(|error| {
        let refusal =
            Refusal::new(Code::OwnerPidUnreadable, format!("process {pid} cannot be recorded: {error}"))
                .hint("pass the pid of a running process of this machine, or leave --owner-pid out");
        Box::new(refusal)
    })
}

/// The hint for a call that named no process.
pub(crate) fn pid_hint(args: &OwnerArgs) -> Option<String> {
    args.owner_pid.is_none().then(|| NO_PID_HINT.to_owned())
}
