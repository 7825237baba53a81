//! The state word: one value per moment, changed by read-modify-writes alone.
//!
//! ```text
//!   63            32 31          3      2          1          0
//!  +----------------+-------------+--------+------------+---------+
//!  | available, i32 | overtakings | CLOSED | UNNOTIFIED | WAITERS |
//!  +----------------+-------------+--------+------------+---------+
//! ```
//!
//! `available` is the limit less the permits that are out, negative while a debt is left. It is the
//! top field, so that an addition to it does not carry into other bits.
//!
//! Who may change what:
//! - `available` down, `overtakings` up by one: every caller that takes;
//! - `available` up: every release;
//! - everything else, and taking for a waiter in the queue: under the queue's lock.
//!
//! Memory ordering: `put` is Release and pairs with the Acquire of every take, by any thread and
//! for any claim. So the next holder of a permit sees what was done under it. All writes are
//! read-modify-writes, so the release sequence of each `put` reaches the takes that follow it.
//! CLOSED is written under the lock, and acted on there: it needs no ordering of its own.

use crate::limit::Bypass;
use crate::sync::{Ordering, const_fn};
use crate::turnstile::{self, Released};

const CLOSED: u64 = 1 << 2;
const ONE: u64 = 1 << 32;
const LOW: u64 = ONE - 1;
const OVERTAKINGS: u64 = LOW & !0b111;

/// The value of the word at one moment.
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

    /// Whether `n` permits are available beyond the `ahead` that waiters have a right to.
    pub(super) fn covers(self, ahead: u64, n: u32) -> bool {
        let wanted = i64::try_from(ahead + u64::from(n)).unwrap_or(i64::MAX);
        self.available() >= wanted
    }

    fn less(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(u64::from(n) * ONE))
    }

    /// After a claim that is not in the queue took `n`, and overtook the waiters, if any.
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

    /// After `n` were taken by a claim that is not in the queue, where the waiters ask for `ahead`.
    /// What is available beyond that belongs to nobody, and taking it overtakes nobody.
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

    /// Takes `n` for a claim that is not in the queue. Without the lock.
    #[inline]
    #[must_use]
    pub(super) fn take(&self, n: u32) -> bool {
        // Acquire: pairs with the Release in `put`.
        let taken = self.update(Ordering::Acquire, |bits| bits.taken(n, self.bypass));
        taken.is_some()
    }

    /// Takes `n`, available or not, ahead of everybody.
    pub(super) fn take_past(&self, n: u32) {
        // Acquire: pairs with the Release in `put`.
        let before = self.bits.fetch_sub(u64::from(n) * ONE, Ordering::Acquire);
        debug_assert!(Bits::new(before).available() - i64::from(n) >= i64::from(i32::MIN));
    }

    /// Under the lock: takes `n` for a claim that is not in the queue. The waiters ask for `ahead`.
    /// If that fails and the claim `waits`, sets WAITERS by the compare-and-swap that saw too
    /// little.
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

    /// Under the lock: takes `n` for the front; `only`: nobody else is in the queue.
    #[must_use]
    pub(super) fn hand_over(&self, n: u32, only: bool) -> bool {
        // Acquire: pairs with the Release in `put`.
        let taken = self.update(Ordering::Acquire, |bits| {
            let covers = bits.covers(0, n);
            covers.then(|| bits.less(n).dequeued(true, only))
        });
        taken.is_some()
    }

    /// Under the lock: takes `n` for a claim in the queue. At most `ahead` (0 for the front alone)
    /// is asked for before it. If there is too little, sets UNNOTIFIED by the compare-and-swap that
    /// saw it: the next release notifies the waiter.
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
        // Relaxed: it publishes nobody's work, and continues the release sequences.
        self.bits
            .fetch_add((by as u64).wrapping_mul(ONE), Ordering::Relaxed);
    }

    /// Under the lock: closed for good.
    pub(super) fn close(&self) {
        // Relaxed: as `CLOSED` in the header.
        self.bits.fetch_or(CLOSED, Ordering::Relaxed);
    }
}
