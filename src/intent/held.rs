//! Holding a lock without a borrow of it: by guards that own a handle, and without any guard.

use std::fmt;
use std::ops::Deref;

use super::claim::Claim;
use super::{Guard, IntentLock, Place, WouldBlock};
use crate::modes::Mode;
use crate::turnstile::Request;
use crate::wait::{Op, Wait};

/// A mode of an [`IntentLock`] held without a guard, where no reference to the lock can be kept.
/// [`Guard::into_held`] makes it; [`into_guard`](Self::into_guard) makes a guard of it again.
///
/// Dropping it releases nothing: the mode is then held for ever.
#[must_use = "the mode is held for ever if this is dropped"]
pub struct Held {
    mode: Mode,
    place: Place,
    /// The address of the lock.
    of: usize,
}

impl Held {
    /// The mode that is held.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Turns this into a guard again, which releases the mode on drop.
    ///
    /// # Errors
    ///
    /// Hands this value back if `lock` is not the lock of this mode, or was moved meanwhile. The
    /// lock is recognized by its address: if it has been dropped, another one at the same address
    /// is taken for it.
    pub fn into_guard<L: Deref<Target = IntentLock>>(self, lock: L) -> Result<Guard<L>, Self> {
        if self.of != address(&lock) {
            return Err(self);
        }
        Ok(Guard::of(lock, self.mode, self.place))
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.mode).finish()
    }
}

impl<L: Deref<Target = IntentLock>> Guard<L> {
    /// Gives up the guard, but keeps its mode. A conversion that waits is cancelled.
    ///
    /// ```
    /// use conversant::intent::IntentLock;
    /// use conversant::modes::Mode;
    ///
    /// let lock = IntentLock::new();
    /// let held = lock.lock(Mode::X).wait().into_held();
    /// assert!(lock.try_lock(Mode::Is).is_err());
    /// drop(held.into_guard(&lock).expect("the same lock"));
    /// assert!(lock.try_lock(Mode::Is).is_ok());
    /// ```
    pub fn into_held(mut self) -> Held {
        self.cancel_conversion();
        Held {
            mode: self.mode(),
            of: address(self.lock()),
            place: std::mem::replace(&mut self.place, Place::PassedOn),
        }
    }
}

fn address(lock: &IntentLock) -> usize {
    std::ptr::from_ref(lock).addr()
}

impl IntentLock {
    /// [`lock`](Self::lock) through a handle that the wait and the guard own.
    /// The handle is an `Arc` of the lock, or a type of yours that always derefs to the same one
    /// and never panics: otherwise what is held or waited for stays so for ever.
    ///
    /// ```
    /// use conversant::intent::IntentLock;
    /// use conversant::modes::Mode;
    /// use std::sync::Arc;
    ///
    /// let lock = Arc::new(IntentLock::new());
    /// let guard = IntentLock::lock_owned(lock.clone(), Mode::X).wait();
    /// let worker = std::thread::spawn(move || drop(guard));
    /// worker.join().unwrap();
    ///
    /// // In a structure of yours.
    /// struct Table {
    ///     lock: IntentLock,
    /// }
    /// struct LockOf(Arc<Table>);
    /// impl std::ops::Deref for LockOf {
    ///     type Target = IntentLock;
    ///     fn deref(&self) -> &IntentLock {
    ///         &self.0.lock
    ///     }
    /// }
    /// let table = Arc::new(Table { lock: IntentLock::new() });
    /// let guard = IntentLock::lock_owned(LockOf(table.clone()), Mode::S).wait();
    /// assert!(table.lock.try_lock(Mode::X).is_err());
    /// ```
    #[inline]
    pub fn lock_owned<L: Deref<Target = Self> + Unpin>(
        lock: L,
        mode: Mode,
    ) -> Wait<impl Op<Output = Guard<L>>> {
        Wait::new(Request::new(lock, Claim::of(mode)))
    }

    /// [`try_lock`](Self::try_lock) through a handle that the guard owns.
    /// See [`lock_owned`](Self::lock_owned).
    ///
    /// # Errors
    ///
    /// As for [`try_lock`](Self::try_lock).
    #[inline]
    pub fn try_lock_owned<L: Deref<Target = Self>>(
        lock: L,
        mode: Mode,
    ) -> Result<Guard<L>, WouldBlock> {
        let place = lock.take(mode).or_else(|| lock.take_exactly(mode));
        Ok(Guard::of(lock, mode, place.ok_or(WouldBlock)?))
    }
}
