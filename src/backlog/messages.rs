//! The waiting messages of one group, by number.
//!
//! State: a place for the first message, so that a single one allocates nothing; and a row for the
//! rest, in which a removed message leaves a gap for a while.
//!
//! Invariants:
//! 1. If any message waits, `first` is the one with the lowest number.
//! 2. The row takes O(its messages) of memory; without any it has no block.

use std::collections::VecDeque;
use std::vec::IntoIter;

/// So many gaps are not worth closing.
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
    /// How many messages are in the row.
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

    /// The tier of the first message.
    #[inline]
    pub(super) fn head_tier(&self) -> Option<u32> {
        self.first.as_ref().map(|(_, first)| first.tier)
    }

    /// The number of the next new message.
    #[inline]
    pub(super) fn next_seq(&self) -> u64 {
        self.last_seq + 1
    }

    /// Appends a new message. Returns its number and its tier.
    #[inline]
    pub(super) fn add(&mut self, tier: u32, item: T) -> (u64, u32) {
        self.last_tier = tier;
        self.last_seq += 1;
        self.put(self.last_seq, Message { tier, item });
        (self.last_seq, tier)
    }

    /// Puts a message at its place, which is last or near the front.
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

    /// Appends new messages of a tier behind a waiting one. None of them is a gap.
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

    /// Hands the first messages to `take`, while the next one `goes`.
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

    /// How many messages wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.behind + usize::from(self.first.is_some())
    }

    /// Takes the first message of the row. `tidy` must follow.
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

    /// The waiting messages, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Message<T>)> {
        let rest = self.rest.iter();
        let rest = rest.filter_map(|(seq, message)| Some((*seq, message.as_ref()?)));
        let first = self.first.iter().map(|(seq, message)| (*seq, message));
        first.chain(rest)
    }

    /// Keeps invariant 2.
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
