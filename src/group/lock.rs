//! A lock to hold for a few dozen instructions: one byte, and a plain store to unlock.
//!
//! Locking and unlocking cost one read-modify-write together; a lock on which threads sleep needs
//! two. So no thread sleeps on it: a thread that finds it held spins, then yields the processor.
//! Hold it only for work that cannot block, and run no user code under it except a comparison.
//!
//! The lock has a mark, which never changes, and a note: a number that may be read without the
//! lock.
//!
//! Invariants: only the thread that changed `taken` to true touches `value`, until it stores false.
//! Only the same thread writes `note`.
//!
//! Memory ordering: acquiring the lock acquires what was done before it was released. In models of
//! other parts a mutex replaces it (`model`), which keeps them small; it has a model of its own.

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

    /// Locks unless another thread holds the lock.
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

    /// The note. Exact for the thread that holds the lock, else a hint.
    #[inline]
    pub(crate) fn note(&self) -> u32 {
        // Relaxed: a thread that needs the exact note holds the lock.
        self.note.load(Ordering::Relaxed)
    }

    /// Sets the note. The caller holds the lock.
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

    /// Waits for the lock. The longer it is held, the longer the pauses between two looks.
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
            // Relaxed: a look only, so that the cache line is not taken away needlessly.
            if !self.taken.load(Ordering::Relaxed) && self.take() {
                return;
            }
        }
    }
}

/// Pauses before the first look. A look takes the cache line from the holder: without a pause, two
/// threads that always want the lock would pass the line to and fro.
const FIRST_SPINS: u32 = model_size(4, 1) as u32;

/// The longest pause before the processor is yielded: some microseconds in sum.
const MOST_SPINS: u32 = model_size(64, 1) as u32;

/// Access to the value. Dropping it unlocks.
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
