//! Messages claimed ahead of their time, which may go back as if never claimed.

use crate::dispatch::{LaneKey, Pick};

use super::messages::{Entry, Messages};
use super::{Backlog, Claim};

/// A claim that can be undone.
#[derive(Debug)]
pub struct Ahead<T> {
    /// The claim; it is completed as any other.
    pub claim: Claim<T>,
    pick: Pick,
}

impl<T> Backlog<T> {
    /// Whether the lane's open tier starts nothing new, since a lower one has work.
    pub fn drains(&self, lane: LaneKey) -> bool {
        self.core.drains(lane)
    }

    /// As [`claim`](Self::claim) of a turn that is over at once, to be completed
    /// or undone.
    pub fn claim_ahead(&mut self) -> Option<Ahead<T>> {
        let (pick, entry) = self.core.begin_turn(Messages::take)?;
        let claim = self.claimed(pick.group, pick.tier, entry);
        self.core.end_turn(pick.group);
        self.core.settle(pick.lane);
        claim.map(|claim| Ahead { claim, pick })
    }

    /// The message goes back to its place, its group to where it stood, and its lane
    /// has that turn again. Of several claims the last is undone first.
    pub fn undo(&mut self, ahead: Ahead<T>) {
        let Ahead { claim, pick } = ahead;
        let group = claim.group;
        self.messages(group).put(Entry {
            seq: claim.seq,
            tier: claim.tier,
            attempt: claim.attempt,
            item: Some(claim.item),
        });
        self.waiting += 1;
        self.tally(group, 1);
        self.in_flight -= 1;
        self.sync_head(group);
        self.core.undo_turn(pick);
    }
}
