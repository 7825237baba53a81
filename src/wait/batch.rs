//! What is left to do once the lock is released: wakers to wake, and to drop.
//!
//! State: a [`WakeBatch`] holds wakers in the order they were pushed, the first
//! of them in place, so that waking one waiter allocates nothing. A [`Spare`]
//! holds one to leave or to drop.
//!
//! Invariants:
//! 1. Neither runs anything of the user's before it is fired or dropped, and
//!    whoever owns one fires or drops it with no internal lock held.
//! 2. A waker that panics, when it is woken or dropped, stops nobody: the panic
//!    ends here, where std's hook has told of it, and the next one has its turn.
//!    So no operation unwinds because of somebody else's waker.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

use crate::sync::{MODELLED, model_size, panicking};

/// Runs what is the user's, and lets its panic go no further; false if there
/// was one. In a model it goes on: it may be the verdict of the checker.
fn contained(run: impl FnOnce()) -> bool {
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

/// Drops a payload. What comes of its drop is leaked: that could panic again.
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

/// Wakers gathered under a lock, to be woken after it.
///
/// A batch is bounded by those who fill it: they ask [`is_full`] in their loops
/// and flush. A push beyond the bound is kept all the same, so that operations
/// composed of several small ones need not count.
///
/// Dropping the batch fires it.
///
/// [`is_full`]: WakeBatch::is_full
#[derive(Default)]
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

    /// By invariant 2.
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

impl Drop for WakeBatch {
    #[inline]
    fn drop(&mut self) {
        self.fire();
    }
}

impl fmt::Debug for WakeBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeBatch")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// Room for one waker, outside of the lock: a clone to leave under it, and what
/// is not needed there in its place. What is left is dropped with it, quietly.
#[derive(Debug, Default)]
pub(crate) struct Spare(pub(super) Option<Waker>);

impl From<Waker> for Spare {
    fn from(waker: Waker) -> Self {
        Self(Some(waker))
    }
}

impl Drop for Spare {
    #[inline]
    fn drop(&mut self) {
        if let Some(waker) = self.0.take() {
            drop_quietly(waker);
        }
    }
}

/// The first panic of several things that must all be run, such as drops of
/// values of the user's. Later ones are forgotten.
#[derive(Default)]
pub(crate) struct Panics(Option<Box<dyn Any + Send>>);

impl Panics {
    pub(crate) fn contain(&mut self, run: impl FnOnce()) {
        // Unwind safe: `run` is one of the user's own and shares nothing of ours.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
            if self.0.is_none() {
                self.0 = Some(payload);
            } else {
                forget(payload);
            }
        }
    }

    /// Goes on with the first panic, unless the thread is unwinding already.
    #[inline]
    pub(crate) fn resume(self) {
        if let Some(payload) = self.0 {
            if !panicking() {
                resume_unwind(payload);
            }
            forget(payload);
        }
    }
}
