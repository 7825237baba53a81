//! A lock for a few dozen instructions: one byte, and a plain store to unlock.
//!
//! A pair costs one read-modify-write, where a lock on which threads sleep needs
//! two. So nobody sleeps on it: who finds it taken spins, then gives its
//! processor away. Hold it for what cannot block, and run no user code under it but a
//! comparison.
//!
//! Beside the value stand a mark, which never changes, and a note: a number that may be
//! read without the lock.
//!
//! Invariants: `value` is touched by whoever changed `taken` to true, until it
//! stores false; `note` is written by the same.
//!
//! Memory ordering: taking it acquires what was done before it was released.
//! In models of other parts a mutex stands for it (`model`), which keeps them
//! small; it has a model of its own.

#![allow(unsafe_code)]
#![cfg_attr(any(loom, shuttle), allow(dead_code))]

#[cfg(any(loom, shuttle))]
pub(super) mod model;

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicBool, AtomicU32, Ordering, UnsafeCell, model_size, pause, yield_now};

/// See the [module](self).
#[repr(C)]
pub(crate) struct Lock<T> {
    taken: AtomicBool,
    mark: bool,
    note: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: by the invariant, threads have the value one after the other, as if
// it were sent from one to the next.
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: as above; without a guard nobody refers to it.
unsafe impl<T: Send> Send for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self::marked(value, false)
    }

    pub(crate) fn marked(value: T, mark: bool) -> Self {
        Self {
            taken: AtomicBool::new(false),
            mark,
            note: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        if !self.take() {
            self.wait();
        }
        Guard {
            lock: self,
            _thread: PhantomData,
        }
    }

    /// Unless somebody has it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.take().then(|| Guard {
            lock: self,
            _thread: PhantomData,
        })
    }

    #[inline]
    pub(crate) fn mark(&self) -> bool {
        self.mark
    }

    /// What was noted. Exact for who holds the lock, else a hint.
    #[inline]
    pub(crate) fn note(&self) -> u32 {
        // Relaxed: who must know holds the lock.
        self.note.load(Ordering::Relaxed)
    }

    /// Under the lock.
    #[inline]
    pub(crate) fn set_note(&self, note: u32) {
        self.note.store(note, Ordering::Relaxed);
    }

    #[inline]
    fn take(&self) -> bool {
        // Acquire: pairs with the release of the last holder.
        let (took, failed) = (Ordering::Acquire, Ordering::Relaxed);
        self.taken
            .compare_exchange(false, true, took, failed)
            .is_ok()
    }

    /// The longer it is held, the longer between two looks.
    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut spins = FIRST_SPINS;
        loop {
            if spins <= MOST_SPINS {
                pause(spins);
                spins *= 2;
            } else {
                yield_now();
            }
            // Relaxed: a look, so that the line is not taken away for nothing.
            if !self.taken.load(Ordering::Relaxed) && self.take() {
                return;
            }
        }
    }
}

/// A look takes the line from the holder: not at once, or two threads that want the lock all the
/// time pass the line to and fro.
const FIRST_SPINS: u32 = model_size(4, 1) as u32;

/// Some microseconds in sum, before the processor is given away.
const MOST_SPINS: u32 = model_size(64, 1) as u32;

/// The value, until it is dropped.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// Stays with its thread.
    _thread: PhantomData<*mut T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard has the lock, so nobody changes the value.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard has the lock, and is borrowed for as long.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: what was done under the lock is seen by the next holder.
        self.lock.taken.store(false, Ordering::Release);
    }
}
