//! What a lock looks like at one moment.

use std::fmt;

use crate::modes::Mode;
use crate::wait::{WaitCounts, WaiterState};

use super::IntentLock;
use super::bits::Bits;
use super::claim::{Claim, Queue};

/// A lock at one moment.
/// Stripes are read one by one, so a few of their holders may be counted that never held together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// How many hold each mode, in the order of [`Mode::ALL`].
    pub held: [u64; 6],
    /// How many times in a row a claim has passed the front of the queue, whether or not it
    /// conflicts with it.
    pub overtakings: u32,
    /// The waiters, in the order in which they are served.
    pub waiters: Vec<Waiter>,
}

/// How many holders and waiters there are. See [`IntentLock::counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// How many hold each mode, in the order of [`Mode::ALL`].
    pub held: [u64; 6],
    /// The waiters; one that was handed its mode counts as notified until it collects it.
    pub locks: WaitCounts,
}

/// One waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Waiter {
    /// What it waits for.
    pub asked: Mode,
    /// What it holds meanwhile, if it converts.
    pub held: Option<Mode>,
    /// Whether it was notified or handed its mode.
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
    /// How many hold the lock and how many wait, without a list of them. Takes the queue's lock.
    /// Takes a step for each stripe, and for each waiter that has not collected what it was handed.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts_of(&self.queue.lock())
    }

    fn counts_of(&self, queue: &Queue) -> Counts {
        Counts {
            held: self.held(self.word.load(), queue),
            locks: queue.counts().0,
        }
    }

    /// The lock at this moment, with its waiters.
    /// Holds up waiters, and callers that begin to wait, for as long as it takes to list the
    /// waiters. It does not hold up taking and releasing while nobody waits.
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

/// How many hold each mode that somebody holds.
struct Held([u64; 6]);

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Mode::ALL.into_iter().zip(self.0);
        let held = all.filter(|&(_, holders)| holders > 0);
        f.debug_map().entries(held).finish()
    }
}

impl fmt::Debug for IntentLock {
    /// With how many hold each mode, and how many wait, unless somebody has the queue's lock.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written under no lock: the writer is user code.
        let counts = self.queue.try_lock().map(|queue| self.counts_of(&queue));
        let mut debug = f.debug_struct("IntentLock");
        if let Some(Counts { held, locks }) = counts {
            debug.field("held", &Held(held));
            debug.field("waiting", &(locks.waiting + locks.notified));
        }
        debug.field("bypass", &self.word.bypass);
        debug.finish_non_exhaustive()
    }
}
