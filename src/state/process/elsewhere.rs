//! Platforms without a kernel-proven boot id and pid namespaces to compare: nothing is proven there.

use super::{Presence, Stat, Surroundings};

/// Processes cannot be identified here.
pub(super) const SUPPORTED: bool = false;

/// There is none to trust, so there is no value of this type.
#[derive(Debug)]
pub(super) enum Proc {}

impl Proc {
    pub(super) fn stat(&self, _pid: u32) -> Result<Stat, String> {
        match *self {}
    }

    pub(super) fn thread_group(&self, _pid: u32) -> Result<u32, String> {
        match *self {}
    }
}

pub(super) fn surroundings() -> Surroundings {
    Surroundings::default()
}

pub(super) fn presence(_pid: u32) -> Presence {
    Presence::Unclear("processes cannot be identified on this platform".to_owned())
}
