//! What a gate looks like at one moment.

use crate::sync::MutexGuard;
use crate::wait::WaitCounts;

use super::word::Word;
use super::{State, TierGate};

/// How many tickets and waits there are. See [`TierGate::counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// The open tier, if anything is outstanding.
    pub open: Option<u32>,
    /// Whether nobody new enters it because a lower tier has an outstanding ticket.
    pub draining: bool,
    /// How many tickets are inside.
    pub inside: u64,
    /// How many tickets of the open tier have not entered.
    pub outside: u64,
    /// Waits to enter, in all tiers; one whose tier has opened is notified, and has not retried.
    pub enters: WaitCounts,
}

/// A gate at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// The same as [`TierGate::counts`].
    pub counts: Counts,
    /// The outstanding tickets of each tier, the open one first, then ascending.
    pub outstanding: Vec<(u32, u64)>,
}

impl TierGate {
    /// How many tickets are inside and how many wait, without a list of the tiers.
    /// Takes a step for each tier in which somebody waits, under the lock.
    ///
    /// ```
    /// use conversant::gate::TierGate;
    ///
    /// let gate = TierGate::new();
    /// let (mut first, _second) = (gate.join(7), gate.join(9));
    /// first.enter().wait();
    /// let counts = gate.counts();
    /// assert_eq!((counts.open, counts.inside, counts.outside), (Some(7), 1, 0));
    /// assert_eq!(gate.snapshot().outstanding, [(7, 1), (9, 1)]);
    /// ```
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.read().1
    }

    /// The gate at this moment. O(tiers with a ticket outstanding), under the lock.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (state, counts) = self.read();
        let outstanding = state.tiers.iter().collect();
        Snapshot {
            counts,
            outstanding,
        }
    }

    /// The state with the current counts in it, and a summary.
    fn read(&self) -> (MutexGuard<'_, State>, Counts) {
        let mut state = self.shared.state.lock_plain();
        let counts = state.counts(&self.shared.word);
        (state, counts)
    }
}

impl State {
    /// A summary, after the current counts were read.
    pub(super) fn counts(&mut self, word: &Word) -> Counts {
        self.read(word);
        let Self { tiers, waits } = &*self;
        Counts {
            open: tiers.open(),
            draining: tiers.draining(),
            inside: tiers.running(),
            outside: tiers.waiting(),
            enters: WaitCounts::sum(waits.values()),
        }
    }
}
