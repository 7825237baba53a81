//! Who is next: lanes that take turns, each with its groups in line.
//!
//! The decision core of a [queue](crate::queue): plain data without messages,
//! without locks. It hears of a group when that has work and room, when its
//! turn begins, and when a unit of a lane's cap or a tier comes back.
//!
//! State: lanes by index, the eligible ones linked in a ring; in each lane the
//! line of the open tier, and those of other tiers parked.
//!
//! Invariants, at the end of each event, which is when [`Lanes::update`] was
//! called for each lane that it touched:
//! 1. A lane is in the ring if and only if somebody stands in the line of its
//!    open tier, the tier does not drain, and the cap has room.
//! 2. `line` is that of the open tier, if one is open; no parked line is empty.
//!
//! Source: weighted round robin as in Katevenis et al., 1991; the bound on
//! overtaking is proven in `docs/fairness.md`.

mod lane_level;
mod tiered;
mod turn;

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;

use crate::error::OutOfRange;
use crate::limit::{Bypass, Limit};
use crate::ready::{Entry, Position, ReadyItem, ReadyQueue};
use crate::ring::{Link, Links, MAX_WEIGHT, Ring};
use crate::slab::NO_INDEX;

use lane_level::MAX_LANES;
use tiered::Tiered;

pub use lane_level::{LaneKey, LaneLevel};

/// A lane, as its owner may see it. One line has what each turn changes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Lane<G> {
    ready: ReadyQueue<G>,
    pub(crate) cap: Limit,
    /// It has, or had, a cap: units are counted.
    pub(crate) counts: bool,
    /// Units in use, if they are counted.
    pub(crate) in_use: u32,
    /// How many times in a row the oldest group was overtaken.
    overtaken: u32,
    pub(crate) link: Link,
    /// Its groups, and its handle while that is there: without one it goes.
    pub(crate) pins: u32,
    /// Of its groups, by the owner: the first of a list, or the lowest index.
    pub(crate) first_group: u32,
    /// Its handle is gone.
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

    /// Whether nobody stands in line, or the cap has no room. Where no units are
    /// counted there is no cap.
    #[inline]
    fn is_spent(&self) -> bool {
        self.ready.is_empty() || self.counts && !self.has_room()
    }

    /// Whether the cap has room for one more.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.cap.room(self.in_use) > 0
    }

    /// Whether the cap is not exceeded.
    pub fn is_within_cap(&self) -> bool {
        match self.cap {
            Limit::AtMost(most) => self.in_use <= most,
            Limit::Unlimited => true,
        }
    }

    /// The line of a tier, if there is one.
    fn ready_of(&mut self, tier: u32) -> Option<&mut ReadyQueue<G>> {
        match &mut self.tiered {
            Some(tiered) if tiered.front != tier => tiered.parked.get_mut(&tier),
            _ => Some(&mut self.ready),
        }
    }

    fn line_or_new(&mut self, tier: u32) -> &mut ReadyQueue<G> {
        match &mut self.tiered {
            Some(tiered) if tiered.front != tier => tiered.parked.entry(tier).or_default(),
            _ => &mut self.ready,
        }
    }
}

/// Lanes and who stands in them. See the [module](self). What each turn changes comes first,
/// for the line of the lock that it is under.
#[derive(Debug)]
#[repr(C)]
pub struct Lanes<G> {
    lanes: Vec<Option<Box<Lane<G>>>>,
    ring: Ring,
    /// Turns that ever began.
    pub(crate) begun: u64,
    bypass: Bypass,
    /// Indices without a lane.
    free: Vec<u32>,
}

impl<G: ReadyItem> Lanes<G> {
    /// No lane.
    pub fn new(bypass: Bypass) -> Self {
        Self {
            lanes: Vec::new(),
            free: Vec::new(),
            ring: Ring::default(),
            bypass,
            begun: 0,
        }
    }

    /// A lane that takes up to `weight` turns in a row, with at most `cap`
    /// units in use.
    pub fn add_lane(&mut self, weight: u32, cap: Limit) -> Result<LaneKey, OutOfRange> {
        OutOfRange::check("weight", weight, 1, MAX_WEIGHT)?;
        let lane = Some(Box::new(Lane::new(weight, cap.checked("limit")?)));
        let index = self.free.pop().unwrap_or(self.lanes.len() as u32);
        OutOfRange::check("lanes", index + 1, 1, MAX_LANES)?;
        match self.lanes.get_mut(index as usize) {
            Some(slot) => *slot = lane,
            None => self.lanes.push(lane),
        }
        Ok(LaneKey(index))
    }

    /// The handle is gone: the lane goes with its last group, or now. Whether it has gone.
    pub fn end_lane(&mut self, lane: LaneKey) -> bool {
        self.lane_mut(lane.0).ending = true;
        self.remove_group(lane)
    }

    /// One more group in a lane.
    pub fn add_group(&mut self, lane: LaneKey) {
        self.lane_mut(lane.0).pins += 1;
    }

