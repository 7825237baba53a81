//! The waiting operation.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::Semaphore;
use super::error::AcquireError;
use super::permit::{Handle, Permit};
use super::queue::Claim;
use crate::sync::{Arc, spin_loop};
use crate::turnstile::{Admission, Turnstile};
use crate::wait::{BACK_OFF, Op, SELDOM, Spare, Ticket, back_off, sealed};

/// How long at most a thread that was notified watches others overtake it: a
/// bound's number of short sections.
const WATCH: Duration = Duration::from_micros(100);

/// A wait for permits: what [`Semaphore::acquire`] and
/// [`Semaphore::acquire_owned`] wait with.
#[derive(Debug)]
pub struct Request<S: Handle> {
    /// Taken into the permit.
    semaphore: Option<S>,
    claim: Claim,
    ticket: Option<Ticket>,
}

/// What [`Semaphore::acquire`] waits with.
pub type Acquire<'a> = Request<&'a Semaphore>;

/// What [`Semaphore::acquire_owned`] waits with.
pub type AcquireOwned = Request<Arc<Semaphore>>;

impl<S: Handle> Request<S> {
    #[inline]
    pub(super) fn new(semaphore: S, claim: Claim) -> Self {
        Self {
            semaphore: Some(semaphore),
            claim,
            ticket: None,
        }
    }

    #[inline]
    fn semaphore(&self) -> &Semaphore {
        self.semaphore.as_ref().expect("there until it is granted")
    }

    /// Its place in the queue, while it waits there.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    #[inline]
    fn granted(&mut self) -> Permit<S> {
        self.ticket = None;
        let semaphore = self.semaphore.take().expect("there until it is granted");
        Permit::of(semaphore, self.claim.count)
    }

    #[inline]
    fn take(&mut self) -> Option<Permit<S>> {
        let taken = self.semaphore().word.take(self.claim.count);
        taken.then(|| self.granted())
    }

    /// Looks for a moment, ever less often.
    #[cold]
    fn back_off(&mut self) -> Option<Permit<S>> {
        let (semaphore, count) = (self.semaphore(), self.claim.count);
        let taken = back_off(
            SELDOM,
            || semaphore.worth_a_look(),
            || semaphore.word.take(count).then_some(()),
        );
        taken.map(|()| self.granted())
    }

    /// A thread that has been notified looks whether it was granted; if not, it
    /// watches for its chance before it is among those who were not again.
    #[cold]
    fn glance(&mut self, ticket: Ticket) -> Option<Permit<S>> {
        let semaphore = self.semaphore();
        match semaphore.glance(ticket)? {
            Poll::Ready(()) => Some(self.granted()),
            Poll::Pending => {
                semaphore.watch(self.claim.count);
                None
            }
        }
    }
}

impl Semaphore {
    /// Looks at the word until `count` permits stay free, the front is about to
    /// be handed some or has been, nothing has changed for a moment, or a while
    /// has passed.
    fn watch(&self, count: u32) {
        if BACK_OFF.is_zero() {
            return;
        }
        let mut seen = self.word.load();
        let begun = Instant::now();
        let mut since = begun;
        let mut free = false;
        loop {
            for _ in 0..8 {
                spin_loop();
            }
            let now = self.word.load();
            if !self.worth_a_look() || now.overtakings() < seen.overtakings() {
                return;
            }
            let covered = now.covers(0, count);
            if covered && free {
                return;
            }
            free = covered;
            let time = Instant::now();
            if time - begun >= WATCH || (now == seen && time - since >= BACK_OFF) {
                return;
            }
            if now != seen {
                (seen, since) = (now, time);
            }
        }
    }
}

impl<S: Handle> sealed::Sealed for Request<S> {}

impl<S: Handle> Op for Request<S> {
    type Output = Result<Permit<S>, AcquireError>;

    #[inline]
    fn at_once(&mut self) -> Option<Self::Output> {
        self.take().map(Ok)
    }

    fn attempt(&mut self) -> Option<Self::Output> {
        match self.ticket {
            Some(ticket) => self.glance(ticket).map(Ok),
            None => self.take().or_else(|| self.back_off()).map(Ok),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.ticket.is_none()
            && let Some(permit) = self.take()
        {
            return Poll::Ready(Ok(permit));
        }
        let mut spare = Spare::of(cx);
        let semaphore = self.semaphore.as_ref().expect("there until it is granted");
        let admission = semaphore.poll_queue(&mut self.claim, &mut self.ticket, &mut spare);
        match admission {
            Admission::Granted(()) => Poll::Ready(Ok(self.granted())),
            Admission::NotNow => Poll::Pending,
            Admission::Refused(error) => Poll::Ready(Err(error)),
        }
    }

    fn cancel(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.semaphore().cancel(ticket);
        }
    }
}
