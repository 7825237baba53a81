//! The waiting operations.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::enter::Entered;
use super::error::Deadlock;
use super::guard::{Guard, Handle};
use super::{IntentLock, Place};
use crate::modes::Mode;
use crate::sync::{Arc, model_size, spin_loop, yield_now};
use crate::wait::{Op, Spare, Ticket, sealed};

/// How long a thread looks for its mode before it stands in line. By time, since
/// a pause instruction takes from 4 to 140 cycles. The model does not spin.
const BACK_OFF: Duration = Duration::from_nanos(model_size(2_000, 0) as u64);

/// How rarely it looks at most.
const MOST_PAUSES: u32 = 64;

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
        // Nothing may stand against it but that the lock must be asked.
        if self.lock().is_exact_under_the_lock()
            && let Some(place) = self.lock().try_in_line(self.mode)
        {
            return Some(self.granted(place));
        }
        self.back_off()
    }

    /// Looks for a moment, ever less often.
    #[cold]
    fn back_off(&mut self) -> Option<Guard<L>> {
        if BACK_OFF.is_zero() {
            return None;
        }
        let start = Instant::now();
        let mut pauses = 1;
        while self.lock().worth_a_look() && start.elapsed() < BACK_OFF {
            for _ in 0..pauses {
                spin_loop();
            }
            if pauses < MOST_PAUSES {
                pauses *= 2;
            }
            if let Some(guard) = self.take() {
                return Some(guard);
            }
        }
        for _ in 0..3 {
            yield_now();
            if let Some(guard) = self.take() {
                return Some(guard);
            }
        }
        None
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
        // Cloned before the lock is taken, dropped after it if not needed.
        let mut spare = Spare::of(cx.waker());
        let place = match self.ticket {
            Some(ticket) => self.lock().look_from_line(ticket, &mut spare),
            None => match self.lock().stand_in_line(self.mode, &mut spare) {
                Entered::Taken(place) => Some(place),
                Entered::InLine(ticket) => {
                    self.ticket = Some(ticket);
                    None
                }
            },
        };
        match place {
            Some(place) => Poll::Ready(self.granted(place)),
            None => Poll::Pending,
        }
    }

    fn cancel(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.lock().leave_line(ticket);
        }
    }
}

/// A wait of a guard for a stronger mode: what [`Guard::convert`] waits with.
#[derive(Debug)]
pub struct Convert<'a, L: Handle> {
    guard: &'a mut Guard<L>,
    asked: Mode,
}

impl<'a, L: Handle> Convert<'a, L> {
    pub(super) fn new(guard: &'a mut Guard<L>, asked: Mode) -> Self {
        Self { guard, asked }
    }
}

impl<L: Handle> sealed::Sealed for Convert<'_, L> {}

impl<L: Handle> Op for Convert<'_, L> {
    type Output = Result<(), Deadlock>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Deadlock>> {
        let (guard, asked) = (&mut *self.guard, self.asked);
        if guard.waiting().is_none() && guard.convert_now(asked) {
            return Poll::Ready(Ok(()));
        }
        // Cloned before the lock is taken, dropped after it if not needed.
        let mut spare = Spare::of(cx.waker());
        let place = match guard.waiting() {
            Some(ticket) => guard.lock().look_from_line(ticket, &mut spare),
            None => {
                let mut own = guard.own();
                let entered = guard
                    .lock()
                    .convert_in_line(&mut own, asked, Some(&mut spare));
                guard.moved_to(own.place);
                match entered {
                    Err(deadlock) => return Poll::Ready(Err(deadlock)),
                    Ok(Some(Entered::Taken(place))) => Some(place),
                    Ok(Some(Entered::InLine(ticket))) => {
                        guard.waits(ticket);
                        // Who came along to the front may go on now.
                        guard.lock().serve();
                        None
                    }
                    Ok(None) => unreachable!("it waits"),
                }
            }
        };
        let Some(place) = place else {
            return Poll::Pending;
        };
        guard.holds(asked, place);
        Poll::Ready(Ok(()))
    }

    fn cancel(&mut self) {
        self.guard.leave_line();
    }
}
