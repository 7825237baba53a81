//! What a semaphore looks like at one moment.

use std::panic::Location;

use super::Semaphore;
use crate::wait::{WaitCounts, WaiterState};

/// A semaphore at one moment: all fields are from the same moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// The limit.
    pub limit: u32,
    /// The limit less the permits out or [granted](WaiterState::Granted); negative while in debt.
    pub available: i64,
    /// How many times in a row the front of the queue has been overtaken.
    pub overtakings: u32,
    /// Closed for good.
    pub closed: bool,
    /// The waiters, first come first.
    pub waiters: Vec<Waiter>,
}

/// How many permits and waiters there are. See [`Semaphore::counts`](super::Semaphore::counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// The limit.
    pub limit: u32,
    /// The limit less the permits out or [granted](WaiterState::Granted); negative while in debt.
    pub available: i64,
    /// The waiters; one that was granted its permits counts as notified until it collects them.
    pub acquires: WaitCounts,
    /// How many permits the waiters ask for.
    pub asked: u64,
}

/// One waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Waiter {
    /// How many permits it asks for.
    pub count: u32,
    /// Whether it was notified or granted.
    pub state: WaiterState,
    /// The call of `acquire` or `acquire_owned` that made the wait.
    /// It identifies a waiter that was notified or granted and is never polled.
    #[cfg_attr(feature = "serde", serde(serialize_with = "place"))]
    pub made_at: &'static Location<'static>,
}

/// As `file:line:column`.
#[cfg(feature = "serde")]
fn place<S: serde::Serializer>(at: &&Location<'_>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(at)
}

impl Semaphore {
    /// How many permits and waiters there are. Takes the queue's lock.
    /// O(1), and a step for each waiter that was granted its permits and has not collected them.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let queue = self.queue.lock();
        let (acquires, asked) = queue.counts();
        Counts {
            limit: queue.state.limit,
            available: self.available(),
            acquires,
            asked,
        }
    }

    /// The semaphore at this moment, with its waiters.
    /// Holds up waiters, and callers that begin to wait, for as long as it takes to list the
    /// waiters. It does not hold up acquires and releases while nobody waits.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let queue = self.queue.lock();
        let bits = self.word.load();
        Snapshot {
            limit: queue.state.limit,
            available: bits.available(),
            overtakings: bits.overtakings(),
            closed: bits.is_closed(),
            waiters: queue.snapshot(|claim, state| Waiter {
                count: claim.count,
                state,
                made_at: claim.made_at,
            }),
        }
    }
}
