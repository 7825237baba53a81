//! The one lock of a scheduler, and what is done after each event.

use std::fmt;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use crate::slab::Key;
use crate::sync::{Arc, Tally};
use crate::wait::{Guarded, WakeBatch};

use super::cell::{Job, drop_quietly};
use super::core::{Core, How};
use super::crew::{self, Crew};
use super::outcome::Record;
use super::state::Ended;

pub(super) type Books = Core<Arc<dyn Job>>;

pub(super) struct Shared {
    pub(super) books: Guarded<Books>,
    pub(super) crew: Crew,
    /// How long a reader of our own rests before it leaves.
    pub(super) idle: Duration,
    pub(super) log: Option<Sender<Record>>,
    pub(super) lost: Tally,
    pub(super) origin: Instant,
}

impl Shared {
    /// One event: `f` under the lock, then what follows from it, then, with
    /// the lock let go, the wakers it gathered, the readers it sent for and
    /// the tasks it ended unrun.
    pub(super) fn event<R>(
        self: &Arc<Self>,
        f: impl FnOnce(&mut Books, &mut WakeBatch, Duration) -> R,
    ) -> R {
        // Declared first, so that it is dropped last, also on unwinding.
        let mut aftermath = Aftermath::of(self);
        let result;
        let mut session = self.books.lock();
        let now = self.origin.elapsed();
        let (books, wakes) = session.parts();
        result = f(books, wakes, now);
        session.settle(|books, wakes| {
            let settled = books.settle(wakes);
            aftermath.take_from(books);
            settled
        });
        drop(session);
        result
    }

    /// An event that looks for something and, if there is nothing, leaves a
    /// waker; `f` is called with one the second time only, so that nothing is
    /// cloned where there is no need to wait, and gives back the one that it
    /// does not keep.
    pub(super) fn poll<R>(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        mut f: impl FnMut(&mut Books, &mut WakeBatch, Duration, Option<Waker>) -> Look<R>,
    ) -> Poll<R> {
        let mut waker = None;
        for _ in 0..2 {
            match self.event(|books, wakes, now| f(books, wakes, now, waker.take())) {
                Look::Found(found) => return Poll::Ready(found),
                Look::Nothing(unused) => drop(unused),
            }
            waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Cancels all that waits in a caller, a batch at a time.
    pub(super) fn cancel_waiting(self: &Arc<Self>, caller: Key) {
        while !self.event(|books, wakes, now| books.cancel_some(caller, now, wakes)) {}
    }

    /// Nothing more is taken; what waits is done, or cancelled.
    pub(super) fn close(self: &Arc<Self>, how: How) {
        self.event(|books, _, _| books.close());
        if how == How::Cancel {
            let callers = self.books.lock().callers();
            callers
                .into_iter()
                .for_each(|caller| self.cancel_waiting(caller));
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

/// What a look under the lock gave.
pub(super) enum Look<R> {
    /// What was looked for.
    Found(R),
    /// Nothing yet, and the waker that is not needed (any more).
    Nothing(Option<Waker>),
}

/// What is left to do when the lock has been let go.
struct Aftermath<'a> {
    shared: &'a Arc<Shared>,
    to_start: Vec<u32>,
    ended: Vec<Ended<Arc<dyn Job>>>,
}

impl<'a> Aftermath<'a> {
    fn of(shared: &'a Arc<Shared>) -> Self {
        Self {
            shared,
            to_start: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn take_from(&mut self, books: &mut Books) {
        self.to_start.append(&mut books.to_start);
        self.ended.append(&mut books.ended);
    }
}

impl Drop for Aftermath<'_> {
    fn drop(&mut self) {
        for n in self.to_start.drain(..) {
            crew::start(self.shared, n);
        }
        for Ended { job, record } in self.ended.drain(..) {
            self.shared.log(record);
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
