//! Messages for who does not care whether they are alone: where each waits, and what it
//! holds while it is in flight.
//!
//! One that is alone is as if in a serial group of its own with standing level, of which
//! nothing is kept but its place in line. Its owner keeps the lane until it is done.

use crate::lanes::LaneKey;
use crate::ready::{Age, STANDING_LEVEL};

use super::group::Place;
use super::member::Member;
use super::order::Order;
use super::{Backlog, Blocked, Claim, GroupKey};

/// Where a message waits, or waited: no other message ever waits there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// In a group, under this number.
    Group(GroupKey, u64),
    /// Alone, in this lane and tier.
    Alone(LaneKey, u32, Place),
}

/// What waits here.
pub trait Item {
    /// It waits there now.
    fn waits_at(&self, _spot: Spot) {}
}

// What needs no telling.
impl Item for () {}
impl Item for u32 {}
impl Item for u64 {}
impl Item for usize {}

/// What a message in flight holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// A unit of this lane's cap.
    pub lane: LaneKey,
    /// A unit of this group's limit, if it is not alone.
    pub group: Option<GroupKey>,
    /// A place in this tier.
    pub tier: u32,
}

impl<T> Claim<T> {
    /// Where it waited.
    pub fn spot(&self) -> Spot {
        match self.group {
            Some(group) => Spot::Group(group, self.seq),
            None => Spot::Alone(self.lane, self.tier, self.old),
        }
    }

    /// What it holds.
    #[inline]
    pub fn holds(&self) -> InFlight {
        InFlight {
            lane: self.lane,
            group: self.group,
            tier: self.tier,
        }
    }
}

impl<T: Item> Backlog<T> {
    /// Sends a message to a group, or alone: where it waits, and in which tier.
    #[inline]
    pub fn send_to(
        &mut self,
        lane: LaneKey,
        group: Option<GroupKey>,
        tier: Option<u32>,
        bump: Option<u8>,
        item: T,
    ) -> (Spot, u32) {
        match group {
            None => {
                let tier = tier.unwrap_or(0);
                let place = self.send_alone(lane, tier, bump, item);
                (Spot::Alone(lane, tier, place), tier)
            }
            Some(group) => {
                let (seq, tier) = self.send(group, tier, bump, item);
                (Spot::Group(group, seq), tier)
            }
        }
    }

    /// Takes a waiting message out without a turn, with what it would have held; `None` if it
    /// does not wait there.
    pub fn take_out(&mut self, spot: Spot) -> Option<(T, InFlight)> {
        let (item, lane, group, tier) = match spot {
            Spot::Group(group, seq) => {
                let lane = self.lane_of(group)?;
                let (item, tier) = self.take(group, seq)?;
                (item, lane, Some(group), tier)
            }
            Spot::Alone(lane, tier, place) => {
                let item = self.order.take_alone(lane, tier, place)?;
                self.order.lanes.change_head(lane.index(), Some(tier), None);
                self.order.lanes.update(lane.index());
                (item, lane, None, tier)
            }
        };
        Some((item, InFlight { lane, group, tier }))
    }

    /// Bumps what waits there, or its group: where it waits then. `None` if it does not.
    pub fn bump_at(&mut self, spot: Spot, level: u8) -> Option<Spot> {
        match spot {
            Spot::Group(group, seq) => {
                self.bump(group, level);
                (self.first_in(group)? <= seq).then_some(spot)
            }
            Spot::Alone(lane, tier, mut place) => {
                let item = self.order.take_alone(lane, tier, place)?;
                self.order.bump(&mut place, level);
                let spot = Spot::Alone(lane, tier, place);
                item.waits_at(spot);
                self.order.join_alone(lane, tier, place, Age::Same, item);
                self.order.lanes.update(lane.index());
                Some(spot)
            }
        }
    }

    /// A message that held this is done.
    #[inline]
    pub fn finish(&mut self, held: InFlight) {
        match held.group {
            Some(group) => self.complete(group, held.tier),
            None => self.complete_alone(held.lane, held.tier, 1),
        }
    }

    /// What keeps a message waiting; `None` if an earlier one of its group does.
    pub fn why_at(&self, spot: Spot) -> Option<Blocked> {
        match spot {
            Spot::Group(group, seq) if self.first_in(group) != Some(seq) => None,
            Spot::Group(group, _) => Some(self.why(group)),
            Spot::Alone(lane, tier, _) => Some(self.why_alone(lane, tier)),
        }
    }

    /// All that waits in a lane, each with its tier, in no order. O(its groups and what waits).
    pub fn waiting_in(&self, lane: LaneKey) -> impl Iterator<Item = (Spot, u32, &T)> {
        let grouped = self.groups_of(lane).flat_map(|(key, group)| {
            let spot = move |seq| Spot::Group(key, seq);
            let messages = group.messages.iter();
            messages.map(move |(seq, m)| (spot(seq), m.tier, &m.item))
        });
        let alone = self.lane(lane).members().flat_map(move |(tier, member)| {
            let spot = move |place| Spot::Alone(lane, tier, place);
            member
                .alone()
                .map(move |(place, item)| (spot(place), tier, item))
        });
        grouped.chain(alone)
    }
}

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
        self.order.lanes.update(lane.index());
        place
    }

    /// As [`complete`](Self::complete) of so many messages.
    #[inline]
    pub fn complete_alone(&mut self, lane: LaneKey, tier: u32, messages: u32) {
        self.order.finish(lane, tier, messages);
        self.order.lanes.update(lane.index());
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
        lanes.update(lane);
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
    /// It joins the line at its place. To be updated.
    #[inline]
    pub(super) fn join_alone(&mut self, lane: LaneKey, tier: u32, place: Place, age: Age, item: T) {
        let member = Member::Alone(place, item);
        self.join(lane, tier, &place, STANDING_LEVEL, age, member);
    }

    /// It leaves the line, if it is there. To be updated.
    pub(super) fn take_alone(&mut self, lane: LaneKey, tier: u32, place: Place) -> Option<T> {
        self.lanes.get(lane)?;
        let position = place.position(STANDING_LEVEL);
        match self.lanes.remove(lane.index(), tier, position) {
            Some(member) => Some(member.into_alone()?.1),
            None => self.take_of_run(lane, tier, position),
        }
    }
}
