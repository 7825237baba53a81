//! A queue's capacity: the permits that its messages hold.
//!
//! State: the permits (`permit_cache`), one for each message that the queue may hold; and which
//! threads hold what only they can finish (`holders`).
//!
//! Protocol: a send first takes permits, or waits for them (`send_wait`). They come back when
//! the message is done or taken out. Under another lock permits are only put back; waiters are
//! served after that lock is released.
//!
//! Invariants:
//! 1. No waiter is overtaken.
//! 2. The permits out belong to messages that wait or are in flight, to sends under way, and to
//!    waits that were granted some and have not been polled since. What dialogs put in beyond
//!    the capacity is a debt.

use crate::error::OutOfRange;
use crate::limit::Limit;
use crate::semaphore::{Permit, Semaphore};
use crate::sync::{AtomicBool, Ordering, thread_number};
use crate::turnstile::Turnstile;
use crate::wait::Ticket;

use super::holders::{Holder, Holders};
use super::permit_cache::{LEAST, PermitCache};
use super::refuse::SendReason;

/// The capacity of a queue, if it has one.
#[derive(Debug)]
pub(crate) struct Capacity {
    bounded: Option<Box<(PermitCache, Holders)>>,
    /// Whether a group or a lane has, or had, a capacity.
    parts: AtomicBool,
}

/// The permits of what is to be sent; given back on drop.
#[derive(Default)]
#[must_use]
pub struct Permits<'a>(pub(super) Option<Permit<&'a Semaphore>>);

impl Permits<'_> {
    /// The permits belong to the messages from now on.
    #[inline]
    pub(crate) fn keep(self) {
        if let Some(permit) = self.0 {
            permit.pass_on();
        }
    }
}

impl Capacity {
    /// 0 lets nothing in.
    pub(crate) fn new(capacity: Limit) -> Result<Self, OutOfRange> {
        Self::cached_from(LEAST, capacity)
    }

    /// For permits that are taken under a lock: [`take`](Self::take) never needs to serve
    /// waiters.
    pub(crate) fn under_a_lock(capacity: Limit) -> Result<Self, OutOfRange> {
        Self::cached_from(u32::MAX, capacity)
    }

    fn cached_from(least: u32, capacity: Limit) -> Result<Self, OutOfRange> {
        let mut bounded = None;
        if let Limit::AtMost(most) = capacity.checked("capacity")? {
            bounded = Some(Box::new((PermitCache::new(most, least), Holders::new())));
        }
        let parts = AtomicBool::new(false);
        Ok(Self { bounded, parts })
    }

    /// From now on, waiting sends look for capacities of groups and lanes.
    pub(crate) fn use_parts(&self) {
        // Relaxed: a send that comes after the capacity was set sees it.
        self.parts.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_parts(&self) -> bool {
        self.parts.load(Ordering::Relaxed)
    }

    #[inline]
    fn cache(&self) -> Option<&PermitCache> {
        Some(&self.bounded.as_ref()?.0)
    }

    #[inline]
    fn holders(&self) -> Option<&Holders> {
        Some(&self.bounded.as_ref()?.1)
    }

    #[inline]
    pub(crate) fn permits(&self) -> Option<&Semaphore> {
        self.cache().map(PermitCache::permits)
    }

    /// Grants no more room, and ends all waits for it.
    pub(crate) fn close(&self) {
        if let Some(permits) = self.permits() {
            permits.close();
        }
    }

    pub(crate) fn limit(&self) -> Limit {
        let limit = self.permits().map(|permits| permits.limit());
        limit.map_or(Limit::Unlimited, Limit::AtMost)
    }

    /// Free permits, including those cached by threads; negative while there is a debt. May be
    /// out of date when it is returned.
    pub(crate) fn available(&self) -> Option<i64> {
        self.cache().map(PermitCache::available)
    }

    /// Whether this waiter can get nothing now: it was granted nothing, and no permit is free.
    pub(crate) fn denies(&self, ticket: Ticket) -> bool {
        let none_is_free = self.available().is_some_and(|free| free <= 0);
        let asleep = |permits: &Semaphore| permits.is_asleep(ticket);
        none_is_free && self.permits().is_some_and(asleep)
    }

    /// Whether so many messages exceed it.
    pub(super) fn is_below(&self, messages: usize) -> bool {
        let permits = self.permits();
        permits.is_some_and(|permits| is_above(permits, number(messages)))
    }

    pub(super) fn outstanding(&self) -> Option<u64> {
        let limit = self.permits()?.limit();
        let out = i64::from(limit) - self.available()?;
        Some(out.max(0) as u64)
    }

    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.bounded.is_some()
    }

