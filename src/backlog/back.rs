//! Messages that go back, and claims that go back as if never made.

use crate::lanes::LaneKey;

use super::messages::Entry;
use super::stand::Age;
use super::{Backlog, Claim, at};

/// A claim that can be undone.
#[derive(Debug)]
pub struct Ahead<T> {
    /// The claim; it is completed as any other.
    pub claim: Claim<T>,
    stood: Stood,
}

/// Where a group stood before its turn began, so that it can go back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stood {
    pub(super) ticket: u64,
    pub(super) bump: Option<(u8, u64)>,
    /// If it was its lane's oldest, how often it had been overtaken.
    pub(super) overtaken: Option<u32>,
}

impl<T> Backlog<T> {
    /// Whether the lane's open tier starts nothing new, since a lower one has work.
    pub fn drains(&self, lane: LaneKey) -> bool {
        self.order.lanes.lane(lane.index()).drains()
    }

    /// As [`claim`](Self::claim) of a turn that is over at once, to be completed
    /// or undone.
    pub fn claim_ahead(&mut self) -> Option<Ahead<T>> {
        let (claim, stood) = self.begin(false)?;
        Some(Ahead { claim, stood })
    }

    /// The message goes back to its place, its group to where it stood with the
    /// bump that it had, unless it has another by now; its lane has that turn
    /// again, and whom it overtook is overtaken once less. Of several claims the
    /// last is undone first.
    pub fn undo(&mut self, ahead: Ahead<T>) {
        let Ahead { claim, stood } = ahead;
        self.put_back(claim, Some(stood));
    }

    /// A message that was taken waits again; its group stands where it did, if
    /// that is known. Else, if it was not in line, it is the youngest now.
    pub(super) fn put_back(&mut self, claim: Claim<T>, stood: Option<Stood>) {
        let Claim {
            group,
            seq,
            tier,
            attempt,
            item,
        } = claim;
        self.waiting += 1;
        self.in_flight -= 1;
        let g = at(&mut self.groups, group);
        let was_ready = g.is_ready();
        self.order.unline(g);
        g.messages.put(Entry {
            seq,
            tier,
            attempt,
            item: Some(item),
        });
        g.in_flight -= 1;
        // It waits before it ceases to run, so that its tier stays outstanding.
        self.order.count_head(g, Age::Same);
        self.order.finish(g, tier);
        let mut age = if was_ready { Age::Same } else { Age::New };
        if let Some(stood) = stood {
            g.ticket = g.ticket.min(stood.ticket);
            g.bump = g.bump.or(stood.bump);
            age = Age::Same;
        }
        self.order.stand(group.0.index(), g, age);
        self.order.unit_back(g);
        if let Some(stood) = stood {
            self.order.lanes.undo(g.lane.index(), stood.overtaken);
        }
    }
}
