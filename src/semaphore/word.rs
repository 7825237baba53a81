//! The state word: one value per moment, changed by read-modify-writes alone.
//!
//! ```text
//!   63            32 31          3      2        1         0
//!  +----------------+-------------+--------+--------+---------+
//!  | available, i32 | overtakings | CLOSED | UNTOLD | WAITERS |
//!  +----------------+-------------+--------+--------+---------+
//! ```
//!
//! `available` is the limit less what is out, negative while a debt is left. It
//! stands at the top, so that adding to it carries into nothing.
//!
//! Who may change what:
//! - `available` down, `overtakings` up by one: anybody who takes;
//! - `available` up: anybody who gives back;
//! - everything else, and taking for somebody in line: under the line's lock.
//!
//! Memory ordering: giving back is Release and pairs with the Acquire of every
//! take, by whomever and for whomever: what was done under a permit is seen by
//! the next to have it. All writes are read-modify-writes, so the release
//! sequence of each give-back reaches to the takes that follow it. WAITERS,
//! UNTOLD and CLOSED are written under the lock, and who acts on them takes the
//! lock after it has read them: it finds what was written with them, and they
//! need no ordering of their own.

use std::fmt;

use crate::limit::Bypass;
use crate::sync::{AtomicU64, Ordering};

const WAITERS: u64 = 1;
const UNTOLD: u64 = 1 << 1;
const CLOSED: u64 = 1 << 2;
const OVERTAKING: u64 = 1 << 3;
const ONE: u64 = 1 << 32;
const LOW: u64 = ONE - 1;

/// The most overtakings that fit in the word.
const MOST_OVERTAKINGS: u32 = (LOW / OVERTAKING) as u32;

/// A bound that the word can count to.
pub(super) fn countable(bypass: Bypass) -> Bypass {
    match bypass {
        Bypass::AtMost(most) => Bypass::AtMost(most.min(MOST_OVERTAKINGS)),
        Bypass::Unbounded => Bypass::Unbounded,
    }
}

/// What the word said at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits(u64);

/// Whether a taker has what it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Take {
    Taken,
    /// Too little is there, or it is another's turn.
    NotNow,
    Closed,
}

/// Whether a give-back concerns anybody in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Put {
    /// Nobody waits, or all who do will look anyway.
    Done,
    /// The line must be served.
    Serve,
}

impl Bits {
    pub(super) fn available(self) -> i64 {
        i64::from((self.0 >> 32) as i32)
    }

    pub(super) fn overtakings(self) -> u32 {
        ((self.0 & LOW) / OVERTAKING) as u32
    }

    pub(super) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    pub(super) fn has_waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    /// Whether `n` more are there beyond those that `ahead` have a right to.
    pub(super) fn covers(self, ahead: u64, n: u32) -> bool {
        let wanted = i64::try_from(ahead + u64::from(n)).unwrap_or(i64::MAX);
        self.available() >= wanted
    }

    fn less(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(u64::from(n) * ONE))
    }

    fn with_no_overtakings(self) -> Self {
        Self(self.0 & !(LOW & !(OVERTAKING - 1)))
    }

    fn with_nobody_waiting(self) -> Self {
        Self(self.with_no_overtakings().0 & !(WAITERS | UNTOLD))
    }

    fn needs_service(self, bypass: Bypass) -> bool {
        self.0 & UNTOLD != 0 || bypass.spent(self.overtakings())
    }

    /// At the front it ends a run of overtakings; the only one in line takes
    /// WAITERS with it.
    fn taken_in_line(self, n: u32, front: bool, only: bool) -> Self {
        let next = self.less(n);
        match (front, only) {
            (_, true) => next.with_nobody_waiting(),
            (true, false) => next.with_no_overtakings(),
            (false, false) => next,
        }
    }

    /// After a taker that is not in line took `n`, overtaking whoever is.
    #[inline]
    fn overtaken(self, n: u32, bypass: Bypass) -> Result<Self, Take> {
        // Nobody waits, and open.
        if self.0 & LOW == 0 && self.available() >= i64::from(n) {
            return Ok(self.less(n));
        }
        self.overtaken_slow(n, bypass)
    }

    fn overtaken_slow(self, n: u32, bypass: Bypass) -> Result<Self, Take> {
        if self.is_closed() {
            return Err(Take::Closed);
        }
        if n == 0 {
            return Ok(self);
        }
        if !self.covers(0, n) || (self.has_waiters() && bypass.spent(self.overtakings())) {
            return Err(Take::NotNow);
        }
        let counts = self.has_waiters() && bypass != Bypass::Unbounded;
        let counted = if counts { self.0 + OVERTAKING } else { self.0 };
        Ok(Self(counted).less(n))
    }

    /// After `n` were taken by one who is not in line while those in line ask for
    /// `ahead`: what is there beyond that belongs to nobody, and taking it
    /// overtakes nobody.
    fn behind(self, n: u32, ahead: u64, bypass: Bypass) -> Result<Self, Take> {
        if !self.is_closed() && self.covers(ahead, n) {
            return Ok(self.less(n));
        }
        self.overtaken(n, bypass)
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bits")
            .field("available", &self.available())
            .field("overtakings", &self.overtakings())
            .field("closed", &self.is_closed())
            .field("waiters", &self.has_waiters())
            .finish()
    }
}

/// The word itself.
pub(super) struct Word(AtomicU64);

