//! The wait queue with bounded overtaking: who takes at once, who waits, who is
//! notified next, and what is handed over. Semaphore and intent lock stand on
//! it, and say what can be had.
//!
//! State: in a word of the primitive two flags and the overtakings (`word`);
//! under one lock those who wait (`queue`), and what the primitive keeps there.
//!
//! ```text
//!             can be had,                       otherwise
//!             queue empty or bound not reached
//!   claim ---+-----------------------------> granted
//!            |                                ^  ^ |
//!            +-> queued --notified, looks ----+  | |
//!                   |                            | v
//!                   +------- handed over --------+ released
//! ```
//!
//! Protocol: taking is one exchange of the word, releasing one change of it. One
//! who finds too little sets WAITERS and UNNOTIFIED in the very word that had too
//! little, and is put in the queue under the lock that it holds meanwhile. A
//! release that sees UNNOTIFIED takes the lock after it, and serves: it leaves
//! what it gave in the word, and notifies those who can have what they ask for.
//! While all of those have been notified, releases pass them by, for they will
//! look; one that looks in vain sets UNNOTIFIED in the very word that had too
//! little. A taker that sees WAITERS counts one overtaking in the exchange that
//! takes. At the bound it may take only what nobody in the queue has a right to,
//! and every release serves, and takes what it can out of the word for the front.
//! A cancel serves just so.
//!
//! Invariants:
//! 1. WAITERS is set if and only if somebody is in the queue, and the overtakings
//!    are 0 without it, at every moment at which the lock is free.
//! 2. Whoever can go on has been notified, or handed what it asks for, when the
//!    lock is free and every release that must serve has had it since.
//! 3. Nobody in the queue overtakes.
//! 4. The mark "notified" is cleared under the lock, and by the exchange that
//!    finds too little: a release before is seen by it, one after it sees
//!    UNNOTIFIED, and then finds the mark cleared.
//! 5. Overtakings never exceed the bound, and are cleared only when the front
//!    gets what it asks for: so one who waits is overtaken at most bound times for
//!    each grant up to and including its own.
//! 6. Wakers cross the lock in [`ClonedWaker`], or are discarded by its session: no panic
//!    of theirs comes between what was taken and the primitive's guard.
//! 7. A service is finished also if a waker panics (`Session::repeat`).

mod queue;
mod request;
mod word;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::ops::Deref;
use std::task::Waker;

pub(crate) use self::queue::WaitQueue;
pub(crate) use self::request::Request;
pub(crate) use self::word::{Bits, Released, UNNOTIFIED, WAITERS, Word};

use crate::wait::{ClonedWaker, Guarded, SELDOM, Session, Ticket, WakeBatch, back_off};

/// What one asks for.
pub(crate) trait Claim: Copy + Unpin {
    /// What several add up to, so that nobody has to walk the queue for it.
    type Sum: Copy;

    /// The sum of none.
    const NOTHING: Self::Sum;

    fn add_to(self, sum: &mut Self::Sum);

    fn take_from(self, sum: &mut Self::Sum);
}

/// What claims at `T` add up to.
pub(crate) type SumOf<T> = <<T as Turnstile>::Claim as Claim>::Sum;

/// What comes of a claim.
#[derive(Debug)]
pub(crate) enum Admission<G, R> {
    Granted(G),
    NotNow,
    Refused(R),
}

/// What comes of a claim at `T`.
pub(crate) type AdmissionOf<T> = Admission<<T as Turnstile>::Grant, <T as Turnstile>::Refusal>;

/// A primitive that grants claims or lets them wait.
pub(crate) trait Turnstile: Sized {
    type Claim: Claim;
    /// What one that was granted must know.
    type Grant: Copy;
    type Refusal;
    /// What else stands under the lock.
    type State;
    /// What a [`Request`] by a handle gives.
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

    /// Whether the bound, or a close, keeps out whoever is not in the queue.
    fn is_shut(&self) -> bool;

    /// Takes without the lock, if that can be.
    fn take_now(&self, claim: Self::Claim) -> Option<Self::Grant>;

    /// Looks for a moment, ever less often, before one joins the queue.
    #[cold]
    fn insist(&self, claim: Self::Claim) -> Option<Self::Grant> {
        back_off(SELDOM, || !self.is_shut(), || self.take_now(claim))
    }

    /// A thread looks whether it was granted, before it looks from its place in the queue.
    #[cold]
    fn glance(&self, _ticket: Ticket, _claim: Self::Claim) -> Option<Self::Grant> {
        None
    }

    /// Under the lock: takes for one who is not in the queue, by the bound, or
    /// leaves WAITERS in the very word that had too little, if it is to wait.
    fn admit(
        &self,
        queue: &mut WaitQueue<Self>,
        claim: &mut Self::Claim,
        waits: bool,
    ) -> AdmissionOf<Self>;

    /// Puts one in the queue.
    fn enqueue(&self, queue: &mut WaitQueue<Self>, claim: Self::Claim, waker: Waker) -> Ticket {
        queue.enqueue(claim, waker)
    }

    /// Takes for one in the queue what nobody ahead of it has a right to, or
    /// leaves UNNOTIFIED in the very word that had too little.
    fn admit_queued(&self, queue: &mut WaitQueue<Self>, ticket: Ticket) -> AdmissionOf<Self>;

    /// Takes for the front, the only one in the queue or not, if that can be.
    fn hand_over(
        &self,
        state: &mut Self::State,
        claim: Self::Claim,
        only: bool,
    ) -> Option<Self::Grant>;

    /// Puts back what was handed over to one that does not want it. Whether
    /// anybody waits is known under the lock.
    fn put_back(&self, state: &mut Self::State, claim: &mut Self::Claim, grant: Self::Grant);

    /// Before the queue is served, also if nobody is there.
    fn prepare(&self, _queue: &WaitQueue<Self>) {}

    /// Notifies whoever can go on, and clears UNNOTIFIED if none is left that a
    /// release could let. False if the batch is full, and there may be more.
    fn notify(&self, queue: &mut WaitQueue<Self>, wakes: &mut WakeBatch) -> bool;

    /// One that found too little looks again, exactly this time.
    #[cold]
    fn try_exactly(&self, claim: &mut Self::Claim) -> AdmissionOf<Self> {
        self.admit(&mut self.queue().lock(), claim, false)
    }

    /// One that found too little is polled: it looks again, from where it is in
    /// the queue, and waits there if it must, with the `cloned` waker.
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

    /// One that waits gives up, or does not want what it was handed. What it
    /// asked for; `None` if it was refused, and has not looked since.
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

    /// Something has come back that somebody in the queue may be waiting for.
    #[cold]
    fn serve(&self) {
        self.serve_queue(self.queue().lock());
    }

    fn serve_queue(&self, mut session: Session<'_, WaitQueue<Self>>) {
        session.repeat(|queue, wakes| self.pass(queue, wakes));
    }

    /// Hands over to the front while the bound is reached, then notifies. False
    /// if the batch is full, and there may be more.
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
