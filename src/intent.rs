//! A lock with the six modes of [`modes`](crate::modes), for one resource in a hierarchy.
//! Many callers may read and change what lies below the resource, together; or one may have it all.
//!
//! ```
//! use conversant::intent::IntentLock;
//! use conversant::modes::Mode;
//!
//! // A folder, whose files have locks of their own.
//! let folder = IntentLock::new();
//! let (one, other) = (folder.lock(Mode::Ix).wait(), folder.lock(Mode::Ix).wait());
//! // Two holders change files in it; copying the whole folder has to wait.
//! assert!(folder.try_lock(Mode::S).is_err());
//! drop((one, other));
//! // In a task: `folder.lock(Mode::S).await`.
//! let copied = folder.lock(Mode::S).wait();
//! assert!(folder.try_lock(Mode::Is).is_ok() && folder.try_lock(Mode::Ix).is_err());
//! # drop(copied);
//! ```
//!
//! For many resources, and to detect cycles of waiters, use the
//! [`LockTable`](crate::lock_table::LockTable).

// State: one word (`word`) with the number of holders of each mode; the waiters, in the queue of a
// turnstile (`turnstile.rs`), which says how they are served. Where there are stripes (`stripes`),
// IS and one more mode are counted there while nobody holds or wants another mode. Holders that do
// not fit in their count of the word spill: they are counted under the queue's lock, and every
// claim then looks there.
//
// Protocol: taking is one compare-and-swap of the word, releasing one subtraction. A waiter goes on
// as soon as it conflicts with nothing held and nobody ahead. Conversions do the same, but are
// queued ahead of every waiter that conflicts with what they hold. A waiter that takes its mode
// sets UNNOTIFIED for those behind.
//
// Invariants, in addition to the turnstile's:
// 1. No two conflicting modes are held at once. The word, the stripes and the spill together say
//    what is held or granted.
// 2. Every claim sees what is held outside the word and conflicts with it: SLOW is set; or OPEN is
//    set, and only the modes of the stripes are held there, in stripes. OPEN means that nobody
//    holds or waits for another mode.
// 3. A waiter takes only what conflicts with nobody ahead of it.
// 4. Waiting conversions can always go on once the holders that do not wait are gone: of two
//    conversions that conflict with each other the later was refused, and among modes that are held
//    together every longer cycle contains such a pair.
//
// Memory ordering: in `word`, and in `stripes` for those.

mod bits;
mod claim;
mod error;
mod guard;
mod held;
mod queue;
mod snapshot;
mod stripes;
mod word;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub use self::error::{Deadlock, NotWeaker, WouldBlock};
pub use self::guard::Guard;
pub use self::held::Held;
pub use self::snapshot::{Counts, Snapshot, Waiter};

use self::bits::OPEN;
use self::claim::{Claim, Elsewhere};
use self::stripes::Stripes;
use self::word::Word;
use crate::limit::Bypass;
use crate::modes::Mode;
use crate::sync::{Apart, const_fn};
use crate::turnstile::{Admission, Released, Request, Turnstile, WaitQueue};
use crate::wait::{Guarded, Op, Wait};

/// Where a holder of the lock is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Word,
    Stripe(u32),
    /// Under the queue's lock: there was no room in the word.
    Spill,
    /// Not by this guard, which was given up.
    PassedOn,
}

