//! The waiting operations.

use std::task::{Context, Poll};

use super::claim::Claim;
use super::guard::{Guard, Handle};
use super::{IntentLock, Place};
use crate::modes::Mode;
use crate::sync::Arc;
use crate::turnstile::{Admission, Turnstile};
use crate::wait::{Op, SELDOM, Spare, Ticket, back_off, sealed};

/// A wait for a mode: what [`IntentLock::lock`] and [`IntentLock::lock_owned`]
/// wait with.
#[derive(Debug)]
pub struct Request<L: Handle> {
    /// Taken into the guard.
    lock: Option<L>,
    mode: Mode,
    ticket: Option<Ticket>,
}

/// What [`IntentLock::lock`] waits with.
pub type Lock<'a> = Request<&'a IntentLock>;

/// What [`IntentLock::lock_owned`] waits with.
pub type LockOwned = Request<Arc<IntentLock>>;

impl<L: Handle> Request<L> {
    #[inline]
    pub(super) fn new(lock: L, mode: Mode) -> Self {
        Self {
            lock: Some(lock),
            mode,
            ticket: None,
        }
    }

    #[inline]
    fn lock(&self) -> &IntentLock {
        self.lock.as_ref().expect("there until it is granted")
    }

    #[inline]
    fn granted(&mut self, place: Place) -> Guard<L> {
        self.ticket = None;
        let lock = self.lock.take().expect("there until it is granted");
        Guard::of(lock, self.mode, place)
    }

    #[inline(always)]
    fn take(&mut self) -> Option<Guard<L>> {
        let place = self.lock().take(self.mode)?;
        Some(self.granted(place))
    }

    /// Has not got it at once.
    #[cold]
    #[inline(never)]
    fn insist(&mut self) -> Option<Guard<L>> {
        let (lock, mode) = (self.lock(), self.mode);
        // It may conflict with nothing, and the lock must only be asked.
        let asked = lock.is_exact_under_the_lock();
        let place = asked.then(|| lock.take_exactly(mode)).flatten();
        let back_off = || back_off(SELDOM, || !lock.word.is_shut(), || lock.take(mode));
        let place = place.or_else(back_off)?;
        Some(self.granted(place))
    }
}

impl<L: Handle> sealed::Sealed for Request<L> {}

impl<L: Handle> Op for Request<L> {
    type Output = Guard<L>;

    #[inline(always)]
    fn at_once(&mut self) -> Option<Guard<L>> {
        self.take()
    }

    fn attempt(&mut self) -> Option<Guard<L>> {
        if self.ticket.is_some() {
            return None;
        }
        self.take().or_else(|| self.insist())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Guard<L>> {
        if self.ticket.is_none()
            && let Some(guard) = self.take()
        {
            return Poll::Ready(guard);
        }
        let mut spare = Spare::of(cx);
        let mut claim = Claim::of(self.mode);
        let lock = self.lock.as_ref().expect("there until it is granted");
        match lock.poll_queue(&mut claim, &mut self.ticket, &mut spare) {
            Admission::Granted(place) => Poll::Ready(self.granted(place)),
            Admission::NotNow => Poll::Pending,
            Admission::Refused(_) => unreachable!("it converts nothing"),
        }
    }

    fn cancel(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.lock().cancel(ticket);
        }
    }
}
