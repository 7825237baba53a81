//! A counting semaphore: FIFO with bounded overtaking, an exact limit, and all-or-nothing grants.
//!
//! ```
//! use conversant::semaphore::Semaphore;
//!
//! let connections = Semaphore::new(2)?;
//! let first = connections.acquire(1).wait()?;
//! // In a task: `connections.acquire(1).await?`.
//! let second = connections.acquire(1).wait()?;
//! assert!(connections.try_acquire(1).is_err());
//! drop(first);
//! assert!(connections.try_acquire(1).is_ok());
//! # drop(second);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A waiter that was notified or granted, and is then neither polled nor dropped, keeps back the
//! permits that it asked for, and nothing else. [`Semaphore::snapshot`] shows such a waiter with
//! the place in the source where its wait was made.

// State: one word (`word`); the limit and the waiters are in the queue of a turnstile
// (`turnstile.rs`), which says how they are served. `available`, in the word, is the limit less the
// permits that are out.
//
// Protocol: an acquire is one compare-and-swap of the word, a release one addition. In addition to
// the turnstile's protocol, a lowered limit and a close dismiss the waiters that can never be
// granted, and then serve the rest.
//
// Invariants, in addition to the turnstile's:
// 1. Whenever the lock is free, `available` + out + granted = limit.
// 2. A waiter in the queue has a right to its permits when there are enough for it and for all
//    waiters ahead of it. It takes only what it has a right to.
// 3. A waiter that is no longer in the queue and was granted nothing was refused: closed, or above
//    the limit.
//
// Memory ordering: in `word`.

mod error;
mod permit;
mod queue;
mod snapshot;
mod word;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::fmt;
use std::ops::Deref;
use std::panic::Location;

pub use self::error::AcquireError;
pub use self::permit::{Held, Permit};
pub use self::snapshot::{Counts, Snapshot, Waiter};

use self::queue::{Claim, State};
use self::word::{Bits, Word};
use crate::error::OutOfRange;
use crate::limit::{Bypass, Limit};
use crate::sync::const_fn;
pub(crate) use crate::turnstile::Request as Acquire;
use crate::turnstile::{Admission, Released, Turnstile, WaitQueue};
use crate::wait::{Guarded, Op, Wait};

/// A counting semaphore.
///
/// # Guarantees
///
/// - **Conservation.** At every moment the permits out, those promised to waiters and those
///   available add up to the limit. A lowered limit leaves a debt (`available() < 0`), which
///   released permits pay first.
/// - **Order.** Waiters are served first come, first served, in the order of their first poll that
///   found too little (a thread in [`Wait::wait`] retries for about two microseconds before that
///   poll). A request is granted whole: a large one at the front holds up smaller ones behind it,
///   while these would take permits that it needs.
/// - **Bounded overtaking.** Waking a sleeper costs a thousand times what taking a permit does. So
///   a running thread may take free permits ahead of the waiters, but with [`Bypass::AtMost`]`(b)`
///   at most `b` times in a row; then the permits are kept for, and handed over to, the front of
///   the queue. So a waiter, for few permits or many, is overtaken at most `b` times for each grant
///   up to and including its own. [`try_acquire`](Self::try_acquire) obeys the same rule. A bound
///   of 0 is strict first come, first served. With [`Bypass::Unbounded`] there is no bound, and
///   waiters can starve. Waiting time is not bounded: it depends on how long permits are held.
/// - **Progress.** A wait that is dropped or times out leaves no trace: it gives back what it was
///   promised, and every waiter that can now go on is notified at once.
/// - A wait for more than the limit fails at once, and a waiter fails when the limit falls below
///   what it asks for. A limit of 0 is a pause: every request waits until the limit rises. A
///   request for 0 permits is granted at once, ahead of everybody, unless the semaphore is closed.
///
/// # Memory ordering
///
/// What was done before permits were released happens before what follows the next acquisition that
/// needed them.
///
/// # Cost
///
/// While nobody waits, an acquire is one compare-and-swap and a release one addition, on one word:
/// its cache line is all that threads share. If a waiter has not been notified, or the bound is
/// reached, a release also takes a short lock. A waiter costs O(log n) with n in the queue; a retry
/// from the queue takes a step for each notified waiter ahead, and if it was in vain, the release
/// that notifies it again takes a short step for each notified one behind. Lowering the limit, or
/// raising it from 0, takes a step for each waiter. Only waiting allocates.
///
/// ```
/// use conversant::limit::Bypass;
/// use conversant::semaphore::{Semaphore, AcquireError};
///
/// let semaphore = Semaphore::new(3)?.with_bypass(Bypass::AtMost(16));
/// let two = semaphore.acquire(2).wait()?;
/// assert_eq!(semaphore.try_acquire(2).unwrap_err(), AcquireError::NoPermits);
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| semaphore.acquire(3).wait().unwrap());
///     drop(two);
/// });
/// assert_eq!(semaphore.available(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Semaphore {
    word: Word,
    queue: Guarded<WaitQueue<Self>>,
}

