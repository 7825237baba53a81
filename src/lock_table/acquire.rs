//! The wait for locks.

use std::hash::{BuildHasher, RandomState};
use std::task::{Context, Poll, Waker};

use super::Resource;
use super::error::{LockError, Owners};
use super::index::Room;
use super::owner::Owner;
use super::wait_table::{OwnerState, WaitTable};
use crate::modes::Mode;
use crate::shown::shows;
use crate::trace;
use crate::wait::{Op, SELDOM, Wait, WakeBatch, back_off, look_again, look_twice, sealed};

/// The wait of [`Owner::lock`] and [`Owner::lock_many`].
pub struct Lock<'a, K: Resource, S: BuildHasher = RandomState> {
    /// Has the path of this request.
    pub(super) owner: &'a mut Owner<K, S>,
    /// What has been asked for and is not in the path yet.
    pub(super) asked: Option<(K, Mode)>,
    /// It is a request for no resources.
    pub(super) is_empty: bool,
}

impl<K: Resource, S: BuildHasher> Owner<K, S> {
    /// Waits for `mode` on the resource, and for the intents that it needs on every ancestor.
    ///
    /// Ancestors are locked first, from the root down. If the mode held on the resource covers the
    /// request, it is granted without touching the table: no lock is taken and no queue looked at.
    /// So it is if the owner holds nothing of the resource and the mode held on an ancestor covers
    /// the request. The resource then rests on that ancestor, of several on the one nearest to the
    /// root, until it is released: stronger requests are free as long as that ancestor covers them,
    /// too. The grant is recorded all the same, and must be released.
    ///
    /// Requests wait in a queue per resource, strictly first come, first served: a request waits if
    /// it conflicts with what others hold or with a request ahead. Only an owner that already holds
    /// the resource goes ahead, just before the first request that waits for what it holds. So a
    /// request waits for holders and those ahead; others do not overtake it without end, nor at all
    /// unless the table has a [bypass](super::LockTable::with_bypass). One exception: a holder that
    /// goes ahead of the waiting request of another holder also goes ahead of all behind that. If
    /// such holders give up their requests and release again and again, those behind can wait for
    /// ever.
    ///
    /// A request takes its position when it joins the queue: at the first poll. A thread that
    /// blocks without a deadline first spins for about two microseconds, as long as nobody waits
    /// there.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`] if the wait closed a cycle, or another one did later, and this owner
    /// was chosen to give up: lowest priority, then fewest [retries](Self::retry), then fewest
    /// locks in the table, then youngest. [`Closed`](LockError::Closed), even if the request would
    /// be covered; [`TooDeep`](LockError::TooDeep); [`OwnAncestor`](LockError::OwnAncestor). The
    /// owner then holds what it held before, and no intent for what it did not get.
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped or times out leaves nothing behind, and every request that can be
    /// granted without it is granted at once. To end it from outside, as for a session that is
    /// killed, wait for the lock [or](Wait::or) a signal.
    ///
    /// # Panics
    ///
    /// `clone` runs in the call, and at the first poll with hashing and `parent`, before anything
    /// is locked; `Eq` runs under the table's locks as well, and must not use the table. If one of
    /// them panics, nothing has changed. If the drop of a name panics, the request may be granted
    /// all the same; polled again, the wait gives its result. If two names' drops panic at once, as
    /// in a [`release_all`](Owner::release_all), the process aborts.
    pub fn lock(&mut self, resource: &K, mode: Mode) -> Wait<Lock<'_, K, S>> {
        self.forget_asked();
        let asked = Some((resource.clone(), mode));
        Wait::new(Lock::of(self, asked))
    }

    /// [`lock`](Self::lock) of several resources, all or none.
    ///
    /// Where the requests share a resource or an ancestor, their modes are joined. Resources are
    /// locked by depth and hash. So owners that hold nothing else and lock only by this call do not
    /// deadlock, unless two resources of one depth have the same hash; that deadlock is detected
    /// like any other. A request for no resources is granted at once, unless the table is
    /// closed.
    ///
    /// # Errors, cancel safety
    ///
    /// As for [`lock`](Self::lock).
    ///
    /// # Panics
    ///
    /// As for [`lock`](Self::lock), but hashing, `parent`, `clone` and the iterator run in the
    /// call, before anything is locked. Only the name of a root whose kept intent must be given up
    /// is cloned at the first poll.
    pub fn lock_many(
        &mut self,
        resources: impl IntoIterator<Item = (K, Mode)>,
    ) -> Wait<Lock<'_, K, S>> {
        self.abort_pending();
        self.plan(resources, None);
        let mut lock = Lock::of(self, None);
        lock.is_empty = lock.owner.path.is_empty();
        Wait::new(lock)
    }

    /// [`lock`](Self::lock) if that need not wait. It overtakes waiters only where `lock` does.
    ///
    /// # Errors
    ///
    /// [`LockError::WouldBlock`], [`Closed`](LockError::Closed),
    /// [`TooDeep`](LockError::TooDeep), [`OwnAncestor`](LockError::OwnAncestor).
    pub fn try_lock(&mut self, resource: &K, mode: Mode) -> Result<(), LockError<K>> {
        self.abort_pending();
        let asked = Some((resource.clone(), mode));
        Lock::of(self, asked).try_now()
    }
}

