//! How a group's position follows from its state.
//!
//! Protocol: take the group out of line, change it, and put it where it belongs
//! then. The lane is settled once for each event.

use crate::error::OutOfRange;
use crate::lanes::{LaneKey, Lanes};
use crate::limit::{Bypass, Limit};
use crate::ready::Position;

use super::Blocked;
use super::group::Group;

/// When a group became ready, after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// When it did before.
    Same,
    /// Now.
    New,
}

/// Who stands in line.
#[derive(Debug)]
pub(super) enum Member<T> {
    /// A group, by index.
    Group(u32),
    /// A message that is alone.
    Alone(T),
}

/// The lanes, with those in line.
#[derive(Debug)]
pub(super) struct Order<T> {
    pub(super) lanes: Lanes<Member<T>>,
    /// The last number given out: tickets, and times of bumps.
    clock: u64,
}

impl<T> Order<T> {
    pub(super) fn new(bypass: Bypass) -> Self {
        Self {
            lanes: Lanes::new(bypass),
            clock: 0,
        }
    }

    /// Every lane counts its units and tiers from the first message on.
    pub(super) fn add_lane(&mut self, weight: u32, cap: Limit) -> Result<LaneKey, OutOfRange> {
        let lane = self.lanes.add_lane(weight, cap)?;
        self.lanes.count_units(lane.index());
        self.lanes.use_tiers(lane.index());
        Ok(lane)
    }

    pub(super) fn mint(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Takes a group out of line for a change, if it is there.
    pub(super) fn leave_line(&mut self, g: &Group<T>) {
        if let Some(tier) = g.head.filter(|_| g.is_ready()) {
            let position = Position::new(g.level, g.ticket, g.bump);
            let old = self.lanes.remove(g.lane.index(), tier, position);
            debug_assert!(old.is_some(), "who is ready is in line");
        }
    }

    /// Puts a group that is in no line where it belongs, and settles its lane.
    #[inline]
    pub(super) fn join_and_settle(&mut self, index: u32, g: &mut Group<T>, age: Age) {
        self.join_line(index, g, age);
        self.lanes.settle(g.lane.index());
    }

    /// As [`join_and_settle`](Self::join_and_settle); the lane is to be settled.
    #[inline]
    pub(super) fn join_line(&mut self, index: u32, g: &mut Group<T>, age: Age) {
        let age = self.count_head(g, age);
        if age == Age::New {
            g.ticket = self.mint();
        }
        let Some(tier) = g.head.filter(|_| g.is_ready()) else {
            return;
        };
        let line = self.lanes.line(g.lane.index(), tier);
        if age == Age::New && g.bump.is_none() {
            line.push(g.ticket, g.level, Member::Group(index));
        } else {
            let position = Position::new(g.level, g.ticket, g.bump);
            line.insert(g.ticket, position, Member::Group(index));
        }
    }

    /// Counts the group in the tier of what waits first in it. If nothing did
    /// until now, it becomes ready now.
    #[inline]
    pub(super) fn count_head(&mut self, g: &mut Group<T>, age: Age) -> Age {
        let head = g.messages.head_tier();
        let counted = std::mem::replace(&mut g.head, head);
        if counted == head {
            return age;
        }
        self.lanes.change_head(g.lane.index(), counted, head);
        match counted {
            None => Age::New,
            Some(_) => age,
        }
    }

    /// Bumps what is in no line; to the level that it has it stays.
    pub(super) fn bump(&mut self, bump: &mut Option<(u8, u64)>, level: u8) {
        let when = self.mint();
        if bump.is_none_or(|(old, _)| old != level) {
            *bump = Some((level, when));
        }
    }

    /// Messages of this tier run no more. To be settled.
    #[inline]
    pub(super) fn finish(&mut self, lane: LaneKey, tier: u32, messages: u32) {
        _ = self.lanes.tiers(lane.index()).finish_all(tier, messages);
    }

    /// Units of the lane's cap come back. Settles the lane.
    #[inline]
    pub(super) fn units_back(&mut self, lane: LaneKey, units: u32) {
        self.lanes.return_units(lane.index(), units);
        self.lanes.settle(lane.index());
    }

    /// What keeps the group's first message waiting.
    pub(super) fn above(&self, g: &Group<T>) -> Blocked {
        match g.head {
            None => Blocked::Empty,
            Some(_) if g.limit == Limit::AtMost(0) => Blocked::Paused,
            Some(_) if !g.has_room() => Blocked::GroupLimit,
            Some(tier) => self.why_lane(g.lane, tier),
        }
    }

    /// What in its lane keeps work of this tier waiting.
    pub(super) fn why_lane(&self, lane: LaneKey, tier: u32) -> Blocked {
        let lane = self.lanes.lane(lane.index());
        match () {
            () if !lane.may_start(tier) => Blocked::Tier,
            () if !lane.has_room() => Blocked::Cap,
            () => Blocked::InLine,
        }
    }
}
