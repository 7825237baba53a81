//! A turn taken back: nothing of it was done.

use super::{Dispatch, LaneKey, Pick};

impl<G> Dispatch<G> {
    /// The unit of a turn that is over comes back, and its message waits first
    /// again, as the owner has said: the group stands where it stood, with the
    /// bump that it had, unless it has another by now. Of several turns of one
    /// group the last is taken back first. In the round robin, and for the bypass,
    /// the turn counts as taken.
    pub fn undo_turn(&mut self, pick: Pick) {
        self.finish(pick.group, pick.tier);
        let g = self.group_mut(pick.group);
        g.ready = g.ready.min(pick.stood.ready);
        g.bump = g.bump.or(pick.stood.bump);
        self.stand(pick.group);
    }

    /// Whether the lane's open tier starts nothing new, since a lower one has work.
    pub fn drains(&self, lane: LaneKey) -> bool {
        self.lane(lane).tiers.draining()
    }
}
