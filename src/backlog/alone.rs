//! Messages that are alone: each as if in a serial group of its own with standing
//! level, of which nothing is kept but its place in line. Its owner keeps the lane until
//! the message is done.

use crate::lanes::LaneKey;
use crate::ready::{Age, STANDING_LEVEL};

use super::group::Place;
use super::member::Member;
use super::order::Order;
use super::{Backlog, Blocked, Claim, Item, Spot};

impl<T: Item> Backlog<T> {
    /// As [`send`](Self::send) of a message that is alone.
    #[inline]
    pub fn send_alone(&mut self, lane: LaneKey, tier: u32, bump: Option<u8>, item: T) -> Place {
        self.use_tiers(lane, tier);
        let mut place = Place::new(self.order.mint());
        if let Some(level) = bump {
            self.order.bump(&mut place, level);
        }
        item.waits_at(Spot::Alone(lane, tier, place));
        self.order.lanes.change_head(lane.index(), None, Some(tier));
        self.order.join_alone(lane, tier, place, Age::New, item);
        self.order.lanes.settle(lane.index());
        place
    }

    /// As [`complete`](Self::complete) of so many messages.
    #[inline]
    pub fn complete_alone(&mut self, lane: LaneKey, tier: u32, messages: u32) {
        self.order.finish(lane, tier, messages);
        self.order.lanes.settle(lane.index());
    }

    /// [`claim`](Self::claim) of one whose turn has begun.
    #[inline]
    pub(super) fn claim_alone(
        &mut self,
        alone: Member<T>,
        lane: u32,
        overtaken: Option<u32>,
    ) -> Option<Claim<T>> {
        let (old, item) = alone.into_alone()?;
        let lanes = &mut self.order.lanes;
        let tier = lanes.lane(lane).open_tier().unwrap_or(0);
        lanes.settle(lane);
        Some(Claim {
            lane: lanes.key(lane),
            group: None,
            seq: 0,
            tier,
            item,
            old,
            overtaken,
        })
    }

    pub(super) fn unclaim_alone(&mut self, claim: Claim<T>) {
        let Claim { lane, tier, .. } = claim;
        // It waits before it ceases to run, so that its tier stays outstanding.
        self.order.lanes.change_head(lane.index(), None, Some(tier));
        self.order
            .join_alone(lane, tier, claim.old, Age::Same, claim.item);
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
    pub(super) fn join_alone(&mut self, lane: LaneKey, tier: u32, place: Place, age: Age, item: T) {
        let member = Member::Alone(place, item);
        self.join(lane, tier, &place, STANDING_LEVEL, age, member);
    }

    /// It leaves the line, if it is there. To be settled.
    pub(super) fn take_alone(&mut self, lane: LaneKey, tier: u32, place: Place) -> Option<T> {
        self.lanes.get(lane)?;
        let position = place.position(STANDING_LEVEL);
        match self.lanes.remove(lane.index(), tier, position) {
            Some(member) => Some(member.into_alone()?.1),
            None => self.take_of_run(lane, tier, position),
        }
    }
}
