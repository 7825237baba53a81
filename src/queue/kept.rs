//! What a lane does for those who keep groups by a key.
//!
//! Protocol: a keeper looks a key up under a lock of its own, and while it holds
//! that, sends here, which takes the group's lock or the policy lock. It pins
//! the groups that it keeps.

use crate::group::Phase;
use crate::limit::Limit;
use crate::sync::{Arc, Ordering, WakeArc, unique};

use super::capacity::{Capacity, Permits};
use super::handles::{GroupId, Lane};
use super::refuse::{LaneError, SendError};
use super::shared::Shared;
use super::{GroupRef, Observer};

/// What the groups of a keeper are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) limit: Limit,
    pub(crate) level: u8,
}

/// The queue of a lane, for a keeper that outlives it.
pub(crate) struct Keeping<T> {
    shared: Arc<Shared<T>>,
}

/// What a send into a kept group came to.
pub(crate) enum Kept<T> {
    /// Sent, and this is to be done under no lock.
    Sent(After),
    /// Not the plain case.
    Special(T),
}

/// What is to be done after a send.
pub(crate) struct After(super::submissions::Posted);

impl<T> Lane<T> {
    /// Its queue's.
    #[inline]
    pub(crate) fn capacity(&self) -> &Capacity {
        &self.shared().capacity
    }

    /// Its queue.
    pub(crate) fn keeping(&self) -> Keeping<T> {
        Keeping {
            shared: Arc::clone(self.shared()),
        }
    }

    /// Has a keeper told when it might forget what is idle. Its number.
    pub(crate) fn observe(&self, keeper: WakeArc<dyn Observer>) -> u64 {
        let number = unique();
        self.shared()
            .with_state(|state| state.observers.insert(number, keeper));
        number
    }

    /// Tells a keeper nothing more; it is to be dropped under no lock.
    pub(crate) fn unobserve(&self, number: u64) -> Option<WakeArc<dyn Observer>> {
        self.shared()
            .with_state(|state| state.observers.remove(&number))
    }

    /// A group of this shape, with one pin.
    pub(crate) fn kept_group(&self, shape: Shape) -> Result<GroupRef<T>, LaneError> {
        self.shared().with_state(|state| {
            state.open()?;
            Ok(state.add_group(self.key(), shape.limit, shape.level)?)
        })
    }

    /// Sends in the plain case.
    #[inline]
    pub(crate) fn send_kept(&self, group: &GroupRef<T>, message: T) -> Kept<T> {
        match self.shared().send_plain(group, || false, message) {
            Ok(posted) => Kept::Sent(After(posted)),
            Err(message) => Kept::Special(message),
        }
    }

    /// Does what is left to do after a send.
    #[inline]
    pub(crate) fn after(&self, after: After) {
        self.shared().posted(after.0);
    }

    /// Sends by every rule what has its permit; `held` is dropped when it has its
    /// place.
    pub(crate) fn send_kept_in<H>(
        &self,
        group: &GroupRef<T>,
        tier: Option<u32>,
        message: T,
        permits: Permits<'_>,
        held: H,
    ) -> Result<(), SendError<T>> {
        let never = || false;
        let sent = self
            .shared()
            .send_special(group, never, (tier, [message]), (permits, held));
        sent.map_err(SendError::single)
    }

    /// Tries whether groups of this shape can be made.
    pub(crate) fn try_shape(&self, shape: Shape) -> Result<(), LaneError> {
        self.group(shape.limit, shape.level).map(drop)
    }

    /// The name of a kept group.
    pub(crate) fn kept_id(&self, group: &GroupRef<T>) -> GroupId {
        GroupId::new(self.shared(), group.key)
    }

    /// Bumps a kept group.
    pub(crate) fn bump_kept(&self, group: &GroupRef<T>, level: u8) {
        self.shared().bump(group, level);
    }
}

impl<T> Keeping<T> {
    /// Gives up the pin of a kept group.
    pub(crate) fn unpin(&self, group: &GroupRef<T>) {
        self.shared.unpin(group);
    }

    /// So many more groups are kept.
    pub(crate) fn count(&self, more: usize) {
        // Relaxed: a hint when to trim.
        self.shared.kept.fetch_add(more, Ordering::Relaxed);
    }

    /// So many fewer.
    pub(crate) fn uncount(&self, fewer: usize) {
        self.shared.kept.fetch_sub(fewer, Ordering::Relaxed);
    }
}

/// Whether nothing of a group waits or is in flight.
pub(crate) fn is_idle<T>(group: &GroupRef<T>) -> bool {
    let mailbox = group.lock();
    mailbox.phase == Phase::Idle && mailbox.detached == 0
}

/// How many wait in a group.
pub(crate) fn waiting_in<T>(group: &GroupRef<T>) -> usize {
    let _mailbox = group.lock();
    group.waiting() as usize
}

/// Idle groups that are not worth forgetting.
pub(crate) const KEPT_IDLE: usize = 1024;

impl<T> Shared<T> {
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
