//! The messages that wait in one group, by sequence number.
//!
//! State: a place for one, so that a message alone allocates nothing; an array;
//! and a tree for those that came back out of order. A message that is removed
//! from the middle leaves an empty entry in the array.
//!
//! Invariants:
//! 1. The array does not decrease, and its first entry, if there is one, holds
//!    a message. `first` is before all others.
//! 2. There are `live` messages in the three. The array has at most twice as many
//!    entries as messages stand in it and the tree, and `SLACK`.

use std::collections::{BTreeMap, VecDeque};

use super::{Claim, GroupKey};

/// Empty entries that are not worth a sweep.
const SLACK: usize = 16;

#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) seq: u64,
    pub(super) tier: u32,
    pub(super) attempt: u32,
    /// `None` once removed.
    pub(super) item: Option<T>,
}

impl<T> Entry<T> {
    pub(super) fn claim(self, group: GroupKey) -> Option<Claim<T>> {
        let Self {
            seq, tier, attempt, ..
        } = self;
        Some(Claim {
            group: Some(group),
            seq,
            tier,
            attempt,
            item: self.item?,
        })
    }
}

#[derive(Debug)]
pub(super) struct Messages<T> {
    first: Option<Entry<T>>,
    /// While there was more than one since the last was alone.
    pub(super) rest: Option<Box<Rest<T>>>,
    live: usize,
    last_seq: u64,
    pub(super) last_tier: u32,
}

/// Those behind the first, or all once that is gone.
#[derive(Debug)]
pub(super) struct Rest<T> {
    pub(super) entries: VecDeque<Entry<T>>,
    returned: BTreeMap<u64, Entry<T>>,
}

impl<T> Messages<T> {
    pub(super) fn new() -> Self {
        Self {
            first: None,
            rest: None,
            live: 0,
            last_seq: 0,
            last_tier: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// The one that waits first.
    #[inline]
    pub(super) fn head(&self) -> Option<&Entry<T>> {
        self.first.as_ref().or_else(|| self.rest.as_ref()?.head())
    }

    /// The tier of the one that waits first.
    #[inline]
    pub(super) fn head_tier(&self) -> Option<u32> {
        self.head().map(|entry| entry.tier)
    }

    /// A new one, last: its number and its tier.
    #[inline]
    pub(super) fn add(&mut self, tier: u32, item: T) -> (u64, u32) {
        self.last_tier = tier;
        self.last_seq += 1;
        let seq = self.last_seq;
        self.put(Entry {
            seq,
            tier,
            attempt: 0,
            item: Some(item),
        });
        (seq, tier)
    }

    /// Puts an entry at its place: nearly always the last or the first.
    #[inline]
    pub(super) fn put(&mut self, entry: Entry<T>) {
        self.live += 1;
        if self.live == 1 {
            self.first = Some(entry);
            return;
        }
        let entry = match &mut self.first {
            Some(first) if entry.seq < first.seq => std::mem::replace(first, entry),
            _ => entry,
        };
        self.rest.get_or_insert_default().put(entry);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Entry<T>> {
        let first = self.first.take();
        let entry = match first {
            Some(first) => first,
            None => self.rest.as_mut()?.pop()?,
        };
        self.live -= 1;
        self.tidy();
        Some(entry)
    }

    pub(super) fn remove(&mut self, seq: u64) -> Option<T> {
        let item = match self.first.take_if(|first| first.seq == seq) {
            Some(first) => first.item,
            None => self.rest.as_mut()?.remove(seq),
        };
        self.live -= usize::from(item.is_some());
        self.tidy();
        item
    }

    /// Keeps the invariants, and memory within a constant factor of what waits.
    #[inline]
    fn tidy(&mut self) {
        if self.rest.is_some() {
            self.tidy_rest();
        }
    }

    fn tidy_rest(&mut self) {
        let behind = self.live - usize::from(self.first.is_some());
        match &mut self.rest {
            Some(rest) if behind > 0 => rest.sweep(behind),
            _ => self.rest = None,
        }
    }
}

impl<T> Rest<T> {
    fn head(&self) -> Option<&Entry<T>> {
        if self.returned.is_empty() {
            return self.entries.front();
        }
        let returned = self.returned.first_key_value().map(|(_, entry)| entry);
        match (self.entries.front(), returned) {
            (Some(a), Some(b)) => Some(if a.seq < b.seq { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    fn put(&mut self, entry: Entry<T>) {
        match (self.entries.front(), self.entries.back()) {
            (Some(first), _) if entry.seq < first.seq => self.entries.push_front(entry),
            (_, Some(last)) if entry.seq < last.seq => {
                self.returned.insert(entry.seq, entry);
            }
            _ => self.entries.push_back(entry),
        }
    }

    fn pop(&mut self) -> Option<Entry<T>> {
        if self.returned.is_empty() {
            return self.entries.pop_front();
        }
        let seq = self.head()?.seq;
        match self.unreturn(seq) {
            None => self.entries.pop_front(),
            entry => entry,
        }
    }

    fn remove(&mut self, seq: u64) -> Option<T> {
        match self.unreturn(seq) {
            Some(entry) => entry.item,
            None => {
                let found = self.entries.binary_search_by_key(&seq, |entry| entry.seq);
                self.entries[found.ok()?].item.take()
            }
        }
    }

    fn unreturn(&mut self, seq: u64) -> Option<Entry<T>> {
        let entry = self.returned.remove(&seq)?;
        if self.returned.is_empty() {
            // An emptied tree would keep its root's block.
            self.returned = BTreeMap::new();
        }
        Some(entry)
    }

    /// So many messages are here.
    fn sweep(&mut self, live: usize) {
        while self.entries.front().is_some_and(|e| e.item.is_none()) {
            self.entries.pop_front();
        }
        if self.entries.len() > 2 * live + SLACK {
            self.entries.retain(|e| e.item.is_some());
        }
        if self.entries.capacity() > 4 * self.entries.len() + SLACK {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }
}

impl<T> Default for Rest<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            returned: BTreeMap::new(),
        }
    }
}
