//! The wait queue with bounded overtaking of the semaphore and the intent lock.
//!
//! It decides which claim is granted at once, which one waits, which waiter is notified next, and
//! what is handed over. The primitive says what can be granted.
//!
//! State: in the primitive's word, two flags and the number of overtakings (`word`); under one
//! lock, the waiters (`queue`), and what the primitive keeps there.
//!
//! ```text
//!             can be granted,                   otherwise
//!             queue empty or bound not reached
//!   claim ---+-----------------------------> granted
//!            |                                ^  ^ |
//!            +-> queued --notified, retries --+  | |
//!                   |                            | v
//!                   +------- handed over --------+ released
//! ```
//!
//! Protocol:
//! - A claim takes by one compare-and-swap of the word. A claim that does not find enough sets
//!   WAITERS and UNNOTIFIED by the same compare-and-swap that saw too little. It holds the lock
//!   meanwhile, and enters the queue under it.
//! - A release is one change of the word. If it sees UNNOTIFIED it then takes the lock and serves:
//!   it leaves in the word what it gave back, and notifies the waiters that can now go on. Once all
//!   of these are notified, releases need not serve, because the waiters will retry. A waiter that
//!   retries without success sets UNNOTIFIED by the same compare-and-swap that saw too little.
//! - A claim that sees WAITERS counts one overtaking in the compare-and-swap that takes. At the
//!   bound it may take only what nobody in the queue has a right to. Every release then serves, and
//!   takes out of the word for the front what it can.
//! - A cancelled wait serves the queue in the same way.
//! - A thread retries for about two microseconds before it enters the queue. Once it is notified, it
//!   watches the word before it polls (`watch`).
//!
//! Invariants:
//! 1. Whenever the lock is free: WAITERS is set if and only if the queue is not empty; without
//!    WAITERS the overtakings are 0.
//! 2. When the lock is free, and every release that must serve has held it since, every waiter that
//!    can go on has been notified or handed its claim.
//! 3. Nobody in the queue overtakes.
//! 4. The mark "notified" is cleared under the lock, together with the compare-and-swap that finds
//!    too little. That compare-and-swap sees every earlier release; a later release sees
//!    UNNOTIFIED, and then finds the mark cleared.
//! 5. Overtakings never exceed the bound, and are cleared only when the front is granted its claim,
//!    or the queue becomes empty. So a waiter is overtaken at most bound times for each grant up to
//!    and including its own. The grant of a conversion clears nothing.
//! 6. Wakers cross the lock in a [`ClonedWaker`], or its session discards them. So no waker can
//!    panic between the taking and the making of the primitive's guard.
//! 7. A service of the queue is finished even if a waker panics (`Session::repeat`).

mod queue;
mod request;
mod watch;
mod word;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::ops::Deref;
use std::task::Waker;

pub(crate) use self::queue::WaitQueue;
pub(crate) use self::request::Request;
pub(crate) use self::watch::Look;
pub(crate) use self::word::{Bits, Released, WAITERS, Word};

use self::watch::watch;
use crate::wait::{ClonedWaker, Guarded, SELDOM, Session, Ticket, WakeBatch, back_off};

/// What a caller asks for.
pub(crate) trait Claim: Copy + Unpin {
    /// The sum of several claims, kept so that nobody has to walk the queue for it.
    type Sum: Copy;

    /// The sum of no claims.
    const NOTHING: Self::Sum;

    fn add_to(self, sum: &mut Self::Sum);

    fn take_from(self, sum: &mut Self::Sum);
}

/// The sum of claims at `T`.
pub(crate) type SumOf<T> = <<T as Turnstile>::Claim as Claim>::Sum;

/// The result of a claim.
#[derive(Debug)]
pub(crate) enum Admission<G, R> {
    Granted(G),
    NotNow,
    Refused(R),
}

/// The result of a claim at `T`.
pub(crate) type AdmissionOf<T> = Admission<<T as Turnstile>::Grant, <T as Turnstile>::Refusal>;

/// A primitive that grants claims or lets them wait.
pub(crate) trait Turnstile: Sized {
    type Claim: Claim;
    /// What the holder of a granted claim must know.
    type Grant: Copy;
    type Refusal;
    /// What else the lock protects.
    type State;
    /// The result of a [`Request`] through a handle.
    type Output<H: Deref<Target = Self>>;

    fn granted<H: Deref<Target = Self>>(
        handle: H,
        claim: Self::Claim,
        grant: Self::Grant,
    ) -> Self::Output<H>;

    fn refused<H: Deref<Target = Self>>(refusal: Self::Refusal) -> Self::Output<H>;

    fn queue(&self) -> &Guarded<WaitQueue<Self>>;

    /// As [`Word::is_at_bound`].
    fn is_at_bound(&self) -> bool;

    /// As [`Word::nobody_waits`].
    fn nobody_waits(&self);

    /// Whether the bound, or a close, keeps out every claim that is not in the queue.
    fn is_shut(&self) -> bool;

    /// Takes without the lock, if possible.
    fn take_now(&self, claim: Self::Claim) -> Option<Self::Grant>;

    /// Retries for a moment, ever less often, before the claim enters the queue.
    #[cold]
    fn spin(&self, claim: Self::Claim) -> Option<Self::Grant> {
        back_off(SELDOM, || !self.is_shut(), || self.take_now(claim))
    }

    /// What the word says now about a claim in the queue.
    fn look(&self, claim: Self::Claim) -> Look;

