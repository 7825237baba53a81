//! A scheduler for the tasks of many callers, on shared workers.
//!
//! A [`Caller`] submits tasks and never waits for that. Its tasks start in an
//! order that it shapes: by tier (all that has arrived in a lower tier is done
//! first), by group (one at a time, or as many as the group's limit says, in
//! order of submission), by rank (bumped groups first, then by standing level,
//! then by age, with bounded overtaking). Callers share the workers by weighted
//! round robin. What a task returns, its error or its panic, waits in its
//! [`Task`] handle.
//!
//! # Example
//!
//! ```
//! use conversant::limit::Limit;
//! use conversant::scheduler::{CallerOptions, How, Place, Scheduler};
//!
//! let scheduler = Scheduler::builder().workers(2).build()?;
//! let caller = scheduler.caller("nightly", CallerOptions::default())?;
//! let ledger = caller.group(Limit::SERIAL, 100)?;
//!
//! let mut sum = caller.exec(|| Ok::<_, String>(1 + 1))?;
//! for day in 1..=3 {
//!     let place = Place::new().tier(1).group(&ledger);
//!     let booked = caller.exec_with(place, move || if day < 4 { Ok(day) } else { Err("late") });
//!     booked?.detach();
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
//! Workers start as eligible work arrives, up to a maximum that can be raised
//! and lowered while they run, and leave after resting for the idle time.
//! Nothing polls. Out of a long backlog of short tasks a worker takes several at
//! once; see [`Builder::claims`]. They are threads of the scheduler's own, or jobs on a
//! [`Pool`] of the embedder's.
//!
//! # Futures
//!
//! A task may be a future: [`Caller::spawn`]. The same workers poll it, and while it
//! awaits it keeps none. A [`Task`] is a future too, so that one task awaits another
//! without a worker. Timers and sockets come from elsewhere: whatever wakes the future
//! brings it back to the workers.
//!
//! # Cancelling
//!
//! What has not begun can be cancelled: a [`Task`], or all that a [`Caller`] or the
//! scheduler has. A task that runs is never stopped; it may ask whether it
//! [is cancelled](is_cancelled), and pass a [token](CancelToken::current) of that to threads that help
//! it.
//!
//! # Borrowing
//!
//! A task is `'static`, but in a [scope](Caller::scope): there it may borrow from the stack of
//! the thread that waits for it.
//!
//! # Waiting inside tasks
//!
//! A task may wait for another of the same scheduler, or for
//! [room](Caller::exec_wait) in a caller, but while it does its
//! worker does nothing else. If every running task is blocked in an untimed
//! [`wait`](crate::wait::Wait::wait) of the same scheduler and no task can
//! start, nor one with a delay later on another worker, the newest such wait gives
//! the error [`Stalled`].
//! Only `wait()` on the thread that runs the task counts: a timed wait, or a
//! task that is awaited elsewhere, does not. Two schedulers whose tasks wait for
//! each other hang, as neither knows of the other: in such tasks wait with
//! [`wait_timeout`](crate::wait::Wait::wait_timeout).
//!
//! # Bounds
//!
//! Without preemption no policy that never idles bounds waiting in time, unless
//! the caps of the others leave a worker free. In turns it is bounded: see
//! `Bypass` and the guarantees in the README. Endless arrivals in a lower tier
//! hold back a higher one of the same caller for ever.

// A task's way: `submit`; `submissions`, if it is posted; `placing`; then a worker has it:
// `claims`, `state`, `local_queue`; it runs: `perform`, in a body (`cell`); `endings`.
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

use std::fmt;

use crate::error::{OutOfRange, Stale, Stalled};
use crate::queue::LaneError;
use crate::sync::Arc;
use crate::wait::{Op, Wait};

