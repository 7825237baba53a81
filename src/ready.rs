//! Who stands in one line: by rank, with the oldest always at hand.
//!
//! State: the *plain* groups stand in one array in the order of their tickets.
//! While they share one level, that is their order of rank too; else a FIFO of
//! positions stands beside it for each level. Groups that are bumped, or that
//! come back with an old ticket, are *odd*: they stand in two trees, by rank
//! and by age.
//!
//! Invariants:
//! 1. Tickets ascend along the array. A group that was taken out of its middle
//!    leaves a gap; the first entry is never a gap.
//! 2. While several levels stand in the array, each of its groups has its
//!    position in the FIFO of its level. A position of a gap, or before the
//!    array, is stale, and skipped where it is met.
//! 3. There are fewer gaps than groups, but for `SLACK` of them.
//! 4. The two trees hold the same groups.
//!
//! Cost: O(1) for plain groups, amortised; O(log n) for odd ones and for taking
//! a group out of the middle.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// The standing level of a group of which nothing is said.
pub const STANDING_LEVEL: u8 = 100;

/// Gaps that are not worth closing, and capacity not worth giving back.
const SLACK: usize = 1024;

/// How urgent a group is: bumped groups before all others, then by level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u16);

impl Rank {
    /// A group that was not bumped.
    pub fn standing(level: u8) -> Self {
        Self(level.into())
    }

    /// A group bumped to this level.
    pub fn bumped(level: u8) -> Self {
        Self(0x100 | u16::from(level))
    }
}

#[derive(Debug)]
struct Entry<G> {
    ticket: u64,
    level: u8,
    /// `None`: a gap.
    group: Option<G>,
}

impl<G> Entry<G> {
    fn standing(&self) -> Standing {
        (Reverse(Rank::standing(self.level)), self.ticket)
    }
}

/// Positions by level.
#[derive(Debug)]
struct Levels {
    /// A bit for each level whose FIFO is not empty.
    bits: [u64; 4],
    fifos: Vec<VecDeque<u64>>,
}

impl Levels {
    fn new() -> Self {
        Self {
            bits: [0; 4],
            fifos: (0..=u8::MAX).map(|_| VecDeque::new()).collect(),
        }
    }

    fn push(&mut self, level: u8, position: u64) {
        self.fifos[usize::from(level)].push_back(position);
        self.bits[usize::from(level >> 6)] |= 1 << (level & 63);
    }

    /// The highest level that is not empty, and its first position.
    #[inline]
    fn first(&self) -> Option<(u8, u64)> {
        let word = (0..4).rev().find(|&word| self.bits[word] != 0)?;
        let level = word * 64 + 63 - self.bits[word].leading_zeros() as usize;
        Some((level as u8, *self.fifos[level].front()?))
    }

    #[inline]
    fn pop(&mut self, level: u8) {
        let fifo = &mut self.fifos[usize::from(level)];
        fifo.pop_front();
        if fifo.is_empty() {
            self.bits[usize::from(level >> 6)] &= !(1 << (level & 63));
        }
    }
}

/// A rank, and who is first among equals: the later of bump and ready time.
type Standing = (Reverse<Rank>, u64);

#[derive(Debug)]
struct Odd<G> {
    by_rank: BTreeMap<Standing, u64>,
    by_age: BTreeMap<u64, (Standing, G)>,
}

/// Groups in line. See the [module](self).
#[derive(Debug)]
pub struct Line<G> {
    entries: VecDeque<Entry<G>>,
    /// The position of the first entry.
    first: u64,
    /// Entries that are no gaps.
    plain: usize,
    /// The level of all of them, without `levels`.
    level: u8,
    /// Several levels stand in the array.
    levels: Option<Box<Levels>>,
    odd: Option<Box<Odd<G>>>,
}

