//! Groups of a queue, and counted references to them.
//!
//! A group's references are counted under its own lock. On the plain path the thread that makes or
//! ends one holds this lock anyway, so counting costs no further read-modify-write. The groups that
//! have not ended are listed; the list counts as a reference, too.
//!
//! Invariant: `refs` is the number of [`GroupRef`]s, plus one while the group is listed. Ending the
//! last reference removes the group from its page.

#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::{self, NonNull};

use crate::error::Stale;
use crate::slab::{Pages, context_of, key_of, remove};
use crate::sync::Arc;

use super::{Group, GroupKey, Mailbox, prefetch};

/// A counted reference to a group of a queue `Q`.
pub(crate) struct GroupRef<T, Q>(NonNull<Group<T>>, PhantomData<fn() -> Q>);

// SAFETY: what is shared by it is under the group's lock, and a message that it
// drops at last may be dropped by any thread.
unsafe impl<T: Send, Q> Send for GroupRef<T, Q> {}
// SAFETY: as above.
unsafe impl<T: Send, Q> Sync for GroupRef<T, Q> {}

// No user code runs under the group's lock.
impl<T, Q> UnwindSafe for GroupRef<T, Q> {}
impl<T, Q> RefUnwindSafe for GroupRef<T, Q> {}

impl<T, Q> Deref for GroupRef<T, Q> {
    type Target = Group<T>;

    #[inline]
    fn deref(&self) -> &Group<T> {
        // SAFETY: the group stays in its page while a reference is counted.
        unsafe { self.0.as_ref() }
    }
}

impl<T, Q> Clone for GroupRef<T, Q> {
    fn clone(&self) -> Self {
        self.another(&mut self.lock())
    }
}

impl<T, Q> Drop for GroupRef<T, Q> {
    fn drop(&mut self) {
        let mut mailbox = self.lock();
        mailbox.refs -= 1;
        let last = mailbox.refs == 0;
        drop(mailbox);
        if last {
            // SAFETY: this was the last reference, and it is not listed.
            unsafe { remove(self.0) };
        }
    }
}

impl<T, Q> GroupRef<T, Q> {
    /// The group's name.
    pub(crate) fn key(&self) -> GroupKey {
        // SAFETY: the group is in a page.
        GroupKey(unsafe { key_of(self.0) })
    }

    /// The queue with which its page was made. It may be gone.
    #[inline]
    pub(super) fn queue(&self) -> *const Q {
        // SAFETY: the group is in a page.
        unsafe { context_of(self.0) }.cast()
    }

    /// Makes another reference, under the group's lock.
    ///
    /// # Panics
    ///
    /// If the mailbox is another group's, or there are 2^32 references.
    #[inline(always)]
    pub(crate) fn another(&self, mailbox: &mut Mailbox<T>) -> Self {
        assert!(self.has(mailbox), "the mailbox of this group");
        mailbox.refs = mailbox.refs.checked_add(1).expect("the count fits");
        Self(self.0, PhantomData)
    }

    /// The same reference as a local variable of the caller: it is read only once, however often it
    /// is used.
    #[inline(always)]
    pub(crate) fn local(&self) -> impl Deref<Target = Self> {
        ManuallyDrop::new(Self(self.0, PhantomData))
    }

    /// Prefetches the group, to change it soon.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch::to_change(self.0.as_ptr());
    }

    /// Whether `mailbox` is this group's.
    #[inline]
    pub(super) fn has(&self, mailbox: &Mailbox<T>) -> bool {
        let (start, place) = (self.0.addr().get(), ptr::from_ref(mailbox).addr());
        place.wrapping_sub(start) < size_of::<Group<T>>()
    }

    /// Ends a reference under the group's lock.
    ///
    /// # Panics
    ///
    /// If the mailbox is another group's, or this is the last reference.
    #[inline]
    pub(crate) fn end(self, mailbox: &mut Mailbox<T>) {
        assert!(self.has(mailbox), "the mailbox of this group");
        assert!(mailbox.refs > 1, "the group is listed");
        mailbox.refs -= 1;
        std::mem::forget(self);
    }

    /// Locks the group and calls `f`. Ends the reference under the same lock if `f` returns a
    /// value.
    ///
    /// # Panics
    ///
    /// If `f` returns a value and this is the last reference.
    #[inline]
    pub(crate) fn end_if<R>(
        self,
        f: impl FnOnce(&Self, &mut Mailbox<T>) -> Option<R>,
    ) -> Result<R, Self> {
        let this = ManuallyDrop::new(self);
        let mut mailbox = this.lock();
        if let Some(result) = f(&this, &mut mailbox) {
            assert!(mailbox.refs > 1, "the group is listed");
            mailbox.refs -= 1;
            return Ok(result);
        }
        drop(mailbox);
        Err(ManuallyDrop::into_inner(this))
    }
}

