//! Groups of one level.

use std::collections::VecDeque;

use super::{Entry, SLACK};

/// Entries in the order of their tickets. One that is taken out of the middle
/// leaves a gap.
#[derive(Debug)]
pub(super) struct Row<G> {
    pub(super) level: u8,
    pub(super) entries: VecDeque<Entry<G>>,
    pub(super) gaps: usize,
}

impl<G> Row<G> {
    pub(super) fn new(level: u8) -> Self {
        Self {
            level,
            entries: VecDeque::new(),
            gaps: 0,
        }
    }

    /// Entries that are no gaps.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.gaps
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The ticket of the first.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.ticket)
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<G> {
        let group = self.entries.pop_front()?.group?;
        self.tidy();
        Some(group)
    }

    pub(super) fn find(&self, ticket: u64) -> Option<usize> {
        let at = self.entries.binary_search_by_key(&ticket, |e| e.ticket);
        at.ok().filter(|&at| self.entries[at].group.is_some())
    }

    pub(super) fn take(&mut self, ticket: u64) -> Option<G> {
        let at = self.find(ticket)?;
        let group = self.entries[at].group.take();
        self.gaps += 1;
        self.tidy();
        group
    }

    /// After an entry has gone.
    #[inline(always)]
    pub(super) fn tidy(&mut self) {
        if self.gaps > 0 {
            self.close_gaps();
        }
        if self.entries.is_empty() && self.entries.capacity() > SLACK {
            self.entries = VecDeque::new();
        }
    }

    #[inline(never)]
    fn close_gaps(&mut self) {
        while self.entries.front().is_some_and(|e| e.group.is_none()) {
            self.entries.pop_front();
            self.gaps -= 1;
        }
        if self.gaps > self.len() + SLACK {
            self.entries.retain(|entry| entry.group.is_some());
            self.gaps = 0;
        }
    }
}
