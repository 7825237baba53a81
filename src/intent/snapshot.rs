//! What a lock looks like at one moment.

use crate::modes::Mode;
pub use crate::turnstile::WaiterState;

/// A lock at one moment. What is held in stripes is read one by one, so that of
/// IS and IX a few may be counted that never were there together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// How many hold each mode, in the order of [`Mode::ALL`].
    pub held: [u64; 6],
    /// How many times in a row the first in line has been overtaken.
    pub overtakings: u32,
    /// Who waits, in the order in which they are served.
    pub waiters: Vec<Standing>,
}

/// One who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// What it waits for.
    pub asked: Mode,
    /// What it holds meanwhile, if it converts.
    pub held: Option<Mode>,
    /// What it has been told.
    pub state: WaiterState,
}

impl Snapshot {
    /// How many hold this mode.
    #[must_use]
    pub fn held(&self, mode: Mode) -> u64 {
        self.held[mode as usize]
    }
}
