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
//! use conversant::scheduler::{CallerOptions, Place, Scheduler, Verdict};
//!
//! let scheduler = Scheduler::builder().workers(2).build()?;
//! let caller = scheduler.caller("nightly", CallerOptions::default())?;
//! let ledger = caller.group(Limit::SERIAL, 100)?;
//!
//! let mut sum = caller.exec(|| Ok::<_, String>(1 + 1)).map_err(|r| r.reason)?;
//! for day in 1..=3 {
//!     let place = Place::new().tier(1).group(&ledger);
//!     let booked = caller.exec_with(place, move || if day < 4 { Ok(day) } else { Err("late") });
//!     booked.map_err(|r| r.reason)?.detach();
//! }
//! let summary = caller.synchronize().wait()?;
//! assert_eq!((summary.tasks, summary.ok), (4, 4));
//! assert!(matches!(sum.outcome().wait()?.verdict, Verdict::Ok(2)));
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
//! # Waiting inside tasks
//!
//! A task may wait for another of the same scheduler, but while it does its
//! worker does nothing else. If every running task is blocked in an untimed
//! [`wait`](crate::wait::Wait::wait) of the same scheduler and no task can
//! start, nor one with a delay later on another worker, the newest such wait gives the error [`Stalled`](crate::error::Stalled).
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

mod blocking;
mod caller;
mod cell;
mod claimed;
mod core;
mod handles;
mod later;
mod outcome;
mod pool;
mod prefetch;
mod reject;
mod shared;
mod stall;
mod status;
mod submit;
mod task;
mod task_state;
mod tasks;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod waits;
mod worker;

use std::fmt;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use crate::error::{Closed, OutOfRange};
use crate::limit::Bypass;
use crate::sync::{Arc, Tally, available_parallelism};
use crate::wait::{Guarded, Wait};

pub use caller::{OnFailure, Summary};
pub use core::How;
pub use handles::{Caller, CallerOptions, Group, Place};
pub use outcome::{Ending, Outcome, Record, Run, TaskId, Verdict};
pub use pool::{Pool, PoolError};
pub use reject::{CallerError, Reason, Rejected, SyncError};
pub use status::{CallerStatus, RunningTask, Status, WaitingTask, Why, WorkersStatus};
pub use task::{OutcomeError, OutcomeOp, Task};
pub use waits::{Release, Shutdown, Synchronize};

pub(crate) use caller::Synced;
pub(crate) use core::{Core, Placing};

use pool::Host;
use prefetch::State;
use shared::Shared;

/// A scheduler. Dropping it shuts it down without waiting: it takes no more
/// tasks, and does those that it has; tasks that are paused when the last handle
/// goes are dropped unrun.
pub struct Scheduler {
    shared: Arc<Shared>,
}

/// What a scheduler is to be.
#[must_use]
pub struct Builder {
    workers: u32,
    idle: Duration,
    claims: u32,
    bypass: Bypass,
    host: Host,
    log: Option<Sender<Record>>,
}

impl Builder {
    /// The most workers, 1 to 1024; as many as the machine runs in parallel if
    /// this is not said.
    pub fn workers(self, workers: u32) -> Self {
        Self { workers, ..self }
    }

    /// How long a worker of the scheduler's own rests before it leaves; 30 s if
    /// this is not said.
    pub fn idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// The most tasks that a worker takes at once, 1 to 1024; 16 if this is not
    /// said. At 1 tasks start exactly in order.
    ///
    /// A worker takes more than one only out of a backlog of at least two for every
    /// worker that there may be, and only as many as would last it for 100 us if
    /// they all took as long as the longest it ran of late. Then a bump, a raised
    /// level or an earlier task that another worker has may come late, by up to that
    /// many tasks a worker. Nothing else changes: what has been taken and has not
    /// started counts as waiting, can be cancelled, goes back if a lower tier gets
    /// work, if its worker's task waits for another task of the scheduler, if the
    /// workers, a cap or a limit are changed, or if a worker has nothing else to
    /// do; limits hold exactly. But tasks that wait for later ones by other means
    /// than the waits of this scheduler, and so depend on the order in which tasks
    /// start, need 1.
    pub fn claims(self, claims: u32) -> Self {
        Self { claims, ..self }
    }

    /// How often in a row the oldest group of a caller may be overtaken; at
    /// most 64 times if this is not said.
    pub fn bypass(self, bypass: Bypass) -> Self {
        Self { bypass, ..self }
    }

    /// Runs the workers on this pool instead of threads of their own.
    pub fn pool(self, pool: impl Pool + 'static) -> Self {
        let host = Host::Pool(Box::new(pool));
        Self { host, ..self }
    }

    /// Sends a row for every task that ends. A row that finds the channel full
    /// or closed is lost, and counted in the status: nothing waits for the log.
    /// The row of a task is sent before anybody is told of its end.
    pub fn log(self, log: Sender<Record>) -> Self {
        let log = Some(log);
        Self { log, ..self }
    }

