//! What lanes and groups look like from outside, for pictures of a whole queue.

use crate::limit::Limit;

use super::{Blocked, Dispatch, GroupKey, LaneKey};

/// A lane at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanePicture {
    /// Its name.
    pub lane: LaneKey,
    /// Turns in a row.
    pub weight: u32,
    /// The most units in flight.
    pub cap: Limit,
    /// Units in flight.
    pub in_flight: u32,
    /// The tier that is open.
    pub open_tier: Option<u32>,
    /// Its owner is gone: it goes with its last group.
    pub closing: bool,
}

/// A group at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPicture {
    /// Its name.
    pub group: GroupKey,
    /// Its lane.
    pub lane: LaneKey,
    /// The most units in flight.
    pub limit: Limit,
    /// Its standing level.
    pub level: u8,
    /// The level it is bumped to.
    pub bump: Option<u8>,
    /// Units in flight.
    pub in_flight: u32,
    /// What keeps its first message waiting.
    pub why: Blocked,
}

impl<G> Dispatch<G> {
    /// All lanes, by slot. O(lanes).
    pub fn lane_pictures(&self) -> impl Iterator<Item = LanePicture> {
        self.lanes.iter().map(|(key, lane)| LanePicture {
            lane: LaneKey(key),
            weight: lane.weight,
            cap: lane.cap,
            in_flight: lane.in_flight,
            open_tier: lane.tiers.open(),
            closing: lane.closing,
        })
    }

    /// All groups, by slot, with their owner's part. O(groups).
    pub fn group_pictures(&self) -> impl Iterator<Item = (GroupPicture, &G)> {
        self.groups.iter().map(|(key, g)| {
            let picture = GroupPicture {
                group: GroupKey(key),
                lane: g.lane,
                limit: g.limit,
                level: g.level,
                bump: g.bump.map(|(level, _)| level),
                in_flight: g.in_flight,
                why: self.why(GroupKey(key)),
            };
            (picture, &g.data)
        })
    }
}
