//! What the state words of all turnstiles share: two flags, and the overtakings.
//!
//! ```text
//!   63                                   2 1            0
//!  +--------------------------------------+------------+---------+
//!  | the primitive's own, and OVERTAKINGS | UNNOTIFIED | WAITERS |
//!  +--------------------------------------+------------+---------+
//! ```
//!
//! `OVERTAKINGS` is the mask of the field where the primitive counts them. Who
//! takes counts one up; all else here changes under the queue's lock.
//!
//! Memory ordering: who acts on the flags takes the lock after it has read them,
//! and finds there what was written with them: they need none of their own.
//! Changes are read-modify-writes alone, so a release sequence goes on through
//! them.

use crate::limit::Bypass;
use crate::sync::{AtomicU64, Ordering, const_fn};
use crate::wait::lost;

/// Somebody is in the queue.
pub(crate) const WAITERS: u64 = 1;
/// Somebody is there who has not been notified.
pub(crate) const UNNOTIFIED: u64 = 1 << 1;

/// Whether what came back concerns anybody in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Released {
    /// Nobody waits, or all who could go on will look anyway.
    Done,
    /// The queue must be served.
    Serve,
}

/// What a word said at one moment.
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

    /// Whether what comes free is kept for the front.
    #[inline]
    pub(crate) fn is_at_bound(self, bypass: Bypass) -> bool {
        bypass.spent(self.overtakings())
    }

    /// With one overtaking more, if that may be.
    #[inline]
    pub(crate) fn overtaken(self, bypass: Bypass) -> Option<Self> {
        match bypass {
            Bypass::Unbounded => Some(self),
            _ if self.is_at_bound(bypass) => None,
            Bypass::AtMost(_) => Some(Self(self.0 + Self::ONE)),
        }
    }

    /// With one more in the queue, who has found too little.
    pub(crate) fn waited_on(self) -> Self {
        Self(self.0 | WAITERS | UNNOTIFIED)
    }

    pub(crate) fn unnotified(self) -> Self {
        Self(self.0 | UNNOTIFIED)
    }

    /// Without one in the queue who was granted what it asks for. The front ends
    /// a run of overtakings, the only one leaves nobody.
    pub(crate) fn dequeued(self, front: bool, only: bool) -> Self {
        match (front, only) {
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

    /// A bound above what the word can count to counts as that.
    const fn bound(bypass: Bypass) -> Bypass {
        let most = Bits::<OVERTAKINGS>(u64::MAX).overtakings();
        match bypass {
            Bypass::AtMost(bound) if bound > most => Bypass::AtMost(most),
            other => other,
        }
    }

    /// Relaxed: whoever acts on it does so by an exchange, or under the lock.
    #[inline]
    pub(crate) fn load(&self) -> Bits<OVERTAKINGS> {
        Bits(self.bits.load(Ordering::Relaxed))
    }

    /// Changes the word if `change` finds it possible; says what it was.
    #[inline]
    pub(crate) fn update(
        &self,
        success: Ordering,
        change: impl FnMut(Bits<OVERTAKINGS>) -> Option<Bits<OVERTAKINGS>>,
    ) -> Option<Bits<OVERTAKINGS>> {
        self.update_from(self.load(), success, change)
    }

    /// [`update`](Self::update) by one who has seen the word like this.
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

    /// Whether the bound keeps out whoever is not in the queue.
    pub(crate) fn is_shut(&self) -> bool {
        let bits = self.load();
        bits.has_waiters() && bits.is_at_bound(self.bypass)
    }

    /// Under the lock: releases must serve. Relaxed, as the next two: see above.
    pub(crate) fn some_unnotified(&self) {
        self.bits.fetch_or(UNNOTIFIED, Ordering::Relaxed);
    }

    /// Under the lock: whoever in the queue could go on has been notified.
    pub(crate) fn all_notified(&self) {
        self.bits.fetch_and(!UNNOTIFIED, Ordering::Relaxed);
    }

    /// Under the lock: nobody is in the queue any more.
    pub(crate) fn nobody_waits(&self) {
        self.bits
            .fetch_and(!(OVERTAKINGS | WAITERS | UNNOTIFIED), Ordering::Relaxed);
    }
}