/// A lock with six modes, for one resource in a hierarchy.
///
/// # Guarantees
///
/// - **Exclusion.** No two modes are held at once that are not [compatible](Mode::compatible).
/// - **Order.** Waiters are served first come, first served, in the order of their first poll that
///   found a conflict (a thread in [`Wait::wait`] retries for about two microseconds before that
///   poll). A waiter goes on as soon as it is compatible with all that is held and with all waiters
///   ahead of it. A conversion goes ahead of those that wait for what it holds.
/// - **Bounded overtaking.** Waking a sleeper costs a thousand times what taking a mode does. So a
///   running thread may take a mode ahead of the waiters, but with [`Bypass::AtMost`]`(b)` at most
///   `b` times in a row; then the lock is kept for, and handed over to, the front of the queue. So
///   a waiter is overtaken at most `b` times for each grant ahead of it in the queue, and its own;
///   conversions that are granted ahead of it do not count. What goes ahead of a waiting
///   conversion goes ahead of those behind that, too, uncounted: while conversions ahead of it give
///   up again and again, a waiter can wait for ever, with any bound.
///   [`try_lock`](Self::try_lock) obeys the same rule. A claim that conflicts with no waiter is
///   always allowed, but may count as an overtaking. A bound of 0 is strict first come, first
///   served; with [`Bypass::Unbounded`] waiters can starve. Waiting time is not bounded: it depends
///   on how long modes are held.
/// - **Progress.** A wait that is dropped or times out leaves no trace, and every waiter that can
///   now go on is notified at once. A waiter that was notified or handed its mode, and is then
///   neither polled nor dropped, keeps the lock back as a holder would.
/// - **Deadlock.** Of two guards whose conversions conflict with each other, the later is refused
///   at once. No other deadlock is detected: the lock does not know who owns its guards.
/// - Any number may hold IS, IX or S; beyond 65,535 holders of one of them every claim takes a
///   short lock.
///
/// # Memory ordering
///
/// What was done under a mode happens before what is done under a conflicting mode that is granted
/// later.
///
/// # Cost
///
/// While nobody waits, taking is one compare-and-swap and releasing one subtraction, on one word:
/// its cache line is all that threads share. If somebody waits, a release also takes a short lock.
/// The cost of a waiter does not depend on the number of waiters, except: a poll takes a step for
/// each waiter ahead if only these block it; and where conversions wait it takes a step for each
/// waiter. Only waiting allocates. For stripes see [`striped`](Self::striped), and for what is
/// mostly read [`striped_for_readers`](Self::striped_for_readers).
///
/// ```
/// use conversant::intent::IntentLock;
/// use conversant::modes::Mode;
///
/// let root = IntentLock::new();
/// let reader = root.lock(Mode::Is).wait();
/// let writer = root.lock(Mode::Ix).wait();
/// assert!(root.try_lock(Mode::S).is_err());
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert_eq!(root.lock(Mode::S).wait().mode(), Mode::S));
///     drop(writer);
/// });
/// drop(reader);
/// assert!(root.try_lock(Mode::X).is_ok());
/// ```
pub struct IntentLock {
    word: Word,
    /// Only read, so not on the cache line of the word.
    stripes: Apart<Option<Stripes>>,
    queue: Guarded<WaitQueue<Self>>,
}

impl IntentLock {
    /// How often the front of the queue may be overtaken by default.
    pub const DEFAULT_BYPASS: Bypass = Bypass::AtMost(64);

    const_fn! {
        /// A lock that nobody holds, in one word.
        ///
        /// ```
        /// use conversant::intent::IntentLock;
        /// use conversant::modes::Mode;
        ///
        /// static ROOT: IntentLock = IntentLock::new();
        /// assert_eq!(ROOT.lock(Mode::Ix).wait().mode(), Mode::Ix);
        /// ```
        #[must_use]
        pub fn new() -> Self {
            Self {
                word: Word::new(0, Self::DEFAULT_BYPASS),
                stripes: Apart(None),
                queue: Guarded::new(WaitQueue::new(Elsewhere([0; 3]))),
            }
        }
    }

    /// A lock that nobody holds, for a hot resource such as the root of a hierarchy.
    /// Many threads want IS or IX of it at once.
    ///
    /// # Cost
    ///
    /// The number of stripes is rounded up to a power of two, and is from 1 to 1,024. So many
    /// threads each take and release IS and IX in 128 bytes of their own: two read-modify-writes a
    /// pair. Two of more threads may share a stripe. A claim for
    /// S, U, SIX or X after that takes a short lock and reads every stripe. From then on all claims
    /// use the word, until a number of IS and IX have been released there with no other mode in
    /// between. A guard that converts leaves its stripe for good.
    ///
    /// ```
    /// use conversant::intent::IntentLock;
    /// use conversant::modes::Mode;
    ///
    /// let root = IntentLock::striped(16);
    /// let changing = root.lock(Mode::Ix).wait();
    /// assert!(root.try_lock(Mode::X).is_err());
    /// drop(changing);
    /// assert!(root.try_lock(Mode::X).is_ok());
    /// ```
    #[must_use]
    pub fn striped(stripes: usize) -> Self {
        Self::striped_with(stripes, Mode::Ix)
    }

