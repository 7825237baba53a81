//! Ready groups of several ranks.
//!
//! State: each rank that was ever in use has a row, with the groups that joined in its order. A
//! group that joined out of order, such as one that comes back with an old ticket, is *odd*: it is
//! in a tree.
//!
//! Invariants:
//! 1. `row_of` has the index of each rank's row, and `busy` the ranks whose rows have a group.
//! 2. `oldest` is the oldest group, unless that must be searched for.
//! 3. `ages`, once it exists, has every group that is bumped or odd, and maybe some groups that
//!    have left.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::entry::{Position, RANKS, is_bumped};
use super::row::Row;
use super::{Entry, ReadyItem, SLACK};

/// A set of ranks.
#[derive(Debug, Default)]
struct Ranks {
    words: [u64; RANKS / 64],
    /// A bit for each word that is not 0.
    used: u8,
    len: u16,
}

impl Ranks {
    /// Adds a rank that is not in the set.
    #[inline]
    fn add(&mut self, rank: usize) {
        self.words[rank / 64] |= 1 << (rank % 64);
        self.used |= 1 << (rank / 64);
        self.len += 1;
    }

    /// Removes a rank that is in the set.
    #[inline]
    fn remove(&mut self, rank: usize) {
        let word = &mut self.words[rank / 64];
        *word &= !(1 << (rank % 64));
        if *word == 0 {
            self.used &= !(1 << (rank / 64));
        }
        self.len -= 1;
    }

    #[inline]
    fn highest(&self) -> Option<usize> {
        let word = self.used.checked_ilog2()?;
        let rank = self.words[word as usize].checked_ilog2()?;
        Some((word * 64 + rank) as usize)
    }
}

const NO_ROW: u16 = u16::MAX;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Ranked<G> {
    pub(super) rows: Vec<Row<G>>,
    row_of: [u16; RANKS],
    busy: Ranks,
    pub(super) odd: BTreeMap<Position, (u64, G)>,
    /// The tickets of groups, and their positions.
    pub(super) ages: Option<BinaryHeap<Reverse<(u64, Position)>>>,
    oldest: Option<(u64, Position)>,
    pub(super) len: usize,
}

impl<G> Default for Ranked<G> {
    /// No groups.
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            row_of: [NO_ROW; RANKS],
            busy: Ranks::default(),
            odd: BTreeMap::new(),
            ages: None,
            oldest: None,
            len: 0,
        }
    }
}

impl<G: ReadyItem> Ranked<G> {
    /// The row of a rank, to add a group.
    #[inline(always)]
    fn row(&mut self, rank: u16) -> &mut Row<G> {
        let at = &mut self.row_of[usize::from(rank)];
        if *at == NO_ROW {
            *at = self.rows.len() as u16;
            self.rows.push(Row::new(rank));
        }
        let row = &mut self.rows[usize::from(*at)];
        if row.is_empty() {
            self.busy.add(usize::from(rank));
        }
        row
    }

    /// The row of a rank, if that ever had one.
    #[inline]
    fn find_row(&self, rank: u16) -> Option<&Row<G>> {
        self.rows.get(usize::from(self.row_of[usize::from(rank)]))
    }

    /// Takes over all groups of a row while there are none here. `row` gets an empty row.
    pub(super) fn take_over(&mut self, row: &mut Row<G>) {
        debug_assert!(self.len == 0 && !row.is_empty());
        self.len = row.count();
        self.oldest = row.first().map(|first| (first.number(), first));
        std::mem::swap(self.row(row.rank), row);
    }

    /// Adds a group that has the highest ticket and is not bumped.
    #[inline(always)]
    pub(super) fn push(&mut self, entry: Entry<G>) {
        self.len += 1;
        self.row(entry.level.into()).entries.push_back(entry);
    }

    /// Adds `more` groups to the last entry of this level.
    pub(super) fn add_behind(&mut self, level: u8, more: usize) {
        self.len += more;
        let row = self.row_of[usize::from(level)];
        self.rows[usize::from(row)].behind += more;
    }

    /// Takes one of several groups in one entry, but not the first.
    pub(super) fn take_covered<R>(
        &mut self,
        position: Position,
        take: impl FnOnce(&mut G) -> Option<R>,
    ) -> Option<R> {
        let row = self.row_of[usize::from(position.rank())];
        let row = self.rows.get_mut(usize::from(row))?;
        let taken = row.take_covered(position, take)?;
        self.len -= 1;
        Some(taken)
    }

    /// Adds a group.
    pub(super) fn insert(&mut self, ticket: u64, position: Position, group: G) {
        if self.oldest.is_some_and(|(oldest, _)| ticket < oldest) {
            self.oldest = Some((ticket, position));
        }
        self.len += 1;
        let (rank, number) = (position.rank(), position.number());
        let last = self.find_row(rank).and_then(|row| row.entries.back());
        let in_order = last.is_none_or(|last| last.ticket < number);
        match u32::try_from(number - ticket) {
            Ok(link) if in_order => {
                let entry = Entry::new(number, 0, group);
                self.row(rank).entries.push_back(Entry { link, ..entry });
                if !is_bumped(rank) {
                    return;
                }
            }
            _ => _ = self.odd.insert(position, (ticket, group)),
        }
        self.note_age(ticket, position);
    }

