//! The readers: threads of our own, or jobs on the embedder's pool. A reader takes
//! the books' lock once a task: what has ended and what is next are one event.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::slab::Key;
use crate::sync::{Arc, Builder as ThreadBuilder, per_thread};
use crate::wait::{Op, Wait, look_twice, sealed};

use super::cell::{Job, drop_quietly};
use super::outcome::Ending;
use super::pool::Crew;
use super::shared::{Books, Shared};
use super::stall::Target;
use super::state::Started;

// The scheduler, and the number of the reader, whose task this thread runs.
per_thread! {
    static CURRENT: Cell<Option<(*const Shared, u32)>> = const { Cell::new(None) };
}

/// The reader whose task the calling thread runs, if it is one of `shared`'s.
pub(super) fn current(shared: &Arc<Shared>) -> Option<u32> {
    let (whose, n) = CURRENT.with(Cell::get)?;
    std::ptr::eq(whose, Arc::as_ptr(shared)).then_some(n)
}

/// The calling thread is about to sleep until `target` comes; that counts if
/// it runs a task of this scheduler.
pub(super) fn block(shared: &Arc<Shared>, target: Target) {
    if let Some(n) = current(shared) {
        shared.event(|books, _, _| books.block(n, target));
    }
}

/// The calling thread is awake again.
pub(super) fn unblock(shared: &Arc<Shared>) {
    if let Some(n) = current(shared) {
        shared.event(|books, _, _| books.unblock(n));
    }
}

/// Starts reader `n`; if that cannot be done its number is given back.
pub(super) fn start(shared: &Arc<Shared>, n: u32) {
    let seat = Seat {
        shared: Arc::clone(shared),
        n,
        stage: Stage::SentFor,
    };
    let sent = match &shared.crew {
        Crew::Threads => {
            let named = ThreadBuilder::new().name(format!("conversant-{n}"));
            let started = named.spawn(move || seat.work());
            started.map(drop).map_err(|error| error.to_string())
        }
        Crew::Pool(pool) => {
            let job = Box::new(move || seat.work());
            let sent = catch_unwind(AssertUnwindSafe(|| pool.submit(job)));
            match sent {
                Ok(sent) => sent.map_err(|error| error.to_string()),
                Err(payload) => {
                    drop_quietly(payload);
                    Err(String::from("the pool panicked"))
                }
            }
        }
    };
    if let Err(why) = sent {
        shared.books.lock().explain_failure(why);
    }
}

/// A reader's number, from the moment it is sent for until it leaves: however
/// the reader ends, its number is given back.
struct Seat {
    shared: Arc<Shared>,
    n: u32,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    SentFor,
    Working,
    Left,
}

impl Seat {
    fn work(mut self) {
        self.stage = Stage::Working;
        let mut done = None;
        while let Some(started) = self.next(done.take()) {
            done = Some(perform(&self.shared, self.n, started));
        }
        self.stage = Stage::Left;
    }

    /// Reports the last task and takes the next; `None` if the reader has left.
    fn next(&self, done: Option<Done>) -> Option<Started<Arc<dyn Job>>> {
        let Self { shared, n, .. } = self;
        let n = *n;
        match shared.crew {
            Crew::Threads => {
                let next = Wait::new(Next { shared, n, done });
                next.wait_timeout(shared.idle).ok().flatten()
            }
            Crew::Pool(_) => turn(shared, done, |books, now| {
                let started = books.claim(n, now);
                if started.is_none() {
                    books.retire(n);
                }
                started
            }),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        match self.stage {
            Stage::Left => {}
            Stage::Working => self.shared.reader_event(|books, _, _| books.retire(self.n)),
            Stage::SentFor => self.shared.start_failed(self.n),
        }
    }
}

/// A task that has run: its ending is not in the books yet.
struct Done {
    task: Key,
    ending: Ending,
    end: Duration,
    job: Arc<dyn Job>,
}

/// Runs one task and logs it. Who is told of its end, once it is in the books,
/// finds the row.
fn perform(shared: &Arc<Shared>, n: u32, started: Started<Arc<dyn Job>>) -> Done {
    let Started { task, job, record } = started;
    let outer = CURRENT.with(|c| c.replace(Some((Arc::as_ptr(shared), n))));
    let ending = job.run();
    CURRENT.with(|c| c.set(outer));
    let end = shared.origin.elapsed();
    if let Some(record) = record {
        shared.log(record.ended(ending, end));
    }
    Done {
        task,
        ending,
        end,
        job,
    }
}

/// One hold of the lock between two tasks: the ending of the last goes into
/// the books, and `look` looks for the next.
fn turn<R>(
    shared: &Arc<Shared>,
    done: Option<Done>,
    look: impl FnOnce(&mut Books, Duration) -> R,
) -> R {
    let found = shared.reader_event(|books, wakes, now| {
        if let Some(Done {
            task, ending, end, ..
        }) = done
        {
            books.finish(task, ending, end, wakes);
        }
        look(books, now)
    });
    // What a detached task gave is dropped here, under no lock.
    if let Some(done) = done {
        drop_quietly(done.job);
    }
    found
}

/// The wait of a reader of our own for its next task; `None` tells it to leave.
/// Giving up is leaving. The first poll reports the task before.
struct Next<'a> {
    shared: &'a Arc<Shared>,
    n: u32,
    done: Option<Done>,
}

impl sealed::Sealed for Next<'_> {}

impl Op for Next<'_> {
    type Output = Option<Started<Arc<dyn Job>>>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let n = self.n;
        look_twice(cx, |_, spare| {
            let looked = turn(self.shared, self.done.take(), |books, now| {
                if let Some(started) = books.claim(n, now) {
                    return Some(Some(started));
                }
                if books.readers().must_leave() {
                    books.retire(n);
                    return Some(None);
                }
                if let Some(waker) = spare.take() {
                    *spare = books.rest(n, Some(waker));
                }
                None
            });
            looked.map(Poll::Ready)
        })
    }

    fn cancel(&mut self) {
        let n = self.n;
        self.shared.reader_event(|books, _, _| books.retire(n));
    }
}