impl<'a, K: Resource, S: BuildHasher> Lock<'a, K, S> {
    pub(super) const fn of(owner: &'a mut Owner<K, S>, asked: Option<(K, Mode)>) -> Self {
        Self {
            owner,
            asked,
            is_empty: false,
        }
    }

    /// Asks for this resource next, whatever is left of an earlier request.
    pub(super) fn ask(&mut self, resource: &K, mode: Mode) {
        self.owner.forget_asked();
        self.asked = Some((resource.clone(), mode));
    }

    /// Whether nothing is left to be taken of what was asked for: it was granted, or cannot be.
    pub(super) fn is_settled(&self) -> bool {
        self.asked.is_none() && self.owner.path.is_empty()
    }

    /// Takes what was asked for, if it need not wait. After an error the drop puts back what was
    /// taken, and so does [`ask`](Self::ask).
    pub(super) fn try_now(&mut self) -> Result<(), LockError<K>> {
        match self.take()? {
            Room::Free => Ok(()),
            Room::Held | Room::Kept | Room::Revoked => Err(LockError::WouldBlock),
            Room::Busy => match self.acquire(&mut None) {
                Poll::Ready(result) => result,
                Poll::Pending => Err(LockError::WouldBlock),
            },
        }
    }

    /// Takes the whole path without the wait table, or changes nothing.
    #[inline]
    fn take(&mut self) -> Result<Room, LockError<K>> {
        if self.owner.lock_plain(&mut self.asked) {
            return Ok(Room::Free);
        }
        self.take_path()
    }

    #[inline(never)]
    fn take_path(&mut self) -> Result<Room, LockError<K>> {
        // Granted by a poll that panicked: then a close comes too late.
        let is_granted = self.is_settled() && !self.is_empty;
        let owner = &mut *self.owner;
        if let Some((key, mode)) = &self.asked {
            owner.plan([(key.clone(), *mode)], Some(owner.hash));
            self.asked = None;
        }
        if let Some(error) = owner.path.unfit.take() {
            return Err(error);
        }
        if owner.shared.is_closed() && !is_granted {
            return Err(LockError::Closed);
        }
        if owner.path.gives_up {
            owner.give_up_kept();
        }
        let mut taken = owner.take();
        if taken == Room::Revoked {
            owner.give_up_kept();
            taken = owner.take();
        }
        if taken == Room::Free {
            owner.path.commit(&mut owner.holds);
        }
        owner.holds.gone.drop_all();
        Ok(taken)
    }

    /// Retries for a moment, unless somebody waits already.
    #[cold]
    fn back_off(&mut self) -> Option<Result<(), LockError<K>>> {
        let look = || match self.take() {
            Ok(Room::Free) => Some(Some(Ok(()))),
            Ok(Room::Busy) => Some(None),
            Ok(Room::Held | Room::Kept | Room::Revoked) => None,
            Err(error) => Some(Some(Err(error))),
        };
        back_off(SELDOM, || true, look).flatten()
    }

