//! A scheduler for the tasks of many callers, on shared workers.
//!
//! A [`Caller`] submits tasks; a submission never waits for a worker. Three things decide the
//! order in which a caller's tasks start:
//!
//! - the tier: all tasks that have arrived in lower tiers end first;
//! - the group: its tasks start in the order of submission, as many at once as its limit says;
//! - the rank: bumped groups first, then by standing level, then by age, with bounded overtaking.
//!
//! Callers share the workers by weighted round robin. The [`Task`] handle keeps the result of a
//! task, its error or its panic.
//!
//! # Example
//!
//! ```
//! use conversant::limit::{DEFAULT_LEVEL, Limit};
//! use conversant::scheduler::{CallerOptions, How, Place, Scheduler};
//!
//! let scheduler = Scheduler::builder().workers(2).build()?;
//! let caller = scheduler.caller("nightly", CallerOptions::default())?;
//! let ledger = caller.group(Limit::SERIAL, DEFAULT_LEVEL)?;
//!
//! let mut sum = caller.exec(|| Ok::<_, String>(1 + 1))?;
//! for day in 1..=3 {
//!     let place = Place::new().tier(1).group(&ledger);
//!     caller.exec_with(place, move || println!("day {day}"))?.detach();
//! }
//! let summary = caller.synchronize().wait()?;
//! assert_eq!((summary.tasks, summary.ok), (4, 4));
//! assert_eq!(sum.outcome().wait()?.verdict.ok(), Some(2));
//!
//! // In a task, of any runtime:
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let mut last = caller.exec(|| Ok::<_, String>(3))?;
//! assert_eq!(last.outcome().await?.verdict.ok(), Some(3));
//! caller.release(How::Drain).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Workers
//!
//! Workers are threads of the scheduler, or jobs on a [`Pool`] of yours. They start as eligible
//! work arrives, up to a maximum that you can change at any time, and leave after they have rested
//! for the idle time. Nothing polls. From a long backlog of short tasks a worker takes several at
//! once; see [`Builder::claims`].
//!
//! # Futures
//!
//! A task may be a future: [`Caller::spawn`]. The same workers poll it; while it awaits, it
//! occupies no worker. A [`Task`] is a future too, so one task can await another. Whatever wakes
//! the future, of whatever runtime, makes a worker poll it again.
//!
//! Timers, sockets and tasks of tokio must be *made* on a thread that knows tokio. So run the
//! workers there, if your futures make any:
//!
//! ```
//! use conversant::prelude::*;
//! # use std::time::Duration;
//! # let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let tokio = tokio::runtime::Handle::current();
//! let pool = move |worker| {
//!     tokio.spawn_blocking(worker);
//!     Ok(())
//! };
//! let scheduler = Scheduler::builder().workers(2).pool(pool).build()?;
//! let caller = scheduler.caller("calls", CallerOptions::default())?;
//! let task = caller.spawn(async {
//!     tokio::time::sleep(Duration::from_millis(1)).await;
//!     Ok::<_, String>("done")
//! })?;
//! assert_eq!(task.await?.verdict.ok(), Some("done"));
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cancelling
//!
//! A task that has not begun can be cancelled: one [`Task`], or all of a [`Group`], a [`Caller`] or
//! the scheduler. A running task is never stopped. It may ask whether it [is
//! cancelled](is_cancelled), and give a [token](CancelToken::current) to threads that help it.
//!
//! # Borrowing
//!
//! A task is `'static`, except in a [scope](Caller::scope): there it may borrow from the stack of
//! the thread that waits for it.
//!
//! # Waiting inside tasks
//!
//! A task may wait for another task of its scheduler, or for [room](Caller::exec_wait) in a
//! caller. Meanwhile its worker does nothing else. The scheduler is stalled if every running task
//! is blocked in an untimed [`wait`](crate::wait::Wait::wait) for it, and no task can start, not
//! even one with a delay, or a future that awaits, on another worker. Then the newest such wait
//! returns the error [`Stalled`]. Only `wait()` on the thread that runs the task counts; a timed
//! wait, or an `.await` elsewhere, does not. The rule is not applied while a [`Hold`] lives, nor
//! while a cancelled or skipped task is dropped: a value in it must not wait for another task in its
//! `Drop`.
//!
//! Two schedulers whose tasks wait for each other hang, since neither knows of the other. In such
//! tasks use [`wait_timeout`](crate::wait::Wait::wait_timeout).
//!
//! # Bounds
//!
//! The number of turns that a group waits is bounded: see [`Bypass`](crate::limit::Bypass) and
//! `docs/guarantees.md`. Its time is not, since a task is never preempted, unless the caps of
//! the other callers leave a worker free. Endless arrivals in a lower tier block a higher tier of
//! the same caller for ever.

