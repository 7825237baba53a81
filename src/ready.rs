//! The ready groups of one lane and tier: which is next by rank, and which is the oldest.
//!
//! State: while all groups have the same standing level and joined in the order of their tickets,
//! they are in one row. Otherwise there is `ranked`, which has a row for each rank.
//!
//! Invariants:
//! 1. `row` or `ranked` is empty.
//! 2. A row is in ascending order. Its first entry is never a gap. It has at most `FEW_GAPS` more
//!    gaps than groups.
//!
//! Cost: amortized O(1) in one row. With several ranks: O(1) to join in order and to pop; O(log n)
//! to join out of order, to join bumped, and to be taken out of the middle. When the oldest leaves,
//! the next oldest is searched for: O(levels in use).

use std::collections::VecDeque;
use std::mem;

mod entry;
mod marks;
mod ranked;
mod ranks;
mod row;
#[cfg(all(test, not(any(loom, shuttle, sanitized))))]
mod tests;

use entry::is_bumped;
use ranked::Ranked;
use row::Row;

pub use entry::{Age, Entry, Position, ReadyItem};

/// So few gaps are not closed.
const FEW_GAPS: usize = 32;
/// So little capacity is not given back.
const SLACK: usize = 1024;
/// Rows of so few ranks are kept for the next time.
const FEW_RANKS: usize = 64;

/// Groups that are ready.
#[derive(Debug)]
pub struct ReadyQueue<G> {
    row: Row<G>,
    /// Has a group.
    ranked: Option<Box<Ranked<G>>>,
    /// Has no group: kept for the next time.
    spare: Option<Box<Ranked<G>>>,
}

impl<G: ReadyItem> ReadyQueue<G> {
    /// How many groups are ready. Counts no further than `most`.
    pub fn count(&self, most: usize) -> usize {
        match &self.ranked {
            Some(ranked) => ranked.count(most),
            None => self.row.count().min(most),
        }
    }

