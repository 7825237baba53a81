//! The messages that wait in one group, by sequence number.
//!
//! State: an array, and a tree for those that came back out of order. A message
//! that is removed from the middle leaves an empty entry in the array. What
//! hardly a group ever has stands apart, in a block of its own.
//!
//! Invariants:
//! 1. The array does not decrease, and its first entry, if there is one, holds
//!    a message.
//! 2. `live` messages are in array and tree; the array has at most
//!    `2 * live + SLACK` entries.
//! 3. A message that is being looked at is in neither: its entry is `out`,
//!    empty, and it waits all the same.
//!
//! The numbers of those that stand in front of all others begin at [`FRONT`],
//! so that the order is that of the [`place`]s, not of the numbers.

use std::collections::{BTreeMap, VecDeque};

use crate::dispatch::GroupKey;

use super::{Claim, Home};

/// Empty entries that are not worth a sweep.
const SLACK: usize = 16;

/// The numbers above it are of messages put first; no others come so far.
pub(super) const FRONT: u64 = 1 << 63;

/// Where a number stands: those put first before all others.
fn place(seq: u64) -> u64 {
    seq ^ FRONT
}

#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) seq: u64,
    pub(super) tier: u32,
    pub(super) attempt: u32,
    /// `None` once removed.
    pub(super) item: Option<T>,
}

impl<T> Entry<T> {
    fn place(&self) -> u64 {
        place(self.seq)
    }

    pub(super) fn claim(self, group: GroupKey, tier: u32) -> Option<Claim<T>> {
        let Self { seq, attempt, .. } = self;
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
    apart: Option<Box<Apart<T>>>,
    pub(super) last_seq: u64,
    pub(super) last_tier: u32,
    pub(super) pins: u32,
    /// Who wants to be told when the group ends.
    pub(super) home: Option<Home>,
}

#[derive(Debug)]
struct Apart<T> {
    returned: BTreeMap<u64, Entry<T>>,
    out: Option<Entry<T>>,
    /// How many were ever put first.
    last_front: u64,
}

impl<T> Apart<T> {
    fn new() -> Self {
        Self {
            returned: BTreeMap::new(),
            out: None,
            last_front: 0,
        }
    }
}

impl<T> Messages<T> {
    /// None, with one pin.
    pub(super) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            live: 0,
            apart: None,
            last_seq: 0,
            last_tier: 0,
            pins: 1,
            home: None,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.live + usize::from(self.out().is_some())
    }

    /// The one that is out.
    #[inline]
    fn out(&self) -> Option<&Entry<T>> {
        self.apart.as_ref()?.out.as_ref()
    }

    /// Those that came back out of order, if there are any.
    #[inline]
    fn returned(&self) -> Option<&BTreeMap<u64, Entry<T>>> {
        let returned = &self.apart.as_ref()?.returned;
        (!returned.is_empty()).then_some(returned)
    }

    fn apart(&mut self) -> &mut Apart<T> {
        self.apart.get_or_insert_with(|| Box::new(Apart::new()))
    }

    /// Gives up the block of what stands apart, if nothing does.
    fn close_up(&mut self) {
        let empty = |apart: &mut Box<Apart<T>>| {
            apart.returned.is_empty() && apart.out.is_none() && apart.last_front == 0
        };
        if self.apart.as_mut().is_some_and(empty) {
            self.apart = None;
        }
    }

    /// The number of one that is put first.
    pub(super) fn next_front(&mut self) -> u64 {
        let apart = self.apart();
        apart.last_front += 1;
        FRONT + apart.last_front
    }

    /// No waiting message counts as tried before. O(n).
    pub(super) fn start_anew(&mut self) {
        let apart = self.apart.iter_mut();
        let apart = apart.flat_map(|apart| apart.returned.values_mut().chain(&mut apart.out));
        for entry in self.entries.iter_mut().chain(apart) {
            entry.attempt = 0;
        }
    }

    /// The one that waits first, which may be out.
    #[inline]
    pub(super) fn head(&self) -> Option<&Entry<T>> {
        let first = self.first();
        match self.out() {
            Some(out) if first.is_none_or(|first| out.place() < first.place()) => Some(out),
            _ => first,
        }
    }

