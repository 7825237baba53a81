//! Messages that go back, and claims that are unclaimed.

use crate::lanes::LaneKey;

use super::messages::Entry;
use super::order::Age;
use super::{Backlog, Claim, at};

/// A claim that can be unclaimed.
#[derive(Debug)]
pub struct Prefetched<T> {
    /// The claim; it is completed as any other.
    pub claim: Claim<T>,
    pub(super) old: OldPosition,
}

/// The position of a group before its turn began, so that it can go back.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldPosition {
    pub(super) ticket: u64,
    pub(super) bump: Option<(u8, u64)>,
    /// If it was its lane's oldest, how often it had been overtaken.
    pub(super) overtaken: Option<u32>,
}

impl OldPosition {
    /// Of a message that is alone, which knows the rest.
    pub(super) fn of_alone(overtaken: Option<u32>) -> Self {
        Self {
            ticket: 0,
            bump: None,
            overtaken,
        }
    }
}

impl<T> Backlog<T> {
    /// Whether the lane's open tier starts nothing new, since a lower one has work.
    pub fn drains(&self, lane: LaneKey) -> bool {
        self.order.lanes.lane(lane.index()).drains()
    }

    /// As [`claim`](Self::claim) of a turn that is over at once, to be completed
    /// or unclaimed.
    pub fn prefetch(&mut self) -> Option<Prefetched<T>> {
        let (claim, old) = self.begin()?;
        Some(Prefetched { claim, old })
    }

    /// The message of a group goes back to its place, the group to its old position with the
    /// bump that it had, unless it has another by now; its lane has that turn
    /// again, and whom it overtook is overtaken once less. Of several claims the
    /// last is unclaimed first.
    pub fn unclaim(&mut self, prefetched: Prefetched<T>) {
        let Prefetched { claim, old } = prefetched;
        self.requeue(claim, Some(old));
    }

    /// A message that was taken waits again; its group at its old position, if
    /// that is known. Else, if it was not in line, it is the youngest now.
    pub(super) fn requeue(&mut self, claim: Claim<T>, old: Option<OldPosition>) {
        let Claim {
            group,
            seq,
            tier,
            attempt,
            item,
        } = claim;
        let group = group.expect("it is not alone");
        self.waiting += 1;
        self.in_flight -= 1;
        let g = at(&mut self.groups, group);
        let was_ready = g.is_ready();
        self.order.leave_line(g);
        g.messages.put(Entry {
            seq,
            tier,
            attempt,
            item: Some(item),
        });
        g.in_flight -= 1;
        // It waits before it ceases to run, so that its tier stays outstanding.
        self.order.count_head(g, Age::Same);
        self.order.finish(g.lane, tier, 1);
        let mut age = if was_ready { Age::Same } else { Age::New };
        if let Some(old) = old {
            g.ticket = g.ticket.min(old.ticket);
            g.bump = g.bump.or(old.bump);
            age = Age::Same;
        }
        self.order.join_line(group.0.index(), g, age);
        self.order.units_back(g.lane, 1);
        if let Some(old) = old {
            self.order.lanes.undo(g.lane.index(), old.overtaken);
        }
    }
}
