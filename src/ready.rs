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

/// Positions by level, highest level first.
#[derive(Debug)]
struct Levels {
    /// A bit for each word of `bits` that is not zero.
    summary: u8,
    /// A bit for each level whose FIFO is not empty.
    bits: [u64; 4],
    fifos: Vec<VecDeque<u64>>,
}

impl Levels {
    fn new() -> Self {
        Self {
            summary: 0,
            bits: [0; 4],
            fifos: (0..=u8::MAX).map(|_| VecDeque::new()).collect(),
        }
    }

    fn push(&mut self, level: u8, position: u64) {
        let word = usize::from(level >> 6);
        self.fifos[usize::from(level)].push_back(position);
        self.bits[word] |= 1 << (level & 63);
        self.summary |= 1 << word;
    }

    /// The highest level that is not empty, and its first position.
    fn first(&self) -> Option<(u8, u64)> {
        let word = 7_u32.checked_sub(self.summary.leading_zeros())?;
        let bit = 63 - self.bits[word as usize].leading_zeros();
        let level = (word * 64 + bit) as u8;
        Some((level, *self.fifos[usize::from(level)].front()?))
    }

    fn pop(&mut self, level: u8) -> Option<u64> {
        let fifo = &mut self.fifos[usize::from(level)];
        let position = fifo.pop_front();
        if fifo.is_empty() {
            let word = usize::from(level >> 6);
            self.bits[word] &= !(1 << (level & 63));
            if self.bits[word] == 0 {
                self.summary &= !(1 << word);
            }
        }
        position
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
    /// Entries that are gaps.
    gaps: usize,
    /// The level of all of them, while `levels` is not in use.
    level: u8,
    /// Several levels stand in the array.
    mixed: bool,
    levels: Option<Box<Levels>>,
    odd: Option<Box<Odd<G>>>,
}

impl<G> Line<G> {
    /// Nobody.
    pub const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            gaps: 0,
            level: 0,
            mixed: false,
            levels: None,
            odd: None,
        }
    }

    /// How many stand here.
    #[inline]
    pub fn len(&self) -> usize {
        self.plain() + self.odd.as_ref().map_or(0, |odd| odd.by_age.len())
    }

    /// Whether nobody stands here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.odd.is_none()
    }

    /// Entries that are no gaps.
    #[inline]
    fn plain(&self) -> usize {
        self.entries.len() - self.gaps
    }

    /// Whether the order of tickets is the order of rank.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.mixed && self.odd.is_none()
    }

    /// As [`push`](Self::push) of several, whose tickets follow one another, and
    /// none of which is `None`.
    #[inline]
    pub fn push_run(&mut self, first: u64, groups: impl ExactSizeIterator<Item = (u8, Option<G>)>) {
        let before = self.entries.len();
        let mut other = u8::from(self.mixed);
        let entry = |(ticket, (level, group))| {
            other |= level ^ self.level;
            Entry {
                ticket,
                level,
                group,
            }
        };
        self.entries.extend((first..).zip(groups).map(entry));
        if other != 0 {
            self.push_levels(before);
        }
    }

    /// A group joins at the end of its standing level. Its ticket is higher
    /// than those of all groups that joined so before.
    #[inline]
    pub fn push(&mut self, ticket: u64, level: u8, group: G) {
        self.push_run(ticket, [(level, Some(group))].into_iter());
    }

    /// Not all entries from there on are of the line's level.
    #[inline(never)]
    fn push_levels(&mut self, from: usize) {
        let new = self.entries.range(from..);
        if let Some(levels) = self.levels.as_mut().filter(|_| self.mixed) {
            let positions = self.first + from as u64..;
            let new = positions.zip(new);
            return new.for_each(|(at, entry)| levels.push(entry.level, at));
        }
        if from == 0 {
            self.level = self.entries[0].level;
        }
        if self.entries.iter().any(|entry| entry.level != self.level) {
            self.mixed = true;
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
        for place in &mut out[..n] {
            *place = self.entries.pop_front().and_then(|entry| entry.group);
        }
        self.first += n as u64;
        self.tidy();
        n
    }

    #[inline(never)]
    fn pop_ranked(&mut self, oldest_first: bool) -> Option<(G, bool)> {
        if self.odd.is_none() && !oldest_first {
            return self.pop_level();
        }
        let oldest = self.oldest()?;
        if oldest_first {
            return Some((self.remove(oldest)?, true));
        }
        let plain = self.first_plain();
        let odd = self.odd.as_ref().and_then(|odd| {
            let (&standing, &ticket) = odd.by_rank.first_key_value()?;
            Some((standing, ticket))
        });
        let ticket = match (plain, odd) {
            (Some(plain), Some(odd)) if odd.0 < plain.0 => odd.1,
            (Some(plain), _) => return Some((self.take_plain(plain.1)?, plain.0.1 == oldest)),
            (None, odd) => odd?.1,
        };
        Some((self.take_odd(ticket)?, ticket == oldest))
    }

    /// The first of the highest level, where nobody is odd.
    fn pop_level(&mut self) -> Option<(G, bool)> {
        let levels = self.levels.as_mut()?;
        loop {
            let (level, position) = levels.first()?;
            levels.pop(level);
            let at = position.wrapping_sub(self.first) as usize;
            let entry = self.entries.get_mut(at);
            if let Some(group) = entry.and_then(|entry| entry.group.take()) {
                self.gaps += 1;
                self.tidy();
                return Some((group, at == 0));
            }
        }
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

    /// Skips what is stale.
    fn first_of_levels(&mut self) -> Option<usize> {
        let levels = self.levels.as_mut()?;
        loop {
            let (level, position) = levels.first()?;
            let at = position.checked_sub(self.first);
            let entry = at.and_then(|at| Some((at, self.entries.get(at as usize)?)));
            match entry {
                Some((at, entry)) if entry.group.is_some() => return Some(at as usize),
                _ => _ = levels.pop(level),
            }
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

    fn take_plain(&mut self, at: usize) -> Option<G> {
        let group = self.entries.get_mut(at)?.group.take()?;
        self.gaps += 1;
        self.tidy();
        Some(group)
    }

    /// Keeps invariants 1 and 3 after an entry has gone.
    #[inline]
    fn tidy(&mut self) {
        if self.gaps > 0 {
            self.close_gaps();
        }
        if self.entries.is_empty() && (self.mixed || self.entries.capacity() > SLACK) {
            self.clear();
        }
    }

    #[inline(never)]
    fn close_gaps(&mut self) {
        while self.entries.front().is_some_and(|e| e.group.is_none()) {
            self.entries.pop_front();
            (self.first, self.gaps) = (self.first + 1, self.gaps - 1);
        }
        if self.gaps > self.plain() + SLACK {
            self.entries.retain(|entry| entry.group.is_some());
            self.gaps = 0;
            self.sort_levels();
        }
    }

    /// Nobody stands in the array: one level is enough, and little memory.
    #[cold]
    fn clear(&mut self) {
        self.mixed = false;
        self.levels = None;
        if self.entries.capacity() > SLACK {
            self.entries = VecDeque::new();
        }
    }

    /// Makes the FIFOs anew from the array, whose order is theirs.
    fn sort_levels(&mut self) {
        if !self.mixed {
            return;
        }
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
