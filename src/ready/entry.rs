//! A ready group, and how urgent it is.

use std::cmp::Reverse;

/// How many ranks there are: one for bumps to each level, and one for each standing level.
pub(super) const RANKS: usize = 512;
/// The lowest rank of bumped groups.
const BUMPED: u16 = 256;

/// The position of a group in a ready queue, in the order of service: bumped groups before all
/// others, then the higher level, and among equals the lower number. No two groups have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    rank: Reverse<u16>,
    number: u64,
}

impl Position {
    /// The position of a group of this level with this ticket; `bump` is the level to which it is
    /// bumped, and when.
    #[inline]
    pub fn new(level: u8, ticket: u64, bump: Option<(u8, u64)>) -> Self {
        match bump {
            Some((level, when)) => Self::of(BUMPED | u16::from(level), when.max(ticket)),
            None => Self::of(level.into(), ticket),
        }
    }

    /// The position with this rank; among equal ranks the lower number comes first.
    #[inline]
    pub(super) fn of(rank: u16, number: u64) -> Self {
        let rank = Reverse(rank);
        Self { rank, number }
    }

    pub(super) fn rank(self) -> u16 {
        self.rank.0
    }

    /// The number in its row, by which it is found.
    #[inline]
    pub fn number(self) -> u64 {
        self.number
    }
}

/// When a group became ready, compared with before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// At the same time as before.
    Same,
    /// Now.
    New,
}

/// Whether a group of this rank is bumped.
pub(super) fn is_bumped(rank: u16) -> bool {
    rank >= BUMPED
}

/// An item of a ready queue: a group, or several in one entry. Several have the standing level, and
/// tickets that ascend.
pub trait ReadyItem: Sized {
    /// Called when its turn comes soon.
    #[inline]
    fn hint(&self) {}

    /// Takes the first of several groups, but not the last one. Returns it, and the ticket of the
    /// next.
    #[inline]
    fn split_first(&mut self) -> Option<(Self, u64)> {
        None
    }
}

/// Names of groups in models and benchmarks.
macro_rules! names {
    ($($name:ty),*) => { $(impl ReadyItem for $name {})* };
}

names!((), char, u8, i32, u32, u64, usize);

/// A group on its way to a ready queue, or in a row of one.
#[derive(Debug)]
pub struct Entry<G> {
    /// When the group became ready; in the row of a bumped rank its number there.
    pub ticket: u64,
    /// `None`: a gap.
    pub group: Option<G>,
    /// On its way: the group's lane. In the row of a bumped rank: how much less than its number the
    /// ticket is.
    pub link: u32,
    /// The group's standing level.
    pub level: u8,
    /// On its way: how many units of the lane's cap came back before it.
    pub units: u8,
}

impl<G> Entry<G> {
    /// An entry in a row.
    #[inline]
    pub(super) fn new(ticket: u64, level: u8, group: G) -> Self {
        Self {
            ticket,
            group: Some(group),
            link: 0,
            level,
            units: 0,
        }
    }

    /// Takes the group out as a new entry; a gap stays.
    pub(super) fn take(&mut self) -> Self {
        Self {
            group: self.group.take(),
            ..*self
        }
    }
}
