//! A counting semaphore: FIFO among those who wait, with bounded overtaking, an
//! exact limit, and grants that are whole or not at all.
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
//! Who can lose what: a waiter that was notified or granted and is never polled
//! again keeps back what it asked for, as long as it is neither polled nor
//! dropped, and nothing else. [`Semaphore::snapshot`] shows it with the place in
//! the source that it is from.

// State: one word (`word`), and the limit beside those who wait, in the queue
// of a turnstile (`turnstile.rs`), which says how they are served. The limit
// less what is out is `available`, in the word.
//
// Protocol: taking is one exchange of the word, giving back one addition. What
// is new beside the turnstile: a limit and a close dismiss those who can have
// nothing any more, and then serve the rest.
//
// A thread looks for about two microseconds before it waits in the queue, and
// one that was notified watches the word, for as long as that keeps changing,
// before it looks in vain: to tell it again would cost the holder ten cache
// misses.
//
// Invariants, beside the turnstile's:
// 1. `available` + out + granted = limit, at every moment at which the lock is
//    free.
// 2. One in the queue has a right to its permits when there are enough for it
//    and all ahead of it, and takes only what it has a right to.
// 3. One that is no longer in the queue and was granted nothing was refused:
//    closed, or above the limit.
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
/// - **Conservation.** At every moment the permits out, those promised to
///   waiters and those available add up to the limit; a lowered limit leaves a
///   debt (`available() < 0`) that permits given back pay first.
/// - **Order.** Those who wait are served first come, first served, counted from
///   their first poll that found too little (a thread in [`Wait::wait`] looks for
///   about two microseconds before that). A request is granted whole: a large
///   one at the front holds up smaller ones behind it, as long as these would
///   take from it.
/// - **Bounded overtaking.** As waking a sleeper costs a thousand times what
///   taking a permit does, a running thread may take free permits ahead of those
///   who wait, but with [`Bypass::AtMost`]`(b)` at most `b` times in a row; then
///   the permits are kept for, and handed to, the first in line. So one who
///   waits, for few permits or many, is overtaken at most `b` times for each
///   grant up to and including its own; [`try_acquire`](Self::try_acquire) obeys
///   the same rule. At most 0 is strict first come, first served. With
///   [`Bypass::Unbounded`] there is no such bound, and waiters can starve. In
///   time nothing is bounded: that depends on how long permits are held.
/// - **Progress.** A wait that is dropped or timed out leaves no trace: it gives
///   back what it was promised, and whoever can go on now is told at once.
/// - A wait for more than the limit fails at once; also one that waits already,
///   when the limit falls below it. A limit of 0 is a pause: whoever asks waits
///   until it rises. 0 permits are granted at once, ahead of
///   everybody, unless the semaphore is closed.
///
/// # Memory ordering
///
/// What was done before permits were given back happens before whatever follows
/// the next acquisition that needed them.
///
/// # Cost
///
/// One exchange to take and one addition to give back, on one word, while nobody
/// waits; both hit the same line of cache, and that is all that threads share.
/// With somebody in line who has not been told to look, or at the bound, a
/// give-back takes a short lock besides. Each that waits costs O(log n) with n
/// in line, and a look from the line a step for each ahead that has been told;
/// lowering the limit takes a step for each in line. Only those who wait
/// allocate.
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
    /// How often in a row the first in line may be overtaken by default: by
    /// measurement the least that costs within 2% of 256 where two threads take
    /// turns (`benches/semaphore.rs`).
    pub const DEFAULT_BYPASS: Bypass = Bypass::AtMost(64);

    /// A semaphore with `limit` permits, all of them free. With the limit 0,
    /// nothing but 0 permits can be had until it rises.
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
        /// If `limit` is above [`Limit::MAX`]: in a `static` that is an error of the
        /// compiler.
        #[must_use]
        pub fn const_new(limit: u32) -> Self {
            assert!(limit <= Limit::MAX, "the limit is in range");
            Self {
                word: Word::of(limit, Self::DEFAULT_BYPASS),
                queue: Guarded::new(WaitQueue::new(State { limit })),
            }
        }
    }

    /// The same with another bound on overtaking. Bounds above 2^29 - 1 count as
    /// that.
    #[must_use]
    pub const fn with_bypass(mut self, bypass: Bypass) -> Self {
        self.word.set_bypass(bypass);
        self
    }

    /// Waits for `count` permits.
    ///
    /// One that holds permits already and asks for more, as a function that calls
    /// itself, overtakes those who wait only up to the bound, 64 times in a row if
    /// nothing is said. Beyond that it waits behind one who may wait for what it holds,
    /// and both hang. Take all at once and [`split`](Permit::split) them, or say
    /// [`Bypass::Unbounded`], under which those who ask for many can starve.
    ///
    /// # Cancel safety
    ///
    /// Dropping the wait leaves the line; what it was granted goes to the next.
    ///
    /// # Errors
    ///
    /// The wait gives [`AcquireError::Closed`] if the semaphore is closed or is
    /// closed meanwhile, [`AcquireError::AboveLimit`] if `count` is above the
    /// limit, unless that is 0, or the limit falls below it meanwhile.
    #[inline]
    #[track_caller]
    pub fn acquire(
        &self,
        count: u32,
    ) -> Wait<impl Op<Output = Result<Permit<&Self>, AcquireError>>> {
        Wait::new(Self::request(self, count))
    }

    /// [`acquire`](Self::acquire), for a wait and a permit that have what leads to the
    /// semaphore: an `Arc` of it, or a type of yours that derefs to it, always to the same.
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

    /// Takes `count` permits if they can be had now. It stands in no line, and
    /// overtakes those who do by the same rule as everybody.
    ///
    /// # Errors
    ///
    /// Says why they cannot be had. A try that fails has taken the lock for a
    /// moment, so that the reason is exact.
    #[inline]
    pub fn try_acquire(&self, count: u32) -> Result<Permit<&Self>, AcquireError> {
        self.try_now(count)?;
        Ok(Permit::of(self, count))
    }

    /// [`try_acquire`](Self::try_acquire) for a permit that has what leads to the
    /// semaphore; see [`acquire_owned`](Self::acquire_owned).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn try_acquire_owned<S: Deref<Target = Self>>(
        semaphore: S,
        count: u32,
    ) -> Result<Permit<S>, AcquireError> {
        semaphore.try_now(count)?;
        Ok(Permit::of(semaphore, count))
    }

    /// Makes `limit` the limit, exactly: lowered below what is out it leaves a
    /// debt, raised it pays a debt first. Waits for more than the new limit fail;
    /// whoever can go on now is told. A closed semaphore stays closed.
    ///
    /// # Errors
    ///
    /// If `limit` is above [`Limit::MAX`]; nothing has changed.
    pub fn set_limit(&self, limit: u32) -> Result<(), OutOfRange> {
        self.change_limit(0, |_| limit)
    }

    /// Adds `by` to the limit, as one step with all other changes of it: no two
    /// are lost in each other. See [`set_limit`](Self::set_limit).
    ///
    /// # Errors
    ///
    /// If the limit would be above [`Limit::MAX`]; nothing has changed.
    pub fn raise(&self, by: u32) -> Result<(), OutOfRange> {
        self.change_limit(0, |limit| limit.saturating_add(by))
    }

    /// Takes `by` from the limit, to 0 at the least, which is a pause. As
    /// [`raise`](Self::raise).
    pub fn lower(&self, by: u32) {
        self.lower_limit(by, 0);
    }

    /// The limit. Takes the lock of those who wait.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.queue.lock().state.limit
    }

    /// The limit less what is out or granted; negative while a debt is left.
    /// Out of date when it is returned, if others take or give back.
    #[must_use]
    pub fn available(&self) -> i64 {
        self.word.load().available()
    }

    /// Closes for good: who waits gets [`AcquireError::Closed`], and so does who
    /// asks later. Permits that are out, or granted and not yet collected, stay
    /// valid, and are given back as usual.
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

    /// What [`acquire`](Self::acquire) waits with.
    #[track_caller]
    pub(crate) fn request<S: Deref<Target = Self>>(semaphore: S, count: u32) -> Acquire<S> {
        let made_at = Location::caller();
        Acquire::new(semaphore, Claim { count, made_at })
    }

    /// Takes `count` permits at once, there or not: what is missing is a debt.
    /// It waits for nobody and overtakes everybody, uncounted, also once the
    /// semaphore is closed. The caller sees to it that no more than
    /// [`Limit::MAX`] are out.
    pub(crate) fn acquire_past(&self, count: u32) {
        self.word.take_past(count);
    }

    /// Gives `count` permits back that were taken without a [`Permit`], or are
    /// in one that has been [passed on](Permit::pass_on).
    #[inline]
    pub(crate) fn release(&self, count: u32) {
        if self.put(count) {
            self.serve();
        }
    }

    /// As [`release`](Self::release), under a lock: if this is true, the caller
    /// [serves](Turnstile::serve) those who wait when it has unlocked.
    #[inline]
    #[must_use]
    pub(crate) fn put(&self, count: u32) -> bool {
        self.word.put(count) == Released::Serve
    }

    /// Whether nobody waits, it is open, and so many are available.
    #[inline]
    pub(crate) fn is_free(&self, available: i64) -> bool {
        let bits: Bits = self.word.load();
        bits.available() >= available && !bits.has_waiters() && !bits.is_closed()
    }

    /// Whether somebody waits, and it is open.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        let bits: Bits = self.word.load();
        bits.has_waiters() && !bits.is_closed()
    }

    /// Takes `count` permits without a [`Permit`], if they can be had at once.
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
