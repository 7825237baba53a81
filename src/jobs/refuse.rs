//! The name of a job, and why something is not done to it.

use std::error::Error;
use std::fmt;

use crate::error::{Closed, OutOfRange, Stale, TimedOut};
use crate::slab::Key;

/// Names a job, for as long as there is one: a copyable name that pins nothing.
/// It never names another job, of this queue or of any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobId {
    pub(crate) queue: u64,
    pub(crate) key: Key,
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

/// Why a job is not as it would have to be for this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no such job any more.
    Stale,
    /// Somebody has claimed it.
    Claimed,
    /// It is not dead.
    Alive,
    /// It is dead.
    Dead,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stale => "there is no such job any more",
            Self::Claimed => "the job is claimed",
            Self::Alive => "the job is not dead",
            Self::Dead => "the job is dead",
        })
    }
}

impl Error for Refused {}

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
    /// Its [place](crate::job_queue::Part::place) is by the handle of a name that is gone, or of another
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

impl From<Closed> for PushReason {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

/// Why a job was not requeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequeueError {
    /// The queue is closed.
    Closed,
    /// The job is gone, or alive.
    Refused(Refused),
    /// This job of the same tenant has its [unique name](super::Place::unique) by now.
    Duplicate(JobId),
}

impl From<Closed> for RequeueError {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Refused> for RequeueError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl fmt::Display for RequeueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => Closed.fmt(f),
            Self::Refused(refused) => refused.fmt(f),
            Self::Duplicate(_) => f.write_str(TAKEN),
        }
    }
}

impl Error for RequeueError {}

/// What a push and a requeue say of a name.
const TAKEN: &str = "another job has this unique name";