    /// A group that stands nowhere is gone. The lane goes with the last: whether it has gone.
    pub fn remove_group(&mut self, lane: LaneKey) -> bool {
        let l = self.lane_mut(lane.0);
        l.pins -= 1;
        let gone = l.pins == 0;
        if gone {
            debug_assert!(!l.link.is_member());
            self.lanes[lane.0 as usize] = None;
            self.free.push(lane.0);
            if self.free.len() == self.lanes.len() {
                (self.lanes, self.free) = (Vec::new(), Vec::new());
            }
        }
        gone
    }

    /// How many lanes there are.
    pub(crate) fn len(&self) -> usize {
        self.lanes.len() - self.free.len()
    }

    /// Whether no other lane is in the ring.
    #[inline]
    pub fn is_alone(&self, lane: u32) -> bool {
        self.ring.len() == u32::from(self.lane(lane).link.is_member())
    }

    /// The lanes in the ring, if these are two.
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

    /// How many turns could begin now; counts no further than `most`.
    pub fn eligible(&self, most: usize) -> usize {
        let mut sum = 0;
        for lane in self.ring.iter(&self.lanes) {
            let lane = self.lane(lane);
            sum += lane.ready.len().min(lane.cap.room(lane.in_use) as usize);
            if sum >= most {
                return most;
            }
        }
        sum
    }

    /// Groups join the line of tier 0, each at the end of its standing level:
    /// their tickets are higher than all before. Settles the lane.
    #[inline]
    pub fn push_run(&mut self, lane: u32, entries: &mut [Entry<G>]) {
        let l = self.lane_mut(lane);
        let ready = match l.tiered {
            None => &mut l.ready,
            Some(_) => l.line_or_new(0),
        };
        ready.push_run(entries);
        if !l.link.is_member() || l.tiered.is_some() {
            self.update(lane);
        }
    }

    /// As [`push_run`](Self::push_run) in a lane without cap or tiers, where
    /// all have the same level: moves nothing into an empty line.
    #[inline]
    pub fn push_all(&mut self, lane: u32, entries: &mut Vec<Entry<G>>) {
        let l = self.lane_mut(lane);
        l.ready.push_all(entries);
        if !l.link.is_member() {
            self.update(lane);
        }
    }

    /// The line of a tier, for a group to join. To be updated.
    pub fn ready(&mut self, lane: u32, tier: u32) -> &mut ReadyQueue<G> {
        self.lane_mut(lane).line_or_new(tier)
    }

    /// Whether a group of this tier stands there.
    pub fn contains(&mut self, lane: u32, tier: u32, position: Position) -> bool {
        let ready = self.lane_mut(lane).ready_of(tier);
        ready.is_some_and(|ready| ready.contains(position))
    }

    /// Takes a group out of line. To be updated.
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

    /// Takes one of several that stand as one, and not their first. To be updated.
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

    /// A group of this age is served by name: if nobody in line is older, the
    /// count of overtakings starts anew.
    pub fn served_by_name(&mut self, lane: u32, ticket: u64) {
        self.begun += 1;
        let lane = self.lane_mut(lane);
        if lane.ready.oldest().is_none_or(|oldest| ticket <= oldest) {
            lane.overtaken = 0;
        }
    }

    /// One more unit of the cap, if there is room. To be updated.
    pub fn take_unit(&mut self, lane: u32) -> bool {
        let lane = self.lane_mut(lane);
        let room = lane.has_room();
        if room && lane.counts {
            lane.in_use += 1;
        }
        room
    }

    /// Units of the cap come back. To be updated.
    #[inline]
    pub fn return_units(&mut self, lane: u32, units: u32) {
        let lane = self.lane_mut(lane);
        lane.in_use = lane.in_use.saturating_sub(units);
    }

    /// Units are counted from now on; `false` if they were already.
    pub fn count_units(&mut self, lane: u32) -> bool {
        !std::mem::replace(&mut self.lane_mut(lane).counts, true)
    }

    /// Changes the cap. To be updated.
    pub fn set_cap(&mut self, lane: u32, cap: Limit) -> Result<(), OutOfRange> {
        self.lane_mut(lane).cap = cap.checked("limit")?;
        Ok(())
    }

    /// All lanes, by index.
    pub fn iter(&self) -> impl Iterator<Item = (LaneKey, &Lane<G>)> {
        let lanes = (0..).map(LaneKey).zip(&self.lanes);
        lanes.filter_map(|(key, lane)| Some((key, lane.as_deref()?)))
    }

    /// A lane, if it has not gone.
    pub fn get(&self, lane: LaneKey) -> Option<&Lane<G>> {
        self.lanes.get(lane.0 as usize)?.as_deref()
    }

    /// The lane joins the ring at its tail, or leaves it, as invariant 1 says.
    #[inline]
    pub fn update(&mut self, lane: u32) {
        let l = self.lane(lane);
        let front = l.tiered.as_ref().is_none_or(|tiered| tiered.is_open());
        if !front || l.is_eligible() != l.link.is_member() {
            self.update_anew(lane);
        }
    }

    #[inline(never)]
    fn update_anew(&mut self, lane: u32) {
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

    /// A lane that is there.
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
