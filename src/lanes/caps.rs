//! The caps of lanes: units in use, and how many may be; and what else their
//! owner may see.

use crate::error::OutOfRange;
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
    /// One more unit of the cap, if there is room. To be settled.
    pub fn take_unit(&mut self, lane: u32) -> bool {
        let lane = self.lane_mut(lane);
        let room = lane.has_room();
        if room && lane.counts {
            lane.in_use += 1;
        }
        room
    }

    /// Whether units are counted.
    pub fn counts_units(&self, lane: u32) -> bool {
        self.lane(lane).counts
    }

    /// Units are counted from now on; `false` if they were already.
    pub fn count_units(&mut self, lane: u32) -> bool {
        !std::mem::replace(&mut self.lane_mut(lane).counts, true)
    }

    /// So many units were in use before they were counted. To be settled.
    pub fn add_units(&mut self, lane: u32, units: u32) {
        self.lane_mut(lane).in_use += units;
    }

    /// A unit of the cap comes back. Settles the lane.
    #[inline]
    pub fn unit_back(&mut self, lane: u32) {
        self.units_back(lane, 1);
    }

    /// So many units come back. Settles the lane.
    pub fn units_back(&mut self, lane: u32, units: u8) {
        let l = self.lane_mut(lane);
        l.in_use = l.in_use.saturating_sub(units.into());
        self.settle(lane);
    }

    /// As [`unit_back`](Self::unit_back), in the middle of an event. To be
    /// settled.
    #[inline]
    pub fn return_unit(&mut self, lane: u32) {
        let lane = self.lane_mut(lane);
        lane.in_use = lane.in_use.saturating_sub(1);
    }

    /// Whether the cap is not exceeded.
    pub fn is_within_cap(&self, lane: u32) -> bool {
        match self.lane(lane).cap {
            Limit::AtMost(most) => self.lane(lane).in_use <= most,
            Limit::Unlimited => true,
        }
    }

    /// Whether the cap has room for one more.
    pub fn has_room(&self, lane: u32) -> bool {
        self.lane(lane).has_room()
    }

    /// Changes the cap. To be settled.
    pub fn set_cap(&mut self, lane: u32, cap: Limit) -> Result<(), OutOfRange> {
        let cap = cap.checked()?;
        self.lane_mut(lane).cap = cap;
        Ok(())
    }

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
