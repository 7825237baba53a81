//! Units that a live turn takes and gives back without asking here each time.

use crate::limit::Limit;

use super::{Dispatch, GroupKey, LaneKey, at, shift};

impl<G> Dispatch<G> {
    /// Units that the group's live turn could take now, if only the group's own
    /// limit can keep it from taking what waits; all of that in one tier. `None`
    /// also while more are in flight than the limit: what comes back then is no
    /// free unit yet.
    pub fn free_units(&self, group: GroupKey) -> Option<u32> {
        let g = self.group(group);
        let lane = self.lane(g.lane);
        let alone = lane.cap == Limit::Unlimited && g.aside.is_none();
        let debt = matches!(g.limit, Limit::AtMost(most) if g.in_flight > most);
        (alone && !debt).then(|| g.limit.room(g.in_flight))
    }

    /// So many units were taken by the live turn of the group, one after the
    /// other, and so many came back, in the only tier of the lane; `head` waits
    /// first now. Returns the lane.
    pub fn settle_up(
        &mut self,
        group: GroupKey,
        taken: u32,
        done: u32,
        head: Option<u32>,
    ) -> LaneKey {
        let Self { lanes, groups, .. } = self;
        let g = at(groups, group.0);
        let key = g.lane;
        let lane = at(lanes, key.0);
        g.in_flight = g.in_flight + taken - done;
        lane.in_flight = lane.in_flight + taken - done;
        lane.tiers.pass(taken, done);
        g.set_head(head, lane, &mut self.clock);
        if let Some(moved) = g.stand() {
            shift(lane, groups, group, moved);
        }
        key
    }
}
