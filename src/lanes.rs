//! Which group is next: lanes that take turns, each with a queue of ready groups.
//!
//! The decision core of a [queue](crate::queue): plain data without messages and without locks. It
//! is told when a group has work and room, when its turn begins, and when a unit of a lane's cap or
//! a tier comes back.
//!
//! State: lanes by index, the eligible ones linked in a ring. Each lane has the ready queue of the
//! open tier; the ready queues of other tiers are parked.
//!
//! Invariants, at the end of each event, when [`Lanes::update`] was called for each lane that the
//! event changed:
//! 1. A lane is in the ring if and only if the ready queue of its open tier has a group, the tier
//!    does not drain, and the cap has room.
//! 2. `ready` is the queue of the open tier, if a tier is open; no parked queue is empty.
//!
//! Source: weighted round robin as in Katevenis et al., 1991; the bound on
//! overtaking is proven in `docs/fairness.md`.

mod lane_level;
mod lifetimes;
mod tiered;
mod turn;

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;

use std::collections::BTreeSet;

use crate::error::OutOfRange;
use crate::limit::{Bypass, Limit};
use crate::ready::{Entry, Position, ReadyItem, ReadyQueue};
use crate::ring::{Link, Links, Ring};
use crate::slab::NO_INDEX;

use tiered::Tiered;

pub use lane_level::{LaneKey, LaneLevel};

/// A lane, as its owner sees it. One cache line has what each turn changes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Lane<G> {
    ready: ReadyQueue<G>,
    pub(crate) cap: Limit,
    /// Whether it has, or had, a cap: then units are counted.
    pub(crate) counts: bool,
    /// Units in use, if they are counted.
    pub(crate) in_use: u32,
    /// How many times in a row the oldest group was overtaken.
    overtaken: u32,
    pub(crate) link: Link,
    /// One for each of its groups and one for its handle. Without pins the lane is removed.
    pub(crate) pins: u32,
    /// For the owner: the first of a list of its groups, or the lowest index of one.
    pub(crate) first_group: u32,
    /// Whether its handle is gone.
    pub(crate) ending: bool,
    tiered: Option<Box<Tiered<G>>>,
}

impl<G: ReadyItem> Lane<G> {
    fn new(weight: u32, cap: Limit) -> Self {
        Self {
            ready: ReadyQueue::default(),
            cap,
            counts: cap != Limit::Unlimited,
            in_use: 0,
            overtaken: 0,
            link: Link::new(weight),
            pins: 1,
            first_group: NO_INDEX,
            ending: false,
            tiered: None,
        }
    }

    /// Whether a turn could begin now.
    #[inline]
    fn is_eligible(&self) -> bool {
        let is_shut = self.tiered.as_ref().is_some_and(|tiered| tiered.is_shut());
        !is_shut && !self.is_spent()
    }

    /// Whether no group is ready, or the cap has no room. A lane that does not count units has no
    /// cap.
    #[inline]
    fn is_spent(&self) -> bool {
        self.ready.is_empty() || self.counts && !self.has_room()
    }

    /// How many units of the cap are free.
    #[inline]
    pub fn room(&self) -> u32 {
        self.cap.room(self.in_use)
    }

    /// Whether the cap has room for one more.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// Whether the cap is not exceeded.
    pub fn is_within_cap(&self) -> bool {
        match self.cap {
            Limit::AtMost(most) => self.in_use <= most,
            Limit::Unlimited => true,
        }
    }

    /// The ready queue of a tier, if there is one.
    fn ready_of(&mut self, tier: u32) -> Option<&mut ReadyQueue<G>> {
        match &mut self.tiered {
            Some(tiered) if tiered.front != tier => tiered.parked.get_mut(&tier),
            _ => Some(&mut self.ready),
        }
    }

    fn ready_or_new(&mut self, tier: u32) -> &mut ReadyQueue<G> {
        match &mut self.tiered {
            Some(tiered) if tiered.front != tier => tiered.parked.entry(tier).or_default(),
            _ => &mut self.ready,
        }
    }
}

