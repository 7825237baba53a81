//! The messages that wait in one group, by number.
//!
//! State: a place for the first, so that a message alone allocates nothing, and a
//! tree for the rest.
//!
//! Invariants:
//! 1. `first` is there if anything waits, and is before all others.
//! 2. A tree without messages has no block.

use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Message<T> {
    pub(super) tier: u32,
    pub(super) item: T,
}

#[derive(Debug)]
pub(super) struct Messages<T> {
    pub(super) first: Option<(u64, Message<T>)>,
    pub(super) rest: BTreeMap<u64, Message<T>>,
    last_seq: u64,
    pub(super) last_tier: u32,
}

impl<T> Messages<T> {
    pub(super) fn new() -> Self {
        Self {
            first: None,
            rest: BTreeMap::new(),
            last_seq: 0,
            last_tier: 0,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The tier of the one that waits first.
    #[inline]
    pub(super) fn head_tier(&self) -> Option<u32> {
        self.first.as_ref().map(|(_, first)| first.tier)
    }

    /// A new one, last: its number and its tier.
    #[inline]
    pub(super) fn add(&mut self, tier: u32, item: T) -> (u64, u32) {
        self.last_tier = tier;
        self.last_seq += 1;
        self.put(self.last_seq, Message { tier, item });
        (self.last_seq, tier)
    }

    /// Puts a message at its place: nearly always the last or the first.
    #[inline]
    pub(super) fn put(&mut self, seq: u64, message: Message<T>) {
        let (seq, message) = match &mut self.first {
            None => return self.first = Some((seq, message)),
            Some(first) if seq < first.0 => std::mem::replace(first, (seq, message)),
            _ => (seq, message),
        };
        self.rest.insert(seq, message);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, Message<T>)> {
        let next = match self.rest.is_empty() {
            true => None,
            false => self.take_rest(BTreeMap::pop_first),
        };
        std::mem::replace(&mut self.first, next)
    }

    pub(super) fn remove(&mut self, seq: u64) -> Option<T> {
        let message = match &self.first {
            Some((first, _)) if *first == seq => self.pop()?.1,
            _ => self.take_rest(|rest| rest.remove(&seq))?,
        };
        Some(message.item)
    }

    /// By invariant 2: an emptied tree would keep its root's block.
    fn take_rest<R>(&mut self, take: impl FnOnce(&mut BTreeMap<u64, Message<T>>) -> R) -> R {
        let taken = take(&mut self.rest);
        if self.rest.is_empty() {
            self.rest = BTreeMap::new();
        }
        taken
    }
}
