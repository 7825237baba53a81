//! Which groups are suspended, since a message of theirs failed.
//!
//! Invariants, under the policy lock:
//! 1. A group is among the suspended exactly if one of its flags says so.
//! 2. Such a group has a waiting message, and so exists: whatever takes the
//!    last one out has the group go on.
//! 3. An emptied map gives its last block back.

use std::collections::BTreeMap;

use crate::group::{BACKING_OFF, Flags, GroupKey, POISONED};
use crate::retry::Retry;
use crate::timers::{Timer, Timers};

/// The groups that are suspended.
#[derive(Debug, Default)]
pub(super) struct Suspended {
    pub(super) timers: Timers<GroupKey>,
    pub(super) groups: BTreeMap<GroupKey, Suspension>,
}

#[derive(Debug)]
pub(super) enum Suspension {
    BackingOff(Timer),
    /// By the message of this place, after so many attempts.
    Poisoned(u64, u32),
}

impl Suspended {
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
            let poisoned = Suspension::Poisoned(place, attempts);
            self.groups.insert(group, poisoned);
            return POISONED;
        }
        let pause = retry.pause(attempts);
        if pause.is_zero() {
            return 0;
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

    /// The place of the message that poisoned a group.
    pub(super) fn cause(&self, group: GroupKey) -> Option<u64> {
        match self.groups.get(&group)? {
            Suspension::BackingOff(_) => None,
            Suspension::Poisoned(place, _) => Some(*place),
        }
    }

    /// False if the group was not suspended.
    pub(super) fn forget(&mut self, group: GroupKey) -> bool {
        let Some(was) = self.groups.remove(&group) else {
            return false;
        };
        if let Suspension::BackingOff(timer) = was {
            self.timers.cancel(timer);
        }
        if self.groups.is_empty() {
            self.groups = BTreeMap::new();
        }
        true
    }
}
