//! A lock with the six modes of [`modes`](crate::modes): many may read and many
//! may change what lies below, together, and yet one can have it all.
//!
//! ```
//! use conversant::intent::IntentLock;
//! use conversant::modes::Mode;
//!
//! // A folder, whose files have locks of their own.
//! let folder = IntentLock::new();
//! let (one, other) = (folder.lock(Mode::Ix).wait(), folder.lock(Mode::Ix).wait());
//! // Two change files in it; to copy the whole folder has to wait.
//! assert!(folder.try_lock(Mode::S).is_err());
//! drop((one, other));
//! // In a task: `folder.lock(Mode::S).await`.
//! let copied = folder.lock(Mode::S).wait();
//! assert!(folder.try_lock(Mode::Is).is_ok() && folder.try_lock(Mode::Ix).is_err());
//! # drop(copied);
//! ```
//!
//! For many resources, and for cycles among those who wait, there is the
//! [`LockTable`](crate::lock_table::LockTable).

// State: one word (`word`) with the number of holders of each mode; those who
// wait, in the queue of a turnstile (`turnstile.rs`), which says how they are
// served. Where there are stripes (`stripes`), IS and one more mode are counted there as
// long as nobody holds or wants others. Holders that do not fit in their count of
// the word spill: they are counted under the lock of the queue, and all who want
// anything look there.
//
// Protocol: taking is one exchange of the word, releasing one subtraction. One
// in the queue goes on as soon as it conflicts with nothing held and nobody
// ahead. Conversions go the same ways, but wait ahead of all who wait for what
// they hold. Who takes its mode sets UNNOTIFIED for those behind.
//
// Invariants, beside the turnstile's:
// 1. No two conflicting modes are held at once, and what the word, the stripes
//    and the spill say is what is held or granted.
// 2. What is held outside the word is seen by all who mind: SLOW is set, or
//    nothing but the modes of the stripes is, in these, and OPEN is set. OPEN
//    means that nobody holds or waits for another mode.
// 3. One in the queue takes only what conflicts with nobody ahead of it.
// 4. Conversions that wait can always go on when those go that do not wait: of
//    two that conflict with each other the later was refused, and longer cycles
//    of modes that are held together do not exist without such a pair.
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
use crate::shown::shows;
use crate::sync::{Apart, const_fn};
use crate::turnstile::{Admission, Released, Request, Turnstile, WaitQueue};
use crate::wait::{Guarded, Op, Wait};

/// Where one who holds the lock is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Word,
    Stripe(u32),
    /// There was no room in the word.
    Spill,
    /// Not by this guard: it was given up.
    PassedOn,
}

/// A lock with six modes, for one resource in a hierarchy.
///
/// # Guarantees
///
/// - **Exclusion.** No two modes are held at once that are not
///   [compatible](Mode::compatible).
/// - **Order.** Those who wait are served first come, first served, counted from
///   their first poll that found a conflict (a thread in [`Wait::wait`] looks for
///   about two microseconds before that). One goes on as soon as it is compatible
///   with all that is held and with all who wait ahead of it. A conversion goes
///   ahead of those who wait for what it holds.
/// - **Bounded overtaking.** As waking a sleeper costs a thousand times what
///   taking a mode does, a running thread may take one ahead of those who wait,
///   but with [`Bypass::AtMost`]`(b)` at most `b` times in a row; then the lock is
///   kept for, and handed to, the first in line. So one who waits is overtaken at
///   most `b` times for each grant ahead of it in line, and its own;
///   [`try_lock`](Self::try_lock) obeys the same rule. Who takes what
///   conflicts with nobody in line overtakes nobody, and always may. At most 0 is strict
///   first come, first served; with [`Bypass::Unbounded`] waiters can starve. In
///   time nothing is bounded: that depends on how long modes are held.
/// - **Progress.** A wait that is dropped or timed out leaves no trace, and
///   whoever can go on now is told at once. One that was told, or handed its mode,
///   and is never polled again nor dropped keeps the lock back as a holder would.
/// - **Deadlock.** Of two guards whose conversions conflict with each other the
///   later is refused at once. Nothing else is looked for: the lock does not know
///   who owns its guards.
/// - Any number may hold IS, IX or S; beyond 65,535 of one of them those who want
///   anything take a short lock.
///
/// # Memory ordering
///
/// What was done under a mode happens before whatever is done under one that
/// conflicts with it and is granted later.
///
/// # Cost
///
/// One exchange to take and one subtraction to release, on one word, while nobody
/// waits; both hit the same line of cache, and that is all that threads share. If
/// somebody waits, a release takes a short lock besides. One that waits costs as
/// much whoever else does, but a step for each ahead of it if it is polled when
/// nothing but those keeps it, and for each that waits where conversions do. Only those who wait
/// allocate. For stripes see [`striped`](Self::striped), and for what is mostly read
/// [`striped_for_readers`](Self::striped_for_readers).
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
    /// Only read, so not on the word's line.
    stripes: Apart<Option<Stripes>>,
    queue: Guarded<WaitQueue<Self>>,
}