impl<T, Q> fmt::Debug for GroupRef<T, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupRef({:?})", self.key())
    }
}

/// The groups of a queue that have not ended.
pub(crate) struct Groups<T, Q> {
    pages: Arc<Pages<Group<T>>>,
    len: usize,
    /// How many groups have a pin; and the queue, while any has. See `pinned`.
    pub(super) pinned: usize,
    pub(super) queue: Option<Arc<Q>>,
}

impl<T, Q> Groups<T, Q> {
    pub(crate) fn new() -> Self {
        Self {
            pages: Arc::new(Pages::new()),
            len: 0,
            pinned: 0,
            queue: None,
        }
    }

    /// How many groups are listed.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Finds these groups by name for code that does not own the list.
    pub(crate) fn names(&self) -> Names<T, Q> {
        Names(self.pages.clone(), PhantomData)
    }

    /// Lists a new group.
    pub(super) fn list(&mut self, group: Group<T>, queue: &Arc<Q>) -> GroupRef<T, Q> {
        group.lock().refs = 2;
        self.len += 1;
        let context = Arc::as_ptr(queue).cast();
        GroupRef(self.pages.insert(group, context), PhantomData)
    }

    /// Removes a group from the list.
    pub(crate) fn remove(&mut self, group: &GroupRef<T, Q>, mailbox: &mut Mailbox<T>) {
        assert!(group.has(mailbox), "the mailbox of this group");
        // SAFETY: the group is in a page.
        if unsafe { self.pages.unlist(group.0) } {
            // Not the last: `group` is one as well.
            mailbox.refs -= 1;
            self.len -= 1;
        }
    }

    /// The listed group of this name. The caller must not hold its lock.
    pub(crate) fn get(&self, key: GroupKey) -> Option<GroupRef<T, Q>> {
        self.pages.with(key.0, |group| group).map(counted)
    }

    /// All listed groups, in the order of their names. The caller must hold the lock of none.
    pub(crate) fn all(&self) -> Vec<GroupRef<T, Q>> {
        self.from(0, usize::MAX)
    }

    /// The listed groups from this index on: at least `most`, if there are as many, and less than a
    /// page more. The locks as for [`all`](Self::all).
    pub(crate) fn from(&self, first: u32, most: usize) -> Vec<GroupRef<T, Q>> {
        let found = self.pages.listed(first, most);
        found.into_iter().map(counted).collect()
    }
}

/// Finds listed groups by name, without the lock that protects their list.
pub(crate) struct Names<T, Q>(Arc<Pages<Group<T>>>, PhantomData<fn() -> Q>);

impl<T, Q> Names<T, Q> {
    /// The listed group of this name. `None` if its lock is held: waiting for it is not allowed
    /// here, because groups are removed from the list while their lock is held.
    pub(crate) fn try_get(&self, key: GroupKey) -> Option<Result<GroupRef<T, Q>, Stale>> {
        let found = self.0.with(key.0, |group| {
            // Not counted: the group exists while it is listed.
            let listed = ManuallyDrop::new(GroupRef(group, PhantomData));
            let mut mailbox = listed.mailbox.try_lock()?;
            Some(listed.another(&mut mailbox))
        });
        match found {
            Some(group) => group.map(Ok),
            None => Some(Err(Stale)),
        }
    }
}

/// A reference to a listed group. Groups are removed from the list only through `&mut`.
fn counted<T, Q>(group: NonNull<Group<T>>) -> GroupRef<T, Q> {
    #[cfg(all(test, not(any(loom, shuttle))))]
    super::tests::step();
    let this = ManuallyDrop::new(GroupRef(group, PhantomData));
    this.deref().clone()
}

impl<T, Q> Drop for Groups<T, Q> {
    fn drop(&mut self) {
        for group in self.all() {
            self.remove(&group, &mut group.lock());
        }
    }
}
