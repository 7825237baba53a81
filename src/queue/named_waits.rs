//! The receives that wait for a group by name, and which of these groups must be looked at.
//!
//! Protocol: whoever changes a group or its waiters [marks](NamedWaits::mark) the group. At the end
//! of each event the marked groups are looked at, and no others. A group that could have a turn but
//! for its lane is kept under that lane and its tier; once these admit it, it is marked.
//!
//! Invariants, under the policy lock:
//! 1. `waits` has an entry for each group with a waiter. An entry leaves with its last waiter, and
//!    the last entry frees everything.
//! 2. A group in `by_lane` is in one set there, at its entry's `place`. No set is empty.
//! 3. `counts` is the sum over all entries.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;

use crate::group::GroupKey;
use crate::wait::{Ticket, WaitCounts, Waiters, WakeBatch};

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
        self.marked.push(group);
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
        let due = match found {
            Found::Turn => 1,
            Found::End => usize::MAX,
            Found::NotAdmitted(_) | Found::Nothing => 0,
        };
        if self.change(group, |waiters| waiters.notify_up_to(due, wakes)) == Some(false) {
            return false;
        }
        self.marked.pop();
        let place = match found {
            Found::NotAdmitted(place) => Some(place),
            _ => None,
        };
        self.set_place(group, place);
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
        self.waits.entry(group).or_default();
        self.mark(group);
        let waits = self.change(group, |waiters| {
            waiters.enqueue((), ticket, current, cloned)
        });
        waits == Some(true)
    }

    /// A receive leaves. Returns its waker, and whether it was the last one of its group.
    pub(super) fn withdraw(
        &mut self,
        group: GroupKey,
        ticket: &mut Option<Ticket>,
    ) -> (Option<Waker>, bool) {
        let left = self.change(group, |waiters| {
            (waiters.withdraw(ticket), waiters.is_empty())
        });
        let Some((waker, is_last)) = left else {
            return (None, false);
        };
        if !is_last {
            // It may have been notified.
            self.mark(group);
            return (waker, false);
        }
        self.set_place(group, None);
        self.waits.remove(&group);
        if self.waits.is_empty() {
            *self = Self::default();
        }
        (waker, true)
    }

    /// Changes the waiters of a group, if it has any. Keeps invariant 3.
    fn change<R>(
        &mut self,
        group: GroupKey,
        change: impl FnOnce(&mut Waiters<()>) -> R,
    ) -> Option<R> {
        let waiters = &mut self.waits.get_mut(&group)?.waiters;
        let before = waiters.counts();
        let result = change(waiters);
        let (sum, after) = (&mut self.counts, waiters.counts());
        sum.waiting = sum.waiting + after.waiting - before.waiting;
        sum.notified = sum.notified + after.notified - before.notified;
        Some(result)
    }

    /// Keeps invariant 2.
    fn set_place(&mut self, group: GroupKey, place: Option<Place>) {
        let Some(entry) = self.waits.get_mut(&group) else {
            return;
        };
        let old = std::mem::replace(&mut entry.place, place);
        if let Some(old) = old
            && let Some(groups) = self.by_lane.get_mut(&old)
        {
            groups.remove(&group);
            if groups.is_empty() {
                self.by_lane.remove(&old);
            }
        }
        if let Some(place) = place {
            self.by_lane.entry(place).or_default().insert(group);
        }
    }
}
