//! Where workers run: on threads of our own, or on the embedder's pool.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::wait::drop_quietly;

/// A pool of the embedder's that runs workers.
///
/// A worker submitted here takes tasks and runs them until none is eligible,
/// then returns; it never parks, and is submitted again when there is work. Let
/// the scheduler have no more workers than the pool has threads: a worker that
/// waits in the pool's own queue counts as one that is about to start.
///
/// Implemented for closures, so that a rayon pool is
/// `move |job| { pool.spawn(job); Ok(()) }`.
pub trait Pool: Send + Sync {
    /// Runs `job` soon, on some thread. A job that is dropped unrun counts as
    /// one that could not be started. On a pool that runs it at once, on the
    /// submitting thread, tasks must not wait for tasks of the same scheduler:
    /// the worker that could run them may be below them on the stack. There a waker of
    /// a future runs a worker, too: wake it with no lock held that a task takes.
    ///
    /// # Errors
    ///
    /// Why it cannot be run; the scheduler reports it and tries
    /// again at the next event. A task that was taken because a worker was
    /// about to start, which then could not be, waits until then.
    fn submit(&self, job: Box<dyn FnOnce() + Send>) -> Result<(), Box<dyn Error + Send + Sync>>;
}

impl<F> Pool for F
where
    F: Fn(Box<dyn FnOnce() + Send>) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync,
{
    fn submit(&self, job: Box<dyn FnOnce() + Send>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self(job)
    }
}

/// Threads of our own.
pub(super) struct Threads {
    pub(super) name: String,
    pub(super) on_start: Option<Hook>,
    pub(super) on_exit: Option<Hook>,
}

/// What is called on a worker's thread, with its number.
pub(super) type Hook = Box<dyn Fn(u32) + Send + Sync>;

impl Default for Threads {
    fn default() -> Self {
        Self {
            name: String::from("conversant"),
            on_start: None,
            on_exit: None,
        }
    }
}

impl Threads {
    /// Runs a worker between its hooks.
    pub(super) fn run(host: &Host, n: u32, work: impl FnOnce()) {
        let call = |which: fn(&Self) -> &Option<Hook>| {
            if let Host::Threads(threads) = host
                && let Some(hook) = which(threads)
            {
                drop_quietly(catch_unwind(AssertUnwindSafe(|| hook(n))));
            }
        };
        call(|threads| &threads.on_start);
        work();
        call(|threads| &threads.on_exit);
    }
}

/// Where workers run.
pub(super) enum Host {
    /// On threads of our own, which rest between tasks.
    Threads(Threads),
    /// On the embedder's pool.
    Pool(Box<dyn Pool>),
}
