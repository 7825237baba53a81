//! A mutex whose guard carries what must happen after it.
//!
//! State: the user-free state `S` under one mutex; in each session the guard,
//! and behind it the wakers gathered while it was held.
//!
//! Protocol: lock, change `S`, push into the batch whoever must look again,
//! discard wakers that must not be dropped here; then drop the session.
//!
//! Invariants:
//! 1. The mutex is unlocked before the first waker is woken or dropped: `guard`
//!    is declared before the others, and fields are dropped in the order they
//!    are declared.
//! 2. A session always holds its mutex as far as its owner can see.
//!
//! Memory ordering: none of its own; the mutex publishes `S`.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::task::Waker;

use super::batch::{Spare, WakeBatch};
use crate::sync::{Mutex, MutexGuard};

/// State under a mutex that is only ever held as a [`Session`].
pub(crate) struct Guarded<S> {
    state: Mutex<S>,
}

impl<S> Guarded<S> {
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) const fn new(state: S) -> Self {
        Self {
            state: Mutex::new(state),
        }
    }

    #[cfg(any(loom, shuttle))]
    pub(crate) fn new(state: S) -> Self {
        Self {
            state: Mutex::new(state),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Session<'_, S> {
        Session::over(self.state.lock())
    }

    /// The state, for a step that wakes nobody. [`Session::over`] makes it a
    /// session if it has to after all.
    #[inline]
    pub(crate) fn lock_plain(&self) -> MutexGuard<'_, S> {
        self.state.lock()
    }

    /// The session if nobody holds the mutex: what `Debug` uses.
    pub(crate) fn try_lock(&self) -> Option<Session<'_, S>> {
        self.state.try_lock().map(Session::over)
    }
}

/// The state, locked, with what is to be done after unlocking.
#[must_use]
pub(crate) struct Session<'a, S> {
    // The order of these fields is invariant 1. Wakes come before drops: somebody
    // waits for the former.
    guard: MutexGuard<'a, S>,
    wakes: WakeBatch,
    discarded: Vec<Spare>,
}

impl<'a, S> Session<'a, S> {
    #[inline]
    pub(crate) fn over(guard: MutexGuard<'a, S>) -> Self {
        Self {
            guard,
            wakes: WakeBatch::new(),
            discarded: Vec::new(),
        }
    }

    /// The state and the batch, borrowed side by side.
    pub(crate) fn parts(&mut self) -> (&mut S, &mut WakeBatch) {
        (&mut *self.guard, &mut self.wakes)
    }

    /// Has a waker dropped after the mutex is unlocked, at the session's end.
    pub(crate) fn discard_waker(&mut self, waker: Option<Waker>) {
        self.discarded.extend(waker.map(Spare::from));
    }

    /// Unlocks, wakes who has gathered, and locks again. What was read from the
    /// state before may no longer hold.
    #[cold]
    pub(crate) fn flush(&mut self) {
        let wakes = &mut self.wakes;
        MutexGuard::unlocked(&mut self.guard, || wakes.fire());
    }

    /// Calls `step` until it says that nothing is left to do, and flushes
    /// whenever it says otherwise, since the batch is full.
    #[inline]
    pub(crate) fn settle(&mut self, mut step: impl FnMut(&mut S, &mut WakeBatch) -> bool) {
        loop {
            let (state, wakes) = self.parts();
            if step(state, wakes) {
                return;
            }
            self.flush();
        }
    }
}

impl<S> Deref for Session<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.guard
    }
}

impl<S> DerefMut for Session<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.guard
    }
}

impl<S: fmt::Debug> fmt::Debug for Session<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("state", &**self)
            .field("wakes", &self.wakes)
            .finish_non_exhaustive()
    }
}
