//! Who is next: the one place where it is decided.
//!
//! A plain data structure without locks, threads or clocks. Groups belong to
//! lanes (callers). A group stands in line if and only if it has work and
//! every limit above it has room; what is blocked stands nowhere, so skipping
//! it costs nothing and the count of eligible work is exact. Three limits
//! apply: the group's own (units in flight, and one turn at a time), the
//! lane's open tier, and the lane's cap.
//!
//! Between lanes: weighted round robin over turns (`ring`). Within a lane:
//! rank with bounded bypass (`line`). The messages themselves live with the
//! owner; of each group this core knows only the tier of the message that
//! waits first. That is enough for the tiers, since within a group tiers do
//! not go down: the lowest outstanding tier is always some group's first.
//!
//! Protocol: an event (an arrival with its bump, a dispatch, a completion, a
//! setting) is one or several calls that change one lane, and then one
//! [`settle`](Dispatch::settle) of that lane, unless all of them say that there
//! is nothing to settle.
//!
//! The bound, asserted by the tests on every dispatch: let W be the largest
//! sum of the weights of the lanes in the ring during a wait, w the lane's
//! own, K the bypass. A group that is i-th by age among its lane's groups with
//! work and no live turn (paused ones keep their age) starts its next turn
//! within `(ceil((i * (K + 1) + R * K) / w) + L) * W` dispatches counted while
//! it is eligible. L is how often meanwhile it stopped being eligible, and R
//! in how many of these interruptions another group reset the lane's count:
//! none, if only caps interrupt.
//!
//! Cost: O(1) a call, and O(log n) where a group comes back into line under
//! an old age (after a pause) or a lane has several tiers outstanding.

mod aside;
mod back;
mod deal;
mod group;
mod lane;
mod names;
mod picture;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;
mod turn;

use crate::error::OutOfRange;
use crate::limit::{Bypass, Limit};
use crate::line::Place;
use crate::ring::{MAX_WEIGHT, Ring};
use crate::slab::{Key, Slab};

use group::{Group, Moved};
use lane::Lane;

pub use aside::Aside;
pub use names::{Blocked, GroupKey, LaneKey, Pick, Stood, Touched};
pub use picture::{GroupPicture, LanePicture};

/// Lanes, groups, and who is next.
#[derive(Debug)]
pub struct Dispatch<G> {
    lanes: Slab<Lane>,
    groups: Slab<Group<G>>,
    ring: Ring,
    bypass: Bypass,
    /// The last sequence number given out.
    clock: u64,
    /// The sum of the lanes' settled units.
    units: u64,
}

impl<G> Dispatch<G> {
    /// Nothing yet.
    pub fn new(bypass: Bypass) -> Self {
        Self {
            lanes: Slab::new(),
            groups: Slab::new(),
            ring: Ring::new(),
            bypass,
            clock: 0,
            units: 0,
        }
    }

    /// A lane that takes up to `weight` turns in a row and has at most `cap`
    /// units in flight.
    pub fn add_lane(&mut self, weight: u32, cap: Limit) -> Result<LaneKey, OutOfRange> {
        OutOfRange::check("weight", weight, 1, MAX_WEIGHT)?;
        let cap = cap.checked()?;
        Ok(LaneKey(self.lanes.insert(Lane::new(weight, cap))))
    }

    /// Removes the lane when its last group is gone, or now if it has none.
    pub fn close_lane(&mut self, lane: LaneKey) {
        self.lane_mut(lane).closing = true;
        self.reap_lane(lane);
    }

    /// How many groups the lane has.
    pub fn groups_of(&self, lane: LaneKey) -> u32 {
        self.lane(lane).groups
    }

    /// A group in `lane`, of standing level `level` and so many units at once.
    pub fn add_group(
        &mut self,
        lane: LaneKey,
        limit: Limit,
        level: u8,
        data: G,
    ) -> Result<GroupKey, OutOfRange> {
        let limit = limit.checked()?;
        let key = self.groups.insert(Group::new(lane, limit, level, data));
        self.lane_mut(lane).groups += 1;
        Ok(GroupKey(key))
    }

