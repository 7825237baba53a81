//! Where workers run: on threads of the scheduler, or on the user's pool.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::wait::drop_quietly;

/// A pool of yours that runs workers.
///
/// A worker that is submitted runs tasks until none is eligible, and then returns. It never parks,
/// and is submitted again when there is work. Give the scheduler at most as many workers as the
/// pool has threads: a worker that waits in the pool's own queue counts as about to start.
///
/// The pool is dropped with the scheduler or by its last worker, even after a shutdown has ended.
/// So a pool that joins its threads in its drop must not join the thread that drops it.
///
/// Implemented for closures: a rayon pool is `move |job| { pool.spawn(job); Ok(()) }`.
pub trait Pool: Send + Sync {
    /// Runs `job` soon, on some thread. A job that is dropped unrun counts as a failed start.
    ///
    /// If the pool runs the job at once, on the submitting thread, tasks must not wait for tasks of
    /// the same scheduler: the worker that could run them may be below them on the stack. On such a
    /// pool the waker of a future runs a worker too, so wake it under no lock that a task takes.
    ///
    /// # Errors
    ///
    /// Why the job cannot be run. The status shows it, and the scheduler tries again at its next
    /// event; accepted tasks wait until then.
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

/// Threads of the scheduler.
pub(super) struct Threads {
    pub(super) name: String,
    pub(super) on_start: Option<Hook>,
    pub(super) on_exit: Option<Hook>,
}

/// Called on a worker's thread, with its number.
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
    /// On threads of the scheduler, which rest between tasks.
    Threads(Threads),
    /// On the user's pool.
    Pool(Box<dyn Pool>),
}
