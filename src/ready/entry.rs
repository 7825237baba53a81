//! A group in line, and how urgent it is.

use std::cmp::Reverse;

/// How urgent a group is: bumped groups before all others, then by level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u16);

impl Rank {
    /// How many there are.
    pub(super) const COUNT: usize = 512;

    /// A group that was not bumped.
    pub fn standing(level: u8) -> Self {
        Self(level.into())
    }

    /// A group bumped to this level.
    pub fn bumped(level: u8) -> Self {
        Self(0x100 | u16::from(level))
    }

    pub(super) fn is_bumped(self) -> bool {
        self.0 >= 0x100
    }

    pub(super) fn index(self) -> usize {
        self.0.into()
    }
}

/// Where a group stands in a line, in the order in which they are served: by
/// rank, and among equals the lower number. No two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    rank: Reverse<Rank>,
    number: u64,
}

impl Position {
    /// Of a group of this level that became ready under this ticket; and the
    /// level to which it is bumped, and when.
    #[inline]
    pub fn new(level: u8, ticket: u64, bump: Option<(u8, u64)>) -> Self {
        match bump {
            Some((level, when)) => Self::of(Rank::bumped(level), when.max(ticket)),
            None => Self::of(Rank::standing(level), ticket),
        }
    }

    /// Of this rank; among equals the lower number comes first.
    pub fn of(rank: Rank, number: u64) -> Self {
        let rank = Reverse(rank);
        Self { rank, number }
    }

    pub(super) fn rank(self) -> Rank {
        self.rank.0
    }

    pub(super) fn number(self) -> u64 {
        self.number
    }
}

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
    /// Takes the group out, for a line.
    pub(super) fn take(&mut self) -> Self {
        Self {
            group: self.group.take(),
            ..*self
        }
    }
}
