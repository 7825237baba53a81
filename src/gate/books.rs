//! What the word cannot say: the other tiers, who waits, and counts that are too large for it.
//!
//! The invariants that are cited here are those of `gate.rs`.

use std::collections::BTreeMap;

use super::word::Word;
use super::{Books, Shared, Ticket};
use crate::tiers::Tiers;
use crate::wait::{Session, Waiters, WakeBatch};

impl Shared {
    /// One event, and then the wake-ups that follow from it.
    #[cold]
    pub(super) fn event<R>(&self, f: impl FnOnce(&mut Tiers) -> R) -> R {
        let mut session = self.books.lock();
        let result = session.change(&self.word, f);
        session.settle(|books, wakes| books.admit(&self.word, wakes));
        result
    }
}

impl Ticket {
    /// Enters, exactly this time; and before that leaves the open tier, if one says so.
    #[cold]
    pub(super) fn enter_by_the_books(&mut self, leaves: Option<u32>) {
        let tier = self.tier;
        let entered = self.shared.event(|tiers| {
            if let Some(open) = leaves {
                let _ = tiers.finish(open);
            }
            start(tiers, tier)
        });
        if entered {
            self.entered = true;
            self.leave_line();
        }
    }

    #[cold]
    pub(super) fn leave_by_the_books(&self) {
        let (tier, entered) = (self.tier, self.entered);
        self.shared.event(|tiers| {
            let _ = match entered {
                true => tiers.finish(tier),
                false => tiers.leave(tier),
            };
        });
    }
}

/// Enters a ticket, if its tier takes one.
pub(super) fn start(tiers: &mut Tiers, tier: u32) -> bool {
    let startable = tiers.startable(tier);
    if startable {
        tiers.start(tier);
    }
    startable
}

impl Books {
    /// Changes the books with the counts in them, by invariants 4 and 5.
    pub(super) fn change<R>(&mut self, word: &Word, f: impl FnOnce(&mut Tiers) -> R) -> R {
        word.take(&mut self.tiers);
        let result = f(&mut self.tiers);
        word.give(&self.tiers);
        result
    }

    /// Brings the books up to date for a look at them.
    pub(super) fn read(&mut self, word: &Word) {
        word.look().tell(&mut self.tiers);
    }

    /// Tells those who wait in the open tier, by invariant 1; false if the batch is full first.
    fn admit(&mut self, word: &Word, wakes: &mut WakeBatch) -> bool {
        if self.lines.is_empty() {
            return true;
        }
        self.read(word);
        let Some(tier) = self.tiers.open().filter(|_| !self.tiers.draining()) else {
            return true;
        };
        let Some(line) = self.lines.get_mut(&tier) else {
            return true;
        };
        while line.waiting() > 0 {
            if wakes.is_full() {
                return false;
            }
            line.notify_next(wakes);
        }
        true
    }

    fn drop_line(&mut self, tier: u32) {
        if self.lines.get(&tier).is_some_and(Waiters::is_empty) {
            self.lines.remove(&tier);
        }
        if self.lines.is_empty() {
            // An emptied map keeps its last node.
            self.lines = BTreeMap::new();
        }
    }
}

impl Session<'_, Books> {
    /// Takes a waiter out of the line; nobody else needs its notification.
    pub(super) fn leave_line(&mut self, tier: u32, place: &mut Option<crate::wait::Ticket>) {
        let line = self.lines.get_mut(&tier);
        let removed = place
            .take()
            .zip(line)
            .and_then(|(place, line)| line.remove(place));
        self.drop_line(tier);
        self.discard_waker(removed.and_then(|removed| removed.waker));
    }
}