    /// Makes it. No worker starts before there is work.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for the number of workers or of claims.
    pub fn build(self) -> Result<Scheduler, OutOfRange> {
        OutOfRange::check("claims", self.claims, 1, MAX_CLAIMS)?;
        let mut core = Core::new(self.workers, self.bypass)?;
        if self.log.is_none() {
            core.without_rows();
        }
        if matches!(self.host, Host::Threads) {
            core.clock.by_workers();
        }
        Ok(Scheduler {
            shared: Arc::new(Shared {
                state: Guarded::new(State::new(core, self.claims)),
                host: self.host,
                start: worker::start,
                idle: self.idle,
                log: self.log,
                lost: Tally::new(),
                origin: Instant::now(),
            }),
        })
    }
}

/// See [`Builder::claims`]; chosen by measurement, see `prefetch`.
const DEFAULT_CLAIMS: u32 = 16;
const MAX_CLAIMS: u32 = 1024;

impl Scheduler {
    /// What is to be said about a scheduler before it is made.
    pub fn builder() -> Builder {
        let parallel = available_parallelism();
        Builder {
            workers: parallel.map_or(1, |n| u32::try_from(n.get()).unwrap_or(1)),
            idle: Duration::from_secs(30),
            claims: DEFAULT_CLAIMS,
            bypass: Bypass::default(),
            host: Host::Threads,
            log: None,
        }
    }

    /// A new caller. Names are for people: two callers may have the same.
    ///
    /// # Errors
    ///
    /// [`CallerError`]: the scheduler is shut down, or a number is out of range.
    pub fn caller(&self, name: &str, options: CallerOptions) -> Result<Caller, CallerError> {
        let name: Arc<str> = Arc::from(name);
        let mut state = self.shared.state.lock();
        if state.is_closed() {
            return Err(CallerError::Closed(Closed));
        }
        let key = state
            .add_caller(name, options.weight, options.cap, options.on_failure)
            .map_err(CallerError::OutOfRange)?;
        let shared = Arc::clone(&self.shared);
        Ok(Caller { shared, key })
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
            .with_state(|state, wakes, _| state.exact(wakes).set_workers(max))
    }

    /// What runs, what waits, and why.
    #[must_use]
    pub fn status(&self) -> Status {
        let lost = self.shared.lost.get();
        self.shared.read_exact(|state| state.status(lost))
    }

    /// The workers alone: as in [`status`](Self::status), at a constant cost.
    #[must_use]
    pub fn workers(&self) -> WorkersStatus {
        self.shared.state.lock().workers_status()
    }

    /// Lets tasks arrive whose [delay](Place::after) is over, and says how long it
    /// is until the next one's is; nothing if there is none.
    ///
    /// Only where the workers run on a [pool](Builder::pool) is there a need to
    /// call it, when it says so and after a submission with a delay: no worker
    /// rests there that could keep the time, though every other call that changes
    /// something does the same by the way.
    pub fn advance(&self) -> Option<Duration> {
        self.shared
            .with_state(|state, _, now| Some(state.next_due()?.saturating_sub(now)))
    }

    /// While the hold lives no task starts, whatever is submitted: when it is
    /// dropped, all of that has arrived at one instant. Running tasks go on. A
    /// task that keeps a hold must not wait for a task that has not started.
    pub fn hold(&self) -> Hold<'_> {
        self.shared
            .with_state(|state, wakes, _| state.exact(wakes).hold());
        Hold { scheduler: self }
    }

    /// Takes no more callers and tasks, and waits until those that it has are
    /// done and all workers have left; with [`How::Cancel`] what has not started
    /// is cancelled. Again, from another thread too, it waits for the same. What
    /// a group or cap of 0, or a [`Hold`], keeps from starting is waited for
    /// until it goes on or is cancelled.
    ///
    /// Cancel safe in that a dropped wait gives up its place; the shutdown that
    /// its first poll began stays begun.
    ///
    /// # Errors
    ///
    /// [`Stalled`](crate::error::Stalled), as for [`Task::outcome`]: a task that
    /// waits for the shutdown of its own scheduler waits for itself.
    pub fn shutdown(&self, how: How) -> Wait<Shutdown<'_>> {
        Wait::new(Shutdown::new(&self.shared, how))
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

/// Keeps tasks from starting; see [`Scheduler::hold`].
#[derive(Debug)]
#[must_use = "dropping it lets tasks start"]
pub struct Hold<'a> {
    scheduler: &'a Scheduler,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.scheduler
            .shared
            .with_state(|state, _, _| state.unhold());
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.shared.close(How::Drain);
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler").finish_non_exhaustive()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("idle", &self.idle)
            .field("bypass", &self.bypass)
            .finish_non_exhaustive()
    }
}
