//! When the next date comes, and who waits for an earlier one.
//!
//! A queue with back-off, a job queue, dialogs and a scheduler on a pool do what is due
//! when they are told the time ([`Timed::advance`]). Whoever tells it sleeps until the
//! next date, and must be woken when an earlier one is set: [`Timed::next_due`].
//! [`Ticker`](crate::ticker::Ticker) does both.
//!
//! One scale: the time that is told, the next date and what a waiter knows count from one
//! origin, that of whoever tells the time.
//!
//! Protocol: [`Dates`] stand beside the timers, under the same lock. Their owner tells them
//! the next date whenever it sets one. That a date went they may learn late: who begins to
//! wait looks for the next one itself.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::shown::shows;
use crate::sync::WakeArc as Arc;
use crate::wait::{ClonedWaker, Op, Ticket, Wait, Waiters, WakeBatch, look_twice, sealed};

/// Who waits for an earlier date, and the next one that is known.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct Dates {
    last: Option<Duration>,
    waiters: Waiters<()>,
    /// From which a ticker counts, if there is or was one.
    origin: Option<Instant>,
    /// How many tickers there are.
    tickers: u32,
}

impl Dates {
    /// A ticker begins, and counts from then.
    #[cfg_attr(loom, allow(dead_code, reason = "no model has a ticker"))]
    pub(crate) fn begin(&mut self, origin: Instant) {
        self.origin = Some(origin);
        self.tickers += 1;
    }

    /// A ticker has ended.
    #[cfg_attr(loom, allow(dead_code, reason = "no model has a ticker"))]
    pub(crate) fn end(&mut self) {
        self.tickers -= 1;
    }

    /// Whether there is a ticker.
    #[cfg(all(feature = "scheduler", not(loom)))]
    pub(crate) fn is_kept(&self) -> bool {
        self.tickers > 0
    }

    /// The time, if a ticker keeps it: what happens between two calls of `advance` is
    /// dated by this.
    #[inline]
    pub(crate) fn now(&self) -> Option<Duration> {
        self.origin.map(|origin| origin.elapsed())
    }

    /// Whether somebody waits for an earlier date.
    #[inline]
    #[cfg(feature = "jobs")]
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// The next date is what `next` says, which is asked if somebody waits.
    #[inline]
    pub(crate) fn update(
        &mut self,
        next: impl FnOnce() -> Option<Duration>,
        wakes: &mut WakeBatch,
    ) {
        if !self.waiters.is_empty() {
            self.change(next(), wakes);
        }
    }

    #[cold]
    fn change(&mut self, next: Option<Duration>, wakes: &mut WakeBatch) {
        let earlier = is_earlier(next, self.last);
        self.last = next;
        while earlier && self.waiters.notify_next(wakes).is_some() {}
    }
}

fn is_earlier(next: Option<Duration>, than: Option<Duration>) -> bool {
    next.is_some_and(|next| than.is_none_or(|than| next < than))
}

/// What is to be told the time. It cannot be implemented outside this crate.
pub trait Timed: sealed::Sealed {
    /// Tells the time, since an origin of the caller's choice, and does what is due.
    /// Gives the next date, if there is one, from the same origin. An earlier time than the
    /// last changes nothing.
    fn advance(&self, now: Duration) -> Option<Duration>;

    /// With the lock of the timers held.
    #[doc(hidden)]
    fn with_dates(&self, f: &mut dyn FnMut(Option<Duration>, &mut Dates));

    /// Waits until the next date is earlier than `known`, and gives it; `None` is never.
    /// Any number may wait.
    ///
    /// Cancel safe.
    fn next_due(&self, known: Option<Duration>) -> Wait<NextDue<'_, Self>>
    where
        Self: Sized,
    {
        Wait::new(NextDue {
            timed: self,
            known,
            ticket: None,
        })
    }
}

impl<T: sealed::Sealed + ?Sized> sealed::Sealed for Arc<T> {}
impl<T: sealed::Sealed + ?Sized> sealed::Sealed for &T {}

impl<T: Timed + ?Sized> Timed for Arc<T> {
    fn advance(&self, now: Duration) -> Option<Duration> {
        (**self).advance(now)
    }

    fn with_dates(&self, f: &mut dyn FnMut(Option<Duration>, &mut Dates)) {
        (**self).with_dates(f);
    }
}

impl<T: Timed + ?Sized> Timed for &T {
    fn advance(&self, now: Duration) -> Option<Duration> {
        (**self).advance(now)
    }

    fn with_dates(&self, f: &mut dyn FnMut(Option<Duration>, &mut Dates)) {
        (**self).with_dates(f);
    }
}

/// The wait of [`Timed::next_due`].
pub struct NextDue<'a, T> {
    timed: &'a T,
    known: Option<Duration>,
    ticket: Option<Ticket>,
}

impl<T> sealed::Sealed for NextDue<'_, T> {}

impl<T: Timed> Op for NextDue<'_, T> {
    type Output = Duration;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let Self { timed, known, .. } = *self;
        let ticket = &mut self.ticket;
        look_twice(cx, |current, cloned| {
            let mut looked = None;
            let mut old = None;
            timed.with_dates(&mut |next, dates| {
                if let Some(next) = next.filter(|_| is_earlier(next, known)) {
                    old = dates.waiters.withdraw(ticket);
                    looked = Some(Poll::Ready(next));
                    return;
                }
                dates.last = next;
                if dates.waiters.enqueue((), ticket, current, cloned) {
                    looked = Some(Poll::Pending);
                }
            });
            drop(old.map(ClonedWaker::from));
            looked
        })
    }

    fn cancel(&mut self) {
        let mut old = None;
        let ticket = &mut self.ticket;
        self.timed
            .with_dates(&mut |_, dates| old = dates.waiters.withdraw(ticket));
        drop(old.map(ClonedWaker::from));
    }
}

shows!([T] NextDue<'_, T>, |wait| known: wait.known);