    /// Takes what can be had now, with the wait table; enqueues the rest if there is a waker.
    fn acquire(&mut self, waker: &mut Option<Waker>) -> Poll<Result<(), LockError<K>>> {
        let owner = &mut *self.owner;
        if owner.path.keeps {
            owner.give_up_kept();
        }
        // From here on the table may hold something that is not in our holds.
        let begins = (!std::mem::replace(&mut owner.pending, true)).then(|| OwnerState {
            born: owner.born,
            priority: owner.priority(),
            retries: owner.retries,
            held: owner.holds.held(),
            wait: None,
            done: Vec::new(),
        });
        let (id, shared) = (owner.id, &*owner.shared);
        let (path, gone) = (&mut owner.path, &mut owner.holds.gone);
        let mut queued = None;
        let mut advance = |waits: &mut WaitTable<K>, wakes: &mut WakeBatch| {
            match waits.look(id, waker, wakes) {
                Some(Poll::Pending) => return None,
                Some(Poll::Ready(Ok(()))) => path.granted(),
                Some(Poll::Ready(ended)) => return Some(ended),
                None => {}
            }
            if shared.is_closed() {
                waits.abort(id);
                return Some(Err(LockError::Closed));
            }
            let (mut locked, _) = path.lock(&shared.shards, id, gone);
            let Some(busy) = path.advance(waits, &mut locked, id) else {
                return Some(Ok(()));
            };
            let waker = waker.take()?;
            queued = Some(busy.1);
            waits.enqueue(&mut locked, (id, busy), waker);
            drop(locked);
            waits.break_cycles(id, wakes).map(Err)
        };
        let (ended, deferred) = shared.with_state(|waits, wakes| {
            if let Some(state) = begins {
                waits.owners.insert(id, state);
            }
            let ended = advance(waits, wakes);
            if ended.is_some() {
                waits.owners.remove(&id);
            }
            ended
        });
        let Some(result) = ended else {
            if let Some(mode) = queued {
                trace::owner_blocked(&owner.id(), &mode);
            }
            return Poll::Pending;
        };
        owner.pending = false;
        match result {
            Ok(()) => path.commit(&mut owner.holds),
            Err(error) => {
                if let LockError::Deadlock(report) = &error {
                    trace::deadlock(&report.victim, &Owners(&report.cycle));
                }
                // If a drop below panics, the next poll finds it.
                path.unfit = Some(error);
            }
        }
        drop(deferred);
        owner.holds.gone.drop_all();
        Poll::Ready(owner.path.unfit.take().map_or(Ok(()), Err))
    }
}

/// Nothing in it is ever pinned.
impl<K: Resource, S: BuildHasher> Unpin for Lock<'_, K, S> {}

impl<K: Resource, S: BuildHasher> sealed::Sealed for Lock<'_, K, S> {}

impl<K: Resource, S: BuildHasher> Op for Lock<'_, K, S> {
    type Output = Result<(), LockError<K>>;

    #[inline]
    fn at_once(&mut self) -> Option<Self::Output> {
        // A first poll that panicked may have joined a queue.
        if self.owner.pending {
            return None;
        }
        match self.take() {
            Ok(Room::Free) => Some(Ok(())),
            Ok(Room::Held | Room::Busy | Room::Kept | Room::Revoked) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn attempt(&mut self) -> Option<Self::Output> {
        if self.owner.pending {
            return None;
        }
        self.at_once().or_else(|| self.back_off())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(result) = self.at_once() {
            return Poll::Ready(result);
        }
        if !self.owner.pending {
            // It most likely has to wait.
            return look_again(cx, |_, waker| Some(self.acquire(waker)));
        }
        look_twice(cx, |_, waker| {
            let needs_none = waker.is_some();
            let polled = self.acquire(waker);
            (needs_none || polled.is_ready()).then_some(polled)
        })
    }

    fn cancel(&mut self) {
        self.owner.abort_pending();
    }
}

/// Aborts also after a poll that panicked, and for `try_lock`.
impl<K: Resource, S: BuildHasher> Drop for Lock<'_, K, S> {
    #[inline]
    fn drop(&mut self) {
        self.owner.abort_pending();
        self.owner.path.clear();
    }
}

shows!([K: Resource, S: BuildHasher] Lock<'_, K, S>, |this| owner: this.owner);
