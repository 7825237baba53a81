//! What is left to do once the lock is released: wakers to wake, and values of
//! the user's to drop.
//!
//! State: a [`WakeBatch`] holds wakers in the order they were pushed, the first
//! of them in place, so that waking one waiter allocates nothing. [`Leftovers`]
//! holds values whose drop may run the user's code. Their lists are there only
//! once something is in them: nearly all sessions end with nothing to do, and
//! dropping two empty lists is more than that.
//!
//! Invariants:
//! 1. Neither runs anything of the user's before it is fired or dropped, and
//!    whoever owns one fires or drops it with no internal lock held.
//! 2. One that panics does not keep the others from running: the first panic
//!    goes on when all are done, later ones are forgotten; so are all of them
//!    while the thread is unwinding already.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

use crate::sync::{model_size, panicking};

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
    more: Option<Vec<Waker>>,
}

impl WakeBatch {
    /// How many wakers make a full batch.
    pub(crate) const BOUND: usize = model_size(32, 2);

    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            first: None,
            more: None,
        }
    }

    pub(crate) fn push(&mut self, waker: Waker) {
        if self.first.is_none() {
            self.first = Some(waker);
        } else {
            self.more.get_or_insert_default().push(waker);
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.as_ref().map_or(0, Vec::len)
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

    /// Wakes all, in order, then lets the first panic among them go on.
    #[inline]
    pub(crate) fn fire(&mut self) {
        if !self.is_empty() {
            self.fire_all();
        }
    }

    fn fire_all(&mut self) {
        let mut panics = Panics::default();
        self.fire_into(&mut panics);
        panics.resume();
    }

    pub(super) fn fire_into(&mut self, panics: &mut Panics) {
        let more = self.more.take().into_iter().flatten();
        for waker in self.first.take().into_iter().chain(more) {
            panics.contain(|| waker.wake());
        }
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

/// Anything at all, to be dropped.
trait Dropped {}
impl<T> Dropped for T {}

/// Values to be dropped after the lock: a waker that was replaced in place,
/// anything else boxed.
#[derive(Default)]
pub(super) struct Leftovers<'a> {
    waker: Option<Waker>,
    values: Option<Vec<Box<dyn Dropped + 'a>>>,
}

impl<'a> Leftovers<'a> {
    #[inline]
    pub(super) const fn new() -> Self {
        Self {
            waker: None,
            values: None,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waker.is_none() && self.values.is_none()
    }

    pub(super) fn add<T: 'a>(&mut self, value: T) {
        self.values.get_or_insert_default().push(Box::new(value));
    }

    pub(super) fn add_waker(&mut self, waker: Waker) {
        if let Some(earlier) = self.waker.replace(waker) {
            self.add(earlier);
        }
    }

    pub(super) fn drop_into(&mut self, panics: &mut Panics) {
        if let Some(waker) = self.waker.take() {
            panics.contain(|| drop(waker));
        }
        for value in self.values.take().into_iter().flatten() {
            panics.contain(|| drop(value));
        }
    }
}

/// The first panic of several things that must all be run.
#[derive(Default)]
pub(crate) struct Panics(Option<Box<dyn Any + Send>>);

impl Panics {
    pub(crate) fn contain(&mut self, run: impl FnOnce()) {
        // Unwind safe: `run` is one of the user's own and shares nothing of ours.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
            if self.0.is_none() {
                self.0 = Some(payload);
            } else {
                // Its drop could panic again, and nobody is left to tell.
                std::mem::forget(payload);
            }
        }
    }

    /// Goes on with the first panic, unless the thread is unwinding already.
    #[inline]
    pub(crate) fn resume(self) {
        if self.0.is_some() {
            self.resume_first();
        }
    }

    #[cold]
    fn resume_first(self) {
        match self.0 {
            Some(payload) if !panicking() => resume_unwind(payload),
            payload => Self(payload).forget(),
        }
    }

    /// Lets the first panic go no further.
    pub(crate) fn forget(self) {
        std::mem::forget(self.0);
    }
}
