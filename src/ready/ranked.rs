//! Ready groups of several ranks.
//!
//! State: each rank that was ever in use has a row, with the groups that joined in its order. A
//! group that joined out of order, such as one that comes back with an old ticket, is *odd*: it is
//! in a tree.
//!
//! Invariants:
//! 1. `row_of` has the index of each rank's row, and `busy` the ranks whose rows have a group.
//! 2. `top` is the row of the highest of these ranks, or none: always none if a group is odd, or if
//!    the row has a gap or an entry of several groups.
//! 3. `oldest` is the oldest group, unless that must be searched for.
//! 4. `ages`, once it exists, has every group that is bumped or odd, and maybe some groups that
//!    have left.
//! 5. `room` is the capacity of all rows without a group: at most the slack of one row.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::entry::{Position, RANKS, is_bumped};
use super::ranks::Ranks;
use super::row::Row;
use super::{Entry, ReadyItem, SLACK};

pub(super) const NO_ROW: u16 = u16::MAX;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Ranked<G> {
    pub(super) rows: Vec<Row<G>>,
    row_of: [u16; RANKS],
    busy: Ranks,
    pub(super) top: u16,
    pub(super) odd: BTreeMap<Position, (u64, G)>,
    /// The tickets of groups, and their positions.
    pub(super) ages: Option<BinaryHeap<Reverse<(u64, Position)>>>,
    /// How many `ages` may become before those who have left are forgotten.
    pub(super) most_ages: usize,
    oldest: Option<(u64, Position)>,
    pub(super) room: usize,
}

impl<G> Default for Ranked<G> {
    /// No groups.
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            row_of: [NO_ROW; RANKS],
            busy: Ranks::default(),
            top: NO_ROW,
            odd: BTreeMap::new(),
            ages: None,
            most_ages: SLACK,
            oldest: None,
            room: 0,
        }
    }
}

impl<G: ReadyItem> Ranked<G> {
    /// The row of a rank, to add a group.
    #[inline(always)]
    fn row(&mut self, rank: u16) -> &mut Row<G> {
        let at = self.index(rank);
        if self.rows.get(at).is_none_or(Row::is_empty) {
            return self.start_row(rank);
        }
        &mut self.rows[at]
    }

    /// The row of a rank that has no group, to add one.
    #[inline(never)]
    fn start_row(&mut self, rank: u16) -> &mut Row<G> {
        if self.find_row(rank).is_none() {
            self.row_of[usize::from(rank)] = self.rows.len() as u16;
            self.rows.push(Row::new(rank));
        }
        let at = self.index(rank);
        self.busy.add(rank);
        self.room -= self.rows[at].entries.capacity();
        // As `find_top` would: an empty row is plain, and the present top stays if it is higher.
        if self.busy.highest() == Some(rank) && self.odd.is_empty() {
            self.top = at as u16;
        }
        &mut self.rows[at]
    }

    /// The row of a rank has no group any more. Frees its memory if all such rows have too much.
    #[inline(never)]
    fn end_row(&mut self, rank: u16) {
        self.busy.remove(rank);
        let at = self.index(rank);
        if self.room + self.rows[at].entries.capacity() > Row::<G>::SLACK {
            self.rows[at] = Row::new(rank);
        }
        self.room += self.rows[at].entries.capacity();
    }

    /// Restores invariant 2.
    fn find_top(&mut self) {
        let top = self.busy.highest().filter(|_| self.odd.is_empty());
        let top = top.filter(|&rank| self.find_row(rank).is_some_and(Row::is_plain));
        self.top = top.map_or(NO_ROW, |rank| self.row_of[usize::from(rank)]);
    }

    /// The index of a rank's row; past the end if there is none.
    #[inline]
    fn index(&self, rank: u16) -> usize {
        self.row_of[usize::from(rank)].into()
    }

    /// The row of a rank, if that ever had one.
    #[inline]
    fn find_row(&self, rank: u16) -> Option<&Row<G>> {
        self.rows.get(self.index(rank))
    }

    /// Takes over all groups of a row while there are none here. `row` gets an empty row.
    pub(super) fn take_over(&mut self, row: &mut Row<G>) {
        debug_assert!(self.is_empty() && !row.is_empty());
        self.oldest = row.first().map(|first| (first.number(), first));
        std::mem::swap(self.start_row(row.rank), row);
        self.find_top();
    }

    /// Adds a group that has the highest ticket and is not bumped.
    #[inline(always)]
    pub(super) fn push(&mut self, entry: Entry<G>) {
        let rank = entry.level.into();
        let top = self.rows.get_mut(usize::from(self.top));
        match top.filter(|top| top.rank == rank) {
            Some(top) => top.entries.push_back(entry),
            None => self.row(rank).entries.push_back(entry),
        }
    }

    /// Adds `more` groups to the last entry of this level.
    pub(super) fn add_behind(&mut self, level: u8, more: usize) {
        let row = self.index(level.into());
        self.rows[row].behind += more;
        self.find_top();
    }

    /// Takes one of several groups in one entry, but not the first.
    pub(super) fn take_covered<R>(
        &mut self,
        position: Position,
        take: impl FnOnce(&mut G) -> Option<R>,
    ) -> Option<R> {
        let row = self.index(position.rank());
        let row = self.rows.get_mut(row)?;
        row.take_covered(position, take)
    }

