//! The groups of one caller and tier that stand in line: by rank, and by age.
//!
//! A group stands in both orders at once or in neither. The place where it
//! stands is kept by its owner; the reading calls take a predicate-like lookup
//! `place(group)`, which tells where that group stands in this line now.

use crate::rank::{Fifo, Rank, Slot};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// Where a group stands in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its slot in the order of rank.
    pub slot: Slot,
    /// Its number within the slot: the later of its bump and its becoming ready.
    pub ranked: u64,
    /// Its age: when it became ready.
    pub ready: u64,
}

/// Groups in line.
#[derive(Debug, Default)]
pub struct Line {
    rank: Rank,
    age: Fifo,
}

/// Who is served next, and whether it is the oldest in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The group.
    pub group: u32,
    /// Whether it is the oldest.
    pub oldest: bool,
}

impl Line {
    /// How many groups stand in line.
    #[inline]
    pub fn len(&self) -> usize {
        self.age.len()
    }

    /// Whether nobody stands in line.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.age.is_empty()
    }

    /// `group` joins at `at`.
    #[inline]
    pub fn insert(&mut self, at: Place, group: u32) {
        self.rank.insert(at.slot, at.ranked, group);
        self.age.insert(at.ready, group);
    }

    /// `group`, which stood at `from`, left; `place` already says so.
    pub fn leave(&mut self, group: u32, from: Place, place: impl Fn(u32) -> Option<Place>) {
        self.leave_rank(group, from, &place);
        let stands = |group, seq| aged(place(group), seq);
        self.age.leave(from.ready, group, stands);
    }

    /// `group` moved from one rank to another and kept its age; `place`
    /// already says so.
    pub fn rerank(
        &mut self,
        group: u32,
        from: Place,
        to: Place,
        place: impl Fn(u32) -> Option<Place>,
    ) {
        debug_assert_eq!(from.ready, to.ready);
        self.leave_rank(group, from, &place);
        self.rank.insert(to.slot, to.ranked, group);
    }

    /// The age of the oldest.
    pub fn oldest(&mut self, place: impl Fn(u32) -> Option<Place>) -> Option<u64> {
        let (seq, _) = self.age.front(|group, seq| aged(place(group), seq))?;
        Some(seq)
    }

    /// The oldest if `by_age`, else the first by rank.
    pub fn choose(&mut self, by_age: bool, place: impl Fn(u32) -> Option<Place>) -> Option<Choice> {
        // Who was looked up last, for the other order: often the same.
        let mut seen = (u32::MAX, None);
        let (_, oldest) = self.age.front(|group, seq| {
            seen = (group, place(group));
            aged(seen.1, seq)
        })?;
        let group = if by_age {
            oldest
        } else {
            self.rank.best(|slot, group, seq| {
                let known = seen.0 == group;
                ranked(if known { seen.1 } else { place(group) }, slot, seq)
            })?
        };
        let oldest = group == oldest;
        Some(Choice { group, oldest })
    }

    fn leave_rank(&mut self, group: u32, from: Place, place: impl Fn(u32) -> Option<Place>) {
        let slot = from.slot;
        let stands = |group, seq| ranked(place(group), slot, seq);
        self.rank.leave(slot, from.ranked, group, stands);
    }
}

fn aged(place: Option<Place>, seq: u64) -> bool {
    place.is_some_and(|at| at.ready == seq)
}

fn ranked(place: Option<Place>, slot: Slot, seq: u64) -> bool {
    place.is_some_and(|at| at.slot == slot && at.ranked == seq)
}
