//! The continuation guard: an automatic continuation never overtakes a person's queued prompt, never revives
//! stopped work, is bounded, and loses nothing that the person typed.
//!
//! Pure, like all rules. One call is one [`judge`]: what time and death have changed is put right first, then the
//! requests are applied one after the other, and the session as it is then goes to disk in one commit together
//! with the answer. The numbers `O1` to `O73` are those of `docs/RULES.md`.

pub mod background;
pub mod chain;
pub mod queues;
mod relocation;
pub mod request;
pub mod session;
#[cfg(test)]
pub(crate) mod testing;
mod work;

use crate::protocol::ids::{Fresh, Name};
use crate::protocol::row::ProcessRef;
use crate::protocol::verdict::{Call, OwnerLife, Refusal, Said};

use request::Request;
use session::{BootTime, Session};
pub(crate) use work::Work;

/// What one call sees of the world.
pub struct Moment<'a> {
    /// The call.
    pub call: &'a Call,
    /// The boot clock.
    pub boot: &'a BootTime,
    /// Digits for the ids this call may mint.
    pub fresh: &'a Fresh,
    /// Whether a recorded process lives.
    pub life: &'a dyn Fn(&ProcessRef) -> OwnerLife,
}

/// What a request is answered.
pub type Answered = Result<Said, Box<Refusal>>;

/// A judged call.
#[derive(Debug, Clone)]
pub struct Done {
    /// The session as it is to be written; absent: nothing has changed.
    pub session: Option<Box<Session>>,
    /// The answer. A refusal may go with a change: a wait that was installed, a ticket that has lapsed.
    pub answer: Answered,
    /// The answer authorises an act, and is given once.
    pub authorises: bool,
}

/// Judges the requests of one call. `session` is what lies on disk; `None`: the session was never opened.
pub fn judge(session: Option<&Session>, name: &Name, requests: &[Request], moment: &Moment<'_>) -> Done {
    let _ = (session, name, requests, moment);
    unimplemented!()
}
