//! Messages that are alone: each as if in a serial group of its own with standing
//! level, of which nothing is kept but its place in line. Its owner keeps that, and
//! the lane until the message is done.

use crate::lanes::LaneKey;
use crate::ready::STANDING_LEVEL;

use super::group::Place;
use super::order::{Age, Member, Order};
use super::{Backlog, Blocked, Claim};

impl<T> Backlog<T> {
    /// As [`send`](Self::send) of a message that is alone.
    #[inline]
    pub fn send_alone(&mut self, lane: LaneKey, tier: u32, bump: Option<u8>, item: T) -> Place {
        self.use_tiers(lane, tier);
        let ticket = self.order.mint();
        let mut place = Place { ticket, bump: None };
        if let Some(level) = bump {
            self.order.bump(&mut place, level);
        }
        self.order.lanes.change_head(lane.index(), None, Some(tier));
        self.order.join_alone(lane, tier, &place, Age::New, item);
        self.order.lanes.settle(lane.index());
        place
    }

    /// As [`remove`](Self::remove): it waits no more.
    pub fn remove_alone(&mut self, lane: LaneKey, tier: u32, place: Place) {
        _ = self.order.take_alone(lane, tier, place);
        self.order.lanes.change_head(lane.index(), Some(tier), None);
        self.order.lanes.settle(lane.index());
    }

    /// As [`bump`](Self::bump), while it waits.
    pub fn bump_alone(&mut self, lane: LaneKey, tier: u32, place: &mut Place, level: u8) {
        let item = self.order.take_alone(lane, tier, *place);
        self.order.bump(place, level);
        self.order.join_alone(lane, tier, place, Age::Same, item);
        self.order.lanes.settle(lane.index());
    }

    /// As [`complete`](Self::complete) of so many messages.
    #[inline]
    pub fn complete_alone(&mut self, lane: LaneKey, tier: u32, messages: u32) {
        self.order.finish(lane, tier, messages);
        self.order.lanes.settle(lane.index());
    }

    /// As [`unclaim`](Self::unclaim).
    pub fn unclaim_alone(&mut self, lane: LaneKey, place: Place, claim: Claim<T>) {
        let (tier, item) = (claim.tier, claim.item);
        // It waits before it ceases to run, so that its tier stays outstanding.
        self.order.lanes.change_head(lane.index(), None, Some(tier));
        self.order.join_alone(lane, tier, &place, Age::Same, item);
        self.complete_alone(lane, tier, 1);
        self.order.lanes.unclaim(lane.index(), claim.overtaken);
    }

    /// What keeps it waiting.
    pub fn why_alone(&self, lane: LaneKey, tier: u32) -> Blocked {
        let lane = self.lane(lane);
        match () {
            () if !lane.may_start(tier) => Blocked::Tier,
            () if !lane.has_room() => Blocked::Cap,
            () => Blocked::InLine,
        }
    }
}

impl<T> Order<T> {
    /// It joins the line at its place. To be settled.
    #[inline]
    fn join_alone(&mut self, lane: LaneKey, tier: u32, place: &Place, age: Age, item: T) {
        let member = Member::Alone(item);
        self.join(lane, tier, place, STANDING_LEVEL, age, member);
    }

    /// It leaves the line. To be settled.
    fn take_alone(&mut self, lane: LaneKey, tier: u32, place: Place) -> T {
        let position = place.position(STANDING_LEVEL);
        match self.lanes.remove(lane.index(), tier, position) {
            Some(Member::Alone(item)) => item,
            _ => unreachable!("it waits in line"),
        }
    }
}