// The path of a task through these files: `submit`; `submissions`, if it is posted; `placing`;
// `claims`, `state` and `local_queue`, when a worker takes it; `perform`, which runs its body
// (`cell`); `endings`.
mod blocking;
mod bodies;
mod borrows;
mod builder;
mod caller;
mod cell;
mod claims;
mod clock;
mod closing;
mod core;
mod current;
mod endings;
mod guards;
mod handles;
mod inside;
mod later;
mod local_queue;
mod log;
mod outcome;
mod perform;
mod placing;
mod pool;
mod posting;
mod reject;
mod room;
mod scope;
mod shared;
mod spawn;
mod stall;
mod state;
mod status;
mod submissions;
mod submit;
mod summary;
mod suspended;
mod task;
mod task_state;
mod tasks;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod timed;
mod tokens;
#[cfg(feature = "tracing")]
mod trace;
mod waits;
mod worker;

use crate::error::{OutOfRange, Stale, Stalled};
use crate::queue::LaneError;
use crate::shown::shows;
use crate::sync::Arc;
use crate::wait::{Op, Wait};

pub use builder::Builder;
pub use caller::{CallerOptions, OnFailure};
pub use core::How;
pub use current::is_cancelled;
pub use guards::{Hold, ShutdownAtEnd};
pub use handles::{Caller, Group, Place};
pub use log::{Event, GroupId, Log, Record, TaskInfo};
pub use outcome::{Ending, Outcome, Run, TaskId, TaskResult, Verdict};
pub use pool::Pool;
pub use reject::{Reason, Rejected, SyncError};
pub use scope::Scope;
pub use status::{CallerStatus, Counts, RunningTask, Status, WaitingTask, Why, WorkersStatus};
pub use summary::Summary;
pub use task::{OutcomeError, Task, first};
pub use tokens::CancelToken;
#[cfg(feature = "tracing")]
pub use trace::Tracing;

pub(crate) use core::Core;
pub(crate) use inside::Inside;
pub(crate) use task_state::{Body, Location, Placing, Started, Tag};

use handles::Registration;
use shared::Shared;
use waits::Drained;

/// A scheduler. Dropping it shuts it down without waiting: it takes no more tasks, and its tasks
/// are still done.
///
/// Tasks that can never begin after the drop are cancelled, so that no wait for them lasts for
/// ever:
///
/// - on a [pool](Builder::pool), tasks whose [delay](Place::after) is not over;
/// - tasks of a group that is paused by its limit of 0, as soon as no handle of the group is left;
/// - tasks of a caller that is paused by its cap of 0, when its last handle is dropped;
/// - all, if no worker can be started.
///
/// A forgotten [`Hold`] ends with the scheduler. A future that has begun stays until somebody
/// wakes it or [cancels](Task::cancel) it.
#[must_use = "dropping the scheduler shuts it down"]
pub struct Scheduler {
    shared: Arc<Shared>,
}

impl Scheduler {
    /// Settings of a new scheduler.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A new caller. Names are for people: two callers may have the same.
    ///
    /// # Errors
    ///
    /// [`LaneError`]: the scheduler is shut down, or a number is out of range.
    pub fn caller(&self, name: &str, options: CallerOptions) -> Result<Caller, LaneError> {
        let name: Arc<str> = Arc::from(name);
        let mut state = self.shared.lock();
        if state.core.closed {
            return Err(LaneError::Closed);
        }
        let key = state.core.add_caller(name, &options)?;
        let c = state.core.caller_mut(key);
        Ok(Caller(Arc::new(Registration {
            shared: Arc::clone(&self.shared),
            key,
            capacity: Arc::clone(&c.capacity),
            may_post: Arc::clone(&c.may_post),
        })))
    }

