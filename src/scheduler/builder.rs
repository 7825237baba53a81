//! The settings of a scheduler before it is built.

use std::time::{Duration, Instant};

use crate::error::OutOfRange;
use crate::limit::Bypass;
use crate::shown::shows;
use crate::sync::{Arc, Tally, available_parallelism, model_size};
use crate::wait::Guarded;

use super::Scheduler;
use super::clock::TimeKeeper;
use super::core::Core;
use super::log::Log;
use super::pool::{Hook, Host, Pool, Threads};
use super::shared::Shared;
use super::state::State;
use super::submissions::Submissions;
use super::worker;

/// The settings of a scheduler before it is built.
#[must_use]
pub struct Builder {
    workers: u32,
    idle: Duration,
    claims: u32,
    claim_time: Duration,
    bypass: Bypass,
    host: Host,
    log: Option<Box<dyn Log>>,
}

impl Builder {
    pub(super) fn new() -> Self {
        let parallel = available_parallelism();
        Self {
            workers: parallel.map_or(1, |n| u32::try_from(n.get()).unwrap_or(1)),
            idle: Duration::from_secs(30),
            claims: DEFAULT_CLAIMS,
            claim_time: CLAIM_TIME,
            bypass: Bypass::default(),
            host: Host::Threads(Threads::default()),
            log: None,
        }
    }

    /// The maximum number of workers, 1 to 1024; by default as many as the machine runs threads
    /// in parallel.
    pub fn workers(self, workers: u32) -> Self {
        Self { workers, ..self }
    }

    /// How long a worker thread of the scheduler rests before it leaves; 30 s by default. A worker
    /// that began to rest until the date of a delayed task stays until that date, even if the task
    /// is cancelled.
    pub fn idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// The most tasks that a worker claims at once, 1 to 1024; 32 by default. With 1, tasks start
    /// in the exact order.
    ///
    /// A worker claims more than one only from a backlog of at least two tasks for each worker
    /// that there may be, and only as many as would take the [claim time](Self::claim_time) if
    /// they all took as long as the tasks that it ran lately. A worker that has run none uses
    /// what another worker measured. While no other caller has work, it also claims several tasks
    /// of a serial group and runs them one after the other, and it claims up to this many new
    /// futures of a caller before the woken ones, or the other way round.
    ///
    /// What a value above 1 changes:
    ///
    /// - A bump or a raised level may take effect late, by up to this many tasks for each worker.
    /// - A task without a group may wait behind a long task of its worker. Up to
    ///   `(2 * workers + 1) * claims - 1` later tasks of its caller may begin before it, and twice
    ///   as many if other callers have work, or if it goes back meanwhile. The same holds for a
    ///   task of a group whose limit is above 1, for later tasks of that group.
    /// - A caller whose last waiting task is claimed ends its turns in a row; if claimed tasks go
    ///   back, it has as many again.
    /// - Tasks that wait for later tasks by other means than the waits of this scheduler may
    ///   deadlock: these need 1.
    ///
    /// Nothing else changes. A claimed task that has not started counts as waiting and can be
    /// cancelled. It goes back to its place if a lower tier gets work, if its worker's task waits
    /// for another task of the scheduler, if the workers, a cap or a limit are changed, or if
    /// another worker has nothing to do. Limits hold exactly.
    pub fn claims(self, claims: u32) -> Self {
        Self { claims, ..self }
    }

    /// How long the tasks of one claim may take together, estimated from the tasks that the worker
    /// ran lately; 100 us by default. With a longer time workers take the lock less often, and a
    /// bump or a lower tier waits longer.
    pub fn claim_time(self, claim_time: Duration) -> Self {
        Self { claim_time, ..self }
    }

    /// How often in a row the oldest group of a caller may be overtaken; 64 by default.
    pub fn bypass(self, bypass: Bypass) -> Self {
        Self { bypass, ..self }
    }

