//! The grants of one resource to one owner, counted, with what a savepoint needs to know.
//!
//! Invariants:
//! 1. Epochs rise, and counts and modes do not fall, from an entry to the next.
//! 2. An entry has the count and the mode that were held after its grants; the last has those that
//!    are held now. The first entry has grants of its own.
//! 3. No two entries have the same count and the same mode. So alternate grants and releases do not
//!    grow the list, and it has fewer entries without grants of their own than there are modes.

use crate::modes::{Mode, joined};
use crate::slab::shrink;

/// The list of earlier entries keeps room for this many.
const FEW: usize = 4;

#[derive(Default)]
pub(super) struct Grants {
    last: Option<Entry>,
    earlier: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    epoch: u64,
    count: u64,
    mode: Mode,
}

impl Grants {
    /// Sets the first grants: the mode that they ask for together, and their number; or none.
    #[inline]
    pub(super) fn begin(&mut self, epoch: u64, asked: Option<(Mode, u64)>) {
        self.last = asked.map(|(mode, count)| Entry { epoch, count, mode });
    }

    #[inline]
    pub(super) fn mode(&self) -> Option<Mode> {
        self.last.map(|last| last.mode)
    }

    pub(super) fn last_epoch(&self) -> Option<u64> {
        self.last.map(|last| last.epoch)
    }

    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.last.map_or(0, |last| last.count)
    }

    /// Whether there is an entry of this epoch.
    pub(super) fn has(&self, epoch: u64) -> bool {
        let earlier = || {
            self.earlier
                .binary_search_by_key(&epoch, |entry| entry.epoch)
        };
        self.last_epoch() == Some(epoch) || earlier().is_ok()
    }

    /// Whether there is exactly one grant.
    #[inline]
    pub(super) fn is_one(&self) -> bool {
        self.earlier.is_empty() && self.count() == 1
    }

    /// Removes the grant, where there is at most one.
    #[inline]
    pub(super) fn end(&mut self) {
        debug_assert!(self.count() <= 1 && self.earlier.is_empty());
        self.last = None;
    }

    /// Adds grants in this epoch, which together ask for a mode. True if they are the first in this
    /// epoch.
    pub(super) fn push(&mut self, epoch: u64, mode: Mode, count: u64) -> bool {
        let first = self.last_epoch() != Some(epoch);
        let (mode, count) = (joined(self.mode(), Some(mode)), self.count() + count);
        if first {
            self.earlier.extend(self.last);
        }
        self.last = mode.map(|mode| Entry { epoch, count, mode });
        first
    }

    /// Removes the youngest grant. The mode stays until the last grant is gone.
    #[inline]
    pub(super) fn pop(&mut self) {
        match self.last {
            Some(last) if last.count > 1 => self.limit(last.count - 1, last.mode),
            _ => *self = Self::default(),
        }
    }

    /// Lowers the mode to this one at most, also for a return to a savepoint.
    pub(super) fn cap(&mut self, mode: Mode) {
        self.limit(self.count(), mode);
    }

    /// Goes back to before this epoch.
    pub(super) fn cut(&mut self, epoch: u64) {
        while self.last_epoch().is_some_and(|last| last >= epoch) {
            self.last = self.earlier.pop();
        }
        match self.last {
            Some(_) => shrink(&mut self.earlier, FEW),
            None => *self = Self::default(),
        }
    }

    /// How many entries there are before the last.
    #[inline]
    pub(super) fn earlier(&self) -> usize {
        self.earlier.len()
    }

    /// Limits the count and the mode of every entry. If the last entry that changes is left without
    /// grants of its own, it is one of a few, by invariant 3.
    fn limit(&mut self, count: u64, mode: Mode) {
        let within = |entry: &Entry| entry.count <= count && mode.covers(entry.mode);
        // By invariant 1 all entries within come first.
        let from = self.earlier.iter().rposition(within).map_or(0, |at| at + 1);
        let before = from.checked_sub(1).map(|at| self.earlier[at]);
        let mut before = before.map(|entry| (entry.count, entry.mode));
        let mut repeats = |entry: &mut Entry| {
            entry.count = entry.count.min(count);
            entry.mode = entry.mode.meet(mode);
            let after = Some((entry.count, entry.mode));
            std::mem::replace(&mut before, after) == after
        };
        let repeated = self.earlier.extract_if(from.., |entry| repeats(entry));
        repeated.for_each(drop);
        if self.last.as_mut().is_some_and(repeats) {
            self.last = self.earlier.pop();
        }
        shrink(&mut self.earlier, FEW);
    }
}
