//! An index of a long row: each eighth number, in an array that is small enough to
//! stay in a near cache.
//!
//! It is brought up to date when a number is looked for, so that joining and leaving at
//! the ends of a row cost nothing more.
//!
//! Invariant: while `first` is the first entry's number, the mark at `n` is at most the
//! number of the entry at `n * STEP - left`, and above those of all entries before that,
//! where there are such entries.

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
    /// Entries that have left in front since the first mark was that of the first.
    left: usize,
}

impl Marks {
    /// Brings the marks up to date with the entries.
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

    /// After others have become first.
    fn align<G>(&mut self, entries: &VecDeque<Entry<G>>) {
        let gone = self.numbers.partition_point(|&mark| mark <= self.first);
        // The last of them is that of the first entry, or of one that was just before it.
        self.numbers.drain(..gone.saturating_sub(1));
        match self.numbers.get(1) {
            Some(&second) if gone > 0 => {
                let before = entries.iter().take_while(|entry| entry.ticket < second);
                self.left = STEP - before.count();
            }
            _ => (self.numbers, self.left) = (VecDeque::new(), 0),
        }
    }

    /// A few entries, the last of those whose number is at most this among them; an empty
    /// range if there is no such entry. `None` if the marks are not up to date.
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

    /// Entries from the first on that have marks.
    fn covered(&self) -> usize {
        self.numbers.len() * STEP - self.left
    }
}
