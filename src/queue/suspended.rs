//! Suspended groups: those with a failed message that are poisoned or backing off.
//!
//! Invariants, under the policy lock:
//! 1. A group is in `groups` exactly if one of its flags says so.
//! 2. Such a group has a waiting message, and so exists: an operation that takes the last one
//!    out lets the group go on.
//! 3. An emptied map frees its last block.
//! 4. `poisoned` has the poisoned groups, each by its time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::due::Dates;
use crate::group::{BACKING_OFF, Flags, GroupKey, Head, POISONED};
use crate::retry::Retry;
use crate::timers::{Timer, Timers};

/// The groups that are suspended.
#[derive(Debug, Default)]
pub(super) struct Suspended {
    pub(super) timers: Timers<GroupKey>,
    pub(super) dates: Dates,
    pub(super) groups: BTreeMap<GroupKey, Suspension>,
    /// The poisoned groups, in the order in which they were poisoned.
    pub(super) poisoned: BTreeMap<u64, GroupKey>,
    /// How many times a group was poisoned so far.
    times: u64,
    /// The time up to which waits have reported poisoned groups.
    reported: u64,
    /// How many of the poisoned groups no wait has reported.
    pub(super) unreported: usize,
}

#[derive(Debug)]
pub(super) enum Suspension {
    BackingOff(Timer),
    /// By this message; and the count of poisonings in this queue up to and including this one.
    Poisoned(Head, u64),
}

/// What follows when a message has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The pause and the last attempt by the queue's rule.
    ByRule,
    /// This pause, unless it was the last attempt.
    Pause(Duration),
    /// It was the last attempt.
    ForGood,
}

impl Suspended {
    /// A message of a group that is not poisoned has failed. Returns the group's new flag, if
    /// any.
    pub(super) fn failed(
        &mut self,
        retry: Retry,
        group: GroupKey,
        failed: Head,
        how: Failure,
    ) -> Flags {
        if how == Failure::ForGood || retry.is_last(failed.attempts) {
            self.forget(group);
            self.times += 1;
            let poisoned = Suspension::Poisoned(failed, self.times);
            self.groups.insert(group, poisoned);
            self.poisoned.insert(self.times, group);
            self.unreported += 1;
            return POISONED;
        }
        let pause = match how {
            Failure::Pause(pause) => pause,
            _ => retry.pause(failed.attempts),
        };
        if pause.is_zero() {
            return 0;
        }
        if let Some(now) = self.dates.now() {
            self.timers.advance(now);
        }
        let until = self.timers.now().saturating_add(pause);
        match self.groups.get(&group) {
            Some(Suspension::BackingOff(timer)) if timer.at() >= until => {}
            _ => {
                self.forget(group);
                let timer = self.timers.set(until, group);
                self.groups.insert(group, Suspension::BackingOff(timer));
            }
        }
        BACKING_OFF
    }

    /// The message that has poisoned a group, if it is poisoned.
    pub(super) fn poison(&self, group: GroupKey) -> Option<Head> {
        match self.groups.get(&group)? {
            Suspension::BackingOff(_) => None,
            Suspension::Poisoned(failed, _) => Some(*failed),
        }
    }

    /// The first poisoned group that no wait has reported, for a wait to report.
    pub(super) fn report(&mut self) -> Option<GroupKey> {
        let (&time, &group) = self.poisoned.range(self.reported + 1..).next()?;
        self.reported = time;
        self.unreported -= 1;
        Some(group)
    }

    /// False if the group was not suspended.
    pub(super) fn forget(&mut self, group: GroupKey) -> bool {
        match self.groups.remove(&group) {
            None => return false,
            Some(Suspension::BackingOff(timer)) => _ = self.timers.cancel(timer),
            Some(Suspension::Poisoned(_, time)) => {
                self.poisoned.remove(&time);
                self.unreported -= usize::from(time > self.reported);
            }
        }
        if self.groups.is_empty() {
            self.groups = BTreeMap::new();
        }
        if self.poisoned.is_empty() {
            self.poisoned = BTreeMap::new();
        }
        true
    }
}
