//! Messages that are alone: each as if in a serial group of its own with standing
//! level, of which nothing is kept but its place in line. Its owner keeps that, and
//! the lane until the message is done.

use crate::lanes::LaneKey;
use crate::ready::{Position, STANDING_LEVEL};

use super::order::{Member, Order};
use super::{Backlog, Blocked, Claim, Prefetched};

/// The place in line of a message that is alone.
#[derive(Clone, Copy, Debug)]
pub struct Alone {
    ticket: u64,
    /// The level it is bumped to, and when.
    bump: Option<(u8, u64)>,
}

impl Alone {
    fn position(&self) -> Position {
        Position::new(STANDING_LEVEL, self.ticket, self.bump)
    }
}

impl<T> Backlog<T> {
    /// As [`send`](Self::send) of a message that is alone.
    #[inline]
    pub fn send_alone(&mut self, lane: LaneKey, tier: u32, bump: Option<u8>, item: T) -> Alone {
        self.waiting += 1;
        let ticket = self.order.mint();
        let mut alone = Alone { ticket, bump: None };
        if let Some(level) = bump {
            self.order.bump(&mut alone.bump, level);
        }
        self.order.arrive_alone(lane, tier);
        match bump {
            None => {
                let line = self.order.lanes.line(lane.index(), tier);
                line.push(ticket, STANDING_LEVEL, Member::Alone(item));
            }
            Some(_) => self.order.insert_alone(lane, tier, alone, item),
        }
        self.order.lanes.settle(lane.index());
        alone
    }

    /// As [`remove`](Self::remove): it waits no more.
    pub fn remove_alone(&mut self, lane: LaneKey, tier: u32, alone: Alone) {
        self.waiting -= 1;
        _ = self.order.take_alone(lane, tier, alone);
        self.order.lanes.change_head(lane.index(), Some(tier), None);
        self.order.lanes.settle(lane.index());
    }

    /// As [`bump`](Self::bump), while it waits.
    pub fn bump_alone(&mut self, lane: LaneKey, tier: u32, alone: &mut Alone, level: u8) {
        let item = self.order.take_alone(lane, tier, *alone);
        self.order.bump(&mut alone.bump, level);
        if let Some(item) = item {
            self.order.insert_alone(lane, tier, *alone, item);
        }
        self.order.lanes.settle(lane.index());
    }

    /// As [`complete`](Self::complete) of so many messages.
    #[inline]
    pub fn complete_alone(&mut self, lane: LaneKey, tier: u32, messages: u32) {
        self.in_flight -= u64::from(messages);
        self.order.finish(lane, tier, messages);
        self.order.units_back(lane, messages);
    }

    /// As [`unclaim`](Self::unclaim).
    pub fn unclaim_alone(&mut self, lane: LaneKey, alone: Alone, prefetched: Prefetched<T>) {
        let Prefetched { claim, old } = prefetched;
        self.waiting += 1;
        // It waits before it ceases to run, so that its tier stays outstanding.
        self.order.arrive_alone(lane, claim.tier);
        let (tier, item) = (claim.tier, claim.item);
        self.order.insert_alone(lane, tier, alone, item);
        self.complete_alone(lane, tier, 1);
        self.order.lanes.undo(lane.index(), old.overtaken);
    }

    /// What keeps it waiting.
    pub fn why_alone(&self, lane: LaneKey, tier: u32) -> Blocked {
        self.order.why_lane(lane, tier)
    }
}

impl<T> Order<T> {
    /// Counts one more that waits in its tier.
    #[inline]
    fn arrive_alone(&mut self, lane: LaneKey, tier: u32) {
        self.lanes.change_head(lane.index(), None, Some(tier));
    }

    /// It joins the line at its place. To be settled.
    fn insert_alone(&mut self, lane: LaneKey, tier: u32, alone: Alone, item: T) {
        let line = self.lanes.line(lane.index(), tier);
        line.insert(alone.ticket, alone.position(), Member::Alone(item));
    }

    /// It leaves the line. To be settled.
    fn take_alone(&mut self, lane: LaneKey, tier: u32, alone: Alone) -> Option<T> {
        let member = self.lanes.remove(lane.index(), tier, alone.position());
        match member {
            Some(Member::Alone(item)) => Some(item),
            _ => {
                debug_assert!(false, "it waits in line");
                None
            }
        }
    }

    /// Its turn began in this lane.
    #[inline]
    pub(super) fn start_alone(&mut self, lane: u32, item: T) -> Claim<T> {
        let tier = self.lanes.lane(lane).open_tier().unwrap_or(0);
        self.lanes.settle(lane);
        Claim {
            group: None,
            seq: 0,
            tier,
            attempt: 0,
            item,
        }
    }
}
