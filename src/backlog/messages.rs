//! The messages that wait in one group, by sequence number.
//!
//! State: an array, and a tree for those that came back out of order. A message
//! that is removed from the middle leaves an empty entry in the array.
//!
//! Invariants:
//! 1. The array does not decrease, and its first entry, if there is one, holds
//!    a message.
//! 2. `live` messages are in array and tree; the array has at most
//!    `2 * live + SLACK` entries.

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
            group,
            seq,
            tier,
            attempt,
            item: self.item?,
        })
    }
}

#[derive(Debug)]
pub(super) struct Messages<T> {
    pub(super) entries: VecDeque<Entry<T>>,
    live: usize,
    returned: BTreeMap<u64, Entry<T>>,
    last_seq: u64,
    pub(super) last_tier: u32,
}

impl<T> Messages<T> {
    pub(super) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            live: 0,
            returned: BTreeMap::new(),
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
        if self.returned.is_empty() {
            return self.entries.front();
        }
        let returned = self.returned.first_key_value().map(|(_, entry)| entry);
        match (self.entries.front(), returned) {
            (Some(a), Some(b)) => Some(if a.seq < b.seq { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    /// The tier of the one that waits first.
    #[inline]
    pub(super) fn head_tier(&self) -> Option<u32> {
        self.head().map(|entry| entry.tier)
    }

    /// A new one, last, in the tier of the last one unless it has its own:
    /// its number and its tier.
    pub(super) fn add(&mut self, tier: Option<u32>, item: T) -> (u64, u32) {
        let tier = tier.unwrap_or(self.last_tier);
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
    pub(super) fn put(&mut self, entry: Entry<T>) {
        self.live += 1;
        match (self.entries.front(), self.entries.back()) {
            (Some(first), _) if entry.seq < first.seq => self.entries.push_front(entry),
            (_, Some(last)) if entry.seq < last.seq => {
                self.returned.insert(entry.seq, entry);
            }
            (Some(_), _) => self.entries.push_back(entry),
            (None, _) => {
                // Made to measure: most groups never have a second one.
                if self.entries.capacity() == 0 {
                    self.entries = VecDeque::with_capacity(1);
                }
                self.entries.push_back(entry);
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<Entry<T>> {
        let entry = if self.returned.is_empty() {
            self.entries.pop_front()?
        } else {
            let seq = self.head()?.seq;
            match self.unreturn(seq) {
                Some(entry) => entry,
                None => self.entries.pop_front()?,
            }
        };
        self.live -= 1;
        self.sweep();
        Some(entry)
    }

    pub(super) fn remove(&mut self, seq: u64) -> Option<T> {
        let item = match self.unreturn(seq) {
            Some(entry) => entry.item,
            None => {
                let found = self.entries.binary_search_by_key(&seq, |entry| entry.seq);
                let at = found.ok()?;
                self.entries[at].item.take()
            }
        };
        let item = item?;
        self.live -= 1;
        self.sweep();
        Some(item)
    }

    /// Takes out all, in order.
    pub(super) fn drain(&mut self) -> Vec<T> {
        let mut items = Vec::with_capacity(self.live);
        while let Some(entry) = self.pop() {
            items.extend(entry.item);
        }
        items
    }

    fn unreturn(&mut self, seq: u64) -> Option<Entry<T>> {
        let entry = self.returned.remove(&seq)?;
        if self.returned.is_empty() {
            // An emptied tree would keep its root's block.
            self.returned = BTreeMap::new();
        }
        Some(entry)
    }

    /// Keeps the invariants, and memory within a constant factor of what waits.
    #[inline]
    fn sweep(&mut self) {
        if self.live == 0 {
            self.entries = VecDeque::new();
        } else {
            self.sweep_some();
        }
    }

    fn sweep_some(&mut self) {
        while self.entries.front().is_some_and(|e| e.item.is_none()) {
            self.entries.pop_front();
        }
        if self.entries.len() > 2 * self.live + SLACK {
            self.entries.retain(|e| e.item.is_some());
        }
        if self.entries.is_empty() {
            self.entries = VecDeque::new();
        } else if self.entries.capacity() > 4 * self.entries.len() + SLACK {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }
}