    /// Takes permits for `messages`, unless waiters want them. Under no lock.
    #[inline(always)]
    pub(crate) fn take(&self, messages: usize) -> Result<Permits<'_>, SendReason> {
        let mut serve = false;
        let taken = self.take_locked(messages, &mut serve);
        if serve {
            self.serve();
        }
        taken
    }

    /// The same under a lock; sets `serve` if [`serve`](Self::serve) must follow.
    #[inline(always)]
    pub(super) fn take_locked(
        &self,
        messages: usize,
        serve: &mut bool,
    ) -> Result<Permits<'_>, SendReason> {
        let Some(cache) = self.cache() else {
            return Ok(Permits(None));
        };
        let n = number(messages);
        cache.take(n, serve)?;
        Ok(Permits(Some(Permit::of(cache.permits(), n))))
    }

    /// Takes the permit of one message, if one is free and no waiter wants it. Allowed under
    /// a lock.
    #[inline(always)]
    #[must_use]
    pub(super) fn take_one(&self) -> bool {
        self.cache().is_none_or(PermitCache::take_one)
    }

    /// Takes the permit of one message, even if none is free. Under a lock; returns whether
    /// [`serve`](Self::serve) must follow.
    #[must_use]
    pub(super) fn take_past(&self) -> bool {
        self.cache().is_some_and(PermitCache::take_past)
    }

    /// `messages` are gone. Under no lock.
    #[inline]
    pub(crate) fn release(&self, messages: usize) {
        if self.put(messages) {
            self.serve();
        }
    }

    /// `messages` that a thread has received are done. Under no lock.
    #[inline(never)]
    pub(super) fn done(&self, by: &Holder, messages: u32) {
        let cache = self.cache();
        if cache.is_some_and(|cache| cache.put(by.thread(), messages)) {
            self.serve();
        }
    }

    /// `messages` are gone. Under a lock; returns whether [`serve`](Self::serve) must follow.
    #[inline]
    #[must_use]
    pub(crate) fn put(&self, messages: usize) -> bool {
        let cache = self.cache();
        cache.is_some_and(|cache| cache.put(thread_number(), number(messages)))
    }

    /// A send has begun to wait, since it found too few permits: takes back what threads have
    /// cached. Returns whether it may have got some of that. Under no lock.
    pub(super) fn waited_for(&self) -> bool {
        let mut serve = false;
        _ = self.cache().map(|cache| cache.shut(&mut serve));
        if serve {
            self.serve();
        }
        serve
    }

    /// Serves the waiters. Under no lock.
    #[cold]
    pub(crate) fn serve(&self) {
        if let Some(permits) = self.permits() {
            permits.serve();
        }
    }

    /// The calling thread has received something.
    #[inline(always)]
    pub(super) fn hold(&self) -> Holder {
        self.holders().map_or(Holder::NONE, Holders::hold)
    }

    /// Something received is no longer live.
    #[inline]
    pub(super) fn let_go(&self, holder: &mut Holder) {
        if holder.is_some()
            && let Some(holders) = self.holders()
        {
            holder.let_go(holders);
        }
    }

    /// Whether something that the calling thread received is live.
    pub(super) fn is_own(&self) -> bool {
        self.holders().is_some_and(Holders::is_own)
    }
}

/// Whether so many messages never get room at once, as long as the capacity stays: it is not 0, and
/// too small.
pub(super) fn is_above(bound: &Semaphore, n: u32) -> bool {
    n > 1 && !bound.is_free(n.into()) && !bound.is_closed() && (1..n).contains(&bound.limit())
}

/// More messages than there can be permits are more than any capacity.
#[inline]
pub(super) fn number(messages: usize) -> u32 {
    u32::try_from(messages).unwrap_or(u32::MAX)
}