    /// Runs the workers on this pool instead of on threads of the scheduler. The
    /// [name](Self::thread_name) and the hooks of threads then have no effect; if you set them
    /// after the pool, the pool is not used. No worker rests on a pool, so something else must
    /// keep the time of [delays](super::Place::after): a [`Ticker`](crate::ticker::Ticker), or
    /// your calls of [`advance`](Scheduler::advance).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::{Duration, Instant};
    /// use conversant::scheduler::{CallerOptions, Place, Scheduler};
    /// use conversant::ticker::Ticker;
    ///
    /// let pool = |worker: Box<dyn FnOnce() + Send>| {
    ///     rayon::spawn(worker);
    ///     Ok(())
    /// };
    /// let scheduler = Arc::new(Scheduler::builder().workers(2).pool(pool).build()?);
    /// let _ticker = Ticker::spawn(Arc::clone(&scheduler), Instant::now())?;
    /// let caller = scheduler.caller("main", CallerOptions::default())?;
    /// let soon = Place::new().after(Duration::from_millis(2));
    /// let mut task = caller.exec_with(soon, || Ok::<_, String>("again"))?;
    /// assert_eq!(task.outcome().wait()?.verdict.ok(), Some("again"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pool(self, pool: impl Pool + 'static) -> Self {
        let host = Host::Pool(Box::new(pool));
        Self { host, ..self }
    }

    /// The name of the workers' threads, followed by a number; `conversant-1` and so on by
    /// default. Replaces a pool.
    pub fn thread_name(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.threads(|threads| Threads { name, ..threads })
    }

    /// Called on each worker's thread before its first task, with the worker's number: to pin the
    /// thread, or to set thread-local values for its tasks. A panic ends only the call. Replaces
    /// a pool.
    ///
    /// The hook must not wait for a task of this scheduler: until it returns, the worker runs no
    /// task and starts no other worker, so the wait may hang, without the error
    /// [`Stalled`](crate::error::Stalled), which only tasks get.
    pub fn on_thread_start(self, hook: impl Fn(u32) + Send + Sync + 'static) -> Self {
        let on_start = Some(Box::new(hook) as Hook);
        self.threads(|threads| Threads {
            on_start,
            ..threads
        })
    }

    /// Called when a worker has left and its thread is about to end; a shutdown may be over
    /// before that. Replaces a pool.
    pub fn on_thread_exit(self, hook: impl Fn(u32) + Send + Sync + 'static) -> Self {
        let on_exit = Some(Box::new(hook) as Hook);
        self.threads(|threads| Threads { on_exit, ..threads })
    }

    fn threads(self, change: impl FnOnce(Threads) -> Threads) -> Self {
        let threads = match self.host {
            Host::Threads(threads) => threads,
            Host::Pool(_) => Threads::default(),
        };
        let host = Host::Threads(change(threads));
        Self { host, ..self }
    }

    /// Calls a [`Log`] when each task is queued, started and ended. A log is a closure, a channel
    /// of the crate `crossbeam-channel` (version 0.5), or a type of yours. It is called before a
    /// task starts, and at its end before anybody else knows, except a [`Scope`](super::Scope) that
    /// ends. The status counts lost events. A task
    /// that is refused because no worker could be started is logged as cancelled. The end of a task
    /// that is dropped with the scheduler is not logged: one that never ran, or a future that
    /// nobody can wake.
    ///
    /// With a log, a submission takes the scheduler's lock twice.
    ///
    /// ```
    /// use conversant::scheduler::{CallerOptions, Ending, How, Record, Scheduler};
    ///
    /// // Of records, for the ends alone; or of `Event`s, or `move |event: Event| ...`.
    /// let (log, rows) = crossbeam_channel::bounded::<Record>(1_000);
    /// let scheduler = Scheduler::builder().workers(1).log(log).build()?;
    /// let caller = scheduler.caller("main", CallerOptions::default())?;
    /// caller.exec(|| Err::<(), _>("no file"))?.detach();
    /// scheduler.shutdown(How::Drain).wait()?;
    /// let row = rows.try_recv()?;
    /// assert_eq!((&*row.task.caller, row.ending), ("main", Ending::Failed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn log(self, log: impl Log + 'static) -> Self {
        let log = Some(Box::new(log) as Box<dyn Log>);
        Self { log, ..self }
    }

    /// Builds the scheduler. No worker starts before there is work.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] if the number of workers or of claims is.
    pub fn build(self) -> Result<Scheduler, OutOfRange> {
        OutOfRange::check("claims", self.claims, 1, MAX_CLAIMS)?;
        let mut core = Core::new(self.workers, self.bypass)?;
        core.records = self.log.is_some();
        core.clock.keeps = match self.host {
            Host::Threads(_) => TimeKeeper::Workers,
            Host::Pool(_) => TimeKeeper::Embedder { advances: false },
        };
        Ok(Scheduler {
            shared: Arc::new(Shared {
                state: Guarded::new(State::new(core, self.claims)),
                submissions: Submissions::new(),
                host: self.host,
                start: worker::start,
                idle: self.idle,
                claim_time: self.claim_time,
                log: self.log,
                lost: Tally::new(),
                origin: Instant::now(),
            }),
        })
    }
}

/// See [`Builder::claims`]; chosen by measurement, see `state`.
const DEFAULT_CLAIMS: u32 = 32;
const MAX_CLAIMS: u32 = 1024;

/// The model's tasks take no time.
const CLAIM_TIME: Duration = Duration::from_micros(model_size(100, 1 << 40) as u64);

shows!(Builder, |builder| workers: builder.workers, idle: builder.idle, bypass: builder.bypass);
