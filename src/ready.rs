//! Who stands in one line: by rank, with the oldest always at hand.
//!
//! State: the *plain* groups stand in rows, one for each level, in the order of
//! their tickets. Groups that are bumped, or come back with an old ticket, are
//! *odd*: they stand in two trees, by rank and by age.
//!
//! Invariants:
//! 1. Tickets ascend along a row. The first entry is never a gap, and there are
//!    fewer gaps than groups, but for `SLACK` of them.
//! 2. The row `top` has the highest level. Of the others none is empty.
//! 3. The two trees hold the same groups.
//!
//! Cost: amortised O(1) for plain groups; O(log n) for odd ones, and for taking a
//! group out of the middle, there for each level at which somebody stands.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::mem;

mod entry;
mod row;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use row::Row;

pub use entry::{Entry, Rank};

/// The standing level of a group of which nothing is said.
pub const STANDING_LEVEL: u8 = 100;

/// Gaps that are not worth closing, and capacity not worth giving back.
const SLACK: usize = 1024;

/// A rank, and who is first among equals: the lower.
type Standing = (Reverse<Rank>, u64);

/// Groups in line. See the [module](self).
#[derive(Debug)]
pub struct Line<G> {
    top: Row<G>,
    /// The other rows, the highest level last.
    lower: Vec<Row<G>>,
    /// The odd ones.
    by_rank: BTreeMap<Standing, u64>,
    by_age: BTreeMap<u64, (Standing, G)>,
}

impl<G> Line<G> {
    /// How many stand here.
    pub fn len(&self) -> usize {
        let lower: usize = self.lower.iter().map(Row::len).sum();
        self.top.len() + lower + self.by_age.len()
    }