    /// Whether no group is ready.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.row.is_empty() && self.ranked.is_none()
    }

    /// Whether the order of tickets is the order of rank.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.ranked.is_none()
    }

    /// Adds groups, each at the end of its standing level. Their tickets are higher than all that
    /// joined in this way; none of the entries is a gap.
    #[inline]
    pub fn push_run(&mut self, mut entries: &mut [Entry<G>]) {
        if self.ranked.is_none() {
            if let Some(first) = entries.first()
                && self.row.is_empty()
            {
                self.row.rank = first.level.into();
            }
            let rank = self.row.rank;
            let others = entries.iter().position(|entry| rank != entry.level.into());
            let n = others.unwrap_or(entries.len());
            let (same, others) = entries.split_at_mut(n);
            self.row.entries.extend(same.iter_mut().map(Entry::take));
            entries = others;
        }
        if !entries.is_empty() {
            let ranked = self.ranked();
            entries
                .iter_mut()
                .for_each(|entry| ranked.push(entry.take()));
        }
    }

    /// As [`push_run`](Self::push_run), for entries that have groups, all of one level: that of all
    /// groups here. If there are none here, no entry is moved.
    #[inline]
    pub fn push_all(&mut self, entries: &mut Vec<Entry<G>>) {
        let row = &mut self.row;
        if self.ranked.is_some() {
            self.push_run(entries);
            entries.clear();
        } else if row.is_empty() {
            let first = entries.first();
            row.rank = first.map_or(row.rank, |first| first.level.into());
            let empty = mem::replace(&mut row.entries, VecDeque::from(mem::take(entries)));
            *entries = Vec::from(empty);
        } else {
            row.entries.extend(entries.drain(..));
        }
    }

    /// As [`push_run`](Self::push_run), for one group.
    #[inline(always)]
    pub fn push(&mut self, ticket: u64, level: u8, group: G) {
        let entry = Entry::new(ticket, level, group);
        match &mut self.ranked {
            Some(ranked) => ranked.push(entry),
            None if self.row.rank == level.into() => self.row.entries.push_back(entry),
            None => self.push_other(entry),
        }
    }

    /// As [`push`](Self::push), for a rank that is not that of the row.
    #[inline(never)]
    fn push_other(&mut self, entry: Entry<G>) {
        if self.row.is_empty() {
            self.row.rank = entry.level.into();
            self.row.entries.push_back(entry);
        } else {
            self.ranked().push(entry);
        }
    }

    /// Adds `count` groups as one entry, with tickets from `ticket` on.
    pub fn push_several(&mut self, ticket: u64, level: u8, group: G, count: usize) {
        self.push(ticket, level, group);
        let more = count - 1;
        match &mut self.ranked {
            Some(ranked) => ranked.add_behind(level, more),
            None => self.row.behind += more,
        }
    }

    /// Adds a group at its position. A group with a new age has the highest ticket.
    #[inline(always)]
    pub fn join(&mut self, age: Age, ticket: u64, level: u8, bump: Option<(u8, u64)>, group: G) {
        if age == Age::New && bump.is_none() {
            self.push(ticket, level, group);
        } else {
            self.insert(ticket, Position::new(level, ticket, bump), group);
        }
    }

    /// Adds a group that is bumped, or that comes back with its old ticket.
    pub fn insert(&mut self, ticket: u64, position: Position, group: G) {
        let row = &mut self.row;
        if row.is_empty() && !is_bumped(position.rank()) {
            row.rank = position.rank();
        }
        let first = row.entries.front();
        let leads = first.is_none_or(|first| ticket < first.ticket);
        if self.ranked.is_some() || !leads || position != Position::of(row.rank, ticket) {
            return self.ranked().insert(ticket, position, group);
        }
        row.push_front(Entry::new(ticket, row.rank as u8, group));
    }

    /// Takes the only group, if it has this ticket and this standing level and `is` accepts it. May
    /// take none if the order of tickets is not that of rank, or was not.
    pub fn take_only(&mut self, ticket: u64, level: u8, is: impl Fn(&G) -> bool) -> Option<G> {
        let row = &mut self.row;
        let only = row.entries.front().filter(|_| row.entries.len() == 1)?;
        let is_meant = row.rank == level.into() && only.ticket == ticket;
        let group = only.group.as_ref().filter(|_| is_meant)?;
        is(group).then(|| row.entries.pop_front()?.group)?
    }

    /// Takes groups out of the first entry, if that has several. Takes none if the order of tickets
    /// is not that of rank. `take` returns the number of groups, the next one's ticket, if one is
    /// left, and the groups.
    #[inline]
    pub fn take_first<R>(
        &mut self,
        take: impl FnOnce(&mut G) -> Option<(usize, Option<u64>, R)>,
    ) -> Option<(usize, R)> {
        let row = &mut self.row;
        if self.ranked.is_some() || row.behind == 0 {
            return None;
        }
        let first = row.entries.front_mut()?;
        let (count, next, taken) = take(first.group.as_mut()?)?;
        match next {
            Some(next) => {
                first.ticket = next;
                row.behind -= count;
            }
            None => {
                row.entries.pop_front();
                row.behind -= count - 1;
                row.tidy();
            }
        }
        Some((count, taken))
    }

    /// Takes one of several groups in one entry, but not the first.
    pub fn take_covered<R>(
        &mut self,
        position: Position,
        take: impl FnOnce(&mut G) -> Option<R>,
    ) -> Option<R> {
        match &mut self.ranked {
            Some(ranked) => ranked.take_covered(position, take),
            None => self.row.take_covered(position, take),
        }
    }

    /// Moves all groups to `ranked`.
    fn ranked(&mut self) -> &mut Ranked<G> {
        let spare = || self.spare.take().unwrap_or_default();
        let ranked = self.ranked.get_or_insert_with(spare);
        if !self.row.is_empty() {
            ranked.take_over(&mut self.row);
        }
        ranked
    }

    /// Takes the first group by rank, or the oldest if `oldest_first`. Returns the group, and
    /// whether it was the oldest.
    #[inline(always)]
    pub fn pop(&mut self, oldest_first: bool) -> Option<(G, bool)> {
        let Some(ranked) = &mut self.ranked else {
            return Some((self.row.pop()?.group?, true));
        };
        if !oldest_first && let Some(group) = ranked.pop_fast() {
            return Some((group, false));
        }
        self.pop_ranked(oldest_first)
    }

    /// The group behind the first, if the order of tickets is the order of rank: a guess.
    #[inline(always)]
    pub fn follower(&self) -> Option<&G> {
        self.row.entries.get(1)?.group.as_ref()
    }

    /// Takes the oldest group, if the order of tickets is the order of rank.
    #[inline(always)]
    pub fn pop_plain(&mut self) -> Option<G> {
        if self.ranked.is_some() {
            return None;
        }
        self.row.pop()?.group
    }

    /// Takes groups as long as `out` has places, and returns how many: 0 if there are none, or if
    /// the order of tickets is not the order of rank.
    #[inline(always)]
    pub fn pop_run(&mut self, out: &mut [Option<G>]) -> usize {
        if let [place] = out {
            *place = self.pop_plain();
            return place.is_some().into();
        }
        if self.ranked.is_some() {
            return 0;
        }
        let mut n = out.len().min(self.row.entries.len());
        if self.row.gaps > 0 {
            n = self.row.before_a_gap(n);
        }
        let entries = &mut self.row.entries;
        for (place, entry) in out[..n].iter_mut().zip(&mut *entries) {
            mem::swap(place, &mut entry.group);
        }
        entries.drain(..n);
        self.row.tidy();
        n
    }

    /// Takes groups while `take` takes the first one, at most `most`. Returns how many: 0 if the
    /// order of tickets is not the order of rank.
    #[inline]
    pub fn pop_while(&mut self, most: usize, take: impl FnMut(&G) -> bool) -> usize {
        self.row.pop_while(most, take)
    }

    #[inline(never)]
    fn pop_ranked(&mut self, oldest_first: bool) -> Option<(G, bool)> {
        let ranked = self.ranked.as_mut()?;
        let popped = if oldest_first {
            let (_, oldest) = ranked.oldest()?;
            (ranked.take(oldest)?, true)
        } else {
            ranked.pop()?
        };
        self.leave();
        Some(popped)
    }

    /// Moves the groups out of `ranked` if they need no ranks any more. Frees the rows of many
    /// ranks, which without groups would take 64 bytes and more each, in each lane.
    fn leave(&mut self) {
        let ranked = self.ranked.as_mut();
        if ranked.is_some_and(|ranked| ranked.leave(&mut self.row)) {
            // There is never both.
            mem::swap(&mut self.spare, &mut self.ranked);
            self.spare.take_if(|spare| spare.rows.len() > FEW_RANKS);
        }
    }

    /// The ticket of the oldest group.
    pub fn oldest(&mut self) -> Option<u64> {
        match &mut self.ranked {
            Some(ranked) => Some(ranked.oldest()?.0),
            None => Some(self.row.entries.front()?.ticket),
        }
    }

    /// All groups here, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &G> {
        let ranked = self.ranked.iter().flat_map(|ranked| ranked.iter());
        self.row.iter().chain(ranked)
    }

    /// Whether a group is at this position.
    pub fn contains(&self, position: Position) -> bool {
        match &self.ranked {
            Some(ranked) => ranked.contains(position),
            None => self.row.find(position).is_some(),
        }
    }

    /// Takes out the group at this position.
    pub fn remove(&mut self, position: Position) -> Option<G> {
        match &mut self.ranked {
            Some(ranked) => {
                let group = ranked.take(position)?;
                self.leave();
                Some(group)
            }
            None => self.row.take(position)?.group,
        }
    }
}

impl<G: ReadyItem> Default for ReadyQueue<G> {
    /// No groups.
    fn default() -> Self {
        Self {
            row: Row::new(0),
            ranked: None,
            spare: None,
        }
    }
}
