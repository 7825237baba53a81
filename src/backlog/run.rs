//! Messages that are alone and came one after the other: while they wait for the first time
//! they stand in line as one, so that what is done for each of them is done for all.
//!
//! Invariant: the first of a run waits. Others that were taken out have left their places.

use crate::lanes::LaneKey;
use crate::ready::{Position, STANDING_LEVEL};

use super::group::Place;
use super::member::{Member, Run};
use super::order::Order;
use super::{Backlog, InFlight, Item, Spot};

/// Messages of a run that were taken together, each with a unit of the lane's cap.
#[derive(Debug)]
pub struct RunClaim<T> {
    /// Their lane.
    pub lane: LaneKey,
    /// Their tier.
    pub tier: u32,
    run: Run<T>,
    /// How often the first of them had been overtaken.
    overtaken: u32,
    /// The first has been taken out.
    begun: bool,
}

impl<T> RunClaim<T> {
    /// How many of them have not been taken out.
    pub fn len(&self) -> usize {
        self.run.len()
    }

    /// Whether all have been taken out.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        (self.overtaken, self.begun) = (0, true);
        Some(self.run.pop()?.1)
    }

    /// Whether the first has been taken out.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// All of them, each with where it waited.
    pub fn spots(&self) -> impl Iterator<Item = (Spot, &T)> {
        let spot = |ticket| Spot::Alone(self.lane, self.tier, Place::new(ticket));
        self.run
            .iter()
            .map(move |(ticket, item)| (spot(ticket), item))
    }

    /// All of them, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.run.items.as_mut_slice().iter_mut().flatten()
    }

    /// What each of them holds.
    pub fn holds(&self) -> InFlight {
        InFlight {
            lane: self.lane,
            group: None,
            tier: self.tier,
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.run.iter().map(|(_, item)| item)
    }
}

impl<T: Item> Backlog<T> {
    /// The lanes that have work and room, if these are two.
    #[inline]
    pub fn pair(&self) -> Option<(LaneKey, LaneKey)> {
        self.order.lanes.pair()
    }

    /// Where the messages will wait that are sent next by [`send_run`](Self::send_run).
    pub fn next_spots(&self, lane: LaneKey) -> impl Iterator<Item = Spot> + use<T> {
        let tickets = self.order.clock + 1..;
        tickets.map(move |ticket| Spot::Alone(lane, 0, Place::new(ticket)))
    }

    /// Sends messages that are alone, at least one, into tier 0.
    pub fn send_run(&mut self, lane: LaneKey, items: Vec<Option<T>>) {
        let first = self.order.mint_many(items.len() as u64);
        let run = Run::new(first, items);
        for (ticket, item) in run.iter() {
            item.waits_at(Spot::Alone(lane, 0, Place::new(ticket)));
        }
        let count = run.len();
        let lanes = &mut self.order.lanes;
        if lanes.lane(lane.index()).is_tiered() {
            (0..count).for_each(|_| lanes.change_head(lane.index(), None, Some(0)));
        }
        let line = lanes.line(lane.index(), 0);
        line.push_several(first, STANDING_LEVEL, Member::Run(Box::new(run)), count);
        lanes.update(lane.index());
    }

    /// Takes messages of a run that are next, but not its last: `limits` is told their lane
    /// and the first, and says how many, and which of them. `None` if no two of a run are
    /// next. With `together` their lane goes on when its credit is used up.
    #[inline]
    pub fn claim_run<F: Fn(&T) -> bool>(
        &mut self,
        together: bool,
        limits: impl FnOnce(LaneKey, &T) -> (usize, F),
    ) -> Option<RunClaim<T>> {
        let lanes = &mut self.order.lanes;
        let (run, lane, overtaken) = lanes.begin_several(together, |member, lane, room| {
            let Member::Run(run) = member else {
                return None;
            };
            let (most, goes) = limits(lane, run.iter().next()?.1);
            // One alone is cheaper by itself.
            let most = Some(most.min(room)).filter(|&most| most > 1)?;
            let taken = run.take_first(most, goes)?;
            let count = taken.len();
            Some((taken, count, run.first))
        })?;
        Some(RunClaim {
            lane: lanes.key(lane),
            tier: lanes.lane(lane).open_tier().unwrap_or(0),
            run,
            overtaken,
            begun: false,
        })
    }

    /// What is left of them goes back to its place, and their lane has those turns again.
    pub fn unclaim_run(&mut self, claim: RunClaim<T>) {
        let (lane, tier) = (claim.lane, claim.tier);
        let (index, count) = (lane.index(), claim.run.len());
        let lanes = &mut self.order.lanes;
        for (ticket, item) in claim.run.into_iter().rev() {
            // It waits before it ceases to run, so that its tier stays outstanding.
            lanes.change_head(index, None, Some(tier));
            let place = Place::new(ticket);
            let position = place.position(STANDING_LEVEL);
            let line = lanes.line(index, tier);
            line.insert(ticket, position, Member::Alone(place, item));
        }
        self.complete_alone(lane, tier, count as u32);
        let lanes = &mut self.order.lanes;
        for n in (0..count).rev() {
            let overtaken = if n == 0 { claim.overtaken } else { 0 };
            lanes.unclaim(index, Some(overtaken));
        }
    }
}

impl<T> Order<T> {
    /// Takes one of a run that is not its first. To be updated.
    pub(super) fn take_of_run(&mut self, lane: LaneKey, tier: u32, at: Position) -> Option<T> {
        let lanes = &mut self.lanes;
        lanes.take_covered(lane.index(), tier, at, |member| match member {
            Member::Run(run) => run.take(at.number()),
            _ => None,
        })
    }

    /// Whether one of a run that is not its first waits there.
    pub(super) fn is_in_run(&mut self, lane: LaneKey, tier: u32, at: Position) -> bool {
        let mut is_there = false;
        // It is looked at, and stays.
        _ = self
            .lanes
            .take_covered(lane.index(), tier, at, |member| -> Option<()> {
                if let Member::Run(run) = member {
                    is_there = run.iter().any(|(ticket, _)| ticket == at.number());
                }
                None
            });
        is_there
    }
}
