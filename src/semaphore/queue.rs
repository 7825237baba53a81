//! What the semaphore tells its turnstile: who may take, who is notified, who is refused.
//!
//! When a waiter is notified, its permits stay in the word. It has a right to them when there are
//! enough for it and for all waiters ahead of it.

use std::ops::Deref;
use std::panic::Location;

use super::Semaphore;
use super::error::AcquireError;
use super::permit::Permit;
use super::word::Bits;
use crate::error::OutOfRange;
use crate::limit::Limit;
use crate::turnstile::{self, Admission, AdmissionOf, Look, Turnstile, WaitQueue};
use crate::wait::{Guarded, Session, Ticket, WakeBatch};

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(super) count: u32,
    pub(super) made_at: &'static Location<'static>,
}

impl turnstile::Claim for Claim {
    /// Permits.
    type Sum = u64;

    const NOTHING: u64 = 0;

    fn add_to(self, sum: &mut u64) {
        *sum += u64::from(self.count);
    }

    fn take_from(self, sum: &mut u64) {
        *sum -= u64::from(self.count);
    }
}

/// What the queue's lock protects besides the queue.
pub(crate) struct State {
    pub(super) limit: u32,
}

type Queue = WaitQueue<Semaphore>;

impl Turnstile for Semaphore {
    type Claim = Claim;
    type Grant = ();
    type Refusal = AcquireError;
    type State = State;
    type Output<S: Deref<Target = Self>> = Result<Permit<S>, AcquireError>;

    #[inline]
    fn granted<S: Deref<Target = Self>>(semaphore: S, claim: Claim, (): ()) -> Self::Output<S> {
        Ok(Permit::of(semaphore, claim.count))
    }

    fn refused<S: Deref<Target = Self>>(error: AcquireError) -> Self::Output<S> {
        Err(error)
    }

    fn queue(&self) -> &Guarded<Queue> {
        &self.queue
    }

    fn is_at_bound(&self) -> bool {
        self.word.is_at_bound()
    }

    fn nobody_waits(&self) {
        self.word.nobody_waits();
    }

    fn is_shut(&self) -> bool {
        self.is_closed() || self.word.is_shut()
    }

    #[inline]
    fn take_now(&self, claim: Claim) -> Option<()> {
        self.word.take(claim.count).then_some(())
    }

    fn look(&self, claim: Claim) -> Look {
        self.word.look(|bits| bits.covers(0, claim.count))
    }

    fn admit(&self, queue: &mut Queue, claim: &mut Claim, waits: bool) -> AdmissionOf<Self> {
        match self.refusal(queue, *claim) {
            Some(error) => Admission::Refused(error),
            None if self.word.take_or_wait(claim.count, queue.asked(), waits) => {
                Admission::Granted(())
            }
            None => Admission::NotNow,
        }
    }

    fn admit_queued(&self, queue: &mut Queue, ticket: Ticket) -> AdmissionOf<Self> {
        if self.is_closed() {
            // It may still be in the queue: `close` dismisses it in its turn.
            return Admission::Refused(AcquireError::Closed);
        }
        let Some(Claim { count, .. }) = queue.get(ticket) else {
            return Admission::Refused(AcquireError::AboveLimit);
        };
        let front = queue.front().is_some_and(|(first, _)| first == ticket);
        let most = queue.most_ahead(ticket);
        let ahead = |bits: Bits| match bits.covers(most, count) && !front {
            true => Some(most),
            false => sum_ahead(queue, ticket, bits.available()),
        };
        match self.word.take_queued(count, queue.len() == 1, ahead) {
            true => Admission::Granted(()),
            false => Admission::NotNow,
        }
    }

    fn hand_over(&self, _: &mut State, claim: Claim, only: bool) -> Option<()> {
        let taken = !self.is_closed() && self.word.hand_over(claim.count, only);
        taken.then_some(())
    }

    fn put_back(&self, _: &mut State, claim: &mut Claim, (): ()) {
        let _ = self.word.put(claim.count);
    }

