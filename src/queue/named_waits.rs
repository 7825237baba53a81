//! The receives that wait for a group by name, and which of these groups must be looked at.
//!
//! Protocol: whoever changes a group or its waiters [marks](NamedWaits::mark) the group. At the end
//! of each event the marked groups are looked at, and no others. A group that could have a turn but
//! for its lane stands in the line of that lane and its tier. As many of a line are admitted, and
//! marked, as there is room in the lane. One stays admitted until a look finds that its turn cannot
//! begin: its waiter has claimed it, or something else keeps it.
//!
//! Invariants, under the policy lock:
//! 1. `waits` has an entry for each group with a waiter. An entry leaves with its last waiter, and
//!    the last entry frees what many have left.
//! 2. A group is in one of the `lines`, or admitted by it, as its entry's `stands` tells, or in none.
//!    A line that has nobody, and has admitted nobody, is removed.
//! 3. `counts` is the sum over all entries.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;

use crate::group::GroupKey;
use crate::ring::next_in;
use crate::wait::{Ticket, WaitCounts, Waiters, WakeBatch};

/// So many marks are kept room for.
const FEW: usize = 8;

/// A lane, and a tier of it.
pub(super) type LaneTier = (u32, u32);

/// See the [module](self).
#[derive(Default)]
pub(super) struct NamedWaits {
    waits: BTreeMap<GroupKey, Entry>,
    /// Groups to look at. One may be here twice, or have no waiter.
    marked: Vec<GroupKey>,
    lines: BTreeMap<LaneTier, Line>,
    counts: WaitCounts,
    /// Whether the queue was closed, and finished, when it was last looked at.
    stage: (bool, bool),
}

#[derive(Default)]
struct Entry {
    waiters: Waiters<()>,
    /// The line of its group, and whether that is admitted.
    stands: Option<(LaneTier, bool)>,
}

/// The groups that only their lane and tier keep from a turn.
#[derive(Default)]
struct Line {
    groups: BTreeSet<GroupKey>,
    /// How many others are admitted.
    admitted: usize,
    /// The last that was admitted: the next comes after it, in a circle.
    last: Option<GroupKey>,
}

/// What a look at a group has found.
pub(super) enum Found {
    /// Its turn could begin.
    Turn,
    /// Nothing comes from it any more.
    End,
    /// Its lane and tier keep it from a turn.
    NotAdmitted(LaneTier),
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

    /// Admits groups of each line while it has `room`, and marks them. Marks all if the `stage` of
    /// the queue is new.
    pub(super) fn admit(&mut self, stage: (bool, bool), room: impl Fn(LaneTier) -> u32) {
        if std::mem::replace(&mut self.stage, stage) != stage {
            self.marked = self.waits.keys().copied().collect();
        }
        for (&of, line) in &mut self.lines {
            let room = room(of) as usize;
            while line.admitted < room
                && let Some(group) = line.admit_next()
            {
                if let Some(entry) = self.waits.get_mut(&group) {
                    entry.stands = Some((of, true));
                }
                self.marked.push(group);
            }
        }
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
        if let Some(entry) = self.waits.get_mut(&group) {
            if !entry.change(&mut self.counts, |waiters| waiters.notify_up_to(due, wakes)) {
                return false;
            }
            match (found, entry.stands) {
                (Found::Turn, Some((_, true))) => {}
                (Found::NotAdmitted(of), _) => self.stand(group, Some(of)),
                (_, Some(_)) => self.stand(group, None),
                (_, None) => {}
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
            if entry.stands.is_some() {
                self.stand(group, None);
            }
            self.waits.remove(&group);
            if self.waits.is_empty() {
                // Each would keep a node.
                (self.waits, self.lines) = Default::default();
                self.marked.shrink_to(FEW);
            }
        } else {
            // It may have been notified.
            self.mark(group);
        }
        (waker, is_last)
    }

    /// Puts a group into a line, or into none. Keeps invariant 2.
    fn stand(&mut self, group: GroupKey, of: Option<LaneTier>) {
        let Some(entry) = self.waits.get_mut(&group) else {
            return;
        };
        if let Some((own, admitted)) = entry.stands.take()
            && let Some(line) = self.lines.get_mut(&own)
        {
            match admitted {
                true => line.admitted -= 1,
                false => _ = line.groups.remove(&group),
            }
            if line.groups.is_empty() && line.admitted == 0 {
                self.lines.remove(&own);
            }
        }
        if let Some(of) = of {
            entry.stands = Some((of, false));
            self.lines.entry(of).or_default().groups.insert(group);
        }
    }
}

impl Line {
    fn admit_next(&mut self) -> Option<GroupKey> {
        self.last = Some(next_in(&self.groups, self.last)?);
        self.admitted += 1;
        self.groups.take(&self.last?)
    }
}

impl Entry {
    /// Changes the waiters, and the sum over all entries.
    fn change<R>(&mut self, sum: &mut WaitCounts, change: impl FnOnce(&mut Waiters<()>) -> R) -> R {
        let before = self.waiters.counts();
        let result = change(&mut self.waiters);
        sum.change(before, self.waiters.counts());
        result
    }
}
