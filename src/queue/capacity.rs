//! A queue's capacity: the permits that its messages hold, and which threads
//! hold what only they can finish.
//!
//! State: the permits (`permit_cache`), one for each message that the queue may hold. And
//! each thread has, for each queue that it receives from, a count of the live
//! turns, deliveries and looks that it has received: these are the owners of
//! one `Arc`, beside the thread itself, so that no thread asks another.
//!
//! Protocol: a send first takes its permits, or waits for them (`send_wait`).
//! They are given back when what was sent is done or taken out; under another
//! lock they are only put back, and those who wait are served after it.
//!
//! Invariants:
//! 1. Nobody who waits is overtaken.
//! 2. The permits out are those of the messages that wait or are in flight, of
//!    the sends on their way, and of waits that were granted some and not polled
//!    since. What dialogs put past the capacity is a debt.
//! 3. A thread forgets a queue only while nothing that it received there is live.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use crate::error::OutOfRange;
use crate::limit::Limit;
use crate::semaphore::{Permit, Semaphore};
// Shared ownership and no more: nothing is synchronized by it.
use crate::sync::{WakeArc as Arc, per_thread};
use crate::turnstile::Turnstile;

use super::permit_cache::PermitCache;
use super::refuse::SendReason;

/// The capacity of a queue, if it has one.
#[derive(Debug)]
pub(crate) struct Capacity {
    cache: Option<Box<PermitCache>>,
}

/// What is to be sent has them; dropped, they are given back.
#[must_use]
#[allow(unreachable_pub, reason = "in a sealed trait")]
pub struct Permits<'a>(pub(super) Option<Permit<&'a Semaphore>>);

impl Permits<'_> {
    /// They are the messages' from now on.
    #[inline]
    pub(crate) fn keep(self) {
        if let Some(permit) = self.0 {
            permit.pass_on();
        }
    }
}

/// Held by what is live, for the thread that has received it, until
/// [`let_go`](Self::let_go); there exactly if there is a capacity. Nothing is
/// done when it is dropped, so that no turn pays for a look.
pub(super) struct Holder(ManuallyDrop<Option<Arc<()>>>);

impl Holder {
    #[inline]
    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// What was received is live no more.
    #[inline]
    pub(super) fn let_go(&mut self) {
        drop(self.0.take());
    }

    #[inline]
    pub(super) fn take(&mut self) -> Self {
        Self(ManuallyDrop::new(self.0.take()))
    }
}

impl Capacity {
    pub(crate) fn new(capacity: Limit) -> Result<Self, OutOfRange> {
        let Limit::AtMost(most) = capacity else {
            return Ok(Self { cache: None });
        };
        OutOfRange::check("capacity", most, 1, Limit::MAX)?;
        let cache = Some(Box::new(PermitCache::new(most)?));
        Ok(Self { cache })
    }

    #[inline]
    pub(crate) fn permits(&self) -> Option<&Semaphore> {
        self.cache.as_ref().map(|cache| &cache.permits)
    }

    /// Nobody waits for room any more, and none is given.
    pub(crate) fn close(&self) {
        if let Some(permits) = self.permits() {
            permits.close();
        }
    }

    pub(crate) fn limit(&self) -> Limit {
        let limit = self.permits().map(|permits| permits.limit());
        limit.map_or(Limit::Unlimited, Limit::AtMost)
    }

    /// Permits that are free, also those that threads have cached; negative while
    /// there is a debt. Out of date when it is returned.
    pub(crate) fn available(&self) -> Option<i64> {
        self.cache.as_ref().map(|cache| cache.available())
    }

    /// Permits that are out.
    pub(super) fn outstanding(&self) -> Option<u64> {
        let limit = self.permits()?.limit();
        let out = i64::from(limit) - self.available()?;
        Some(out.max(0) as u64)
    }

    #[inline]
    pub(super) fn is_limited(&self) -> bool {
        self.cache.is_some()
    }

    /// Takes permits for so many messages, if nobody who waits wants them.
    #[inline(always)]
    pub(crate) fn take(&self, messages: usize) -> Result<Permits<'_>, SendReason> {
        match &self.cache {
            None => Ok(Permits(None)),
            Some(cache) => Self::take_of(cache, messages),
        }
    }

    #[inline]
    fn take_of(cache: &PermitCache, messages: usize) -> Result<Permits<'_>, SendReason> {
        let n = number(messages);
        cache.take(n)?;
        Ok(Permits(Some(Permit::of(&cache.permits, n))))
    }

    /// So many messages are gone. Under no lock.
    #[inline]
    pub(crate) fn release(&self, messages: usize) {
        if self.put(messages) {
            self.serve();
        }
    }

    /// So many messages are gone. Under a lock: whether [`serve`](Self::serve)
    /// must follow.
    #[inline]
    #[must_use]
    pub(crate) fn put(&self, messages: usize) -> bool {
        let cache = self.cache.as_ref();
        cache.is_some_and(|cache| cache.put(number(messages)))
    }

    /// Somebody waits for permits, since it found too few: what threads have
    /// cached is given back. Under no lock.
    pub(super) fn waited_for(&self) {
        if let Some(cache) = &self.cache {
            _ = cache.shut();
        }
    }

    /// Serves those who wait. Under no lock.
    #[cold]
    pub(crate) fn serve(&self) {
        if let Some(permits) = self.permits() {
            permits.serve();
        }
    }

    /// The calling thread has received something.
    #[inline]
    pub(super) fn hold(&self) -> Holder {
        let held = self.cache.as_ref().map(|cache| hold(cache.number));
        Holder(ManuallyDrop::new(held))
    }

    /// Whether something that the calling thread received is live.
    pub(super) fn is_own(&self) -> bool {
        let Some(cache) = &self.cache else {
            return false;
        };
        let is_live = |mine: &mut Mine| held(mine, cache.number).is_some_and(is_live);
        with_mine(is_live).unwrap_or(false)
    }
}

/// The queues with a capacity that a thread receives from.
type Mine = Vec<(u64, Arc<()>)>;

/// So many are not worth forgetting.
const FEW: usize = 8;

fn is_live(held: &Arc<()>) -> bool {
    Arc::strong_count(held) > 1
}

/// `None` while the thread's locals are destroyed.
fn with_mine<R>(f: impl FnOnce(&mut Mine) -> R) -> Option<R> {
    per_thread! {
        static MINE: RefCell<Mine> = const { RefCell::new(Vec::new()) };
    }
    MINE.try_with(|mine| f(&mut mine.borrow_mut())).ok()
}

/// What the thread has of the queue of this number.
fn held(mine: &Mine, number: u64) -> Option<&Arc<()>> {
    let held = mine.iter().find(|(queue, _)| *queue == number);
    held.map(|(_, held)| held)
}

#[cold]
fn hold(number: u64) -> Arc<()> {
    let held = with_mine(|mine| {
        if let Some(held) = held(mine, number) {
            return Arc::clone(held);
        }
        if mine.len() >= FEW {
            mine.retain(|(_, held)| is_live(held));
        }
        let first = Arc::default();
        mine.push((number, Arc::clone(&first)));
        first
    });
    held.unwrap_or_default()
}

/// More than there can be permits is more than any capacity.
#[inline]
pub(super) fn number(messages: usize) -> u32 {
    u32::try_from(messages).unwrap_or(u32::MAX)
}
