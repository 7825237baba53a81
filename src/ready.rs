//! Who stands in one line: by rank, with the oldest always at hand.
//!
//! State: the *plain* groups stand in one array in the order of their tickets.
//! While they share one level, that is their order of rank too; else those of
//! each level are linked to one another. Groups that are bumped, or come back
//! with an old ticket, are *odd*: they stand in two trees, by rank and by age.
//!
//! Invariants:
//! 1. Tickets ascend along the array. A group taken out of its middle leaves a
//!    gap; the first entry is never a gap.
//! 2. While several levels stand in the array, each of its groups is linked in
//!    the list of its level, in order. A gap may be, and is skipped where it is
//!    met; what leaves the array leaves its list.
//! 3. There are fewer gaps than groups, but for `SLACK` of them.
//! 4. The two trees hold the same groups.
//!
//! Cost: amortised O(1) for plain groups; O(log n) for odd ones and for taking a
//! group out of the middle.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::mem;

mod entry;
mod levels;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use levels::Levels;

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
    entries: VecDeque<Entry<G>>,
    /// The position of the first entry.
    first: u64,
    /// Entries that are gaps.
    gaps: usize,
    /// The level of all of them, while `levels` is not in use.
    level: u8,
    /// Several levels stand in the array.
    mixed: bool,
    levels: Option<Box<Levels>>,
    /// The odd ones.
    by_rank: BTreeMap<Standing, u64>,
    by_age: BTreeMap<u64, (Standing, G)>,
}

impl<G> Line<G> {
    /// How many stand here.
    #[inline]
    pub fn len(&self) -> usize {
        self.plain() + self.by_age.len()
    }

