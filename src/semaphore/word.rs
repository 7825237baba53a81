//! The state word: one value per moment, changed by read-modify-writes alone.
//!
//! ```text
//!   63            32 31          3      2          1          0
//!  +----------------+-------------+--------+------------+---------+
//!  | available, i32 | overtakings | CLOSED | UNNOTIFIED | WAITERS |
//!  +----------------+-------------+--------+------------+---------+
//! ```
//!
//! `available` is the limit less what is out, negative while a debt is left. It
//! stands at the top, so that adding to it carries into nothing.
//!
//! Who may change what:
//! - `available` down, `overtakings` up by one: anybody who takes;
//! - `available` up: anybody who gives back;
//! - everything else, and taking for somebody in the queue: under its lock.
//!
//! Memory ordering: giving back is Release and pairs with the Acquire of every
//! take, by whomever and for whomever: what was done under a permit is seen by
//! the next to have it. All writes are read-modify-writes, so the release
//! sequence of each give-back reaches to the takes that follow it. CLOSED is
//! written under the lock, and acted on there: it needs no ordering of its own.

use crate::limit::Bypass;
use crate::sync::{Ordering, const_fn};
use crate::turnstile::{self, Released};

const CLOSED: u64 = 1 << 2;
const ONE: u64 = 1 << 32;
const LOW: u64 = ONE - 1;
const OVERTAKINGS: u64 = LOW & !0b111;

/// What the word said at one moment.
pub(super) type Bits = turnstile::Bits<OVERTAKINGS>;

/// The word itself.
pub(super) type Word = turnstile::Word<OVERTAKINGS>;

impl Bits {
    pub(super) fn available(self) -> i64 {
        i64::from((self.0 >> 32) as i32)
    }

    pub(super) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// Whether `n` more are there beyond those that `ahead` have a right to.
    pub(super) fn covers(self, ahead: u64, n: u32) -> bool {
        let wanted = i64::try_from(ahead + u64::from(n)).unwrap_or(i64::MAX);
        self.available() >= wanted
    }

    fn less(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(u64::from(n) * ONE))
    }

    /// After a taker that is not in the queue took `n`, overtaking whoever is.
    #[inline]
    fn taken(self, n: u32, bypass: Bypass) -> Option<Self> {
        // Nobody waits, and open.
        if self.0 & LOW == 0 && self.available() >= i64::from(n) {
            return Some(self.less(n));
        }
        self.taken_slow(n, bypass)
    }

    fn taken_slow(self, n: u32, bypass: Bypass) -> Option<Self> {
        if self.is_closed() {
            return None;
        }
        if n == 0 {
            return Some(self);
        }
        if !self.covers(0, n) {
            return None;
        }
        let counted = match self.has_waiters() {
            true => self.overtaken(bypass)?,
            false => self,
        };
        Some(counted.less(n))
    }

    /// After `n` were taken by one who is not in the queue while those there ask
    /// for `ahead`: what is there beyond that belongs to nobody, and taking it
    /// overtakes nobody.
    fn taken_behind(self, n: u32, ahead: u64, bypass: Bypass) -> Option<Self> {
        if !self.is_closed() && self.covers(ahead, n) {
            return Some(self.less(n));
        }
        self.taken(n, bypass)
    }
}

impl Word {
    const_fn! {
        pub(super) fn of(limit: u32, bypass: Bypass) -> Self {
            Self::new(limit as u64 * ONE, bypass)
        }
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn with_overtakings(available: i32, overtakings: u32, bypass: Bypass) -> Self {
        let low = (u64::from(overtakings) << 3) | turnstile::WAITERS;
        Self::new((available as u64).wrapping_mul(ONE) | low, bypass)
    }

    /// Takes `n` for somebody who is not in the queue. Without the lock.
    #[inline]
    #[must_use]
    pub(super) fn take(&self, n: u32) -> bool {
        // Acquire: pairs with the Release in `put`.
        let taken = self.update(Ordering::Acquire, |bits| bits.taken(n, self.bypass));
        taken.is_some()
    }

    /// Takes `n`, there or not, ahead of everybody.
    pub(super) fn take_past(&self, n: u32) {
        // Acquire: pairs with the Release in `put`.
        let before = self.bits.fetch_sub(u64::from(n) * ONE, Ordering::Acquire);
        debug_assert!(Bits::new(before).available() - i64::from(n) >= i64::from(i32::MIN));
    }

    /// Under the lock: takes `n` for somebody who is not in the queue, where
    /// those in it ask for `ahead`; or leaves WAITERS in the very word that had
    /// too little, if it is to wait.
    #[must_use]
    pub(super) fn take_or_wait(&self, n: u32, ahead: u64, waits: bool) -> bool {
        let mut taken = false;
        // Acquire: pairs with the Release in `put`.
        let _ = self.update(Ordering::Acquire, |bits| {
            let next = bits.taken_behind(n, ahead, self.bypass);
            taken = next.is_some();
            next.or_else(|| waits.then(|| bits.waited_on()))
        });
        taken
    }

    /// Under the lock: takes `n` for the front, the only one in the queue or not.
    #[must_use]
    pub(super) fn hand_over(&self, n: u32, only: bool) -> bool {
        // Acquire: pairs with the Release in `put`.
        let taken = self.update(Ordering::Acquire, |bits| {
            let covers = bits.covers(0, n);
            covers.then(|| bits.less(n).dequeued(true, only))
        });
        taken.is_some()
    }

    /// Under the lock: takes `n` for one in the queue, with what `ahead` says is
    /// asked for before it at most (0 for the front alone), or leaves UNNOTIFIED in
    /// the very word that had too little: the next give-back tells it.
    #[must_use]
    pub(super) fn take_queued(
        &self,
        n: u32,
        only: bool,
        ahead: impl Fn(Bits) -> Option<u64>,
    ) -> bool {
        let mut taken = false;
        // Acquire: pairs with the Release in `put`.
        let _ = self.update(Ordering::Acquire, |bits| {
            let ahead = ahead(bits).filter(|&ahead| bits.covers(ahead, n));
            taken = ahead.is_some();
            Some(match ahead {
                Some(ahead) => bits.less(n).dequeued(ahead == 0, only),
                None => bits.unnotified(),
            })
        });
        taken
    }

    /// Gives `n` back.
    #[inline]
    pub(super) fn put(&self, n: u32) -> Released {
        // Release: pairs with the Acquire in the takes.
        let before = self.bits.fetch_add(u64::from(n) * ONE, Ordering::Release);
        Bits::new(before).after_release(self.bypass)
    }

    /// Under the lock: the limit has changed by `by`.
    pub(super) fn shift(&self, by: i64) {
        // Relaxed: publishes no work of anybody's; the release sequences go on.
        self.bits
            .fetch_add((by as u64).wrapping_mul(ONE), Ordering::Relaxed);
    }

    /// Under the lock: closed for good.
    pub(super) fn close(&self) {
        // Relaxed: as `CLOSED` in the header.
        self.bits.fetch_or(CLOSED, Ordering::Relaxed);
    }
}
