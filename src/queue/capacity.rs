//! A queue's capacity: the permits that its messages hold, and which threads
//! hold what only they can finish.
//!
//! State: a semaphore with a permit for each message that the queue may hold;
//! and by thread how many turns, deliveries and looks it has received that are
//! still live.
//!
//! Protocol: a send first takes its permits, or waits for them (`send_wait`),
//! and then goes the way of all sends. What is sent keeps them until it is done
//! or taken out; whoever is refused gives them back. Giving back wakes: under
//! another lock they are only put back, and those who wait are served after it.
//!
//! Invariants:
//! 1. The bound on overtaking is 0: permits are handed to those who wait, in
//!    their order.
//! 2. The permits out are those of the messages that wait or are in flight, of
//!    the sends on their way, and of the waits that were granted some and have
//!    not been polled since. What dialogs put past the capacity is a debt.
//! 3. `holders` has no zero, and emptied gives its block back.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

use crate::error::OutOfRange;
use crate::limit::{Bypass, Limit};
use crate::semaphore::{Acquire, Permit, Semaphore, TryAcquireError, WaiterState};
use crate::sync::{Mutex, per_thread, unique};
use crate::turnstile::Turnstile;

use super::refuse::SendReason;

/// The capacity of a queue, if it has one.
pub(crate) struct Capacity {
    bound: Option<Box<Bound>>,
}

struct Bound {
    permits: Semaphore,
    holders: Mutex<BTreeMap<NonZeroU64, u32>>,
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

/// The thread that has received something that is live, if there is a capacity.
pub(super) type Holder = Option<NonZeroU64>;

impl Capacity {
    pub(super) fn new(capacity: Limit) -> Result<Self, OutOfRange> {
        let Limit::AtMost(most) = capacity else {
            return Ok(Self { bound: None });
        };
        OutOfRange::check("capacity", most, 1, Limit::MAX)?;
        let bound = Box::new(Bound {
            permits: Semaphore::new(most)?.with_bypass(Bypass::AtMost(0)),
            holders: Mutex::new(BTreeMap::new()),
        });
        Ok(Self { bound: Some(bound) })
    }

    /// Whether there is one.
    #[inline]
    pub(super) fn is_limited(&self) -> bool {
        self.bound.is_some()
    }

    /// Takes permits for so many messages, if nobody who waits wants them.
    #[inline]
    pub(crate) fn take(&self, messages: usize) -> Result<Permits<'_>, SendReason> {
        let Some(bound) = &self.bound else {
            return Ok(Permits(None));
        };
        let permit = bound.permits.try_acquire(number(messages))?;
        Ok(Permits(Some(permit)))
    }

    /// What to wait with for so many permits, on behalf of an owner; nothing if
    /// there is always room.
    pub(super) fn request(&self, owner: usize, messages: usize) -> Option<Acquire<'_>> {
        let bound = self.bound.as_ref()?;
        Some(bound.permits.acquire_for(owner, number(messages)))
    }

    /// So many messages are there, whether or not there is room for them.
    pub(super) fn take_past(&self, messages: u32) {
        if let Some(bound) = &self.bound {
            bound.permits.acquire_past(messages);
        }
    }

    /// So many messages are gone. Under no lock.
    #[inline]
    pub(super) fn release(&self, messages: usize) {
        if self.is_limited() {
            self.release_some(messages);
        }
    }

    #[inline(never)]
    fn release_some(&self, messages: usize) {
        if let Some(bound) = &self.bound {
            bound.permits.release(number(messages));
        }
    }

    /// So many messages are gone. Under a lock: whether [`serve`](Self::serve)
    /// must follow.
    #[inline]
    #[must_use]
    pub(super) fn put(&self, messages: usize) -> bool {
        let bound = self.bound.as_ref();
        bound.is_some_and(|bound| bound.permits.put(number(messages)))
    }

    /// Serves those who wait. Under no lock.
    #[cold]
    pub(super) fn serve(&self) {
        if let Some(bound) = &self.bound {
            bound.permits.serve();
        }
    }

    /// Nobody is given anything from now on.
    pub(super) fn close(&self) {
        if let Some(bound) = &self.bound {
            bound.permits.close();
        }
    }

    /// Ends all waits for this owner.
    #[inline]
    pub(super) fn refuse(&self, owner: usize) {
        if let Some(bound) = &self.bound {
            bound.permits.refuse_for(owner);
        }
    }

    /// The sends that wait, those that were granted their permits and have not
    /// looked since, and for how many messages all of them are.
    pub(super) fn waits(&self) -> (usize, usize, u64) {
        let Some(bound) = &self.bound else {
            return (0, 0, 0);
        };
        let waiters = bound.permits.snapshot().waiters;
        let asleep = waiters.iter().filter(|w| w.state == WaiterState::Waiting);
        let asleep = asleep.count();
        let messages = waiters.iter().map(|waiter| u64::from(waiter.count));
        (asleep, waiters.len() - asleep, messages.sum())
    }

    /// The calling thread has received something, which is live until
    /// [`let_go`](Self::let_go).
    #[inline]
    pub(super) fn hold(&self) -> Holder {
        self.bound.as_ref().and_then(|bound| bound.hold())
    }

    /// What was received is live no more.
    #[inline]
    pub(super) fn let_go(&self, holder: Holder) {
        if let (Some(thread), Some(bound)) = (holder, &self.bound) {
            bound.let_go(thread);
        }
    }

    /// Whether something that the calling thread received is live.
    pub(super) fn is_own(&self) -> bool {
        let bound = self.bound.as_ref();
        bound.is_some_and(|bound| {
            let me = this_thread();
            me.is_some_and(|me| bound.holders.lock().contains_key(&me))
        })
    }
}

impl Bound {
    #[cold]
    fn hold(&self) -> Holder {
        let thread = this_thread()?;
        *self.holders.lock().entry(thread).or_default() += 1;
        Some(thread)
    }

    #[cold]
    fn let_go(&self, thread: NonZeroU64) {
        let mut holders = self.holders.lock();
        let count = holders.entry(thread).or_default();
        *count -= 1;
        if *count == 0 {
            holders.remove(&thread);
        }
        if holders.is_empty() {
            *holders = BTreeMap::new();
        }
    }
}

impl From<TryAcquireError> for SendReason {
    fn from(error: TryAcquireError) -> Self {
        match error {
            TryAcquireError::NoPermits => Self::Full,
            TryAcquireError::Closed => Self::Closed,
            TryAcquireError::AboveLimit => Self::AboveCapacity,
        }
    }
}

/// More than there can be permits is more than any capacity.
#[inline]
fn number(messages: usize) -> u32 {
    u32::try_from(messages).unwrap_or(u32::MAX)
}

/// The calling thread's number; `None` while its locals are destroyed.
fn this_thread() -> Option<NonZeroU64> {
    per_thread! {
        static ME: Cell<u64> = const { Cell::new(0) };
    }
    let known = ME.try_with(Cell::get).ok()?;
    if known > 0 {
        return NonZeroU64::new(known);
    }
    let new = unique() + 1;
    ME.try_with(|me| me.set(new)).ok()?;
    NonZeroU64::new(new)
}
