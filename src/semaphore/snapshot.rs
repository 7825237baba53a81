//! What a semaphore looks like at one moment.

use std::panic::Location;

use super::Semaphore;
use crate::wait::{WaitCounts, WaiterState};

/// A semaphore at one moment: all of it belongs together.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// The limit.
    pub limit: u32,
    /// The limit less what is out and what is [granted](WaiterState::Granted);
    /// negative while a debt is left.
    pub available: i64,
    /// How many times in a row the first in line has been overtaken.
    pub overtakings: u32,
    /// Closed for good.
    pub closed: bool,
    /// Who waits, first come first.
    pub waiters: Vec<Waiter>,
}

/// How much there is of what. See [`Semaphore::counts`](super::Semaphore::counts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// The limit.
    pub limit: u32,
    /// The limit less what is out and what is [granted](WaiterState::Granted);
    /// negative while a debt is left.
    pub available: i64,
    /// Those who wait; one that was granted its permits is told, and has not looked.
    pub acquires: WaitCounts,
    /// How many permits they ask for.
    pub asked: u64,
}

/// One who waits.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Waiter {
    /// How many permits it asks for.
    pub count: u32,
    /// What it has been told.
    pub state: WaiterState,
    /// The call of `acquire` or `acquire_owned` that the wait is from: names a
    /// waiter that was told or granted and is never polled.
    #[cfg_attr(feature = "serde", serde(serialize_with = "place"))]
    pub made_at: &'static Location<'static>,
}

/// As `file:line:column`.
#[cfg(feature = "serde")]
fn place<S: serde::Serializer>(at: &&Location<'_>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(at)
}

impl Semaphore {
    /// How many permits there are, and how many wait: O(1), and a step for each that was
    /// granted its permits and has not looked. Takes the lock of those who wait.
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

    /// The semaphore at this moment, with those who wait. Holds up those who
    /// wait, or begin to, for as long as it takes to list them; taking and giving
    /// back while nobody waits it does not.
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
