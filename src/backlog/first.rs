//! What stands before its turn, and what is taken back.

use crate::dispatch::GroupKey;

use super::Backlog;
use super::messages::{Entry, FRONT};

impl<T> Backlog<T> {
    /// Puts a message before all that wait in its group, or come back to it,
    /// but behind those that were put so before and still wait.
    ///
    /// It stands in tier 0, since nothing may stand before it in a higher one:
    /// what is in flight and comes back would wait for it, and it for that.
    pub fn send_first(&mut self, group: GroupKey, item: T) {
        let messages = self.messages(group);
        let seq = messages.next_front();
        messages.put(Entry {
            seq,
            tier: 0,
            attempt: 0,
            item: Some(item),
        });
        self.waiting += 1;
        self.tally(group, 1);
        self.sync_head(group);
        self.core.settle(self.core.lane_of(group));
    }

    /// Takes out what waits in a group and `fits`, with its numbers; somebody
    /// pins the group. O(messages of the group), and O(log n) for each that is
    /// taken.
    pub fn retract(&mut self, group: GroupKey, fits: impl FnMut(&T) -> bool) -> Vec<(u64, T)> {
        let numbers = self.messages(group).numbers(fits);
        let taken = numbers.into_iter();
        taken
            .filter_map(|seq| Some((seq, self.remove(group, seq)?)))
            .collect()
    }
}

/// What a number says to people: the how manieth it is of those sent, or of
/// those put first.
pub fn ordinal(seq: u64) -> u64 {
    seq & !FRONT
}
