//! The messages that wait in one group, by number.
//!
//! State: a place for the first, so that a message alone allocates nothing, and a row
//! for the rest, in which the place of one that was removed stays empty for a while.
//!
//! Invariants:
//! 1. `first` is there if anything waits, and is before all others.
//! 2. The row is O(messages in it): without any it has no block.

use std::collections::VecDeque;
use std::vec::IntoIter;

/// So many empty places are not worth a look at all.
const FEW: usize = 64;

#[derive(Debug)]
pub(super) struct Message<T> {
    pub(super) tier: u32,
    pub(super) item: T,
}

#[derive(Debug)]
pub(super) struct Messages<T> {
    pub(super) first: Option<(u64, Message<T>)>,
    rest: VecDeque<(u64, Option<Message<T>>)>,
    /// How many are in the row.
    behind: usize,
    last_seq: u64,
    pub(super) last_tier: u32,
}

impl<T> Messages<T> {
    pub(super) fn new() -> Self {
        Self {
            first: None,
            rest: VecDeque::new(),
            behind: 0,
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

    /// The number of the one that comes next.
    #[inline]
    pub(super) fn next_seq(&self) -> u64 {
        self.last_seq + 1
    }

    /// A new one, last: its number and its tier.
    #[inline]
    pub(super) fn add(&mut self, tier: u32, item: T) -> (u64, u32) {
        self.last_tier = tier;
        self.last_seq += 1;
        self.put(self.last_seq, Message { tier, item });
        (self.last_seq, tier)
    }

    /// Puts a message at its place: the last, or not far behind the first.
    #[inline]
    pub(super) fn put(&mut self, seq: u64, message: Message<T>) {
        let (seq, message) = match &mut self.first {
            None => return self.first = Some((seq, message)),
            Some(first) if seq < first.0 => std::mem::replace(first, (seq, message)),
            _ => (seq, message),
        };
        let last = self.rest.back().is_none_or(|&(last, _)| last < seq);
        let placed = (seq, Some(message));
        match last {
            true => self.rest.push_back(placed),
            false => self.insert(placed),
        }
        self.behind += 1;
    }

    #[cold]
    fn insert(&mut self, placed: (u64, Option<Message<T>>)) {
        let at = self.rest.partition_point(|&(other, _)| other < placed.0);
        self.rest.insert(at, placed);
    }

    /// New ones of a tier, none of which is missing, behind one that waits.
    #[inline]
    pub(super) fn extend(&mut self, tier: u32, items: IntoIter<Option<T>>) {
        (self.last_tier, self.behind) = (tier, self.behind + items.len());
        let first = self.last_seq + 1;
        self.last_seq += items.len() as u64;
        let items = items.map(|item| Some(Message { tier, item: item? }));
        self.rest.extend((first..).zip(items));
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, Message<T>)> {
        let next = self.pop_behind();
        if next.is_some() {
            self.tidy();
        }
        std::mem::replace(&mut self.first, next)
    }

    /// Tells `take` of those that wait first, as long as the next `goes`.
    #[inline]
    pub(super) fn pop_while(
        &mut self,
        mut goes: impl FnMut(&Message<T>) -> bool,
        mut take: impl FnMut(u64, Message<T>),
    ) {
        let mut next = self.first.take();
        while let Some((seq, message)) = next {
            if !goes(&message) {
                self.first = Some((seq, message));
                break;
            }
            take(seq, message);
            next = self.pop_behind();
        }
        self.tidy();
    }

    /// How many wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.behind + usize::from(self.first.is_some())
    }

    /// Takes the first of the row. To be tidied.
    #[inline]
    fn pop_behind(&mut self) -> Option<(u64, Message<T>)> {
        while self.behind > 0 {
            if let (seq, Some(message)) = self.rest.pop_front()? {
                self.behind -= 1;
                return Some((seq, message));
            }
        }
        None
    }

    pub(super) fn take(&mut self, seq: u64) -> Option<Message<T>> {
        if self.first.as_ref().is_some_and(|&(first, _)| first == seq) {
            return Some(self.pop()?.1);
        }
        let at = self.rest.binary_search_by_key(&seq, |&(seq, _)| seq).ok()?;
        let message = self.rest[at].1.take()?;
        self.behind -= 1;
        self.tidy();
        Some(message)
    }

    /// Those that wait, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Message<T>)> {
        let rest = self.rest.iter();
        let rest = rest.filter_map(|(seq, message)| Some((*seq, message.as_ref()?)));
        let first = self.first.iter().map(|(seq, message)| (*seq, message));
        first.chain(rest)
    }

    /// By invariant 2.
    #[inline]
    fn tidy(&mut self) {
        if self.behind == 0 {
            self.rest = VecDeque::new();
        } else if self.rest.capacity() > 4 * self.behind + FEW {
            self.rest.retain(|(_, message)| message.is_some());
            self.rest.shrink_to(2 * self.behind);
        }
    }
}