    /// The tier of the one that waits first.
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

    /// Takes the first one, and tells the tier of the one that is first then.
    pub(super) fn take(&mut self) -> (Option<Entry<T>>, Option<u32>) {
        let entry = self.pop();
        (entry, self.head_tier())
    }

    /// Takes the first one out to be looked at; none is out.
    pub(super) fn take_out(&mut self) -> Option<T> {
        let mut entry = self.pop()?;
        let item = entry.item.take();
        self.apart().out = Some(entry);
        item
    }

    /// Puts the one that is out to its place, or forgets it if it does not
    /// come back.
    pub(super) fn put_back(&mut self, item: Option<T>) {
        let out = self.apart.as_mut().and_then(|apart| apart.out.take());
        self.close_up();
        if let Some(mut entry) = out
            && item.is_some()
        {
            entry.item = item;
            self.put(entry);
        }
    }

    /// The first one of those that are here.
    #[inline]
    fn first(&self) -> Option<&Entry<T>> {
        let Some(returned) = self.returned() else {
            return self.entries.front();
        };
        let returned = returned.first_key_value().map(|(_, entry)| entry);
        match (self.entries.front(), returned) {
            (Some(a), Some(b)) => Some(if a.place() < b.place() { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    /// Puts an entry at its place: nearly always the last or the first.
    pub(super) fn put(&mut self, entry: Entry<T>) {
        self.live += 1;
        let place = entry.place();
        match (self.entries.front(), self.entries.back()) {
            (Some(first), _) if place < first.place() => self.entries.push_front(entry),
            (_, Some(last)) if place < last.place() => {
                self.apart().returned.insert(place, entry);
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
        let entry = if self.returned().is_none() {
            self.entries.pop_front()?
        } else {
            let place = self.first()?.place();
            match self.unreturn(place) {
                Some(entry) => entry,
                None => self.entries.pop_front()?,
            }
        };
        self.live -= 1;
        self.sweep();
        Some(entry)
    }

    pub(super) fn remove(&mut self, seq: u64) -> Option<T> {
        let place = place(seq);
        let item = match self.unreturn(place) {
            Some(entry) => entry.item,
            None => {
                let found = self.entries.binary_search_by_key(&place, Entry::place);
                let at = found.ok()?;
                self.entries[at].item.take()
            }
        };
        let item = item?;
        self.live -= 1;
        self.sweep();
        Some(item)
    }

    /// The numbers of those that `fits`, in no order. O(n).
    pub(super) fn numbers(&self, mut fits: impl FnMut(&T) -> bool) -> Vec<u64> {
        let returned = self.returned().into_iter().flat_map(BTreeMap::values);
        let waiting = self.entries.iter().chain(returned);
        let fitting = waiting.filter(|entry| entry.item.as_ref().is_some_and(&mut fits));
        fitting.map(|entry| entry.seq).collect()
    }

    /// Lends the first ones, up to so many; they still count.
    pub(super) fn deal(&mut self, most: u32) -> VecDeque<Entry<T>> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if self.returned().is_some() || self.live != self.entries.len() {
            return VecDeque::new();
        }
        if self.live <= most {
            return std::mem::take(&mut self.entries);
        }
        self.entries.drain(..most).collect()
    }

    /// Takes back what was lent, but for so many that were taken.
    pub(super) fn deal_back(&mut self, lent: VecDeque<Entry<T>>, taken: u32) {
        self.live -= taken as usize;
        if self.entries.is_empty() {
            self.entries = lent;
        } else {
            for entry in lent.into_iter().rev() {
                self.entries.push_front(entry);
            }
        }
        self.sweep();
    }

    /// Takes out all that are here, in order.
    pub(super) fn drain(&mut self) -> Vec<T> {
        let mut items = Vec::with_capacity(self.live);
        while let Some(entry) = self.pop() {
            items.extend(entry.item);
        }
        items
    }

    fn unreturn(&mut self, place: u64) -> Option<Entry<T>> {
        let returned = &mut self.apart.as_mut()?.returned;
        let entry = returned.remove(&place)?;
        if returned.is_empty() {
            // An emptied tree would keep its root's block.
            *returned = BTreeMap::new();
            self.close_up();
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
