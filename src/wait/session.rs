//! A mutex whose guard carries what must happen after it is unlocked: wakers to wake and to drop.
//!
//! Protocol: lock, change the state, push the wakers of those that must look again into the batch,
//! discard wakers that must not be dropped under the lock; then drop the session.
//!
//! Invariants:
//! 1. The mutex is unlocked before the first waker is woken or dropped: `guard` is declared before
//!    the other fields, and fields are dropped in the order of declaration. Other owners of a batch
//!    or a [`ClonedWaker`] fire or drop it with no internal lock held.
//! 2. From its owner's point of view a session always holds its mutex.
//! 3. A waker that panics, when it is woken or dropped, does not keep the next one from being woken
//!    or dropped: the panic ends here, after std's hook has reported it.
//!
//! Memory ordering: none of its own; the mutex publishes the state.

use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Waker};

use crate::sync::{MODELLED, Mutex, MutexGuard, const_fn, model_size, panicking};

use super::pause::{LONG, back_off};

/// Runs user code, and returns whether it did not panic. In a model the panic goes on: it may be
/// the checker's verdict.
pub(crate) fn contained(run: impl FnOnce()) -> bool {
    // Unwind safe: `run` leaves what it shares with this crate consistent before it runs user code.
    let Err(payload) = catch_unwind(AssertUnwindSafe(run)) else {
        return true;
    };
    if MODELLED && !panicking() {
        resume_unwind(payload);
    }
    forget(payload);
    false
}

/// Drops a panic payload. If that panics too, the new payload is leaked: it could panic again.
#[cold]
fn forget(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

/// Drops a value of the user's; contains a panic of its drop.
pub(crate) fn drop_quietly<T>(value: T) {
    contained(|| drop(value));
}

/// Wakers gathered under a lock, to be woken after it is released. The first is stored in place, so
/// that waking one waker allocates nothing. Dropping the batch fires it.
///
/// Code that fills a batch in a loop checks [`is_full`](Self::is_full) and flushes. A push beyond
/// the bound is kept all the same, so that operations composed of small ones need not count.
pub(crate) struct WakeBatch {
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl WakeBatch {
    /// How many wakers make a full batch.
    pub(crate) const BOUND: usize = model_size(32, 2);

    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            first: None,
            more: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.more.push(waker),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Whether it is time to release the lock and fire.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= Self::BOUND
    }

    /// Wakes all, in order.
    #[inline]
    pub(crate) fn fire(&mut self) {
        if !self.is_empty() {
            self.fire_all();
        }
    }

    /// Keeps invariant 3.
    fn fire_all(&mut self) {
        let more = std::mem::take(&mut self.more);
        let mut wakers = self.first.take().into_iter().chain(more);
        // If a waker panics, the iterator has already given it out.
        let mut rest = || {
            for waker in wakers.by_ref() {
                waker.wake();
            }
        };
        while !contained(&mut rest) {}
    }
}

impl From<Option<Waker>> for WakeBatch {
    fn from(first: Option<Waker>) -> Self {
        let more = Vec::new();
        Self { first, more }
    }
}

impl Extend<Waker> for WakeBatch {
    #[inline]
    fn extend<I: IntoIterator<Item = Waker>>(&mut self, wakers: I) {
        wakers.into_iter().for_each(|waker| self.push(waker));
    }
}

impl Drop for WakeBatch {
    #[inline]
    fn drop(&mut self) {
        self.fire();
    }
}

/// Space for one waker outside of the lock: a clone to store under the lock, or a waker that is not
/// needed there. A waker that is left is dropped with this value; a panic is contained.
#[derive(Debug, Default)]
pub(crate) struct ClonedWaker(pub(crate) Option<Waker>);

impl ClonedWaker {
    /// A clone of the task's waker.
    pub(crate) fn of(cx: &Context<'_>) -> Self {
        Self(Some(cx.waker().clone()))
    }

    /// Takes the waker, to be stored under the lock.
    pub(crate) fn leave(&mut self) -> Waker {
        self.0.take().expect("left once")
    }
}

impl From<Waker> for ClonedWaker {
    fn from(waker: Waker) -> Self {
        Self(Some(waker))
    }
}

impl Drop for ClonedWaker {
    #[inline]
    fn drop(&mut self) {
        if let Some(waker) = self.0.take() {
            drop_quietly(waker);
        }
    }
}

/// State under a mutex, on cache lines of its own.
#[repr(align(128))]
pub(crate) struct Guarded<S>(Mutex<S>);

// Under a lock no user code runs except comparisons; if one panics, the operation has changed
// nothing.
impl<S> UnwindSafe for Guarded<S> {}
impl<S> RefUnwindSafe for Guarded<S> {}

impl<S> Guarded<S> {
    const_fn! {
        pub(crate) fn new(state: S) -> Self {
            Self(Mutex::new(state))
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Session<'_, S> {
        Session::over(self.0.lock())
    }

    /// Locks the state as `lock_plain` does, for a mutex whose holder may do much under it: tries
    /// again after longer and longer [pauses](LONG), and then sleeps.
    #[inline]
    pub(crate) fn lock_patiently(&self) -> MutexGuard<'_, S> {
        let guard = self.0.try_lock();
        guard.unwrap_or_else(|| self.lock_held())
    }

    #[cold]
    #[inline(never)]
    fn lock_held(&self) -> MutexGuard<'_, S> {
        let guard = back_off(LONG, || true, || self.0.try_lock());
        guard.unwrap_or_else(|| self.0.lock())
    }

    /// Locks the state for a step that wakes nobody. [`Session::over`] still makes a session of it.
    #[inline]
    pub(crate) fn lock_plain(&self) -> MutexGuard<'_, S> {
        self.0.lock()
    }

    /// The session, unless a thread holds the mutex. `Debug` uses it.
    pub(crate) fn try_lock(&self) -> Option<Session<'_, S>> {
        self.0.try_lock().map(Session::over)
    }
}

/// The locked state, with what is to be done after unlocking.
#[must_use]
pub(crate) struct Session<'a, S> {
    // In the order of invariant 1. Wakes come before drops, since threads or tasks wait for them.
    guard: MutexGuard<'a, S>,
    wakes: WakeBatch,
    discarded: Vec<ClonedWaker>,
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

    /// Drops a waker at the session's end, after the mutex is unlocked.
    pub(crate) fn discard_waker(&mut self, waker: Option<Waker>) {
        self.discarded.extend(waker.map(ClonedWaker::from));
    }

    /// Unlocks, wakes the gathered wakers, and locks again. The state may have changed.
    #[cold]
    pub(crate) fn flush(&mut self) {
        let wakes = &mut self.wakes;
        MutexGuard::unlocked(&mut self.guard, || wakes.fire());
    }

    /// Calls `step` until it returns true. Flushes each time it returns false, which means that the
    /// batch is full.
    #[inline]
    pub(crate) fn repeat(&mut self, mut step: impl FnMut(&mut S, &mut WakeBatch) -> bool) {
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