impl IntentLock {
    /// How often the first in line may be overtaken by default.
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

    /// A lock that nobody holds, for a resource that many threads want IS or IX
    /// of at once, such as the root of a hierarchy.
    ///
    /// # Cost
    ///
    /// Each of up to `stripes` threads (a power of two, up to 1,024) takes and
    /// releases IS and IX in 128 bytes of its own, which it need not share with
    /// anybody: two read-modify-writes a pair. Whoever wants S, U,
    /// SIX or X after that takes a short lock and reads every stripe; from then on
    /// all go by the word, until a number of IS and IX have been released there with
    /// nothing more in between. A guard that
    /// converts leaves its stripe for good.
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

    /// As [`striped`](Self::striped), for a resource that many threads want IS or S of at once:
    /// read by all, and rarely changed. Whoever wants U, IX, SIX or X pays.
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

    /// The same with another bound on overtaking. Bounds above 511 count as that.
    #[must_use]
    pub const fn with_bypass(mut self, bypass: Bypass) -> Self {
        self.word.set_bypass(bypass);
        self
    }

    /// Waits for `mode`.
    ///
    /// One that holds IS, IX or S already and asks again, as a reader within a reader,
    /// overtakes those who wait as everybody does: up to the bound, 64 times in a row
    /// by default. Beyond that it waits behind a writer that waits for it, and
    /// both hang. What may nest takes [`Bypass::Unbounded`], under which writers can
    /// starve, or asks once and passes its guard on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the wait leaves the line; what it was handed goes to the next.
    #[inline]
    pub fn lock(&self, mode: Mode) -> Wait<impl Op<Output = Guard<&Self>>> {
        Wait::new(Request::new(self, Claim::of(mode)))
    }

    /// Takes `mode` if it can be had now. It stands in no line, and overtakes
    /// those who do by the same rule as everybody.
    ///
    /// # Errors
    ///
    /// If not.
    #[inline]
    pub fn try_lock(&self, mode: Mode) -> Result<Guard<&Self>, WouldBlock> {
        Self::try_lock_owned(self, mode)
    }

    /// Takes without the lock, if that can be.
    #[inline(always)]
    fn take(&self, mode: Mode) -> Option<Place> {
        let now = self.word.load();
        if now.is_open() {
            return self.take_in_stripe(mode);
        }
        self.word.take(now, mode, None).then_some(Place::Word)
    }

    /// One that found nothing looks again, exactly this time.
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

    /// Apart, to keep what is done without stripes short.
    #[inline(never)]
    fn release_striped(&self, mode: Mode, place: Place) {
        let released = match (place, &self.stripes.0) {
            (Place::Stripe(stripe), Some(stripes)) => stripes.leave(stripe, mode),
            (Place::Word, Some(stripes)) => {
                let released = self.word.release(mode);
                // Who serves opens the word.
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

shows!(IntentLock, |this|
    word: this.word.load(),
    stripes: this.stripes.0.as_ref().map_or(0, Stripes::len),
    bypass: this.word.bypass);