impl Word {
    pub(super) fn new(limit: u32) -> Self {
        Self(AtomicU64::new(u64::from(limit) * ONE))
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn with_overtakings(available: i32, overtakings: u32) -> Self {
        let low = (u64::from(overtakings) * OVERTAKING) | WAITERS;
        Self(AtomicU64::new((available as u64).wrapping_mul(ONE) | low))
    }

    /// Relaxed: whoever acts on it does so by an exchange, or under the lock.
    #[inline]
    pub(super) fn look(&self) -> Bits {
        Bits(self.0.load(Ordering::Relaxed))
    }

    /// Changes the word if `change` finds it possible.
    #[inline]
    fn update<E>(
        &self,
        success: Ordering,
        mut change: impl FnMut(Bits) -> Result<Bits, E>,
    ) -> Result<(), E> {
        let mut now = self.look();
        loop {
            let next = change(now)?;
            let exchanged = self
                .0
                .compare_exchange_weak(now.0, next.0, success, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return Ok(()),
                Err(other) => now = Bits(other),
            }
        }
    }

    /// Takes `n` for somebody who is not in line. Without the lock.
    #[inline]
    pub(super) fn take(&self, n: u32, bypass: Bypass) -> Take {
        // Acquire: pairs with the Release in `put`.
        match self.update(Ordering::Acquire, |bits| bits.overtaken(n, bypass)) {
            Ok(()) => Take::Taken,
            Err(why) => why,
        }
    }

    /// Under the lock: takes `n` for somebody who is not in line, where those in
    /// line ask for `ahead`.
    pub(super) fn take_behind(&self, n: u32, ahead: u64, bypass: Bypass) -> Take {
        // Acquire: pairs with the Release in `put`.
        match self.update(Ordering::Acquire, |bits| bits.behind(n, ahead, bypass)) {
            Ok(()) => Take::Taken,
            Err(why) => why,
        }
    }

    /// Under the lock: [`take_behind`](Self::take_behind), or leaves WAITERS in
    /// the very word that had nothing to take.
    pub(super) fn take_or_wait(&self, n: u32, ahead: u64, bypass: Bypass) -> Take {
        let mut outcome = Take::Taken;
        let change = |bits: Bits| {
            let (result, next) = match bits.behind(n, ahead, bypass) {
                Ok(next) => (Take::Taken, next),
                Err(Take::Closed) => return Err(Take::Closed),
                Err(why) => (why, Bits(bits.0 | WAITERS | UNTOLD)),
            };
            outcome = result;
            Ok(next)
        };
        // Acquire: pairs with the Release in `put`.
        match self.update(Ordering::Acquire, change) {
            Ok(()) => outcome,
            Err(why) => why,
        }
    }

    /// Under the lock: takes `n` for the front, the only one in line or not.
    #[must_use]
    pub(super) fn hand_over(&self, n: u32, only: bool) -> bool {
        let change = |bits: Bits| match bits.covers(0, n) {
            true => Ok(bits.taken_in_line(n, true, only)),
            false => Err(()),
        };
        // Acquire: pairs with the Release in `put`.
        self.update(Ordering::Acquire, change).is_ok()
    }

    /// Under the lock: takes `n` for one in line, with what `ahead` says of the
    /// available permits asked for before it, or leaves UNTOLD in the very word
    /// that had too little: the next give-back tells it.
    #[must_use]
    pub(super) fn take_or_wait_on(
        &self,
        n: u32,
        only: bool,
        ahead: impl Fn(i64) -> Option<u64>,
    ) -> bool {
        let mut taken = false;
        let change = |bits: Bits| {
            let ahead = ahead(bits.available()).filter(|&ahead| bits.covers(ahead, n));
            taken = ahead.is_some();
            Ok::<_, ()>(match ahead {
                Some(ahead) => bits.taken_in_line(n, ahead == 0, only),
                None => Bits(bits.0 | UNTOLD),
            })
        };
        // Acquire: pairs with the Release in `put`.
        let _ = self.update(Ordering::Acquire, change);
        taken
    }

    /// Under the lock: everybody in line has been told.
    pub(super) fn all_told(&self) {
        // Relaxed: as WAITERS in the header.
        self.0.fetch_and(!UNTOLD, Ordering::Relaxed);
    }

    /// Gives `n` back.
    #[inline]
    pub(super) fn put(&self, n: u32, bypass: Bypass) -> Put {
        // Release: pairs with the Acquire in the takes.
        let before = Bits(self.0.fetch_add(u64::from(n) * ONE, Ordering::Release));
        if before.0 & WAITERS != 0 && before.needs_service(bypass) {
            Put::Serve
        } else {
            Put::Done
        }
    }

    /// Under the lock: the limit has changed by `by`.
    pub(super) fn shift(&self, by: i64) {
        // Relaxed: publishes no work of anybody's; the release sequences go on.
        self.0
            .fetch_add((by as u64).wrapping_mul(ONE), Ordering::Relaxed);
    }

    /// Under the lock: nobody is in line any more.
    pub(super) fn nobody_waits(&self) {
        // Relaxed: as `WAITERS` in the header.
        let cleared = self.update(Ordering::Relaxed, |bits| {
            Ok::<_, ()>(bits.with_nobody_waiting())
        });
        debug_assert!(cleared.is_ok());
    }

    /// Under the lock: closed for good.
    pub(super) fn close(&self) {
        // Relaxed: as `CLOSED` in the header.
        self.0.fetch_or(CLOSED, Ordering::Relaxed);
    }
}
