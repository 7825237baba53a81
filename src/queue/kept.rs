//! What a queue does for those who keep groups by a key.
//!
//! Protocol: a keeper looks a key up under a lock of its own, and while it holds
//! that, sends, which takes the group's lock or the policy lock. It pins the
//! groups that it keeps.

use crate::group::Phase;
use crate::sync::{Ordering, WakeArc, unique};

use super::shared::{KEPT_IDLE, Shared};
use super::{GroupRef, Observer};

/// Whether nothing of a group waits or is in flight.
pub(crate) fn is_idle<T>(group: &GroupRef<T>) -> bool {
    let mailbox = group.lock();
    mailbox.phase == Phase::Idle && mailbox.detached() == 0
}

/// How many wait in a group.
pub(crate) fn waiting_in<T>(group: &GroupRef<T>) -> usize {
    let _mailbox = group.lock();
    group.waiting() as usize
}

impl<T> Shared<T> {
    /// Has an observer told what happens, by the number that this returns; the
    /// observer itself if the queue is gone.
    pub(crate) fn register(
        &self,
        observer: WakeArc<dyn Observer>,
    ) -> Result<u64, WakeArc<dyn Observer>> {
        self.with_state(|state| {
            // Relaxed: decided under the policy lock.
            if self.gone.load(Ordering::Relaxed) {
                return Err(observer);
            }
            let number = unique();
            state.observers.insert(number, observer);
            Ok(number)
        })
    }

    /// Tells an observer nothing more; it is to be dropped under no lock.
    pub(crate) fn unregister(&self, number: u64) -> Option<WakeArc<dyn Observer>> {
        self.with_state(|state| state.observers.remove(&number))
    }

    /// One more group is kept, by a pin of its keeper's.
    pub(crate) fn keep(&self) {
        // Relaxed: a hint when to trim.
        self.kept.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets go of groups that were kept.
    pub(crate) fn let_go<'g>(&self, groups: impl ExactSizeIterator<Item = &'g GroupRef<T>>)
    where
        T: 'g,
    {
        self.kept.fetch_sub(groups.len(), Ordering::Relaxed);
        groups.for_each(|group| self.unpin(group));
    }

    /// Has keepers forget what is idle, if they keep much. Under no lock.
    #[cold]
    pub(super) fn trim(&self) {
        // Relaxed: a hint.
        if self.kept.load(Ordering::Relaxed) <= self.trim_above.load(Ordering::Relaxed) {
            return;
        }
        let keepers: Vec<_> = self.with_state(|state| state.observers.values().cloned().collect());
        for keeper in keepers {
            keeper.trim();
        }
        // What is left is at work: it may double before the next look.
        let left = self.kept.load(Ordering::Relaxed);
        let above = KEPT_IDLE.max(2 * left);
        self.trim_above.store(above, Ordering::Relaxed);
    }
}
