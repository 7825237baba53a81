//! Why a job is not in.

use std::error::Error;
use std::fmt;

use crate::jobs::PushReason;
use crate::queue::SendReason;
use crate::shown::shows;

impl From<SendReason> for PushReason {
    fn from(reason: SendReason) -> Self {
        match reason {
            SendReason::Closed => Self::Closed,
            SendReason::AboveCapacity => Self::AboveCapacity,
            SendReason::TimedOut => Self::TimedOut,
            // The others are of a queue's parts, handlers and tiers: never of a push.
            _ => Self::Full,
        }
    }
}

/// A job that was not taken, and why.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PushError<K, J> {
    /// Its key.
    pub key: K,
    /// What was to be pushed.
    pub job: J,
    /// Why it was not.
    pub reason: PushReason,
}

/// Jobs that were not taken, and why the first of them was refused that was.
#[derive(Clone, PartialEq, Eq)]
pub struct PushAllError<K, J> {
    /// All that was to be pushed, in order.
    pub jobs: Vec<(K, J)>,
    /// Why it was not.
    pub reason: PushReason,
}

shows!(
    /// Without key and job, so that any of them can be unwrapped on.
    impl<K, J> PushError<K, J>, |this| reason: this.reason
);
shows!(impl<K, J> PushAllError<K, J>, |this| jobs: this.jobs.len(), reason: this.reason);

impl<K, J> fmt::Display for PushError<K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not pushed: {}", self.reason)
    }
}

impl<K, J> fmt::Display for PushAllError<K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "none was pushed: {}", self.reason)
    }
}

impl<K, J> Error for PushError<K, J> {}
impl<K, J> Error for PushAllError<K, J> {}
