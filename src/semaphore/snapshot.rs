//! What a semaphore looks like at one moment.

use std::panic::Location;

pub use crate::turnstile::WaiterState;

/// A semaphore at one moment: all of it belongs together.
#[derive(Clone, Debug)]
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
    pub waiters: Vec<Standing>,
}

/// One who waits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Standing {
    /// How many permits it asks for.
    pub count: u32,
    /// What it has been told.
    pub state: WaiterState,
    /// The call of `acquire` or `acquire_owned` that the wait is from: names a
    /// waiter that was told or granted and is never polled.
    pub made_at: &'static Location<'static>,
}
