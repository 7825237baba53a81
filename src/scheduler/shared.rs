//! The one lock of a scheduler, and what is done after each event.

use std::fmt;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use crate::slab::Key;
use crate::sync::{Arc, Tally};
use crate::wait::{Guarded, Session, WakeBatch, drop_quietly, look_twice};

use super::books::Books;
use super::cell::Job;
use super::core::How;
use super::outcome::Record;
use super::pool::Crew;
use super::state::Ended;

pub(super) struct Shared {
    pub(super) books: Guarded<Books>,
    pub(super) crew: Crew,
    /// Starts a reader, whatever that is.
    pub(super) start: fn(&Arc<Shared>, u32),
    /// How long a reader of our own rests before it leaves.
    pub(super) idle: Duration,
    pub(super) log: Option<Sender<Record>>,
    pub(super) lost: Tally,
    pub(super) origin: Instant,
}

impl Shared {
    /// One event: `f` under the lock, then what follows from it, then, with
    /// the lock let go, the wakers it gathered, the readers it sent for and
    /// the tasks it ended unrun. None of those can make it unwind.
    pub(super) fn event<R>(
        self: &Arc<Self>,
        f: impl FnOnce(&mut Books, &mut WakeBatch, Duration) -> R,
    ) -> R {
        self.event_in(self.books.lock(), f)
    }

    /// The same, after a look at the books: they are as the last event left them,
    /// and what is due since then has not arrived.
    pub(super) fn event_in<R>(
        self: &Arc<Self>,
        looked: Session<'_, Books>,
        f: impl FnOnce(&mut Books, &mut WakeBatch, Duration) -> R,
    ) -> R {
        // Declared first, so that it is dropped last, also on unwinding.
        let mut aftermath = Aftermath::of(self);
        let mut session = looked;
        let now = self.origin.elapsed();
        let (books, wakes) = session.parts();
        books.advance(now, wakes);
        let result = f(books, wakes, now);
        session.settle(|books, wakes| {
            let settled = books.settle(wakes);
            aftermath.take_from(books);
            settled
        });
        result
    }

    /// Looks at the books as they would be if readers took one task at a time:
    /// no event, unless something is to be put right.
    pub(super) fn exactly<R>(self: &Arc<Self>, look: impl FnOnce(&mut Books) -> R) -> R {
        let mut session = self.books.lock();
        if session.are_exact() {
            return look(&mut session);
        }
        self.event_in(session, |books, wakes, _| {
            books.exact(wakes);
            look(books)
        })
    }

    /// Reader `n` could not be started. No event: it is not sent for again
    /// before the next. May be called while unwinding.
    pub(super) fn start_failed(&self, n: u32) {
        let mut session = self.books.lock();
        let (books, wakes) = session.parts();
        books.start_failed(n);
        books.settle_waits(wakes);
    }

    /// An event that looks for something and, if there is nothing, leaves a
    /// waker; `f` is called as by [`look_twice`].
    pub(super) fn poll<R>(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        mut f: impl FnMut(&mut Books, &mut WakeBatch, &mut Option<Waker>) -> Option<R>,
    ) -> Poll<R> {
        look_twice(cx, |_, spare| {
            self.event(|books, wakes, _| f(books, wakes, spare))
                .map(Poll::Ready)
        })
    }

    /// Cancels all that waits in a caller that is released and paused, a batch
    /// at a time.
    pub(super) fn cancel_waiting(self: &Arc<Self>, caller: Key) {
        while !self.event(|books, wakes, now| books.cancel_some(caller, now, wakes)) {}
    }

    /// Nothing more is taken; what waits is done, or cancelled.
    pub(super) fn close(self: &Arc<Self>, how: How) {
        self.event(|books, wakes, _| {
            if how == How::Cancel {
                books.exact(wakes).cancel_all();
            }
            books.close();
        });
        if how == How::Cancel {
            // No task is added any more: who has none waiting now will not.
            let callers = self.books.lock().waiting_callers();
            for caller in callers {
                self.cancel_waiting(caller);
            }
        }
    }

    pub(super) fn log(&self, record: Record) {
        if let Some(log) = &self.log
            && log.try_send(record).is_err()
        {
            self.lost.count();
        }
    }
}

/// Leaves a spare waker, if there is one, in `slot`.
pub(super) fn leave(slot: &mut Option<Waker>, spare: &mut Option<Waker>) {
    if spare.is_some() {
        std::mem::swap(slot, spare);
    }
}

/// What is left to do when the lock has been let go.
struct Aftermath<'a> {
    shared: &'a Arc<Shared>,
    to_start: Vec<u32>,
    unrun: Vec<Arc<dyn Job>>,
}

impl<'a> Aftermath<'a> {
    fn of(shared: &'a Arc<Shared>) -> Self {
        Self {
            shared,
            to_start: Vec::new(),
            unrun: Vec::new(),
        }
    }

    /// Under the lock. The rows are sent here, so that they are in the log
    /// before the first waker is woken.
    fn take_from(&mut self, books: &mut Books) {
        self.to_start.append(&mut books.to_start);
        // Taken whole: many may be skipped at once, and the room they took is
        // given back.
        for Ended { job, record } in std::mem::take(&mut books.ended) {
            if let Some(record) = record {
                self.shared.log(record);
            }
            self.unrun.push(job);
        }
    }
}

impl Drop for Aftermath<'_> {
    fn drop(&mut self) {
        for n in self.to_start.drain(..) {
            (self.shared.start)(self.shared, n);
        }
        for job in self.unrun.drain(..) {
            job.discard();
            drop_quietly(job);
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
