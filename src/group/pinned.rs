//! Pins: references to a group that also keep its queue alive, and find it.
//!
//! A pin is as small as a reference, because the group's page knows the queue. The groups of a
//! queue own one count of it while any of them is pinned.
//!
//! Invariants, under the queue's policy lock and the group's:
//! 1. A group counts as many pins as it has [`Pinned`]s.
//! 2. `Groups::queue` is set exactly while a group has a pin.
//!
//! So the queue of a [`Pinned`] is alive. A pin that may be the last one is removed in
//! [`KeepsGroups::unpin`]; the thread that drops the pin calls it with a count of its own.

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::ops::Deref;

use crate::sync::Arc;

use super::reference::{GroupRef, Groups};
use super::{Group, Mailbox, UNPINNED};

/// The owner of groups: a queue.
pub(crate) trait KeepsGroups<T>: Sized {
    /// Calls [`Groups::unpin`] with this pin.
    fn unpin(this: &Arc<Self>, pin: Pin<'_, T, Self>);
}

/// A pin that is about to be removed.
pub(crate) struct Pin<'a, T, Q> {
    pub(crate) group: &'a GroupRef<T, Q>,
}

/// One pin of a group.
pub(crate) struct Pinned<T, Q: KeepsGroups<T>>(GroupRef<T, Q>);

// SAFETY: as a reference; and the queue, which is shared by it, may be dropped
// with it.
unsafe impl<T: Send, Q: KeepsGroups<T> + Send + Sync> Send for Pinned<T, Q> {}
// SAFETY: as above.
unsafe impl<T: Send, Q: KeepsGroups<T> + Send + Sync> Sync for Pinned<T, Q> {}

impl<T> Mailbox<T> {
    /// How many pins keep the group even if nothing of it is left.
    pub(crate) fn pins(&self) -> u32 {
        let more = self.rare.as_ref().map_or(0, |rare| rare.more_pins);
        u32::from(self.flags & UNPINNED == 0) + more
    }

    fn add_pin(&mut self) {
        if self.flags & UNPINNED != 0 {
            self.flags &= !UNPINNED;
        } else {
            self.rare().more_pins += 1;
        }
    }

    fn remove_pin(&mut self) {
        match &mut self.rare {
            Some(rare) if rare.more_pins > 0 => rare.more_pins -= 1,
            _ => self.flags |= UNPINNED,
        }
    }
}

impl<T, Q: KeepsGroups<T>> Deref for Pinned<T, Q> {
    type Target = GroupRef<T, Q>;

    #[inline]
    fn deref(&self) -> &GroupRef<T, Q> {
        &self.0
    }
}

impl<T, Q: KeepsGroups<T>> Pinned<T, Q> {
    /// The group's queue.
    #[inline]
    pub(crate) fn queue(&self) -> &Q {
        // SAFETY: by the invariants the queue is there, and this was made from it.
        unsafe { &*self.0.queue() }
    }

    /// A new count of the group's queue.
    pub(crate) fn shared(&self) -> Arc<Q> {
        let queue = self.0.queue();
        // SAFETY: as above; the count that is taken over was just made.
        unsafe {
            Arc::increment_strong_count(queue);
            Arc::from_raw(queue)
        }
    }

    /// Another pin of the group.
    pub(crate) fn another(&self) -> Self {
        let pin = self.0.pin(&mut self.0.lock());
        pin.expect("this is one")
    }

    /// Locks the group and calls `f`. Removes this pin under the same lock if `f` says so and it is
    /// not the last one. Returns what `f` gave, and the pin unless it was removed.
    #[inline]
    pub(crate) fn end_if<R>(
        self,
        f: impl FnOnce(&Q, &GroupRef<T, Q>, &mut Mailbox<T>) -> (R, bool),
    ) -> (R, Option<Self>) {
        let this = ManuallyDrop::new(self);
        let mut mailbox = this.lock();
        let (result, ends) = f(this.queue(), &this.0, &mut mailbox);
        if ends && mailbox.pins() > 1 {
            mailbox.remove_pin();
            mailbox.refs -= 1;
            return (result, None);
        }
        drop(mailbox);
        (result, Some(ManuallyDrop::into_inner(this)))
    }
}

impl<T, Q: KeepsGroups<T>> Drop for Pinned<T, Q> {
    fn drop(&mut self) {
        let mut mailbox = self.0.lock();
        if mailbox.pins() > 1 {
            mailbox.remove_pin();
            return;
        }
        drop(mailbox);
        let queue = self.shared();
        Q::unpin(&queue, Pin { group: &self.0 });
    }
}

impl<T, Q: KeepsGroups<T>> GroupRef<T, Q> {
    /// Another pin of a group that has one, else `None`. The caller holds the group's lock.
    #[inline(always)]
    pub(crate) fn pin(&self, mailbox: &mut Mailbox<T>) -> Option<Pinned<T, Q>> {
        let pinned = mailbox.pins() > 0;
        pinned.then(|| {
            let another = self.another(mailbox);
            mailbox.add_pin();
            Pinned(another)
        })
    }
}

impl<T, Q: KeepsGroups<T>> Groups<T, Q> {
    /// Lists a new group, with a pin. `queue` owns these groups: it is the same at every call.
    pub(crate) fn add(&mut self, group: Group<T>, queue: &Arc<Q>) -> Pinned<T, Q> {
        self.keep(queue);
        Pinned(self.list(group, queue))
    }

    /// Pins a group, even if it has no pin yet. The caller holds the group's lock.
    pub(crate) fn pin(
        &mut self,
        group: &GroupRef<T, Q>,
        mailbox: &mut Mailbox<T>,
        queue: &Arc<Q>,
    ) -> Pinned<T, Q> {
        assert!(group.queue() == Arc::as_ptr(queue), "a group of this queue");
        let another = group.another(mailbox);
        if mailbox.pins() == 0 {
            self.keep(queue);
        }
        mailbox.add_pin();
        Pinned(another)
    }

    /// Removes a pin. The caller holds the group's lock.
    pub(crate) fn unpin(&mut self, pin: Pin<'_, T, Q>, mailbox: &mut Mailbox<T>) {
        assert!(pin.group.has(mailbox), "the mailbox of this group");
        mailbox.remove_pin();
        if mailbox.pins() == 0 {
            self.pinned -= 1;
        }
        if self.pinned == 0 {
            // Not the last count: the thread that drops the pin has one.
            self.queue = None;
        }
    }

    fn keep(&mut self, queue: &Arc<Q>) {
        self.pinned += 1;
        let kept = self.queue.get_or_insert_with(|| Arc::clone(queue));
        assert!(Arc::ptr_eq(kept, queue), "the groups of one queue");
    }
}
