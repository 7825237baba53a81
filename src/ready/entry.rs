//! A group in line, and how urgent it is.

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

/// A group on its way to a line, or in a row of one.
#[derive(Debug)]
pub struct Entry<G> {
    /// When it became ready.
    pub ticket: u64,
    /// `None`: a gap.
    pub group: Option<G>,
    /// On its way: its lane.
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
