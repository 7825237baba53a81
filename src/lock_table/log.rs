//! What an owner was granted since its first savepoint, in order: so that going back to one costs
//! what was granted since, whatever else is held.
//!
//! State: for each grant that is the first of a hold in its epoch, the epoch and the hold. Entries
//! whose grants have been released are stale, and stay until they are swept or popped.
//!
//! Invariants:
//! 1. Epochs do not fall.
//! 2. There are fewer than `limit`. At the last sweep or `shrink` half of that was free, or more:
//!    so a sweep is paid for by the grants before it.

use super::hold::HoldId;
use super::name::KEPT;

type Grant = (u64, HoldId);

pub(super) struct Log {
    grants: Vec<Grant>,
    limit: usize,
}

impl Log {
    pub(super) const fn new() -> Self {
        Self {
            grants: Vec::new(),
            limit: KEPT,
        }
    }

    pub(super) fn push(&mut self, grant: Grant) {
        if self.grants.last() != Some(&grant) {
            self.grants.push(grant);
        }
    }

    /// Whether it has to be swept.
    pub(super) fn is_full(&self) -> bool {
        self.grants.len() >= self.limit
    }

    /// The hold of the youngest entry, which it takes out, if that is of this epoch or a later one.
    pub(super) fn pop_since(&mut self, epoch: u64) -> Option<HoldId> {
        let (_, id) = self.grants.pop_if(|(at, _)| *at >= epoch)?;
        Some(id)
    }

    /// Leaves what is not stale, once each, and gives memory back.
    pub(super) fn sweep(&mut self, is_there: impl Fn(Grant) -> bool) {
        self.grants.retain(|grant| is_there(*grant));
        self.grants.sort_unstable();
        self.grants.dedup();
        self.limit = self.room();
        self.grants.shrink_to(self.limit);
    }

    /// Gives memory back where much was popped.
    pub(super) fn shrink(&mut self) {
        self.limit = self.limit.min(self.room());
        if self.grants.capacity() > 2 * self.limit {
            self.grants.shrink_to(self.limit);
        }
    }

    /// A limit for these.
    fn room(&self) -> usize {
        KEPT.max(2 * self.grants.len())
    }

    /// With other ids for the holds.
    pub(super) fn moved(mut self, to: impl Fn(HoldId) -> HoldId) -> Self {
        self.grants.iter_mut().for_each(|(_, id)| *id = to(*id));
        self
    }

    #[cfg(all(test, not(shuttle)))]
    pub(super) fn len(&self) -> usize {
        self.grants.len()
    }
}