impl<G> Line<G> {
    /// Nobody.
    pub const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            plain: 0,
            level: 0,
            levels: None,
            odd: None,
        }
    }

    /// How many stand here.
    #[inline]
    pub fn len(&self) -> usize {
        self.plain + self.odd.as_ref().map_or(0, |odd| odd.by_age.len())
    }

    /// Whether nobody stands here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.plain == 0 && self.odd.is_none()
    }

    /// Whether the order of tickets is the order of rank.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.levels.is_none() && self.odd.is_none()
    }

    /// A group joins at the end of its standing level. Its ticket is higher
    /// than those of all groups that joined so before.
    #[inline]
    pub fn push(&mut self, ticket: u64, level: u8, group: G) {
        self.entries.push_back(Entry {
            ticket,
            level,
            group: Some(group),
        });
        self.plain += 1;
        if self.levels.is_some() || level != self.level {
            self.push_level(level);
        }
    }

    #[cold]
    fn push_level(&mut self, level: u8) {
        if self.plain == 1 {
            self.level = level;
        } else if let Some(levels) = &mut self.levels {
            levels.push(level, self.first + self.entries.len() as u64 - 1);
        } else {
            self.sort_levels();
        }
    }

    /// A group joins with a rank and an age of its own. `tie` says who is first
    /// among equal ranks: the lower.
    pub fn insert(&mut self, ticket: u64, rank: Rank, tie: u64, group: G) {
        let standing = (Reverse(rank), tie);
        let odd = self.odd.get_or_insert_with(|| {
            Box::new(Odd {
                by_rank: BTreeMap::new(),
                by_age: BTreeMap::new(),
            })
        });
        odd.by_rank.insert(standing, ticket);
        odd.by_age.insert(ticket, (standing, group));
    }

    /// Takes the first by rank, or with `oldest_first` the oldest, and says
    /// whether it was the oldest.
    #[inline]
    pub fn pop(&mut self, oldest_first: bool) -> Option<(G, bool)> {
        if !self.is_plain() {
            return self.pop_ranked(oldest_first);
        }
        let group = self.entries.pop_front()?.group?;
        self.first += 1;
        self.took_plain();
        Some((group, true))
    }

    #[inline(never)]
    fn pop_ranked(&mut self, oldest_first: bool) -> Option<(G, bool)> {
        let oldest = self.oldest()?;
        if oldest_first {
            return Some((self.remove(oldest)?, true));
        }
        let plain = self.first_plain();
        let odd = self.odd.as_ref();
        let odd = odd.and_then(|odd| odd.by_rank.first_key_value());
        if let Some((&first, &ticket)) = odd
            && plain.is_none_or(|at| first < self.entries[at].standing())
        {
            return Some((self.take_odd(ticket)?, ticket == oldest));
        }
        let at = plain?;
        let Entry { ticket, level, .. } = self.entries[at];
        if let Some(levels) = &mut self.levels {
            levels.pop(level);
        }
        Some((self.take_plain(at)?, ticket == oldest))
    }

    /// Where the first plain group by rank stands in the array. Skips what is
    /// stale.
    #[inline]
    fn first_plain(&mut self) -> Option<usize> {
        let Some(levels) = &mut self.levels else {
            return (self.plain > 0).then_some(0);
        };
        loop {
            let (level, position) = levels.first()?;
            let at = position.wrapping_sub(self.first) as usize;
            if matches!(self.entries.get(at), Some(entry) if entry.group.is_some()) {
                return Some(at);
            }
            levels.pop(level);
        }
    }

    /// The ticket of the oldest.
    pub fn oldest(&self) -> Option<u64> {
        let plain = self.entries.front().map(|entry| entry.ticket);
        let odd = self.odd.as_ref();
        let odd = odd.and_then(|odd| Some(*odd.by_age.first_key_value()?.0));
        match (plain, odd) {
            (Some(plain), Some(odd)) => Some(plain.min(odd)),
            (plain, odd) => plain.or(odd),
        }
    }

    /// Whether the group with this ticket stands here.
    pub fn contains(&self, ticket: u64) -> bool {
        let odd = self.odd.as_ref();
        odd.is_some_and(|odd| odd.by_age.contains_key(&ticket)) || self.find(ticket).is_some()
    }

    /// Takes out the group with this ticket.
    pub fn remove(&mut self, ticket: u64) -> Option<G> {
        match self.take_odd(ticket) {
            None => self.take_plain(self.find(ticket)?),
            group => group,
        }
    }

    fn take_odd(&mut self, ticket: u64) -> Option<G> {
        let odd = self.odd.as_mut()?;
        let (standing, group) = odd.by_age.remove(&ticket)?;
        odd.by_rank.remove(&standing);
        if odd.by_age.is_empty() {
            self.odd = None;
        }
        Some(group)
    }

    /// Where the group with this ticket stands in the array.
    fn find(&self, ticket: u64) -> Option<usize> {
        let found = self.entries.binary_search_by_key(&ticket, |e| e.ticket);
        let at = found.ok()?;
        self.entries[at].group.is_some().then_some(at)
    }

    #[inline(always)]
    fn take_plain(&mut self, at: usize) -> Option<G> {
        let group = self.entries.get_mut(at)?.group.take()?;
        self.took_plain();
        self.close_gaps();
        Some(group)
    }

    /// Keeps invariant 3.
    #[inline]
    fn close_gaps(&mut self) {
        if self.entries.len() > 2 * self.plain + SLACK {
            self.entries.retain(|entry| entry.group.is_some());
            if self.levels.is_some() {
                self.sort_levels();
            }
        }
    }

    #[inline]
    fn took_plain(&mut self) {
        self.plain -= 1;
        if self.plain == 0 {
            self.emptied();
        } else if self.entries.len() > self.plain {
            self.skip_gaps();
        }
    }

    /// Keeps invariant 1.
    #[inline(always)]
    fn skip_gaps(&mut self) {
        while self.entries.front().is_some_and(|e| e.group.is_none()) {
            self.entries.pop_front();
            self.first += 1;
        }
    }

    #[inline(never)]
    fn emptied(&mut self) {
        self.first += self.entries.len() as u64;
        self.entries.clear();
        if self.entries.capacity() > SLACK {
            self.entries = VecDeque::new();
        }
        self.levels = None;
    }

    /// Makes the FIFOs anew from the array, whose order is theirs.
    fn sort_levels(&mut self) {
        let levels = self.levels.insert(Box::new(Levels::new()));
        for (position, entry) in (self.first..).zip(&self.entries) {
            if entry.group.is_some() {
                levels.push(entry.level, position);
            }
        }
    }
}

impl<G> Default for Line<G> {
    fn default() -> Self {
        Self::new()
    }
}