impl Semaphore {
    /// How often in a row the front of the queue may be overtaken by default.
    /// By measurement, the smallest bound that costs within 2% of 256 where two threads take turns
    /// (`benches/semaphore.rs`).
    pub const DEFAULT_BYPASS: Bypass = Bypass::AtMost(64);

    /// Creates a semaphore with `limit` permits, all of them free.
    /// With a limit of 0, only requests for 0 permits are granted until the limit rises.
    ///
    /// # Errors
    ///
    /// If `limit` is above [`Limit::MAX`].
    pub fn new(limit: u32) -> Result<Self, OutOfRange> {
        OutOfRange::check("limit", limit, 0, Limit::MAX)?;
        Ok(Self::const_new(limit))
    }

    const_fn! {
        /// [`new`](Self::new), for a `static`.
        ///
        /// ```
        /// use conversant::semaphore::Semaphore;
        ///
        /// static AT_ONCE: Semaphore = Semaphore::const_new(3);
        /// let permit = AT_ONCE.acquire(2).wait()?;
        /// assert_eq!(AT_ONCE.available(), 1);
        /// # Ok::<(), conversant::semaphore::AcquireError>(())
        /// ```
        ///
        /// # Panics
        ///
        /// If `limit` is above [`Limit::MAX`]: in a `static` that is a compile error.
        #[must_use]
        pub fn const_new(limit: u32) -> Self {
            assert!(limit <= Limit::MAX, "the limit is in range");
            Self {
                word: Word::of(limit, Self::DEFAULT_BYPASS),
                queue: Guarded::new(WaitQueue::new(State { limit })),
            }
        }
    }

    /// The same with another bound on overtaking. Bounds above 2^29 - 1 count as 2^29 - 1.
    #[must_use]
    pub const fn with_bypass(mut self, bypass: Bypass) -> Self {
        self.word.set_bypass(bypass);
        self
    }

    /// Waits for `count` permits.
    ///
    /// A caller that holds permits already and asks for more, such as a recursive function,
    /// overtakes waiters only up to the bound, by default 64 times in a row. Beyond that it waits
    /// behind a waiter that may need the permits it holds, and both hang. Acquire all permits at
    /// once and [`split`](Permit::split) them, or use [`Bypass::Unbounded`], under which requests
    /// for many permits can starve.
    ///
    /// # Cancel safety
    ///
    /// Dropping the wait leaves the queue; what it was granted goes to the next waiter.
    ///
    /// # Errors
    ///
    /// The wait gives [`AcquireError::Closed`] if the semaphore is closed or is closed meanwhile.
    /// It gives [`AcquireError::AboveLimit`] if `count` is above the limit, or the limit falls
    /// below it meanwhile, unless the limit is 0.
    #[inline]
    #[track_caller]
    pub fn acquire(
        &self,
        count: u32,
    ) -> Wait<impl Op<Output = Result<Permit<&Self>, AcquireError>>> {
        Wait::new(Self::request(self, count))
    }

