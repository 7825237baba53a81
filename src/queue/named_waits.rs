//! The receives that wait for a group by name, and which of these groups must be looked at.
//!
//! Protocol: whoever changes a group or its waiters [marks](NamedWaits::mark) the group. At the end
//! of each event the marked groups are looked at, and no others. A group that could have a turn but
//! for its lane is kept under that lane and its tier; once these admit it, it is marked.
//!
//! Invariants, under the policy lock:
//! 1. `waits` has an entry for each group with a waiter. An entry leaves with its last waiter, and
//!    the last entry frees what many have left.
//! 2. A group in `by_lane` is in one set there, at its entry's `place`. No set is empty.
//! 3. `counts` is the sum over all entries.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;

use crate::group::GroupKey;
use crate::wait::{Ticket, WaitCounts, Waiters, WakeBatch};

/// So many marks are kept room for.
const FEW: usize = 8;

/// A lane, and a tier of it.
pub(super) type Place = (u32, u32);

/// See the [module](self).
#[derive(Default)]
pub(super) struct NamedWaits {
    waits: BTreeMap<GroupKey, Entry>,
    /// Groups to look at. One may be here twice, or have no waiter.
    marked: Vec<GroupKey>,
    /// Groups that only their lane and tier keep from a turn.
    by_lane: BTreeMap<Place, BTreeSet<GroupKey>>,
    counts: WaitCounts,
    /// Whether the queue was closed, and finished, when it was last looked at.
    stage: (bool, bool),
}

#[derive(Default)]
struct Entry {
    waiters: Waiters<()>,
    place: Option<Place>,
}

/// What a look at a group has found.
pub(super) enum Found {
    /// Its turn could begin.
    Turn,
    /// Nothing comes from it any more.
    End,
    /// Its lane and tier keep it from a turn.
    NotAdmitted(Place),
    /// Something of its own keeps it from a turn.
    Nothing,
}

impl NamedWaits {
    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    pub(super) fn counts(&self) -> WaitCounts {
        self.counts
    }

    /// The group or its waiters have changed.
    pub(super) fn mark(&mut self, group: GroupKey) {
        if self.next_marked() != Some(group) {
            self.marked.push(group);
        }
    }

    /// Marks the groups whose place `admits` them, or all if the `stage` of the queue is new.
    pub(super) fn mark_due(&mut self, stage: (bool, bool), admits: impl Fn(Place) -> bool) {
        if std::mem::replace(&mut self.stage, stage) != stage {
            self.marked = self.waits.keys().copied().collect();
        }
        let marked = &mut self.marked;
        self.by_lane.retain(|&place, groups| {
            let stays = !admits(place);
            if !stays {
                marked.extend(groups.iter());
            }
            stays
        });
    }

    /// The next group to look at, until [`found`](Self::found) is called.
    pub(super) fn next_marked(&self) -> Option<GroupKey> {
        self.marked.last().copied()
    }

    /// Notifies waiters of the group that was looked at; false if the batch is full and more are
    /// due. Else the group is no longer marked.
    pub(super) fn found(&mut self, group: GroupKey, found: Found, wakes: &mut WakeBatch) -> bool {
        let (due, place) = match found {
            Found::Turn => (1, None),
            Found::End => (usize::MAX, None),
            Found::NotAdmitted(place) => (0, Some(place)),
            Found::Nothing => (0, None),
        };
        if let Some(entry) = self.waits.get_mut(&group) {
            if !entry.change(&mut self.counts, |waiters| waiters.notify_up_to(due, wakes)) {
                return false;
            }
            let old = std::mem::replace(&mut entry.place, place);
            if old != place {
                self.move_place(group, old, place);
            }
        }
        self.marked.pop();
        true
    }

    /// A receive waits for this group, as [`Waiters::enqueue`] says.
    pub(super) fn enqueue(
        &mut self,
        group: GroupKey,
        ticket: &mut Option<Ticket>,
        current: &Waker,
        cloned: &mut Option<Waker>,
    ) -> bool {
        self.mark(group);
        let entry = self.waits.entry(group).or_default();
        entry.change(&mut self.counts, |waiters| {
            waiters.enqueue((), ticket, current, cloned)
        })
    }

    /// A receive leaves. Returns its waker, and whether it was the last one of its group.
    pub(super) fn withdraw(
        &mut self,
        group: GroupKey,
        ticket: &mut Option<Ticket>,
    ) -> (Option<Waker>, bool) {
        let Some(entry) = self.waits.get_mut(&group) else {
            return (None, false);
        };
        let waker = entry.change(&mut self.counts, |waiters| waiters.withdraw(ticket));
        let is_last = entry.waiters.is_empty();
        if is_last {
            let place = entry.place;
            self.move_place(group, place, None);
            self.waits.remove(&group);
            if self.waits.is_empty() {
                // Each would keep a node.
                (self.waits, self.by_lane) = Default::default();
                self.marked.shrink_to(FEW);
            }
        } else {
            // It may have been notified.
            self.mark(group);
        }
        (waker, is_last)
    }

    /// Keeps invariant 2.
    fn move_place(&mut self, group: GroupKey, from: Option<Place>, to: Option<Place>) {
        if let Some(from) = from
            && let Some(groups) = self.by_lane.get_mut(&from)
        {
            groups.remove(&group);
            if groups.is_empty() {
                self.by_lane.remove(&from);
            }
        }
        if let Some(to) = to {
            self.by_lane.entry(to).or_default().insert(group);
        }
    }
}

impl Entry {
    /// Changes the waiters, and the sum over all entries.
    fn change<R>(&mut self, sum: &mut WaitCounts, change: impl FnOnce(&mut Waiters<()>) -> R) -> R {
        let before = self.waiters.counts();
        let result = change(&mut self.waiters);
        let after = self.waiters.counts();
        sum.waiting = sum.waiting + after.waiting - before.waiting;
        sum.notified = sum.notified + after.notified - before.notified;
        result
    }
}
