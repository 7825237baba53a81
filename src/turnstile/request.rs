//! The wait for one claim, at any turnstile.

use std::ops::Deref;
use std::task::{Context, Poll};

use super::{Admission, Turnstile};
use crate::wait::{ClonedWaker, Op, Ticket, sealed};

/// One claim at a turnstile, made through a handle.
pub(crate) struct Request<H: Deref<Target: Turnstile>> {
    /// Moved into the output when the claim is granted.
    handle: Option<H>,
    claim: <H::Target as Turnstile>::Claim,
    ticket: Option<Ticket>,
}

impl<H: Deref<Target = T>, T: Turnstile> Request<H> {
    #[inline]
    pub(crate) fn new(handle: H, claim: T::Claim) -> Self {
        Self {
            handle: Some(handle),
            claim,
            ticket: None,
        }
    }

    /// The place of the claim in the queue, while it waits there.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    #[inline]
    fn turnstile(&self) -> &T {
        self.handle.as_ref().expect("there until it is granted")
    }

    #[inline]
    fn granted(&mut self, grant: T::Grant) -> T::Output<H> {
        self.ticket = None;
        let handle = self.handle.take().expect("there until it is granted");
        T::granted(handle, self.claim, grant)
    }
}

impl<H: Deref<Target: Turnstile>> sealed::Sealed for Request<H> {}

impl<H: Deref<Target = T> + Unpin, T: Turnstile> Op for Request<H> {
    type Output = T::Output<H>;

    #[inline(always)]
    fn at_once(&mut self) -> Option<Self::Output> {
        let grant = self.turnstile().take_now(self.claim)?;
        Some(self.granted(grant))
    }

    fn attempt(&mut self) -> Option<Self::Output> {
        let (turnstile, claim) = (self.turnstile(), self.claim);
        let grant = match self.ticket {
            Some(ticket) => turnstile.spin_queued(ticket, claim),
            None => turnstile.take_now(claim).or_else(|| turnstile.spin(claim)),
        };
        grant.map(|grant| self.granted(grant))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.ticket.is_none()
            && let Some(output) = self.at_once()
        {
            return Poll::Ready(output);
        }
        let mut cloned = ClonedWaker::of(cx);
        let turnstile = self.handle.as_ref().expect("there until it is granted");
        match turnstile.poll_queue(&mut self.claim, &mut self.ticket, &mut cloned) {
            Admission::Granted(grant) => Poll::Ready(self.granted(grant)),
            Admission::NotNow => Poll::Pending,
            Admission::Refused(refusal) => Poll::Ready(T::refused(refusal)),
        }
    }

    fn cancel(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.turnstile().cancel(ticket);
        }
    }
}