    /// As [`striped`](Self::striped), for a resource of which many threads want IS or S at once.
    /// All threads read it, and it rarely changes. U, IX, SIX and X are the modes that cost more.
    ///
    /// ```
    /// use conversant::intent::IntentLock;
    /// use conversant::modes::Mode;
    ///
    /// let settings = IntentLock::striped_for_readers(16);
    /// let reading = settings.lock(Mode::S).wait();
    /// assert!(settings.try_lock(Mode::S).is_ok() && settings.try_lock(Mode::Ix).is_err());
    /// drop(reading);
    /// assert!(settings.try_lock(Mode::X).is_ok());
    /// ```
    #[must_use]
    pub fn striped_for_readers(stripes: usize) -> Self {
        Self::striped_with(stripes, Mode::S)
    }

    fn striped_with(stripes: usize, wide: Mode) -> Self {
        Self {
            word: Word::new(OPEN, Self::DEFAULT_BYPASS),
            stripes: Apart(Some(Stripes::new(stripes, wide))),
            ..Self::new()
        }
    }

    /// The same with another bound on overtaking. Bounds above 511 count as 511.
    #[must_use]
    pub const fn with_bypass(mut self, bypass: Bypass) -> Self {
        self.word.set_bypass(bypass);
        self
    }

    /// Waits for `mode`.
    ///
    /// A caller that holds IS, IX or S already and asks again, such as a nested reader, overtakes
    /// waiters as every caller does: up to the bound, 64 times in a row by default. Beyond that it
    /// waits behind a writer that waits for it, and both hang. For nested use take
    /// [`Bypass::Unbounded`], under which writers can starve, or lock once and pass the guard on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the wait leaves the queue; what it was handed goes to the next waiter.
    #[inline]
    pub fn lock(&self, mode: Mode) -> Wait<impl Op<Output = Guard<&Self>>> {
        Wait::new(Request::new(self, Claim::of(mode)))
    }

    /// Takes `mode` if that is possible now.
    /// It does not enter the queue, and overtakes waiters by the same rule as every caller.
    ///
    /// # Errors
    ///
    /// If that is not possible now.
    #[inline]
    pub fn try_lock(&self, mode: Mode) -> Result<Guard<&Self>, WouldBlock> {
        Self::try_lock_owned(self, mode)
    }

    /// Takes without the queue's lock, if possible.
    #[inline(always)]
    fn take(&self, mode: Mode) -> Option<Place> {
        let now = self.word.load();
        if now.is_open() {
            return self.take_in_stripe(mode);
        }
        self.word.take(now, mode, None).then_some(Place::Word)
    }

    /// Retries a claim that found a conflict, under the queue's lock: the answer is exact.
    fn take_exactly(&self, mode: Mode) -> Option<Place> {
        match self.try_exactly(&mut Claim::of(mode)) {
            Admission::Granted(place) => Some(place),
            Admission::NotNow | Admission::Refused(_) => None,
        }
    }

    #[inline]
    fn take_in_stripe(&self, mode: Mode) -> Option<Place> {
        let stripes = self.stripes.0.as_ref();
        let stripes = stripes.filter(|stripes| stripes.take(mode))?;
        let stripe = stripes.own();
        let room = stripes.enter(stripe, mode);
        if room && self.word.is_open_still() {
            return Some(Place::Stripe(stripe));
        }
        if stripes.leave(stripe, mode) == Released::Serve {
            self.serve();
        }
        None
    }

    #[inline(always)]
    fn release(&self, mode: Mode, place: Place) {
        if place != Place::Word || self.stripes.0.is_some() {
            self.release_striped(mode, place);
        } else if self.word.release(mode) == Released::Serve {
            self.serve();
        }
    }

    /// A function of its own, to keep the path without stripes short.
    #[inline(never)]
    fn release_striped(&self, mode: Mode, place: Place) {
        let released = match (place, &self.stripes.0) {
            (Place::Stripe(stripe), Some(stripes)) => stripes.leave(stripe, mode),
            (Place::Word, Some(stripes)) => {
                let released = self.word.release(mode);
                // The thread that serves opens the stripes.
                let opens = stripes.are_wanted(mode);
                if opens { Released::Serve } else { released }
            }
            (Place::PassedOn, _) => Released::Done,
            _ => {
                self.queue.lock().state.0[mode as usize] -= 1;
                Released::Serve
            }
        };
        if released == Released::Serve {
            self.serve();
        }
    }
}

impl Default for IntentLock {
    fn default() -> Self {
        Self::new()
    }
}
