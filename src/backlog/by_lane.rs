//! The groups of each lane, in a list that is linked through their slots, so that a question about
//! one lane looks at no other.
//!
//! Invariant: while a group exists, it is in the list of its lane and in no other.
//!
//! Cost: O(1) to link and to unlink.

use crate::lanes::LaneKey;

use super::group::Group;
use super::{Backlog, GroupKey};

impl<T> Backlog<T> {
    /// Adds a new group in front.
    #[inline]
    pub(super) fn link(&mut self, lane: LaneKey, index: u32) {
        let first = &mut self.order.lanes.lane_mut(lane.index()).first_group;
        let next = std::mem::replace(first, index);
        if let Some(g) = self.groups.by_index_mut(next) {
            g.prev = index;
        }
        if let Some(g) = self.groups.by_index_mut(index) {
            g.next = next;
        }
    }

    /// Removes a group that is gone; its lane still exists.
    #[inline]
    pub(super) fn unlink(&mut self, gone: &Group<T>) {
        match self.groups.by_index_mut(gone.prev) {
            Some(g) => g.next = gone.next,
            None => self.order.lanes.lane_mut(gone.lane.index()).first_group = gone.next,
        }
        if let Some(g) = self.groups.by_index_mut(gone.next) {
            g.prev = gone.prev;
        }
    }

    /// The paused groups of a lane.
    pub(crate) fn paused_in(&self, lane: LaneKey) -> Vec<GroupKey> {
        let paused = self.groups_of(lane).filter(|(_, g)| g.is_paused());
        paused.map(|(key, _)| key).collect()
    }

    /// How many pins the group has, if it is paused.
    pub(crate) fn pins_of_paused(&self, group: GroupKey) -> Option<u32> {
        let g = self.groups.get(group.0)?;
        g.is_paused().then_some(g.pins)
    }

    /// The groups of a lane, the newest first.
    pub(super) fn groups_of(&self, lane: LaneKey) -> impl Iterator<Item = (GroupKey, &Group<T>)> {
        let mut next = self.order.lanes.lane(lane.index()).first_group;
        std::iter::from_fn(move || {
            let key = GroupKey(self.groups.key_at(next)?);
            let g = self.groups.by_index(next)?;
            next = g.next;
            Some((key, g))
        })
    }
}