    /// Removes a group that has no work, no turn and nothing in flight.
    pub fn remove_group(&mut self, group: GroupKey) -> Option<G> {
        let gone = self.groups.remove(group.0)?;
        debug_assert!(gone.head.is_none() && !gone.held && gone.in_flight == 0);
        self.lane_mut(gone.lane).groups -= 1;
        self.reap_lane(gone.lane);
        Some(gone.data)
    }

    /// The owner's part of a group; `None` if the key is stale.
    pub fn data(&self, group: GroupKey) -> Option<&G> {
        self.groups.get(group.0).map(|g| &g.data)
    }

    /// As [`data`](Self::data), to change it.
    pub fn data_mut(&mut self, group: GroupKey) -> Option<&mut G> {
        self.groups.get_mut(group.0).map(|g| &mut g.data)
    }

    /// The lane of a group that exists.
    pub fn lane_of(&self, group: GroupKey) -> LaneKey {
        self.group(group).lane
    }

    /// Units of a group in flight.
    pub fn in_flight(&self, group: GroupKey) -> u32 {
        self.group(group).in_flight
    }

    /// Units of a lane in flight.
    pub fn lane_in_flight(&self, lane: LaneKey) -> u32 {
        self.lane(lane).in_flight
    }

    /// Whether a turn of the group is live.
    pub fn is_held(&self, group: GroupKey) -> bool {
        self.group(group).held
    }

    /// How many turns could begin now: the exact count of eligible work, each
    /// lane counted as of its last settling.
    pub fn eligible(&self) -> u64 {
        self.units
    }

    /// The tier that is open in `lane`.
    pub fn open_tier(&self, lane: LaneKey) -> Option<u32> {
        self.lane(lane).tiers.open()
    }