    /// A handle of the group with this id, which the log and the status show: for instance to
    /// pause it. A submission through this handle always takes the scheduler's lock; one through
    /// the first handle or its clones often need not.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the group or its caller is gone, or it is of another scheduler.
    pub fn group(&self, id: GroupId) -> Result<Group, Stale> {
        Group::find(&self.shared, id)
    }

    /// Changes the maximum number of workers. A lower maximum takes effect as running tasks end:
    /// until then there are at most as many workers as the old maximum allowed, and no task
    /// starts above the new one.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] outside 1 to 1024.
    pub fn set_workers(&self, max: u32) -> Result<(), OutOfRange> {
        self.shared
            .with_state(|state, wakes, _| state.exact(wakes).workers.set_max(max))
    }

    /// What runs, what waits, and why.
    #[must_use]
    pub fn status(&self) -> Status {
        let lost = self.shared.lost.get();
        self.shared.read_exact(|state| state.core.status(lost))
    }

    /// The numbers of the [status](Self::status), at a constant cost. Workers give back what
    /// they have claimed and not started.
    ///
    /// ```
    /// use conversant::scheduler::{CallerOptions, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().workers(1).build()?;
    /// let caller = scheduler.caller("main", CallerOptions::default())?;
    /// caller.exec(|| ())?.detach();
    /// caller.exec(|| Err::<(), _>("no file"))?.detach();
    /// caller.synchronize().wait()?;
    /// let counts = scheduler.counts();
    /// assert_eq!((counts.waiting, counts.running), (0, 0));
    /// assert_eq!((counts.ended.ok, counts.ended.failed), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.read_exact(|state| state.core.counts())
    }

    /// The workers of the [status](Self::status) alone, at a constant cost.
    #[must_use]
    pub fn workers(&self) -> WorkersStatus {
        self.shared.lock().core.workers_status()
    }

    /// Takes no more callers and tasks, and waits until all tasks have ended and all workers have
    /// left. With [`How::Cancel`] it cancels the tasks that have not started. A second call, also
    /// from another thread, waits for the same; with `Cancel` it cancels what a drain waits for.
    ///
    /// Tasks that a limit or cap of 0 or a [`Hold`] keeps from starting are waited for until they
    /// go on or are cancelled. On a [pool](Builder::pool), tasks with a [delay](Place::after) are
    /// waited for while a [`Ticker`](crate::ticker::Ticker) or your calls of
    /// [`advance`](Self::advance) keep the time, and are cancelled otherwise. A pool that runs no
    /// more workers, such as a runtime that has ended, ends no drain: end the scheduler before it.
    ///
    /// Cancel safe: a dropped wait only stops waiting. The shutdown begins with its first poll,
    /// and goes on. The first poll of all takes a step for each caller, under the scheduler's lock;
    /// so does each that cancels.
    ///
    /// # Errors
    ///
    /// [`Stalled`], as for [`Task::outcome`]: a task that waits for the shutdown of its own
    /// scheduler waits for itself.
    pub fn shutdown(&self, how: How) -> Wait<impl Op<Output = Result<(), Stalled>>> {
        Wait::new(Drained::new(&self.shared, None, how, drop))
    }
}

// Handles and results cross threads. The user's values are never shared by reference, so they
// need only be `Send`.
const _: () = {
    const fn both<T: Send + Sync>() {}
    both::<Scheduler>();
    both::<Caller>();
    both::<Group>();
    both::<Task<std::cell::Cell<u8>, std::cell::Cell<u8>>>();
    both::<Status>();
};

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.shared.lock().core.let_go();
        self.shared.close(None, How::Drain);
        self.shared
            .with_state(|state, _, now| state.core.cancel_all_paused(now));
    }
}

shows! {
    /// With its [counts](Self::counts), unless somebody has the lock. Tasks that workers have
    /// claimed are counted as when they were claimed.
    Scheduler, |this|;
    if counts: this.shared.try_lock().map(|state| state.core.counts())
}
