//! The readers: threads of our own, or jobs on the embedder's pool.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use crate::sync::{Arc, Builder as ThreadBuilder, per_thread};
use crate::wait::{Op, Wait, look_twice, sealed};

use super::cell::{Job, drop_quietly};
use super::shared::Shared;
use super::stall::Target;
use super::state::Started;

/// A pool of the embedder's that runs readers.
///
/// A reader submitted here takes tasks and runs them until none is eligible,
/// then returns; it never parks, and is submitted again when there is work. Let
/// the scheduler have no more readers than the pool has threads: a reader that
/// waits in the pool's own queue counts as one that is about to start.
///
/// Implemented for closures, so that a rayon pool is
/// `move |job| { pool.spawn(job); Ok(()) }`.
pub trait Pool: Send + Sync {
    /// Runs `job` soon, on some thread. A job that is dropped unrun counts as
    /// one that could not be started. On a pool that runs it at once, on the
    /// submitting thread, tasks must not wait for tasks of the same scheduler:
    /// the reader that could run them may be below them on the stack.
    ///
    /// # Errors
    ///
    /// [`PoolError`] if it cannot be run; the scheduler reports it and tries
    /// again at the next event. A task that was taken because a reader was
    /// about to start, which then could not be, waits until then.
    fn submit(&self, job: Box<dyn FnOnce() + Send>) -> Result<(), PoolError>;
}

impl<F> Pool for F
where
    F: Fn(Box<dyn FnOnce() + Send>) -> Result<(), PoolError> + Send + Sync,
{
    fn submit(&self, job: Box<dyn FnOnce() + Send>) -> Result<(), PoolError> {
        self(job)
    }
}

/// Why a pool does not run a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolError(String);

impl PoolError {
    /// For the reason `why`.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PoolError {}

/// Where readers run.
pub(super) enum Crew {
    /// On threads of our own, which rest between tasks.
    Threads,
    /// On the embedder's pool.
    Pool(Box<dyn Pool>),
}

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
        while let Some(started) = self.next() {
            perform(&self.shared, self.n, started);
        }
        self.stage = Stage::Left;
    }

    /// The next task; `None` if the reader has left.
    fn next(&self) -> Option<Started<Arc<dyn Job>>> {
        let Self { shared, n, .. } = self;
        match shared.crew {
            Crew::Threads => {
                let next = Wait::new(Next { shared, n: *n });
                next.wait_timeout(shared.idle).ok().flatten()
            }
            Crew::Pool(_) => shared.reader_event(|books, _, now| {
                let started = books.claim(*n, now);
                if started.is_none() {
                    books.retire(*n);
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

/// Runs one task, logs it, and reports its ending: in this order, so that who
/// has synchronized finds the log complete.
fn perform(shared: &Arc<Shared>, n: u32, started: Started<Arc<dyn Job>>) {
    let Started { task, job, record } = started;
    let outer = CURRENT.with(|c| c.replace(Some((Arc::as_ptr(shared), n))));
    let ending = job.run();
    CURRENT.with(|c| c.set(outer));
    let end = shared.origin.elapsed();
    shared.log(record.ended(ending, end));
    shared.reader_event(|books, wakes, _| books.finish(task, ending, end, wakes));
    // What a detached task gave is dropped here, under no lock.
    drop_quietly(job);
}

/// The wait of a reader of our own for its next task; `None` tells it to leave.
/// Giving up is leaving.
struct Next<'a> {
    shared: &'a Arc<Shared>,
    n: u32,
}

impl sealed::Sealed for Next<'_> {}

impl Op for Next<'_> {
    type Output = Option<Started<Arc<dyn Job>>>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let n = self.n;
        look_twice(cx, |_, spare| {
            let looked = self.shared.reader_event(|books, _, now| {
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
