//! The name of a job.

use std::fmt;

use crate::slab::Key;

/// Names a job, for as long as there is one: a copyable name that pins nothing.
/// It never names another job, of this queue or of any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobId {
    pub(super) queue: u64,
    pub(super) key: Key,
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobId({self})")
    }
}

/// The queue's number, and a name in it.
impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:?}", self.queue, self.key)
    }
}
