//! A mutex whose guard carries what must happen after it: wakers to wake, and
//! wakers to drop.
//!
//! Protocol: lock, change the state, push into the batch whoever must look
//! again, discard wakers that must not be dropped here; then drop the session.
//!
//! Invariants:
//! 1. The mutex is unlocked before the first waker is woken or dropped: `guard`
//!    is declared before the others, and fields are dropped in the order they
//!    are declared. The other owners of a batch or a [`ClonedWaker`] fire or drop it
//!    with no internal lock held.
//! 2. A session always holds its mutex as far as its owner can see.
//! 3. A waker that panics, when it is woken or dropped, stops nobody: the panic
//!    ends here, where std's hook has told of it, and the next one has its turn.
//!
//! Memory ordering: none of its own; the mutex publishes the state.

use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Waker};

use crate::sync::{MODELLED, Mutex, MutexGuard, const_fn, model_size, panicking, pause};

/// Runs what is the user's, and says whether it did not panic. In a model the
/// panic goes on: it may be the verdict of the checker.
pub(crate) fn contained(run: impl FnOnce()) -> bool {
    // Unwind safe: `run` leaves what it shares with us whole before it runs
    // anything of the user's.
    let Err(payload) = catch_unwind(AssertUnwindSafe(run)) else {
        return true;
    };
    if MODELLED && !panicking() {
        resume_unwind(payload);
    }
    forget(payload);
    false
}

/// Drops a payload. If that panics too, the new payload is leaked: it could do so again.
#[cold]
fn forget(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

/// Drops a value of the user's; a panic of its drop goes no further.
pub(crate) fn drop_quietly<T>(value: T) {
    contained(|| drop(value));
}

/// Wakers gathered under a lock, to be woken after it. The first is in place, so
/// that waking one allocates nothing. Dropping the batch fires it.
///
/// Those who fill it in loops ask [`is_full`](Self::is_full) and flush. A push
/// beyond the bound is kept all the same, so that operations composed of several
/// small ones need not count.
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

    /// Time to release the lock and fire.
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

    /// By invariant 3.
    fn fire_all(&mut self) {
        let more = std::mem::take(&mut self.more);
        let mut wakers = self.first.take().into_iter().chain(more);
        // One that panics is out of the iterator by then.
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

/// Room for one waker, outside of the lock: a clone to leave under it, or what
/// is not needed there. What is left is dropped with it, quietly.
#[derive(Debug, Default)]
pub(crate) struct ClonedWaker(pub(crate) Option<Waker>);

impl ClonedWaker {
    /// A clone of the task's waker.
    pub(crate) fn of(cx: &Context<'_>) -> Self {
        Self(Some(cx.waker().clone()))
    }

    /// What is here, to be left under the lock.
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

// No code of the user's runs under a lock but what compares; if that panics, the
// operation has changed nothing.
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

    /// The state, as by `lock_plain`, where who holds the mutex may do much under it: looks
    /// again after longer and longer pauses, as each look takes its cache line away, and then
    /// sleeps.
    #[inline]
    pub(crate) fn lock_patiently(&self) -> MutexGuard<'_, S> {
        let guard = self.0.try_lock();
        guard.unwrap_or_else(|| self.lock_held())
    }

    #[cold]
    #[inline(never)]
    fn lock_held(&self) -> MutexGuard<'_, S> {
        let mut pauses = 32;
        while pauses < PAUSES_END {
            pause(pauses);
            if let Some(guard) = self.0.try_lock() {
                return guard;
            }
            pauses *= 2;
        }
        self.0.lock()
    }

    /// The state, for a step that wakes nobody; or [`Session::over`] it after all.
    #[inline]
    pub(crate) fn lock_plain(&self) -> MutexGuard<'_, S> {
        self.0.lock()
    }

    /// The session if nobody holds the mutex: what `Debug` uses.
    pub(crate) fn try_lock(&self) -> Option<Session<'_, S>> {
        self.0.try_lock().map(Session::over)
    }
}

/// No pause between two looks has so many steps; in a model there is none.
const PAUSES_END: u32 = model_size(1024, 1) as u32;

/// The state, locked, with what is to be done after unlocking.
#[must_use]
pub(crate) struct Session<'a, S> {
    // In the order of invariant 1; wakes first, since somebody waits for them.
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

    /// Has a waker dropped after the mutex is unlocked, at the session's end.
    pub(crate) fn discard_waker(&mut self, waker: Option<Waker>) {
        self.discarded.extend(waker.map(ClonedWaker::from));
    }

    /// Unlocks, wakes who has gathered, and locks again: the state may have
    /// changed.
    #[cold]
    pub(crate) fn flush(&mut self) {
        let wakes = &mut self.wakes;
        MutexGuard::unlocked(&mut self.guard, || wakes.fire());
    }

    /// Calls `step` until it says that it is done, and flushes whenever it says
    /// otherwise, since the batch is full.
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
