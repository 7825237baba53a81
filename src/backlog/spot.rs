//! Messages in a group and messages that are alone, by one interface: where each waits, and which
//! units it holds in flight.
//!
//! A message that is alone acts like one in a serial group of its own with the standing level; of
//! that group only the place in the ready queue exists. The owner keeps the lane until the message
//! is done.

use crate::lanes::LaneKey;
use crate::limit::DEFAULT_LEVEL;
use crate::ready::Age;

use super::group::Place;
use super::member::Member;
use super::messages::Message;
use super::order::Order;
use super::{Backlog, Blocked, Claim, GroupKey};

/// Where a message waits or waited. No other message ever waits there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// In a group, under this number.
    Group(GroupKey, u64),
    /// Alone, in this lane and tier.
    Alone(LaneKey, u32, Place),
}

/// A message.
pub trait Item {
    /// Is told where it waits now.
    fn waits_at(&self, _spot: Spot) {}

    /// Whether who claims it of a run must look at it.
    fn is_marked(&self) -> bool {
        false
    }
}

// A number need not know.
impl Item for u32 {}

/// The units that a message in flight holds.
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
        let InFlight { lane, group, tier } = self.holds;
        match group {
            Some(group) => Spot::Group(group, self.seq),
            None => Spot::Alone(lane, tier, self.old),
        }
    }
}

impl<T: Item> Backlog<T> {
    /// Sends a message, to a group or alone. Returns where it waits, and its tier.
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

    /// Takes a waiting message out, with the units that it would have held; `None` if it does not
    /// wait there.
    pub fn take_out(&mut self, spot: Spot) -> Option<(T, InFlight)> {
        let (item, lane, group, tier) = match spot {
            Spot::Group(group, seq) => {
                let g = self.groups.get_mut(group.0)?;
                let (Message { item, tier }, lane) = (g.messages.take(seq)?, g.lane);
                if g.head != g.messages.head_tier() {
                    self.order.dequeue(g);
                    self.order.join_and_update(group.0.index(), g, Age::Same);
                }
                self.reap(group);
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

    /// Bumps a waiting message, or its group. Returns where it waits then; `None` if it does not
    /// wait there.
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

    /// A message that held these units is done.
    #[inline]
    pub fn finish(&mut self, InFlight { lane, group, tier }: InFlight) {
        self.finish_all(lane, tier, 1, group.as_slice());
    }

    /// Why a message waits; `None` if it waits behind another one of its group.
    pub fn why_at(&self, spot: Spot) -> Option<Blocked> {
        match spot {
            Spot::Group(group, seq) if self.first_in(group) != Some(seq) => None,
            Spot::Group(group, _) => Some(self.why(group)),
            Spot::Alone(lane, tier, _) => Some(self.why_alone(lane, tier)),
        }
    }

    /// The waiting messages of a lane, each with its spot and the units that it would hold, in no
    /// order. O(its groups and messages).
    pub fn waiting_in(&self, lane: LaneKey) -> impl Iterator<Item = (Spot, InFlight, &T)> {
        let holds = move |group, tier| InFlight { lane, group, tier };
        let grouped = self.groups_of(lane).flat_map(move |(key, group)| {
            let messages = group.messages.iter();
            messages.map(move |(seq, m)| (Spot::Group(key, seq), holds(Some(key), m.tier), &m.item))
        });
        let alone = self.lane(lane).members().flat_map(move |(tier, member)| {
            let (alone, spot) = (member.alone(), move |place| Spot::Alone(lane, tier, place));
            alone.map(move |(place, item)| (spot(place), holds(None, tier), item))
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

    /// Why a message that is alone waits.
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
    /// Puts a message into the ready queue at its place. The lane must be updated.
    #[inline]
    pub(super) fn join_alone(&mut self, lane: LaneKey, tier: u32, place: Place, age: Age, item: T) {
        let member = Member::Alone(place, item);
        let ready = self.lanes.ready(lane.index(), tier);
        ready.join(age, place.ticket, DEFAULT_LEVEL, place.bump(), member);
    }

    /// Takes a message out, if it waits. The lane must be updated.
    pub(super) fn take_alone(&mut self, lane: LaneKey, tier: u32, place: Place) -> Option<T> {
        self.lanes.get(lane)?;
        let (lanes, position) = (&mut self.lanes, place.position(DEFAULT_LEVEL));
        if let Some(member) = lanes.remove(lane.index(), tier, position) {
            return Some(member.into_alone()?.1);
        }
        // It may be of a run, and not its first.
        lanes.take_covered(lane.index(), tier, position, |member| match member {
            Member::Run(run) => run.take(position.number()),
            _ => None,
        })
    }
}
