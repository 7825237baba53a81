//! The name of a job, and why an operation on it is refused.

use crate::error::{Closed, OutOfRange};
use crate::shown::{error_says, id_says};
use crate::slab::Key;

/// Names a job as long as it exists: a name that can be copied and keeps nothing alive. It never
/// names another job, of this queue or of any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobId {
    pub(crate) queue: u64,
    pub(crate) key: Key,
}

id_says!(
    /// Shows the queue's number, and the job's name in the queue.
    JobId { Self { queue, key } => "{queue}.{key:?}" }
);

/// Why an operation on a job was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// There is no such job any more.
    Stale,
    /// It is claimed.
    Claimed,
    /// It is not dead.
    Alive,
    /// It is dead.
    Dead,
    /// This job of the same tenant has the dead job's [unique name](super::Place::unique) by now.
    Duplicate(JobId),
    /// The queue takes nothing more: it is closed.
    Closed,
}

error_says!(Refused {
    Self::Stale => "there is no such job any more",
    Self::Claimed => "the job is claimed",
    Self::Alive => "the job is not dead",
    Self::Dead => "the job is dead",
    Self::Duplicate(_) => "another job has this unique name",
    Self::Closed => "closed",
});

impl From<Closed> for Refused {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

/// Why a push was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PushReason {
    /// The queue is closed.
    Closed,
    /// The queue holds as many jobs as its capacity. Or the rest of its room is for pushes that
    /// wait.
    Full,
    /// These are more jobs at once than the queue's capacity, which is not 0.
    AboveCapacity,
    /// There was no room in time.
    TimedOut,
    /// This job of the same tenant has the same [unique name](super::Place::unique).
    Duplicate(JobId),
    /// Two jobs of the batch, of the same tenant, have the same unique name.
    DuplicateInBatch,
    /// Its [place](crate::job_queue::Part::place) is of another queue, or of a name that is gone.
    Stale,
    /// Its own number of [attempts](super::Place::attempts) is 0.
    OutOfRange(OutOfRange),
}

error_says!(PushReason {
    Self::Closed => "closed",
    Self::Full => "full",
    Self::AboveCapacity => "more than the capacity",
    Self::TimedOut => "timed out",
    Self::Duplicate(_) => "another job has this unique name",
    Self::DuplicateInBatch => "two of the batch have one unique name",
    Self::Stale => "stale handle",
    Self::OutOfRange(why) => "{why}",
});

impl From<Closed> for PushReason {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}
