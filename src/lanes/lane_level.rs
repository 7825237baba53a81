//! Names of lanes.

/// A lane's name, valid while the lane has a handle or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneKey(pub(super) u32);

impl LaneKey {
    /// Its index.
    #[inline]
    pub fn index(self) -> u32 {
        self.0
    }
}

/// The most lanes at once: a [`LaneLevel`] has three bytes for them.
pub(super) const MAX_LANES: u32 = 1 << 24;

/// A lane's name and a standing level, in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLevel(u32);

impl LaneLevel {
    /// This level in that lane.
    #[inline]
    pub fn new(lane: LaneKey, level: u8) -> Self {
        Self(lane.0 << 8 | u32::from(level))
    }

    /// The lane's name.
    #[inline]
    pub fn key(self) -> LaneKey {
        LaneKey(self.0 >> 8)
    }

    /// The lane's index.
    #[inline]
    pub fn index(self) -> u32 {
        self.key().0
    }

    /// The level.
    #[inline]
    pub fn level(self) -> u8 {
        self.0 as u8
    }
}
