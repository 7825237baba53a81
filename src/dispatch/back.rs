//! A turn taken back: nothing of it was done.

use super::{Dispatch, LaneKey, Pick};

impl<G> Dispatch<G> {
    /// The unit of a turn that is over comes back, and its message waits first
    /// again, as the owner has said: the group stands where it stood, with the
    /// bump that it had, unless it has another by now. Its lane has the turn again,
    /// and whom it overtook is overtaken once less. Of several turns the last is
    /// taken back first. Ends the event, as [`settle`](Self::settle) does.
    pub fn undo_turn(&mut self, pick: Pick) {
        let Pick {
            group, tier, stood, ..
        } = pick;
        self.finish(group, tier);
        let g = self.group_mut(group);
        let lane = g.lane;
        g.ready = g.ready.min(stood.ready);
        g.bump = g.bump.or(stood.bump);
        self.lane_mut(lane).undo(stood.overtaken);
        self.stand(group);
        self.settle(lane);
        self.ring.undo(lane.0.index());
    }

    /// Whether the lane's open tier starts nothing new, since a lower one has work.
    pub fn drains(&self, lane: LaneKey) -> bool {
        self.lane(lane).tiers.draining()
    }
}