/// Lanes and their ready groups; see the [module](self). The fields that each turn changes come
/// first, to be on the cache line of the lock that protects them.
#[derive(Debug)]
#[repr(C)]
pub struct Lanes<G> {
    lanes: Vec<Option<Box<Lane<G>>>>,
    ring: Ring,
    /// How many turns ever began.
    pub(crate) begun: u64,
    bypass: Bypass,
    /// Indices that no lane has, but a later one. The lowest is used first.
    free: BTreeSet<u32>,
}

impl<G: ReadyItem> Lanes<G> {
    /// No lanes.
    pub fn new(bypass: Bypass) -> Self {
        Self {
            lanes: Vec::new(),
            free: BTreeSet::new(),
            ring: Ring::default(),
            bypass,
            begun: 0,
        }
    }

    /// Whether no other lane is in the ring.
    #[inline]
    pub fn is_alone(&self, lane: u32) -> bool {
        self.ring.len() == u32::from(self.lane(lane).link.is_member())
    }

    /// The lanes in the ring, if there are exactly two.
    #[inline]
    pub fn pair(&self) -> Option<(LaneKey, LaneKey)> {
        let mut ring = self.ring.iter(&self.lanes).map(LaneKey);
        let pair = (ring.next()?, ring.next()?);
        (self.ring.len() == 2).then_some(pair)
    }

    /// The key of the lane with this index.
    #[inline]
    pub fn key(&self, lane: u32) -> LaneKey {
        LaneKey(lane)
    }

    /// Whether some lane is in the ring.
    #[inline]
    pub fn has_eligible(&self) -> bool {
        !self.ring.is_empty()
    }

    /// How many turns could begin now. Counts no further than `most`.
    pub fn eligible(&self, most: usize) -> usize {
        let mut sum = 0;
        for lane in self.ring.iter(&self.lanes) {
            if sum >= most {
                break;
            }
            let lane = self.lane(lane);
            let room = lane.room() as usize;
            sum += lane.ready.count(room.min(most - sum));
        }
        sum
    }

    /// Adds groups to the ready queue of tier 0, each at the end of its own level: their tickets
    /// are higher than all before. Updates the lane.
    #[inline]
    pub fn push_run(&mut self, lane: u32, entries: &mut [Entry<G>]) {
        let l = self.lane_mut(lane);
        let ready = match l.tiered {
            None => &mut l.ready,
            Some(_) => l.ready_or_new(0),
        };
        ready.push_run(entries);
        if !l.link.is_member() || l.tiered.is_some() {
            self.update(lane);
        }
    }

    /// As [`push_run`](Self::push_run), if all have the same level and the lane has no cap or
    /// tiers. Moves no entry if the ready queue is empty.
    #[inline]
    pub fn push_all(&mut self, lane: u32, entries: &mut Vec<Entry<G>>) {
        let l = self.lane_mut(lane);
        l.ready.push_all(entries);
        if !l.link.is_member() {
            self.update(lane);
        }
    }

    /// The ready queue of a tier, to add a group. The caller then updates the lane.
    pub fn ready(&mut self, lane: u32, tier: u32) -> &mut ReadyQueue<G> {
        self.lane_mut(lane).ready_or_new(tier)
    }

    /// Whether a group of this tier is at this position.
    pub fn contains(&mut self, lane: u32, tier: u32, position: Position) -> bool {
        let ready = self.lane_mut(lane).ready_of(tier);
        ready.is_some_and(|ready| ready.contains(position))
    }

    /// Removes a group from the ready queue. The caller then updates the lane.
    pub fn remove(&mut self, lane: u32, tier: u32, position: Position) -> Option<G> {
        let lane = self.lane_mut(lane);
        let ready = lane.ready_of(tier)?;
        let group = ready.remove(position)?;
        if ready.is_empty()
            && let Some(tiered) = &mut lane.tiered
        {
            tiered.parked.remove(&tier);
        }
        Some(group)
    }

