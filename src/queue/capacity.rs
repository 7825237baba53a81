//! A queue's capacity: the permits that its messages hold, and which threads
//! hold what only they can finish.
//!
//! State: a semaphore with a permit for each message that the queue may hold;
//! and by thread how many live turns, deliveries and looks it has received.
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
//! 3. `holders` has no zero, and emptied gives its block back.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

use crate::error::OutOfRange;
use crate::limit::{Bypass, Limit};
use crate::semaphore::{Permit, Semaphore};
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

/// The thread that has received something that is live, exactly if there is a
/// capacity.
pub(super) type Holder = Option<NonZeroU64>;

/// Stands for any thread whose locals are destroyed.
const ENDING: NonZeroU64 = NonZeroU64::MAX;

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

    #[inline]
    pub(super) fn permits(&self) -> Option<&Semaphore> {
        self.bound.as_ref().map(|bound| &bound.permits)
    }

    #[inline]
    pub(super) fn is_limited(&self) -> bool {
        self.bound.is_some()
    }

    /// Takes permits for so many messages, if nobody who waits wants them.
    #[inline]
    pub(crate) fn take(&self, messages: usize) -> Result<Permits<'_>, SendReason> {
        let permits = self.permits();
        let taken = permits.map(|permits| permits.try_acquire(number(messages)));
        Ok(Permits(taken.transpose()?))
    }

    /// So many messages are gone. Under no lock.
    pub(super) fn release(&self, messages: usize) {
        if self.put(messages) {
            self.serve();
        }
    }

    /// So many messages are gone. Under a lock: whether [`serve`](Self::serve)
    /// must follow.
    #[inline]
    #[must_use]
    pub(super) fn put(&self, messages: usize) -> bool {
        let permits = self.permits();
        permits.is_some_and(|permits| permits.put(number(messages)))
    }

    /// Serves those who wait. Under no lock.
    #[cold]
    pub(super) fn serve(&self) {
        if let Some(permits) = self.permits() {
            permits.serve();
        }
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
        let held = self.bound.as_ref().zip(this_thread());
        held.is_some_and(|(bound, me)| bound.holders.lock().contains_key(&me))
    }
}

impl Bound {
    #[cold]
    fn hold(&self) -> Holder {
        let thread = this_thread().unwrap_or(ENDING);
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

/// More than there can be permits is more than any capacity.
#[inline]
pub(super) fn number(messages: usize) -> u32 {
    u32::try_from(messages).unwrap_or(u32::MAX)
}

/// The calling thread's number; `None` while its locals are destroyed.
fn this_thread() -> Holder {
    per_thread! {
        static ME: Cell<Holder> = const { Cell::new(None) };
    }
    let number = ME.try_with(|me| {
        me.set(me.get().or_else(|| NonZeroU64::new(unique() + 1)));
        me.get()
    });
    number.ok()?
}
