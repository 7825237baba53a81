//! A mutex whose guard carries what must happen after it.
//!
//! State: the user-free state `S` under one mutex; in each session the guard,
//! and behind it the wakers and values gathered while it was held.
//!
//! Protocol: lock, change `S`, push into the batch whoever must look again,
//! discard what must not be dropped here; then drop the session.
//!
//! Invariants:
//! 1. The mutex is unlocked before the first waker is woken and before the
//!    first value is dropped: `guard` is declared before `after`, and fields are
//!    dropped in the order they are declared.
//! 2. A session always holds its mutex as far as its owner can see: `flush`
//!    locks again also when a waker panics.
//!
//! Memory ordering: none of its own; the mutex publishes `S`.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::task::Waker;

use super::batch::{Leftovers, Panics, WakeBatch};
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
    // The order of these two fields is invariant 1.
    guard: MutexGuard<'a, S>,
    after: After<'a>,
}

impl<'a, S> Session<'a, S> {
    #[inline]
    pub(crate) fn over(guard: MutexGuard<'a, S>) -> Self {
        Self {
            guard,
            after: After {
                wakes: WakeBatch::new(),
                leftovers: Leftovers::new(),
            },
        }
    }

    /// The state and the batch, borrowed side by side.
    pub(crate) fn parts(&mut self) -> (&mut S, &mut WakeBatch) {
        (&mut *self.guard, &mut self.after.wakes)
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn wakes(&mut self) -> &mut WakeBatch {
        &mut self.after.wakes
    }

    /// Has `value` dropped after the mutex is unlocked.
    pub(crate) fn discard<T: 'a>(&mut self, value: T) {
        self.after.leftovers.add(value);
    }

    /// [`discard`](Self::discard) for the waker that another replaced; the
    /// first one in a session is kept without a box.
    pub(crate) fn discard_waker(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.after.leftovers.add_waker(waker);
        }
    }

    /// Unlocks, wakes and drops what has gathered, and locks again. What was
    /// read from the state before may no longer hold.
    ///
    /// # Panics
    ///
    /// Goes on with the first panic of a waker or value, locked again.
    pub(crate) fn flush(&mut self) {
        let after = &mut self.after;
        MutexGuard::unlocked(&mut self.guard, || after.run());
    }

    /// Calls `step` until it says that nothing is left to do, and flushes
    /// whenever it says otherwise, since the batch is full. All of it is done
    /// also if a waker or value panics: the first panic goes on in the end.
    #[inline]
    pub(crate) fn settle(&mut self, mut step: impl FnMut(&mut S, &mut WakeBatch) -> bool) {
        let (state, wakes) = self.parts();
        if !step(state, wakes) {
            self.settle_rest(step);
        }
    }

    #[cold]
    fn settle_rest(&mut self, mut step: impl FnMut(&mut S, &mut WakeBatch) -> bool) {
        let mut panics = Panics::default();
        loop {
            // Unwind safe: `flush` holds the lock again, and `step` left the
            // state whole.
            panics.contain(|| self.flush());
            let (state, wakes) = self.parts();
            if step(state, wakes) {
                break;
            }
        }
        panics.resume();
    }

    /// [`flush`](Self::flush) if the batch is full: for loops that wake many.
    /// True if it did, and the state may have changed.
    #[cfg(all(test, not(shuttle)))]
    pub(crate) fn flush_if_full(&mut self) -> bool {
        let full = self.after.wakes.is_full();
        if full {
            self.flush();
        }
        full
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
            .field("wakes", &self.after.wakes)
            .finish_non_exhaustive()
    }
}

/// Wakes come before drops: somebody waits for the former.
struct After<'a> {
    wakes: WakeBatch,
    leftovers: Leftovers<'a>,
}

impl After<'_> {
    #[inline]
    fn run(&mut self) {
        if !self.wakes.is_empty() || !self.leftovers.is_empty() {
            self.run_all();
        }
    }

    fn run_all(&mut self) {
        let mut panics = Panics::default();
        self.wakes.fire_into(&mut panics);
        self.leftovers.drop_into(&mut panics);
        panics.resume();
    }
}

impl Drop for After<'_> {
    #[inline]
    fn drop(&mut self) {
        self.run();
    }
}
