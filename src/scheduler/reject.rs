//! Why the scheduler did not take something, or has nothing to wait for.

use std::error::Error;
use std::fmt;

use crate::error::{Stalled, TierGoesDown};
use crate::queue::SendReason;
use crate::shown::error_says;

/// A task that was not taken, and why.
///
/// Where the function is no error that can be passed on, as one that borrows, or is not `Sync`
/// where an error must be, pass on the reason alone: `.map_err(|rejected| rejected.reason)?`.
pub struct Rejected<F> {
    /// The function, as it was handed in.
    pub task: F,
    /// Why.
    pub reason: Reason,
}

/// Why a task was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The scheduler or the caller takes no more.
    Closed,
    /// It would wait for itself.
    TierGoesDown(TierGoesDown),
    /// The group is another caller's.
    ForeignGroup,
    /// There is no worker, and none could be started:
    /// [`Status`](super::Status) says why.
    NoWorker,
    /// It has a delay, and nobody keeps the time: the workers run on a
    /// [pool](super::Builder::pool), there is no [`Ticker`](crate::ticker::Ticker), and
    /// [`advance`](super::Scheduler::advance) was never called.
    NoTicker,
    /// As many of its caller's tasks have not ended as its
    /// [capacity](super::CallerOptions::capacity) says, or the room is promised to others, or
    /// is taken for a moment by a task that is refused for another reason.
    Full,
    /// So many at once are more than the capacity.
    AboveCapacity,
    /// There was no room in time.
    TimedOut,
    /// There was no room, and nothing could go on: a task [waited](super::Caller::exec_wait)
    /// for it.
    Stalled(Stalled),
}

/// Why there is nothing to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncError {
    /// Nothing was submitted since the last successful synchronize.
    NothingOutstanding,
    /// Another synchronize of this caller is under way.
    Busy,
    /// Nothing could go on; the tasks are untouched, and count towards the next.
    Stalled(Stalled),
}

impl From<SendReason> for Reason {
    fn from(reason: SendReason) -> Self {
        match reason {
            SendReason::Closed => Self::Closed,
            // Groups and lanes of a scheduler have no capacity.
            SendReason::Full | SendReason::GroupFull | SendReason::LaneFull => Self::Full,
            SendReason::OwnQueue => Self::Stalled(Stalled),
            SendReason::AboveCapacity => Self::AboveCapacity,
            SendReason::TimedOut => Self::TimedOut,
            SendReason::TierGoesDown(down) => Self::TierGoesDown(down),
        }
    }
}

error_says!(Reason {
    Self::Closed => "closed",
    Self::TierGoesDown(down) => "{down}",
    Self::ForeignGroup => "the group is another caller's",
    Self::NoWorker => "no worker could be started",
    Self::NoTicker => "it has a delay, and nobody keeps the time",
    Self::Full => "the caller is full",
    Self::AboveCapacity => "more than the caller's capacity",
    Self::TimedOut => "there was no room in time",
    Self::Stalled(stalled) => "{stalled}",
});

error_says!(SyncError {
    Self::NothingOutstanding => "nothing outstanding",
    Self::Busy => "another synchronize is under way",
    Self::Stalled(stalled) => "{stalled}",
});

impl<F> fmt::Debug for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = &self.reason;
        f.debug_struct("Rejected")
            .field("reason", reason)
            .finish_non_exhaustive()
    }
}

impl<F> fmt::Display for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task rejected: {}", self.reason)
    }
}

impl<F> Error for Rejected<F> {}