    /// [`acquire`](Self::acquire) through a handle that the wait and the permit own.
    /// The handle is an `Arc` of the semaphore, or a type of yours that always derefs to the same
    /// one and never panics: otherwise what is held or waited for stays so for ever.
    ///
    /// ```
    /// use conversant::semaphore::Semaphore;
    /// use std::sync::Arc;
    ///
    /// let semaphore = Arc::new(Semaphore::new(1)?);
    /// let permit = Semaphore::acquire_owned(semaphore.clone(), 1).wait()?;
    /// let worker = std::thread::spawn(move || drop(permit));
    /// worker.join().unwrap();
    /// assert_eq!(semaphore.available(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn acquire_owned<S: Deref<Target = Self> + Unpin>(
        semaphore: S,
        count: u32,
    ) -> Wait<impl Op<Output = Result<Permit<S>, AcquireError>>> {
        Wait::new(Self::request(semaphore, count))
    }

    /// Takes `count` permits if that is possible now.
    /// It does not enter the queue, and overtakes waiters by the same rule as every caller.
    ///
    /// # Errors
    ///
    /// The reason why not. A failed call has taken the queue's lock for a moment, so that the
    /// reason is exact.
    #[inline]
    pub fn try_acquire(&self, count: u32) -> Result<Permit<&Self>, AcquireError> {
        self.try_now(count)?;
        Ok(Permit::of(self, count))
    }

    /// [`try_acquire`](Self::try_acquire) through a handle that the permit owns.
    /// See [`acquire_owned`](Self::acquire_owned).
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_owned<S: Deref<Target = Self>>(
        semaphore: S,
        count: u32,
    ) -> Result<Permit<S>, AcquireError> {
        semaphore.try_now(count)?;
        Ok(Permit::of(semaphore, count))
    }

    /// Sets the limit, exactly. A limit below the number of permits that are out leaves a debt; a
    /// raised limit pays a debt first. Waits for more than the new limit fail, unless that is 0,
    /// and every waiter that can now go on is notified. A closed semaphore stays closed.
    ///
    /// # Errors
    ///
    /// If `limit` is above [`Limit::MAX`]; nothing has changed.
    pub fn set_limit(&self, limit: u32) -> Result<(), OutOfRange> {
        self.change_limit(0, |_| limit)
    }

    /// Adds `by` to the limit, atomically: no concurrent change of the limit is lost. See
    /// [`set_limit`](Self::set_limit).
    ///
    /// # Errors
    ///
    /// If the limit would be above [`Limit::MAX`]; nothing has changed.
    pub fn raise(&self, by: u32) -> Result<(), OutOfRange> {
        self.change_limit(0, |limit| limit.saturating_add(by))
    }

    /// Takes `by` from the limit, but not below 0, which is a pause. Atomic, as
    /// [`raise`](Self::raise).
    pub fn lower(&self, by: u32) {
        self.lower_limit(by, 0);
    }

    /// The limit. Takes the queue's lock.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.queue.lock().state.limit
    }

    /// The limit less the permits that are out or granted; negative while a debt is left.
    /// Stale when it is returned, if other threads acquire or release.
    #[must_use]
    pub fn available(&self) -> i64 {
        self.word.load().available()
    }

    /// Closes the semaphore for good: waiters and later callers get [`AcquireError::Closed`].
    /// Permits that are out, or granted and not yet collected, stay valid, and are released as
    /// usual. With a limit of 0 this is a signal that ends other waits: see [`Wait::or`].
    pub fn close(&self) {
        let session = self.queue.lock();
        self.word.close();
        self.refuse_queued(session);
    }

    /// Whether it is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.word.load().is_closed()
    }

    /// The operation that [`acquire`](Self::acquire) waits for.
    #[track_caller]
    pub(crate) fn request<S: Deref<Target = Self>>(semaphore: S, count: u32) -> Acquire<S> {
        let made_at = Location::caller();
        Acquire::new(semaphore, Claim { count, made_at })
    }

    /// Takes `count` permits at once, available or not: what is missing is a debt.
    /// It never waits. It overtakes everybody, uncounted, even if the semaphore is closed. The
    /// caller ensures that no more than [`Limit::MAX`] permits are out.
    pub(crate) fn acquire_past(&self, count: u32) {
        self.word.take_past(count);
    }

    /// Releases `count` permits taken without a [`Permit`], or [passed on](Permit::pass_on).
    #[inline]
    pub(crate) fn release(&self, count: u32) {
        if self.put(count) {
            self.serve();
        }
    }

    /// [`release`](Self::release) for a caller that holds a lock.
    /// If this returns true, the caller must [serve](Turnstile::serve) the queue after it has
    /// unlocked.
    #[inline]
    #[must_use]
    pub(crate) fn put(&self, count: u32) -> bool {
        self.word.put(count) == Released::Serve
    }

    /// Whether nobody waits, the semaphore is open, and at least this many permits are available.
    #[inline]
    pub(crate) fn is_free(&self, available: i64) -> bool {
        let bits: Bits = self.word.load();
        bits.available() >= available && !bits.has_waiters() && !bits.is_closed()
    }

    /// Whether somebody waits, and the semaphore is open.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        let bits: Bits = self.word.load();
        bits.has_waiters() && !bits.is_closed()
    }

    /// Takes `count` permits without a [`Permit`], if that is possible at once.
    #[inline]
    #[must_use]
    pub(crate) fn take(&self, count: u32) -> bool {
        self.word.take(count)
    }

    /// As [`try_acquire`](Self::try_acquire), without a [`Permit`].
    #[inline]
    pub(crate) fn try_now(&self, count: u32) -> Result<(), AcquireError> {
        if self.word.take(count) {
            return Ok(());
        }
        let made_at = Location::caller();
        match self.try_exactly(&mut Claim { count, made_at }) {
            Admission::Granted(()) => Ok(()),
            Admission::NotNow => Err(AcquireError::NoPermits),
            Admission::Refused(error) => Err(error),
        }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits: Bits = self.word.load();
        f.debug_struct("Semaphore")
            .field("available", &bits.available())
            .field("closed", &bits.is_closed())
            .field("bypass", &self.word.bypass)
            .finish_non_exhaustive()
    }
}
