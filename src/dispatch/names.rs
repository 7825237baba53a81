//! What the core and its owner say to each other.

use crate::slab::Key;

/// A lane's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneKey(pub(super) Key);

/// A group's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKey(pub(super) Key);

impl GroupKey {
    /// A small number that no other group has at the same time.
    pub fn index(self) -> u32 {
        self.0.index()
    }
}

/// A turn that began, with its first unit taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Whose turn it is.
    pub group: GroupKey,
    /// The group's lane.
    pub lane: LaneKey,
    /// The tier of the message that the unit is for.
    pub tier: u32,
    /// Where the group stood.
    pub stood: Stood,
}

/// What a change was about, for what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The group's lane.
    pub lane: LaneKey,
    /// Whether what waits first is of another tier than before.
    pub changed: bool,
    /// Whether the group is poisoned.
    pub poisoned: bool,
}

/// Where a group stood before its turn began, so that it can go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stood {
    pub(super) ready: u64,
    pub(super) bump: Option<(u8, u64)>,
    /// If it was its lane's oldest, how often it had been overtaken.
    pub(super) overtaken: Option<u32>,
}

/// Why a group's work is not being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocked {
    /// Nothing waits in it.
    Empty,
    /// A turn of it is live.
    Held,
    /// It is set aside until somebody resumes it.
    Poisoned,
    /// It is set aside until its next attempt is due.
    BackingOff,
    /// Its limit is 0.
    Paused,
    /// As many as its limit allows are in flight.
    GroupLimit,
    /// Its tier is not the one that is open, or the open one drains because a
    /// lower one has work.
    Tier,
    /// As many as its caller's cap allows are in flight.
    Cap,
    /// Nothing: it stands in line for a reader.
    InLine,
}