    /// Keeps invariant 3 after a group that is bumped or odd has joined.
    fn note_age(&mut self, ticket: u64, position: Position) {
        let Some(mut ages) = self.ages.take() else {
            return;
        };
        if ages.len() > 2 * self.len + SLACK {
            ages.retain(|Reverse((_, of))| self.contains(*of));
        }
        ages.push(Reverse((ticket, position)));
        self.ages = Some(ages);
    }

    /// Takes the first group by rank. Returns it, and whether it was the oldest.
    pub(super) fn pop(&mut self) -> Option<(G, bool)> {
        self.oldest()?;
        let (ticket, group) = match self.odd.is_empty() {
            true => self.pop_row(),
            false => self.pop_odd().or_else(|| self.pop_row()),
        }?;
        Some((group, self.gone(ticket)))
    }

    #[inline]
    fn pop_row(&mut self) -> Option<(u64, G)> {
        self.take_from_row(self.busy.highest()?, Row::pop)
    }

    /// Takes a group out of the row of a rank by `take`, if that rank ever had a row.
    #[inline(always)]
    fn take_from_row(
        &mut self,
        rank: usize,
        take: impl FnOnce(&mut Row<G>) -> Option<Entry<G>>,
    ) -> Option<(u64, G)> {
        let row = self.rows.get_mut(usize::from(self.row_of[rank]))?;
        let entry = take(row)?;
        let ticket = row.ticket(&entry);
        if row.is_empty() {
            self.busy.remove(rank);
        }
        Some((ticket, entry.group?))
    }

    /// Takes the first odd group, if no row has a group before it.
    #[inline(never)]
    fn pop_odd(&mut self) -> Option<(u64, G)> {
        let (&odd, _) = self.odd.first_key_value()?;
        let rank = self.busy.highest();
        let first = rank.and_then(|rank| self.find_row(rank as u16)?.first());
        match first.is_none_or(|first| odd < first) {
            true => self.odd.remove(&odd),
            false => None,
        }
    }

    /// Takes the group at this position.
    pub(super) fn take(&mut self, position: Position) -> Option<G> {
        let in_row = self.take_from_row(position.rank().into(), |row| row.take(position));
        let (ticket, group) = in_row.or_else(|| self.odd.remove(&position))?;
        self.gone(ticket);
        Some(group)
    }

    /// Moves all groups out if they need no ranks any more: those of the only row into `row`, which
    /// is empty. Returns whether there are none here now.
    #[inline]
    pub(super) fn leave(&mut self, row: &mut Row<G>) -> bool {
        if self.busy.len == 1 && self.odd.is_empty() {
            self.leave_row(row);
        }
        self.len == 0
    }

    fn leave_row(&mut self, row: &mut Row<G>) {
        let only = self.busy.highest().filter(|&rank| rank <= u8::MAX.into());
        let Some(rank) = only else {
            return;
        };
        std::mem::swap(&mut self.rows[usize::from(self.row_of[rank])], row);
        // It is empty now. Its rank is restored.
        self.rows[usize::from(self.row_of[rank])].rank = row.rank;
        self.busy.remove(rank);
        (self.len, self.oldest, self.ages) = (0, None, None);
    }

    /// The group with this ticket has left. Returns whether it was the oldest.
    #[inline]
    fn gone(&mut self, ticket: u64) -> bool {
        self.len -= 1;
        let oldest = self.oldest.is_some_and(|(oldest, _)| oldest == ticket);
        if oldest {
            self.oldest = None;
        }
        if self.len == 0 {
            // An emptied tree would keep its last node.
            (self.odd, self.ages) = (BTreeMap::new(), None);
        }
        oldest
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &G> {
        let odd = self.odd.values().map(|(_, group)| group);
        self.rows.iter().flat_map(Row::iter).chain(odd)
    }

    /// Whether a group is at this position.
    pub(super) fn contains(&self, position: Position) -> bool {
        let row = self.find_row(position.rank());
        row.is_some_and(|row| row.find(position).is_some()) || self.odd.contains_key(&position)
    }

    /// The ticket of the oldest group, and its position.
    #[inline]
    pub(super) fn oldest(&mut self) -> Option<(u64, Position)> {
        if self.oldest.is_none() && self.len > 0 {
            self.oldest = self.find_oldest();
        }
        self.oldest
    }

    /// Looks at the first group of each row. Lists all others only once.
    #[inline(never)]
    fn find_oldest(&mut self) -> Option<(u64, Position)> {
        let mut ages = self.ages.take().unwrap_or_else(|| self.list_ages());
        while ages.peek().is_some_and(|age| !self.contains(age.0.1)) {
            ages.pop();
        }
        let odd = ages.peek().map(|age| age.0);
        self.ages = Some(ages);
        let rows = self.rows.iter().filter(|row| !is_bumped(row.rank));
        let firsts = rows.filter_map(|row| Some((row.first()?.number(), row.first()?)));
        firsts.chain(odd).min()
    }

    fn list_ages(&self) -> BinaryHeap<Reverse<(u64, Position)>> {
        let odd = self.odd.iter().map(|(&odd, &(ticket, _))| (ticket, odd));
        let bumped = self.rows.iter().filter(|row| is_bumped(row.rank));
        let bumped = bumped.flat_map(|row| {
            let entries = row.entries.iter().filter(|entry| entry.group.is_some());
            entries.map(|e| (row.ticket(e), Position::of(row.rank, e.ticket)))
        });
        odd.chain(bumped).map(Reverse).collect()
    }
}