    /// Adds a group.
    pub(super) fn insert(&mut self, ticket: u64, position: Position, group: G) {
        if self.oldest.is_some_and(|(oldest, _)| ticket < oldest) {
            self.oldest = Some((ticket, position));
        }
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
            _ => {
                self.odd.insert(position, (ticket, group));
                self.top = NO_ROW;
            }
        }
        self.note_age(ticket, position);
    }

    /// Keeps invariant 4 after a group that is bumped or odd has joined.
    fn note_age(&mut self, ticket: u64, position: Position) {
        let Some(mut ages) = self.ages.take() else {
            return;
        };
        if ages.len() >= self.most_ages {
            ages.retain(|Reverse((_, of))| self.contains(*of));
            self.most_ages = 2 * ages.len() + SLACK;
        }
        ages.push(Reverse((ticket, position)));
        self.ages = Some(ages);
    }

    /// Takes the first group by rank, if it is in the `top` row with others and is not the oldest.
    #[inline(always)]
    pub(super) fn pop_fast(&mut self) -> Option<G> {
        let top = self.rows.get_mut(usize::from(self.top))?;
        let (_, oldest) = self.oldest?;
        if top.entries.len() < 2 || top.entries.front()?.ticket == oldest.number() {
            return None;
        }
        top.entries.pop_front()?.group
    }

    /// Takes the first group by rank. Returns it, and whether it was the oldest.
    pub(super) fn pop(&mut self) -> Option<(G, bool)> {
        self.oldest()?;
        let (position, group) = match self.odd.is_empty() {
            true => self.pop_row(),
            false => self.pop_odd().or_else(|| self.pop_row()),
        }?;
        Some((group, self.gone(position)))
    }

    #[inline]
    fn pop_row(&mut self) -> Option<(Position, G)> {
        self.take_from_row(self.busy.highest()?, Row::pop)
    }

    /// Takes a group out of the row of a rank by `take`, if that rank ever had a row.
    #[inline(always)]
    fn take_from_row(
        &mut self,
        rank: u16,
        take: impl FnOnce(&mut Row<G>) -> Option<Entry<G>>,
    ) -> Option<(Position, G)> {
        let row = self.index(rank);
        let row = self.rows.get_mut(row)?;
        let entry = take(row)?;
        let (is_empty, is_plain) = (row.is_empty(), row.is_plain());
        if is_empty {
            self.end_row(rank);
        }
        if is_empty || !is_plain || self.top == NO_ROW {
            self.find_top();
        }
        Some((Position::of(rank, entry.ticket), entry.group?))
    }

    /// Takes the first odd group, if no row has a group before it.
    #[inline(never)]
    fn pop_odd(&mut self) -> Option<(Position, G)> {
        let (&odd, _) = self.odd.first_key_value()?;
        let rank = self.busy.highest();
        let first = rank.and_then(|rank| self.find_row(rank)?.first());
        match first.is_none_or(|first| odd < first) {
            true => self.take_odd(odd),
            false => None,
        }
    }

    #[inline(never)]
    fn take_odd(&mut self, position: Position) -> Option<(Position, G)> {
        let (_, group) = self.odd.remove(&position)?;
        if self.odd.is_empty() {
            // Else it would keep its last node.
            self.odd = BTreeMap::new();
            self.find_top();
        }
        Some((position, group))
    }

    /// Takes the group at this position.
    pub(super) fn take(&mut self, position: Position) -> Option<G> {
        let in_row = self.take_from_row(position.rank(), |row| row.take(position));
        let (_, group) = in_row.or_else(|| self.take_odd(position))?;
        self.gone(position);
        Some(group)
    }

    /// Moves all groups out if they need no ranks any more: those of the only row into `row`, which
    /// is empty. Returns whether there are none here now.
    #[inline]
    pub(super) fn leave(&mut self, row: &mut Row<G>) -> bool {
        if self.busy.len <= 1 && self.odd.is_empty() {
            self.leave_row(row);
        }
        self.is_empty()
    }

    fn leave_row(&mut self, row: &mut Row<G>) {
        match self.busy.highest() {
            Some(bumped) if is_bumped(bumped) => return,
            Some(rank) => {
                let at = self.index(rank);
                std::mem::swap(&mut self.rows[at], row);
                // It is empty now. Its rank is restored.
                self.rows[at].rank = rank;
                self.end_row(rank);
            }
            None => {}
        }
        (self.ages, self.most_ages) = (None, SLACK);
        (self.oldest, self.top) = (None, NO_ROW);
    }

    /// The group at this position has left. Returns whether it was the oldest.
    #[inline]
    fn gone(&mut self, position: Position) -> bool {
        let oldest = self.oldest.is_some_and(|(_, oldest)| oldest == position);
        if oldest {
            self.oldest = None;
        }
        oldest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.busy.len == 0 && self.odd.is_empty()
    }

    /// How many groups are here. Counts no further than `most`.
    pub(super) fn count(&self, most: usize) -> usize {
        let mut sum = self.odd.len();
        self.busy.each(|rank| {
            sum += self.find_row(rank).map_or(0, Row::count);
            sum < most
        });
        sum.min(most)
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
        if self.oldest.is_none() && !self.is_empty() {
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
        let mut oldest = ages.peek().map(|age| age.0);
        let mut ticket = oldest.map_or(u64::MAX, |(ticket, _)| ticket);
        self.ages = Some(ages);
        self.busy.each(|rank| {
            let row = self.find_row(rank);
            // A bumped group's number is at least its ticket, which is in `ages`.
            if let Some(first) = row.and_then(|row| row.entries.front())
                && first.ticket < ticket
            {
                ticket = first.ticket;
                oldest = Some((ticket, Position::of(rank, ticket)));
            }
            true
        });
        oldest
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
