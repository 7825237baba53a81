//! The waiting operation.

use std::panic::Location;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::Semaphore;
use super::enter::Entered;
use super::error::AcquireError;
use super::permit::{Handle, Permit};
use super::word::Take;
use crate::sync::{Arc, model_size, spin_loop, yield_now};
use crate::wait::{Op, Spare, Ticket, sealed};

/// How long a thread looks for permits before it stands in line. By time, since
/// a pause instruction takes from 4 to 140 cycles. The model does not spin.
const BACK_OFF: Duration = Duration::from_nanos(model_size(2_000, 0) as u64);

/// How long at most a thread that was told watches others overtake it: a bound's
/// number of short sections.
const WATCH: Duration = Duration::from_micros(100);

/// A wait for permits: what [`Semaphore::acquire`] and
/// [`Semaphore::acquire_owned`] wait with.
#[derive(Debug)]
pub struct Request<S: Handle> {
    /// Taken into the permit.
    semaphore: Option<S>,
    count: u32,
    ticket: Option<Ticket>,
    made_at: &'static Location<'static>,
}

/// What [`Semaphore::acquire`] waits with.
pub type Acquire<'a> = Request<&'a Semaphore>;

/// What [`Semaphore::acquire_owned`] waits with.
pub type AcquireOwned = Request<Arc<Semaphore>>;

impl<S: Handle> Request<S> {
    #[inline]
    pub(super) fn new(semaphore: S, count: u32, made_at: &'static Location<'static>) -> Self {
        Self {
            semaphore: Some(semaphore),
            count,
            ticket: None,
            made_at,
        }
    }

    #[inline]
    fn semaphore(&self) -> &Semaphore {
        self.semaphore.as_ref().expect("there until it is granted")
    }

    #[inline]
    fn granted(&mut self) -> Permit<S> {
        self.ticket = None;
        let semaphore = self.semaphore.take().expect("there until it is granted");
        Permit::of(semaphore, self.count)
    }

    #[inline]
    fn take(&mut self) -> Option<Permit<S>> {
        let semaphore = self.semaphore();
        match semaphore.word.take(self.count, semaphore.bypass) {
            Take::Taken => Some(self.granted()),
            Take::NotNow | Take::Closed => None,
        }
    }

    /// Looks for a moment, ever less often.
    #[cold]
    fn back_off(&mut self) -> Option<Permit<S>> {
        if BACK_OFF.is_zero() {
            return None;
        }
        let start = Instant::now();
        let mut pauses = 1;
        while self.semaphore().worth_a_look() && start.elapsed() < BACK_OFF {
            for _ in 0..pauses {
                spin_loop();
            }
            if pauses < 64 {
                pauses *= 2;
            }
            if let Some(permit) = self.take() {
                return Some(permit);
            }
        }
        for _ in 0..3 {
            yield_now();
            if let Some(permit) = self.take() {
                return Some(permit);
            }
        }
        None
    }

    /// A thread that has been told looks whether it was granted; if not, it
    /// watches for its chance before it takes its place among the untold again.
    #[cold]
    fn glance(&mut self, ticket: Ticket) -> Option<Result<Permit<S>, AcquireError>> {
        let semaphore = self.semaphore();
        let glanced = semaphore.glance_from_line(ticket)?;
        if glanced.is_pending() {
            semaphore.watch(self.count);
            return None;
        }
        match glanced.map(|found| found.map(Permit::pass_on)) {
            Poll::Pending => None,
            Poll::Ready(found) => Some(found.map(|()| self.granted())),
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
        let mut seen = self.word.look();
        let begun = Instant::now();
        let mut since = begun;
        let mut free = false;
        loop {
            for _ in 0..8 {
                spin_loop();
            }
            let now = self.word.look();
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
        if let Some(ticket) = self.ticket {
            return self.glance(ticket);
        }
        match self.take() {
            Some(permit) => Some(Ok(permit)),
            None => self.back_off().map(Ok),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.ticket.is_none()
            && let Some(permit) = self.take()
        {
            return Poll::Ready(Ok(permit));
        }
        // Cloned before the lock is taken, dropped after it if not needed.
        let mut spare = Spare::of(cx.waker());
        let semaphore = self.semaphore.as_ref().expect("there until it is granted");
        let looked = match self.ticket {
            Some(ticket) => semaphore.look_from_line(ticket, &mut spare),
            None => match semaphore.stand_in_line(self.count, self.made_at, &mut spare) {
                Entered::Taken(permit) => Poll::Ready(Ok(permit)),
                Entered::Refused(error) => Poll::Ready(Err(error)),
                Entered::InLine(ticket) => {
                    self.ticket = Some(ticket);
                    Poll::Pending
                }
            },
        };
        // The permits change hands with nothing in between that could panic.
        let passed_on = looked.map(|found| found.map(Permit::pass_on));
        passed_on.map(|found| found.map(|()| self.granted()))
    }

    fn cancel(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.semaphore().leave_line(ticket);
        }
    }
}
