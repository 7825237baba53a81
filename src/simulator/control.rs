//! What may be done to a simulation while it runs.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use crate::error::{OutOfRange, Stale};
use crate::limit::Limit;
use crate::queue::LaneError;
use crate::scheduler::{CallerOptions, Counts, Location, Reason, Summary, SyncError, TaskId};

use super::{CallerId, Driver, GroupId, SimTask, Simulation, Work};

impl Simulation {
    /// How many tasks are in each state at this instant.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.core.counts()
    }

    /// Wakes a task that is a future and awaits, as a wake-up in a scheduler would; false if it
    /// does not await. A future that is being polled then makes no pause at its next await.
    pub fn wake(&mut self, task: &SimTask) -> bool {
        let Some(Location::Future(future)) = self.find(task) else {
            return false;
        };
        let awaits = self.core.wake_task(future);
        let pause = task.job.progress.lock().pause.take();
        pause
            .into_iter()
            .for_each(|pause| _ = self.pauses.cancel(pause));
        awaits
    }

    /// The location of a task of this simulation, if it has not ended.
    fn find(&self, task: &SimTask) -> Option<Location> {
        let task = Some(task).filter(|task| task.number == self.core.number);
        task?.job.progress.lock().location
    }

    /// No task starts until the matching [`unhold`](Self::unhold).
    pub fn hold(&mut self) {
        self.core.hold();
    }

    /// Ends one [`hold`](Self::hold), if there is any.
    pub fn unhold(&mut self) {
        self.core.unhold();
    }
}

impl Driver for Simulation {
    type Caller = CallerId;
    type Group = GroupId;
    type Task = SimTask;

    fn caller(&mut self, name: &str, options: CallerOptions) -> Result<CallerId, LaneError> {
        Ok(Self::caller(self, name, options)?)
    }

    fn group(&mut self, caller: &CallerId, limit: Limit, level: u8) -> Result<GroupId, OutOfRange> {
        Self::group(self, *caller, limit, level)
    }

    fn submit<F>(
        &mut self,
        caller: &CallerId,
        group: Option<&GroupId>,
        work: Work,
        _: F,
    ) -> Result<SimTask, Reason> {
        if work.group.is_some() {
            return Err(Reason::ForeignGroup);
        }
        let group = group.copied();
        Self::submit(self, *caller, Work { group, ..work })
    }

    fn spawn<F>(
        &mut self,
        caller: &CallerId,
        group: Option<&GroupId>,
        work: Work,
        _: F,
    ) -> Result<SimTask, Reason> {
        Driver::submit(self, caller, group, work, || Ok(()))
    }

    fn at_once<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.hold();
        let result = catch_unwind(AssertUnwindSafe(|| f(self)));
        self.unhold();
        result.unwrap_or_else(|payload| resume_unwind(payload))
    }

    fn id(&self, task: &SimTask) -> TaskId {
        task.id()
    }

    fn bump(&mut self, task: &SimTask, level: u8) -> Result<(), Stale> {
        let at = self.find(task).ok_or(Stale)?;
        self.core.bump(at, level)
    }

    fn cancel(&mut self, task: &SimTask) -> bool {
        let at = self.find(task);
        let cancelled = at.is_some_and(|at| self.core.cancel(at, self.now));
        if at.is_some() && !cancelled {
            self.core.cancel_running(|_, tag| tag.id == task.id);
        }
        self.collect_unrun();
        cancelled
    }

    fn cancel_all(&mut self, caller: &CallerId) {
        let caller = self.key(*caller);
        self.core.cancel_all(Some(caller), self.now);
        self.collect_unrun();
    }

    fn cancel_group(&mut self, group: &GroupId) {
        let group = self.group_key(*group);
        self.core.cancel_group(group, self.now);
        self.collect_unrun();
    }

    fn set_cap(&mut self, caller: &CallerId, cap: Limit) -> Result<(), OutOfRange> {
        self.core.set_cap(self.key(*caller), cap)
    }

    fn set_limit(&mut self, group: &GroupId, limit: Limit) -> Result<(), OutOfRange> {
        let group = self.group_key(*group);
        // Groups of a simulation are never removed.
        self.core.backlog.set_limit(group, limit).unwrap_or(Ok(()))
    }

    fn set_level(&mut self, group: &GroupId, level: u8) {
        let group = self.group_key(*group);
        self.core.backlog.set_level(group, level);
    }

    fn set_workers(&mut self, max: u32) -> Result<(), OutOfRange> {
        self.core.workers.set_max(max)
    }

    fn synchronize(&mut self, caller: &CallerId) -> Result<Summary, SyncError> {
        self.synchronize_by(*caller, !self.core.is_held())
    }

    fn pass(&mut self, time: Duration) {
        self.advance_to(self.now().saturating_add(time));
    }
}
