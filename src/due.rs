//! The next date of a thing, and waits for an earlier one.
//!
//! A queue with back-off, a job queue, dialogs and a scheduler on a pool do what is due when they
//! are told the time ([`Timed::advance`]). The thread or task that tells the time sleeps until the
//! next date, and must be woken when an earlier one is set ([`Timed::next_due`]).
//! [`Ticker`](crate::ticker::Ticker) does both.
//!
//! All times count from one origin: the time that is told, the next date, and the date that a
//! waiter knows. The caller of `advance` chooses it.
//!
//! Protocol: [`Dates`] are kept next to the timers, under the same lock. Their owner gives them the
//! next date whenever it sets one. They need not learn that a date is gone: a waiter reads the next
//! date itself.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::shown::shows;
use crate::sync::WakeArc as Arc;
use crate::wait::{ClonedWaker, Op, Ticket, Wait, Waiters, WakeBatch, look_twice, sealed};

/// The waits for an earlier date, each with the date that it knows. Only an earlier one wakes it: the
/// lease of a new claim ends after those that a ticker knows, also if these are gone.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct Dates {
    waiters: Waiters<Option<Duration>>,
    /// The origin of the ticker's times, if there is or was a ticker.
    origin: Option<Instant>,
    /// How many tickers there are.
    tickers: u32,
}

impl Dates {
    /// A ticker begins. Returns from when times count: the origin of the first ticker, since with a
    /// later one time would stand still, and with an earlier one running lengths would be cut short.
    #[cfg_attr(loom, allow(dead_code, reason = "no model has a ticker"))]
    pub(crate) fn begin(&mut self, origin: Instant) -> Instant {
        self.tickers += 1;
        *self.origin.get_or_insert(origin)
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

    /// The time, if a ticker keeps it or did so. It dates what happens between two calls of
    /// `advance`.
    #[inline]
    pub(crate) fn now(&self) -> Option<Duration> {
        self.origin.map(|origin| origin.elapsed())
    }

    /// Whether a wait for an earlier date is queued.
    #[inline]
    #[cfg(feature = "jobs")]
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Updates the next date to what `next` returns; calls it only if there are waiters.
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
        let waiting = self.waiters.iter_waiting();
        let told = waiting.filter(|&(_, &known)| is_earlier(next, known));
        let told: Vec<_> = told.map(|(ticket, _)| ticket).collect();
        for ticket in told {
            self.waiters.notify(ticket, wakes);
        }
    }
}

fn is_earlier(next: Option<Duration>, than: Option<Duration>) -> bool {
    next.is_some_and(|next| than.is_none_or(|than| next < than))
}

/// A thing that is told the time. It cannot be implemented outside this crate.
pub trait Timed: sealed::Sealed {
    /// Tells the time, since an origin of the caller's choice, and does what is due.
    ///
    /// Returns the next date, if there is one, from the same origin. A time before the last one
    /// counts as the last one.
    fn advance(&self, now: Duration) -> Option<Duration>;

    /// Calls `f` with the next date, while the lock of the timers is held.
    #[doc(hidden)]
    fn with_dates(&self, f: &mut dyn FnMut(Option<Duration>, &mut Dates));

    /// Waits until the next date is earlier than `known`, and returns it; `None` means never. Any
    /// number of threads and tasks may wait; each date that is set is compared with what they know.
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
                if dates.waiters.enqueue(known, ticket, current, cloned) {
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
