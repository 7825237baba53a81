//! One policy for the simulated and the real scheduler.

use std::future::Future;
use std::time::{Duration, Instant};

use crate::error::{OutOfRange, Stale, Stalled};
use crate::limit::Limit;
use crate::queue::LaneError;
use crate::scheduler::{
    Caller, CallerOptions, Group, Inside, Place, Reason, Rejected, Scheduler, Summary, SyncError,
    Task, TaskId,
};
use crate::wait::with_parker;

use super::Work;

/// What a policy drives: a [`Simulation`](super::Simulation), or a `&`[`Scheduler`].
///
/// A policy is a function over any `D: Driver`. It decides which caller submits what and when, with
/// which weights, caps, groups, tiers and bumps. In a simulation each task takes the time that its
/// [`Work`] says, and ends as that says. A scheduler runs the closure or future that is submitted
/// with it. Both decide with the same core. Their decisions are exactly the same if the tasks take
/// the same time, with [`claims(1)`](crate::scheduler::Builder::claims), and have been submitted
/// when a worker chooses. After a `synchronize` a simulation waits for what the policy submits
/// next; a worker does not, and may take another task first. So submit [`at_once`](Self::at_once)
/// what competes. For a build, where tasks let others start, see
/// [`step`](super::Simulation::step).
///
/// ```
/// use std::time::Duration;
/// use conversant::limit::{DEFAULT_LEVEL, Limit};
/// use conversant::scheduler::{CallerOptions, Scheduler};
/// use conversant::simulator::{Driver, Simulation, Work};
///
/// fn policy<D: Driver>(driver: &mut D) -> Result<u64, Box<dyn std::error::Error>> {
///     let etl = driver.caller("etl", CallerOptions::default())?;
///     let ledger = driver.group(&etl, Limit::SERIAL, DEFAULT_LEVEL)?;
///     let hour = Work::takes(Duration::from_secs(3600));
///     for tier in [0, 1] {
///         driver.submit(&etl, Some(&ledger), hour.tier(tier), || Ok(()))?;
///     }
///     Ok(driver.synchronize(&etl)?.ok)
/// }
///
/// let mut sim = Simulation::new(1)?;
/// let scheduler = Scheduler::builder().workers(1).build()?;
/// assert_eq!((policy(&mut sim)?, policy(&mut &scheduler)?), (2, 2));
/// assert_eq!(sim.now(), Duration::from_secs(7200));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Driver {
    /// A caller, which submits tasks. Keep it: a scheduler's caller is released when it is dropped,
    /// a simulation's is not.
    type Caller;

    /// A group of a caller's tasks.
    type Group;

    /// A task, to bump or cancel it.
    type Task;

    /// A new caller.
    ///
    /// # Errors
    ///
    /// [`LaneError`]: a number is out of range, or the scheduler is shut down.
    fn caller(&mut self, name: &str, options: CallerOptions) -> Result<Self::Caller, LaneError>;

    /// A new group of a caller.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for its limit.
    fn group(
        &mut self,
        caller: &Self::Caller,
        limit: Limit,
        level: u8,
    ) -> Result<Self::Group, OutOfRange>;

    /// Submits a task to this group of the caller, or alone. `work` says where it goes and, in a
    /// simulation, how long it takes and how it ends. A scheduler runs `f`; a simulation drops it.
    ///
    /// # Errors
    ///
    /// [`Reason`], also for a `work` that names a group.
    fn submit<F>(
        &mut self,
        caller: &Self::Caller,
        group: Option<&Self::Group>,
        work: Work,
        f: F,
    ) -> Result<Self::Task, Reason>
    where
        F: FnOnce() -> Result<(), String> + Send + 'static;

    /// The same with a future; `work` [says](Work::awaits) how often it awaits.
    ///
    /// # Errors
    ///
    /// As [`submit`](Self::submit).
    fn spawn<F>(
        &mut self,
        caller: &Self::Caller,
        group: Option<&Self::Group>,
        work: Work,
        future: F,
    ) -> Result<Self::Task, Reason>
    where
        F: Future<Output = Result<(), String>> + Send + 'static;

    /// Runs `f`. No task starts until it returns, so all that it submits arrives at one instant. A
    /// [`synchronize`](Self::synchronize) in `f` does not wait: what has not ended is
    /// [stalled](SyncError::Stalled). `f` must not wait in another way for a task that has not
    /// started.
    fn at_once<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R;

    /// A task's number, as in the records.
    fn id(&self, task: &Self::Task) -> TaskId;

    /// Bumps the group of a task, or the next poll of a future that has begun.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the task has ended.
    fn bump(&mut self, task: &Self::Task, level: u8) -> Result<(), Stale>;

    /// Cancels a task that has not started, or a future that awaits: true if it did. A future that
    /// is being polled is cancelled when it awaits next.
    fn cancel(&mut self, task: &Self::Task) -> bool;

    /// Cancels all of a caller's tasks that have not started, and its futures that await. A future
    /// that is being polled is cancelled when it awaits next. Tasks that are submitted later run.
    fn cancel_all(&mut self, caller: &Self::Caller);

    /// The same for the tasks of a group.
    fn cancel_group(&mut self, group: &Self::Group);

    /// Changes a caller's cap; 0 is a pause.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for a limit above [`Limit::MAX`].
    fn set_cap(&mut self, caller: &Self::Caller, cap: Limit) -> Result<(), OutOfRange>;

    /// Changes a group's limit; 0 is a pause.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] for a limit above [`Limit::MAX`].
    fn set_limit(&mut self, group: &Self::Group, limit: Limit) -> Result<(), OutOfRange>;

    /// Changes a group's standing level.
    fn set_level(&mut self, group: &Self::Group, level: u8);

    /// Changes the largest number of workers.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] outside 1 to 1024.
    fn set_workers(&mut self, max: u32) -> Result<(), OutOfRange>;

    /// Waits for all tasks that the caller has submitted since its last synchronize.
    ///
    /// # Errors
    ///
    /// [`SyncError`].
    fn synchronize(&mut self, caller: &Self::Caller) -> Result<Summary, SyncError>;

    /// Lets `time` pass; with a scheduler, the calling thread waits.
    fn pass(&mut self, time: Duration);
}

