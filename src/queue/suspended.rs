//! The groups that are set aside because a message of theirs failed.
//!
//! Invariants, under the policy lock:
//! 1. A group is in `backing_off` exactly if its flag says so, and in
//!    `poisoned` likewise; never in both.
//! 2. A group in either has a waiting message, and so exists: whatever takes
//!    the last one out takes the group out of both.
//! 3. An emptied map gives its last block back.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::group::{BACKING_OFF, Flags, GroupKey, POISONED};
use crate::limit::Limit;
use crate::timers::{Timer, Timers};

/// What a queue does about failures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    pub(super) attempts: Limit,
    /// The pause after the first failure; zero for none.
    pub(super) first: Duration,
    /// No pause is longer.
    pub(super) most: Duration,
}

impl Retry {
    /// Whether a message that has failed so often just goes back.
    pub(super) fn is_plain(self, attempts: u32) -> bool {
        self.first.is_zero() && !self.is_last(attempts)
    }

    fn is_last(self, attempts: u32) -> bool {
        matches!(self.attempts, Limit::AtMost(most) if attempts >= most)
    }

    /// The pause after this attempt: doubled after each but the first.
    fn pause(self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}

/// The groups that are set aside.
#[derive(Debug)]
pub(super) struct Suspended {
    pub(super) timers: Timers<GroupKey>,
    backing_off: BTreeMap<GroupKey, Timer>,
    /// The place and the attempts of the message that did it.
    pub(super) poisoned: BTreeMap<GroupKey, (u64, u32)>,
}

impl Suspended {
    pub(super) fn new() -> Self {
        Self {
            timers: Timers::new(),
            backing_off: BTreeMap::new(),
            poisoned: BTreeMap::new(),
        }
    }

    /// A message of a group that is not poisoned has failed: the flag that the
    /// group has from now on, if any.
    pub(super) fn failed(
        &mut self,
        retry: Retry,
        group: GroupKey,
        (place, attempts): (u64, u32),
    ) -> Flags {
        if retry.is_last(attempts) {
            self.forget(group);
            self.poisoned.insert(group, (place, attempts));
            return POISONED;
        }
        let pause = retry.pause(attempts);
        if pause.is_zero() {
            return 0;
        }
        let until = self.timers.now().saturating_add(pause);
        let earlier = self.backing_off.get(&group).copied();
        if earlier.is_none_or(|timer| timer.at() < until) {
            if let Some(timer) = earlier {
                self.timers.cancel(timer);
            }
            let timer = self.timers.set(until, group);
            self.backing_off.insert(group, timer);
        }
        BACKING_OFF
    }

    /// Takes a group out of both maps; false if it was in neither.
    pub(super) fn forget(&mut self, group: GroupKey) -> bool {
        let timer = self.backing_off.remove(&group);
        if let Some(timer) = timer {
            self.timers.cancel(timer);
        }
        let poison = self.poisoned.remove(&group);
        if self.backing_off.is_empty() {
            self.backing_off = BTreeMap::new();
        }
        if self.poisoned.is_empty() {
            self.poisoned = BTreeMap::new();
        }
        timer.is_some() || poison.is_some()
    }
}
