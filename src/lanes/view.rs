//! What the owner may see of lanes.

use crate::limit::Limit;

use super::{LaneKey, Lanes};

/// A lane as its owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneView {
    /// Turns in a row.
    pub weight: u32,
    /// The most units in use.
    pub cap: Limit,
    /// Units in use, if they are counted.
    pub in_use: u32,
    /// The tier that is open, if tiers are in use.
    pub open_tier: Option<u32>,
    /// Whether tiers are in use.
    pub tiered: bool,
    /// Its handle is gone.
    pub ending: bool,
}

impl<G> Lanes<G> {
    /// What the owner may see of a lane.
    pub fn view(&self, lane: LaneKey) -> Option<LaneView> {
        let lane = self.lanes.get(lane.0 as usize)?.as_ref();
        lane.map(|lane| LaneView {
            weight: lane.weight,
            cap: lane.cap,
            in_use: lane.in_use,
            open_tier: lane.tiered.as_ref().and_then(|t| t.tiers.open()),
            tiered: lane.tiered.is_some(),
            ending: lane.ending,
        })
    }

    /// All lanes, by slot.
    pub fn keys(&self) -> impl Iterator<Item = LaneKey> {
        let lanes = (0..).zip(&self.lanes);
        lanes.filter_map(|(index, lane)| lane.as_ref().map(|_| LaneKey(index)))
    }
}