    /// Whether nobody stands here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.by_age.is_empty()
    }

    /// Entries that are no gaps.
    #[inline]
    fn plain(&self) -> usize {
        self.entries.len() - self.gaps
    }

    /// Whether the order of tickets is the order of rank.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.mixed && self.by_age.is_empty()
    }

    /// Groups join, each at the end of its standing level. Their tickets are
    /// higher than all that joined so; none is a gap.
    #[inline]
    pub fn push_run(&mut self, entries: &mut [Entry<G>]) {
        let before = self.entries.len();
        let mut other = u8::from(self.mixed);
        let entry = |entry: &mut Entry<G>| {
            other |= entry.level ^ self.level;
            entry.take()
        };
        self.entries.extend(entries.iter_mut().map(entry));
        if other != 0 {
            self.push_levels(before);
        }
    }

    /// As [`push`](Self::push) of several, which have groups and one level:
    /// that of all that stand here. Where nobody does, nothing is moved.
    #[inline]
    pub fn push_all(&mut self, entries: &mut Vec<Entry<G>>) {
        if self.entries.is_empty() {
            self.level = entries.first().map_or(self.level, |first| first.level);
            let empty = mem::replace(&mut self.entries, VecDeque::from(mem::take(entries)));
            *entries = Vec::from(empty);
        } else {
            self.entries.extend(entries.drain(..));
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

    /// Not all entries from there on are of the line's level.
    #[inline(never)]
    fn push_levels(&mut self, from: usize) {
        if self.mixed {
            return self.link(from);
        }
        if from == 0 {
            self.level = self.entries[0].level;
        }
        if self.entries.iter().any(|entry| entry.level != self.level) {
            self.mixed = true;
            self.link(0);
        }
    }

    /// Puts the entries from there on into the lists of their levels.
    fn link(&mut self, from: usize) {
        let levels = self.levels.get_or_insert_default();
        for at in from..self.entries.len() {
            let position = self.first + at as u64;
            let entry = &mut self.entries[at];
            if entry.group.is_none() {
                continue;
            }
            entry.link = 0;
            if let Some(last) = levels.push(entry.level, position) {
                let step = position - last;
                // There is no memory for 2^32 entries.
                self.entries[(last - self.first) as usize].link = step as u32;
            }
        }
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
        Some((self.pop_plain()?, true))
    }

    /// Takes the oldest, if the order of tickets is the order of rank.
    #[inline(always)]
    pub fn pop_plain(&mut self) -> Option<G> {
        if !self.is_plain() {
            return None;
        }
        let group = self.entries.pop_front()?.group?;
        self.first += 1;
        self.tidy();
        Some(group)
    }

    /// Takes as many as `out` has places for, if the order of tickets is the
    /// order of rank: how many.
    #[inline(always)]
    pub fn pop_run(&mut self, out: &mut [Option<G>]) -> usize {
        if !self.is_plain() || self.gaps > 0 {
            return 0;
        }
        let n = out.len().min(self.entries.len());
        for (place, entry) in out.iter_mut().zip(&mut self.entries) {
            mem::swap(place, &mut entry.group);
        }
        self.entries.drain(..n);
        self.first += n as u64;
        self.tidy();
        n
    }

    #[inline(never)]
    fn pop_ranked(&mut self, oldest_first: bool) -> Option<(G, bool)> {
        if self.by_age.is_empty() && !oldest_first {
            return self.pop_level();
        }
        let oldest = self.oldest()?;
        if oldest_first {
            return Some((self.remove(oldest)?, true));
        }
        let plain = self.first_plain();
        let odd = self.by_rank.first_key_value();
        let odd = odd.map(|(&standing, &ticket)| (standing, ticket));
        let ticket = match (plain, odd) {
            (Some(plain), Some(odd)) if odd.0 < plain.0 => odd.1,
            (Some(plain), _) => return Some((self.take_plain(plain.1)?, plain.0.1 == oldest)),
            (None, odd) => odd?.1,
        };
        Some((self.take_odd(ticket)?, ticket == oldest))
    }

    /// The first of the highest level, where nobody is odd.
    fn pop_level(&mut self) -> Option<(G, bool)> {
        let at = self.first_of_levels()?;
        let entry = &mut self.entries[at];
        let group = entry.group.take()?;
        if let Some(levels) = &mut self.levels {
            levels.pop(entry.level, self.first + at as u64, entry.link);
        }
        self.gaps += 1;
        self.tidy();
        Some((group, at == 0))
    }

    /// The first plain group by rank: its standing, and its place in the array.
    fn first_plain(&mut self) -> Option<(Standing, usize)> {
        if self.entries.is_empty() {
            return None;
        }
        let mut at = 0;
        if self.mixed {
            at = self.first_of_levels()?;
        }
        let entry = self.entries.get(at)?;
        Some(((Reverse(Rank::standing(entry.level)), entry.ticket), at))
    }

    /// The place of the first of the highest level. Skips gaps.
    fn first_of_levels(&mut self) -> Option<usize> {
        let levels = self.levels.as_mut()?;
        loop {
            let (level, position) = levels.first()?;
            let at = (position - self.first) as usize;
            let entry = self.entries.get(at)?;
            if entry.group.is_some() {
                return Some(at);
            }
            levels.pop(level, position, entry.link);
        }
    }

    /// The ticket of the oldest.
    pub fn oldest(&self) -> Option<u64> {
        let plain = self.entries.front().map(|entry| entry.ticket);
        let odd = self.by_age.keys().next().copied();
        plain.into_iter().chain(odd).min()
    }

    /// Whether the group with this ticket stands here.
    pub fn contains(&self, ticket: u64) -> bool {
        self.by_age.contains_key(&ticket) || self.find(ticket).is_some()
    }

    /// Takes out the group with this ticket.
    pub fn remove(&mut self, ticket: u64) -> Option<G> {
        match self.take_odd(ticket) {
            None => self.take_plain(self.find(ticket)?),
            group => group,
        }
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

    /// Where the group with this ticket stands in the array.
    fn find(&self, ticket: u64) -> Option<usize> {
        let at = self.entries.binary_search_by_key(&ticket, |e| e.ticket);
        at.ok().filter(|&at| self.entries[at].group.is_some())
    }

    fn take_plain(&mut self, at: usize) -> Option<G> {
        let group = self.entries.get_mut(at)?.group.take()?;
        self.gaps += 1;
        self.tidy();
        Some(group)
    }

    /// Keeps invariants 1 and 3 after an entry has gone.
    #[inline(always)]
    fn tidy(&mut self) {
        if self.gaps > 0 {
            let first = self.entries.front();
            if first.is_none_or(|e| e.group.is_none()) || self.gaps > self.plain() + SLACK {
                self.close_gaps();
            }
        }
        if self.entries.is_empty() && (self.mixed || self.entries.capacity() > SLACK) {
            self.clear();
        }
    }

    #[inline(never)]
    fn close_gaps(&mut self) {
        while let Some(entry) = self.entries.front().filter(|e| e.group.is_none()) {
            if let Some(levels) = &mut self.levels {
                levels.pop(entry.level, self.first, entry.link);
            }
            self.entries.pop_front();
            (self.first, self.gaps) = (self.first + 1, self.gaps - 1);
        }
        if self.gaps > self.plain() + SLACK {
            self.entries.retain(|entry| entry.group.is_some());
            self.gaps = 0;
            if self.mixed {
                self.levels = None;
                self.link(0);
            }
        }
    }

    /// Nobody stands in the array: one level is enough, and little memory.
    #[cold]
    fn clear(&mut self) {
        self.mixed = false;
        if self.entries.capacity() > SLACK {
            (self.entries, self.levels) = (VecDeque::new(), None);
        }
    }
}

impl<G> Default for Line<G> {
    /// Nobody.
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            gaps: 0,
            level: 0,
            mixed: false,
            levels: None,
            by_rank: BTreeMap::new(),
            by_age: BTreeMap::new(),
        }
    }
}
