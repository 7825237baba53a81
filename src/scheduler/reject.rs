//! Why a task was refused, or a synchronize.

use std::error::Error;
use std::fmt;

use crate::error::{Stalled, TierGoesDown};
use crate::queue::SendReason;
use crate::shown::{error_says, pad, shows};

/// A refused task, and why it was refused.
///
/// If the function cannot be part of an error that you pass on, since it borrows or is not `Sync`,
/// pass on the reason alone: `.map_err(|rejected| rejected.reason)?`.
pub struct Rejected<F> {
    /// The function or future.
    pub task: F,
    /// Why it was refused.
    pub reason: Reason,
}

/// Why a task was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The scheduler or the caller takes no more tasks.
    Closed,
    /// An earlier task of its group is in a higher tier: it would wait for itself.
    TierGoesDown(TierGoesDown),
    /// The group belongs to another caller.
    ForeignGroup,
    /// There is no worker, and none could be started. [`Status`](super::Status) tells why. The
    /// task's group keeps the tier and the bump that came with it.
    NoWorker,
    /// It has a delay, and nothing keeps the time: the workers run on a
    /// [pool](super::Builder::pool), there is no [`Ticker`](crate::ticker::Ticker), and
    /// [`advance`](super::Scheduler::advance) was never called without one.
    NoTicker,
    /// Its caller has as many unfinished tasks as its [capacity](super::CallerOptions::capacity)
    /// allows; or the room is promised to waiters, or taken for a moment by a task that is refused
    /// for another reason.
    Full,
    /// There are more tasks in the batch than the capacity, which is not 0.
    AboveCapacity,
    /// There was no room before the time-out.
    TimedOut,
    /// A task [waited](super::Caller::exec_wait) for room, and the scheduler was stalled.
    Stalled(Stalled),
}

/// Why a synchronize was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncError {
    /// Nothing was submitted since the last successful synchronize.
    NothingOutstanding,
    /// Another synchronize of this caller is under way.
    Busy,
    /// The scheduler is stalled. The tasks are untouched; the next synchronize covers them.
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

shows!([F] Rejected<F>, |rejected| reason: rejected.reason);

impl<F> fmt::Display for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pad(f, format_args!("task rejected: {}", self.reason))
    }
}

impl<F> Error for Rejected<F> {}
