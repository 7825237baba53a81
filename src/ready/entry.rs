//! A group in line, and how urgent it is.

use std::cmp::Reverse;

/// How many ranks there are: bumped to each level, and standing at each.
pub(super) const RANKS: usize = 512;
/// The lowest of those that are bumped.
const BUMPED: u16 = 256;

/// Where a group stands in a line, in the order in which they are served: bumped
/// groups before all others, then by level, and among equals the lower number.
/// No two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    rank: Reverse<u16>,
    number: u64,
}

impl Position {
    /// Of a group of this level that became ready under this ticket; and the
    /// level to which it is bumped, and when.
    #[inline]
    pub fn new(level: u8, ticket: u64, bump: Option<(u8, u64)>) -> Self {
        match bump {
            Some((level, when)) => Self::of(BUMPED | u16::from(level), when.max(ticket)),
            None => Self::of(level.into(), ticket),
        }
    }

    /// Of this rank; among equals the lower number comes first.
    #[inline]
    pub(super) fn of(rank: u16, number: u64) -> Self {
        let rank = Reverse(rank);
        Self { rank, number }
    }

    pub(super) fn rank(self) -> u16 {
        self.rank.0
    }

    /// The place in its row, by which it is found.
    #[inline]
    pub fn number(self) -> u64 {
        self.number
    }
}

/// When a group became ready, after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// When it did before.
    Same,
    /// Now.
    New,
}

/// Whether who has this rank is bumped.
pub(super) fn is_bumped(rank: u16) -> bool {
    rank >= BUMPED
}

/// Who stands in a line: a group, or several as one, of standing level and with tickets
/// that ascend.
pub trait ReadyItem: Sized {
    /// Its turn comes soon.
    #[inline]
    fn hint(&self) {}

    /// Takes the first of several, which is not the last of them; and the ticket of the
    /// next.
    #[inline]
    fn split_first(&mut self) -> Option<(Self, u64)> {
        None
    }
}

/// Names of groups, as models and benches have them.
macro_rules! names {
    ($($name:ty),*) => { $(impl ReadyItem for $name {})* };
}

names!((), char, u8, i32, u32, u64, usize);

/// A group on its way to a line, or in the array of one.
#[derive(Debug)]
pub struct Entry<G> {
    /// When it became ready; in the row of a bumped rank its number there.
    pub ticket: u64,
    /// `None`: a gap.
    pub group: Option<G>,
    /// On its way: its lane. In the row of a bumped rank: how much less than its
    /// number its ticket is.
    pub link: u32,
    /// Its standing level.
    pub level: u8,
    /// On its way: so many units of the lane's cap came back before it.
    pub units: u8,
}

impl<G> Entry<G> {
    /// In the array of a line.
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

    /// Takes the group out, for a line.
    pub(super) fn take(&mut self) -> Self {
        Self {
            group: self.group.take(),
            ..*self
        }
    }
}
