//! An index of a long row: every eighth number, in an array that is small enough to stay in a near
//! cache.
//!
//! It is updated when a number is searched for, so joining and leaving at the ends of a row cost
//! nothing more.
//!
//! Invariant: while `first` is the first entry's number, mark `n` is at most the number of the
//! entry at `n * STEP - left`, and greater than the numbers of all entries before that one, if
//! these entries exist.

use std::collections::VecDeque;
use std::ops::Range;

use super::Entry;

/// Entries from one mark to the next: three cache lines.
const STEP: usize = 8;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Marks {
    numbers: VecDeque<u64>,
    first: u64,
    /// How many entries have left in front since the first mark was that of the first entry.
    left: usize,
}

impl Marks {
    /// Updates the marks to match the entries.
    pub(super) fn mend<G>(&mut self, entries: &VecDeque<Entry<G>>) {
        let Some(first) = entries.front() else {
            return;
        };
        if first.ticket != self.first {
            self.first = first.ticket;
            self.align(entries);
        }
        let missing = (self.covered()..entries.len()).step_by(STEP);
        self.numbers.extend(missing.map(|at| entries[at].ticket));
    }

    /// Updates the marks after the first entry has changed.
    fn align<G>(&mut self, entries: &VecDeque<Entry<G>>) {
        let gone = self.numbers.partition_point(|&mark| mark <= self.first);
        // The last of these is the mark of the first entry, or of an entry that was just before it.
        self.numbers.drain(..gone.saturating_sub(1));
        match self.numbers.get(1) {
            Some(&second) if gone > 0 => {
                let before = entries.iter().take_while(|entry| entry.ticket < second);
                self.left = STEP - before.count();
            }
            _ => (self.numbers, self.left) = (VecDeque::new(), 0),
        }
    }

    /// An entry with this number is put in front of all. The marks match the entries before that.
    pub(super) fn put_first(&mut self, number: u64) {
        if self.left == 0 {
            // It may have been the number of a group that has left a shared entry.
            self.numbers[0] = self.first;
            self.numbers.push_front(number);
            self.left = STEP;
        }
        self.left -= 1;
        self.numbers[0] = number;
        self.first = number;
    }

    /// A few entries. The last one whose number is at most `number` is among them; the range is
    /// empty if there is none. `None` if the marks are not up to date.
    pub(super) fn near<G>(
        &self,
        entries: &VecDeque<Entry<G>>,
        number: u64,
    ) -> Option<Range<usize>> {
        let is_current = entries.front()?.ticket == self.first && self.covered() >= entries.len();
        is_current.then(|| {
            let after = self.numbers.partition_point(|&mark| mark <= number);
            let start = (after.saturating_sub(1) * STEP).saturating_sub(self.left);
            let end = (after * STEP).saturating_sub(self.left);
            start..end.min(entries.len())
        })
    }

    /// How many entries, from the first on, have marks.
    fn covered(&self) -> usize {
        self.numbers.len() * STEP - self.left
    }
}