    /// Whether nobody stands here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.top.is_empty() && self.by_age.is_empty()
    }

    /// Whether the order of tickets is the order of rank.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.lower.is_empty() && self.by_age.is_empty()
    }

    /// Groups join, each at the end of its standing level. Their tickets are
    /// higher than all that joined so; none is a gap.
    #[inline]
    pub fn push_run(&mut self, entries: &mut [Entry<G>]) {
        let level = self.top.level;
        let other = entries.iter().position(|entry| entry.level != level);
        let (same, others) = entries.split_at_mut(other.unwrap_or(entries.len()));
        self.top.entries.extend(same.iter_mut().map(Entry::take));
        for entry in others {
            self.row(entry.level).entries.push_back(entry.take());
        }
    }

    /// As [`push`](Self::push) of several, which have groups and one level:
    /// that of all that stand here. Where nobody does, nothing is moved.
    #[inline]
    pub fn push_all(&mut self, entries: &mut Vec<Entry<G>>) {
        let top = &mut self.top;
        if top.is_empty() {
            top.level = entries.first().map_or(top.level, |first| first.level);
            let empty = mem::replace(&mut top.entries, VecDeque::from(mem::take(entries)));
            *entries = Vec::from(empty);
        } else {
            top.entries.extend(entries.drain(..));
        }
    }

    /// [`push_run`](Self::push_run) of one.
    #[inline]
    pub fn push(&mut self, ticket: u64, level: u8, group: G) {
        self.push_run(&mut [Entry {
            ticket,
            group: Some(group),
            link: 0,
            level,
            units: 0,
        }]);
    }

    /// The row of a level, for a group to join.
    fn row(&mut self, level: u8) -> &mut Row<G> {
        if self.top.is_empty() {
            self.top.level = level;
        }
        if level > self.top.level {
            self.lower
                .push(mem::replace(&mut self.top, Row::new(level)));
        }
        if level == self.top.level {
            return &mut self.top;
        }
        let found = self.lower.binary_search_by_key(&level, |row| row.level);
        let at = found.unwrap_or_else(|at| {
            self.lower.insert(at, Row::new(level));
            at
        });
        &mut self.lower[at]
    }

    /// A group joins with a rank and an age of its own. `tie` says who is first
    /// among equal ranks: the lower.
    pub fn insert(&mut self, ticket: u64, rank: Rank, tie: u64, group: G) {
        let standing = (Reverse(rank), tie);
        self.by_rank.insert(standing, ticket);
        self.by_age.insert(ticket, (standing, group));
    }

    /// Takes the first by rank, or with `oldest_first` the oldest, and says
    /// whether it was the oldest.
    #[inline]
    pub fn pop(&mut self, oldest_first: bool) -> Option<(G, bool)> {
        if !self.is_plain() {
            return self.pop_ranked(oldest_first);
        }
        Some((self.top.pop()?, true))
    }

    /// Takes the oldest, if the order of tickets is the order of rank.
    #[inline(always)]
    pub fn pop_plain(&mut self) -> Option<G> {
        if !self.is_plain() {
            return None;
        }
        self.top.pop()
    }

    /// Takes as many as `out` has places for, if the order of tickets is the
    /// order of rank: how many.
    #[inline(always)]
    pub fn pop_run(&mut self, out: &mut [Option<G>]) -> usize {
        if !self.is_plain() || self.top.gaps > 0 {
            return 0;
        }
        let entries = &mut self.top.entries;
        let n = out.len().min(entries.len());
        for (place, entry) in out.iter_mut().zip(entries.drain(..n)) {
            *place = entry.group;
        }
        self.top.tidy();
        n
    }

    #[inline(never)]
    fn pop_ranked(&mut self, oldest_first: bool) -> Option<(G, bool)> {
        if oldest_first {
            let oldest = self.oldest()?;
            return Some((self.remove(oldest)?, true));
        }
        let rank = Reverse(Rank::standing(self.top.level));
        let plain = self.top.first().map(|ticket| (rank, ticket));
        if let Some((&odd, &ticket)) = self.by_rank.first_key_value()
            && plain.is_none_or(|plain| odd < plain)
        {
            let is_oldest = self.is_oldest(ticket);
            return Some((self.take_odd(ticket)?, is_oldest));
        }
        let is_oldest = self.is_oldest(plain?.1);
        let group = self.top.pop()?;
        self.raise();
        Some((group, is_oldest))
    }

    /// If the top row has become empty, the next is at the top.
    fn raise(&mut self) {
        if self.top.is_empty()
            && let Some(next) = self.lower.pop()
        {
            self.top = next;
        }
    }

    /// The ticket of the oldest.
    pub fn oldest(&self) -> Option<u64> {
        self.heads().min()
    }

    /// Whether nobody is older.
    fn is_oldest(&self, ticket: u64) -> bool {
        self.heads().all(|head| ticket <= head)
    }

    /// The tickets of the oldest of each row, and of the odd ones.
    fn heads(&self) -> impl Iterator<Item = u64> {
        let odd = self.by_age.keys().next().copied();
        let rows = self.lower.iter().chain([&self.top]);
        odd.into_iter().chain(rows.filter_map(Row::first))
    }

    /// Whether the group with this ticket stands here.
    pub fn contains(&self, ticket: u64) -> bool {
        let mut rows = self.lower.iter().chain([&self.top]);
        self.by_age.contains_key(&ticket) || rows.any(|row| row.find(ticket).is_some())
    }

    /// Takes out the group with this ticket.
    pub fn remove(&mut self, ticket: u64) -> Option<G> {
        if let Some(group) = self.take_odd(ticket) {
            return Some(group);
        }
        let rows = self.lower.iter_mut().chain([&mut self.top]);
        let group = rows.flat_map(|row| row.take(ticket)).next()?;
        self.lower.retain(|row| !row.is_empty());
        self.raise();
        Some(group)
    }

    fn take_odd(&mut self, ticket: u64) -> Option<G> {
        let (standing, group) = self.by_age.remove(&ticket)?;
        self.by_rank.remove(&standing);
        if self.by_age.is_empty() {
            // An emptied tree keeps its last node.
            (self.by_rank, self.by_age) = (BTreeMap::new(), BTreeMap::new());
        }
        Some(group)
    }
}

impl<G> Default for Line<G> {
    /// Nobody.
    fn default() -> Self {
        Self {
            top: Row::new(0),
            lower: Vec::new(),
            by_rank: BTreeMap::new(),
            by_age: BTreeMap::new(),
        }
    }
}
