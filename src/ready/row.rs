//! Groups of one rank.

use std::collections::VecDeque;

use super::entry::is_bumped;
use super::marks::Marks;
use super::{Entry, FEW_GAPS, Position, ReadyItem, SLACK};

/// In a row of at most this many entries a number is found without marks.
const SHORT: usize = 64;

/// Entries in ascending order. An entry that is taken out of the middle leaves a gap.
#[derive(Debug)]
pub(super) struct Row<G> {
    pub(super) rank: u16,
    pub(super) entries: VecDeque<Entry<G>>,
    pub(super) gaps: usize,
    /// Of the groups that share an entry, all but the first of each entry.
    pub(super) behind: usize,
    pub(super) marks: Option<Box<Marks>>,
}

impl<G: ReadyItem> Row<G> {
    /// As much memory, for any type of group.
    pub(super) const SLACK: usize = SLACK * size_of::<Entry<u64>>() / size_of::<Entry<G>>();

    pub(super) fn new(rank: u16) -> Self {
        Self {
            rank,
            entries: VecDeque::new(),
            gaps: 0,
            behind: 0,
            marks: None,
        }
    }

    /// How many entries are not gaps.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.gaps
    }

    /// How many groups are here; those that share an entry are counted one by one.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.len() + self.behind
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether each entry is one group.
    pub(super) fn is_plain(&self) -> bool {
        self.gaps == 0 && self.behind == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &G> {
        self.entries.iter().filter_map(|entry| entry.group.as_ref())
    }

    /// When an entry's group became ready.
    pub(super) fn ticket(&self, entry: &Entry<G>) -> u64 {
        match is_bumped(self.rank) {
            true => entry.ticket - u64::from(entry.link),
            false => entry.ticket,
        }
    }

    /// The position of the first group.
    #[inline]
    pub(super) fn first(&self) -> Option<Position> {
        let first = self.entries.front()?;
        Some(Position::of(self.rank, first.ticket))
    }

    /// Adds an entry in front.
    pub(super) fn push_front(&mut self, entry: Entry<G>) {
        self.marks.take_if(|_| self.entries.is_empty());
        if let Some(marks) = &mut self.marks {
            marks.mend(&self.entries);
            marks.put_first(entry.ticket);
        }
        self.entries.push_front(entry);
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Entry<G>> {
        if let Some(one) = self.split(0) {
            return Some(one);
        }
        let entry = self.entries.pop_front()?;
        self.tidy();
        Some(entry)
    }

    /// Takes groups while `take` takes the first one, at most `most`. Returns how many.
    #[inline]
    pub(super) fn pop_while(&mut self, most: usize, mut take: impl FnMut(&G) -> bool) -> usize {
        let mut n = 0;
        while n < most
            && let Some(Entry {
                group: Some(next), ..
            }) = self.entries.front()
            && take(next)
        {
            self.entries.pop_front();
            self.tidy();
            n += 1;
        }
        n
    }

    /// Takes the first of several groups out of the entry at this index.
    #[inline(always)]
    fn split(&mut self, at: usize) -> Option<Entry<G>> {
        let entry = self.entries.get_mut(at)?;
        let (first, next) = entry.group.as_mut()?.split_first()?;
        self.behind -= 1;
        Some(Entry {
            ticket: std::mem::replace(&mut entry.ticket, next),
            group: Some(first),
            ..*entry
        })
    }

    /// Takes one of several groups in one entry, but not the first.
    pub(super) fn take_covered<R>(
        &mut self,
        position: Position,
        take: impl FnOnce(&mut G) -> Option<R>,
    ) -> Option<R> {
        if position.rank() != self.rank || self.behind == 0 {
            return None;
        }
        self.mark();
        let at = self.at_most(position.number())?;
        let entry = &mut self.entries[at];
        let taken = take(entry.group.as_mut()?)?;
        self.behind -= 1;
        Some(taken)
    }

    /// Updates the marks, if there are many entries.
    #[inline]
    fn mark(&mut self) {
        if self.entries.len() > SHORT {
            self.marks.get_or_insert_default().mend(&self.entries);
        }
    }

    /// The index of the group at this position.
    pub(super) fn find(&self, position: Position) -> Option<usize> {
        let number = position.number();
        let is_here = position.rank() == self.rank;
        let at = is_here.then(|| self.at_most(number))??;
        let entry = &self.entries[at];
        (entry.ticket == number && entry.group.is_some()).then_some(at)
    }

    /// The index of the last entry whose number is at most `number`.
    fn at_most(&self, number: u64) -> Option<usize> {
        let is_at_most = |entry: &Entry<G>| entry.ticket <= number;
        let near = self.marks.as_ref();
        let after = match near.and_then(|marks| marks.near(&self.entries, number)) {
            // All are compared, so that no comparison waits for another entry to be fetched.
            Some(near) => {
                let before = near.start;
                let entries = self.entries.range(near);
                before + entries.filter(|entry| is_at_most(entry)).count()
            }
            None => self.entries.partition_point(is_at_most),
        };
        after.checked_sub(1)
    }

    /// How many of the first `n` entries come before the first gap.
    #[inline(never)]
    pub(super) fn before_a_gap(&self, n: usize) -> usize {
        let first = self.entries.iter().take(n);
        first.take_while(|entry| entry.group.is_some()).count()
    }

    pub(super) fn take(&mut self, position: Position) -> Option<Entry<G>> {
        self.mark();
        let at = self.find(position)?;
        if let Some(one) = self.split(at) {
            return Some(one);
        }
        let entry = self.entries[at].take();
        self.gaps += 1;
        self.tidy();
        Some(entry)
    }

    /// Restores the invariants after an entry has left.
    #[inline(always)]
    pub(super) fn tidy(&mut self) {
        if self.gaps > 0 {
            self.close_gaps();
        }
        if self.entries.is_empty() {
            self.shrink();
        }
    }

    #[inline(never)]
    fn shrink(&mut self) {
        if self.entries.capacity() > Self::SLACK {
            *self = Self::new(self.rank);
        }
    }

    #[inline(never)]
    fn close_gaps(&mut self) {
        while self.entries.front().is_some_and(|e| e.group.is_none()) {
            self.entries.pop_front();
            self.gaps -= 1;
        }
        if self.gaps > self.len() + FEW_GAPS {
            self.entries.retain(|entry| entry.group.is_some());
            (self.gaps, self.marks) = (0, None);
        }
    }
}
