//! What is said about a scheduler before it is made.

use std::fmt;
use std::time::{Duration, Instant};

use crate::error::OutOfRange;
use crate::limit::Bypass;
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

/// Settings of a new scheduler.
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

    /// The most workers, 1 to 1024; by default as many threads as the machine
    /// runs in parallel.
    pub fn workers(self, workers: u32) -> Self {
        Self { workers, ..self }
    }

    /// How long a worker of the scheduler's own rests before it leaves; 30 s by
    /// default.
    pub fn idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// The most tasks that a worker takes at once, 1 to 1024; 32 by default. At 1
    /// tasks start exactly in order.
    ///
    /// It also takes several of a serial group, and runs them one after the other,
    /// while no other caller has work. Then it also takes up to so many new futures of a
    /// caller before those that were woken, or the other way round.
    ///
    /// A worker takes more than one only out of a backlog of at least two for every
    /// worker that there may be, and only as many as would last it for the
    /// [claim time](Self::claim_time) if they all took as long as those it ran of
    /// late; one that has run none goes by what another knew. Then a bump or a raised
    /// level may come late, by up to that many tasks for each worker. And a task without a
    /// group may wait behind a long one that its worker runs: up to
    /// `(2 * workers + 1) * claims - 1` later ones of its caller may begin before it; as many
    /// again, where other callers have work, or where it goes back meanwhile for a reason
    /// below. So may one of a group whose limit is above 1, and as many later ones of that
    /// group begin before it. Nothing else changes:
    /// what has been taken and has not started counts as waiting and can be cancelled;
    /// it goes back if a lower tier gets work, if its worker's task waits for another
    /// task of the scheduler, if the workers, a cap or a limit are changed, or if a
    /// worker has nothing else to do; limits hold exactly. But tasks that wait for
    /// later ones by other means than the waits of this scheduler, and so depend on
    /// the order in which tasks start, need 1.
    pub fn claims(self, claims: u32) -> Self {
        Self { claims, ..self }
    }

    /// How long what a worker takes at once may last it, as far as can be told from the
    /// tasks that it ran of late; 100 us by default. A longer time takes the lock less
    /// often, and lets a bump or a lower tier wait for longer.
    pub fn claim_time(self, claim_time: Duration) -> Self {
        Self { claim_time, ..self }
    }

    /// How often in a row the oldest group of a caller may be overtaken; at
    /// most 64 times by default.
    pub fn bypass(self, bypass: Bypass) -> Self {
        Self { bypass, ..self }
    }

    /// Runs the workers on this pool instead of threads of their own. The
    /// [name](Self::thread_name) and the hooks of such threads mean nothing then; if they are set
    /// after this, the pool is not used. No worker rests on a pool, so somebody else must keep
    /// the time of [delays](super::Place::after): a [`Ticker`](crate::ticker::Ticker), or calls
    /// of [`advance`](Scheduler::advance).
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

    /// What the workers' threads are called, each with its number behind it;
    /// by default `conversant-1` and so on. Ends the use of a pool.
    pub fn thread_name(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.threads(|threads| Threads { name, ..threads })
    }

    /// Called on each worker's thread before it takes its first task, with the worker's
    /// number: to pin it, or to give it what its tasks find in thread-local storage. A
    /// panic of it ends nothing but the call. Ends the use of a pool.
    pub fn on_thread_start(self, hook: impl Fn(u32) + Send + Sync + 'static) -> Self {
        let on_start = Some(Box::new(hook) as Hook);
        self.threads(|threads| Threads {
            on_start,
            ..threads
        })
    }

    /// The same when a worker has left, and its thread is about to end: a shutdown may
    /// be over before. Ends the use of a pool.
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

    /// Tells a [`Log`] when each task is queued, started and ended: a closure, or a channel of
    /// the crate `crossbeam-channel`, version 0.5. It is told of a beginning before the task
    /// begins, and of an end before anybody else. Lost events are counted in the status. A task
    /// that is refused because no worker could be started is told as cancelled; those that are
    /// dropped unrun with the scheduler itself are not told.
    ///
    /// With a log a submission takes the scheduler's lock twice; without one it costs nothing.
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

    /// Makes the scheduler. No worker starts before there is work.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for the number of workers or of claims.
    pub fn build(self) -> Result<Scheduler, OutOfRange> {
        OutOfRange::check("claims", self.claims, 1, MAX_CLAIMS)?;
        let mut core = Core::new(self.workers, self.bypass)?;
        core.rows = self.log.is_some();
        core.clock.keeps = match self.host {
            Host::Threads(_) => TimeKeeper::Workers,
            Host::Pool(_) => TimeKeeper::Embedder { told: false },
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

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("idle", &self.idle)
            .field("bypass", &self.bypass)
            .finish_non_exhaustive()
    }
}