    /// As [`change`](Self::change), of nothing but that.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub fn set_head(&mut self, group: GroupKey, head: Option<u32>) {
        _ = self.change(group, |_| ((), head));
    }

    /// The owner changes its part of the group, and says what waits first then.
    /// A group that had nothing waiting takes its ready time.
    #[inline]
    pub fn change<R>(
        &mut self,
        group: GroupKey,
        change: impl FnOnce(&mut G) -> (R, Option<u32>),
    ) -> (R, Touched) {
        let Self { lanes, groups, .. } = self;
        let g = at(groups, group.0);
        let (result, head) = change(&mut g.data);
        let touched = g.touched(head);
        if touched.changed {
            let lane = at(lanes, touched.lane.0);
            g.set_head(head, lane, &mut self.clock);
            if let Some(moved) = g.stand() {
                shift(lane, groups, group, moved);
            }
        }
        (result, touched)
    }

    /// Bumps the group's next turn ahead of all that is not bumped. To the
    /// level that it has it keeps its place.
    pub fn bump(&mut self, group: GroupKey, level: u8) {
        self.clock += 1;
        let now = self.clock;
        let g = self.group_mut(group);
        if g.bump.is_none_or(|(old, _)| old != level) {
            g.bump = Some((level, now));
            self.stand(group);
        }
    }

    /// Changes the standing level; the group keeps its age.
    pub fn set_level(&mut self, group: GroupKey, level: u8) {
        self.group_mut(group).level = level;
        self.stand(group);
    }

    /// Changes the group's limit; lowering it leaves a debt, 0 is a pause.
    pub fn set_limit(&mut self, group: GroupKey, limit: Limit) -> Result<(), OutOfRange> {
        self.group_mut(group).limit = limit.checked()?;
        self.stand(group);
        Ok(())
    }

    /// Changes the lane's cap; lowering it leaves a debt, 0 is a pause.
    pub fn set_cap(&mut self, lane: LaneKey, cap: Limit) -> Result<(), OutOfRange> {
        self.lane_mut(lane).cap = cap.checked()?;
        Ok(())
    }

    /// Ends an event: follows the lane's open tier and settles its membership
    /// of the ring and its share of [`eligible`](Self::eligible).
    #[inline]
    pub fn settle(&mut self, lane: LaneKey) {
        let l = at(&mut self.lanes, lane.0);
        let units = l.eligible();
        let before = std::mem::replace(&mut l.units, units);
        self.units = self.units - u64::from(before) + u64::from(units);
        if (before > 0) != (units > 0) {
            let weight = (units > 0).then_some(l.weight);
            self.enlist(lane, weight);
        }
    }

    /// What keeps the first waiting message of the group from being taken.
    pub fn why(&self, group: GroupKey) -> Blocked {
        match self.group(group).held {
            true => Blocked::Held,
            false => self.above(group),
        }
    }

    /// All groups, in no order.
    pub fn groups(&self) -> impl Iterator<Item = (GroupKey, &G)> {
        self.groups.iter().map(|(key, g)| (GroupKey(key), &g.data))
    }

    /// What keeps the group's first message waiting, a live turn left aside.
    fn above(&self, group: GroupKey) -> Blocked {
        let g = self.group(group);
        let lane = || self.lane(g.lane);
        match g.head {
            None => Blocked::Empty,
            Some(_) if g.aside.is_some() => g.blocked_aside(),
            Some(_) if g.limit == Limit::AtMost(0) => Blocked::Paused,
            Some(_) if !g.has_room() => Blocked::GroupLimit,
            Some(tier) if !lane().tiers.startable(tier) => Blocked::Tier,
            Some(_) if !lane().has_room() => Blocked::Cap,
            Some(_) => Blocked::InLine,
        }
    }

    /// Puts the group where it belongs after a change.
    fn stand(&mut self, group: GroupKey) {
        let Self { lanes, groups, .. } = self;
        let g = at(groups, group.0);
        let lane = g.lane;
        if let Some(moved) = g.stand() {
            shift(at(lanes, lane.0), groups, group, moved);
        }
    }

    /// Has the lane join the ring with a weight, or leave it.
    #[inline(never)]
    fn enlist(&mut self, lane: LaneKey, weight: Option<u32>) {
        let index = lane.0.index();
        _ = match weight {
            Some(weight) => self.ring.join(index, weight),
            None => self.ring.leave(index),
        };
    }

    fn reap_lane(&mut self, lane: LaneKey) {
        let l = self.lane(lane);
        if l.closing && l.groups == 0 {
            debug_assert!(!self.ring.contains(lane.0.index()));
            self.lanes.remove(lane.0);
        }
    }

    fn lane(&self, lane: LaneKey) -> &Lane {
        self.lanes.get(lane.0).expect(PINNED)
    }

    fn lane_mut(&mut self, lane: LaneKey) -> &mut Lane {
        at(&mut self.lanes, lane.0)
    }

    fn group(&self, group: GroupKey) -> &Group<G> {
        self.groups.get(group.0).expect(PINNED)
    }

    fn group_mut(&mut self, group: GroupKey) -> &mut Group<G> {
        at(&mut self.groups, group.0)
    }
}

const PINNED: &str = "whoever names a lane or group here pins it";

#[inline]
fn at<T>(slab: &mut Slab<T>, key: Key) -> &mut T {
    slab.get_mut(key).expect(PINNED)
}

/// Takes a group that `moved` from its old place in the lane to the new one.
fn shift<G>(lane: &mut Lane, groups: &Slab<Group<G>>, group: GroupKey, moved: Moved) {
    let index = group.0.index();
    let in_tier = |tier: u32| move |g: u32| place_in(groups, g, tier);
    match moved {
        (Some((tier, from)), Some((same, to))) if tier == same && from.ready == to.ready => {
            lane.rerank((tier, index), from, to, in_tier(tier));
        }
        (had, wanted) => {
            if let Some((tier, from)) = had {
                lane.leave((tier, index), from, in_tier(tier));
            }
            if let Some((tier, at)) = wanted {
                lane.insert(tier, at, index);
            }
        }
    }
}

#[inline]
fn place_in<G>(groups: &Slab<Group<G>>, group: u32, tier: u32) -> Option<Place> {
    let (stands_in, at) = groups.by_index(group)?.place?;
    (stands_in == tier).then_some(at)
}