    fn notify(&self, queue: &mut Queue, wakes: &mut WakeBatch) -> bool {
        while let Some((ticket, claim)) = queue.first_unnotified() {
            let bits = self.word.load();
            let ahead = queue.sum_ahead_of_unnotified(ticket);
            let ahead = ahead.or_else(|| sum_ahead(queue, ticket, bits.available()));
            let fits = ahead.is_some_and(|ahead| bits.covers(ahead, claim.count));
            if bits.is_closed() || !fits {
                return true;
            }
            if wakes.is_full() {
                return false;
            }
            queue.notify(ticket, claim, wakes);
            if queue.all_notified() {
                self.word.all_notified();
            }
        }
        true
    }
}

/// The sum of the claims ahead of this one, or `None` if that is more than `available`.
fn sum_ahead(queue: &Queue, ticket: Ticket, available: i64) -> Option<u64> {
    let mut ahead = queue.ahead_of(ticket);
    ahead.try_fold(0, |sum, claim| {
        let sum = sum + u64::from(claim.count);
        let beyond = i64::try_from(sum).is_ok_and(|sum| sum > available);
        (!beyond).then_some(sum)
    })
}

impl Semaphore {
    fn refusal(&self, queue: &Queue, claim: Claim) -> Option<AcquireError> {
        if self.is_closed() {
            Some(AcquireError::Closed)
        } else if claim.count > queue.state.limit && queue.state.limit > 0 {
            // A limit of 0 is a pause: a request waits until the limit rises.
            Some(AcquireError::AboveLimit)
        } else {
            None
        }
    }

    /// Whether a waiter was neither granted its permits nor notified.
    pub(crate) fn is_asleep(&self, ticket: Ticket) -> bool {
        let queue = self.queue.lock();
        queue.get(ticket).is_some() && !queue.is_notified(ticket)
    }

    /// Sets the limit to what `new` makes of the old one, and adjusts the available permits to it.
    /// `given_up` of the permits that were out are out no longer.
    pub(super) fn change_limit(
        &self,
        given_up: u32,
        new: impl FnOnce(u32) -> u32,
    ) -> Result<(), OutOfRange> {
        let mut session = self.queue.lock();
        let old = session.state.limit;
        let limit = new(old);
        OutOfRange::check("limit", limit, 0, Limit::MAX)?;
        session.state.limit = limit;
        let by = i64::from(limit) - i64::from(old) + i64::from(given_up);
        if by != 0 {
            self.word.shift(by);
        }
        if limit < old || old == 0 {
            self.refuse_queued(session);
        } else {
            self.serve_queue(session);
        }
        Ok(())
    }

    /// Lowers the limit, but not below 0; `given_up` permits are out no longer.
    pub(super) fn lower_limit(&self, by: u32, given_up: u32) {
        let lowered = self.change_limit(given_up, |limit| limit.saturating_sub(by));
        lowered.expect("no higher than it was");
    }

    /// Dismisses every waiter that must be refused, and serves the rest.
    pub(super) fn refuse_queued(&self, mut session: Session<'_, Queue>) {
        let refused = |queue: &Queue, claim: Claim| self.refusal(queue, claim).is_some();
        let those = session
            .iter()
            .filter(|&(_, claim)| refused(&session, claim));
        let tickets: Vec<Ticket> = those.map(|(ticket, _)| ticket).collect();
        let mut tickets = tickets.into_iter();
        session.repeat(|queue, wakes| {
            while !wakes.is_full()
                && let Some(ticket) = tickets.next()
            {
                // While a batch was fired, it may have left, or the limit may have risen again.
                if queue.get(ticket).is_some_and(|claim| refused(queue, claim)) {
                    let _ = queue.dismiss(ticket, wakes);
                    if queue.is_empty() {
                        self.nobody_waits();
                    }
                }
            }
            !wakes.is_full() && self.pass(queue, wakes)
        });
    }
}
