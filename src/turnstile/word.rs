//! What the state words of all turnstiles share: two flags, and the number of overtakings.
//!
//! ```text
//!   63                                   2 1            0
//!  +--------------------------------------+------------+---------+
//!  | the primitive's own, and OVERTAKINGS | UNNOTIFIED | WAITERS |
//!  +--------------------------------------+------------+---------+
//! ```
//!
//! `OVERTAKINGS` is the mask of the field in which the primitive counts overtakings. A claim that
//! takes may add one without the lock; everything else here changes under the queue's lock.
//!
//! Memory ordering: the flags need none of their own. A thread that acts on them takes the lock
//! after it has read them, and finds there what was written with them. All changes are
//! read-modify-writes, so they continue a release sequence.

use super::watch::Look;
use crate::limit::Bypass;
use crate::sync::{AtomicU64, Ordering, const_fn};
use crate::wait::lost;

/// Somebody is in the queue.
pub(crate) const WAITERS: u64 = 1;
/// Somebody in the queue has not been notified.
const UNNOTIFIED: u64 = 1 << 1;

/// Whether a release must serve the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Released {
    /// Nobody waits, or every waiter that could go on will retry anyway.
    Done,
    /// The queue must be served.
    Serve,
}

/// The value of a word at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bits<const OVERTAKINGS: u64>(pub(crate) u64);

impl<const OVERTAKINGS: u64> Bits<OVERTAKINGS> {
    const ONE: u64 = 1 << OVERTAKINGS.trailing_zeros();

    #[inline]
    pub(crate) fn new(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub(crate) const fn overtakings(self) -> u32 {
        ((self.0 & OVERTAKINGS) / Self::ONE) as u32
    }

    #[inline]
    pub(crate) fn has_waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    /// Whether what is released is kept for the front of the queue.
    #[inline]
    pub(crate) fn is_at_bound(self, bypass: Bypass) -> bool {
        bypass.spent(self.overtakings())
    }

    /// With one more overtaking, if the bound allows it.
    #[inline]
    pub(crate) fn overtaken(self, bypass: Bypass) -> Option<Self> {
        match bypass {
            Bypass::Unbounded => Some(self),
            _ if self.is_at_bound(bypass) => None,
            Bypass::AtMost(_) => Some(Self(self.0 + Self::ONE)),
        }
    }

    /// With one more claim in the queue, which found too little.
    pub(crate) fn waited_on(self) -> Self {
        Self(self.0 | WAITERS | UNNOTIFIED)
    }

    pub(crate) fn unnotified(self) -> Self {
        Self(self.0 | UNNOTIFIED)
    }

    /// After a claim in the queue was granted. If this `restarts` the count, the overtakings are
    /// cleared; if it was the only claim, nobody waits any more.
    pub(crate) fn dequeued(self, restarts: bool, only: bool) -> Self {
        match (restarts, only) {
            (_, true) => Self(self.0 & !(OVERTAKINGS | WAITERS | UNNOTIFIED)),
            (true, false) => Self(self.0 & !OVERTAKINGS),
            (false, false) => self,
        }
    }

    #[inline(always)]
    pub(crate) fn after_release(self, bypass: Bypass) -> Released {
        if self.has_waiters() && (self.0 & UNNOTIFIED != 0 || self.is_at_bound(bypass)) {
            Released::Serve
        } else {
            Released::Done
        }
    }
}

/// A word, and the bound to which it counts.
pub(crate) struct Word<const OVERTAKINGS: u64> {
    pub(crate) bits: AtomicU64,
    pub(crate) bypass: Bypass,
}

impl<const OVERTAKINGS: u64> Word<OVERTAKINGS> {
    const_fn! {
        pub(crate) fn new(bits: u64, bypass: Bypass) -> Self {
            Self {
                bits: AtomicU64::new(bits),
                bypass: Self::bound(bypass),
            }
        }
    }

    pub(crate) const fn set_bypass(&mut self, bypass: Bypass) {
        self.bypass = Self::bound(bypass);
    }

    /// Clips the bound to the largest number that the word can count.
    const fn bound(bypass: Bypass) -> Bypass {
        let most = Bits::<OVERTAKINGS>(u64::MAX).overtakings();
        match bypass {
            Bypass::AtMost(bound) if bound > most => Bypass::AtMost(most),
            other => other,
        }
    }

    /// Relaxed: a thread that acts on the value does so by a compare-and-swap, or under the lock.
    #[inline]
    pub(crate) fn load(&self) -> Bits<OVERTAKINGS> {
        Bits(self.bits.load(Ordering::Relaxed))
    }

    /// Changes the word unless `change` returns `None`; returns the value before the change.
    #[inline]
    pub(crate) fn update(
        &self,
        success: Ordering,
        change: impl FnMut(Bits<OVERTAKINGS>) -> Option<Bits<OVERTAKINGS>>,
    ) -> Option<Bits<OVERTAKINGS>> {
        self.update_from(self.load(), success, change)
    }

    /// [`update`](Self::update) by a caller that has already read the word.
    #[inline]
    pub(crate) fn update_from(
        &self,
        mut now: Bits<OVERTAKINGS>,
        success: Ordering,
        mut change: impl FnMut(Bits<OVERTAKINGS>) -> Option<Bits<OVERTAKINGS>>,
    ) -> Option<Bits<OVERTAKINGS>> {
        loop {
            let next = change(now)?;
            let exchanged =
                self.bits
                    .compare_exchange_weak(now.0, next.0, success, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return Some(now),
                Err(_) if lost() => now = self.load(),
                Err(other) => now = Bits(other),
            }
        }
    }

    #[inline]
    pub(crate) fn is_at_bound(&self) -> bool {
        self.load().is_at_bound(self.bypass)
    }

    /// A look at the word, for a claim that is free if `is_free` says so.
    pub(crate) fn look(&self, is_free: impl FnOnce(Bits<OVERTAKINGS>) -> bool) -> Look {
        let bits = self.load();
        Look {
            bits: bits.0,
            overtakings: bits.overtakings(),
            is_free: is_free(bits),
        }
    }

    /// Whether the bound keeps out every claim that is not in the queue.
    pub(crate) fn is_shut(&self) -> bool {
        let bits = self.load();
        bits.has_waiters() && bits.is_at_bound(self.bypass)
    }

    /// Under the lock: releases must serve. Relaxed, as the next two: see the header.
    pub(crate) fn some_unnotified(&self) {
        self.bits.fetch_or(UNNOTIFIED, Ordering::Relaxed);
    }

    /// Under the lock: every waiter that could go on has been notified.
    pub(crate) fn all_notified(&self) {
        self.bits.fetch_and(!UNNOTIFIED, Ordering::Relaxed);
    }

    /// Under the lock: nobody is in the queue any more.
    pub(crate) fn nobody_waits(&self) {
        self.bits
            .fetch_and(!(OVERTAKINGS | WAITERS | UNNOTIFIED), Ordering::Relaxed);
    }
}