pub use builder::Builder;
pub use caller::{CallerOptions, OnFailure};
pub use core::How;
pub use current::is_cancelled;
pub use guards::{Hold, ShutdownAtEnd};
pub use handles::{Caller, Group, Place};
pub use log::{Event, GroupId, Log, Record, TaskInfo};
pub use outcome::{Ending, Outcome, Run, TaskId, Verdict};
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
pub(crate) use task_state::{Body, Location, Placing, Started, Tag, Waiting};

use handles::Registration;
use shared::Shared;
use waits::Drained;

/// A scheduler. Dropping it shuts it down without waiting: it takes no more
/// tasks, and does those that it has.
///
/// What can never begin then is cancelled, so that no wait for it lasts for ever: on a
/// [pool](Builder::pool) tasks with a [delay](Place::after) that is not over; those of a group
/// that is paused by its limit of 0, as soon as no handle of the group is left; and all, if no
/// worker can be started. What a caller's cap of 0 keeps from beginning is cancelled when the
/// caller's last handle is dropped. A [`Hold`] that was forgotten ends with the scheduler. A
/// future that has begun waits for whoever wakes it: one that nobody ever wakes, or that waits
/// for a task behind it, ends when it is [cancelled](Task::cancel).
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
        let mut state = self.shared.state.lock();
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

    /// A handle of the group that the log and the status call so: to pause it, say, or change
    /// its limit or level. A submission with it takes the scheduler's lock, also where one with
    /// the first handle or its clones need not.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the group or its caller is gone, or it is of another scheduler.
    pub fn group(&self, id: GroupId) -> Result<Group, Stale> {
        Group::find(&self.shared, id)
    }

    /// Raises or lowers the most workers. Lowering takes effect as running
    /// tasks end: the live ones are never more than the larger of the two, and
    /// no task starts above the new maximum.
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

    /// How many tasks there are of what: as the [status](Self::status) has them, at a cost that
    /// does not depend on how many there are. What workers have taken along goes back for it.
    ///
    /// ```
    /// use conversant::scheduler::{CallerOptions, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().workers(1).build()?;
    /// let caller = scheduler.caller("main", CallerOptions::default())?;
    /// caller.exec(|| Ok::<_, String>(()))?.detach();
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

    /// The workers alone: as in [`status`](Self::status), at a constant cost.
    #[must_use]
    pub fn workers(&self) -> WorkersStatus {
        self.shared.state.lock().core.workers_status()
    }

    /// Takes no more callers and tasks, and waits until those that it has are
    /// done and all workers have left; with [`How::Cancel`] what has not started
    /// is cancelled. Again, from another thread too, it waits for the same. What
    /// a group or cap of 0, or a [`Hold`], keeps from starting is waited for
    /// until it goes on or is cancelled. On a [pool](Builder::pool) a task with a
    /// [delay](Place::after) is waited for while a [`Ticker`](crate::ticker::Ticker) keeps the
    /// time, or for calls of [`advance`](Self::advance); else it is cancelled.
    ///
    /// Cancel safe in that a dropped wait gives up its place; the shutdown that
    /// its first poll began stays begun.
    ///
    /// # Errors
    ///
    /// [`Stalled`], as for [`Task::outcome`]: a task that
    /// waits for the shutdown of its own scheduler waits for itself.
    pub fn shutdown(&self, how: How) -> Wait<impl Op<Output = Result<(), Stalled>>> {
        Wait::new(Drained::new(&self.shared, None, how, drop))
    }
}

// Handles and results cross threads; nothing of the user's is ever shared by
// reference, so `Send` is all that is asked of it.
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
        self.shared.state.lock().core.let_go();
        self.shared.close(None, How::Drain);
        self.shared
            .with_state(|state, _, now| state.core.cancel_all_paused(now));
    }
}

impl fmt::Debug for Scheduler {
    /// With its [counts](Self::counts), if nobody has the lock just then; what workers have
    /// taken along counts as it did when they took it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Scheduler");
        let state = self.shared.state.try_lock();
        if let Some(counts) = state.map(|state| state.core.counts()) {
            out.field("counts", &counts);
        }
        out.finish_non_exhaustive()
    }
}