    /// Takes a group, not the first, of several in one entry. The caller then updates the lane.
    pub fn take_covered<R>(
        &mut self,
        lane: u32,
        tier: u32,
        position: Position,
        take: impl FnOnce(&mut G) -> Option<R>,
    ) -> Option<R> {
        let ready = self.lane_mut(lane).ready_of(tier)?;
        ready.take_covered(position, take)
    }

    /// A group with this ticket is served by name. If no ready group is older, the count of
    /// overtakings restarts at 0.
    pub fn served_by_name(&mut self, lane: u32, ticket: u64) {
        self.begun += 1;
        let lane = self.lane_mut(lane);
        if lane.ready.oldest().is_none_or(|oldest| ticket <= oldest) {
            lane.overtaken = 0;
        }
    }

    /// Takes a unit of the cap, if there is room. The caller then updates the lane.
    pub fn take_unit(&mut self, lane: u32) -> bool {
        let lane = self.lane_mut(lane);
        let room = lane.has_room();
        if room && lane.counts {
            lane.in_use += 1;
        }
        room
    }

    /// Returns units of the cap. The caller then updates the lane.
    #[inline]
    pub fn return_units(&mut self, lane: u32, units: u32) {
        let lane = self.lane_mut(lane);
        lane.in_use = lane.in_use.saturating_sub(units);
    }

    /// Counts units from now on; `false` if they were counted before.
    pub fn count_units(&mut self, lane: u32) -> bool {
        !std::mem::replace(&mut self.lane_mut(lane).counts, true)
    }

    /// Changes the cap. The caller then updates the lane.
    pub fn set_cap(&mut self, lane: u32, cap: Limit) -> Result<(), OutOfRange> {
        self.lane_mut(lane).cap = cap.checked("limit")?;
        Ok(())
    }

    /// All lanes, in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = (LaneKey, &Lane<G>)> {
        let lanes = (0..).map(LaneKey).zip(&self.lanes);
        lanes.filter_map(|(key, lane)| Some((key, lane.as_deref()?)))
    }

    /// A lane, if it has not gone.
    pub fn get(&self, lane: LaneKey) -> Option<&Lane<G>> {
        self.lanes.get(lane.0 as usize)?.as_deref()
    }

    /// Puts the lane at the tail of the ring, or removes it, to restore invariant 1.
    #[inline]
    pub fn update(&mut self, lane: u32) {
        let l = self.lane(lane);
        let front = l.tiered.as_ref().is_none_or(|tiered| tiered.is_open());
        if !front || l.is_eligible() != l.link.is_member() {
            self.update_slow(lane);
        }
    }

    #[inline(never)]
    fn update_slow(&mut self, lane: u32) {
        let l = self.lane_mut(lane);
        if let Some(tiered) = &mut l.tiered {
            tiered.turn_to_open(&mut l.ready);
        }
        if l.is_eligible() {
            self.ring.join(&mut self.lanes, lane);
        } else {
            self.ring.leave(&mut self.lanes, lane);
        }
    }

    /// A lane that exists.
    #[inline]
    pub fn lane(&self, lane: u32) -> &Lane<G> {
        self.lanes[lane as usize].as_ref().expect(PINNED)
    }

    #[inline]
    pub(crate) fn lane_mut(&mut self, lane: u32) -> &mut Lane<G> {
        self.lanes[lane as usize].as_mut().expect(PINNED)
    }
}

impl<G> Links for Vec<Option<Box<Lane<G>>>> {
    #[inline]
    fn link(&self, lane: u32) -> &Link {
        &self[lane as usize].as_ref().expect(PINNED).link
    }

    #[inline]
    fn link_mut(&mut self, lane: u32) -> &mut Link {
        &mut self[lane as usize].as_mut().expect(PINNED).link
    }
}

const PINNED: &str = "a lane is there while a handle or a group of it is";
