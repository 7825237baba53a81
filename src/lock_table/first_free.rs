//! The first resource of a list that can be had now, or a wait for the one at its head.

use std::hash::{BuildHasher, RandomState};
use std::task::{Context, Poll};

use super::Resource;
use super::acquire::Lock;
use super::error::LockError;
use super::owner::Owner;
use crate::modes::Mode;
use crate::shown::shows;
use crate::wait::{Op, Wait, sealed};

/// The wait of [`Owner::first_free_or_wait`](super::Owner::first_free_or_wait).
pub struct FirstFree<'a, K: Resource, S: BuildHasher = RandomState> {
    lock: Lock<'a, K, S>,
    /// None once they have been looked through: then it waits for the first.
    all: Option<Vec<K>>,
    /// The one that is next.
    at: usize,
    /// It has been asked for.
    asked: bool,
    mode: Mode,
}

impl<K: Resource, S: BuildHasher> Owner<K, S> {
    /// Skip locked: locks the first of these resources that can be had, and returns its position.
    ///
    /// They are tried one by one. A release of one that was passed already is not seen. One that
    /// the owner holds already can be had in that mode, and in another if nobody is in its way. One
    /// whose ancestor would have to be waited for cannot: to skip rows, but wait for their table,
    /// [`lock`](Self::lock) the table first, in the mode that [the rows need](Mode::parent_needs).
    ///
    /// # Errors
    ///
    /// As for [`try_lock`](Self::try_lock), but not `WouldBlock`.
    pub fn first_free<'k>(
        &mut self,
        resources: impl IntoIterator<Item = &'k K>,
        mode: Mode,
    ) -> Result<Option<usize>, LockError<K>>
    where
        K: 'k,
    {
        for (position, resource) in resources.into_iter().enumerate() {
            match self.try_lock(resource, mode) {
                Ok(()) => return Ok(Some(position)),
                Err(LockError::WouldBlock) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Locks the first of these resources that can be had now, and returns its position.
    ///
    /// If there is none, it waits for the first in the list as [`lock`](Self::lock) does, and
    /// returns 0. For an empty list it returns `None`, even if the table is closed. While it
    /// waits, it does not take another resource that is released: so it waits in one queue only,
    /// and has its turn there.
    ///
    /// ```
    /// # use conversant::lock_table::{LockError, LockTable, Resource};
    /// # use conversant::modes::Mode;
    /// # #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    /// # struct Row(u32);
    /// # impl Resource for Row {
    /// #     fn parent(&self) -> Option<Self> {
    /// #         None
    /// #     }
    /// # }
    /// let locks = LockTable::new();
    /// let (mut a, mut b) = (locks.owner(0), locks.owner(0));
    /// a.lock(&Row(1), Mode::X).wait()?;
    /// assert_eq!(b.first_free_or_wait([Row(1), Row(2)], Mode::X).wait()?, Some(1));
    /// # Ok::<(), LockError<Row>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`lock`](Self::lock).
    ///
    /// # Cancel safety
    ///
    /// As for [`lock`](Self::lock).
    pub fn first_free_or_wait(
        &mut self,
        resources: impl IntoIterator<Item = K>,
        mode: Mode,
    ) -> Wait<FirstFree<'_, K, S>> {
        let all = Some(resources.into_iter().collect());
        Wait::new(FirstFree {
            lock: Lock::of(self, None),
            all,
            at: 0,
            asked: false,
            mode,
        })
    }
}

/// Nothing in it is ever pinned.
impl<K: Resource, S: BuildHasher> Unpin for FirstFree<'_, K, S> {}

impl<K: Resource, S: BuildHasher> sealed::Sealed for FirstFree<'_, K, S> {}

impl<K: Resource, S: BuildHasher> Op for FirstFree<'_, K, S> {
    type Output = Result<Option<usize>, LockError<K>>;

    fn at_once(&mut self) -> Option<Self::Output> {
        let all = self.all.as_ref()?;
        let Some(head) = all.first() else {
            return Some(Ok(None));
        };
        while let Some(next) = all.get(self.at) {
            // The drop of a name may have panicked after the grant.
            if !self.asked || !self.lock.is_settled() {
                self.asked = false;
                self.lock.ask(next, self.mode);
                self.asked = true;
            }
            match self.lock.try_now() {
                Err(LockError::WouldBlock) => (self.at, self.asked) = (self.at + 1, false),
                tried => return Some(tried.map(|()| Some(self.at))),
            }
        }
        self.lock.ask(head, self.mode);
        self.all = None;
        None
    }

    fn attempt(&mut self) -> Option<Self::Output> {
        let found = self.at_once();
        found.or_else(|| Some(self.lock.attempt()?.map(|()| Some(0))))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(found) = self.at_once() {
            return Poll::Ready(found);
        }
        self.lock.poll(cx).map(|granted| granted.map(|()| Some(0)))
    }

    fn cancel(&mut self) {
        self.lock.cancel();
    }
}

shows!([K: Resource, S: BuildHasher] FirstFree<'_, K, S>, |this| owner: this.lock.owner);
