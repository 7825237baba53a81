//! Turns, and units taken and given back.

use crate::limit::Limit;
use crate::tiers::Change;

use super::{Blocked, Dispatch, GroupKey, LaneKey, Pick, at, place_in, shift};

impl<G> Dispatch<G> {
    /// Begins the next turn and takes its first unit: the group is held, its
    /// bump is used up, and the message that waited first is the owner's,
    /// who takes it out and says what waits first then.
    // Nearly all callers want the group and the tier only.
    #[inline(always)]
    pub fn begin_turn<R>(
        &mut self,
        take: impl FnOnce(&mut G) -> (R, Option<u32>),
    ) -> Option<(Pick, R)> {
        let index = self.ring.current()?;
        let Self { lanes, groups, .. } = self;
        let lane = lanes.by_index_mut(index)?;
        let (tier, overtaken) = (lane.front_tier, lane.overtaken());
        let choice = lane.choose(self.bypass, |g| place_in(groups, g, tier))?;
        let (key, g) = groups.entry_at(choice.group)?;
        let group = GroupKey(key);
        let stood = g.begin(choice.oldest.then_some(overtaken));
        let tier = g.take_unit(lane)?;
        let (taken, head) = take(&mut g.data);
        if head.is_some() {
            g.set_head(head, lane, &mut self.clock);
        }
        let pick = Pick {
            group,
            lane: g.lane,
            tier,
            stood,
        };
        if let Some(moved) = g.stand() {
            shift(lane, groups, group, moved);
        }
        self.ring.served();
        Some((pick, taken))
    }

    /// A further unit for the live turn of `group`; what waited first is the
    /// owner's, as in [`begin_turn`](Self::begin_turn).
    pub fn take<R>(
        &mut self,
        group: GroupKey,
        take: impl FnOnce(&mut G) -> (R, Option<u32>),
    ) -> Result<(u32, R), Blocked> {
        match self.above(group) {
            Blocked::InLine => self.take_unit(group, take).ok_or(Blocked::Empty),
            blocked => Err(blocked),
        }
    }

    /// The turn is over: a group with work and room stands in line again,
    /// as the youngest. Returns its lane if that is to be settled.
    #[inline]
    pub fn end_turn(&mut self, group: GroupKey) -> Option<LaneKey> {
        let Self { lanes, groups, .. } = self;
        self.clock += 1;
        let g = at(groups, group.0);
        g.held = false;
        g.ready = self.clock;
        let lane = g.lane;
        let moved = g.stand()?;
        shift(at(lanes, lane.0), groups, group, moved);
        Some(lane)
    }

    /// A unit that was taken for a message of `tier` comes back. A group that
    /// was not in line until now takes its place as the youngest. Returns its
    /// lane if that is to be settled.
    #[inline]
    pub fn finish(&mut self, group: GroupKey, tier: u32) -> Option<LaneKey> {
        let Self { lanes, groups, .. } = self;
        let g = at(groups, group.0);
        if !g.is_ready() {
            self.clock += 1;
            g.ready = self.clock;
        }
        g.in_flight -= 1;
        let key = g.lane;
        let lane = at(lanes, key.0);
        lane.in_flight -= 1;
        let change = lane.tiers.finish(tier);
        if let Some(moved) = g.stand() {
            shift(lane, groups, group, moved);
        } else if change == Change::Same && lane.cap == Limit::Unlimited {
            // What has come back is no room that was wanting.
            return None;
        }
        Some(key)
    }

    /// One unit for the message that waits first, which the owner takes out.
    pub(super) fn take_unit<R>(
        &mut self,
        group: GroupKey,
        take: impl FnOnce(&mut G) -> (R, Option<u32>),
    ) -> Option<(u32, R)> {
        let Self { lanes, groups, .. } = self;
        let g = at(groups, group.0);
        let lane = at(lanes, g.lane.0);
        let tier = g.take_unit(lane)?;
        let (taken, head) = take(&mut g.data);
        g.set_head(head, lane, &mut self.clock);
        if let Some(moved) = g.stand() {
            shift(lane, groups, group, moved);
        }
        Some((tier, taken))
    }
}
