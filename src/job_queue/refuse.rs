//! Why a job is not in.

use std::error::Error;
use std::fmt;

use crate::error::{Closed, OutOfRange, Stale, TimedOut};
use crate::jobs::NotPushed;
use crate::queue::SendReason;
use crate::shown::shows;

use super::builder::TAKEN;
use super::id::JobId;

/// Why a job is not in, as the policy knows it.
#[derive(Clone, Copy)]
pub(super) enum Refusal {
    Closed,
    /// Two of a batch have one unique name.
    Twice,
    NotPushed(NotPushed),
    Room(SendReason),
}

impl Refusal {
    /// The same, if it is not for one of these, which are in only for now.
    pub(super) fn beside(self, batch: &[JobId]) -> Self {
        match self {
            Self::NotPushed(NotPushed::Duplicate(of)) if batch.iter().any(|id| id.key == of) => {
                Self::Twice
            }
            other => other,
        }
    }
}

impl From<Closed> for Refusal {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<NotPushed> for Refusal {
    fn from(why: NotPushed) -> Self {
        Self::NotPushed(why)
    }
}

/// Why a job was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushReason {
    /// The queue is closed.
    Closed,
    /// The queue holds as many jobs as its capacity, or the room is promised to those
    /// that wait for it.
    Full,
    /// So many at once are more than the queue's capacity.
    AboveCapacity,
    /// There was no room in time.
    TimedOut,
    /// This job of the same tenant has the same
    /// [unique name](super::Place::unique).
    Duplicate(JobId),
    /// Two jobs of the batch, of one tenant, have one unique name.
    DuplicateInBatch,
    /// Its [place](super::Part::place) is by the handle of a name that is gone, or of another
    /// queue.
    Stale,
    /// Its own number of [attempts](super::Place::attempts) is 0.
    OutOfRange(OutOfRange),
}

impl fmt::Display for PushReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => Closed.fmt(f),
            Self::Full => f.write_str("full"),
            Self::AboveCapacity => f.write_str("more than the capacity"),
            Self::TimedOut => TimedOut.fmt(f),
            Self::Duplicate(_) => f.write_str(TAKEN),
            Self::DuplicateInBatch => f.write_str("two of the batch have one unique name"),
            Self::Stale => Stale.fmt(f),
            Self::OutOfRange(why) => why.fmt(f),
        }
    }
}

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