    /// Collects what a thread in the queue was granted. A thread that was only notified watches for
    /// a chance before it polls.
    #[cold]
    fn spin_queued(&self, ticket: Ticket, claim: Self::Claim) -> Option<Self::Grant> {
        let mut queue = self.queue().lock();
        let granted = queue.collect(ticket);
        let watches = granted.is_none() && queue.is_notified(ticket);
        drop(queue);
        if watches {
            watch(|| (!self.is_shut()).then(|| self.look(claim)));
        }
        granted.map(|(_, grant)| grant)
    }

    /// Under the lock: takes for a claim that is not in the queue, if the bound allows it. If that
    /// fails and the claim `waits`, sets WAITERS by the compare-and-swap that saw too little.
    fn admit(
        &self,
        queue: &mut WaitQueue<Self>,
        claim: &mut Self::Claim,
        waits: bool,
    ) -> AdmissionOf<Self>;

    /// Puts a claim in the queue.
    fn enqueue(&self, queue: &mut WaitQueue<Self>, claim: Self::Claim, waker: Waker) -> Ticket {
        queue.enqueue(claim, waker)
    }

    /// Takes for a claim in the queue what nobody ahead has a right to.
    /// If there is too little, sets UNNOTIFIED by the compare-and-swap that saw it.
    fn admit_queued(&self, queue: &mut WaitQueue<Self>, ticket: Ticket) -> AdmissionOf<Self>;

    /// Takes for the front, if possible; `only`: nobody else is in the queue.
    fn hand_over(
        &self,
        state: &mut Self::State,
        claim: Self::Claim,
        only: bool,
    ) -> Option<Self::Grant>;

    /// Puts back what was handed over to a waiter that does not want it. The caller holds the lock,
    /// and so knows whether anybody waits.
    fn put_back(&self, state: &mut Self::State, claim: &mut Self::Claim, grant: Self::Grant);

    /// Called before the queue is served, even if it is empty.
    fn prepare(&self, _queue: &WaitQueue<Self>) {}

    /// Notifies every waiter that can go on. Clears UNNOTIFIED if no other waiter is left that a
    /// release could let go on. Returns false if the batch is full, and there may be more.
    fn notify(&self, queue: &mut WaitQueue<Self>, wakes: &mut WakeBatch) -> bool;

    /// Retries a claim that found too little, under the lock: the answer is exact.
    #[cold]
    fn try_exactly(&self, claim: &mut Self::Claim) -> AdmissionOf<Self> {
        self.admit(&mut self.queue().lock(), claim, false)
    }

    /// Polls a claim that found too little, at its place in the queue if it has one. If there is
    /// still too little, the claim waits in the queue with the `cloned` waker.
    #[cold]
    fn poll_queue(
        &self,
        claim: &mut Self::Claim,
        ticket: &mut Option<Ticket>,
        cloned: &mut ClonedWaker,
    ) -> AdmissionOf<Self> {
        let mut queue = self.queue().lock();
        let Some(queued) = *ticket else {
            let admission = self.admit(&mut queue, claim, true);
            if let Admission::NotNow = admission {
                *ticket = Some(self.enqueue(&mut queue, *claim, cloned.leave()));
            }
            return admission;
        };
        if let Some((_, grant)) = queue.collect(queued) {
            *ticket = None;
            return Admission::Granted(grant);
        }
        let admission = self.admit_queued(&mut queue, queued);
        match admission {
            Admission::Granted(_) => {
                *ticket = None;
                let old = queue.remove(queued).and_then(|removed| removed.waker);
                queue.discard_waker(old);
            }
            Admission::NotNow => cloned.0 = queue.rewait(queued, cloned.leave()),
            Admission::Refused(_) => {}
        }
        admission
    }

    /// Cancels a wait, even if it was handed its claim. Returns the claim, or `None` if the wait
    /// was refused and has not been polled since.
    fn cancel(&self, ticket: Ticket) -> Option<Self::Claim> {
        let mut session = self.queue().lock();
        let queue = &mut *session;
        let claim = if let Some((mut claim, grant)) = queue.collect(ticket) {
            self.put_back(&mut queue.state, &mut claim, grant);
            claim
        } else {
            let removed = queue.remove(ticket)?;
            if queue.is_empty() {
                self.nobody_waits();
            }
            session.discard_waker(removed.waker);
            removed.data
        };
        self.serve_queue(session);
        Some(claim)
    }

    /// Serves the queue, after something came back that a waiter may need.
    #[cold]
    fn serve(&self) {
        self.serve_queue(self.queue().lock());
    }

    fn serve_queue(&self, mut session: Session<'_, WaitQueue<Self>>) {
        session.repeat(|queue, wakes| self.pass(queue, wakes));
    }

    /// Hands over to the front while the bound is reached, then notifies. Returns false if the
    /// batch is full, and there may be more.
    fn pass(&self, queue: &mut WaitQueue<Self>, wakes: &mut WakeBatch) -> bool {
        self.prepare(queue);
        while self.is_at_bound()
            && let Some((ticket, claim)) = queue.front()
        {
            if wakes.is_full() {
                return false;
            }
            let only = queue.len() == 1;
            let Some(grant) = self.hand_over(&mut queue.state, claim, only) else {
                break;
            };
            queue.grant(ticket, grant, wakes);
        }
        queue.is_empty() || self.notify(queue, wakes)
    }
}
