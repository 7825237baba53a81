//! Lanes and their groups come and go.

use std::collections::BTreeSet;

use super::lane_level::MAX_LANES;
use super::{Lane, LaneKey, Lanes};
use crate::error::OutOfRange;
use crate::limit::Limit;
use crate::ready::ReadyItem;
use crate::ring::MAX_WEIGHT;
use crate::slab::shrink;

impl<G: ReadyItem> Lanes<G> {
    /// Adds a lane that takes up to `weight` turns in a row, with at most `cap` units in use.
    pub fn add_lane(&mut self, weight: u32, cap: Limit) -> Result<LaneKey, OutOfRange> {
        OutOfRange::check("weight", weight, 1, MAX_WEIGHT)?;
        let lane = Some(Box::new(Lane::new(weight, cap.checked("limit")?)));
        let index = self.free.pop_first().unwrap_or(self.lanes.len() as u32);
        OutOfRange::check("lanes", index + 1, 1, MAX_LANES)?;
        match self.lanes.get_mut(index as usize) {
            Some(slot) => *slot = lane,
            None => self.lanes.push(lane),
        }
        Ok(LaneKey(index))
    }

    /// The handle is gone. The lane goes with its last group, or now: returns whether it went.
    pub fn end_lane(&mut self, lane: LaneKey) -> bool {
        self.lane_mut(lane.0).ending = true;
        self.remove_group(lane)
    }

    /// Counts another group of a lane.
    pub fn add_group(&mut self, lane: LaneKey) {
        self.lane_mut(lane.0).pins += 1;
    }

    /// A group that is not ready is gone. The lane goes with its last pin: returns whether it went.
    pub fn remove_group(&mut self, lane: LaneKey) -> bool {
        let l = self.lane_mut(lane.0);
        l.pins -= 1;
        let gone = l.pins == 0;
        if gone {
            debug_assert!(!l.link.is_member());
            self.lanes[lane.0 as usize] = None;
            self.free.insert(lane.0);
            self.forget_last();
        }
        gone
    }

    /// Forgets the places behind the last lane.
    fn forget_last(&mut self) {
        while let Some(None) = self.lanes.last() {
            self.lanes.pop();
            self.free.pop_last();
        }
        if self.free.is_empty() {
            // Else it would keep its last node.
            self.free = BTreeSet::new();
        }
        shrink(&mut self.lanes, 0);
    }

    /// The index behind the last lane's.
    #[cfg(any(test, feature = "scheduler"))]
    pub(crate) fn places(&self) -> usize {
        self.lanes.len()
    }

    /// How many lanes there are.
    pub(crate) fn len(&self) -> usize {
        self.lanes.len() - self.free.len()
    }
}