impl Driver for &Scheduler {
    type Caller = Caller;
    type Group = Group;
    type Task = Task<(), String>;

    fn caller(&mut self, name: &str, options: CallerOptions) -> Result<Caller, LaneError> {
        Scheduler::caller(self, name, options)
    }

    fn group(&mut self, caller: &Caller, limit: Limit, level: u8) -> Result<Group, OutOfRange> {
        caller.group(limit, level)
    }

    fn submit<F>(
        &mut self,
        caller: &Caller,
        group: Option<&Group>,
        work: Work,
        f: F,
    ) -> Result<Self::Task, Reason>
    where
        F: FnOnce() -> Result<(), String> + Send + 'static,
    {
        let task = caller.exec_with(place(group, work)?, f);
        task.map_err(|Rejected { reason, .. }| reason)
    }

    fn spawn<F>(
        &mut self,
        caller: &Caller,
        group: Option<&Group>,
        work: Work,
        future: F,
    ) -> Result<Self::Task, Reason>
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let task = caller.spawn_with(place(group, work)?, future);
        task.map_err(|Rejected { reason, .. }| reason)
    }

    fn at_once<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let _hold = self.hold();
        let _inside = Inside::begin(*self);
        f(self)
    }

    fn id(&self, task: &Self::Task) -> TaskId {
        task.id()
    }

    fn bump(&mut self, task: &Self::Task, level: u8) -> Result<(), Stale> {
        task.bump(level)
    }

    fn cancel(&mut self, task: &Self::Task) -> bool {
        task.cancel()
    }

    fn cancel_all(&mut self, caller: &Caller) {
        caller.cancel_all();
    }

    fn cancel_group(&mut self, group: &Group) {
        group.cancel_all();
    }

    fn set_cap(&mut self, caller: &Caller, cap: Limit) -> Result<(), OutOfRange> {
        caller.set_cap(cap)
    }

    fn set_limit(&mut self, group: &Group, limit: Limit) -> Result<(), OutOfRange> {
        group.set_limit(limit)
    }

    fn set_level(&mut self, group: &Group, level: u8) {
        group.set_level(level);
    }

    fn set_workers(&mut self, max: u32) -> Result<(), OutOfRange> {
        Scheduler::set_workers(self, max)
    }

    fn synchronize(&mut self, caller: &Caller) -> Result<Summary, SyncError> {
        let wait = caller.synchronize();
        match Inside::is_of(*self) {
            true => {
                let ended = wait.wait_timeout(Duration::ZERO);
                ended.unwrap_or(Err(SyncError::Stalled(Stalled)))
            }
            false => wait.wait(),
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = Instant::now().checked_add(time);
        with_parker(|parker, _| while parker.sleep_until(until) {});
    }
}

/// The place of a task in a scheduler.
fn place(group: Option<&Group>, work: Work) -> Result<Place<'_>, Reason> {
    if work.group.is_some() {
        return Err(Reason::ForeignGroup);
    }
    let mut place = Place::new();
    (place.placing, place.label) = (work.placing, work.label);
    Ok(group.into_iter().fold(place, Place::group))
}
