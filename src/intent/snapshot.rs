//! What a lock looks like at one moment.

use crate::modes::Mode;
use crate::wait::{WaitCounts, WaiterState};

use super::IntentLock;
use super::bits::Bits;
use super::claim::{Claim, Queue};

/// A lock at one moment. What is held in stripes is read one by one, so that of
/// IS and IX a few may be counted that never were there together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// How many hold each mode, in the order of [`Mode::ALL`].
    pub held: [u64; 6],
    /// How many times in a row the first in line has been overtaken.
    pub overtakings: u32,
    /// Who waits, in the order in which they are served.
    pub waiters: Vec<Waiter>,
}

/// How much there is of what. See [`IntentLock::counts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// How many hold each mode, in the order of [`Mode::ALL`].
    pub held: [u64; 6],
    /// Those who wait; one that was handed its mode is told, and has not looked.
    pub locks: WaitCounts,
}

/// One who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Waiter {
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

impl IntentLock {
    /// How many hold it and how many wait, without a list of them: a step for each
    /// stripe. Takes the lock of those who wait.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let queue = self.queue.lock();
        Counts {
            held: self.held(self.word.load(), &queue),
            locks: queue.counts().0,
        }
    }

    /// The lock at this moment, with those who wait. Holds up those who wait, or
    /// begin to, for as long as it takes to list them; taking and releasing while
    /// nobody waits it does not.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let queue = self.queue.lock();
        let bits = self.word.load();
        Snapshot {
            held: self.held(bits, &queue),
            overtakings: bits.overtakings(),
            waiters: queue.snapshot(|Claim { ask, own }, state| Waiter {
                asked: ask,
                held: own.map(|own| own.mode),
                state,
            }),
        }
    }

    /// How many hold each mode.
    fn held(&self, bits: Bits, queue: &Queue) -> [u64; 6] {
        let mut held = Mode::ALL.map(|mode| bits.count(mode));
        let elsewhere = match &self.stripes.0 {
            Some(stripes) => stripes.held(queue.state),
            None => queue.state,
        };
        for (held, elsewhere) in held.iter_mut().zip(elsewhere.0) {
            *held += elsewhere;
        }
        held
    }
}
